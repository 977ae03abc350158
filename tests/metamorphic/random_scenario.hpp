// Random scenarios of every kind, small enough that one takes about a millisecond.
#pragma once

#include <cstdint>

#include "sim/text/json.hpp"
#include "tests/support/draw.hpp"

namespace ringsim::metamorphic {

using test::Draw;

/// Of this many bytes every cut into up to 9 ranks, 4 channels and a few segments is even: 2^7 * 9 * 5 * 7 * 3.
inline constexpr std::int64_t even_bytes = 120'960;

/// A scenario as a user could write it. Some are refused: an algorithm cannot serve every number of ranks.
Json random_scenario(Draw& draw);

/// Parts of it.
Json random_link(Draw& draw);                                  ///< {"bandwidth": ..., "latency": ...}
Json random_collective(Draw& draw, int ranks);                 ///< without `ranks`
Json star_of(Draw& draw, int ranks);                           ///< a topology
Json random_layers(Draw& draw, std::int64_t most_parameters);  ///< of `training.workload`

}  // namespace ringsim::metamorphic
