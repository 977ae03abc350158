#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

namespace {

/// Global ports of a router: what is said, or the fewest with which a group reaches every other. Throws InputError
/// if they are too few.
std::uint32_t global_ports(const Dragonfly& fabric) {
  const auto others = static_cast<std::uint32_t>(fabric.groups) - 1;
  const auto routers = static_cast<std::uint32_t>(fabric.routers);
  const std::uint32_t fewest = (others + routers - 1) / routers;
  if (fabric.global_links == 0) return fewest;
  if (fabric.global_links < 0 || static_cast<std::uint32_t>(fabric.global_links) < fewest) {
    throw InputError(
        "/global_links",
        fmt::format(
            "expected at least {} per router, so that the {} routers of a group reach {} other groups, found {}",
            fewest, routers, others, fabric.global_links));
  }
  return static_cast<std::uint32_t>(fabric.global_links);
}

}  // namespace

/// g groups of a routers, p nodes a router, h global ports a router; here g = 3, a = 2, p = 1, h = 1:
///
///           node0            node1
///             |                |
///      group0.router0 - group0.router1          a (a - 1) / 2 local cables a group
///           |                  |               c = floor(a h / (g - 1)) global cables between every two groups,
///      group1.router1     group2.router0       g (g - 1) / 2 * c in all; ports that are left over stay empty
///           |                  |
///      group1.router0 --- group2.router1       largest: g = a h + 1, one cable a pair; balanced: a = 2 p = 2 h
///
/// Nodes fill routers in order, a node's NICs all on its router. Global port q of group i (router q / h) leads to
/// group i + q mod (g - 1) + 1, modulo g; the far end is the port that leads back: the palmtree arrangement, which
/// spreads the cables over routers in order (Camarero, Vallejo, Beivide, ACM TACO 11(4), 2014), once for each of the c.
/// Data takes minimal ways: local, global, local. Source: Kim, Dally, Scott, Abts, Technology-Driven, Highly-Scalable
/// Dragonfly Topology, ISCA 2008.
void add(const Dragonfly& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  require_positive(fabric.groups, "/groups");
  require_positive(fabric.routers, "/routers");
  require_positive(fabric.nodes_per_router, "/nodes_per_router");
  require_usable(fabric.link, "/link");
  const LinkSpec local = trunk(fabric.local, fabric.link, "/local", ports);
  const LinkSpec global = trunk(fabric.global, fabric.link, "/global", ports);
  const auto g = static_cast<std::uint32_t>(fabric.groups), a = static_cast<std::uint32_t>(fabric.routers);
  const auto p = static_cast<std::uint32_t>(fabric.nodes_per_router);
  const std::uint32_t h = global_ports(fabric);
  const std::uint64_t copies = g > 1 ? std::uint64_t{a} * h / (g - 1) : 0;
  const double n_routers = double{1} * g * a;
  require_size(n_routers, n_routers * (0.5 * a + 0.5 * h));
  if (n_routers * p < n_hosts(ports)) {
    throw InputError("/groups", fmt::format("expected room for {} nodes, found {} groups * {} routers * {} nodes = {}",
                                            n_hosts(ports), g, a, p, std::uint64_t{g} * a * p));
  }

  builder.break_ties(Ties::by_destination);
  std::vector<NodeId> routers;  // [group][router]
  for (std::uint32_t r = 0; r < g * a; ++r) {
    routers.push_back(builder.add_node(fmt::format("group{}.router{}", r / a, r % a), NodeKind::network_switch));
  }
  for (const NicPort& port : ports) {
    builder.add_cable(port.nic, routers[port.host / p], through_port(port.port, fabric.link));
  }
  for (std::uint32_t r = 0; r < g * a; ++r) {
    for (std::uint32_t other = r + 1; other < (r / a + 1) * a; ++other) {
      builder.add_cable(routers[r], routers[other], local);
    }
  }
  const auto router_of = [&](std::uint32_t group, std::uint64_t q) {
    return routers[std::uint64_t{group} * a + q / h];
  };
  for (std::uint64_t copy = 0; copy < copies; ++copy) {
    for (std::uint32_t i = 0; i < g; ++i) {
      for (std::uint32_t j = i + 1; j < g; ++j) {
        const std::uint64_t first = copy * (g - 1);  // port t of a copy leads t + 1 groups on
        builder.add_cable(router_of(i, first + (j - i - 1)), router_of(j, first + (g + i - j - 1)), global);
      }
    }
  }
}

}  // namespace ringsim
