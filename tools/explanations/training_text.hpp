// Published figures of training next to predictions, as text.
#pragma once

#include <string>

#include "tools/explanations/scorecard_text.hpp"
#include "validate/score/training_score.hpp"

namespace ringsim::tools {

/// Errors by family, every row, what is missing in those that are off, and what is not mapped; csv: the rows; json: all
/// of it. `map`: what was assumed, for markdown.
std::string training_text(const TrainingScore& score, const TrainingMap& map, ScorecardFormat format);

}  // namespace ringsim::tools
