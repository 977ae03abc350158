// The fastest plans of a scenario, as text.
#pragma once

#include <string>

#include "validate/analysis/plan_search.hpp"

namespace ringsim::tools {

/// The plans with their steps, memory and three largest losses; what became of the other plans; how to run and explain
/// the first. `scenario`: the file, and the --set options of the command line, as a shell reads them.
/// How many plans would have moved too many messages, and how many of their bounds lie below the fastest. Some have.
std::string too_long_text(const PlanSearch& found);

std::string best_plans_text(const OpenPlans& plans, const PlanSearch& found, std::size_t top,
                            const std::string& scenario);

}  // namespace ringsim::tools
