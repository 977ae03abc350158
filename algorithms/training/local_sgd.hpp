// Local SGD: every GPU trains by itself for some steps; then all average their weights.
#pragma once

#include <optional>

#include "algorithms/training/ddp.hpp"

namespace ringsim {

/// A round: `every` steps of each GPU with its own weights and a batch of its own, then an all-reduce that averages the
/// weights. One iteration of the program is one round; `step.steps` counts rounds. Without an average: one GPU.
///
/// Sent per rank and round: what the all-reduce sends for the weights.
/// Closed form, if an all-reduce begins and ends at all ranks at once: a round takes max_r sum_i C(r,i) + T, with C
/// of step i at rank r and T of the all-reduce; with equal times every C + T. Source: Stich, Local SGD Converges Fast
/// and Communicates Little, ICLR 2019.
Program local_sgd_program(const TrainingStep& step, int every, const std::optional<CheckedSchedule>& average,
                          WatchedWork* work = nullptr);

/// That form of a round, with the host's launches; `average`: with its launch, 0 of one GPU.
Picoseconds local_sgd_round_time(const TrainingStep& step, int every, Picoseconds average);

}  // namespace ringsim
