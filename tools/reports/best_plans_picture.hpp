// The fastest plans of a scenario as a picture.
#pragma once

#include <cstddef>
#include <string>

#include "validate/analysis/plan_search.hpp"

namespace ringsim::tools {

/// The steps of plans as bars, the fastest first, each divided into compute and what is not hidden by it: a picture of
/// its own (SVG). At most `top` of those that were simulated; empty if none was.
std::string best_plans_svg(const OpenPlans& plans, const PlanSearch& found, std::size_t top);

}  // namespace ringsim::tools
