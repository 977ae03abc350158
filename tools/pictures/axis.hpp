// Logarithmic axes and their labels, the same for terminals and pictures.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ringsim::tools {

/// What the values of an axis are: bytes, picoseconds, bytes per second, 0 to 1, whole numbers, or any numbers.
enum class AxisOf { size, time, rate, share, count, number };

struct Tick {
  double value = 0;
  std::string label;  ///< "64 KiB", "20 us"; of rates the number of GB/s, which the axis names
};

struct LogAxis {
  double low = 1, high = 10;  ///< what it shows; above 0
  std::vector<Tick> ticks;    ///< ascending, within it

  /// 0 at the low end, 1 at the high end. Requires a value above 0.
  double place(double value) const;
};

/// A value as text: sizes as tables have them, times in ns, us, ms or s, rates in GB/s without their unit.
std::string axis_text(double value, AxisOf of);

/// An axis with room for all values, and at most `most` ticks at round values: powers of two for sizes and counts, if
/// possible those that are values; else powers of ten, or 1, 2 and 5 of them, or evenly spaced ones if the values
/// are close together. Requires values above 0, at least one, and most >= 2.
LogAxis log_axis(const std::vector<double>& values, AxisOf of, std::size_t most);

}  // namespace ringsim::tools
