#include <string>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"

namespace ringsim {

Topology build_star(const Star& spec) {
  require_positive(spec.ranks, "/ranks");
  require_usable(spec.link, "/link");
  if (spec.extra_ports < 0) throw InputError("", "expected 0 or more extra ports on a star");
  const double ports = double{1} * spec.ranks + spec.extra_ports;
  require_size(ports + 1, ports);

  TopologyBuilder builder;
  for (int r = 0; r < spec.ranks; ++r) builder.add_gpu("gpu" + std::to_string(r));
  for (int s = 0; s < spec.extra_ports; ++s) {
    builder.add_helper(builder.add_node("server" + std::to_string(s), NodeKind::cpu));
  }
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (std::uint32_t port = 0; port < hub.value; ++port) builder.add_cable(NodeId{port}, hub, spec.link);
  return builder.build();
}

}  // namespace ringsim
