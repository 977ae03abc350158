// Small plans of equal layers, whose steps have closed forms.
#pragma once

#include "algorithms/training/plan_program.hpp"

namespace ringsim {

/// Rings for collectives; direct: a broadcast for what stages hand on, and all_to_alls.
PlanCall small_plan_call(const PlanSpec& spec, const PlanExchange& exchange);
PlanProgram small_plan_program(const PlanSpec& spec);

/// Each chunk has `layers` layers of 1,000 parameters, which take 3 and 5 us per micro-batch together; with tensor > 1
/// each layer has an all-reduce of `bytes` in either pass. If weights have passes of their own, the backward pass takes
/// 3 us and these 2. Stages hand on 1,000 B. Updates take no time.
PlanSpec small_plan(int tensor, int pipeline, int data, const PipelineShape& shape, int layers = 1,
                    Bytes bytes = Bytes{4'096});

/// Attention by a ring of so many context ranks after the kernels that a layer has in either pass: n steps of `forward`
/// and of `backward`, sums of `sum`, hops of a block of keys and values. No recomputation.
void add_small_ring(PlanLayer& layer, int ranks, Bytes block, Picoseconds forward, Picoseconds backward,
                    Picoseconds sum);
/// The times of a micro-batch's kernels in a plan of one stage, those of rings left out.
Picoseconds small_plan_passes(const PlanSpec& spec);

}  // namespace ringsim
