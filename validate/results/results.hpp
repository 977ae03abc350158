// Rows of results as a sweep writes them, one JSON object a line: read back, told apart, put into one order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenarios/conditions/expression.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/result.hpp"

namespace ringsim {

/// XXH3-128, 32 hex digits, of all that a row of results depends on: the point's canonical form, the model's version,
/// and what the row repeats of them (the program's version, the scenario's name, what varied). Rows of equal keys are
/// equal bytes, job by job. `bounded`: the row was asked for its bound.
std::string result_key(const std::string& scenario_name, const PointId& id, bool bounded = false);
/// The key of rows that another version of ringsim, or of its model, wrote.
std::string result_key(const std::string& program, std::int64_t model, const std::string& scenario_name,
                       const PointId& id, bool bounded);

/// One result, or the error of a point that failed.
struct ResultRow {
  std::string key;  ///< empty: of `run`, not of a sweep
  std::vector<Cell> cells;

  /// Throws InputError at `file`:`number` if the line is not a result: a value of another type or out of its range, or
  /// a key that is not that of the row's point.
  static ResultRow parse(std::string_view line, const std::string& file, std::size_t number = 1);
  /// Makes a row of its JSON; checks nothing.
  static ResultRow of(const Json& json);

  const Cell* find(std::string_view column) const;
  std::string job() const;    ///< empty if there is but one collective
  bool failed() const;        ///< it has an error instead of a time
  std::string error() const;  ///< "where: message; hint: what to do"
  double time_us() const;     ///< requires a row that did not fail
  /// "collective.bytes 1 MiB, topology.nodes 4", or the scenario's name if nothing varies; and the job.
  std::string label() const;
  /// What varied, as one text: by it a row is found again if the scenario's other values have changed.
  std::string point() const;
  /// A column, or what varied by its path; in its unit if the name tells one (_us, _GBps, bytes) or the text does.
  std::optional<ExpressionValue> value(const std::string& path) const;
};

/// The value as CSV and people have it: numbers shortest, text bare.
std::string plain_text(const Cell& cell);

/// The place of a row in its file.
struct RowPlace {
  std::size_t line = 0;  ///< from 1
  std::uint64_t offset = 0;
};

struct FileEnd {
  std::uint64_t whole_bytes = 0;  ///< up to the end of the last whole line
  bool torn = false;              ///< a last line without its end followed, and was not taken
};

/// Reads a file line by line; a line has at most 32 MiB. Throws InputError (FILE, or FILE:LINE) if it cannot be read
/// or a line is no result.
FileEnd read_results(const std::string& file,
                     const std::function<void(ResultRow&& row, std::string_view line, const RowPlace& place)>& take);

/// The rows of several files as one, each once, in an order that depends on nothing but the rows: by scenario, then by
/// what varies (numbers and quantities by size, texts with the numbers in them by size), then by job. Holds about 300
/// bytes per row; the rows themselves stay in their files.
class MergedResults {
 public:
  /// Throws InputError if two rows of one key and job differ, or are of different versions of ringsim or its model.
  explicit MergedResults(std::vector<std::string> files);

  std::size_t size() const { return entries_.size(); }
  std::size_t repeated() const { return repeated_; }                    ///< rows that were there already
  const std::vector<std::string>& torn_files() const { return torn_; }  ///< whose last line was dropped
  /// Every line, with its end.
  void each_line(const std::function<void(const std::string& line)>& take) const;
  /// Every row.
  void each(const std::function<void(const ResultRow& row)>& take) const;
  /// The columns of all rows (validate/results/columns.hpp).
  std::vector<std::string> columns(ColumnsFor format) const;

 private:
  struct Entry {
    std::string order, key, job, digest;
    std::size_t file = 0;
    RowPlace place;
  };
  void add(std::size_t file, const ResultRow& row, std::string_view line, const RowPlace& place);
  void drop_repeated();

  std::vector<std::string> files_;
  std::vector<Entry> entries_;
  std::vector<std::string> torn_;
  std::size_t repeated_ = 0;
  std::string version_, version_from_;
};

/// RFC 4180: in quotes if it has to be. Text that a spreadsheet would take for a formula gets an apostrophe first.
std::string csv_field(const std::string& field);
/// Fields joined, with the line's end.
std::string csv_line(const std::vector<std::string>& fields);
/// A row's values in the order of `columns`; columns that are not listed are left out.
std::vector<std::string> fields_of(const ResultRow& row, const std::vector<std::string>& columns);
/// Adds the row's columns to those seen before.
void see_columns(const ResultRow& row, std::vector<std::string>& seen);

}  // namespace ringsim
