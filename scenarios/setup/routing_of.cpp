// The routing of a scenario, with the nodes of its topology in place of their names.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/setup/blaming.hpp"
#include "scenarios/setup/setup.hpp"

namespace ringsim {

namespace {

NodeId node_named(const Topology& topology, const std::string& name, const std::string& pointer) {
  const auto node = topology.find(name);
  if (node) return *node;
  throw InputError(pointer, fmt::format("expected the name of a node in the topology, found \"{}\"", name),
                   "`ringsim topology show` lists the nodes");
}

Routing routing_in(const Topology& topology, const RoutingSpec& spec) {
  Routing routing{.policy = spec.policy, .seed = spec.seed, .table = {}};
  for (std::size_t i = 0; i < spec.table.size(); ++i) {
    const auto& [at, to, via] = spec.table[i];
    const std::string where = fmt::format("/table/{}", i);
    const NodeId here = node_named(topology, at, where + "/at"), next = node_named(topology, via, where + "/via");
    if (topology.node(here).host && topology.node(here).kind != NodeKind::nic)
      throw InputError(where + "/at", fmt::format("expected a switch of the fabric, or a NIC, found \"{}\"", at),
                       "there are no routing tables within a host");
    const auto leads = [&](LinkId id) { return topology.link(id).to == next; };
    const auto links = topology.links_from(here);
    if (std::none_of(links.begin(), links.end(), leads))
      throw InputError(where + "/via", fmt::format("expected a neighbor of {}, found \"{}\"", at, via));
    for (std::size_t other = 0; other < i; ++other)
      if (spec.table[other].at == at && spec.table[other].to == to)
        throw InputError(where, fmt::format("expected one entry at {} for {}, found another", at, to),
                         fmt::format("the first is /network/table/{}; remove one", other));
    if (topology.node(next).kind == NodeKind::nic && via != to)
      throw InputError(where + "/via", fmt::format("expected a switch, found the NIC \"{}\"", via),
                       "a NIC does not forward data");
    if (to == "*") {
      routing.table.push_back({here, no_node, next});
      continue;
    }
    const std::size_t before = routing.table.size();
    for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
      const Node& node = topology.node({n});
      const bool of_host = node.kind == NodeKind::nic && node.name.starts_with(to + ".");
      if (node.name == to || of_host) routing.table.push_back({here, {n}, next});
    }
    if (routing.table.size() == before) node_named(topology, to, where + "/to");
    if (const auto found = topology.find(to);
        found && !topology.hosts().empty() && topology.node(*found).kind != NodeKind::nic)
      throw InputError(where + "/to", fmt::format("expected a NIC, a node or \"*\", found \"{}\"", to),
                       "only NICs are destinations in the fabric");
  }
  return routing;
}

}  // namespace

Routing routing_of(const Topology& topology, const Scenario& scenario) {
  return blaming(scenario, "/network", [&] { return routing_in(topology, scenario.routing); });
}

}  // namespace ringsim
