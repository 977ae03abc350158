// The least time of a collective of any size, because signals take time.
#pragma once

#include <span>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim {

/// The longest of the shortest ways from one of the devices `from` to one of the devices `to`, by latency, over the
/// links that count, [link]; empty: all. Any device may relay in no time. Throws InputError (without a place) if there
/// is no way. O(devices in `from` * links).
Picoseconds latency_floor(const Topology& topology, std::span<const NodeId> from, std::span<const NodeId> to,
                          const std::vector<bool>& used = {});

}  // namespace ringsim
