// What `ringsim help` prints.
#pragma once

#include <string>
#include <vector>

#include "tools/command_line/command.hpp"

namespace ringsim::tools {

/// The command line to begin with.
inline constexpr const char* first_example = "ringsim run scenarios/two-dgx-a100.json";

/// "usage: ringsim run SCENARIO [OPTIONS]", a line. `command` null: of ringsim itself.
std::string usage_of(const std::vector<Command>& table, const Command* command);

/// All commands under their headings. `color`: headings are bold.
std::string help_of_all(const std::vector<Command>& table, bool color);

/// One command: its arguments and options, or the commands below it, and an example.
std::string help_of(const std::vector<Command>& table, const Command& command, bool color);

/// What follows the name in a usage line: "SCENARIO [OPTIONS]".
std::string takes_of(const std::vector<Command>& table, const Command& command);

/// "-o, --output FILE".
std::string spelling_of(const Option& option);
/// Its help with its choices and its default: "format of the results (default: table)".
std::string meaning_of(const Option& option);

}  // namespace ringsim::tools
