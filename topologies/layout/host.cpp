// The inside of a host: rows of devices in a frame.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "topologies/layout/layout_draft.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::layout {

namespace {

constexpr std::size_t most_in_row = 16, first_of_many = 12;
constexpr double row_gap = 44, padding = 16, footing = 22;

bool is_between_devices(NodeKind kind) { return kind == NodeKind::pcie_switch || kind == NodeKind::pcie_slot; }

/// Steps over PCIe switches from the nearest device of that kind; a large number if there is none.
std::map<NodeId, int> steps_from(const Plan& plan, const std::vector<NodeId>& members, NodeKind kind) {
  std::map<NodeId, int> steps;
  std::vector<NodeId> reached;
  for (const NodeId node : members)
    if (plan.topology.node(node).kind == kind) reached.push_back(node);
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const NodeId next : plan.neighbors[reached[i].value])
      if (is_between_devices(plan.topology.node(next).kind) && steps.try_emplace(next, steps[reached[i]] + 1).second)
        reached.push_back(next);
  return steps;
}

/// Rows from the top down: NICs, their PCIe switches, memory, CPUs, root complexes, PCIe switches of GPUs, GPUs,
/// NVSwitches.
std::vector<std::vector<NodeId>> rows_of(const Plan& plan, const std::vector<NodeId>& members) {
  constexpr int far = 1000;
  const auto gpus = steps_from(plan, members, NodeKind::gpu), nics = steps_from(plan, members, NodeKind::nic);
  const auto steps = [](const std::map<NodeId, int>& all, NodeId node) {
    const auto found = all.find(node);
    return found == all.end() ? far : found->second;
  };
  const auto row_of = [&](NodeId node) {
    switch (plan.topology.node(node).kind) {
      case NodeKind::nic:
        return 0;
      case NodeKind::pcie_switch:
      case NodeKind::pcie_slot: {
        const int gpu = steps(gpus, node), nic = steps(nics, node);
        return nic < gpu ? nic : 4 * far - std::min(gpu, far - 1);
      }
      case NodeKind::memory:
        return far;
      case NodeKind::cpu:
        return 2 * far;
      case NodeKind::host_bridge:
        return 2 * far + 1;
      case NodeKind::gpu:
        return 4 * far;
      case NodeKind::nvswitch:
      case NodeKind::network_switch:
        break;
    }
    return 5 * far;
  };
  std::map<int, std::vector<NodeId>> rows;
  for (const NodeId node : members) rows[row_of(node)].push_back(node);
  std::vector<std::vector<NodeId>> result;
  for (auto& [row, nodes] : rows) result.push_back(std::move(nodes));
  return result;
}

/// A host's rows, from which devices are chosen and placed.
class HostPlan {
 public:
  HostPlan(const Plan& plan, const std::vector<NodeId>& members) : plan_(plan), rows_(rows_of(plan, members)) {
    for (std::size_t r = 0; r < rows_.size(); ++r)
      for (const NodeId node : rows_[r]) row_[node] = r;
    base_ = 0;
    for (std::size_t r = 0; r < rows_.size(); ++r)
      if (kind(r) == NodeKind::gpu) base_ = r;
  }

