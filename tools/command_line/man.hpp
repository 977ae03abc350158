// Man pages.
#pragma once

#include <string>
#include <vector>

#include "tools/command_line/command.hpp"

namespace ringsim::tools {

/// "ringsim-topology-show"; of ringsim itself (null) "ringsim".
std::string man_name(const Command* command);

/// The page of section 1 as roff, for man(1). `command` null: of ringsim itself, with all commands.
std::string man_page(const std::vector<Command>& table, const Command* command);

}  // namespace ringsim::tools
