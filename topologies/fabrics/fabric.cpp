#include "topologies/fabrics/fabric.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

LinkSpec through_port(const LinkSpec& port, const LinkSpec& cable) {
  LinkSpec joined = cable;
  joined.bandwidth = std::min(port.bandwidth, cable.bandwidth);
  joined.latency = add(port.latency, cable.latency);
  if (cable.kind == LinkKind::generic) joined.kind = port.kind;
  joined.source = (port.bandwidth < cable.bandwidth ? "limited by the NIC's port: " : "limited by the cable: ") +
                  cable.source + "; port: " + port.source;
  return joined;
}

void add_fabric(const Fabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  if (ports.empty()) {
    throw InputError("", "expected machines with at least one NIC that can be cabled, found none",
                     "use machines whose NICs have a \"port\"");
  }
  std::visit([&](const auto& kind) { add(kind, ports, builder); }, fabric);
}

std::string_view kind_of(const Fabric& fabric) {
  constexpr std::string_view kinds[] = {"star", "leaf_spine", "fat_tree", "rail", "torus", "dragonfly"};
  static_assert(std::size(kinds) == std::variant_size_v<Fabric>);
  return kinds[fabric.index()];
}

std::uint32_t n_hosts(std::span<const NicPort> ports) {
  std::uint32_t most = 0;
  for (const NicPort& port : ports) most = std::max(most, port.host + 1);
  return most;
}

std::uint32_t n_rails(std::span<const NicPort> ports) {
  std::uint32_t most = 0;
  for (const NicPort& port : ports) most = std::max(most, port.index + 1);
  return most;
}

std::vector<NodeId> add_switches(const std::string& prefix, std::size_t count, TopologyBuilder& builder) {
  std::vector<NodeId> ids;
  for (std::size_t i = 0; i < count; ++i) {
    ids.push_back(builder.add_node(prefix + std::to_string(i), NodeKind::network_switch));
  }
  return ids;
}

LinkSpec trunk(const std::optional<LinkSpec>& said, const LinkSpec& link, const std::string& pointer,
               std::span<const NicPort> ports) {
  LinkSpec cable = said.value_or(link);
  require_usable(cable, pointer);
  if (cable.kind == LinkKind::generic) cable.kind = ports.front().port.kind;
  return cable;
}

}  // namespace ringsim
