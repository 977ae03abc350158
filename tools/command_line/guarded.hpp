// How a command ended: every exception becomes a message and an exit code.
#pragma once

#include <functional>
#include <string>

namespace ringsim::tools {

struct Ending {
  int code;
  std::string said;  ///< for stderr; empty if nothing was thrown
};
Ending ending_of(const std::function<int()>& command);

}  // namespace ringsim::tools
