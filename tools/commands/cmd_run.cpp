// ringsim run: every point of a scenario, simulated.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/matrix.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/formats/result_fields.hpp"
#include "tools/formats/result_table.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/pictures/plot.hpp"
#include "tools/reports/run_report.hpp"
#include "tools/sweep/points.hpp"
#include "tools/traces/recording.hpp"
#include "validate/score/compare.hpp"

namespace ringsim::tools {

namespace {

/// The endings of results, and those of matrices.
std::vector<std::pair<std::string, Format>> endings() {
  std::vector<std::pair<std::string, Format>> all = result_endings();
  all.insert(all.end(), {{".csv", Format::matrix_csv}, {".md", Format::matrix_markdown}});
  return all;
}

struct RunArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  std::optional<Format> said_format;
  Format format = Format::table;  ///< `said_format`, or what the ending of `output` says
  MatrixFields matrix;
  bool plot = false;  ///< below the table, or on standard output if the results are in a file
  ChartFields chart;
  std::string output;    ///< a file; empty or "-": stdout
  int jobs = 0;          ///< points at a time; 0: one per core
  bool explain = false;  ///< what the links carried
  bool phases = false;   ///< how the time divides over the algorithm's phases and steps
  bool timing = false;   ///< events, wall time and why a large run was not folded, on stderr
  bool fold = true;
  bool force = false;      ///< replace a file that holds no results
  std::string report;      ///< a page of all, FILE.html; empty: none
  bool bound = false;      ///< each result as a share of what the machine allows
  std::string measured;    ///< a file of measured times; empty: none
  std::string collective;  ///< what was measured; empty: the file says it
  std::optional<int> run;  ///< of a log with several; none: all, if they agree
  RecordingArguments recording;

  void settle() { format = format_by_ending(output, said_format, Format::table, endings()); }
};

void declare(Options& options, RunArguments& run) {
  options.scenario(run.scenario, run.set);
  declare_nodes(options, run.machine);
  options.format_or_matrix(run.said_format);
  options.matrix(run.matrix);
  options.flag("--plot", run.plot, "plot the results in the terminal, below the table");
  options.chart(run.chart);
  options.output(run.output);
  options.flag("--force", run.force, "allow -o and --report to overwrite a file that does not contain results");
  declare_report(options, run.report, "write a page with plots, what-if results and the table to FILE.html");
  options.jobs(run.jobs);
  options.max_memory();
  options.flag("--explain", run.explain, "also show the data carried by each kind of link");
  options.flag("--phases", run.phases, "also show how the time is divided among the phases and steps of the algorithm");
  options.bound(run.bound);
  options.flag("--no-fold", run.fold, "simulate every rank and call, even identical ones", false);
  options.flag("--timing", run.timing,
               "print the number of events, the wall time, and the reason why a large run was not folded to stderr");
  options.file("--measured", "FILE", run.measured, "add the measured times in FILE to the rows");
  options.collective(run.collective);
  options.run_of_log(run.run).needs = "--measured";
  declare_recording(options, run.recording);
}

std::string document(const ScenarioFile& file, const std::vector<Result>& results, const RunArguments& arguments) {
  if (!is_matrix(arguments.format)) return report(file, results, arguments.format, arguments.explain);
  std::vector<ResultRow> rows;
  for (const Result& result : results) rows.push_back(row_of(file, result));
  return matrix_text(rows, arguments.matrix, arguments.format);
}

bool shows_phases(Format format) {
  return format == Format::table || format == Format::json || format == Format::jsonl;
}

/// True if the results, and not only a plot of them, go to standard output.
bool to_standard_output(const RunArguments& arguments) { return arguments.output.empty() || arguments.output == "-"; }

void require_plot(const RunArguments& arguments) {
  if (arguments.plot && arguments.format != Format::table && to_standard_output(arguments))
    throw UsageError(
        "--plot", "expected --format table or a file for the results, found results and plot both on standard output",
        "-o FILE writes the results to FILE");
  for (const auto& [option, name] : {std::pair<const char*, const std::string&>{"--x", arguments.chart.x},
                                     {"--y", arguments.chart.y},
                                     {"--by", arguments.chart.by}})
    if (!name.empty() && !arguments.plot && arguments.report.empty())
      throw UsageError(option, "expected --plot or --report as well, found neither");
}

/// --x, --y and --by; --bound draws the bound.
ChartFields chart_fields(const RunArguments& arguments) {
  ChartFields fields = arguments.chart;
  fields.bound = arguments.bound;
  return fields;
}

void plot(const ScenarioFile& file, const std::vector<Result>& results, const RunArguments& arguments, Output& output) {
  std::vector<ResultRow> rows;
  for (const Result& result : results) rows.push_back(row_of(file, result));
  const Chart chart = chart_of(rows, chart_fields(arguments));
  if (to_standard_output(arguments)) output.write("\n");
  output.write_styled(plot_text(chart, surface_of(output.descriptor())));
}

/// The command as a shell reads it, with what decides the results.
std::string command_of(const RunArguments& arguments) {
  std::string text = "ringsim run " + shell_word(arguments.scenario);
  const auto add = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) text += ' ' + option + ' ' + shell_word(value);
  };
  text += set_words("--set", arguments.set) + words_of(arguments.machine);
  add("--measured", arguments.measured);
  add("--collective", arguments.collective);
  if (arguments.run) add("--run", fmt::to_string(*arguments.run));
  for (const auto& [given, option] : {std::pair{arguments.bound, " --bound"}, {!arguments.fold, " --no-fold"}})
    if (given) text += option;
  add("--x", arguments.chart.x);
  add("--y", arguments.chart.y);
  add("--by", arguments.chart.by);
  add("--report", arguments.report);
  return text;
}

