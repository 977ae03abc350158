// ringsim sweep: every point of a scenario, on all cores or machines. It may be stopped at any time and resumed later.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/table.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/junit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/reports/run_report.hpp"
#include "tools/reports/sweep_report.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/sweep_file.hpp"
#include "tools/sweep/sweep_plan.hpp"
#include "tools/sweep/sweep_point.hpp"
#include "validate/replay/mpi/mpi_pool.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/gates.hpp"

namespace ringsim::tools {
namespace {

struct SweepArguments {
  std::string scenario;
  std::vector<std::string> set;
  int jobs = 0;                ///< points at a time; 0: one per core
  std::optional<Shard> shard;  ///< none: what Slurm says, or all
  std::string output;          ///< a file; empty or "-": stdout
  bool resume = false, dry_run = false;
  std::vector<std::string> status;  ///< files whose points are counted; empty: the sweep runs
  std::vector<std::string> assertions;
  std::string baseline;
  double tolerance = 0;  ///< a share: 0.02 is 2 %
  std::string junit;     ///< a file for the verdict as XML; empty: none
  bool bound = false;    ///< each result as a share of what the machine allows
  std::string report;    ///< a page of all, FILE.html; empty: none
  bool force = false;    ///< let it replace a file that is not ringsim's

  void settle() const { expect_ending(output, {".jsonl", ".ndjson"}); }
};

void declare(Options& options, SweepArguments& sweep) {
  options.scenario(sweep.scenario, sweep.set);
  Option& jobs = options.whole("-j,--jobs", "N", 1, 4096, sweep.jobs, "the number of points to simulate at a time");
  jobs.fallback = "one per core, or under mpirun one per process";
  options.max_memory();
  options
      .read(
          "--shard", "I/N", [&sweep](const std::string& text) { sweep.shard = parse_shard(text); },
          "simulate only part I of N, split so that all parts take about the same time")
      .fallback = "the task of the Slurm job array, if any, else all points";
  options.file("-o,--output", "FILE", sweep.output,
               "write the results to FILE as JSON lines; - writes to standard output");
  options
      .flag("--resume", sweep.resume, "continue an interrupted sweep: simulate only the points that the -o file lacks")
      .needs = "--output";
  options.flag("--dry-run", sweep.dry_run, "only count the points; simulate nothing");
  options.texts(
      "--status", "FILE", sweep.status,
      "print the progress of a sweep from FILE, the -o file of a shard or of the whole sweep; simulate nothing");
  Option& assertion =
      options.texts("--assert", "CONDITION", sweep.assertions,
                    "require that CONDITION holds for every result, such as \"busbw_GBps > 40 where bytes >= 64 MiB\"");
  assertion.take = [&sweep](const std::string& text) {
    static_cast<void>(Assertion::parse(text));  // a mistake shows now
    sweep.assertions.push_back(text);
  };
  options.file("--baseline", "FILE", sweep.baseline, "compare times with the results of an earlier sweep");
  Option& tolerance = options.percentage(
      "--tolerance", [&sweep](double share) { sweep.tolerance = share; },
      "the maximum deviation of a time from the baseline, such as 2%");
  tolerance.needs = "--baseline";
  tolerance.fallback = "0%";
  options.file("--junit", "FILE", sweep.junit, "write the outcome of all gates to FILE as JUnit XML");
  options.bound(sweep.bound);
  declare_report(options, sweep.report, "write a page with plots, what-if results and the table to FILE.html");
  options.flag("--force", sweep.force, "allow --report to overwrite a file that does not contain results").needs =
      "--report";
}

constexpr std::size_t most_told = 20;  // failures on stderr; --junit has all

/// Writes rows: into the sweep's own file as they come, or to a stream in the order of the points.
class RowSink {
 public:
  RowSink(SweepFile* file, Output* stream, const std::vector<std::size_t>& points)
      : file_(file), stream_(stream), points_(points) {}

  void add(std::size_t point, std::string&& rows) {
    if (file_ != nullptr) return file_->append(rows);
    waiting_.emplace(point, std::move(rows));
    for (; next_ < points_.size(); ++next_) {
      const auto found = waiting_.find(points_[next_]);
      if (found == waiting_.end()) break;
      stream_->write(found->second);
      written_.push_back(std::move(found->second));
      waiting_.erase(found);
    }
  }
  /// What still waits for a point before it that will not come.
  void flush() {
    for (auto& [point, rows] : waiting_) {
      stream_->write(rows);
      written_.push_back(std::move(rows));
    }
    waiting_.clear();
  }
  const std::vector<std::string>& written() const { return written_; }

