// Bytes of optimizers.
#pragma once

#include <string>

namespace ringsim {

/// Bytes per parameter of an optimizer's moments, in fp32: sgd none, momentum one number, adam two (Rajbhandari et al.,
/// ZeRO, SC 2020, section 3.1).
int moment_bytes(const std::string& name);

/// Bytes per parameter that the optimizer keeps and moves.
struct OptimizerBytes {
  int state = 0;  ///< kept: moments in fp32, and with weights of 2 bytes a copy in fp32
  int moved = 0;  ///< read and written by an update
};
/// `name`: sgd, momentum or adam.
OptimizerBytes optimizer_bytes(const std::string& name, int weight_bytes, int gradient_bytes);

}  // namespace ringsim
