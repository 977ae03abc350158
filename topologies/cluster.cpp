#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"
#include "topologies/machines/device_words.hpp"

namespace ringsim {

Cluster cluster_of(const std::string& preset, int nodes, std::optional<Fabric> fabric) {
  return {{{std::make_shared<Machine>(node_preset(preset)), nodes}}, std::move(fabric), {}};
}

std::size_t n_ranks_of(const Cluster& spec) {
  std::size_t n = 0;
  for (const Cluster::Part& part : spec.parts) {
    require_positive(part.nodes, "/nodes");
    n += part.machine->n_gpus() * static_cast<std::size_t>(part.nodes);
  }
  return n;
}

Topology build_cluster(const Cluster& spec) {
  double n_devices = 0, n_cables = 0, n_hosts = 0;
  for (const Cluster::Part& part : spec.parts) {
    require_positive(part.nodes, "/nodes");
    n_hosts += part.nodes;
    n_devices += double{1} * part.nodes * static_cast<double>(part.machine->devices.size());
    n_cables += double{1} * part.nodes * static_cast<double>(part.machine->cables.size());
  }
  require_size(n_devices, n_cables + n_devices);

  TopologyBuilder builder;
  std::vector<NicPort> ports;
  std::uint32_t host = 0;
  for (const Cluster::Part& part : spec.parts) {
    for (int i = 0; i < part.nodes; ++i, ++host) {
      const std::string prefix = "node" + std::to_string(host) + ".";
      std::uint32_t first = 0, n_nics = 0;
      for (std::size_t d = 0; d < part.machine->devices.size(); ++d) {
        const Machine::Device& device = part.machine->devices[d];
        const NodeId id = builder.add_node(prefix + device.name, device.kind, host);
        if (d == 0) first = id.value;
        if (device.kind == NodeKind::gpu) builder.add_rank(id);
        if (device.memory.count > 0) builder.set_memory(id, device.memory);
        if (device.idle) builder.leave_idle(id);
        if (!has_gpudirect(device)) builder.deny_gpudirect(id);
        if (device.port) ports.push_back({id, host, n_nics++, *device.port});
      }
      for (const Machine::Cable& cable : part.machine->cables) {
        builder.add_cable(NodeId{first + cable.from}, NodeId{first + cable.to}, cable.link);
      }
      builder.describe_host(host, part.machine->host);
    }
  }
  if (n_hosts == 1) return builder.build();
  if (!spec.fabric) throw InputError("", "expected a fabric for more than one node, found none");
  try {
    const std::size_t first = builder.links().size();
    add_fabric(*spec.fabric, ports, builder);
    change_cables(spec.changes, ports, first, builder);
  } catch (const InputError& error) {
    throw InputError("/fabric" + error.where(), error.message(), error.hint());
  }
  return builder.build();
}

}  // namespace ringsim
