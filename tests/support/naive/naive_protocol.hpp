// A schedule under a protocol, by the words of sim/run/protocol.hpp: slow, short, and looked at from nothing at every
// instant.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/run/protocol.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::naive {

struct Ran {
  bool stalled = false;         ///< all wait for each other; the times are then those until there
  std::vector<SimTime> finish;  ///< [actor] when it ended its last step
  std::vector<Span> messages;   ///< that have arrived, sorted by span_key
};
/// In an order that does not depend on what happened first.
inline auto span_key(const Span& span) {
  return std::tuple(span.from, span.to, span.channel, span.start, span.finish, span.bytes);
}

/// Ideal or fair. Rank r sits on gpu r; every path has one leg. Parts of a message end at whole picoseconds, rounded
/// up.
Ran simulate(const Topology& topology, NetworkModel model, const Schedule& schedule, const Protocol& protocol);

}  // namespace ringsim::naive
