#include "sim/base/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

/// Racks of nodes on leaves, leaves on spines; here 2 nodes of 2 NICs a leaf, 2:1, so 2 cables up:
///
///       spine0      spine1            C spines, or fewer with parallel cables
///        |   \     /   |
///        |    \   /    |              C = nodes_per_leaf * NICs * link / (oversubscription * uplink) cables a leaf
///        |     \ /     |
///       leaf0       leaf1             ceil(nodes / nodes_per_leaf) leaves
///      // \\        // \\             all NICs of a node on its leaf
///    node0 node1  node2 node3         leaf l holds nodes l * nodes_per_leaf and on
///
/// NICs are counted for a rack full of the nodes with the most of them, so that all leaves are alike; the last one may
/// hold fewer nodes. Source: the folded Clos network of two levels (C. Clos, Bell System Technical Journal 32, 1953);
/// as racks of Ethernet, Al-Fares, Loukissas, Vahdat, SIGCOMM 2008, section 2.
void add(const LeafSpine& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  require_usable(fabric.link, "/link");
  const LinkSpec up = trunk(fabric.uplink, fabric.link, "/uplink", ports);
  const Uplinks uplinks = uplinks_of({"nodes_per_leaf", fabric.nodes_per_leaf, n_rails(ports)}, fabric.link, up,
                                     fabric.oversubscription, fabric.spines);
  const auto nodes_per_leaf = static_cast<std::uint32_t>(fabric.nodes_per_leaf);
  const std::size_t n_leaves = (n_hosts(ports) - 1) / nodes_per_leaf + 1;
  const auto n_uplinks = static_cast<double>(uplinks.spines * uplinks.per_spine);
  require_size(static_cast<double>(uplinks.spines), static_cast<double>(n_leaves) * n_uplinks);

  builder.break_ties(Ties::by_destination);
  const std::vector<NodeId> leaves = add_switches("leaf", n_leaves, builder);
  const std::vector<NodeId> spines = add_switches("spine", uplinks.spines, builder);
  for (const NicPort& port : ports) {
    builder.add_cable(port.nic, leaves[port.host / nodes_per_leaf], through_port(port.port, fabric.link));
  }
  for (const NodeId leaf : leaves) uplinks.add(leaf, spines, up, builder);
}

}  // namespace ringsim
