// ringsim calibrate: a few named factors, fitted to measured times.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "scenarios/decoder/files.hpp"
#include "sim/text/table.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/output/output.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "validate/score/calibrate.hpp"
#include "validate/score/compare.hpp"

namespace ringsim::tools {

namespace {

struct CalibrateArguments {
  std::string scenario, measured;
  std::vector<std::string> set;
  std::string collective;  ///< what was measured; empty: the file says it
  std::optional<int> run;  ///< of a log with several; none: all, if they agree
  Rows rows = Rows::all;   ///< which are fitted; the others are predicted
  std::string output;      ///< the file of factors

  void settle() const { expect_ending(output, {".json"}); }
};

void declare(Options& options, CalibrateArguments& calibrate) {
  options.scenario(calibrate.scenario, calibrate.set);
  options.argument("MEASURED", calibrate.measured, "a file of measured times, in one of the formats above").file = true;
  options.collective(calibrate.collective);
  options.run_of_log(calibrate.run);
  options
      .choice<Rows>("--rows", {{"all", Rows::all}, {"odd", Rows::odd}, {"even", Rows::even}}, calibrate.rows,
                    "the rows to fit, by size; the others are predicted")
      .fallback = "all";
  Option& output =
      options.file("-o,--output", "FILE", calibrate.output,
                   "write the factors to FILE, for use as \"calibration\": {\"file\": \"FILE\"} in a scenario");
  output.required = true;
}

std::string shown(Factor factor, double value) {
  return factor == Factor::launch ? fmt::format("{:.2f} us", value) : fmt::format("{:.3f}", value);
}

std::string uncertainty(const FittedFactor& each) {
  return each.factor == Factor::launch ? fmt::format("{:.2f} us", each.standard_error)
                                       : fmt::format("{:.1f} %", 100 * each.standard_error);
}

std::string factors_text(const CalibrationFit& fit) {
  Table table({"factor", "fitted", "standard error", "range", ""});
  for (const FittedFactor& each : fit.factors) {
    const FactorRange range = range_of(each.factor);
    const std::string within = fmt::format("{} to {}", shown(each.factor, range.least), shown(each.factor, range.most));
    if (each.left_out.empty())
      table.add({std::string(to_string(each.factor)), shown(each.factor, each.value), uncertainty(each), within,
                 each.at_bound ? "at its limit: something else is wrong" : ""});
    else
      table.add({std::string(to_string(each.factor)), "not determined", "", within,
                 fmt::format("kept at {}: {}", shown(each.factor, range.nominal), each.left_out)});
  }
  return table.fitted();
}

std::string errors_text(const CalibrationFit& fit) {
  Table table({"rows", "number", "median |error|", "90th percentile", "median error"});
  const auto add = [&](const char* name, const std::optional<ErrorBand>& band) {
    if (!band) return;
    table.add({name, fmt::to_string(band->rows), fmt::format("{:.1f} %", 100 * band->median_abs),
               fmt::format("{:.1f} %", 100 * band->p90_abs), fmt::format("{:+.1f} %", 100 * band->median_signed)});
  };
  add("fitted, before", fit.before);
  add("fitted, after", fit.after);
  add("others, before", fit.others_before);
  add("others, after", fit.others_after);
  return table.fitted();
}

int execute(const CalibrateArguments& arguments) {
  const MeasuredFile measured = read_measured_as(arguments.measured, arguments.collective);
  std::vector<std::string> told;
  const ScenarioText input = read_input(arguments.scenario);
  const auto [file, table] =
      load_at_measured_sizes(input.text, input.name, arguments.set, measured, arguments.run, told);
  Warnings warnings;
  warnings.say(told);
  for (std::size_t i = 0; i < file.size(); ++i) warnings.say(file.point(i).warnings);
  for (const std::string& read : {arguments.scenario, arguments.measured}) refuse_as_output(read, arguments.output);
  Output output(arguments.output);
  const CalibrationFit fit = calibrate(file, table, arguments.rows, &stop_requested);
  const std::string text = scenarios::read_text(arguments.measured, "a file of measured times");
  output.write(calibration_file(fit, file, table, text, arguments.rows));
  output.finish();
  Output report;
  report.write(factors_text(fit) + '\n' + errors_text(fit));
  report.finish();
  return good;
}

}  // namespace

Command calibrate_command() {
  return {.name = "calibrate",
          .group = Group::check,
          .summary = "Fit a few parameters to measurements",
          .example =
              "ringsim calibrate scenarios/examples/machines/abci-v100.json \\\n"
              "    validate/measured/tables/abci-v100-2n4g-all_reduce.csv -o abci.json",
          .details = "Parameters that the measurements do not determine keep their values. Formats of MEASURED:\n" +
                     measured_formats(),
          .prepare = with<CalibrateArguments>(declare, execute)};
}

}  // namespace ringsim::tools
