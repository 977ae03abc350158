// Schedules on devices that take time to add and copy, by the words of DeviceRates (sim/topology/topology.hpp): slow,
// short, and worked out from nothing at every step of time. Nothing is shared with the simulator but what it reads:
// topology and schedule.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::naive {

struct Devices {
  std::vector<std::optional<DeviceRates>> rates;  ///< [node]
  int channels = 1;                               ///< of each device; a message takes channel modulo their number
};

struct RanOnDevices {
  std::vector<SimTime> finish;  ///< [actor] when it ended its last step
  std::vector<Span> messages;   ///< in no particular order
};

/// Max-min fair shares, without a protocol: a message starts when both ends have begun their step. Time goes on in
/// steps of `step`; one that would pass a moment at which something happens ends there. What moves ends at a whole
/// picosecond, rounded up, so that times can be compared to the picosecond.
///
/// `topology` without rates of its own, where a cable joins each two devices, or one each device and a node "hub".
/// Actor a sits on placement[a]. Requires that the schedule comes to its end.
RanOnDevices simulate(const Topology& topology, const Devices& devices, const Schedule& schedule,
                      const std::vector<NodeId>& placement, Picoseconds step);

}  // namespace ringsim::naive
