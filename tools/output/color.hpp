// Colors, if the output is a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace ringsim::tools {

enum class Style { bold, red, yellow };

/// True if text written to this file descriptor is colored: it is a terminal, NO_COLOR is unset or empty
/// (no-color.org), and TERM is not "dumb".
bool has_color(int file);

/// The text in that style, between escape sequences; without color as it is.
std::string styled(Style style, const std::string& text, bool color);

/// The text in the color of the series of a plot with that number; six colors in turn.
std::string in_color_of(std::size_t series, const std::string& text, bool color);

}  // namespace ringsim::tools
