// Fabrics: what joins the machines of a cluster. One file a kind: fabric_star.cpp, fabric_leaf_spine.cpp...
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/topology.hpp"

namespace ringsim {

/// Every NIC on one non-blocking switch. Nodes: leaf0.
struct StarFabric {
  LinkSpec link;  ///< the cable from a NIC to the switch; the slower of NIC and cable binds
};

using Fabric = std::variant<StarFabric>;

/// A NIC that a fabric has to cable.
struct NicPort {
  NodeId nic;
  std::uint32_t host = 0;   ///< which machine, from 0
  std::uint32_t index = 0;  ///< which NIC of its machine, from 0: its rail
  LinkSpec port;            ///< what the NIC offers
};

/// NIC and cable in series, as one link: the slower rate binds, the times add up.
LinkSpec through_port(const LinkSpec& port, const LinkSpec& cable);

/// Adds the fabric's switches and cables to machines that stand already. `ports` are in the order of hosts, then of
/// their NICs. Throws InputError at a pointer within the fabric ("/link/bandwidth").
void add_fabric(const Fabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);

/// The fabric's kind, as scenarios write it: "star".
std::string_view kind_of(const Fabric& fabric);

}  // namespace ringsim
