// Text that is UTF-8, or is not.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringsim {

/// The byte at which UTF-8 breaks, or npos.
std::size_t first_not_utf8(std::string_view text);

/// The text with a question mark for each byte that breaks it.
std::string as_utf8(std::string text);

}  // namespace ringsim
