// The scorecard as text.
#pragma once

#include <span>
#include <string>

#include "validate/score/scorecard.hpp"

namespace ringsim::tools {

enum class ScorecardFormat { table, csv, markdown, limits, json };

/// Errors by sizes, by family and by table, what is not scored and why, and what is missing in the worst; csv: every
/// row with what each model says of it; limits: a file for check_limits(). Not json. `launch_given`: as of
/// ScoreOptions, with which the tables were scored; without it errors with and without the launches that the tables
/// give are shown next to each other.
std::string scorecard_text(std::span<const ScoredTable> tables, ScorecardFormat format, bool launch_given = false);

}  // namespace ringsim::tools
