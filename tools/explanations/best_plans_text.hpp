// The fastest plans of a scenario, as text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "validate/analysis/plan_search.hpp"

namespace ringsim::tools {

/// How many plans would have moved too many messages, and how many of their bounds lie below the fastest. Some have.
std::string too_long_text(const PlanSearch& found);

/// The plans with their steps, memory and three largest losses; what became of the other plans; how to run and explain
/// the first. `scenario`: the file, and the --set options of the command line, as a shell reads them.
std::string best_plans_text(const OpenPlans& plans, const PlanSearch& found, std::size_t top,
                            const std::string& scenario);

/// "tp 4, pp 8, vp 10, shard optimizer, dp 2": of each plan the keys in which they differ, unless it has 1 or none
/// there, and the data ranks.
std::vector<std::string> short_names(const OpenPlans& plans, const std::vector<const RankedPlan*>& drawn);

}  // namespace ringsim::tools
