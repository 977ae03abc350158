// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim {

/// Says if a number in a name may be a misspelling. In names of machines and models it tells one from another: dgx-h100
/// is no misspelt dgx-a100, and llama3_7b no misspelt llama2_7b.
enum class Numbers : std::uint8_t { any, exact };

/// The word of `known` nearest to `word`, or empty if none is near: at most a third of its letters (at least one)
/// wrong, missing, added or swapped; or `word` begins it, with at least three letters. Case and punctuation do not
/// count: "All-Reduce" is all_reduce. With Numbers::exact the numbers are the same and the letters before them, and
/// from two digits on also the letters after them; one digit may stand on the other side of its letter.
std::string nearest(std::string_view word, const std::vector<std::string>& known, Numbers numbers = Numbers::any);

/// True if two names are the same but for capitals and punctuation.
bool same_letters(std::string_view a, std::string_view b);

/// `did you mean "link"?`, or empty.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known, Numbers numbers = Numbers::any);

/// did_you_mean(); then, if the list is short, `known here: ...`.
std::string spelling_hint(std::string_view word, const std::vector<std::string>& known);

}  // namespace ringsim
