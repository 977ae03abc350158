#include "tools/formats/result_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "tools/formats/result_table.hpp"
#include "tools/formats/shown_columns.hpp"
#include "tools/output/output.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/columns.hpp"
#include "validate/results/results.hpp"
#include "validate/score/compare.hpp"

namespace ringsim::tools {

namespace {

Json heading(const std::string& name, const std::string& hash) {
  return {{"ringsim", {{"version", version}, {"model_version", model_version}}},
          {"scenario", {{"name", name}, {"hash", hash}}}};
}
Json heading(const ScenarioFile& file) { return heading(file.name(), file.hash()); }

Json sweep_heading(const std::string& name, const PointId& id, bool bounded) {
  Json line = heading(name, id.hash);
  line["key"] = result_key(name, id, bounded);
  return line;
}

bool is_measured(const std::vector<Result>& results) {
  return std::any_of(results.begin(), results.end(), [](const Result& r) { return r.measured_us.has_value(); });
}
/// |predicted/measured - 1| of all rows that were measured. Requires one.
ErrorBand all_errors(const std::vector<Result>& results) {
  std::vector<SizedError> errors;
  for (const Result& r : results)
    if (r.measured_us) errors.push_back({r.prediction.request.bytes, error_of(r)});
  return error_band("all", errors);
}

}  // namespace

ResultRow row_of(const ScenarioFile& file, const Result& result) {
  Json line = heading(file);
  line.update(as_json(result, false));
  return ResultRow::of(line);
}

namespace {

std::string csv(const ScenarioFile& file, const std::vector<Result>& results) {
  std::vector<ResultRow> rows;
  std::vector<std::string> seen;
  for (const Result& result : results) {
    rows.push_back(row_of(file, result));
    see_columns(rows.back(), seen);
  }
  const std::vector<std::string> columns = columns_for(ColumnsFor::csv, seen);
  std::string text = csv_line(columns);
  for (const ResultRow& row : rows) text += csv_line(fields_of(row, columns));
  return text;
}

// The layout of nccl-tests (common.cu): out-of-place and in-place columns, which are one figure here, the predicted
// one. Wrong elements are those of a replay; else none move that could be wrong. One byte an element: a simulated size
// need not be a multiple of anything.
std::string nccl_tests(const std::vector<Result>& results) {
  std::string text, before;
  double sum = 0;
  int n = 0;
  for (const Result& result : results) {
    const Prediction& r = result.prediction;
    if (r.is_total) continue;  // it is no collective
    const bool adds = r.request.op == CollectiveOp::all_reduce || r.request.op == CollectiveOp::reduce_scatter ||
                      r.request.op == CollectiveOp::reduce;
    std::string about = fmt::format("# ringsim {}: {} {}, {} ranks, model {}", version, to_string(r.request.op),
                                    algorithm_text(r), r.request.ranks, to_string(r.model));
    if (!r.job.empty()) about += ", job " + r.job;
    if (!r.calibration.empty()) about += ", calibrated: " + r.calibration;
    for (const std::string& path : extra_columns(results)) about += fmt::format(", {} {}", path, varied_value(r, path));
    if (about != before) {
      text += about + "\n#\n";
      text += fmt::format("#{:>34}{:>8}{:>8}{:>8}   {:^36}{:^36}\n", "", "", "", "", "out-of-place", "in-place");
      text += fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "size", "count", "type", "redop", "root");
      for (int i = 0; i < 2; ++i)
        text += fmt::format("  {:>7}  {:>6}  {:>6} {:>6}", "time", "algbw", "busbw", "#wrong");
      text += fmt::format("\n# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", "(B)", "(elements)", "", "", "");
      for (int i = 0; i < 2; ++i) text += fmt::format("  {:>7}  {:>6}  {:>6} {:>6}", "(us)", "(GB/s)", "(GB/s)", "");
      text += '\n';
      before = about;
    }
    text += fmt::format("  {:>10}  {:>12}  {:>8}  {:>6}  {:>6}", r.request.bytes.count, r.request.bytes.count, "uint8",
                        adds ? "sum" : "none", has_root(r.request.op) ? r.request.root : -1);
    for (int i = 0; i < 2; ++i)
      text += fmt::format("  {:>7.2f}  {:>6.2f}  {:>6.2f} {:>6}", microseconds(r.time), r.algbw, r.busbw,
                          result.replayed ? fmt::to_string(result.replayed->wrong) : "N/A");
    text += '\n';
    sum += r.busbw;
    ++n;
  }
  if (n > 0) text += fmt::format("# Avg bus bandwidth    : {:.6g}\n", sum / n);
  if (is_measured(results)) {
    const ErrorBand errors = all_errors(results);
    text += fmt::format("# Compared with {} measured times: median |error| {:.1f} %, 90th percentile {:.1f} %\n",
                        errors.rows, 100 * errors.median_abs, 100 * errors.p90_abs);
  }
  return text;
}

}  // namespace

MeasuredFile read_measured_as(const std::string& path, const std::string& collective) {
  if (collective.empty()) return MeasuredFile::read(path);
  const auto op = collective_named(collective);
  ensure(op.has_value(), "the command line takes no other name for --collective");
  return MeasuredFile::read(path, op);
}

std::string report_line(const ScenarioFile& file, const Result& result, bool explain) {
  Json line = heading(file);
  line.update(as_json(result, explain));
  return json_text(line) + "\n";
}

std::string sweep_rows(const std::string& name, const PointId& id, bool bounded, const std::vector<Result>& results) {
  std::string rows;
  for (const Result& result : results) {
    Json line = sweep_heading(name, id, bounded);
    line.update(as_json(result, false));
    rows += json_text(line) + "\n";
  }
  return rows;
}

std::string failed_row(const std::string& name, const PointId& id, bool bounded, const PointError& error) {
  Json line = sweep_heading(name, id, bounded);
  if (!id.varied.empty()) line["point"] = object_of(id.varied);
  line["error"] = {{"kind", error.kind}, {"where", error.where}, {"message", error.message}, {"hint", error.hint}};
  return json_text(line) + "\n";
}

std::string report(const ScenarioFile& file, const std::vector<Result>& results, Format format, bool explain) {
  switch (format) {
    case Format::table:
      return result_table(file, results, explain);
    case Format::csv:
      return csv(file, results);
    case Format::nccl_tests:
      return nccl_tests(results);
    case Format::json: {
      Json document = heading(file);
      if (is_measured(results)) {
        const ErrorBand errors = all_errors(results);
        document["median_abs_error"] = errors.median_abs;
        document["p90_abs_error"] = errors.p90_abs;
      }
      document["results"] = Json::array();
      for (const Result& result : results) document["results"].push_back(as_json(result, explain));
      return json_text(document, 2) + "\n";
    }
    case Format::jsonl: {
      std::string text;
      for (const Result& result : results) text += report_line(file, result, explain);
      return text;
    }
    case Format::matrix:
    case Format::matrix_markdown:
    case Format::matrix_csv:
      break;
  }
  fail_invariant("matrices are made of rows, by matrix_text()");
}

}  // namespace ringsim::tools
