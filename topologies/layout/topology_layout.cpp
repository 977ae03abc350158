#include "topologies/layout/topology_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "topologies/layout/layout_draft.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::layout {

namespace {

constexpr double margin = 16, label_height = 15;
/// Cables of a class that are few get a label each, as far as there is room; of others one does.
constexpr int few = 10;

/// The point at which a cable leaves a device, on its upper or lower edge: opposite the other end, within its width.
Point facing(const Box& box, Point other) {
  const double reach = std::max(box.width / 2 - 6, 0.0);
  return {std::clamp(other.x, box.x - reach, box.x + reach), other.y < box.y ? box.top() : box.bottom()};
}

Curve hanging(const Box& a, const Box& b, double sag) {
  const bool right = a.x < b.x;
  const Point from{a.x + (right ? 1 : -1) * a.width / 5, a.bottom()},
      to{b.x + (right ? -1 : 1) * b.width / 5, b.bottom()};
  const Point control{(from.x + to.x) / 2, (from.y + to.y) / 2 + 2 * sag};
  return {from, control, to};
}

/// Straight, or bent round the devices in its way, as little as can be.
Curve around(const Draft& draft, const PlacedNode& a, const PlacedNode& b, bool centered) {
  Point from{a.box.x, a.box.y}, to{b.box.x, b.box.y};
  if (!centered && std::abs(from.y - to.y) > box_height) {
    from = facing(a.box, to);
    to = facing(b.box, from);
    from = facing(a.box, to);
  }
  std::optional<Curve> best;
  int fewest = 0;
  for (int i = 0; i < 61; ++i) {
    const int distance = (i + 1) / 2;
    const double bend = (i % 2 == 0 ? -6.5 : 6.5) * distance;
    const Curve curve = clipped(bent(from, to, bend), a.box, b.box);
    int in_the_way = 0;
    for (const PlacedNode& other : draft.nodes)
      if (other.node != a.node && other.node != b.node && meets(curve, other.box, 3)) ++in_the_way;
    if (best && in_the_way >= fewest) continue;
    best = curve;
    fewest = in_the_way;
    if (fewest == 0) break;
  }
  return *best;
}

std::vector<PlacedCable> cables_in(const Plan& plan, const Draft& draft, bool centered) {
  std::vector<PlacedCable> cables;
  for (const Cable& cable : plan.cables) {
    const PlacedNode *a = draft.find(cable.a), *b = draft.find(cable.b);
    if (a == nullptr || b == nullptr) continue;
    const auto sag = draft.sags.find({cable.a, cable.b});
    const Curve curve =
        sag != draft.sags.end() ? hanging(a->box, b->box, sag->second) : around(draft, *a, *b, centered);
    cables.push_back({.cable = cable, .curve = curve, .label = std::nullopt, .mark = std::nullopt});
  }
  return cables;
}

/// First one cable of each class per host, then the others of classes that are small.
void label(const Plan& plan, const Draft& draft, std::vector<PlacedCable>& cables) {
  LabelRoom room;
  for (const PlacedNode& placed : draft.nodes) room.block(placed.box);
  for (const PlacedNote& note : draft.notes) room.block(note.box);
  for (const PlacedFrame& frame : draft.frames) room.block(frame.title);
  for (const PlacedCable& placed : cables) room.cross(placed.curve);
  using Class = std::tuple<std::optional<std::uint32_t>, LinkKind, NodeKind, NodeKind, std::string>;
  std::map<Class, std::vector<PlacedCable*>> classes;
  for (PlacedCable& placed : cables) {
    const Node &a = plan.topology.node(placed.cable.a), &b = plan.topology.node(placed.cable.b);
    const auto host = a.host == b.host ? a.host : std::nullopt;
    const auto kinds = std::minmax(a.kind, b.kind);
    classes[{host, placed.cable.kind, kinds.first, kinds.second, placed.cable.rate}].push_back(&placed);
  }
  for (PlacedCable& placed : cables) {
    const auto has_mark = [&](LinkId link) { return plan.marks.contains(link); };
    const Cable& cable = placed.cable;
    if (std::none_of(cable.there.begin(), cable.there.end(), has_mark) &&
        std::none_of(cable.back.begin(), cable.back.end(), has_mark))
      continue;
    placed.mark = room.place(placed.curve, mark_size, mark_size, /*clear=*/false);
    if (!placed.mark) placed.mark = placed.curve.at(0.5);
  }
  const auto try_on = [&](PlacedCable& placed, bool clear) {
    if (!placed.label)
      placed.label = room.place(placed.curve, width_of(placed.cable.rate, label_size) + 4, label_height, clear);
    return placed.label.has_value();
  };
  for (const bool clear : {true, false})
    for (auto& [key, members] : classes) {
      const auto has_one = [](const PlacedCable* each) { return each->label.has_value(); };
      if (std::any_of(members.begin(), members.end(), has_one)) continue;
      for (PlacedCable* each : members)
        if (try_on(*each, clear)) break;
    }
  for (auto& [key, members] : classes)
    if (members.size() <= few)
      for (PlacedCable* each : members) try_on(*each, true);
}

/// Moves everything so that it begins at the margin, and finds the size.
TopologyLayout framed(const Draft& draft, std::vector<PlacedCable> cables) {
  TopologyLayout layout{.nodes = draft.nodes,
                        .frames = draft.frames,
                        .notes = draft.notes,
                        .cables = std::move(cables),
                        .left_out = draft.left_out};
  double left = 1e9, top = 1e9, right = -1e9, bottom = -1e9;
  const auto see = [&](double x0, double y0, double x1, double y1) {
    left = std::min(left, x0);
    top = std::min(top, y0);
    right = std::max(right, x1);
    bottom = std::max(bottom, y1);
  };
  const auto see_box = [&](const Box& box) { see(box.left(), box.top(), box.right(), box.bottom()); };
  for (const PlacedNode& placed : layout.nodes) see_box(placed.box);
  for (const PlacedFrame& frame : layout.frames) see_box(frame.box);
  for (const PlacedNote& note : layout.notes) see_box(note.box);
  for (const PlacedCable& placed : layout.cables) {
    for (int i = 0; i <= 10; ++i) {
      const Point at = placed.curve.at(i / 10.0);
      see(at.x, at.y, at.x, at.y);
    }
    if (placed.label)
      see_box({.x = placed.label->x,
               .y = placed.label->y,
               .width = width_of(placed.cable.rate, label_size) + 4,
               .height = label_height});
  }
  const double dx = margin - left, dy = margin - top;
  const auto move = [&](auto& at) {
    at.x += dx;
    at.y += dy;
  };
  for (PlacedNode& placed : layout.nodes) move(placed.box);
  for (PlacedFrame& frame : layout.frames) {
    move(frame.box);
    move(frame.title);
  }
  for (PlacedNote& note : layout.notes) move(note.box);
  for (PlacedCable& placed : layout.cables) {
    move(placed.curve.from);
    move(placed.curve.control);
    move(placed.curve.to);
    if (placed.label) move(*placed.label);
    if (placed.mark) move(*placed.mark);
  }
  layout.width = right - left + 2 * margin;
  layout.height = bottom - top + 2 * margin;
  return layout;
}

}  // namespace

