// Text that is UTF-8, or is not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringsim {

/// The byte at which UTF-8 breaks, or npos.
std::size_t first_not_utf8(std::string_view text);

/// At most so many bytes from its beginning, and no part of a character.
std::string beginning_of(const std::string& text, std::size_t most);

/// The text with a question mark for each byte that breaks it.
std::string as_utf8(std::string text);

}  // namespace ringsim