  Draft drawn() {
    // From the GPUs up, then down: each row lies by what it is joined to.
    for (std::size_t r = base_ + 1; r-- > 0;) place_row(r);
    for (std::size_t r = base_ + 1; r < rows_.size(); ++r) place_row(r);
    Draft draft;
    double y = padding + box_height / 2;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (const NodeId node : shown_[r]) draft.place(plan_, node, {x_[node], y}, width_[node]);
      if (const auto more = notes_.find(r); more != notes_.end())
        draft.note({more->second, y}, lines_for_more(plan_, rows_[r], shown_[r].size()));
      const double sag = sag_row(r, draft);
      y += box_height + std::max(row_gap, sag > 0 ? sag + 22 : 0) - (kind(r) == NodeKind::memory ? 18 : 0);
    }
    return draft;
  }

 private:
  NodeKind kind(std::size_t row) const { return plan_.topology.node(rows_[row].front()).kind; }

  bool is_mesh(std::size_t row) const {
    for (const NodeId node : rows_[row])
      for (const NodeId other : plan_.neighbors[node.value])
        if (row_.contains(other) && row_.at(other) == row) return true;
    return false;
  }

  /// The devices that are drawn of a long row: the first ones, and in rows above those that they are joined to.
  std::vector<NodeId> chosen(std::size_t r) const {
    if (rows_[r].size() <= most_in_row) return rows_[r];
    const auto joins = [&](NodeId node) {
      const auto& others = plan_.neighbors[node.value];
      return std::any_of(others.begin(), others.end(), [&](NodeId other) { return x_.contains(other); });
    };
    const bool has_joined = std::any_of(rows_[r].begin(), rows_[r].end(), joins);
    std::vector<NodeId> result;
    for (const NodeId node : rows_[r])
      if (!has_joined || joins(node)) result.push_back(node);
    result = some_devices(plan_, result, first_of_many);
    std::sort(result.begin(), result.end());
    return result;
  }

  double wanted(NodeId node, double fallback) const {
    double sum = 0;
    int n = 0;
    for (const NodeId other : plan_.neighbors[node.value])
      if (const auto found = x_.find(other); found != x_.end() && row_.at(other) != row_.at(node)) {
        sum += found->second;
        ++n;
      }
    return n == 0 ? fallback : sum / n + aside(plan_.topology.node(node).kind);
  }

  /// NICs and what lies between them and their PCIe switches move apart, so that cables pass.
  static double aside(NodeKind kind) {
    if (kind == NodeKind::nic) return 16;
    return kind == NodeKind::cpu || kind == NodeKind::host_bridge ? -10 : 0;
  }

  void place_row(std::size_t r) {
    shown_[r] = chosen(r);
    double left = 0, right = 0;
    for (const auto& [node, x] : x_) {
      left = std::min(left, x - 20);
      right = std::max(right, x + 20);
    }
    std::vector<std::pair<double, NodeId>> order;
    for (const NodeId node : shown_[r]) order.emplace_back(r == base_ ? 0 : wanted(node, (left + right) / 2), node);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    const bool is_bar = kind(r) == NodeKind::nvswitch;
    std::vector<double> wants, widths;
    for (const auto& [want, node] : order) {
      const double label = box_width(plan_.topology, node);
      wants.push_back(want);
      widths.push_back(is_bar ? std::max(label, (right - left) / static_cast<double>(order.size()) - 16) : label);
    }
    const bool more = shown_[r].size() < rows_[r].size();
    if (more) {
      wants.push_back(wants.empty() ? 0 : wants.back());
      widths.push_back(box_of({}, lines_for_more(plan_, rows_[r], shown_[r].size())).width);
    }
    const bool is_wide = kind(r) == NodeKind::gpu && is_mesh(r);
    const std::vector<double> centers = spread(wants, widths, is_wide ? 34 : 28);
    for (std::size_t i = 0; i < order.size(); ++i) {
      x_[order[i].second] = centers[i];
      width_[order[i].second] = widths[i];
    }
    if (more) notes_[r] = centers.back();
  }

  /// Lets cables between devices of one row hang below it, deeper the farther they reach. Returns the depth.
  double sag_row(std::size_t r, Draft& draft) const {
    const bool gpus = kind(r) == NodeKind::gpu;
    std::map<double, std::size_t> place;  // by x
    for (const NodeId node : shown_.at(r)) place[x_.at(node)] = 0;
    std::size_t i = 0;
    for (auto& [x, number] : place) number = i++;
    double deepest = 0;
    for (const Cable& cable : plan_.cables) {
      const auto a = row_.find(cable.a), b = row_.find(cable.b);
      if (a == row_.end() || b == row_.end() || a->second != r || b->second != r) continue;
      if (!x_.contains(cable.a) || !x_.contains(cable.b)) continue;
      const auto from = place.at(x_.at(cable.a)), to = place.at(x_.at(cable.b));
      const double distance = static_cast<double>(from < to ? to - from : from - to);
      if (!gpus && distance < 1.5) continue;
      const double sag = gpus ? 20 * distance : 8 + 8 * distance;
      draft.sags[{cable.a, cable.b}] = sag;
      deepest = std::max(deepest, sag);
    }
    return deepest;
  }

  const Plan& plan_;
  std::vector<std::vector<NodeId>> rows_;
  std::map<NodeId, std::size_t> row_;
  std::size_t base_ = 0;
  std::map<std::size_t, std::vector<NodeId>> shown_;
  std::map<std::size_t, double> notes_;
  std::map<NodeId, double> x_, width_;
};

}  // namespace

Draft host_of(const Plan& plan, std::uint32_t host, const std::vector<NodeId>& members) {
  const Draft inside = HostPlan(plan, members).drawn();
  double left = 0, right = 0, bottom = 0;
  bool first = true;
  const auto see = [&](const Box& box) {
    left = first ? box.left() : std::min(left, box.left());
    right = first ? box.right() : std::max(right, box.right());
    bottom = std::max(bottom, box.bottom());
    first = false;
  };
  for (const PlacedNode& placed : inside.nodes) see(placed.box);
  for (const PlacedNote& note : inside.notes) see(note.box);
  for (const auto& [ends, sag] : inside.sags)
    bottom = std::max(bottom, inside.find(ends.first)->box.bottom() + sag + 10);
  const std::string& name = plan.topology.node(members.front()).name;
  const std::string label = name.substr(0, name.find('.'));
  const double title = width_of(label, font_size, Weight::bold) + 8,
               width = std::max(right - left, title) + 2 * padding;
  const double height = bottom + footing + 10;
  Draft draft;
  draft.add(inside, padding - left + (width - 2 * padding - (right - left)) / 2, 0);
  draft.frames.push_back({.host = host,
                          .label = label,
                          .box = {.x = width / 2, .y = height / 2, .width = width, .height = height},
                          .title = {.x = 8 + title / 2, .y = height - 14, .width = title, .height = 18}});
  return draft;
}

}  // namespace ringsim::layout
