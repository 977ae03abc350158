// Chooses the runs of a log that are compared.
#include "validate/measured/measured_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"

namespace ringsim::measured {

std::string Row::variant() const {
  std::string text;
  for (const std::string& word : {type, redop, root})
    if (!word.empty()) text += (text.empty() ? "" : " ") + word;
  return text;
}

void Found::leave_out(const std::string& where, const std::string& why) {
  warnings.push_back(fmt::format("{}{}{}; the row is ignored", where, where.empty() ? "" : ": ", why));
}

namespace {

/// Turns a rank's own part into the bytes that nccl-tests counts.
void total_bytes(Row& row, std::optional<int> ranks) {
  const bool totaled = *row.op == CollectiveOp::all_gather || *row.op == CollectiveOp::all_to_all ||
                       *row.op == CollectiveOp::gather || *row.op == CollectiveOp::scatter;
  if (!row.per_rank || !totaled) return;
  if (!ranks)
    throw InputError(
        row.where,
        fmt::format("expected to find the number of ranks, because sizes of {} here are per rank", to_string(*row.op)),
        "add a line \"# ranks: N\" to the file");
  if (row.bytes.count > std::numeric_limits<std::int64_t>::max() / *ranks)
    throw InputError(row.where, "expected a size that 64 bits can count in bytes");
  row.bytes.count *= *ranks;
}

}  // namespace

std::string RunRows::text() const {
  return fmt::format("run {} ({}{} row{}{})", number, line > 0 ? fmt::format("line {}, ", line) : "", rows.size(),
                     rows.size() == 1 ? "" : "s",
                     ranks ? fmt::format(", {} rank{}", *ranks, *ranks == 1 ? "" : "s") : "");
}

std::string texts_of(std::span<const RunRows> runs) {
  std::vector<std::string> texts;
  for (const RunRows& run : runs) texts.push_back(run.text());
  return fmt::format("{}", fmt::join(texts, ", "));
}

namespace {

std::string ops_text(const ComparedWith& with) {
  std::vector<std::string_view> names;
  for (const CollectiveOp op : with.ops) names.push_back(to_string(op));
  return fmt::format("{}", fmt::join(names, " or "));
}

std::string ranks_text(const ComparedWith& with) { return fmt::format("{} ranks", fmt::join(with.ranks, " or ")); }

}  // namespace

Runs::Runs(Found found, std::string name, std::optional<CollectiveOp> given)
    : found_(std::move(found)), name_(std::move(name)) {
  std::map<std::size_t, std::vector<Row>> rows;
  for (Row& row : found_.rows) {
    if (row.out.time || row.in.time)
      rows[row.run].push_back(std::move(row));
    else
      found_.warnings.push_back(row.where + ": no time was printed; the row is ignored");
  }
  found_.rows.clear();
  for (auto& [number, own] : rows) split_at_repetitions(found_.runs.at(number), std::move(own));
  if (runs_.empty()) refuse_empty();
  for (std::size_t i = 0; i < runs_.size(); ++i) runs_[i].number = static_cast<int>(i) + 1;
  take_statements(given);
}

/// Sizes that begin again in a benchmark's output start another run, unless the benchmark numbers its cycles.
void Runs::split_at_repetitions(const Run& run, std::vector<Row> rows) {
  std::set<std::tuple<std::optional<CollectiveOp>, std::int64_t, std::string, std::string>> seen;
  for (Row& row : rows) {
    if (!row.op) row.op = run.op;
    const std::tuple key{row.op, row.bytes.count, row.variant(), row.cycle};
    if (seen.empty() || (found_.from_benchmark && seen.contains(key))) {
      runs_.push_back({.ranks = run.ranks, .program = run.program, .line = row.line});
      seen.clear();
    }
    seen.insert(key);
    runs_.back().rows.push_back(std::move(row));
  }
}

void Runs::refuse_empty() const {
  const std::vector<std::string>& lost = found_.warnings;
  std::string hint = lost.empty() ? "" : lost.front();
  if (lost.size() > 1) hint += fmt::format(", and {} more", lost.size() - 1);
  throw InputError(name_, fmt::format("expected rows with times ({}), found none", found_.format), hint);
}

/// Applies comments and the command line to all rows.
void Runs::take_statements(std::optional<CollectiveOp> given) {
  std::optional<CollectiveOp> stated;
  if (const auto written = found_.about.find("collective"); written != found_.about.end()) {
    stated = collective_named(written->second);
    if (!stated)
      throw InputError(
          name_, fmt::format("expected a collective behind \"# collective:\", found {}", in_quotes(written->second)));
  }
  for (RunRows& run : runs_) {
    for (Row& row : run.rows) {
      if (!row.op && run.program.empty()) row.op = stated;
      if (given && row.op && *row.op != *given)
        throw InputError(row.where, fmt::format("expected rows of {} as specified, found {}", to_string(*given),
                                                to_string(*row.op)));
      if (!row.op && run.program.empty()) row.op = given;
    }
  }
  const auto written = found_.about.find("ranks");
  if (written == found_.about.end()) return;
  const int ranks = check_ranks(measured_count(written->second, "\"# ranks:\"", name_), name_);
  for (RunRows& run : runs_) {
    if (run.ranks && *run.ranks != ranks)
      throw InputError(
          name_, fmt::format("expected one number of ranks, found \"# ranks: {}\" and {} in the log itself", ranks,
                             *run.ranks));
    run.ranks = ranks;
  }
}

MeasuredTable Runs::table(std::optional<int> number, const std::optional<ComparedWith>& with) const {
  std::vector<RunRows> runs = runs_;
  std::vector<std::string> warnings = found_.warnings;
  name_collectives(runs, with, warnings);
  choose(runs, number, with.has_value(), warnings);
  if (with) keep_compared_rows(runs, *with, warnings);
  require_one_number_of_ranks(runs, with);
  MeasuredTable table{.file = name_, .format = found_.format, .ranks = std::nullopt, .about = found_.about};
  for (const RunRows& run : runs)
    if (!table.ranks) table.ranks = run.ranks;
  const bool told = with && with->ranks.size() == 1;
  for (RunRows& run : runs)
    for (Row& row : run.rows) total_bytes(row, run.ranks || !told ? run.ranks : with->ranks.front());
  table.rows = joined_rows(runs, found_.from_benchmark, name_, warnings);
  for (const MeasuredRow& row : table.rows)
    if (row.wrong.value_or(0) > 0)
      warnings.push_back(fmt::format("{}: {} wrong elements at {}: the timed run was incorrect", name_, *row.wrong,
                                     format(row.bytes)));
  table.warnings = std::move(warnings);
  return table;
}

Bytes Runs::first_size() const { return runs_.front().rows.front().bytes; }

std::optional<CollectiveOp> Runs::only_op(std::optional<int> number) const {
  std::vector<RunRows> runs = runs_;
  std::vector<std::string> warnings;  // table() says them
  name_collectives(runs, std::nullopt, warnings);
  std::set<CollectiveOp> ops;
  for (const RunRows& run : runs)
    for (const Row& row : run.rows)
      if (row.op && run.number == number.value_or(run.number)) ops.insert(*row.op);
  if (ops.size() != 1) return std::nullopt;
  return *ops.begin();
}

/// Rows without a name take the collective of the run before them, of the file's name, or of the scenario, if their
/// bandwidths allow it. Otherwise their run gets a refusal.
void Runs::name_collectives(std::vector<RunRows>& runs, const std::optional<ComparedWith>& with,
                            std::vector<std::string>& warnings) const {
  const RunRows* before = nullptr;
  bool said_name = false, said_scenario = false;
  const auto warn = [&](bool& said, const std::string& text) {
    if (!std::exchange(said, true))
      warnings.push_back(fmt::format("{}: the file does not name the collective; {}", name_, text));
  };
  for (RunRows& run : runs) {
    const bool nameless = std::any_of(run.rows.begin(), run.rows.end(), [](const Row& row) { return !row.op; });
    std::optional<CollectiveOp> op;
    if (nameless && !run.program.empty()) {
      run.refusal =
          InputError(run.rows.front().where, fmt::format("expected a known collective, found rows of {}", run.program),
                     "remove its rows from the file");
    } else if (nameless && before != nullptr && may_be_as_before(run, *before)) {
      op = before->rows.back().op;
    } else if (const auto by_name = nameless ? collective_in(name_) : std::nullopt) {
      op = by_name;
      warn(said_name, fmt::format("{} is taken from the file name", to_string(*op)));
    } else if (const auto by_scenario = nameless && with ? compared_op(run, *with) : std::nullopt) {
      op = by_scenario;
      warn(said_scenario,
           fmt::format("the collective of the scenario, {}, is used because busbw fits it", to_string(*op)));
    } else if (nameless) {
      run.refusal = nameless_error(run, with);
    }
    for (Row& row : run.rows)
      if (op) row.op = row.op.value_or(*op);
    if (!run.refusal) before = &run;
  }
}

/// Keeps the run that was asked for, or all that have no refusal.
void Runs::choose(std::vector<RunRows>& runs, std::optional<int> number, bool compares,
                  std::vector<std::string>& warnings) const {
  if (number && *number > static_cast<int>(runs.size()))
    throw InputError(name_, fmt::format("expected a run from 1 to {}, found {}", runs.size(), *number),
                     "it has " + texts_of(runs));
  std::vector<RunRows> chosen;
  const RunRows* refused = nullptr;
  for (const RunRows& run : runs) {
    if (number && run.number != *number) continue;
    if (run.refusal)
      refused = refused == nullptr ? &run : refused;
    else
      chosen.push_back(run);
  }
  if (refused != nullptr && (chosen.empty() || !compares)) throw *refused->refusal;
  if (refused != nullptr)
    for (const RunRows& run : runs)
      if (run.refusal)
        warnings.push_back(fmt::format("{}: {} is ignored: {}", name_, run.text(), run.refusal->message()));
  runs = std::move(chosen);
}

InputError Runs::nameless_error(const RunRows& run, const std::optional<ComparedWith>& with) const {
  const std::string fits = what_fits(run.rows);
  std::string found = "found no information";
  if (!fits.empty())
    found =
        fmt::format("found no information; busbw fits {}{}", fits,
                    with ? fmt::format(", not the {} of {} in the scenario", ops_text(*with), ranks_text(*with)) : "");
  return {run.rows.front().where, "expected to find the measured collective, " + found,
          "set it with --collective NAME, or with a line \"# collective: all_reduce\" in the file"};
}

/// True if a run without a name may be of the program before it: logs name a program once, before a loop.
bool Runs::may_be_as_before(const RunRows& run, const RunRows& before) const {
  if (!found_.format.ends_with("text")) return false;
  const CollectiveOp op = *before.rows.back().op;
  const std::optional<int> ranks = run.ranks ? run.ranks : before.ranks;
  return ranks && rows_fit(run.rows, op, *ranks) ? true : !run.ranks && may_be(run.rows, op);
}

/// The scenario's collective, if the run's bandwidths fit it and its number of ranks.
std::optional<CollectiveOp> Runs::compared_op(const RunRows& run, const ComparedWith& with) {
  std::optional<CollectiveOp> found;
  for (const CollectiveOp op : with.ops) {
    const bool fits = std::any_of(with.ranks.begin(), with.ranks.end(), [&](int ranks) {
      return run.ranks.value_or(ranks) == ranks && rows_fit(run.rows, op, ranks);
    });
    if (fits && found) return std::nullopt;
    if (fits) found = op;
  }
  return found;
}

/// Leaves out rows of collectives that the scenario lacks, and runs of other numbers of ranks unless all are.
void Runs::keep_compared_rows(std::vector<RunRows>& runs, const ComparedWith& with,
                              std::vector<std::string>& warnings) const {
  std::map<std::string, int> others;
  std::vector<RunRows> of_ops;
  for (RunRows& run : runs) {
    std::erase_if(run.rows, [&](const Row& row) {
      const bool other = std::find(with.ops.begin(), with.ops.end(), *row.op) == with.ops.end();
      if (other) ++others[std::string(to_string(*row.op))];
      return other;
    });
    if (!run.rows.empty()) of_ops.push_back(std::move(run));
  }
  std::vector<std::string> other_rows;
  for (const auto& [op, n] : others) other_rows.push_back(fmt::format("{} {}", n, op));
  const std::string listed = fmt::format("{}", fmt::join(other_rows, ", "));
  if (of_ops.empty())
    throw InputError(name_, fmt::format("expected rows of {} as in the scenario, found {}", ops_text(with), listed),
                     "the file may belong to another scenario; to change the collective of the scenario, use --set "
                     "collective.op=NAME");
  if (!others.empty())
    warnings.push_back(fmt::format("{}: rows of other collectives are not compared: {}", name_, listed));
  runs = std::move(of_ops);

  std::vector<RunRows> kept, left;
  for (const RunRows& run : runs) (fits_ranks(run, with) ? kept : left).push_back(run);
  if (kept.empty()) {
    refuse_other_ranks(runs, with);
    return;
  }
  if (!left.empty())
    warnings.push_back(
        fmt::format("{}: not compared because the scenario has {}: {}", name_, ranks_text(with), texts_of(left)));
  runs = std::move(kept);
}

/// True if a run has the scenario's number of ranks, as listed or as its bandwidths show.
bool Runs::fits_ranks(const RunRows& run, const ComparedWith& with) {
  return std::any_of(with.ranks.begin(), with.ranks.end(), [&](int ranks) {
    if (run.ranks) return *run.ranks == ranks;
    return std::all_of(run.rows.begin(), run.rows.end(), [&](const Row& row) {
      return busbw_fits(row.out, row.bytes, *row.op, ranks) && busbw_fits(row.in, row.bytes, *row.op, ranks);
    });
  });
}

/// Called if no run has the scenario's number of ranks. If the file states one number, require_measured_ranks() refuses
/// it; otherwise this does, at the first row that does not fit.
void Runs::refuse_other_ranks(const std::vector<RunRows>& runs, const ComparedWith& with) const {
  std::set<std::optional<int>> ranks;
  for (const RunRows& run : runs) ranks.insert(run.ranks);
  if (ranks.size() > 1)
    throw InputError(
        name_,
        fmt::format("expected measurements of {} as in the scenario, found {}", ranks_text(with), texts_of(runs)),
        how_to_change_ranks);
  if (*ranks.begin()) return;
  const RunRows& run = runs.front();
  for (const Row& row : run.rows) {
    const int n = with.ranks.front();
    for (const Timed* timed : {&row.out, &row.in}) {
      if (busbw_fits(*timed, row.bytes, *row.op, n)) continue;
      check_bandwidth(row, *timed, std::nullopt);
      const double algbw = static_cast<double>(row.bytes.count) / timed->time->value / 1e3;
      const std::string fits = what_fits(run.rows);
      throw InputError(
          row.where,
          fmt::format("expected busbw to be {:.2f} GB/s, which follows from {} on the {} ranks of the scenario in {} "
                      "us, found {}",
                      algbw * busbw_factor(*row.op, n), to_string(*row.op), n, timed->time->value, timed->busbw->value),
          "check the collective and the number of ranks" + (fits.empty() ? "" : "; busbw fits " + fits));
    }
  }
}

/// Refuses runs of different numbers of ranks: none of them is chosen by chance.
void Runs::require_one_number_of_ranks(const std::vector<RunRows>& runs,
                                       const std::optional<ComparedWith>& with) const {
  if (with && with->ranks.size() == 1) return;
  std::set<int> ranks;
  for (const RunRows& run : runs)
    if (run.ranks) ranks.insert(*run.ranks);
  const auto fits = [&](const RunRows& run) {
    return run.ranks || ranks.empty() || fits_ranks(run, {.ops = {}, .ranks = {*ranks.begin()}});
  };
  if (ranks.size() <= 1 && std::all_of(runs.begin(), runs.end(), fits)) return;
  throw InputError(name_, "expected runs with the same number of ranks, found " + texts_of(runs),
                   "choose a run with --run N");
}

}  // namespace ringsim::measured
