// The time of a run as a horizontal axis, from 0 to its end.
#pragma once

#include <string>

#include "sim/base/units.hpp"

namespace ringsim::tools {

struct TimeAxis {
  double left = 0, right = 0;
  SimTime finish{};  ///< above 0

  double x_of(SimTime when) const;
  /// Lines from `top` to `bottom` at round times, with their labels below. At least one besides 0.
  std::string svg(double top, double bottom) const;
};

}  // namespace ringsim::tools
