// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringsim::scenarios {

/// The word of `known` nearest to `word`, or empty where none is near: letters wrong, missing, added or swapped, at
/// most a third of the word (at least one). Case and punctuation do not count: "All-Reduce" is all_reduce.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// `did you mean "link"?`, or empty; then, where the list is short, `known here: ...`.
std::string spelling_hint(std::string_view word, const std::vector<std::string>& known);

}  // namespace ringsim::scenarios
