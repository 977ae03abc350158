#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

void add(const StarFabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  require_usable(fabric.link, "/link");
  builder.break_ties(Ties::by_destination);
  const NodeId leaf = builder.add_node("leaf0", NodeKind::network_switch);
  for (const NicPort& port : ports) builder.add_cable(port.nic, leaf, through_port(port.port, fabric.link));
}

}  // namespace ringsim
