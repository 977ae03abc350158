// Topologies for tests of paths: nodes by their names.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sim/topology/topology.hpp"

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

/// Two leaves with four ports each, g0 - n0 ... g3 - n3 on leaf0 and g4 - n4 ... g7 - n7 on leaf1, each GPU on its own
/// host; spine0 ... joined to both leaves.
inline Sketch two_leaves(int n_spines, const LinkSpec& inside, const LinkSpec& cable) {
  Sketch s;
  s.node("leaf0");
  s.node("leaf1");
  for (int i = 0; i < 8; ++i) {
    const std::string number = std::to_string(i);
    s.node("g" + number, static_cast<std::uint32_t>(i));
    s.node("n" + number, static_cast<std::uint32_t>(i));
    s.cable("g" + number, "n" + number, inside);
    s.cable("n" + number, i < 4 ? "leaf0" : "leaf1", cable);
  }
  for (int i = 0; i < n_spines; ++i) {
    const std::string spine = "spine" + std::to_string(i);
    s.node(spine);
    s.cable("leaf0", spine, cable);
    s.cable("leaf1", spine, cable);
  }
  return s;
}

}  // namespace ringsim
