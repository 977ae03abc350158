// The time of a run as a horizontal axis, from 0 to its end.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace ringsim::tools {

/// What a color below the axis means.
struct LegendEntry {
  std::string group, mark;  ///< the classes of the style that give the color
  std::string name;
  bool hatched = false;
};

/// Diagonal lines over a bar, which distinguish it without its color.
std::string hatch_svg(double x, double y, double width, double height);

struct TimeAxis {
  double left = 0, right = 0;
  SimTime finish{};  ///< above 0

  double x_of(SimTime when) const;
  /// Lines from `top` to `bottom` at round times, with their labels below. At least one besides 0.
  std::string svg(double top, double bottom) const;
  /// A patch of color and a name for each entry, in lines between `left` and `right`. `y`: of the first line; moves to
  /// the last one.
  std::string legend_svg(const std::vector<LegendEntry>& entries, double& y) const;
};

}  // namespace ringsim::tools
