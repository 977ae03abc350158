// ringsim compare: predicted next to measured.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/plot.hpp"
#include "tools/output/report.hpp"
#include "tools/output/warnings.hpp"
#include "tools/sweep/points.hpp"
#include "validate/score/compare.hpp"

namespace ringsim::tools {

namespace {

struct CompareArguments {
  std::string scenario, measured;
  std::vector<std::string> set;
  std::string algorithm;            ///< instead of the scenario's; empty: those
  std::string collective;           ///< what was measured; empty: the file says it
  std::optional<double> max_error;  ///< a share: 0.15 is 15 %
  Format format = Format::table;
  std::string output;
  int jobs = 0;
  bool bound = false;  ///< both times as shares of what the machine allows
};

void declare(Options& options, CompareArguments& compare) {
  options.scenario(compare.scenario, compare.set);
  options.argument("MEASURED", compare.measured, "file of measured times, in one of the formats above").file = true;
  options.text("--algorithm", "NAME", compare.algorithm, "use this algorithm instead of the scenario's");
  options.collective(compare.collective);
  options.percentage(
      "--max-error", [&compare](double share) { compare.max_error = share; },
      "exit with 1 unless, for at least one algorithm, 90 % of the rows are within it");
  options.format(compare.format, "; the table comes with a plot");
  options.output(compare.output);
  options.jobs(compare.jobs);
  options.bound(compare.bound);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }
std::string with_sign(double share) { return fmt::format("{:+.1f} %", 100 * share); }

std::string points_text(const Curve& curve) {
  const bool bounded =
      std::any_of(curve.points.begin(), curve.points.end(), [](const Result* p) { return p->bound.has_value(); });
  std::vector<std::string> head{"bytes", "measured us", "predicted us", "error"};
  if (bounded) head.insert(head.end(), {"bound us", "measured of bound", "predicted of bound"});
  Table table(head);
  for (const Result* p : curve.points) {
    std::vector<std::string> row{format(p->prediction.request.bytes), fmt::format("{:.2f}", *p->measured_us),
                                 fmt::format("{:.2f}", microseconds(p->prediction.time)), with_sign(error_of(*p))};
    if (bounded) {
      row.push_back(p->bound ? fmt::format("{:.2f}", microseconds(*p->bound)) : "");
      for (const auto& share : {measured_of_bound(*p), of_bound(*p)}) row.push_back(share ? percent(*share) : "");
    }
    table.add(row);
  }
  return table.text();
}

std::string bands_text(const Curve& curve) {
  Table table({"sizes", "rows", "median |error|", "90th percentile", "median error"});
  std::vector<ErrorBand> bands = curve.bands;
  bands.push_back(curve.all);
  for (const ErrorBand& band : bands)
    table.add({band.name, fmt::to_string(band.rows), percent(band.median_abs), percent(band.p90_abs),
               with_sign(band.median_signed)});
  return table.text();
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

std::string nearest_text(const std::vector<Curve>& curves) {
  if (curves.size() < 2) return "";
  const Curve& nearest = nearest_of(curves);
  return wrapped(fmt::format("nearest: {}, median |error| {}", nearest.name, percent(nearest.all.median_abs))) + '\n';
}

/// No curve has nine rows of ten within the limit.
bool is_beyond(const std::vector<Curve>& curves, double limit) {
  return std::none_of(curves.begin(), curves.end(), [&](const Curve& c) { return c.all.p90_abs <= limit; });
}

int execute(const CompareArguments& arguments) {
  const MeasuredTable table = read_measured_as(arguments.measured, arguments.collective);
  std::vector<std::string> set = arguments.set;
  if (!arguments.algorithm.empty()) set.push_back("collective.algorithm=\"" + arguments.algorithm + '"');
  std::vector<std::string> told = table.warnings;
  const ScenarioText input = read_input(arguments.scenario);
  const ScenarioFile file = load_at_measured_sizes(input.text, input.name, std::move(set), table, told);
  Warnings().say(told);
  for (const std::string& read : {arguments.scenario, arguments.measured}) refuse_as_output(read, arguments.output);
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
  if (arguments.format == Format::table) {
    output.write(comparison_text(table, curves));
    output.write_styled(times_plotted(file, results, surface_of(output.descriptor())));
    output.write(nearest_text(curves));
  } else {
    output.write(report(file, results, arguments.format, /*explain=*/false));
  }
  output.finish();
  if (!arguments.max_error || !is_beyond(curves, *arguments.max_error)) return good;
  const auto least = std::min_element(curves.begin(), curves.end(),
                                      [](const Curve& a, const Curve& b) { return a.all.p90_abs < b.all.p90_abs; });
  say(fmt::format("ringsim: beyond --max-error {}: of {} one row in ten is {} off or more\n",
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
          .details = "The scenario runs at the sizes that were measured. Formats of MEASURED:\n" + measured_formats(),
          .prepare = with<CompareArguments>(declare, execute)};
}

}  // namespace ringsim::tools
