// --report of `ringsim trace show` for dumps of PyTorch's Flight Recorder: why a job hangs, on a page.
#pragma once

#include <string>

#include "tools/explanations/hang_text.hpp"

namespace ringsim::tools {

/// The page (HTML): the first finding as its title, all findings, a grid of the ranks in the groups that stand still,
/// and the tables of hang_text(). Of more than 64 ranks those are drawn that differ from most of their group, then the
/// first others. `command`: what was typed.
std::string hang_page(const ShownHang& shown, const std::string& command);

}  // namespace ringsim::tools
