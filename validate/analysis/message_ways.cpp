#include "validate/analysis/message_ways.hpp"

#include <algorithm>

namespace ringsim {

MessageWays::MessageWays(const Scenario& scenario, const Setup& setup, const MachineBounds& machine)
    : ranks_(setup.collectives.front().ranks), topology_(machine.topology()) {
  std::vector<bool> down(topology_.n_links());
  for (std::size_t l = 0; l < down.size(); ++l) down[l] = machine.rates()[l].bytes_per_second == 0;
  routes_ = std::make_unique<Routes>(topology_, scenario.transport, setup.routing, std::move(down));
}

namespace {

/// The edge of the wires that stands for each link, or for the half-duplex cable between two devices.
struct EdgesOfLinks {
  std::vector<int> by_link;  // [link]; -1: none
  std::map<std::pair<NodeId, NodeId>, int> by_ends;

  EdgesOfLinks(const TreeWires& wires, std::size_t n_links, bool backwards) : by_link(n_links, -1) {
    for (std::size_t e = 0; e < wires.wires.edges.size(); ++e) {
      const Wires::Edge& edge = wires.wires.edges[e];
      const NodeId a = wires.wires.vertices[static_cast<std::size_t>(edge.from)].node;
      const NodeId b = wires.wires.vertices[static_cast<std::size_t>(edge.to)].node;
      if (wires.medium[e] >= 0)
        by_ends[backwards ? std::pair(b, a) : std::pair(a, b)] = static_cast<int>(e);
      else
        by_link[edge.link.value] = static_cast<int>(e);
    }
  }
  int edge_of(const Topology& topology, LinkId link) const {
    if (by_link[link.value] >= 0) return by_link[link.value];
    const auto medium = by_ends.find({topology.link(link).from, topology.link(link).to});
    return medium == by_ends.end() ? -1 : medium->second;
  }
};

}  // namespace

WayBetween MessageWays::between(const TreeWires& wires, bool backwards) {
  const auto edges = std::make_shared<const EdgesOfLinks>(wires, topology_.n_links(), backwards);
  return [this, edges, backwards](int u, int v) {
    const NodeId a = ranks_[static_cast<std::size_t>(u)], b = ranks_[static_cast<std::size_t>(v)];
    // What goes up a tree takes the way from child to parent; the tree was planned from parent to child.
    std::vector<int> way;
    if (a == b) return way;
    for (const LinkId link : backwards ? links_between(b, a) : links_between(a, b)) {
      const int edge = edges->edge_of(topology_, link);
      if (edge < 0) return std::vector<int>{};
      way.push_back(edge);
    }
    if (backwards) std::reverse(way.begin(), way.end());
    return way;
  };
}

std::vector<std::vector<int>> MessageWays::on(const TreeWires& wires, bool backwards) {
  const WayBetween way = between(wires, backwards);
  const int n = static_cast<int>(ranks_.size());
  std::vector<std::vector<int>> ways;
  for (int from = 0; from < n; ++from)
    for (int to = 0; to < n; ++to) ways.push_back(way(from, to));
  return ways;
}

std::vector<LinkId> MessageWays::links_between(NodeId from, NodeId to) const {
  std::vector<LinkId> links;
  for (const Path& path : routes_->find_parts(from, to))
    for (const Leg& leg : path.legs) links.insert(links.end(), leg.links.begin(), leg.links.end());
  return links;
}

}  // namespace ringsim
