// Executes a schedule on real numbers, in one of the orders that are legal: what the checker proves, tried out.
#pragma once

#include <cstdint>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

enum class Outcome : std::uint8_t {
  right,  ///< every chunk that the collective promises holds the right number
  wrong,  ///< some does not
  stuck,  ///< some lane never came through, or a message was left over
};

/// Rendezvous; of all that may happen next (a step begins, a message moves, a copy, an add) `seed` chooses. Chunks
/// without content start with rubbish; a helper's memory and scratch with 0. Sums are modulo 2^64.
/// Requires that all peers, lanes and regions of the schedule exist.
Outcome interpret(const Schedule& schedule, std::uint64_t seed);

}  // namespace ringsim
