// Two runs next to each other, as text to read and as JSON.
#pragma once

#include <string>

#include "validate/score/difference.hpp"

namespace ringsim::tools {

std::string diff_text(const ExplainedRun& a, const ExplainedRun& b);
std::string diff_json(const ExplainedRun& a, const ExplainedRun& b);

}  // namespace ringsim::tools
