#include "topologies/fabric.hpp"

#include <algorithm>

#include "sim/error.hpp"
#include "topologies/fabrics.hpp"

namespace ringsim {

LinkSpec through_port(const LinkSpec& port, const LinkSpec& cable) {
  LinkSpec joined = cable;
  joined.bandwidth = std::min(port.bandwidth, cable.bandwidth);
  joined.latency = add(port.latency, cable.latency);
  if (cable.kind == LinkKind::generic) joined.kind = port.kind;
  joined.source = (port.bandwidth < cable.bandwidth ? "the NIC's port binds: " : "the cable binds: ") + cable.source +
                  "; port: " + port.source;
  return joined;
}

void add_fabric(const Fabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  std::visit([&](const auto& kind) { add(kind, ports, builder); }, fabric);
}

std::string_view kind_of(const Fabric& fabric) {
  constexpr std::string_view kinds[] = {"star"};
  static_assert(std::size(kinds) == std::variant_size_v<Fabric>);
  return kinds[fabric.index()];
}

}  // namespace ringsim
