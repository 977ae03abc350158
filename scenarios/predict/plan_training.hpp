// The parts of a plan's run that TrainingRun puts together.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace ringsim {

/// The number of times that one rank of its groups makes an exchange in a step.
std::int64_t uses_of(const PlanTraining& plan, const PlanExchange& exchange);

/// Time that a GPU computes in a step: the mean over all ranks, without any communication.
Picoseconds plan_compute_time(const PlanTraining& plan);

/// The GPU that lacks most memory for its rank of a plan.
struct LackOfMemory {
  Actor rank = -1;  ///< -1: all have enough, or it is not known what they have
  Bytes needs, has;
};
LackOfMemory lack_of_memory(const TrainingSpec& spec, const std::vector<NodeId>& ranks, const Topology& topology);

/// "rank 0 (node0.gpu0, stage 0) needs 91.4 of 85.9 GB: weights 10.0 ..." and what would need less. `has`: its memory.
std::string plan_needs(const TrainingSpec& spec, const std::vector<NodeId>& ranks, const Topology& topology, Actor rank,
                       Bytes has);

}  // namespace ringsim
