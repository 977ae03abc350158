#include "algorithms/training/optimizer.hpp"

namespace ringsim {

int moment_bytes(const std::string& name) { return name == "adam" ? 8 : name == "momentum" ? 4 : 0; }

OptimizerBytes optimizer_bytes(const std::string& name, int weight_bytes, int gradient_bytes) {
  const int moments = moment_bytes(name);
  const bool has_copy = weight_bytes < 4;
  return {.state = moments + (has_copy ? 4 : 0),
          .moved = gradient_bytes + 2 * moments + 8 + (has_copy ? weight_bytes : 0)};
}

}  // namespace ringsim
