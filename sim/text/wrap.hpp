// Long texts in short lines.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim {

/// No line of a table or a note is longer.
inline constexpr std::size_t text_width = 100;

/// How many characters a UTF-8 text has.
std::size_t characters(std::string_view text);

/// The text in lines of at most `width` characters, each but the first indented by `indent` blanks; newlines stay where
/// they are, and none is added at the end. Lines break at blanks; if the last one leaves less than half a line, after a
/// comma, or where the line ends. Requires width > indent + 1.
std::string wrapped(std::string_view text, std::size_t indent = 2, std::size_t width = text_width);

/// A name, and what it is; newlines in the latter stay.
struct Definition {
  std::string name, meaning;
};

/// The width of a column for the names: that of the longest which is not too long for one.
std::size_t width_of(const std::vector<Definition>& lines);

/// Two columns, indented by two blanks: names, `first` characters wide, and what they are, in lines of at most `width`.
/// A name that is too long stands on a line of its own. Ends with a newline.
std::string definitions(const std::vector<Definition>& lines, std::size_t first, std::size_t width = text_width);

}  // namespace ringsim
