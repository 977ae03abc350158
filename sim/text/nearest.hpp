// "Did you mean ...?": the right spelling nearest to a wrong one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringsim {

/// `did you mean "X"?` for the candidate with the fewest edits (of equals, the first); empty where none is near (more
/// than a third of the longer word's letters would change).
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace ringsim
