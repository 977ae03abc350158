// Units and digits of the numbers that people read: the rule of all tables. JSON and CSV do not use it: they have exact
// numbers, in the unit that the name of their column says.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/units.hpp"

namespace ringsim {

/// Five significant digits, at most three of them after the point; digits before the point are never cut: "0.359",
/// "36.837", "335778". From 10 upward, values that differ by more than 0.01 % never look equal.
std::string figure(double value);

/// A unit for times.
class TimeUnit {
 public:
  /// us below 10 ms, ms below 10 s, s from there on: with figure() at least four digits remain, and times of
  /// collectives are in us, the unit of nccl-tests, unless all of a table are long.
  static TimeUnit of(Picoseconds time);

  std::string_view name() const { return name_; }  ///< "us", "ms" or "s"
  std::string number(Picoseconds time) const;      ///< "1072.2"

 private:
  TimeUnit(std::string_view name, std::int64_t picoseconds) : name_(name), picoseconds_(picoseconds) {}
  std::string_view name_;
  std::int64_t picoseconds_;
};

/// A time of a column in microseconds, to the picosecond.
Picoseconds time_of_us(double us);

/// A time with its own unit: "1072.2 ms".
std::string time_text(Picoseconds time);

/// A rate in four significant digits, in one unit, so that rates can be compared: "45.73 GB/s", "113.9 GB/s".
std::string rate_text(Bandwidth rate);

/// A size: as format() if that has at most five digits ("64 MiB", "1125 MB"), else rounded in the binary unit: "14.958
/// GiB".
std::string size_text(Bytes size);

}  // namespace ringsim
