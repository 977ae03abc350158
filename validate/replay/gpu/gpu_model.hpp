// How long a plan takes on a GPU of which nothing is known but what a probe measured: additions included, and what
// is issued at the same time served in turn, or sharing.
#pragma once

#include "sim/units.hpp"
#include "validate/replay/gpu/plan.hpp"
#include "validate/replay/gpu/probe.hpp"

namespace ringsim::replay::gpu {

/// What serves copies and additions: a GPU's memory those within it, each way between two places the copies on it, the
/// CPU its additions.
enum class Serving : std::uint8_t {
  in_turn,  ///< one after the other, in the order in which they may start, latency and all: a copy engine
  shared,   ///< those whose latency is over have equal shares of the rate: kernels
};

/// From the first command to the last, as replay_plan() measures a graph. `copy_blocks`: as GpuOptions. Events cost a
/// copy or an addition that waits for one what a hop costs beyond a node. Throws InputError where the probe has no line
/// for something that the plan does.
Picoseconds predict_plan(const Plan& plan, const std::vector<Place>& places, const Probe& probe, Serving serving,
                         int copy_blocks);

/// What to_csv() wrote. Throws InputError naming `file` and line.
Probe read_probe(std::string_view text, const std::string& file);

}  // namespace ringsim::replay::gpu
