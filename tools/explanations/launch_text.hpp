// Sentences of `ringsim compare` about the launch: its share of the smallest prediction, and what a table gave.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "validate/score/given_launch.hpp"

namespace ringsim::tools {

/// "Launch is 8.00 of 12.35 us at 8 B: a fact of ..."; empty if it is less than a twentieth of that time. `smallest`:
/// the prediction of least bytes; `text`, `name` and `set`: of its scenario.
std::string launch_share_text(const Prediction& smallest, const std::string& text, const std::string& name,
                              const std::vector<std::string>& set);

/// "Launch is 10.20 us instead of 8.00 (devices.gpu.launch), the median of what fits 8 B, 16 B and 32 B of FILE."
std::string given_launch_text(const GivenLaunch& given, const std::string& file);

}  // namespace ringsim::tools