 private:
  SweepFile* file_;
  Output* stream_;
  const std::vector<std::size_t>& points_;
  std::map<std::size_t, std::string> waiting_;
  std::size_t next_ = 0;
  std::vector<std::string> written_;  // to the stream; those in a file are read again
};

struct Tally {
  std::size_t done = 0, no_memory = 0;
  bool stopped = false;
};

/// Takes one point's outcome; false if no more are wanted.
bool take(std::size_t point, PointOutcome&& outcome, RowSink& rows, Tally& tally, Warnings& warnings,
          IdleSettings& idle) {
  warnings.say(outcome.warnings);
  switch (outcome.kind) {
    case PointOutcome::Kind::result:
      idle.add(outcome.settings);
      rows.add(point, std::move(outcome.text));
      ++tally.done;
      return !stop_requested;
    case PointOutcome::Kind::no_memory:
      ++tally.no_memory;
      return true;
    case PointOutcome::Kind::stopped:
      tally.stopped = true;
      return false;
    case PointOutcome::Kind::lacking:
      break;
  }
  throw EnvironmentError(outcome.text);
}

std::vector<std::size_t> left_by(SweepFile& file, const SweepPlan& plan, const ScenarioFile& scenario,
                                 const std::string& path) {
  DoneRows done(scenario, plan);
  std::size_t n_stale = 0;
  const bool torn = file.read([&](ResultRow&& row, const RowPlace& place) {
    if (!done.take(row, fmt::format("{}:{}", path, place.line))) ++n_stale;
  });
  if (torn) say(fmt::format("{}: the last line was incomplete and has been dropped\n", path));
  if (n_stale > 0) {
    say(fmt::format("{}: dropped {} errors of points that are no longer in the scenario\n", path, n_stale));
    file.keep([&](const ResultRow& row) { return plan.by_key.contains(row.key); });
  }
  return done.to_do();
}

int dry_run(const ScenarioFile& file, const SweepPlan& plan, Shard shard, const SweepArguments& arguments) {
  std::vector<std::size_t> to_do = plan.points;
  if (arguments.resume && is_plain_file(arguments.output) && std::filesystem::exists(arguments.output)) {
    DoneRows done(file, plan);
    read_results(arguments.output, [&](ResultRow&& row, std::string_view, const RowPlace& place) {
      done.take(row, fmt::format("{}:{}", arguments.output, place.line));
    });
    to_do = done.to_do();
  }
  Table table({"points", ""});
  const auto line = [&](const std::string& what, std::size_t n) { table.add({what, fmt::to_string(n)}); };
  line("in all combinations", file.size() + file.left_out());
  line("excluded by where", file.left_out());
  line("equal to another", plan.n_repeated);
  if (shard.n > 1) line(fmt::format("in shard {}/{}", shard.i, shard.n), plan.points.size());
  line("already done", plan.points.size() - to_do.size());
  line("to do", to_do.size());
  Output output;
  output.write(table.text());
  output.finish();
  return good;
}

/// How many of the points the files of a sweep and its shards have. Another sweep may be writing them.
int tell_status(const ScenarioFile& file, const SweepPlan& plan, const std::vector<std::string>& files) {
  std::int64_t all = 0;
  for (const std::int64_t work : plan.work) all += work;
  Table table({"file", "done", "failed", "work", ""});
  const auto add = [&](const std::string& what, std::size_t n, const std::string& failed, std::int64_t work,
                       const std::string& state) {
    table.add({what, fmt::to_string(n), failed,
               fmt::format("{:.1f} %", 100 * static_cast<double>(work) / static_cast<double>(all)), state});
  };
  const auto work_of = [&](const std::vector<std::size_t>& points) {
    std::int64_t sum = 0;
    for (const std::size_t point : points) sum += plan.work[point];
    return sum;
  };
  DoneRows together(file, plan);
  for (const std::string& name : files) {
    DoneRows own(file, plan);
    read_results(name, [&](ResultRow&& row, std::string_view, const RowPlace& place) {
      const std::string where = fmt::format("{}:{}", name, place.line);
      own.take(row, where);
      together.take(row, where);
    });
    const std::vector<std::size_t> left = own.to_do();
    add(name, plan.points.size() - left.size(), fmt::to_string(own.n_failed()), all - work_of(left),
        has_writer(name) ? "runs" : "");
  }
  const std::vector<std::size_t> left = together.to_do();
  if (files.size() > 1)
    add("together", plan.points.size() - left.size(), fmt::to_string(together.n_failed()), all - work_of(left), "");
  add("to do", left.size(), "", work_of(left), "");
  Output output;
  output.write(table.text());
  output.finish();
  return good;
}

/// Says what failed; the exit code.
int tell(const GateReport& report, const SweepArguments& arguments) {
  std::size_t told = 0;
  const auto say_one = [&](const std::string& text) {
    if (told++ < most_told) say("  " + text + "\n");
  };
  if (report.failed_points > 0)
    say(fmt::format("{} of {} results are errors:\n", report.failed_points, report.points.size()));
  for (const GateReport::Point& point : report.points)
    if (!point.error.empty()) say_one(point.label + ": " + point.error);
  if (told > most_told) say(fmt::format("  ... and {} more\n", told - most_told));
  told = 0;
  if (report.failed_gates > 0)
    say(fmt::format("{} gate failure{}:\n", report.failed_gates, report.failed_gates == 1 ? "" : "s"));
  for (const std::string& failure : report.general) say_one(failure);
  for (const GateReport::Point& point : report.points)
    for (const std::string& failure : point.failures) say_one(point.label + ": " + failure);
  if (told > most_told) say(fmt::format("  ... and {} more; --junit FILE has all\n", told - most_told));
  told = 0;
  if (!report.new_ones.empty()) say(fmt::format("{} results are not in the baseline:\n", report.new_ones.size()));
  for (const std::string& label : report.new_ones) say_one(label);
  if (told > most_told) say(fmt::format("  ... and {} more\n", told - most_told));
  if (!arguments.baseline.empty())
    say(fmt::format("baseline: {} results compared, {} changed by more than {} %{}\n", report.compared, report.moved,
                    100 * arguments.tolerance,
                    report.moved == 0 ? "" : fmt::format(", at most by {:.2f} %", 100 * report.largest_move)));
  return report.failed_points + report.failed_gates > 0 ? check_failed : good;
}

/// The rows of the sweep's file, or what went to the stream.
std::vector<ResultRow> all_rows(const RowSink& rows, const SweepArguments& arguments, bool in_file) {
  std::vector<ResultRow> all;
  if (in_file)
    read_results(arguments.output,
                 [&](ResultRow&& row, std::string_view, const RowPlace&) { all.push_back(std::move(row)); });
  for (const std::string& text : rows.written())
    for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
      end = text.find('\n', at);
      all.push_back(ResultRow::parse(std::string_view(text).substr(at, end - at), "a row"));
    }
  return all;
}

int hold_to_gates(const ScenarioFile& file, Gates& gates, const RowSink& rows, const SweepArguments& arguments,
                  bool in_file) {
  if (in_file) {
    read_results(arguments.output, [&](ResultRow&& row, std::string_view, const RowPlace&) { gates.take(row); });
  } else {
    for (const ResultRow& row : all_rows(rows, arguments, in_file)) gates.take(row);
  }
  const GateReport report = std::move(gates).report();
  if (!arguments.junit.empty()) {
    Output xml(arguments.junit);
    xml.write(junit(file.name(), report));
    xml.finish();
  }
  return tell(report, arguments);
}

/// A name that no result can have is a mistake before the first point is simulated, not after the last.
void require_known_names(const std::vector<std::string>& assertions, const SweepPlan& plan) {
  try {
    for (const std::string& text : assertions)
      Assertion::parse(text).require_known(column_names(), {plan.varied.begin(), plan.varied.end()});
  } catch (const InputError& error) {
    throw UsageError(error.where(), error.message(), error.hint());
  }
}

std::string command_of(const SweepArguments& arguments) {
  std::string text = "ringsim sweep " + shell_word(arguments.scenario) + set_words("--set", arguments.set);
  if (arguments.shard) text += fmt::format(" --shard {}/{}", arguments.shard->i, arguments.shard->n);
  if (!arguments.output.empty()) text += " -o " + shell_word(arguments.output);
  return text + (arguments.bound ? " --bound" : "") + " --report " + shell_word(arguments.report);
}

/// What rank 0, or the only process, does.
int lead(const ScenarioFile& file, const ScenarioText& input, const SweepArguments& arguments,
         replay::MpiPool* others) {
  if (!arguments.status.empty())
    return tell_status(file, sweep_plan_of(file, {}, arguments.jobs, arguments.bound, /*with_work=*/true),
                       arguments.status);
  const Shard shard = arguments.shard ? *arguments.shard : shard_of_slurm();
  const SweepPlan plan = sweep_plan_of(file, shard, arguments.jobs, arguments.bound);
  require_known_names(arguments.assertions, plan);
  if (arguments.dry_run) return dry_run(file, plan, shard, arguments);
  Gates gates({.assertions = arguments.assertions,
               .baseline = arguments.baseline,
               .tolerance = arguments.tolerance,
               .all_points = shard.n == 1});
  const bool in_file = is_plain_file(arguments.output);
  if (arguments.resume && !in_file)
    throw UsageError("--resume", fmt::format("expected a file to continue, found -o {}", arguments.output),
                     "-o FILE.jsonl names it");
  for (const std::string& read : {arguments.scenario, arguments.baseline}) {
    refuse_as_output(read, arguments.output);
    refuse_as_output(read, arguments.junit);
  }
  refuse_as_output(arguments.output, arguments.junit);
  std::optional<Output> page = open_report(
      arguments.report, {arguments.scenario, arguments.baseline, arguments.output, arguments.junit}, arguments.force);
  std::optional<SweepFile> own;
  std::optional<Output> stream;
  std::vector<std::size_t> to_do = plan.points;
  if (in_file) {
    own.emplace(arguments.output, arguments.resume);
    to_do = left_by(*own, plan, file, arguments.output);
  } else {
    stream.emplace(arguments.output);
  }

  RowSink rows(own ? &*own : nullptr, stream ? &*stream : nullptr, to_do);
  Tally tally;
  IdleSettings idle;
  Bounds bounds;
  {
    Warnings warnings;
    ProgressLine progress(to_do.size());
    const auto on_outcome = [&](std::size_t point, PointOutcome&& outcome) {
      const bool more = take(point, std::move(outcome), rows, tally, warnings, idle);
      progress.add(1.0);
      return more;
    };
    if (others != nullptr)
      others->hand_out(
          to_do, [&](std::size_t point, std::string&& result) { return on_outcome(point, unpacked(result)); },
          stop_requested);
    else
      sweep_points(file, arguments.scenario, to_do, arguments.jobs, on_outcome, arguments.bound ? &bounds : nullptr);
  }
  if (stream) {
    rows.flush();
    stream->finish();
  }
  const std::size_t left = to_do.size() - tally.done;
  if (left > tally.no_memory)
    throw Interrupted(fmt::format("{} of {} points done{}", plan.points.size() - left, plan.points.size(),
                                  in_file ? "; use --resume to finish the rest" : ""));
  idle.say();
  if (own) own->put_in_order();
  if (page) {
    const std::vector<ResultRow> all = all_rows(rows, arguments, in_file);
    page->write(sweep_page({.file = file,
                            .input = input,
                            .set = arguments.set,
                            .plan = plan,
                            .rows = all,
                            .command = command_of(arguments),
                            .jobs = arguments.jobs,
                            .bound = arguments.bound}));
    page->finish();
  }
  const int code = hold_to_gates(file, gates, rows, arguments, in_file);
  if (tally.no_memory > 0)
    throw EnvironmentError(fmt::format("out of memory for {} of {} points{}", tally.no_memory, plan.points.size(),
                                       in_file ? "; --resume retries them, and -j 1 leaves more memory for each" : ""));
  return code;
}

int execute(const SweepArguments& arguments) {
  const std::unique_ptr<replay::MpiPool> processes = replay::MpiPool::join();
  if (processes) refuse_standard_input(arguments.scenario);
  std::optional<ScenarioFile> file;
  ScenarioText input;
  const auto read = [&] {
    input = read_input(arguments.scenario);
    file.emplace(ScenarioFile::parse(input.text, input.name, arguments.set));
    return file->hash();
  };
  if (!processes) {
    read();
    return lead(*file, input, arguments, nullptr);
  }
  // The one that could not begin says why; mpirun's exit code is the first that is not 0, which must be its.
  if (!processes->agree(read)) return good;
  if (processes->first()) return lead(*file, input, arguments, processes.get());
  Bounds bounds;
  processes->work([&](std::size_t point) {
    return packed(sweep_point(*file, arguments.scenario, point, arguments.bound ? &bounds : nullptr));
  });
  return good;
}

}  // namespace

Command sweep_command() {
  return {.name = "sweep",
          .group = Group::predict,
          .summary = "Simulate many points in parallel, with gates for CI",
          .example =
              "ringsim sweep scenarios/star.json -o star.jsonl \\\n"
              "    --assert \"busbw_GBps > 1 where bytes >= 64 MiB\"",
          .details =
              "The points run on all cores; to distribute them over several machines, use mpirun or --shard. A "
              "CONDITION can use the columns of the results and the paths that vary in the scenario. You can stop a "
              "sweep at any time and continue it with --resume. The exit code is 1 if a point failed, a condition does "
              "not hold, or a time changed by more than the tolerance.",
          .prepare = with<SweepArguments>(declare, execute)};
}

}  // namespace ringsim::tools
