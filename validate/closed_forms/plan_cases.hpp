// The plans on which simulation is held against their closed forms: what `ringsim check` runs next to its grid.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim {

/// Both numbers of a case: picoseconds or bytes.
struct PlanNumbers {
  std::string formula;
  std::int64_t form = 0, simulated = 0;  ///< of several that differ, such as of ranks, the first that does
  bool holds = true;                     ///< the form's assumptions hold
};

struct PlanCase {
  enum class Quantity : std::uint8_t { time, sent, memory };

  Quantity quantity = Quantity::time;
  std::string plan;   ///< a row of the table: "1f1b", "tensor"
  std::string where;  ///< "p 4, m 8, link latency 1 us"
  std::function<PlanNumbers()> run;
};
std::string_view to_string(PlanCase::Quantity quantity);  ///< "step", "bytes sent", "memory"

/// All cases, each exact.
///
/// Steps of small plans on a star, `ideal` and `fair`: pipelines of 1 to 8 stages and 1 to 12 micro-batches with and
/// without hops, layers that are sharded fully in three ways, layers whose reductions overlap, and attention by a ring
/// of context ranks, for calls that are shorter and longer than passes. Bytes that each rank of a transformer sends:
/// tensor, sequence, pipeline, data, context and expert parallelism, shards, recomputation, alone and together; the
/// first rank, the last and the sum. Memory of each stage of a transformer likewise, and of the four models of
/// Korthikanti et al. (arXiv 2205.05198).
std::vector<PlanCase> plan_cases();

}  // namespace ringsim
