#include <algorithm>
#include <string>

#include "sim/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/node_preset.hpp"

namespace ringsim {

namespace {
NodePreset preset_of(const Cluster& spec) {
  require_positive(spec.nodes, "/nodes");
  try {
    return node_preset(spec.node);
  } catch (const InputError& error) {
    // A preset that is not found is the scenario's mistake; one that is broken says so itself.
    if (error.where().empty()) throw InputError("/node", error.message(), error.hint());
    throw;
  }
}

/// NIC and cable in series, as one link: the slower rate binds, the times add up.
LinkSpec through_port(const LinkSpec& port, const LinkSpec& cable) {
  LinkSpec joined = cable;
  joined.bandwidth = std::min(port.bandwidth, cable.bandwidth);
  joined.latency = add(port.latency, cable.latency);
  if (cable.kind == LinkKind::generic) joined.kind = port.kind;
  joined.source = (port.bandwidth < cable.bandwidth ? "the NIC's port binds: " : "the cable binds: ") + cable.source +
                  "; port: " + port.source;
  return joined;
}
}  // namespace

std::size_t n_ranks_of(const Cluster& spec) { return preset_of(spec).n_gpus() * static_cast<std::size_t>(spec.nodes); }

Topology build_cluster(const Cluster& spec) {
  const NodePreset preset = preset_of(spec);
  if (spec.nodes > 1) require_usable(spec.fabric, "/fabric/link");
  require_size(double{1} * spec.nodes * static_cast<double>(preset.devices.size()),
               double{1} * spec.nodes * static_cast<double>(preset.cables.size() + preset.devices.size()));

  TopologyBuilder builder;
  const auto n_devices = static_cast<std::uint32_t>(preset.devices.size());
  const auto n_nodes = static_cast<std::uint32_t>(spec.nodes);
  for (std::uint32_t host = 0; host < n_nodes; ++host) {
    const std::string prefix = "node" + std::to_string(host) + ".";
    const std::uint32_t first = host * n_devices;
    for (const NodePreset::Device& device : preset.devices) {
      const NodeId id = builder.add_node(prefix + device.name, device.kind, host);
      if (device.kind == NodeKind::gpu) builder.add_rank(id);
    }
    for (const NodePreset::Cable& cable : preset.cables) {
      builder.add_cable(NodeId{first + cable.from}, NodeId{first + cable.to}, cable.link);
    }
  }
  if (n_nodes == 1) return builder.build();

  const NodeId leaf = builder.add_node("leaf0", NodeKind::network_switch);
  for (std::uint32_t id = 0; id < leaf.value; ++id) {
    const auto& port = preset.devices[id % n_devices].port;
    if (port) builder.add_cable(NodeId{id}, leaf, through_port(*port, spec.fabric));
  }
  return builder.build();
}

}  // namespace ringsim
