// What a calibration's file says: factors, and where they come from.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "scenarios/decoder/decode.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "validate/score/calibrate.hpp"

namespace ringsim {

namespace {

/// As scenarios take it: a time with its unit, or a number.
Json as_written(Factor factor, double value) {
  if (factor == Factor::launch) return format(Picoseconds{std::llround(value * 1e3) * 1000});
  return std::round(value * 1e6) / 1e6;
}

double few_digits(double value) { return std::stod(fmt::format("{:.4g}", value)); }

/// |predicted/measured - 1| of some rows, without and with the factors.
Json errors_json(const ErrorBand& before, const ErrorBand& after) {
  return {{"rows", after.rows},
          {"median_before", few_digits(before.median_abs)},
          {"median_after", few_digits(after.median_abs)},
          {"p90_before", few_digits(before.p90_abs)},
          {"p90_after", few_digits(after.p90_abs)}};
}

}  // namespace

std::string calibration_file(const CalibrationFit& fit, const ScenarioFile& file, const MeasuredTable& table,
                             std::string_view measured_text, Rows rows) {
  Json out = Json::object();
  out["factors"] = Json::object();
  out["fitted"] = Json::object();
  out["left_out"] = Json::object();
  for (const FittedFactor& each : fit.factors) {
    const std::string name(to_string(each.factor));
    if (!each.left_out.empty()) {
      out["left_out"][name] = each.left_out;
      continue;
    }
    out["factors"][name] = as_written(each.factor, each.value);
    const FactorRange range = range_of(each.factor);
    out["fitted"][name] = {
        {each.factor == Factor::launch ? "standard_error_us" : "standard_error", few_digits(each.standard_error)},
        {"from", as_written(each.factor, range.least)},
        {"to", as_written(each.factor, range.most)},
        {"at_bound", each.at_bound}};
  }
  out["scenario"] = {{"name", file.name()}, {"hash", file.hash()}};
  out["measured"] = {{"file", std::filesystem::path(table.file).filename().string()},
                     {"xxh3_128", scenarios::digest_of(measured_text)}};
  if (table.about.contains("source")) out["measured"]["source"] = table.about.at("source");
  out["rows"] = rows == Rows::all ? "all" : rows == Rows::odd ? "odd" : "even";
  out["loss"] = {{"of", "mean of sqrt(1 + (ln(predicted/measured)/0.1)^2) - 1"},
                 {"before", few_digits(fit.loss_before)},
                 {"after", few_digits(fit.loss_after)}};
  out["errors"]["fitted"] = errors_json(*fit.before, *fit.after);
  if (fit.others_before) out["errors"]["others"] = errors_json(*fit.others_before, *fit.others_after);
  out["model_version"] = model_version;
  out["ringsim"] = version;
  return out.dump(2) + "\n";
}

}  // namespace ringsim
