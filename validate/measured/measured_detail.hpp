// What the readers of measured files share. For sources alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim::measured {

/// A number as it was printed.
struct Number {
  double value = 0;
  double half = 0;  ///< half a unit of its last digit: how far rounding may have moved it
};

/// A row before it is known whether it agrees with itself and with the others.
struct Row {
  std::optional<CollectiveOp> op;
  std::string variant;  ///< what else tells rows of one size apart: "float sum 0"
  Bytes bytes;
  bool per_rank =
      false;  ///< `bytes` are a rank's own part, as OSU counts; times ranks for those that nccl-tests totals
  std::optional<Number> time, algbw, busbw, in_place, in_place_algbw, in_place_busbw, min, max;
  std::optional<std::int64_t> wrong;
  int line = 0;
  std::string where;  ///< file:line or file: /pointer
};

/// What a reader found.
struct Found {
  std::string format;
  /// Rows of one size are repetitions: a benchmark printed them. Else they are so only where every size has as many.
  bool from_benchmark = false;
  std::optional<int> ranks;
  std::map<std::string, std::string> about;
  std::vector<Row> rows;
  std::vector<std::string> warnings;
};

struct Line {
  std::string_view text;
  std::string where;  ///< file:line
  int number = 0;
  bool cut = false;  ///< the file's last line, and no newline ends it
};

/// Lines of Windows keep their carriage return; to what follows it is a blank.
std::vector<Line> lines_of(std::string_view text, const std::string& name);
std::vector<std::string_view> words_of(std::string_view line);

struct CsvField {
  std::string text;   ///< without blanks around it
  std::string where;  ///< file:line:column
};
/// The fields of a line: between separators, in quotes where they contain one (RFC 4180, without line ends in quotes).
/// Throws InputError where quotes do not end.
std::vector<CsvField> fields_of(const Line& line, char separator);
std::string_view trimmed(std::string_view text);
std::string lower(std::string_view text);

/// Takes `# key: value` up: keys of small letters and underscores. Returns whether the line is one.
bool take_comment(std::string_view line, std::map<std::string, std::string>& about);

/// Whole text as a number; nothing where it is none. Infinities and NaN are numbers here.
std::optional<Number> number_in(std::string_view text);
/// A number that can be measured: finite, not negative. Throws InputError naming `what` at `where`.
Number measured_number(std::string_view text, const std::string& what, const std::string& where);
/// The same, above 0: a time.
Number measured_time(std::string_view text, const std::string& what, const std::string& where);
/// A whole number of at least 0.
std::int64_t measured_count(std::string_view text, const std::string& what, const std::string& where);

inline constexpr int most_ranks = 1 << 24;
/// Throws InputError where it is no number of ranks.
int check_ranks(std::int64_t ranks, const std::string& where);
/// What a row says of ranks: as many as all rows before.
void take_ranks(Found& found, std::int64_t processes, std::int64_t gpus_each, const std::string& where);

Found read_nccl_text(const std::vector<Line>& lines);
Found read_osu(const std::vector<Line>& lines);
Found read_csv(const std::vector<Line>& lines);
/// Of nccl-tests or rccl-tests; objects a line each too.
Found read_json(std::string_view text, const std::string& name);

/// Rows in place join the row out of place of their size, where rows say which of the two they are.
void join_places(std::vector<Row>& rows);

/// Whether the first line that is no comment names columns of sizes and times.
bool is_csv(const std::vector<Line>& lines);
bool is_osu(const std::vector<Line>& lines);
bool is_nccl_text(const std::vector<Line>& lines);

}  // namespace ringsim::measured
