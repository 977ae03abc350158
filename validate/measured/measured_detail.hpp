// What the readers of measured files share. For sources alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
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

/// A time, and the bandwidths that were printed with it.
struct Timed {
  std::optional<Number> time, algbw, busbw;
};

/// A row before it is known whether it agrees with itself and with the others.
struct Row {
  std::optional<CollectiveOp> op;
  std::string type, redop, root;  ///< as printed; empty: not printed
  std::string cycle;              ///< rows of other cycles are repetitions that the benchmark made
  Bytes bytes;
  bool per_rank =
      false;      ///< `bytes` are a rank's own part, as OSU counts; times ranks for those that nccl-tests totals
  Timed out, in;  ///< out of place, in place
  std::optional<Number> min, max;
  std::optional<std::int64_t> wrong;
  std::size_t run = 0;  ///< in Found::runs
  int line = 0;
  std::string where;  ///< file:line or file: /pointer

  const Timed& counted() const { return out.time ? out : in; }
  /// What tells rows of one size apart that are no repetitions: "float sum 0".
  std::string variant() const;
};

/// Rows that were printed by one run of a benchmark, or by runs of one number of ranks.
struct Run {
  std::optional<int> ranks;
  std::optional<CollectiveOp> op;  ///< that of the program that is named
  std::string program;             ///< the name, if it is not that of a collective that is known here
};

/// What a reader found.
struct Found {
  std::string format;
  /// Rows of one size are repetitions: a benchmark printed them. Else they are so only if every size has as many.
  bool from_benchmark = false;
  std::map<std::string, std::string> about;
  std::vector<Run> runs;
  std::vector<Row> rows;
  std::vector<std::string> warnings;

  void leave_out(const std::string& where, const std::string& why);
};

struct Line {
  std::string_view text;
  const std::string* file = nullptr;
  int number = 0;
  bool cut = false;  ///< the file's last line, and no newline ends it

  std::string where() const;  ///< file:line
};

/// Lines of Windows keep their carriage return; to what follows it is a blank. `name` must outlive them.
std::vector<Line> lines_of(std::string_view text, const std::string& name);
std::vector<std::string_view> words_of(std::string_view line);

struct CsvField {
  std::string text;   ///< without blanks around it
  std::string where;  ///< file:line:column
};
/// The fields of a line: between separators, in quotes if they contain one (RFC 4180, without line ends in quotes).
/// A blank as separator: the words of the line. A bar: a bar at either end is none, as in Markdown's tables.
/// Throws InputError if quotes do not end.
std::vector<CsvField> fields_of(const Line& line, char separator);
std::string lower(std::string_view text);

/// Throws InputError for a file of ringsim's own results without measured times.
[[noreturn]] void refuse_predictions(const std::string& where);

/// Takes `# key: value` up: keys of small letters and underscores. Returns whether the line is one.
bool take_comment(std::string_view line, std::map<std::string, std::string>& about);

/// True if a line has bars, also those that draw boxes, or marks of Markdown.
bool has_bars(std::string_view line);
/// The line with '|' for each bar, and blanks for Markdown's marks.
std::string with_plain_bars(std::string_view line);
/// The line with blanks for bars. Empty cells stay as wide as an empty column of nccl-tests.
std::string cells_in_line(std::string_view line);

/// Whole text as a number; nothing if it is none. Infinities and NaN are numbers here.
std::optional<Number> number_in(std::string_view text);
/// A quantity is finite and not negative; a time is also above 0.
enum class Measure { quantity, time };
/// Throws InputError naming `what` at `where` if it is not.
Number measured_number(std::string_view text, Measure measure, const std::string& what, const std::string& where);
/// Says that a number is NaN, infinite or a time of 0; such a row is left out. Nothing otherwise; measured_number()
/// checks the rest.
std::optional<std::string> flaw_of(std::string_view text, Measure measure, const std::string& what);
/// A whole number of at least 0.
std::int64_t measured_count(std::string_view text, const std::string& what, const std::string& where);
bool is_whole(std::string_view word);

/// How the numbers of a file use commas: 45,00 and 1,048,576.
class Commas {
 public:
  /// Looks at a number that is not a size. Clear ones (1,5) decide how unclear ones (1,250) are read.
  void see(std::string_view text);
  /// The number with a decimal point and no other mark; the text itself if it has no comma, or is no number. Throws
  /// InputError if it is unclear what its comma means.
  std::string plain(std::string_view text, const std::string& what, const std::string& where) const;
  /// As plain(), for a whole number: 1,048,576, 1,024, 1.048.576 or 1 024.
  static std::string plain_whole(std::string_view text);

 private:
  bool decimal_ = false, thousands_ = false, points_ = false;
};

inline constexpr int most_ranks = 1 << 24;
/// Throws InputError if it is no number of ranks.
int check_ranks(std::int64_t ranks, const std::string& where);
/// `processes` of `gpus_each`.
int check_ranks(std::int64_t processes, std::int64_t gpus_each, const std::string& where);

Found read_nccl_text(const std::vector<Line>& lines);
Found read_osu(const std::vector<Line>& lines);
/// `header`: as csv_header() found it.
Found read_csv(const std::vector<Line>& lines, std::size_t header);
/// A document of nccl-tests, rccl-tests or mscclpp-test.
Found read_json(std::string_view text, const std::string& name);
/// Documents among other text or one after another; each document of nccl-tests is a run. No runs if there are none.
Found read_json_among(std::string_view text, const std::string& name);

/// Rows in place join the row out of place of their size, if rows say which of the two they are.
void join_places(std::vector<Row>& rows);

/// Which line may name the columns of a table: the first that is no comment, with commas, semicolons or tabs between
/// the names, those of size and time (`whole`) or any (`part`); or any line, also with bars or blanks between them.
enum class Header { whole, part, anywhere };
std::optional<std::size_t> csv_header(const std::vector<Line>& lines, Header which);
bool is_osu(const std::vector<Line>& lines);
/// True if a line has a row's size, count and type.
bool has_nccl_rows(const std::vector<Line>& lines);

/// The only collective that a file's name has in it.
std::optional<CollectiveOp> collective_in(const std::string& name);

/// True if busbw is that of the collective with so many ranks within rounding, or was not printed.
bool busbw_fits(const Timed& timed, Bytes bytes, CollectiveOp op, int ranks);
/// True if nccl-tests may print this redop and root for the collective.
bool words_fit(const Row& row, CollectiveOp op);
/// True if all rows fit, and at least one busbw has enough digits (small messages print 0.00).
bool rows_fit(std::span<const Row> rows, CollectiveOp op, int ranks);
/// True if all rows fit that collective with some number of ranks, or no busbw has enough digits.
bool may_be(std::span<const Row> rows, CollectiveOp op);
/// The collectives and numbers of ranks that fit the rows, for errors: "all_gather of 8 ranks or all_to_all of 8
/// ranks", "no collective". Empty if no busbw has enough digits.
std::string what_fits(std::span<const Row> rows);

}  // namespace ringsim::measured
