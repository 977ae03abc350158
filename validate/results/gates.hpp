// What a sweep is held to: conditions on its results, and an earlier sweep's results.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/conditions/expression.hpp"
#include "validate/results/results.hpp"

namespace ringsim {

/// "busbw_GBps > 40 where bytes >= 64 MiB": a condition on rows, and on which.
class Assertion {
 public:
  /// Throws InputError naming --assert, the column, what was expected and found.
  static Assertion parse(const std::string& text);

  /// Throws InputError for a name that is neither in `columns` nor in `varied`, the paths that vary, with the nearest
  /// one that is.
  void require_known(const std::vector<std::string>& columns, const std::vector<std::string>& varied) const;

  /// True if the condition holds for the row; nothing if it is not about this row. Throws InputError if the row
  /// lacks a value that is asked for. Requires a row that did not fail.
  std::optional<bool> ask(const ResultRow& row) const;
  /// "busbw_GBps is 38.2": the values that the condition names, as the row has them.
  std::string found(const ResultRow& row) const;
  const std::string& text() const { return text_; }
  /// The names in it, those of the condition first.
  std::vector<std::string> paths() const;

 private:
  Assertion(std::string text, Expression condition, std::optional<Expression> where)
      : text_(std::move(text)), condition_(std::move(condition)), where_(std::move(where)) {}
  std::string text_;
  Expression condition_;
  std::optional<Expression> where_;
};

/// Results of an earlier sweep, or of `run`, by what varied: they are found again if links or the model have
/// changed.
class Baseline {
 public:
  /// Throws InputError if the file cannot be read, or has a point twice with different times.
  explicit Baseline(const std::string& file);

  struct Was {
    std::string label;
    std::optional<double> time_us;  ///< nothing: the point failed
    bool met = false;
  };
  /// What it has of that row's point and job; nothing if the point is new. Notes that it was met.
  const Was* meet(const ResultRow& row);
  /// The rows that were not met.
  std::vector<std::string> missing() const;

 private:
  std::map<std::string, std::map<std::string, Was>> points_;  // [point][job]
};

struct GateOptions {
  std::vector<std::string> assertions;
  std::string baseline;  ///< a file; empty: none
  double tolerance = 0;  ///< share of the time by which a point may move, either way
  bool all_points =
      true;  ///< false, of a shard: what is missing from it, and an assertion that meets no row, is no fault
};

/// What came of it, point by point.
struct GateReport {
  struct Point {
    std::string label;
    std::string error;                  ///< of a point that failed
    std::vector<std::string> failures;  ///< of gates, a line each
  };
  std::vector<Point> points;          ///< every row, in the order in which they came
  std::vector<std::string> general;   ///< failures that belong to no row: missing points, assertions without rows
  std::vector<std::string> new_ones;  ///< points that the baseline has not; no failure
  std::size_t failed_points = 0, failed_gates = 0, compared = 0, moved = 0;
  double largest_move = 0;  ///< of `moved`: largest share, without its sign
};

class Gates {
 public:
  /// Reads assertions and baseline, so that a mistake shows before the sweep begins.
  explicit Gates(const GateOptions& options);
  void take(const ResultRow& row);
  GateReport report() &&;

 private:
  void compare(const ResultRow& row, GateReport::Point& point);
  GateOptions options_;
  std::vector<Assertion> assertions_;
  std::vector<std::size_t> asked_;  // [assertion] how many rows it spoke of
  std::optional<Baseline> baseline_;
  GateReport report_;
};

}  // namespace ringsim
