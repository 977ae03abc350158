// Topologies of bare GPUs whose shape can be seen: rings, full meshes, stars, tori.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "topologies/layout/layout_draft.hpp"

namespace ringsim::layout {

namespace {

constexpr std::size_t most_on_circle = 24, first_on_circle = 12, last_on_circle = 3, most_marked_on_circle = 4;
constexpr std::size_t most_in_mesh = 16;

using Pairs = std::set<std::pair<NodeId, NodeId>>;

Pairs pairs_of(const Plan& plan) {
  Pairs pairs;
  for (const Cable& cable : plan.cables) pairs.insert({cable.a, cable.b});
  return pairs;
}

/// Once round, if every device has two neighbors and one round reaches all; else empty.
std::vector<NodeId> ring_of(const Plan& plan) {
  const std::size_t n = plan.neighbors.size();
  for (const auto& neighbors : plan.neighbors)
    if (neighbors.size() != 2) return {};
  std::vector<NodeId> order{{0}};
  for (NodeId before{0}, at = plan.neighbors[0][0]; at != NodeId{0};) {
    if (order.size() == n) return {};
    order.push_back(at);
    const auto& ways = plan.neighbors[at.value];
    const NodeId next = ways[0] == before ? ways[1] : ways[0];
    before = at;
    at = next;
  }
  return order.size() == n ? order : std::vector<NodeId>{};
}

/// A place on a circle: a device, or the note that stands for some.
struct CirclePlace {
  std::optional<NodeId> node;
  std::size_t hidden = 0;
};

/// The places on a circle. Of too many devices the first, the last and a few with marks are drawn, with notes between.
std::vector<CirclePlace> places_of(const Plan& plan, const std::vector<NodeId>& order) {
  std::vector<CirclePlace> places;
  std::size_t n_marked = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool inner = order.size() > most_on_circle && i >= first_on_circle && i < order.size() - last_on_circle;
    if (!inner || (plan.marked[order[i].value] && n_marked++ < most_marked_on_circle))
      places.push_back({.node = order[i]});
    else if (!places.back().node)
      ++places.back().hidden;
    else
      places.push_back({.node = std::nullopt, .hidden = 1});
  }
  return places;
}

/// On a circle, clockwise from the top. `center`: around that.
Draft circle(const Plan& plan, const std::vector<NodeId>& order, std::optional<NodeId> center) {
  const std::vector<CirclePlace> places = places_of(plan, order);
  Draft draft;
  double widest = 0;
  for (const NodeId node : order) widest = std::max(widest, box_width(plan.topology, node));
  const double circumference = static_cast<double>(places.size()) * (widest + 62);
  const double radius = std::max(center ? 130.0 : 110.0, circumference / (2 * std::numbers::pi));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double turn =
        2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(places.size()) - std::numbers::pi / 2;
    const Point at{radius * std::cos(turn), radius * std::sin(turn)};
    if (places[i].node)
      draft.place(plan, *places[i].node, at);
    else
      draft.note(at, lines_for_more(plan, order, order.size() - places[i].hidden));
  }
  if (center) draft.place(plan, *center, {0, 0});
  return draft;
}

/// The cables of a grid of these sizes, the last one fastest.
Pairs grid_pairs(const std::vector<std::uint32_t>& sizes, std::uint32_t n, bool closed) {
  Pairs pairs;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::uint32_t stride = n;
    for (const std::uint32_t size : sizes) {
      stride /= size;
      const std::uint32_t x = i / stride % size;
      if (x + 1 < size) pairs.insert({NodeId{i}, NodeId{i + stride}});
      if (closed && x + 1 == size && size > 2) pairs.insert({NodeId{i - x * stride}, NodeId{i}});
    }
  }
  return pairs;
}

