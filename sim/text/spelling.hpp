// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringsim {

/// The word of `known` nearest to `word`, or empty if none is near: at most a third of its letters (at least one)
/// wrong, missing, added or swapped; or `word` begins it, with at least three letters. Case and punctuation do not
/// count: "All-Reduce" is all_reduce.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

/// `did you mean "link"?`, or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

/// did_you_mean(); then, if the list is short, `known here: ...`.
std::string spelling_hint(std::string_view word, const std::vector<std::string>& known);

}  // namespace ringsim
