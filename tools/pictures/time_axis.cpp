#include "tools/pictures/time_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "sim/base/quantity.hpp"
#include "tools/pictures/svg.hpp"
#include "topologies/layout/text_width.hpp"

namespace ringsim::tools {

namespace {

/// The shortest of 1, 2 or 5 times a power of ten that makes at most 6 steps.
Picoseconds round_step(Picoseconds time) {
  std::int64_t power = 1;
  while (true) {
    for (const std::int64_t digit : {1, 2, 5})
      if (time.count() / 6 < digit * power) return Picoseconds{digit * power};
    power *= 10;
  }
}

}  // namespace

std::string hatch_svg(double x, double y, double width, double height) {
  constexpr double apart = 6;
  std::string lines;
  // From its lower end, upwards to the right.
  for (double from = x - height + apart / 2; from < x + width; from += apart) {
    const double left = std::max(from, x), right = std::min(from + height, x + width);
    lines += fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", left, y + height - (left - from), right,
                         y + height - (right - from));
  }
  return fmt::format("<path class=\"hatch\" d=\"{}\" pointer-events=\"none\"/>\n", lines);
}

double TimeAxis::x_of(SimTime when) const {
  return left + (right - left) * static_cast<double>(when.time_since_epoch().count()) /
                    static_cast<double>(finish.time_since_epoch().count());
}

std::string TimeAxis::svg(double top, double bottom) const {
  const Picoseconds step = round_step(finish.time_since_epoch());
  std::string grid, text;
  for (std::int64_t i = 0; i <= finish.time_since_epoch() / step; ++i) {
    const Picoseconds at = i * step;
    const double x = x_of(SimTime{at});
    grid += fmt::format("M{:.1f} {:.1f}V{:.1f}", x, top, bottom);
    text +=
        svg_text(x, bottom + 15, " class=\"small soft\" text-anchor=\"middle\"", at.count() == 0 ? "0" : format(at));
  }
  return fmt::format("<path class=\"grid\" d=\"{}\"/>\n", grid) + text;
}

std::string TimeAxis::legend_svg(const std::vector<LegendEntry>& entries, double& y) const {
  constexpr double line_height = 18;
  std::string text;
  double x = left;
  for (const LegendEntry& entry : entries) {
    const double room = 22 + layout::width_of(entry.name, small_text_size);
    if (x > left && x + room > right) {
      x = left;
      y += line_height;
    }
    text +=
        fmt::format("<g class=\"{}\"><rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"16\" height=\"12\"/></g>\n",
                    entry.group, entry.mark, x, y - 10) +
        (entry.hatched ? hatch_svg(x, y - 10, 16, 12) : "") + svg_text(x + 22, y, " class=\"small\"", entry.name);
    x += room + 18;
  }
  return text;
}

}  // namespace ringsim::tools
