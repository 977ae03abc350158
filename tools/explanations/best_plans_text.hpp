// The fastest plans of a scenario, as text and as a picture.
#pragma once

#include <cstddef>
#include <string>

#include "validate/analysis/plan_search.hpp"

namespace ringsim::tools {

/// How many plans would have moved too many messages, and how many of their bounds lie below the fastest. Some have.
std::string too_long_text(const PlanSearch& found);

/// The plans with their steps, memory and three largest losses; what became of the other plans; how to run and explain
/// the first. `scenario`: the file, and the --set options of the command line, as a shell reads them.
std::string best_plans_text(const OpenPlans& plans, const PlanSearch& found, std::size_t top,
                            const std::string& scenario);

/// Their steps as bars, the fastest first, each divided into compute and what is not hidden by it: a picture of its own
/// (SVG). At most `top` of those that were simulated; empty if none was.
std::string best_plans_svg(const OpenPlans& plans, const PlanSearch& found, std::size_t top);

}  // namespace ringsim::tools
