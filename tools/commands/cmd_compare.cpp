// ringsim compare: predicted next to measured.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/launch_text.hpp"
#include "tools/explanations/mismatch_text.hpp"
#include "tools/explanations/staged_text.hpp"
#include "tools/formats/result_table.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/plot.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/reports/explained_rows.hpp"
#include "tools/reports/run_report.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/points.hpp"
#include "validate/score/baselines.hpp"
#include "validate/score/compare.hpp"
#include "validate/score/given_launch.hpp"
#include "validate/score/mismatch.hpp"
#include "validate/score/unlike_machine.hpp"

namespace ringsim::tools {

namespace {

struct CompareArguments {
  std::string scenario, measured;
  std::vector<std::string> set;
  MachineWords machine;             ///< if the scenario is the name of one: how many, and what joins them
  std::string algorithm;            ///< instead of the scenario's; empty: those
  std::string collective;           ///< what was measured; empty: the file says it
  std::optional<int> run;           ///< of a log with several; none: all, if they agree
  std::string launch_from;          ///< a measured table; empty: the scenario's launch
  std::optional<double> max_error;  ///< a share: 0.15 is 15 %
  std::optional<Format> said_format;
  Format format = Format::table;  ///< `said_format`, or what the ending of `output` says
  std::string output;
  int jobs = 0;
  bool bound = false;  ///< both times as shares of what the machine allows
  bool explain = false;
  std::string report;  ///< a page of all, FILE.html; empty: none
  bool force = false;  ///< let it replace a file that is not ringsim's

