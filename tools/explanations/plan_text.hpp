// Measured plans next to predictions, as text.
#pragma once

#include <string>

#include "sim/text/json.hpp"
#include "tools/explanations/scorecard_text.hpp"
#include "validate/score/plan_score.hpp"

namespace ringsim::tools {

/// Errors by source, sets of plans, every row, and which rows are left out for which reason; csv and json: each row,
/// scored or not.
std::string plan_text(const PlanScore& score, ScorecardFormat format);
Json plan_json(const PlanScore& score);

}  // namespace ringsim::tools
