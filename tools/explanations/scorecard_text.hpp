// The scorecard as text.
#pragma once

#include <span>
#include <string>

#include "validate/score/scorecard.hpp"

namespace ringsim::tools {

enum class ScorecardFormat { table, csv, markdown, limits, json };

/// Errors by sizes, by family and by table, what is not scored and why, and what is missing in the worst; csv: every
/// row with what each model says of it; limits: a file for check_limits(). Not json.
std::string scorecard_text(std::span<const ScoredTable> tables, ScorecardFormat format);

}  // namespace ringsim::tools
