// What nccl-tests, rccl-tests and OSU's benchmarks print, in the midst of what else a job prints.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

namespace {

using Words = std::vector<std::string_view>;

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<const char*, n>& known) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

bool is_type(std::string_view word) {
  static constexpr std::array known = std::to_array<const char*>(
      {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "char", "int",
       "bf16", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "float16", "float32"});
  return is_one_of(word, known);
}

bool is_operation(std::string_view word) {
  static constexpr std::array known =
      std::to_array<const char*>({"sum", "prod", "max", "min", "avg", "mulsum", "none", "all"});
  return is_one_of(word, known);
}

bool is_whole(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A number of a result's columns, or what stands where nothing was counted.
bool is_figure(std::string_view word) { return word == "N/A" || number_in(word).has_value(); }

/// Without what mpirun --tag-output, srun -l and others put before a line and its first word: "[1,0]<stdout>:4" -> "4".
std::string_view after_tag(std::string_view word) {
  const std::size_t at = word.find_last_of(":>|]");
  return at == std::string_view::npos ? word : word.substr(at + 1);
}

/// Where the row begins: two whole numbers before the name of a type. npos: it is none.
std::size_t row_start(const Words& words) {
  for (std::size_t i = 2; i < words.size(); ++i)
    if (is_type(words[i]) && is_whole(words[i - 1]) && is_whole(after_tag(words[i - 2]))) return i - 2;
  return std::string_view::npos;
}

/// A row that has lost its first columns: so many figures behind each other, the two bandwidths with a point. (NCCL
/// lists the ranks of a channel: `NCCL INFO Channel 00/24 : 0 1 2 3 4 5 6 7`.)
bool is_torn(const Words& words) {
  std::size_t figures = 0, points = 0;
  for (; figures < words.size() && is_figure(words[words.size() - 1 - figures]); ++figures)
    if (words[words.size() - 1 - figures].find('.') != std::string_view::npos) ++points;
  return figures >= 6 && points >= 2;
}

bool is_date(std::string_view word) {
  return word.size() == 10 && word[4] == '-' && word[7] == '-' && is_whole(word.substr(0, 4));
}
bool is_clock(std::string_view word) { return word.size() >= 8 && word[2] == ':' && word[5] == ':'; }

/// Reads the log of one or several runs.
class Log {
 public:
  Found read(const std::vector<Line>& lines) {
    found_.format = "nccl-tests text";
    found_.from_benchmark = true;
    for (const Line& line : lines) take(line);
    close_run();
    return std::move(found_);
  }

 private:
  void take(const Line& line) {
    const Words words = words_of(line.text);
    if (const std::size_t start = row_start(words); start != std::string_view::npos)
      return take_row(line, words, start);
    take_comment(line.text, found_.about);
    take_heading(line);
    take_program(words);
    take_rank(line, words);
    if (line.text.find("# nThread ") != std::string_view::npos) close_run();
    if (line.text.find("# Out of bounds values") != std::string_view::npos &&
        line.text.find("FAILED") != std::string_view::npos)
      found_.warnings.push_back(line.where + ": the benchmark found wrong results: what was timed did not work");
    const bool comment = line.text.find('#') != std::string_view::npos;
    if (!comment && is_torn(words))
      leave_out(line, "expected size, count and type before these figures, found a row that has lost them");
  }

  /// Other output went into the row, or it is cut: that costs the row, not the file.
  void leave_out(const Line& line, const std::string& why) {
    found_.warnings.push_back(line.cut ? line.where + ": the file's last line is cut; it is left out"
                                       : fmt::format("{}: {}; the row is left out", line.where, why));
  }

  /// "#  size  count  type  redop  root  time  algbw ...", which tells what follows.
  void take_heading(const Line& line) {
    int tables = 0;
    for (std::size_t at = 0; (at = line.text.find("algbw", at)) != std::string_view::npos; ++at) ++tables;
    if (tables == 0) return;
    tables_ = tables;
    each_ = line.text.find("i_min") == std::string_view::npos ? 4 : 8;
    counts_wrong_ = line.text.find("#wrong") != std::string_view::npos;
    if (line.text.find("cputime") != std::string_view::npos)
      throw InputError(line.where, "expected times of whole collectives, found those of the CPU alone (cputime)",
                       "measure without -C");
  }

  /// The benchmark's name: a word that ends in _perf, in its own lines or in the command that started it.
  void take_program(const Words& words) {
    for (std::string_view word : words) {
      if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
      if (!word.ends_with("_perf")) continue;
      op_ = collective_named(word);
      program_ = word;
    }
  }

  /// "#  Rank  0 Group  0 Pid ...": what follows "Group" may be another communicator. Other output may have cut off the
  /// "#".
  void take_rank(const Line& line, const Words& words) {
    const auto rank = std::find(words.begin(), words.end(), "Rank");
    if (words.end() - rank < 4 || !is_whole(rank[1])) return;
    const bool grouped = rank[2] == "Group" && is_whole(rank[3]);
    const bool marked = rank != words.begin() && (rank - 1)->ends_with('#');
    const auto next = rank + (grouped ? 4 : 2);
    if (!marked && (next == words.end() || *next != "Pid")) return;
    const std::int64_t number = measured_count(rank[1], "Rank", line.where);
    check_ranks(number == std::numeric_limits<std::int64_t>::max() ? number : number + 1, line.where);
    members_[grouped ? std::string(rank[3]) : "0"].insert(static_cast<int>(number));
    last_rank_ = line.where;
  }

  /// How many ranks a group has, by what was listed of them. A log may leave lines out, so the highest number counts.
  int ranks_listed() {
    const auto n_listed = [](const std::set<int>& listed) { return static_cast<int>(listed.size()); };
    int highest = 0, listed = 0;
    bool alike = true, own_numbers = true;  // each group counts its ranks from 0
    const int first = n_listed(members_.begin()->second);
    for (const auto& [group, numbers] : members_) {
      highest = std::max(highest, *numbers.rbegin() + 1);
      listed += n_listed(numbers);
      alike = alike && n_listed(numbers) == first;
      own_numbers = own_numbers && *numbers.rbegin() + 1 == n_listed(numbers);
    }
    const int groups = static_cast<int>(members_.size());
    if (own_numbers || listed == highest) return alike ? first : 0;
    if (highest % groups != 0) return 0;
    found_.warnings.push_back(fmt::format("{}: the log lists {} ranks, of which the highest is {}; taken as {} ranks{}",
                                          last_rank_, listed, highest - 1, highest / groups,
                                          groups > 1 ? fmt::format(" in each of {} groups", groups) : ""));
    return highest / groups;
  }

  /// All that was said of ranks since the last row is one run's.
  void close_run() {
    if (members_.empty()) return;
    const int ranks = ranks_listed();
    if (ranks == 0 || (found_.ranks && *found_.ranks != ranks))
      throw InputError(last_row_,
                       fmt::format("expected runs of one number of ranks, found {} and others",
                                   ranks == 0 ? members_.begin()->second.size() : static_cast<std::size_t>(ranks)),
                       "put each run into a file of its own");
    found_.ranks = ranks;
    members_.clear();
  }

  void take_row(const Line& line, const Words& words, std::size_t start) {
    if (op_is_unknown())
      throw InputError(line.where, fmt::format("expected a collective that is known here, found rows of {}", program_),
                       "take its rows out of the file");
    Row row{.op = op_, .line = line.number, .where = line.where};
    last_row_ = line.where;
    row.bytes = {measured_count(after_tag(words[start]), "size", line.where)};
    row.variant = words[start + 2];
    std::size_t at = start + 3;
    Words figures;
    // Until 2020 all_gather and broadcast printed no operation, and most no root.
    if (at < words.size() && is_operation(words[at])) row.variant += fmt::format(" {}", words[at++]);
    while (at < words.size() && is_figure(words[at])) figures.push_back(words[at++]);
    const bool rooted = figures.size() % 4 == 1;
    if (rooted) {
      row.variant += fmt::format(" {}", figures.front());
      figures.erase(figures.begin());
    }
    const std::size_t one = static_cast<std::size_t>(each_), all = one * static_cast<std::size_t>(tables_);
    if (figures.size() != all &&
        !(figures.size() == one && only_in_place(line, words[at - one - 1], words[at - one]))) {
      return leave_out(
          line, fmt::format("expected {} columns after the operation and its root, found {}", all, figures.size()));
    }
    if (at < words.size() && is_date(words[at])) ++at;
    if (at < words.size() && is_clock(words[at])) ++at;
    if (tables_ == 2 && at + 3 == words.size() && is_whole(words[at + 2]))
      at += 3;  // rccl-tests -M: algorithm, protocol, channels
    if (at < words.size())
      return leave_out(line, fmt::format("expected the end of the row, found {}", in_quotes(words[at])));
    const bool in_place = figures.size() != all;
    take_figures(row, figures, in_place, line.where);
    if (tables_ == 2 && !in_place) take_figures(row, {figures.begin() + each_, figures.end()}, true, line.where);
    found_.rows.push_back(std::move(row));
  }

  bool op_is_unknown() const { return !program_.empty() && !op_; }

  /// Of two tables the first one is blank: nccl-tests where it measures in place only.
  bool only_in_place(const Line& line, std::string_view before, std::string_view after) const {
    const auto blank = after.data() - (before.data() + before.size());
    return tables_ == 2 && !line.cut && blank >= 30;
  }

  /// time algbw busbw wrong, and with -I: min max p99 cv%.
  void take_figures(Row& row, const Words& figures, bool in_place, const std::string& where) const {
    (in_place ? row.in_place : row.time) = measured_time(figures[0], "time", where);
    (in_place ? row.in_place_algbw : row.algbw) = measured_number(figures[1], "algbw", where);
    (in_place ? row.in_place_busbw : row.busbw) = measured_number(figures[2], "busbw", where);
    if (counts_wrong_ && figures[3] != "N/A") {
      const Number wrong = measured_number(figures[3], "#wrong", where);
      if (wrong.value > 9e18) throw InputError(where, fmt::format("expected a count for #wrong, found {}", figures[3]));
      row.wrong = row.wrong.value_or(0) + static_cast<std::int64_t>(wrong.value);
    }
    if (each_ != 8 || in_place) return;
    row.min = measured_time(figures[4], "i_min", where);
    row.max = measured_time(figures[5], "i_max", where);
  }

  Found found_;
  std::optional<CollectiveOp> op_;
  std::string program_, last_row_, last_rank_;
  int tables_ = 2, each_ = 4;  // what all versions print but those whose header says otherwise
  bool counts_wrong_ = false;
  std::map<std::string, std::set<int>> members_;  // [group] the ranks that are listed
};

/// Columns of OSU's header are two blanks apart, their names have single ones.
std::vector<std::string> osu_columns(std::string_view header) {
  std::vector<std::string> columns;
  for (const std::string_view word : words_of(header)) {
    if (word == "#") continue;
    const bool joined = !columns.empty() && word.data()[-1] == ' ' && word.data()[-2] != ' ' && word.data()[-2] != '\t';
    if (joined && columns.back() != "Size")
      columns.back() += fmt::format(" {}", word);
    else
      columns.emplace_back(word);
  }
  return columns;
}

}  // namespace