int execute(const RunArguments& arguments) {
  require_matrix_fields(arguments.matrix, arguments.format);
  require_plot(arguments);
  if (arguments.explain && (arguments.format == Format::csv || is_matrix(arguments.format)))
    Warnings().say(
        {"--explain: it has no effect on this format; --format json includes the data carried by the links"});
  if (arguments.phases && !shows_phases(arguments.format))
    Warnings().say({"--phases: it has no effect on this format; --format json includes the phases"});
  const ScenarioText input = read_input(arguments.scenario, arguments.machine);
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, arguments.set);
  if (is_matrix(arguments.format))
    require_matrix_of(file, arguments.matrix, !arguments.measured.empty(), arguments.bound);
  require_chart_fields(arguments.chart, varied_paths(file), !arguments.measured.empty());
  refuse_as_output(arguments.scenario, arguments.output);
  std::optional<MeasuredTable> measured;
  std::optional<Beside> matcher;
  if (!arguments.measured.empty()) {
    refuse_as_output(arguments.measured, arguments.output);
    measured = read_measured_as(arguments.measured, arguments.collective).table(arguments.run, compared_with(file));
    Warnings().say(measured->warnings);
    require_measured_ranks(file, *measured);
    matcher.emplace(*measured);
  }
  if (arguments.recording.is_asked())
    require_one_point(file, "ringsim run " + shell_word(arguments.scenario) + words_of(arguments.machine),
                      arguments.set);
  std::optional<Recording> recording =
      recording_of(arguments.recording, {arguments.scenario, arguments.output, arguments.measured});
  refuse_to_replace(arguments.output, arguments.force);
  std::optional<Output> page =
      open_report(arguments.report,
                  {arguments.scenario, arguments.measured, arguments.output, arguments.recording.trace,
                   arguments.recording.utilization, arguments.recording.picture},
                  arguments.force);
  Output output(arguments.output);
  std::vector<Result> results;  // for the formats that are one document, plots and the report
  std::size_t done = 0;
  std::int64_t events = 0, transfers = 0;
  std::set<std::string> not_folded;
  const auto started = std::chrono::steady_clock::now();
  const bool by_line = arguments.format == Format::jsonl;
  const auto finish = [&] {
    if (!by_line) output.write(document(file, results, arguments));
    if (arguments.plot && to_standard_output(arguments)) plot(file, results, arguments, output);
    output.finish();
    if (!arguments.plot || to_standard_output(arguments)) return;
    Output terminal;
    plot(file, results, arguments, terminal);
    terminal.finish();
  };
  Bounds bounds;
  bool lacks_phases = false;  // a result that moves data, and has none
  const auto take = [&](Result&& result) {
    const Prediction& prediction = result.prediction;
    if (prediction.job.empty() || prediction.job == "main") ++done;
    if (matcher) matcher->add(result);
    lacks_phases = lacks_phases || (prediction.phases.empty() && prediction.time.count() > 0);
    if (!prediction.not_folded.empty()) not_folded.insert(prediction.not_folded);
    events += prediction.events;
    transfers += prediction.transfers;
    if (by_line) output.write(report_line(file, result, arguments.explain));
    if (!by_line || arguments.plot || page) results.push_back(std::move(result));
  };
  try {
    predict_points(file, arguments.jobs, arguments.fold, take, {}, arguments.bound ? &bounds : nullptr,
                   recording ? &*recording : nullptr, arguments.phases && shows_phases(arguments.format));
  } catch (const Interrupted& how_far) {
    if (done > 0) finish();  // what is done is not lost
    throw Interrupted(fmt::format("{} of {} points done; next: {}", done, file.size(), how_far.what()));
  } catch (const InputError& error) {
    if (by_line && done > 0) finish();  // each line is a whole result
    if (file.size() == 1) throw;
    throw InputError(error.where(), error.message(),
                     fmt::format("{}{}not all of the {} points can run; `ringsim sweep` runs those that can",
                                 error.hint(), error.hint().empty() ? "" : "; ", file.size()));
  }
  finish();
  if (page) {
    std::vector<ResultRow> rows;
    std::vector<std::size_t> points;  // [row]
    for (const Result& result : results) {
      const std::string& job = result.prediction.job;
      points.push_back(points.empty() ? 0 : points.back() + (job.empty() || job == "main" ? 1 : 0));
      rows.push_back(row_of(file, result));
    }
    page->write(report_page({.file = file,
                             .input = input,
                             .set = arguments.set,
                             .rows = rows,
                             .table = table_cells(results),
                             .point = chosen_point(rows, points),
                             .chart = chart_fields(arguments),
                             .command = command_of(arguments),
                             .jobs = arguments.jobs}));
    page->finish();
  }
  if (recording) write_recording(arguments.recording, *recording, file.name());
  if (matcher) Warnings().say(matcher->unmatched());
  if (arguments.phases && shows_phases(arguments.format) && lacks_phases)
    Warnings().say(
        {"--phases: training steps, groups and several jobs have no phases; for one point, --trace shows their tasks"});
  if (arguments.timing) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    say(fmt::format("{} points, {} transfers, {} events in {:.3f} s\n", done, transfers, events, seconds));
    for (const std::string& why : not_folded) say(fmt::format("not folded: {}\n", why));
  }
  return good;
}

}  // namespace

Command run_command() {
  return {
      .name = "run",
      .group = Group::predict,
      .summary = "Simulate every point of a scenario",
      .example = "ringsim run scenarios/star.json --set topology.ranks=16 --format csv -o star.csv",
      .details =
          "--trace shows the streams of each rank, messages as arrows from sender to receiver, the critical path, and "
          "link utilization over time. --trace and --utilization require a scenario with one point; choose one with "
          "--set. If a trace would be too large for viewers, ringsim writes only a part of it and prints a warning.",
      .prepare = with<RunArguments>(declare, execute)};
}

}  // namespace ringsim::tools
