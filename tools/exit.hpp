// How a command ends.
#pragma once

#include "sim/base/error.hpp"

namespace ringsim::tools {

/// Exit codes, the same for every command.
enum Exit : int {
  good = 0,
  check_failed = 1,
  bad_command_line = 2,
  bad_input = 3,
  broken = 4,
  lacking = 5,
  interrupted = 130
};

/// A mistake on the command line (exit code 2). `where` is the option, or empty.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace ringsim::tools
