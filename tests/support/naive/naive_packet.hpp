// Packets, links and buffers as plainly as can be: nothing is scheduled; at every instant at which something may happen
// everything is looked at again.
#pragma once

#include <optional>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::naive {

struct PacketFlow {
  SimTime start{};
  std::vector<LinkId> links;  ///< a chain
  Bytes size;                 ///< at least 1
};

struct PacketResult {
  std::vector<std::optional<SimTime>> finish;  ///< [flow] when its last byte is there; nothing if all stand still
  int blocked = 0;                             ///< how often a link was free and had a packet, but no leave to send it
};

/// The rules of sim/network/network_packet.hpp for chains whose bytes cost one each. Needs options.buffer.
PacketResult simulate(const Topology& topology, const PacketOptions& options, const std::vector<PacketFlow>& flows);

}  // namespace ringsim::naive
