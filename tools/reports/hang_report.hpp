// --report of `ringsim trace show` for PyTorch Flight Recorder dumps: why a job hangs, on a page.
#pragma once

#include <string>

#include "tools/explanations/hang_text.hpp"

namespace ringsim::tools {

/// The page (HTML): the first finding as its title, all findings, a grid of the ranks in the groups that stand still,
/// and the tables of hang_text(). At most 64 ranks and groups are drawn: those that the findings name, then ranks that
/// are behind, then the first others. `command`: what was typed.
std::string hang_page(const ShownHang& shown, const std::string& command);

}  // namespace ringsim::tools
