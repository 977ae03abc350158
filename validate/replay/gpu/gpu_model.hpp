// How long a plan takes on a GPU of which nothing is known but what a probe measured: additions included, and what
// is issued at the same time served in turn, or sharing.
#pragma once

#include "sim/base/units.hpp"
#include "validate/replay/gpu/plan.hpp"
#include "validate/replay/gpu/probe.hpp"

namespace ringsim::replay::gpu {

/// What serves copies and additions: a GPU's memory those within it, each way between two places the copies on it, the
/// CPU its additions.
enum class Serving : std::uint8_t {
  in_turn,  ///< one after the other, in the order in which they may start, latency and all: a copy engine
  shared,   ///< those whose latency is over have equal shares of what all of them can do together, and none more than
            ///< it does alone, as a kernel of few blocks: kernels
};

/// `graph`, `copy_blocks`: as GpuOptions.
struct Played {
  Serving serving = Serving::in_turn;
  bool graph = true;
  int copy_blocks = 0;
};

/// From the first command to the last, as replay_plan() measures it. Events cost a copy or an addition that waits for
/// one what a hop costs beyond a node. A graph begins when it has been launched; call by call the host takes its time
/// for each command, and nothing begins before its call (that copies and additions take the host equally long is
/// assumed). Throws InputError if the probe lacks something that the plan does.
Picoseconds predict_plan(const Plan& plan, const std::vector<Place>& places, const Probe& probe, const Played& played);

/// What to_csv() wrote. Throws InputError naming `file` and line.
Probe read_probe(std::string_view text, const std::string& file);

}  // namespace ringsim::replay::gpu
