// A lower bound of a plan's step: kernels, the pipeline, and collectives as far as nothing can hide them.
#pragma once

#include <functional>

#include "scenarios/scenario.hpp"
#include "sim/base/units.hpp"

namespace ringsim {

/// The time of a collective of a plan if nothing else ran: of all groups of a stage at once, of a tensor group by
/// itself. `bytes`: of a group.
using AloneTime = std::function<Picoseconds(PlanUse use, CollectiveOp op, Bytes bytes)>;

/// The step of a plan without its data groups' collectives: the recurrence of its pipeline (pipeline_period()) with the
/// kernels of each stage, the collectives between them, and one transfer from stage to stage.
///
/// With `data` also those, as stage 0 has them, whose passes end the pipeline, but with zero_bubble_h2, where all
/// stages take as long:
///
/// - reductions begin with the backward pass of the last micro-batch at the earliest, gathers end with the forward pass
///   of the first at the latest; without overlap all of them count;
/// - with optimizer_gradients every micro-batch waits for its reductions; with full all gathers and reductions, which
///   share a stream, take their turns.
///
/// A simulated step is not shorter, if (1) collectives that run at the same time do not speed each other up, (2) one
/// collective of all bytes takes no longer than those of its parts in turn, (3) the groups of all stages are placed
/// like those of stage 0. None of these is guaranteed: NCCL may choose another algorithm between two sizes, and stages
/// may be placed differently. So plans are ranked by simulated times, and the bound alone decides which ones need no
/// simulation.
Picoseconds plan_bound(const PlanTraining& plan, const AloneTime& alone, bool data);

}  // namespace ringsim
