// How much work a prediction will be, without making it.
#pragma once

#include <cstdint>

#include "scenarios/scenario.hpp"

namespace ringsim {

/// About how many messages the scenario has, or packets with the model `packet`: what its prediction takes is roughly
/// proportional to them. At least 1. Builds no topology and proves nothing, so it is for choices that a wrong estimate
/// cannot make wrong, such as which shard of a sweep takes a point. Equal scenarios have equal estimates everywhere.
///
/// Counted is what would be simulated one by one: ranks and calls that are simulated for others count as well. A
/// training step counts a schedule of all its gradients for each bucket; a plan and inference count their collectives
/// as rings; a trace counts its ranks.
std::int64_t expected_work(const Scenario& scenario);

}  // namespace ringsim
