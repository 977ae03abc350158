// Whatever a command throws, as what is said about it and an exit code.
#pragma once

#include <functional>
#include <string>

namespace ringsim::tools {

struct Ending {
  int code;
  std::string said;  ///< for stderr; empty where nothing was thrown
};
Ending ending_of(const std::function<int()>& command);

/// Says it, and returns the code.
int guarded(const std::function<int()>& command);

}  // namespace ringsim::tools