/// The sizes of the grid that the cables make, closed or not; empty if they make none.
std::vector<std::uint32_t> grid_of(const Plan& plan) {
  const auto n = static_cast<std::uint32_t>(plan.neighbors.size());
  const Pairs pairs = pairs_of(plan);
  std::vector<std::vector<std::uint32_t>> all;
  for (std::uint32_t a = 2; a <= n / 2; ++a) {
    if (n % a != 0) continue;
    all.push_back({a, n / a});
    for (std::uint32_t b = 2; b <= n / a / 2; ++b)
      if (n / a % b == 0) all.push_back({a, b, n / a / b});
  }
  const auto cabled_to_first = [&](std::uint32_t device) {
    const auto& near = plan.neighbors[0];
    return std::find(near.begin(), near.end(), NodeId{device}) != near.end();
  };
  // The first device of a grid has a neighbor in each direction; that leaves few of the many ways to divide n.
  std::erase_if(all, [&](const std::vector<std::uint32_t>& sizes) {
    std::uint32_t stride = n;
    return !std::all_of(sizes.begin(), sizes.end(),
                        [&](std::uint32_t size) { return cabled_to_first(stride /= size); });
  });
  for (const auto& sizes : all)
    for (const bool closed : {true, false}) {
      std::size_t expected = 0;
      for (const std::size_t size : sizes) expected += n / size * (closed && size > 2 ? size : size - 1);
      if (expected == pairs.size() && grid_pairs(sizes, n, closed) == pairs) return sizes;
    }
  return {};
}

/// Rows and columns; a third dimension goes up and to the right, as in a drawing of a cube. Of a large grid its corner.
Draft grid(const Plan& plan, const std::vector<std::uint32_t>& sizes) {
  const auto n = static_cast<std::uint32_t>(plan.neighbors.size());
  const bool deep = sizes.size() == 3;
  const std::uint32_t depth = deep ? sizes[0] : 1, rows = sizes[sizes.size() - 2], columns = sizes.back();
  const std::uint32_t most = deep ? 4 : 12;
  const std::uint32_t d = std::min(depth, most), r = std::min(rows, most), c = std::min(columns, most);
  const double pitch_x = deep ? 66.0 * d + 40 : 118, pitch_y = deep ? 38.0 * d + 36 : 76;
  Draft draft;
  std::vector<NodeId> all;
  for (std::uint32_t i = 0; i < n; ++i) all.push_back({i});
  for (std::uint32_t z = 0; z < d; ++z)
    for (std::uint32_t y = 0; y < r; ++y)
      for (std::uint32_t x = 0; x < c; ++x)
        draft.place(plan, {(z * rows + y) * columns + x}, {x * pitch_x + z * 62.0, y * pitch_y - z * 36.0});
  const std::size_t shown = draft.nodes.size();
  if (shown < n) draft.note({(c - 1) * pitch_x / 2, r * pitch_y}, lines_for_more(plan, all, shown));
  return draft;
}

}  // namespace

std::optional<Draft> shape_of(const Plan& plan) {
  const Topology& topology = plan.topology;
  std::vector<NodeId> ends, hubs;
  for (std::uint32_t i = 0; i < topology.n_nodes(); ++i) {
    if (topology.node({i}).host) return std::nullopt;
    (topology.node({i}).kind == NodeKind::network_switch ? hubs : ends).push_back({i});
  }
  if (hubs.size() == 1 && ends.size() > 2 && plan.cables.size() == ends.size() &&
      plan.neighbors[hubs[0].value].size() == ends.size())
    return circle(plan, ends, hubs[0]);
  if (!hubs.empty() || ends.size() < 3) return std::nullopt;
  if (const std::vector<NodeId> ring = ring_of(plan); !ring.empty()) return circle(plan, ring, std::nullopt);
  if (const auto sizes = grid_of(plan); !sizes.empty()) return grid(plan, sizes);
  if (ends.size() <= most_in_mesh && plan.cables.size() == ends.size() * (ends.size() - 1) / 2)
    return circle(plan, ends, std::nullopt);
  return std::nullopt;
}

}  // namespace ringsim::layout
