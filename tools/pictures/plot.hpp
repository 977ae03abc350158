// Curves in a terminal.
#pragma once

#include <cstddef>
#include <string>

#include "tools/pictures/chart.hpp"

namespace ringsim::tools {

/// What a terminal, or what reads in its place, can show.
struct TextSurface {
  std::size_t width = 80;  ///< characters in a line
  bool unicode = false;    ///< braille and marks beyond ASCII
  bool color = false;
};

/// That of a file descriptor: the terminal's width, or 80; Unicode if the locale is UTF-8 (LC_ALL, LC_CTYPE, LANG: the
/// first that is set); color as has_color().
TextSurface surface_of(int file);

/// The chart on logarithmic axes, in lines of at most `width` characters (but at least 40), with title, legend and
/// notes. Lines join the points of a series; marks show the points, measured ones on top, then those of the first
/// series. Names are printable; colors are escape sequences.
std::string plot_text(const Chart& chart, const TextSurface& surface);

}  // namespace ringsim::tools
