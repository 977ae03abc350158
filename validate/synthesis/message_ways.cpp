#include "validate/synthesis/message_ways.hpp"

#include <algorithm>

namespace ringsim {

MessageWays::MessageWays(const Scenario& scenario, const Setup& setup, const MachineBounds& machine)
    : ranks_(setup.collectives.front().ranks), topology_(machine.topology()) {
  std::vector<bool> down(topology_.n_links());
  for (std::size_t l = 0; l < down.size(); ++l) down[l] = machine.rates()[l].bytes_per_second == 0;
  routes_ = std::make_unique<Routes>(topology_, scenario.transport, setup.routing, std::move(down));
}

std::vector<std::vector<int>> MessageWays::on(const TreeWires& wires, bool backwards) {
  std::map<LinkId, int> by_link;
  std::map<std::pair<NodeId, NodeId>, int> by_ends;
  for (std::size_t e = 0; e < wires.wires.edges.size(); ++e) {
    const Wires::Edge& edge = wires.wires.edges[e];
    const bool is_medium = wires.medium[e] >= 0;
    const NodeId a = wires.wires.vertices[static_cast<std::size_t>(edge.from)].node;
    const NodeId b = wires.wires.vertices[static_cast<std::size_t>(edge.to)].node;
    if (is_medium)
      by_ends[backwards ? std::pair(b, a) : std::pair(a, b)] = static_cast<int>(e);
    else
      by_link[edge.link] = static_cast<int>(e);
  }
  std::vector<std::vector<int>> ways;
  for (const NodeId from : ranks_)
    for (const NodeId to : ranks_) {
      // What goes up a tree takes the way from child to parent; the tree was planned from parent to child.
      const std::vector<LinkId>& links = backwards ? links_between(to, from) : links_between(from, to);
      std::vector<int> way;
      for (const LinkId link : links) {
        const Link& of = topology_.link(link);
        const auto found = by_link.find(link);
        const auto medium = by_ends.find({of.from, of.to});
        if (found != by_link.end())
          way.push_back(found->second);
        else if (medium != by_ends.end())
          way.push_back(medium->second);
      }
      if (way.size() != links.size()) way.clear();
      if (backwards) std::reverse(way.begin(), way.end());
      ways.push_back(std::move(way));
    }
  return ways;
}

const std::vector<LinkId>& MessageWays::links_between(NodeId from, NodeId to) {
  const auto [known, is_new] = known_.try_emplace({from, to});
  if (!is_new || from == to) return known->second;
  for (const Path& path : routes_->find_parts(from, to))
    for (const Leg& leg : path.legs) known->second.insert(known->second.end(), leg.links.begin(), leg.links.end());
  return known->second;
}

}  // namespace ringsim
