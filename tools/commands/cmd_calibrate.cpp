// ringsim calibrate: few named factors, fitted to measured times.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "scenarios/decoder/files.hpp"
#include "tools/commands/commands.hpp"
#include "tools/output/output.hpp"
#include "tools/output/report.hpp"
#include "tools/output/warnings.hpp"
#include "validate/score/calibrate.hpp"
#include "validate/score/compare.hpp"

namespace ringsim::tools {

namespace {

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
                 each.at_bound ? "at its bound: something else is wrong" : ""});
    else
      table.add({std::string(to_string(each.factor)), "not determined", "", within,
                 fmt::format("left at {}: {}", shown(each.factor, range.nominal), each.left_out)});
  }
  return table.text();
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
  return table.text();
}

}  // namespace

int calibrate_command(const CalibrateArguments& arguments) {
  const MeasuredTable table = read_measured_as(arguments.measured, arguments.collective);
  std::vector<std::string> told = table.warnings;
  const ScenarioFile file = load_at_measured_sizes(arguments.scenario, arguments.set, table, told);
  Warnings().say(told);
  for (const std::string& input : {arguments.scenario, arguments.measured}) refuse_as_output(input, arguments.output);
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

}  // namespace ringsim::tools
