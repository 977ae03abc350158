#include "tools/output/color.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <string_view>

namespace ringsim::tools {

bool has_color(int file) {
  const auto variable = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  return isatty(file) != 0 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string styled(Style style, const std::string& text, bool color) {
  if (!color) return text;
  const int code = style == Style::bold ? 1 : style == Style::red ? 31 : 33;
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string in_color_of(std::size_t series, const std::string& text, bool color) {
  if (!color) return text;
  static constexpr int codes[] = {34, 31, 32, 35, 36, 33};  // blue, red, green, magenta, cyan, yellow
  return fmt::format("\x1b[{}m{}\x1b[0m", codes[series % std::size(codes)], text);
}

}  // namespace ringsim::tools
