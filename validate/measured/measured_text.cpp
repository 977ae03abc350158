// Reads output of nccl-tests, rccl-tests and mscclpp-test among other output of a job. One class reads all lines: what
// a line means depends on those before it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/log_machine.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

namespace {

using Words = std::vector<std::string_view>;

template <std::size_t n>
bool is_one_of(std::string_view word, const std::array<std::string_view, n>& known) {
  return std::find(known.begin(), known.end(), word) != known.end();
}

bool is_type(std::string_view word) {
  static constexpr std::array known = std::to_array<std::string_view>(
      {"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "float", "double", "bfloat16", "char", "int",
       "bf16", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", "float16", "float32"});
  return is_one_of(word, known);
}

bool is_operation(std::string_view word) {
  static constexpr std::array known =
      std::to_array<std::string_view>({"sum", "prod", "max", "min", "avg", "mulsum", "none", "all"});
  return is_one_of(word, known);
}

/// A number of a result's columns, or what stands if nothing was counted.
bool is_figure(std::string_view word) {
  if (word == "N/A" || number_in(word).has_value()) return true;
  // With a decimal comma, or commas between thousands.
  return word.find(',') != std::string_view::npos && word.find_first_not_of("0123456789.,") == std::string_view::npos &&
         word.front() != ',' && word.back() != ',';
}

/// Without what mpirun --tag-output, srun -l and others put before a line and its first word: "[1,0]<stdout>:4" -> "4".
std::string_view after_tag(std::string_view word) {
  const std::size_t at = word.find_last_of(":>|]");
  return at == std::string_view::npos ? word : word.substr(at + 1);
}

bool is_size(std::string_view word) {
  if (word.empty() || word.front() < '0' || word.front() > '9') return false;
  return is_whole(word) || is_whole(Commas::plain_whole(word));
}

/// The word at which the row begins: two whole numbers before the name of a type. npos: it is none.
std::size_t row_start(const Words& words) {
  for (std::size_t i = 2; i < words.size(); ++i)
    if (is_size(words[i - 1]) && is_type(words[i]) && is_size(after_tag(words[i - 2]))) return i - 2;
  return std::string_view::npos;
}

/// How many figures the line ends with.
std::size_t figures_at_end(const Words& words) {
  const auto figures = std::find_if_not(words.rbegin(), words.rend(), is_figure);
  return static_cast<std::size_t>(figures - words.rbegin());
}

/// A row that has lost its first columns: so many figures behind each other, the two bandwidths with a point. (NCCL
/// lists the ranks of a channel: `NCCL INFO Channel 00/24 : 0 1 2 3 4 5 6 7`.)
bool is_torn(const Words& words) {
  const std::size_t figures = figures_at_end(words);
  const auto has_point = [](std::string_view word) { return word.find_first_of(".,") != std::string_view::npos; };
  return figures >= 6 && std::count_if(words.end() - static_cast<long>(figures), words.end(), has_point) >= 2;
}

bool is_date(std::string_view word) {
  return word.size() == 10 && word[4] == '-' && word[7] == '-' && is_whole(word.substr(0, 4));
}
bool is_clock(std::string_view word) { return word.size() >= 8 && word[2] == ':' && word[5] == ':'; }

/// The columns of rows, as the heading names them.
struct RowLayout {
  int tables = 2;  ///< out of place and in place; most versions print both
  std::size_t each = 4;
  bool counts_wrong = false;
  bool has_type = true;         ///< mscclpp-test prints none
  bool in_place_first = false;  ///< or the only table is in place
};

/// The columns of a table: time, algbw, busbw; most versions print wrong elements ("error" before 2022), -I four more.
std::size_t columns_in(std::string_view heading) {
  const auto has = [&](const char* word) { return heading.find(word) != std::string_view::npos; };
  return has("i_min") ? 8 : has("wrong") || has("error") ? 4 : 3;
}

/// Reads the log of one or several runs.
class Log {
 public:
  Found read(const std::vector<Line>& lines) {
    found_.format = "nccl-tests text";
    found_.from_benchmark = true;
    found_.runs.emplace_back();
    for (const Line& line : lines) {
      if (has_bars(line.text)) {
        Line plain = line;
        plain.text = cells_.emplace_back(cells_in_line(line.text));
        take(plain);
      } else {
        take(line);
      }
    }
    end_broken_row();
    close_run();
    machine_.tell(found_.about);
    return std::move(found_);
  }

 private:
  void take(const Line& line) {
    const Words words = words_of(line.text);
    if (!broken_.words.empty() && !words.empty() && ends_broken_row(words)) return;
    end_broken_row();
    std::size_t start = row_start(words);
    if (start == words_none && !heading_.has_type && is_untyped_row(words)) start = 0;
    if (start != words_none) return take_row(line, words, start);
    take_comment(line.text, found_.about);
    machine_.take_release(line.text);
    take_heading(line);
    take_program(line, words);
    take_rank(line, words);
    if (line.text.find("# nThread ") != std::string_view::npos) begin_run();
    const bool sums_up = line.text.find("# Out of bounds values") != std::string_view::npos;
    run_is_over_ = run_is_over_ || sums_up || line.text.find("# Avg bus bandwidth") != std::string_view::npos;
    if (sums_up && line.text.find("FAILED") != std::string_view::npos)
      found_.warnings.push_back(line.where() + ": the benchmark found wrong results: the timed runs were incorrect");
    const bool comment = line.text.find('#') != std::string_view::npos;
    if (!comment && is_torn(words))
      leave_out(line, "expected size, count and type before these figures, found a row without them");
  }

  /// For a row that other output has torn or that is cut: the rest of the file is good.
  void leave_out(const Line& line, const std::string& why) {
    if (line.cut)
      found_.warnings.push_back(line.where() + ": the last line of the file is incomplete and was ignored");
    else
      found_.leave_out(line.where(), why);
  }

  /// Lines before rows belong to their run; lines after rows, to the next one.
  void begin_run() {
    if (!run_has_rows_) return;
    close_run();
    found_.runs.emplace_back();
    run_has_rows_ = run_is_over_ = program_is_stated_ = false;
    programs_.clear();
  }

  /// "#  size  count  type  redop  root  time  algbw ...".
  void take_heading(const Line& line) {
    const bool names_places = line.text.find("in-place") != std::string_view::npos;
    if (names_places && line.text.find('#') != std::string_view::npos) {
      begin_run();
      const std::size_t out = line.text.find("out-of-place"), in = line.text.find("in-place");
      next_in_place_first_ = in < out;
      return;
    }
    const auto has = [&](const char* word) { return line.text.find(word) != std::string_view::npos; };
    // A heading that was too wide continues in the next line.
    const bool continues = heading_line_ == line.number - 1 && !has("size") && (has("busbw") || has("wrong"));
    if (!continues && !has("algbw")) return;
    if (has("cputime"))
      throw InputError(line.where(), "expected times of whole collectives, found CPU times only (cputime)",
                       "measure without -C");
    if (!continues) {
      begin_run();
      heading_text_.clear();
      heading_.in_place_first = std::exchange(next_in_place_first_, false);
    }
    heading_line_ = line.number;
    heading_text_.append(line.text) += ' ';
    const std::string_view names = heading_text_;
    heading_.tables = 0;
    for (std::size_t at = 0; (at = names.find("algbw", at)) != std::string_view::npos; ++at) ++heading_.tables;
    heading_.each = columns_in(names);
    heading_.counts_wrong = names.find("#wrong") != std::string_view::npos;
    heading_.has_type = names.find("type") != std::string_view::npos;
  }

  /// The benchmark's name: a word that ends in _perf, in its own lines or in the command that started it.
  void take_program(const Line& line, const Words& words) {
    if (line.text.find("Collective test concluded") != std::string_view::npos) return;
    const bool starts = line.text.find("Collective test starting") != std::string_view::npos;
    if (starts) {
      begin_run();
      programs_.clear();
    } else if (program_is_stated_ && !run_has_rows_) {
      return;
    }
    for (std::string_view word : words) {
      if (const std::size_t slash = word.rfind('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
      word = word.substr(0, word.find_last_not_of(";,:)]}'\"") + 1);
      word = word.substr(std::min(word.find_first_not_of("([{'\""), word.size()));
      if (!word.ends_with("_perf") || word == "_perf") continue;
      if (run_has_rows_ && programs_.contains(std::string(word))) continue;
      begin_run();
      programs_.emplace(word);
    }
    program_is_stated_ = program_is_stated_ || starts;
    if (!run_has_rows_) name_run();
  }

  /// A script may name several programs before it runs the first. The run has no name then.
  void name_run() {
    std::set<CollectiveOp> ops;
    for (const std::string& program : programs_)
      if (const auto op = collective_named(program)) ops.insert(*op);
    Run& run = found_.runs.back();
    run.op = ops.size() == 1 ? std::optional(*ops.begin()) : std::nullopt;
    run.program = ops.empty() && !programs_.empty() ? *programs_.begin() : "";
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
    begin_run();
    const std::int64_t number = measured_count(rank[1], "Rank", line.where());
    check_ranks(number == std::numeric_limits<std::int64_t>::max() ? number : number + 1, line.where());
    members_[grouped ? std::string(rank[3]) : "0"].insert(static_cast<int>(number));
    machine_.take_rank({next, words.end()});
    last_rank_ = line.where();
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
    found_.warnings.push_back(fmt::format("{}: the log lists {} rank{}, and the highest is {}; assuming {} ranks{}",
                                          last_rank_, listed, listed == 1 ? "" : "s", highest - 1, highest / groups,
                                          groups > 1 ? fmt::format(" in each of {} groups", groups) : ""));
    return highest / groups;
  }

  /// Assigns the listed ranks to this run, and to no other.
  void close_run() {
    if (members_.empty()) return;
    const int ranks = ranks_listed();
    if (ranks == 0)
      throw InputError(last_rank_, "expected groups with the same number of ranks, found other groups",
                       "the rows belong to several concurrent collectives that are not identical");
    found_.runs.back().ranks = ranks;
    machine_.end_run(ranks * static_cast<int>(members_.size()));
    members_.clear();
  }

  /// A row of mscclpp-test: two whole numbers, then only figures, of one table or both.
  bool is_untyped_row(const Words& words) const {
    if (words.size() < 5 || !is_size(after_tag(words[0])) || !is_size(words[1])) return false;
    return figures_at_end(words) >= words.size() - 1 && words[2].find('.') != std::string_view::npos;
  }

  /// Joins a row that a narrow window or a mail has wrapped: its figures continue in this line.
  bool ends_broken_row(const Words& words) {
    const std::size_t all = heading_.each * static_cast<std::size_t>(heading_.tables);
    const std::size_t together = broken_.figures + words.size();
    if (figures_at_end(words) != words.size() || (together != all && together != all + 1)) return false;
    Words whole = broken_.words;
    whole.insert(whole.end(), words.begin(), words.end());
    const Line line = broken_.line;
    broken_ = {};
    take_row(line, whole, 0);
    return true;
  }

  void end_broken_row() {
    if (broken_.words.empty()) return;
    const std::size_t all = heading_.each * static_cast<std::size_t>(heading_.tables);
    leave_out(broken_.line,
              fmt::format("expected {} columns after the operation and its root, found {}", all, broken_.without_root));
    broken_ = {};
  }

  void take_row(const Line& line, const Words& words, std::size_t start) {
    if (run_is_over_) begin_run();
    Row row{.op = std::nullopt, .run = found_.runs.size() - 1, .line = line.number};
    row.where = line.where();
    row.bytes = {measured_count(Commas::plain_whole(after_tag(words[start])), "size", row.where)};
    std::size_t at = start + 2;
    if (heading_.has_type || (at < words.size() && is_type(words[at]))) row.type = words[at++];
    run_has_rows_ = true;
    Words figures;
    // Until 2020 all_gather and broadcast printed no operation, and most no root.
    if (at < words.size() && is_operation(words[at])) row.redop = words[at++];
    while (at < words.size() && is_figure(words[at])) figures.push_back(words[at++]);
    const std::size_t printed = figures.size();
    const std::size_t one = heading_.each, all = one * static_cast<std::size_t>(heading_.tables);
    if (printed == 1 || printed == one + 1 || printed == all + 1) {
      row.root = figures.front();
      figures.erase(figures.begin());
    }
    // mscclpp-test prints no column of wrong elements if it does not check.
    const bool uncounted = !heading_.has_type && figures.size() == 3;
    const bool half = heading_.tables == 2 && (figures.size() == one || uncounted);
    const bool second = half && is_second_table(line, words, at - figures.size());
    if (figures.size() != all && !second && !(half && !heading_.has_type)) {
      if (at == words.size() && !line.cut) {
        broken_ = {.line = line,
                   .words = {words.begin() + static_cast<long>(start), words.end()},
                   .figures = printed,
                   .without_root = figures.size()};
        return;
      }
      return leave_out(
          line, fmt::format("expected {} columns after the operation and its root, found {}", all, figures.size()));
    }
    if (at < words.size() && is_date(words[at])) ++at;
    if (at < words.size() && is_clock(words[at])) ++at;
    if (heading_.tables == 2 && at + 3 == words.size() && is_whole(words[at + 2]))
      at += 3;  // rccl-tests -M: algorithm, protocol, channels
    if (at < words.size())
      return leave_out(line, fmt::format("expected the end of the row, found {}", in_quotes(words[at])));
    if (take_tables(row, figures, second)) found_.rows.push_back(std::move(row));
  }

  /// True if the first of two tables is blank: nccl-tests prints so if it measures in place only.
  bool is_second_table(const Line& line, const Words& words, std::size_t first) const {
    const auto blank = words[first].data() - (words[first - 1].data() + words[first - 1].size());
    return !line.cut && blank >= 30;
  }

  /// Reads one table or both. Returns false if the row must be left out.
  bool take_tables(Row& row, const Words& figures, bool second) {
    const std::size_t one = std::min(heading_.each, figures.size());
    const bool first_in_place = heading_.in_place_first != second;
    const Words first(figures.begin(), figures.begin() + static_cast<long>(one));
    const auto flaw = take_figures(row, first, first_in_place);
    if (figures.size() == one) {
      if (flaw) found_.leave_out(row.where, *flaw);
      return !flaw;
    }
    const auto other = take_figures(row, {figures.begin() + static_cast<long>(one), figures.end()}, !first_in_place);
    const auto& out = first_in_place ? other : flaw;
    const auto& in = first_in_place ? flaw : other;
    if (out) found_.leave_out(row.where, *out);
    if (!out && in) found_.warnings.push_back(fmt::format("{}: {}; the in-place time is ignored", row.where, *in));
    return !out;
  }

  /// time algbw busbw wrong, and with -I: min max p99 cv%. Returns a flaw, and reads none of them
  /// then.
  std::optional<std::string> take_figures(Row& row, const Words& printed, bool in_place) const {
    static constexpr std::array names =
        std::to_array<const char*>({"time", "algbw", "busbw", "#wrong", "i_min", "i_max"});
    constexpr std::size_t wrong = 3, least = 4, most = 5;
    const std::size_t used = std::min(printed.size(), names.size());
    Commas commas;
    for (std::size_t i = 0; i < used; ++i) commas.see(printed[i]);
    std::vector<std::string> figures;
    const auto measure = [&](std::size_t i) { return i == 0 || i >= least ? Measure::time : Measure::quantity; };
    for (std::size_t i = 0; i < used; ++i) {
      figures.push_back(commas.plain(printed[i], names[i], row.where));
      const bool uncounted = i == wrong && (!heading_.counts_wrong || figures[i] == "N/A");
      if (auto flaw = uncounted ? std::nullopt : flaw_of(figures[i], measure(i), names[i])) return flaw;
    }
    const auto number = [&](std::size_t i) { return measured_number(figures[i], measure(i), names[i], row.where); };
    Timed& timed = in_place ? row.in : row.out;
    timed.time = number(0);
    timed.algbw = number(1);
    timed.busbw = number(2);
    if (used > wrong && heading_.counts_wrong && figures[wrong] != "N/A") {
      const Number elements = number(wrong);
      if (elements.value > 9e18)
        throw InputError(row.where, fmt::format("expected a count for #wrong, found {}", figures[wrong]));
      row.wrong = row.wrong.value_or(0) + static_cast<std::int64_t>(elements.value);
    }
    if (heading_.each == 8 && used == names.size() && !in_place) row.min = number(least), row.max = number(most);
    return std::nullopt;
  }

  static constexpr std::size_t words_none = std::string_view::npos;

  /// A row whose line ended before its last figure. `figures`: counted with the root.
  struct Broken {
    Line line;
    Words words;
    std::size_t figures = 0, without_root = 0;
  };

  Found found_;
  std::deque<std::string> cells_;  // of lines with bars
  Broken broken_;
  RowLayout heading_;
  std::string heading_text_;
  int heading_line_ = -1;
  bool next_in_place_first_ = false;
  bool run_has_rows_ = false, run_is_over_ = false;
  std::set<std::string> programs_;  // that the run's lines name
  bool program_is_stated_ = false;  // "# Collective test starting: ...": what else is named does not matter
  std::string last_rank_;
  std::map<std::string, std::set<int>> members_;  // [group] the ranks that are listed
  LogMachine machine_;
};

}  // namespace

bool has_nccl_rows(const std::vector<Line>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const Line& line) {
    if (!has_bars(line.text)) return row_start(words_of(line.text)) != std::string_view::npos;
    const std::string cells = cells_in_line(line.text);
    return row_start(words_of(cells)) != std::string_view::npos;
  });
}

Found read_nccl_text(const std::vector<Line>& lines) { return Log().read(lines); }

}  // namespace ringsim::measured
