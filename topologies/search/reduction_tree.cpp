#include "topologies/search/reduction_tree.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

namespace {

bool is_fabric_switch(const Topology& topology, NodeId id) {
  return topology.node(id).kind == NodeKind::network_switch && !topology.node(id).host;
}

bool leads(const Topology& topology, NodeId from, NodeId to) {
  const auto links = topology.links_from(from);
  return std::any_of(links.begin(), links.end(), [&](LinkId id) { return topology.link(id).to == to; });
}

/// The widest switch that every rank has a cable to.
std::optional<NodeId> common_switch(const Topology& topology, std::span<const NodeId> ranks) {
  std::optional<NodeId> best;
  Bandwidth widest;
  for (const LinkId id : topology.links_from(ranks.front())) {
    const Link& link = topology.link(id);
    const bool adds = topology.node(link.to).kind == NodeKind::nvswitch || is_fabric_switch(topology, link.to);
    if (!adds || (best && link.bandwidth <= widest)) continue;
    if (!std::all_of(ranks.begin(), ranks.end(),
                     [&](NodeId rank) { return leads(topology, rank, link.to) && leads(topology, link.to, rank); }))
      continue;
    best = link.to;
    widest = link.bandwidth;
  }
  return best;
}

[[noreturn]] void fail(const Topology& topology, NodeId a, NodeId b) {
  throw InputError("",
                   "in_switch: expected switches that connect all ranks, found none between " + topology.node(a).name +
                       " and " + topology.node(b).name,
                   "use a star, a machine with an NVSwitch, nodes on a fabric, or another algorithm");
}

/// Somebody on another host for each rank, the one of its own number there if there is one: over the NIC nearest to
/// it, so that rails stay apart. Without hosts, the next rank.
std::vector<NodeId> partners(const Topology& topology, std::span<const NodeId> ranks) {
  std::map<std::uint32_t, std::vector<NodeId>> of_host;
  for (const NodeId rank : ranks)
    if (const auto host = topology.node(rank).host) of_host[*host].push_back(rank);
  std::vector<NodeId> found;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto host = topology.node(ranks[i]).host;
    if (!host || of_host.size() == 1) {
      found.push_back(ranks[(i + 1) % ranks.size()]);
      continue;
    }
    const std::vector<NodeId>& here = of_host[*host];
    auto next = of_host.upper_bound(*host);
    if (next == of_host.end()) next = of_host.begin();
    const auto number = static_cast<std::size_t>(std::find(here.begin(), here.end(), ranks[i]) - here.begin());
    found.push_back(next->second[number % next->second.size()]);
  }
  return found;
}

/// The switch of the fabric that data from one to the other comes to first.
NodeId first_switch(const Topology& topology, Routes& routes, NodeId rank, NodeId other) {
  for (const Leg& leg : routes.find(rank, other).legs) {
    for (const LinkId id : leg.links) {
      const NodeId next = topology.link(id).to;
      if (is_fabric_switch(topology, next)) return next;
      if (topology.node(next).kind == NodeKind::gpu) fail(topology, rank, other);
    }
  }
  fail(topology, rank, other);
}

struct Reach {
  std::vector<int> hops;       // [node] from the root over switches; -1: out of reach
  std::vector<NodeId> parent;  // [node]
};

Reach reach_from(const Topology& topology, NodeId root) {
  Reach reach{std::vector<int>(topology.n_nodes(), -1), std::vector<NodeId>(topology.n_nodes(), no_node)};
  std::vector<NodeId> queue{root};
  reach.hops[root.value] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const LinkId id : topology.links_from(queue[i])) {
      const NodeId next = topology.link(id).to;
      if (!is_fabric_switch(topology, next) || reach.hops[next.value] >= 0 || !leads(topology, next, queue[i]))
        continue;
      reach.hops[next.value] = reach.hops[queue[i].value] + 1;
      reach.parent[next.value] = queue[i];
      queue.push_back(next);
    }
  }
  return reach;
}

int farthest(const Reach& reach, const std::vector<NodeId>& leaves) {
  int most = 0;
  for (const NodeId leaf : leaves) {
    if (reach.hops[leaf.value] < 0) return -1;
    most = std::max(most, reach.hops[leaf.value]);
  }
  return most;
}

std::optional<Reach> best_root(const Topology& topology, const std::vector<NodeId>& leaves) {
  std::optional<Reach> best;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    if (!is_fabric_switch(topology, {n})) continue;
    Reach reach = reach_from(topology, {n});
    const int most = farthest(reach, leaves);
    if (most >= 0 && (!best || most < farthest(*best, leaves))) best = std::move(reach);
    if (most == 0) break;
  }
  return best;
}

/// The tree of these parents, without switches of one child.
ReductionTree pruned(const Reach& reach, const std::vector<NodeId>& leaves) {
  std::map<NodeId, int> children;  // of switches that are needed
  for (const NodeId leaf : leaves) {
    bool is_new = ++children[leaf] == 1;
    for (NodeId at = leaf; is_new && reach.parent[at.value] != no_node; at = reach.parent[at.value])
      is_new = ++children[reach.parent[at.value]] == 1;
  }
  ReductionTree tree;
  std::map<NodeId, Actor> actor;
  for (const auto& [id, n] : children) {
    if (n < 2) continue;
    actor[id] = static_cast<Actor>(leaves.size() + tree.switches.size());
    tree.switches.push_back(id);
  }
  const auto up_from = [&](NodeId at) {  // the first that adds up, from there on
    while (at != no_node && !actor.contains(at)) at = reach.parent[at.value];
    return at == no_node ? Actor{-1} : actor[at];
  };
  for (const NodeId leaf : leaves) tree.parents.push_back(up_from(leaf));
  for (const NodeId id : tree.switches) tree.parents.push_back(up_from(reach.parent[id.value]));
  return tree;
}

}  // namespace

ReductionTree reduction_tree(const Topology& topology, std::span<const NodeId> ranks) {
  ensure(!ranks.empty(), "a reduction has ranks");
  if (const auto hub = common_switch(topology, ranks)) {
    ReductionTree tree{{*hub}, std::vector<Actor>(ranks.size(), static_cast<Actor>(ranks.size()))};
    tree.parents.push_back(-1);
    return tree;
  }
  if (ranks.size() == 1) fail(topology, ranks.front(), ranks.front());
  Routes routes(topology, {.pxn = false});
  std::vector<NodeId> leaves;
  const std::vector<NodeId> others = partners(topology, ranks);
  for (std::size_t i = 0; i < ranks.size(); ++i) leaves.push_back(first_switch(topology, routes, ranks[i], others[i]));
  const std::optional<Reach> reach = best_root(topology, leaves);
  if (!reach) fail(topology, ranks.front(), ranks.back());
  return pruned(*reach, leaves);
}

}  // namespace ringsim
