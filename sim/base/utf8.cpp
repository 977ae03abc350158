#include "sim/base/utf8.hpp"

namespace ringsim {

std::size_t first_not_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const std::size_t more = lead < 0x80                   ? 0
                             : lead >= 0xC2 && lead < 0xE0 ? 1
                             : (lead & 0xF0) == 0xE0       ? 2
                             : lead >= 0xF0 && lead < 0xF5 ? 3
                                                           : 4;
    if (more == 4) return i;
    for (std::size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    }
    // No longer spelling than needed, no surrogates, nothing beyond U+10FFFF.
    const unsigned second = byte(i + 1);
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) || (lead == 0xF0 && second < 0x90) ||
        (lead == 0xF4 && second >= 0x90)) {
      return i;
    }
    i += more + 1;
  }
  return std::string_view::npos;
}

std::string beginning_of(const std::string& text, std::size_t most) {
  std::size_t end = most < text.size() ? most : text.size();
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end);
}

std::string as_utf8(std::string text) {
  std::size_t good = 0;  // bytes that have been looked at
  for (std::size_t at; (at = first_not_utf8(std::string_view(text).substr(good))) != std::string_view::npos;) {
    good += at;
    text[good++] = '?';
  }
  return text;
}

}  // namespace ringsim
