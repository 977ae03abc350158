// What a plot shows, made of rows of results: series of points, measured ones and the bound of the machine among them.
#pragma once

#include <string>
#include <vector>

#include "tools/output/format.hpp"
#include "tools/pictures/axis.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

struct ChartPoint {
  double x = 0, y = 0;  ///< in base units: bytes, picoseconds, bytes per second
};

struct ChartSeries {
  enum class Of { predicted, measured, bound } of = Of::predicted;
  std::string name;
  std::vector<ChartPoint> points;  ///< by ascending x; both above 0
};

struct Chart {
  std::string title;
  std::string x_label, y_label;  ///< "message size", "bus bandwidth (GB/s)"
  AxisOf x_of = AxisOf::size, y_of = AxisOf::rate;
  std::vector<ChartSeries> series;  ///< predicted ones first; at least one point in each
  std::vector<std::string> notes;   ///< what is left out, and why

  std::vector<double> xs() const;
  std::vector<double> ys() const;
  /// True if several predictions have one x: points would lie above each other.
  bool differs_in_names_alone() const;
};

/// Throws UsageError for names that no result has. `varied`: the paths that vary.
void require_chart_fields(const ChartFields& fields, const std::vector<std::string>& varied, bool measured);

/// One series per value of `by`, or else per combination of what varies besides x and what follows from x; what a
/// library decides for each size does not split its series. Measured times become points of their own if y is a time or
/// a bandwidth. Ideal scaling, if asked for, starts at the first point of each series. Throws UsageError if x or y has
/// no numbers, or if two points of a series have one x. Requires at least one row.
Chart chart_of(const std::vector<ResultRow>& rows, const ChartFields& fields);

}  // namespace ringsim::tools
