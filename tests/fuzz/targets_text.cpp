// What all readers share: decorations of logs, JSON among other text, formats by sight, gzip.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "sim/text/foreign_format.hpp"
#include "sim/text/gzip.hpp"
#include "sim/text/json_scan.hpp"
#include "sim/text/plain_text.hpp"
#include "tests/fuzz/laws.hpp"
#include "tests/fuzz/targets.hpp"

namespace ringsim::fuzz {

bool read_decorated_text(std::string_view text) {
  const std::string plain = plain_text(text);
  law(plain.size() <= text.size(), "decorations go away");
  law(std::count(plain.begin(), plain.end(), '\n') == std::count(text.begin(), text.end(), '\n'), "lines stay lines");
  law(text.ends_with(without_log_prefix(text)), "what is left of a line is its end");
  if (const auto format = foreign_format(text))
    law(!format->name.empty() && !format->instead.empty(), "a format has a name");
  for (std::size_t at = 0; at < std::min<std::size_t>(text.size(), 64); ++at) {
    const std::size_t end = json_end(text, at);
    law(end == std::string_view::npos || (end > at && end <= text.size()), "a value ends after it begins");
  }
  for (const auto& [key, value] : first_keys(text)) law(value.size() < text.size(), "a value is part of the text");
  return plain != text;
}

bool read_gzip(std::string_view text) {
  const auto unpacked = [&](std::size_t piece) {
    std::string out;
    const bool good = reads_or_refuses([&] {
      Gunzip gunzip("packed");
      for (std::size_t at = 0; at < text.size(); at += piece) gunzip.feed(text.substr(at, piece), out);
      gunzip.end();
    });
    return std::pair{good, good ? out : ""};
  };
  const auto whole = unpacked(std::size_t{1} << 16);
  law(whole == unpacked(5), "pieces do not matter");
  return whole.first && is_gzip(text);
}

}  // namespace ringsim::fuzz
