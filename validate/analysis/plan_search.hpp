// The fastest of the plans that a scenario leaves open: those that fit are ranked by a bound and simulated best first.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "validate/analysis/open_plans.hpp"
#include "validate/results/result.hpp"

namespace ringsim {

struct PlanSearchOptions {
  std::size_t top = 10;  ///< plans that are asked for
  double within = 0.05;  ///< simulates plans whose bound is at most that much above the fastest
  bool simulate = true;  ///< false: none; plans have bounds alone
  /// Calls work(0) ... work(n - 1), several at a time; after one returned false no further one begins. What is found
  /// does not depend on how many.
  std::function<void(std::size_t n, const std::function<bool(std::size_t)>& work)> for_each;
  PredictOptions run;  ///< of each simulation. Plans that move more than most_messages keep their bounds
  /// Called with the name of a stage and the share of it that is done: 0 first, and 1 last. One call at a time.
  std::function<void(const std::string& stage, double done)> progress;
};

/// A plan that fits.
struct RankedPlan {
  std::size_t plan = 0;          ///< of the OpenPlans
  int data = 1;                  ///< data parallel ranks
  Bytes memory;                  ///< of the GPU that needs most
  Picoseconds bound{0};          ///< its step takes no less (plan_bound.hpp)
  std::optional<Result> result;  ///< if it was simulated
  std::int64_t messages = 0;     ///< not 0: it was not, because it would have moved so many

  Picoseconds least() const { return result ? result->prediction.time : bound; }
};

struct PlanSearch {
  std::size_t plans = 0;                                     ///< all that were looked at
  std::vector<std::pair<std::string, std::size_t>> refused;  ///< the reason, and how many: most first
  std::size_t too_large = 0;                                 ///< for the memory of some GPU
  Bytes least, room;            ///< if some are: what the smallest of these needs, and what its GPU has
  std::size_t collectives = 0;  ///< that were simulated by themselves
  /// Those that were simulated, by time, and, by bound, those that would have moved too many messages; then, as far as
  /// `top` reaches, the others, by bound.
  std::vector<RankedPlan> ranked;
  std::size_t simulated = 0, too_long = 0, not_simulated = 0;  ///< of those that fit
  std::optional<Picoseconds> others;                           ///< a lower bound of those not simulated
  /// If it was stopped after the first bounds, why: some of those not simulated may be faster than all that were.
  std::string interrupted;
};

/// All plans that fit are ranked by plan_bound(), first without data groups, then, as their turn comes, with them. The
/// best ones are simulated, some at a time, until the bound of the next is beyond `within` of the fastest, or beyond
/// `top` simulated plans. Throws InputError if all plans are refused; Interrupted if it
/// is stopped before all plans have their first bounds.
PlanSearch search_plans(const OpenPlans& plans, const PlanSearchOptions& options);

}  // namespace ringsim
