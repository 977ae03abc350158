// What is known of predictions whose data between hosts rests in host memory.
#pragma once

#include <string>

#include "scenarios/predict/predict.hpp"

namespace ringsim::tools {

/// A sentence without a newline: how near such predictions are to measured times. Empty unless Prediction::staged.
std::string staged_text(const Prediction& prediction);

}  // namespace ringsim::tools