  void settle() { format = format_by_ending(output, said_format, Format::table, result_endings()); }
};

void declare(Options& options, CompareArguments& compare) {
  options.scenario(compare.scenario, compare.set);
  declare_nodes(options, compare.machine);
  options.argument("MEASURED", compare.measured, "a file of measured times, in one of the formats above").file = true;
  options.text("--algorithm", "NAME", compare.algorithm, "use this algorithm instead of the one in the scenario");
  options.collective(compare.collective);
  options.run_of_log(compare.run);
  options.file("--launch-from", "FILE", compare.launch_from,
               "set the launch time, which depends on the machine and the harness, to match the smallest rows of FILE, "
               "measured on the same machine; if FILE is MEASURED itself, these rows are not compared");
  options.percentage(
      "--max-error", [&compare](double share) { compare.max_error = share; },
      "exit with 1 unless, for at least one algorithm, 90 % of the rows are within this error");
  options.format(compare.said_format, "; table also draws a plot");
  options.output(compare.output);
  options.jobs(compare.jobs);
  options.bound(compare.bound);
  options.flag(
      "--explain", compare.explain,
      "show for each row what ran, what limits it, whether measured and predicted times differ, and the likely reason");
  declare_report(options, compare.report, "write a page with plots, errors and the scenario to FILE.html");
  options.flag("--force", compare.force, "allow --report to overwrite a file that does not contain results").needs =
      "--report";
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string with_sign(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string points_text(const Curve& curve) {
  const auto any = [&](auto&& has) { return std::any_of(curve.points.begin(), curve.points.end(), has); };
  const bool bounded = any([](const Result* p) { return p->bound.has_value(); });
  const bool has_floor = any([](const Result* p) { return p->latency_floor.has_value(); });
  const bool planned = !curve.points.front()->prediction.library.empty();
  std::vector<std::string> head{"bytes"};
  if (planned) head.insert(head.end(), {"algorithm", "protocol", "ch"});
  head.insert(head.end(), {"measured us", "predicted us", "error"});
  if (has_floor) head.emplace_back("latency floor us");
  if (bounded) head.insert(head.end(), {"bandwidth bound us", "measured of bound", "predicted of bound"});
  Table table(head);
  for (const Result* p : curve.points) {
    std::vector<std::string> row{format(p->prediction.request.bytes)};
    if (planned)
      row.insert(row.end(), {algorithm_text(p->prediction), protocol_text(p->prediction),
                             fmt::to_string(p->prediction.request.channels)});
    row.insert(row.end(), {fmt::format("{:.2f}", *p->measured_us),
                           fmt::format("{:.2f}", microseconds(p->prediction.time)), with_sign(error_of(*p))});
    const auto bound_text = [](const std::optional<Picoseconds>& bound) {
      return bound ? fmt::format("{:.2f}", microseconds(*bound)) : "";
    };
    if (has_floor) row.push_back(bound_text(p->latency_floor));
    if (bounded) {
      row.push_back(bound_text(p->bound));
      for (const auto& share : {measured_of_bound(*p), of_bound(*p)}) row.push_back(share ? percent(*share) : "");
    }
    table.add(row);
  }
  return table.text();
}

/// `of`: what the bands divide the rows by.
std::string bands_text(const char* of, const std::vector<ErrorBand>& bands) {
  Table table({of, "rows", "median |error|", "90th percentile", "median error"});
  for (const ErrorBand& band : bands)
    table.add({band.name, fmt::to_string(band.rows), percent(band.median_abs), percent(band.p90_abs),
               with_sign(band.median_signed)});
  return table.text();
}

std::string bands_text(const Curve& curve) {
  std::vector<ErrorBand> bands = curve.bands;
  bands.push_back(curve.all);
  return bands_text("sizes", bands) + (curve.plans.empty() ? "" : '\n' + bands_text("plan", curve.plans));
}

/// A bound that a measured row breaks is none: the machine is not as the scenario has it, or the bound is wrong.
std::string broken_bound_text(const std::vector<Curve>& curves) {
  const std::vector<const Result*> none;
  const auto& points = curves.empty() ? none : curves.front().points;
  const auto bounded = std::count_if(points.begin(), points.end(), [](auto* p) { return measured_of_bound(*p); });
  const auto broken =
      std::count_if(points.begin(), points.end(), [](auto* p) { return measured_of_bound(*p).value_or(0) > 1; });
  if (broken == 0) return "";
  return wrapped(fmt::format(
             "{} of {} measured rows are faster than the bound, so the bound does not hold for the measured machine. "
             "Either the machine differs from the scenario, or the bound leaves out a path that data takes.",
             broken, bounded)) +
         '\n';
}

/// Measured and predicted times by size; empty if none is above 0.
std::string times_plotted(const ScenarioFile& file, const std::vector<Result>& results, const TextSurface& surface) {
  std::vector<ResultRow> rows;
  bool any = false;
  for (const Result& result : results) {
    rows.push_back(row_of(file, result));
    any = any || (result.prediction.request.bytes > Bytes{0} && result.prediction.time > Picoseconds{0});
  }
  return any ? plot_text(chart_of(rows, {.x = "bytes", .y = "time_us", .by = ""}), surface) : "";
}

std::string comparison_text(const MeasuredTable& table, const std::vector<Curve>& curves) {
  std::string text = wrapped(fmt::format("measured: {} ({}{})", table.file, table.format,
                                         table.about.contains("library") ? "; " + table.about.at("library") : "")) +
                     '\n';
  for (const Curve& curve : curves)
    text += fmt::format("\n{}\n{}\n{}", wrapped(curve.name), points_text(curve), bands_text(curve));
  return text + '\n';
}

std::string closing_text(const std::vector<Curve>& curves) {
  return curves.empty() ? "" : broken_bound_text(curves) + wrapped(headline_of(curves)) + '\n';
}

/// No curve has nine rows of ten within the limit.
bool is_beyond(const std::vector<Curve>& curves, double limit) {
  return std::none_of(curves.begin(), curves.end(), [&](const Curve& c) { return c.all.p90_abs <= limit; });
}

void refuse_with_explain(const CompareArguments& arguments) {
  if (arguments.format != Format::table && arguments.format != Format::json)
    throw UsageError("", "--explain cannot be combined with a --format other than table and json",
                     "to get only the rows, remove --explain");
  if (arguments.max_error)
    throw UsageError("", "--explain cannot be combined with --max-error",
                     "run `ringsim compare` once with each option");
  if (arguments.bound)
    throw UsageError("", "--explain cannot be combined with --bound",
                     "--explain always uses the bound; --format json prints it in every row");
  if (!arguments.report.empty())
    throw UsageError("", "--explain cannot be combined with --report", "run `ringsim compare` once with each option");
}

/// The launch that --launch-from gives, as an option of --set in `set`; what is left out because of it.
std::optional<GivenLaunch> take_launch(const CompareArguments& arguments, const ScenarioText& input,
                                       std::vector<std::string>& set, std::vector<std::string>& told) {
  if (arguments.launch_from.empty()) return std::nullopt;
  refuse_as_output(arguments.launch_from, arguments.output);
  std::error_code unknown;
  const bool is_measured = std::filesystem::equivalent(arguments.launch_from, arguments.measured, unknown);
  const MeasuredFile from = read_measured_as(arguments.launch_from, arguments.collective);
  const GivenLaunch given = launch_from_table(
      input.text, input.name, set, from, is_measured ? arguments.run : std::nullopt, {.stop = &stop_requested}, told);
  set.push_back(launch_setting(given.key, given.launch()));
  return given;
}

/// A line: how much of the smallest prediction is launch, or which rows the launch is from. Empty if neither is known.
/// `smallest`: none if several predictions have the least bytes.
std::string launch_line(const std::optional<GivenLaunch>& given, const CompareArguments& arguments,
                        const Prediction* smallest, const ScenarioText& input, const std::vector<std::string>& set) {
  std::string text;
  if (given)
    text = given_launch_text(*given, arguments.launch_from);
  else if (smallest != nullptr)
    text = launch_share_text(*smallest, input.text, input.name, set);
  return text.empty() ? "" : wrapped(text) + '\n';
}

/// The prediction of least bytes; none if there are several.
const Prediction* smallest_of(std::span<const Result> results) {
  const auto bytes = [](const Result& each) { return each.prediction.request.bytes; };
  const auto least = std::min_element(results.begin(), results.end(),
                                      [&](const Result& a, const Result& b) { return bytes(a) < bytes(b); });
  const bool is_one = least != results.end() && std::count_if(results.begin(), results.end(), [&](const Result& each) {
                                                  return bytes(each) == bytes(*least);
                                                }) == 1;
  return is_one ? &least->prediction : nullptr;
}

int explain(const CompareArguments& arguments, const MeasuredTable& table, const ScenarioFile& file,
            const ScenarioText& input, const std::vector<std::string>& set, const std::optional<GivenLaunch>& given) {
  Output output(arguments.output);
  const std::vector<ComparedRow> rows = explained_rows(file, table, arguments.jobs);
  Warnings().say(unlike_table(table, rows));
  const std::vector<MismatchRange> ranges = explained_ranges(rows, release_of(table.about), input, set, arguments.jobs);
  const std::string launch = launch_line(given, arguments, &rows.front().result.prediction, input, set);
  const Prediction& first = rows.front().result.prediction;
  const std::string staged = first.staged ? wrapped(staged_text(first)) + '\n' : "";
  if (arguments.format == Format::json) {
    output.write(mismatch_json(file, table, rows, ranges));
    if (given) say("ringsim: note: " + launch);
  } else {
    output.write(mismatch_text(table, rows, ranges) + '\n' + staged + launch);
  }
  output.finish();
  return good;
}

std::string compare_page(const CompareArguments& arguments, const MeasuredTable& table, const ScenarioFile& file,
                         const ScenarioText& input, const std::vector<Result>& results, const std::string& launch) {
  const std::vector<Curve> curves = curves_of(results);
  std::vector<ResultRow> rows;
  for (const Result& result : results) rows.push_back(row_of(file, result));
  const std::string sentence = fmt::format("{}: {}", file.name(), headline_of(curves));
  std::string command =
      fmt::format("ringsim compare {} {}", shell_word(arguments.scenario), shell_word(arguments.measured)) +
      set_words("--set", arguments.set) + words_of(arguments.machine);
  if (!arguments.algorithm.empty()) command += " --algorithm " + shell_word(arguments.algorithm);
  if (!arguments.collective.empty()) command += " --collective " + shell_word(arguments.collective);
  if (arguments.run) command += fmt::format(" --run {}", *arguments.run);
  if (!arguments.launch_from.empty()) command += " --launch-from " + shell_word(arguments.launch_from);
  command += (arguments.bound ? " --bound --report " : " --report ") + shell_word(arguments.report);
  const std::string body =
      fmt::format("<h1>{}</h1>\n", escaped_xml(sentence)) + report_plots(rows, {.bound = arguments.bound}) +
      html_section("Predicted and measured",
                   html_wide_text("Predicted and measured",
                                  comparison_text(table, curves) + broken_bound_text(curves) + launch)) +
      report_results(table_cells(results)) + report_end({input}, command, fmt::format(", scenario {}", file.hash()));
  return html_page(file.name(), body);
}

/// What runs on a machine that takes the place of a scenario: the collective that was measured, and the release of NCCL
/// that the file names, if it is modeled.
CollectiveWords measured_collective(const MeasuredFile& measured, const CompareArguments& arguments) {
  CollectiveWords words;
  if (const std::optional<CollectiveOp> op = measured.only_op(arguments.run)) words.op = to_string(*op);
  words.nccl = release_of(measured.about());
  words.nccl_from = arguments.measured;
  return words;
}

int execute(const CompareArguments& arguments) {
  if (arguments.explain) refuse_with_explain(arguments);
  const MeasuredFile measured = read_measured_as(arguments.measured, arguments.collective);
  std::vector<std::string> set = arguments.set;
  if (!arguments.algorithm.empty()) set.push_back("collective.algorithm=\"" + arguments.algorithm + '"');
  std::vector<std::string> told;
  const ScenarioText input =
      read_input(arguments.scenario, arguments.machine, measured_collective(measured, arguments));
  const std::optional<GivenLaunch> launch = take_launch(arguments, input, set, told);
  const std::vector<LaunchRow> left_out = launch ? launch->rows : std::vector<LaunchRow>{};
  const auto [file, table] =
      load_at_measured_sizes(input.text, input.name, set, measured, arguments.run, told, left_out);
  const Scenario first = file.point(0);
  if (first.library)
    if (const std::string newer =
            newer_release_text(table.about, fmt::format("{} {}", first.library->name, first.library->version));
        !newer.empty())
      told.push_back(fmt::format("{}: {}", table.file, newer));
  if (const std::string release = release_of(table.about);
      first.library && !release.empty() && release != first.library->version)
    told.push_back(
        fmt::format("{}: the rows were measured with NCCL {}, but the scenario has {}; to change it, set "
                    "library.version",
                    table.file, release, first.library->version));
  for (const std::string& other : unlike_machine(table.about, first))
    told.push_back(fmt::format("{}: {}", table.file, other));
  Warnings().say(told);
  for (const std::string& read : {arguments.scenario, arguments.measured}) refuse_as_output(read, arguments.output);
  if (arguments.explain) return explain(arguments, table, file, input, set, launch);
  std::optional<Output> page =
      open_report(arguments.report, {arguments.scenario, arguments.measured, arguments.output}, arguments.force);
  Output output(arguments.output);
  Beside matcher(table);
  std::vector<Result> results;
  Bounds bounds;
  const auto take = [&](Result&& result) {
    matcher.add(result);
    results.push_back(std::move(result));
  };
  predict_points(file, arguments.jobs, /*fold=*/true, take, {}, arguments.bound ? &bounds : nullptr);
  const std::vector<Curve> curves = curves_of(results);
  const std::string about_launch = launch_line(launch, arguments, smallest_of(results), input, set);
  if (arguments.format == Format::table) {
    output.write(comparison_text(table, curves));
    output.write_styled(times_plotted(file, results, surface_of(output.descriptor())));
    output.write(about_launch + closing_text(curves));
  } else {
    output.write(report(file, results, arguments.format, /*explain=*/false));
    if (launch) say("ringsim: note: " + about_launch);
  }
  output.finish();
  if (page) {
    page->write(compare_page(arguments, table, file, input, results, about_launch));
    page->finish();
  }
  if (!arguments.max_error || !is_beyond(curves, *arguments.max_error)) return good;
  const auto least = std::min_element(curves.begin(), curves.end(),
                                      [](const Curve& a, const Curve& b) { return a.all.p90_abs < b.all.p90_abs; });
  say(fmt::format("ringsim: --max-error {} exceeded: one in ten rows of {} is off by {} or more\n",
                  percent(*arguments.max_error), least->name, percent(least->all.p90_abs)));
  return check_failed;
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .group = Group::check,
          .summary = "Compare predictions with measurements",
          .example =
              "ringsim compare scenarios/examples/machines/abci-v100.json \\\n"
              "    validate/measured/tables/abci-v100-2n4g-all_reduce.csv",
          .details =
              "Runs the scenario at the measured sizes. With --explain, each row has one prediction, usually that of "
              "\"library\": \"nccl\". Adjacent rows that use the same plan and deviate by more than 10 % in the same "
              "direction are simulated again with other protocols, algorithms, channels, paths and launch times. The "
              "output names the change that best explains the measurement, or reports that none does.\n\nThe launch "
              "time depends on the GPU, the driver and the harness, and dominates the time of small messages. "
              "--launch-from FILE derives it from the three smallest rows, up to 64 KiB, of a table measured on the "
              "same machine.\n\nSeveral runs in a log are treated as repetitions if they agree; --run selects "
              "one.\n\nFormats of MEASURED:\n" +
              measured_formats(),
          .prepare = with<CompareArguments>(declare, execute)};
}

}  // namespace ringsim::tools
