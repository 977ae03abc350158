// A greedy schedule that counts latency, for a scenario's machine.
#pragma once

#include <optional>

#include "validate/analysis/message_ways.hpp"
#include "validate/analysis/turned.hpp"

namespace ringsim {

/// The fastest schedule of greedy_gather() with 1, 2, 4 and 8 pieces per block, for an all_gather, reduce_scatter or
/// all_reduce, on the ways that messages take. Nothing for another collective, more ranks than a search takes seconds
/// for, or ways that are not known.
std::optional<MadeSchedule> greedy_schedule(const CandidateTimes& times, const MachineBounds& machine,
                                            MessageWays& ways);

}  // namespace ringsim
