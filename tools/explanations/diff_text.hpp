// Two runs next to each other, as text to read and as JSON.
#pragma once

#include <string>

#include "validate/analysis/difference.hpp"

namespace ringsim::tools {

/// How long both take.
std::string diff_sentence(const ExplainedRun& a, const ExplainedRun& b);
/// What differs in the input and in the output, and where the difference comes from.
std::string diff_tables(const ExplainedRun& a, const ExplainedRun& b);
/// Both.
std::string diff_text(const ExplainedRun& a, const ExplainedRun& b);
std::string diff_json(const ExplainedRun& a, const ExplainedRun& b);

}  // namespace ringsim::tools
