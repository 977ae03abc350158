// Completion of commands, options and values in shells.
#pragma once

#include <string>
#include <vector>

#include "tools/command_line/command.hpp"

namespace ringsim::tools {

enum class Shell { bash, zsh, fish };

/// The script that a shell reads.
std::string completion_script(const std::vector<Command>& table, Shell shell);

}  // namespace ringsim::tools
