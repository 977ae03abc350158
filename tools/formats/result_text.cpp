#include "tools/formats/result_text.hpp"
#include "sim/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "sim/text/names_in_short.hpp"
#include "sim/text/wrap.hpp"
#include "tools/explanations/phases_text.hpp"
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

// What varies and has no column of its own.
std::vector<std::string> extra_columns(const std::vector<Result>& results) {
  std::vector<std::string> names;
  if (results.empty()) return names;
  for (const auto& [path, value] : results.front().prediction.varied) {
    const bool shown = path == "transport.protocol" || path == "collective.bytes" || path == "collective.op" ||
                       path == "network.model" || path.starts_with("collective.algorithm") || path == "topology.ranks";
    if (!shown) names.push_back(path);
  }
  return names;
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

std::string value_of(const Prediction& r, const std::string& path) {
  for (const auto& [name, value] : r.varied)
    if (name == path) return without_quotes(value);
  return "";
}

/// What varies, as tables show it: lists of devices in short; a value too long for a few lines is cut in the middle;
/// --format json has it whole.
std::string shown_value(const Prediction& r, const std::string& path) {
  constexpr std::size_t head = 300, tail = 60;
  std::string value = names_in_short(value_of(r, path));
  if (value.size() <= head + tail + 5) return value;
  return value.substr(0, head) + " ... " + value.substr(value.size() - tail);
}

/// The lines below a table, each once: what (*) means, calibration, folding, what was not proved.
std::string notes(const std::vector<Result>& results, bool closed_forms) {
  std::vector<std::string> lines;
  const auto add = [&](std::string line) {
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(std::move(line));
  };
  if (!closed_forms) add("closed form: not compared, as its assumptions do not hold here; --explain says which");
  for (const Result& r : results)
    if (closed_forms && r.form)
      for (const std::string& because : r.form->because) add("(*) not the form's case: " + because);
  for (const Result& r : results)
    if (!r.prediction.calibration.empty()) add("calibrated: " + r.prediction.calibration);
  for (const Result& r : results)
    if (r.prediction.folded) add("folded: " + *r.prediction.folded);
  for (const Result& r : results)
    if (!r.prediction.remembered.empty()) add("remembered: " + r.prediction.remembered);
  for (const Result& r : results)  // channels that stand for others have the same links
    if (r.prediction.folded && r.prediction.folded->find("ranks") != std::string::npos && r.prediction.bottleneck &&
        !r.prediction.bottleneck->link.empty())
      add("the bottleneck of a folded run is the link of a rank that stands for others; --no-fold names the first one "
          "of all");
  for (const Result& r : results)
    if (r.prediction.proof.by == Proof::By::matching)
      add(fmt::format("matching only: {} names no regions; that it is the collective is not proved",
                      algorithm_text(r.prediction)));
  std::string text;
  for (const std::string& line : lines) text += wrapped(line) + '\n';
  return text;
}

/// Who does what in a training step, and what it keeps.
std::string ranks_of_step(const TrainingReport& training) {
  Table ranks({"who", "compute us", "exposed us", "waiting us", "host us", "idle us", "sends", "receives", "memory"});
  const auto time = [](Picoseconds part) { return fmt::format("{:.3f}", microseconds(part)); };
  for (const RankReport& rank : training.by_rank)
    ranks.add({rank.who, time(rank.split.compute), time(rank.split.exposed_communication),
               time(rank.split.waiting_for_others), time(rank.split.waiting_for_host), time(rank.split.idle),
               format(rank.sent), format(rank.received), format(rank.memory.total())});
  return ranks.fitted();
}

/// What a library takes for each size that a training step exchanges.
std::string exchanges_of_step(const TrainingReport& training) {
  if (training.exchanges.empty()) return "";
  Table sizes({"exchanges", "a step", "algorithm", "protocol", "channels"});
  for (const ExchangeReport& one : training.exchanges)
    sizes.add(
        {format(one.bytes), fmt::to_string(one.times), one.algorithm, one.protocol, fmt::to_string(one.channels)});
  return sizes.fitted();
}

/// "16 MiB all_reduce ring": what the result is of.
std::string heading_of_result(const Prediction& r, const std::vector<std::string>& extra) {
  std::string heading = fmt::format("{}{} {} {}", r.job.empty() ? "" : r.job + ": ", format(r.request.bytes),
                                    to_string(r.request.op), algorithm_text(r));
  for (const std::string& path : extra) heading += fmt::format(", {} {}", path, shown_value(r, path));
  return heading;
}

/// What --phases adds to the table.
std::string all_phases(const std::vector<Result>& results, const std::vector<std::string>& extra) {
  std::string text;
  for (const Result& result : results)
    if (const Prediction& r = result.prediction; !r.phases.empty())
      text += '\n' + wrapped(heading_of_result(r, extra)) + phases_text(r) + phase_steps_text(r);
  return text;
}

/// What --explain adds to the table: what held each run back, and what its links carried.
std::string explanation(const std::vector<Result>& results, const std::vector<std::string>& extra) {
  std::string text;
  for (const Result& result : results) {
    const Prediction& r = result.prediction;
    std::string heading = heading_of_result(r, extra);
    if (r.bottleneck)
      heading += fmt::format(": {:.1f} % of the critical path is due to {}, {:.1f} % to latency and filling",
                             100 * r.bottleneck->busy, r.bottleneck->link.empty() ? "no link" : r.bottleneck->link,
                             100 * r.bottleneck->latency);
    if (r.bottleneck && r.bottleneck->delay > 0)
      heading += fmt::format(", {:.1f} % to ranks that are late, slow or unsteady", 100 * r.bottleneck->delay);
    text += '\n' + wrapped(heading) + '\n';
    if (!r.ring.empty()) text += wrapped("ring: " + r.ring) + '\n';
    if (!r.job.empty() && r.links.empty()) continue;  // printed with the first job
    if (r.training) text += ranks_of_step(*r.training) + exchanges_of_step(*r.training);
    Table links({"links", "kind", "count", "busiest carried", "utilization"});
    for (const LinkGroup& group : r.links)
      links.add({group.links, group.kind, fmt::to_string(group.count), format(group.most),
                 fmt::format("{:.1f} %", 100 * group.utilization)});
    text += links.fitted();
  }
  return text;
}

/// A column's value as the table shows it; empty if there is none.
std::string shown(const Column& column, const Result& result) {
  if (column.shown != nullptr) return column.shown(result);
  const Json value = column.value(result);
  if (value.is_null()) return "";
  if (value.is_number_float()) return fmt::format("{:.3f}", value.get<double>());
  return without_quotes(value.dump());
}

bool is_shown(const Column& column, const std::vector<Result>& results, bool explain) {
  const auto any = [&](auto holds) { return std::any_of(results.begin(), results.end(), holds); };
  if (column.heading.empty()) return false;
  if (column.relevant != nullptr && !explain && !any(column.relevant)) return false;
  return column.in == Column::In::every_row || any([&](const Result& r) { return !shown(column, r).empty(); });
}

/// A column of the printed table.
struct ShownColumn {
  std::string heading, above;
  std::function<std::string(const Result&)> text;
};

/// True if the column with that heading has another value for each value of a path that varies: no second one is
/// needed.
bool tells_apart(const std::string& heading, const std::string& path, const std::vector<Result>& results) {
  std::map<std::string, std::string> value_of;
  for (const Column& column : result_columns()) {
    if (column.heading != heading) continue;
    for (const Result& result : results) {
      const std::string value = shown_value(result.prediction, path);
      const auto [known, is_new] = value_of.try_emplace(shown(column, result), value);
      if (known->second != value) return false;
    }
  }
  return true;
}

/// `closed_forms`: becomes whether the closed form is among them.
std::vector<ShownColumn> shown_columns(const std::vector<Result>& results, bool explain, bool& closed_forms) {
  std::vector<ShownColumn> columns;
  for (const Column& column : result_columns()) {
    if (column.name == "point.*") {
      for (const std::string& path : extra_columns(results)) {
        const std::string word = path.substr(path.rfind('.') + 1);
        const bool taken = std::any_of(result_columns().begin(), result_columns().end(),
                                       [&](const Column& other) { return other.heading == word; });
        if (path == word && taken && tells_apart(word, path, results)) continue;
        const std::string heading = !taken ? word : path == word ? path + " as set" : path;
        columns.push_back(
            {heading, heading + " {}", [path](const Result& r) { return shown_value(r.prediction, path); }});
      }
    } else if (is_shown(column, results, explain)) {
      closed_forms = closed_forms || column.name == "closed_form.ratio";
      columns.push_back({std::string(column.heading), std::string(column.above),
                         [&column](const Result& r) { return shown(column, r); }});
    }
  }
  return columns;
}

std::vector<std::vector<std::string>> cells_of(const std::vector<ShownColumn>& columns,
                                               const std::vector<Result>& results) {
  std::vector<std::vector<std::string>> lines(1);
  for (const ShownColumn& column : columns) lines.front().push_back(column.heading);
  for (const Result& result : results) {
    lines.emplace_back();
    for (const ShownColumn& column : columns) lines.back().push_back(column.text(result));
  }
  return lines;
}

std::string table(const std::vector<Result>& results, bool explain) {
  bool closed_forms = false;
  const std::vector<ShownColumn> columns = shown_columns(results, explain, closed_forms);
  const std::vector<std::vector<std::string>> lines = cells_of(columns, results);
  Table table(lines.front());
  for (const ShownColumn& column : columns)
    if (!column.above.empty()) table.pull_out(column.heading, column.above);
  for (std::size_t i = 1; i < lines.size(); ++i) table.add(lines[i]);
  const std::vector<std::string> extra = extra_columns(results);
  return table.fitted() + notes(results, closed_forms) + (explain ? explanation(results, extra) : "") +
         all_phases(results, extra);
}

}  // namespace

ResultRow row_of(const ScenarioFile& file, const Result& result) {
  Json line = heading(file);
  line.update(as_json(result, false));
  return ResultRow::of(line);
}

std::vector<std::vector<std::string>> table_cells(const std::vector<Result>& results) {
  bool closed_forms = false;
  return cells_of(shown_columns(results, /*explain=*/false, closed_forms), results);
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
    for (const std::string& path : extra_columns(results)) about += fmt::format(", {} {}", path, value_of(r, path));
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
    text += fmt::format("# Beside {} measured times: median |error| {:.1f} %, 90th percentile {:.1f} %\n", errors.rows,
                        100 * errors.median_abs, 100 * errors.p90_abs);
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
      return table(results, explain);
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
