// Lists of devices as people say them: "gpu0-7 x node0-2" instead of 24 names.
#pragma once

#include <string>

namespace ringsim {

/// `text`: any JSON. A list of names such as "node1.gpu3" or "gpu3" in fewer characters, in the same order; any other
/// text as it is. What stands first varies slowest: "node0-1 x gpu0-7" are gpu0 to gpu7 of node0, then those of node1;
/// "gpu0-7 x node0-1" are gpu0 of node0 and node1, then gpu1 of both. Parts in turn are separated by commas and a
/// space. The text tells lists of one scenario apart: different lists have different texts.
std::string names_in_short(const std::string& text);

}  // namespace ringsim
