// The runs of a log: chooses those that are compared, and merges their rows. For sources alone.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

/// A run that has rows.
struct RunRows {
  std::optional<int> ranks;
  std::string program;  ///< as Run
  int line = 0;         ///< of its first row; 0: the format has no lines
  std::vector<Row> rows;
  int number = 0;                     ///< from 1, in the order of the file
  std::optional<InputError> refusal;  ///< its collective is unknown: why

  std::string text() const;  ///< "run 2 (line 12, 3 rows, 16 ranks)"
};

/// "run 1 (...), run 2 (...)".
std::string texts_of(std::span<const RunRows> runs);

/// Throws InputError unless the printed bandwidths are those of size and time within rounding. Checks busbw if `ranks`
/// is known. Requires an op.
void check_bandwidth(const Row& row, const Timed& timed, std::optional<int> ranks);

/// One row for each (op, bytes), in the order in which they come first; each row is checked before. Throws InputError
/// if runs differ by more than 20 %.
std::vector<MeasuredRow> joined_rows(const std::vector<RunRows>& runs, bool from_benchmark, const std::string& name,
                                     std::vector<std::string>& warnings);

/// All runs of a file.
class Runs {
 public:
  /// `given`: what the rows are, if the file does not say. Throws InputError if it says otherwise, and if there
  /// are no rows with times.
  Runs(Found found, std::string name, std::optional<CollectiveOp> given);

  /// As MeasuredFile::table().
  MeasuredTable table(std::optional<int> number, const std::optional<ComparedWith>& with) const;
  Bytes first_size() const;
  /// As MeasuredFile::only_op().
  std::optional<CollectiveOp> only_op(std::optional<int> number) const;
  const std::map<std::string, std::string>& about() const { return found_.about; }

 private:
  void split_at_repetitions(const Run& run, std::vector<Row> rows);
  [[noreturn]] void refuse_empty() const;
  void take_statements(std::optional<CollectiveOp> given);

  void name_collectives(std::vector<RunRows>& runs, const std::optional<ComparedWith>& with,
                        std::vector<std::string>& warnings) const;
  void choose(std::vector<RunRows>& runs, std::optional<int> number, bool compares,
              std::vector<std::string>& warnings) const;
  InputError nameless_error(const RunRows& run, const std::optional<ComparedWith>& with) const;
  bool may_be_as_before(const RunRows& run, const RunRows& before) const;
  static std::optional<CollectiveOp> compared_op(const RunRows& run, const ComparedWith& with);

  void keep_compared_rows(std::vector<RunRows>& runs, const ComparedWith& with,
                          std::vector<std::string>& warnings) const;
  static bool fits_ranks(const RunRows& run, const ComparedWith& with);
  void refuse_other_ranks(const std::vector<RunRows>& runs, const ComparedWith& with) const;
  void require_one_number_of_ranks(const std::vector<RunRows>& runs, const std::optional<ComparedWith>& with) const;

  Found found_;
  std::string name_;
  std::vector<RunRows> runs_;
};

}  // namespace ringsim::measured
