// Curves in a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ringsim::tools {

struct PlotCurve {
  char mark = 'o';
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< bytes, microseconds
};

/// Curves on logarithmic axes, in lines of at most 80 characters of ASCII, with a legend below. Where marks fall
/// together the first curve's is seen. Points that are not above 0 have no place on such axes and are left out; empty
/// where none is left.
std::string log_plot(const std::vector<PlotCurve>& curves);

}  // namespace ringsim::tools
