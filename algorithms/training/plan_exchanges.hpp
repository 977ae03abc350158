// The exchanges of a plan's ranks and their sizes: parts of its program (plan_program.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/training/plan_program.hpp"

namespace ringsim::plan_detail {

/// True if first and last stage share an embedding.
bool is_tied(const PlanSpec& spec);
/// True if the bucket has that embedding.
bool has_tied(const PlanSpec& spec, int stage, int chunk, const PlanBucket& bucket);
/// True if a pass of a layer has attention by a ring; if some pass has.
bool has_ring(const std::vector<PlanKernel>& pass);
bool has_rings(const PlanSpec& spec);
/// With that embedding.
std::int64_t parameters_of(const PlanSpec& spec, int stage, int chunk, const PlanBucket& bucket);
/// True if data ranks update parts.
bool updates_parts(const PlanSpec& spec);
/// True if all that data ranks have is parts; if groups of them have replicas of each other's.
bool is_full(const PlanSpec& spec);
bool is_hybrid(const PlanSpec& spec);
/// True if the gradients of each micro-batch are reduced, else their sum.
bool reduces_each(const PlanSpec& spec);
/// The number of data ranks that have different parts.
int shard_ranks(const PlanSpec& spec);
/// True if the embedding stays gathered until the head has used it.
bool keeps_embedding(const PlanSpec& spec);
/// The number of ranks that reduce the gradients of such buckets: of experts or of all else.
int reducing_ranks(const PlanSpec& spec, bool experts);
/// True if its ranks reduce gradients; if each of them then updates a part.
bool is_reduced(const PlanSpec& spec, const PlanBucket& bucket);
bool updates_parts(const PlanSpec& spec, const PlanBucket& bucket);
PlanExchange reduce_of(const PlanSpec& spec, int stage, std::int64_t parameters, bool experts = false);
PlanExchange gather_of(const PlanSpec& spec, int stage, std::int64_t parameters, bool experts = false);
/// The all_gather by which the tensor ranks of a stage put together activations, or their gradients, that were sent in
/// parts.
PlanExchange gather_of_cut(const PlanSpec& spec, int stage);
/// The sum of a reduced part over the ranks that keep the same part.
PlanExchange replica_sum_of(const PlanSpec& spec, int stage, std::int64_t parameters);

}  // namespace ringsim::plan_detail
