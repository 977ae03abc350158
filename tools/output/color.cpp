#include "tools/output/color.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
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

}  // namespace ringsim::tools
