// From the words that a user typed to a command and its exit code.
#pragma once

#include <string>
#include <vector>

#include "tools/command_line/command.hpp"

namespace ringsim::tools {

/// Runs the command that the words name (without the program's own name), and returns its exit code. What is wrong with
/// the words is said on stderr with the nearest right word and a usage line: exit code 2.
int run_command_line(const std::vector<Command>& table, const std::vector<std::string>& words);

}  // namespace ringsim::tools
