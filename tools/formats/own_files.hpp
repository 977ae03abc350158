// Files that ringsim wrote: results may replace them, and nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringsim::tools {

// How a PNG of ringsim's begins: the signature, the chunk IHDR of 13 bytes with its 12 around them, and then who made
// it (W3C, Portable Network Graphics, 11.3.4.3: a keyword, a zero byte, a text in Latin-1).
inline constexpr std::string_view png_signature{"\x89PNG\r\n\x1a\n"};
inline constexpr std::size_t png_header_end = 33;
inline constexpr std::string_view png_made_by{"tEXtSoftware\0ringsim", 20};

/// Throws UsageError if `output` is a file that is there and holds something other than results of ringsim, unless
/// `force`. `option`: which one names the file.
void refuse_to_replace(const std::string& output, bool force, const std::string& option = "--output (-o)");

}  // namespace ringsim::tools