Plan::Plan(const Topology& of, const LinkMarks& of_links)
    : topology(of),
      cables(cables_of(of)),
      marks(of_links),
      marked(of.n_nodes()),
      likeness(likeness_of(of, of_links)),
      neighbors(of.n_nodes()) {
  for (const auto& [link, mark] : marks)
    for (const NodeId end : {of.link(link).from, of.link(link).to}) marked[end.value] = true;
  for (const Cable& cable : cables) {
    neighbors[cable.a.value].push_back(cable.b);
    neighbors[cable.b.value].push_back(cable.a);
  }
  for (auto& each : neighbors) std::sort(each.begin(), each.end());
}

void Draft::place(const Plan& plan, NodeId node, Point at, double width) {
  std::string label = label_of(plan.topology, node);
  const double least = box_width(plan.topology, node);
  nodes.push_back({.node = node,
                   .label = std::move(label),
                   .box = {.x = at.x, .y = at.y, .width = std::max(width, least), .height = box_height}});
}

void Draft::note(Point at, std::vector<std::string> lines) {
  const Box box = box_of(at, lines);
  notes.push_back({.box = box, .lines = std::move(lines)});
}

void Draft::add(const Draft& part, double dx, double dy) {
  const auto moved = [&](auto placed) {
    placed.box.x += dx;
    placed.box.y += dy;
    return placed;
  };
  for (const PlacedNode& placed : part.nodes) nodes.push_back(moved(placed));
  for (const PlacedFrame& frame : part.frames) {
    frames.push_back(moved(frame));
    frames.back().title.x += dx;
    frames.back().title.y += dy;
  }
  for (const PlacedNote& each : part.notes) notes.push_back(moved(each));
  sags.insert(part.sags.begin(), part.sags.end());
}

