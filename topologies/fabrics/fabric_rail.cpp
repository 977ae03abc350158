#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

namespace {

/// Spines and what depends on them must be given together.
void check_joined(const RailFabric& fabric, std::size_t groups) {
  if (fabric.spines != 0) return;
  const std::string because = " where no spine joins the rails, found ";
  if (groups > 1) {
    throw InputError("/spines", fmt::format("expected at least 1 spine to join {} groups of nodes, found 0", groups),
                     fmt::format("with \"nodes_per_group\" {}, all nodes are in one group",
                                 groups * static_cast<std::size_t>(fabric.nodes_per_group)));
  }
  if (fabric.uplink) throw InputError("/uplink", "expected no uplink" + because + "one", "add \"spines\"");
  if (fabric.oversubscription != 1) {
    throw InputError("/oversubscription",
                     "expected no oversubscription" + because + std::to_string(fabric.oversubscription),
                     "add \"spines\"");
  }
}

}  // namespace

/// NIC i of every node of a group on the group's rail switch i; here 4 nodes of 2 NICs in groups of 2, 2 spines, 1:1:
///
///                   spine0  spine1                       each joined to all rail switches
///                        ....
///   group0.rail0  group0.rail1  group1.rail0  group1.rail1    C cables up from each, spread over the spines:
///      |    |        |    |        |    |        |    |       C = nodes_per_group * link / (oversubscription * uplink)
///     nic0 nic0     nic1 nic1     nic0 nic0     nic1 nic1
///    node0 node1   node0 node1   node2 node3   node2 node3    group g holds nodes g * nodes_per_group and on
///
/// A rail switch stands only if its group has a NIC of that number. Without spines the rails are not joined: GPUs
/// reach each other over the fabric only if their NICs are of one rail. Sources: NVIDIA DGX SuperPOD reference
/// architecture RA-11333-001 (rail-optimized leaves and spines); Wang, Ghobadi, Shakeri, Zhang, Hasani, Rail-only,
/// arXiv 2307.12169 (no spines).
void add(const RailFabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  require_positive(fabric.nodes_per_group, "/nodes_per_group");
  require_usable(fabric.link, "/link");
  const auto nodes_per_group = static_cast<std::uint32_t>(fabric.nodes_per_group);
  const std::size_t n_groups = (n_hosts(ports) - 1) / nodes_per_group + 1;
  const std::size_t rails = n_rails(ports);
  check_joined(fabric, n_groups);
  const LinkSpec up = trunk(fabric.uplink, fabric.link, "/uplink", ports);
  Uplinks uplinks;
  if (fabric.spines != 0) {
    uplinks = uplinks_of({"nodes_per_group", fabric.nodes_per_group, 1}, fabric.link, up, fabric.oversubscription,
                         fabric.spines);
  }
  require_size(static_cast<double>(n_groups * rails + uplinks.spines),
               static_cast<double>(n_groups * rails) * static_cast<double>(uplinks.spines * uplinks.per_spine));

  // Cabled rail by rail: counted in that order, the NICs below a rail switch have numbers in a row, and what goes to
  // them is spread over all cables up. Counted node by node they would be `rails` apart, and D-mod-k would use one
  // cable of as many.
  std::vector<NicPort> by_rail(ports.begin(), ports.end());
  std::stable_sort(by_rail.begin(), by_rail.end(),
                   [](const NicPort& a, const NicPort& b) { return a.index < b.index; });

  builder.break_ties(Ties::by_destination);
  std::vector<NodeId> switches(n_groups * rails, no_node);  // [group][rail]
  for (const NicPort& port : ports) {
    const std::uint32_t group = port.host / nodes_per_group;
    NodeId& rail = switches[group * rails + port.index];
    if (rail != no_node) continue;
    rail = builder.add_node(fmt::format("group{}.rail{}", group, port.index), NodeKind::network_switch);
  }
  for (const NicPort& port : by_rail) {
    builder.add_cable(port.nic, switches[port.host / nodes_per_group * rails + port.index],
                      through_port(port.port, fabric.link));
  }
  const std::vector<NodeId> spines = add_switches("spine", uplinks.spines, builder);
  for (const NodeId rail : switches) {
    if (rail != no_node) uplinks.add(rail, spines, up, builder);
  }
}

}  // namespace ringsim
