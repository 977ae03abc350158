// The exchanges of a plan's ranks and their sizes: parts of its program (plan_program.hpp).
#pragma once

#include <cstdint>

#include "algorithms/training/plan_program.hpp"

namespace ringsim::plan_detail {

/// True if first and last stage share an embedding.
bool is_tied(const PlanSpec& spec);
/// True if the bucket has that embedding.
bool has_tied(const PlanSpec& spec, int stage, int chunk, const PlanBucket& bucket);
/// With that embedding.
std::int64_t parameters_of(const PlanSpec& spec, int stage, int chunk, const PlanBucket& bucket);
/// True if data ranks update parts.
bool shards(const PlanSpec& spec);
PlanExchange reduce_of(const PlanSpec& spec, int stage, std::int64_t parameters);
PlanExchange gather_of(const PlanSpec& spec, int stage, std::int64_t parameters);

}  // namespace ringsim::plan_detail