bool is_osu(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(),
                     [](const Line& line) { return line.text.find("# OSU ") != std::string_view::npos; });
}

bool is_nccl_text(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const Line& line) {
    return row_start(words_of(line.text)) != std::string_view::npos ||
           line.text.find("algbw") != std::string_view::npos;
  });
}

Found read_nccl_text(const std::vector<Line>& lines) { return Log().read(lines); }

Found read_osu(const std::vector<Line>& lines) {
  Found found{.format = "OSU text", .from_benchmark = true};
  std::optional<CollectiveOp> op;
  std::string title;
  std::vector<std::string> columns;
  for (const Line& line : lines) {
    take_comment(line.text, found.about);
    const Words words = words_of(line.text);
    if (const std::size_t at = line.text.find("# OSU "); at != std::string_view::npos) {
      title = line.text.substr(at + 2);
      const Words parts = words_of(title);  // "OSU MPI-CUDA Allreduce Latency Test v5.7"
      op = parts.size() > 2 ? collective_named(parts[2]) : std::nullopt;
      columns.clear();
      if (op) continue;
      throw InputError(line.where, fmt::format("expected a benchmark of a collective, found {}", in_quotes(title)));
    }
    if (line.text.find("# Size") != std::string_view::npos) {
      columns = osu_columns(line.text.substr(line.text.find("# Size")));
      if (std::find(columns.begin(), columns.end(), "Avg Latency(us)") == columns.end())
        throw InputError(line.where, "expected a column \"Avg Latency(us)\", found none",
                         "collectives that block are read");
      continue;
    }
    const std::string_view first = words.empty() ? std::string_view() : after_tag(words[0]);
    if (words.empty() || !is_whole(first) || columns.empty()) continue;
    if (words.size() != columns.size()) {
      if (!line.cut)
        throw InputError(line.where,
                         fmt::format("expected {} columns, as the header has, found {}", columns.size(), words.size()));
      found.warnings.push_back(line.where + ": the file's last line is cut; it is left out");
      continue;
    }
    Row row{.op = op, .per_rank = true, .line = line.number, .where = line.where};
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == "Size") row.bytes = {measured_count(first, "Size", line.where)};
      if (columns[i] == "Avg Latency(us)") row.time = measured_time(words[i], columns[i], line.where);
      if (columns[i] == "Min Latency(us)") row.min = measured_time(words[i], columns[i], line.where);
      if (columns[i] == "Max Latency(us)") row.max = measured_time(words[i], columns[i], line.where);
    }
    found.rows.push_back(std::move(row));
  }
  return found;
}

}  // namespace ringsim::measured