const PlacedNode* Draft::find(NodeId node) const {
  const auto found =
      std::find_if(nodes.begin(), nodes.end(), [&](const PlacedNode& each) { return each.node == node; });
  return found == nodes.end() ? nullptr : &*found;
}

std::string label_of(const Topology& topology, NodeId node) {
  const Node& device = topology.node(node);
  const std::size_t dot = device.host ? device.name.find('.') : std::string::npos;
  return dot == std::string::npos ? device.name : device.name.substr(dot + 1);
}

double box_width(const Topology& topology, NodeId node) {
  const Weight weight = topology.node(node).kind == NodeKind::gpu ? Weight::bold : Weight::normal;
  return std::max(34.0, width_of(label_of(topology, node), font_size, weight) + 6);
}

Box box_of(Point at, const std::vector<std::string>& lines) {
  double width = 0;
  for (const std::string& line : lines) width = std::max(width, width_of(line, label_size) + 12);
  return {.x = at.x, .y = at.y, .width = width, .height = 6 + 15.0 * static_cast<double>(lines.size())};
}

std::vector<std::string> lines_for_more(const Plan& plan, const std::vector<NodeId>& all, std::size_t shown) {
  const auto look = [&](NodeId node) { return plan.likeness[node.value]; };
  const bool alike = std::all_of(all.begin(), all.end(), [&](NodeId node) { return look(node) == look(all.front()); });
  std::vector<std::string> lines{fmt::format("... {} more", all.size() - shown)};
  if (alike) lines.push_back(fmt::format("like {}", label_of(plan.topology, all.front())));
  return lines;
}

std::vector<NodeId> some_devices(const Plan& plan, const std::vector<NodeId>& all, std::size_t most) {
  std::vector<bool> taken(all.size());
  std::size_t n = 0;
  const auto take = [&](std::size_t limit, bool only_marked) {
    for (std::size_t i = 0; i < all.size() && n < limit; ++i) {
      if (taken[i] || (only_marked && !plan.marked[all[i].value])) continue;
      taken[i] = true;
      ++n;
    }
  };
  take((most + 1) / 2, true);
  take(most, false);
  std::vector<NodeId> some;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (taken[i]) some.push_back(all[i]);
  return some;
}

TopologyLayout layout_of(const Topology& topology, const LinkMarks& marks) {
  const Plan plan(topology, marks);
  const std::optional<Draft> shape = shape_of(plan);
  const Draft draft = shape ? *shape : layers_of(plan);
  std::vector<PlacedCable> cables = cables_in(plan, draft, shape.has_value());
  label(plan, draft, cables);
  return framed(draft, std::move(cables));
}

}  // namespace ringsim::layout
