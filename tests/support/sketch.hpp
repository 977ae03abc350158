// Topologies for tests of paths: nodes by their names.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "sim/topology.hpp"

namespace ringsim {

/// Nodes by the first letter of their names: g a gpu, m a memory, c a cpu, b a host bridge, p a PCIe switch, n a NIC, v
/// an NVSwitch, all else a switch of the network.
struct Sketch {
  TopologyBuilder builder;
  std::map<std::string, NodeId> ids;

  void cable(const std::string& a, const std::string& b, const LinkSpec& spec) {
    builder.add_cable(ids.at(a), ids.at(b), spec);
  }
  NodeId node(const std::string& name, std::optional<std::uint32_t> host = std::nullopt) {
    return ids[name] = add(name, host);
  }

 private:
  NodeId add(const std::string& name, std::optional<std::uint32_t> host) {
    switch (name[0]) {
      case 'g':
        return builder.add_gpu(name, host);
      case 'm':
        return builder.add_node(name, NodeKind::memory, host);
      case 'c':
        return builder.add_node(name, NodeKind::cpu, host);
      case 'p':
        return builder.add_node(name, NodeKind::pcie_switch, host);
      case 'n':
        return builder.add_node(name, NodeKind::nic, host);
      case 'v':
        return builder.add_node(name, NodeKind::nvswitch, host);
      case 'b':
        return builder.add_node(name, NodeKind::host_bridge, host);
      default:
        return builder.add_node(name, NodeKind::network_switch, host);
    }
  }
};

}  // namespace ringsim
