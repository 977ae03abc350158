#include "tools/output/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "tools/output/output.hpp"
#include "validate/results/results.hpp"
#include "validate/score/compare.hpp"

namespace ringsim::tools {

namespace {

Json as_json(const ClosedForm& form, Picoseconds simulated) {
  const std::optional<double> ratio = form.ratio(simulated);
  return {{"formula", form.formula},
          {"time_us", microseconds(form.time)},
          {"ratio", ratio ? Json(*ratio) : Json(nullptr)},
          {"holds", form.holds()},
          {"because", form.because}};
}

Json object_of(const std::vector<std::pair<std::string, std::string>>& pairs) {
  Json result = Json::object();
  for (const auto& [key, value] : pairs) result[key] = Json::parse(value);
  return result;
}

const char* proof_text(Proof::By by) {
  switch (by) {
    case Proof::By::all_ranks:
      return "all ranks";
    case Proof::By::symmetry:
      return "symmetry";
    case Proof::By::symmetry_samples:
      return "symmetry, checked at samples";
    case Proof::By::matching:
      return "matching only";
  }
  fail_invariant("a proof was found in one of four ways");
}

std::string fingerprint_text(const Prediction& r) {
  return r.fingerprint ? fmt::format("{:016x}", *r.fingerprint) : "";
}

Json as_json(const Prediction& r, bool explain) {
  Json result = Json::object();
  if (!r.job.empty()) result["job"] = r.job;
  result["collective"] = to_string(r.request.op);
  result["algorithm"] = r.algorithm;
  if (!r.parameters.empty()) result["parameters"] = object_of(r.parameters);
  result["protocol"] = r.protocol->name;
  result["model"] = to_string(r.model);
  result["ranks"] = r.request.ranks;
  result["bytes"] = r.request.bytes.count;
  if (!r.calibration.empty()) result["calibration"] = r.calibration;
  if (!r.varied.empty()) result["point"] = object_of(r.varied);
  if (r.start.count() > 0) result["start_us"] = microseconds(r.start);
  result["time_us"] = microseconds(r.time);
  result["algbw_GBps"] = r.algbw;
  result["busbw_GBps"] = r.busbw;
  if (r.measured_us) {
    result["measured_us"] = *r.measured_us;
    if (r.replayed) {
      result["measured_min_us"] = r.replayed->min_us;
      result["measured_max_us"] = r.replayed->max_us;
      result["wrong"] = r.replayed->wrong;
    }
    if (r.modelled) {
      result["modelled_in_turn_us"] = r.modelled->in_turn_us;
      result["modelled_shared_us"] = r.modelled->shared_us;
    }
    result["error"] = error_of(r);
  }
  result["transfers"] = r.transfers;
  result["closed_form"] = r.form ? as_json(*r.form, r.time) : Json(nullptr);
  if (r.bottleneck && !r.bottleneck->link.empty())
    result["bottleneck"] = {{"link", r.bottleneck->link},
                            {"kind", r.bottleneck->kind},
                            {"busy", r.bottleneck->busy},
                            {"latency", r.bottleneck->latency}};
  else
    result["bottleneck"] = nullptr;
  if (r.disturbed) result["delayed"] = r.bottleneck ? r.bottleneck->delay : 0.0;
  if (r.inter_node) result["inter_node"] = {{"bytes", r.inter_node->first.count}, {"GBps", r.inter_node->second}};
  result["proof"] = proof_text(r.proof.by);
  result["fingerprint"] = r.fingerprint ? Json(fingerprint_text(r)) : Json(nullptr);
  if (r.folded) result["folded"] = *r.folded;
  if (explain && !r.ring.empty()) result["ring"] = r.ring;
  if (explain) {
    result["links"] = Json::array();
    for (const LinkGroup& group : r.links)
      result["links"].push_back({{"links", group.links},
                                 {"kind", group.kind},
                                 {"count", group.count},
                                 {"most_bytes", group.most.count},
                                 {"utilisation", group.utilisation}});
  }
  return result;
}

Json heading(const std::string& name, const std::string& hash) {
  return {{"ringsim", {{"version", version}, {"model_version", model_version}}},
          {"scenario", {{"name", name}, {"hash", hash}}}};
}
Json heading(const ScenarioFile& file) { return heading(file.name(), file.hash()); }

Json sweep_heading(const std::string& name, const PointId& id) {
  Json line = heading(name, id.hash);
  line["key"] = result_key(name, id);
  return line;
}

// What varies and has no column of its own.
std::vector<std::string> extra_columns(const std::vector<Prediction>& results) {
  std::vector<std::string> names;
  if (results.empty()) return names;
  for (const auto& [path, value] : results.front().varied) {
    const bool shown = path == "transport.protocol" || path == "collective.bytes" || path == "collective.op" ||
                       path == "network.model" || path.starts_with("collective.algorithm") || path == "topology.ranks";
    if (!shown) names.push_back(path);
  }
  return names;
}

bool has_jobs(const std::vector<Prediction>& results) {
  return std::any_of(results.begin(), results.end(), [](const Prediction& r) { return !r.job.empty(); });
}
bool is_measured(const std::vector<Prediction>& results) {
  return std::any_of(results.begin(), results.end(), [](const Prediction& r) { return r.measured_us.has_value(); });
}
bool is_modelled(const std::vector<Prediction>& results) {
  return std::any_of(results.begin(), results.end(), [](const Prediction& r) { return r.modelled.has_value(); });
}
bool is_replayed(const std::vector<Prediction>& results) {
  return std::any_of(results.begin(), results.end(), [](const Prediction& r) { return r.replayed.has_value(); });
}
bool is_calibrated(const std::vector<Prediction>& results) {
  return std::any_of(results.begin(), results.end(), [](const Prediction& r) { return !r.calibration.empty(); });
}
/// |predicted/measured - 1| of all rows that were measured. Requires one.
ErrorBand all_errors(const std::vector<Prediction>& results) {
  std::vector<SizedError> errors;
  for (const Prediction& r : results)
    if (r.measured_us) errors.push_back({r.request.bytes, error_of(r)});
  return error_band("all", errors);
}
bool is_delayed(const std::vector<Prediction>& results) {
  return std::any_of(results.begin(), results.end(),
                     [](const Prediction& r) { return r.bottleneck && r.bottleneck->delay > 0; });
}

std::string value_of(const Prediction& r, const std::string& path) {
  for (const auto& [name, value] : r.varied)
    if (name == path) return without_quotes(value);
  return "";
}

/// What varies, as the table shows it: a value too long for a column has a number there, and is told by `legend`.
class Values {
 public:
  std::string shown(const Prediction& r, const std::string& path) {
    std::string value = value_of(r, path);
    if (value.size() <= widest) return value;
    std::vector<std::string>& known = long_ones_[path];
    auto found = std::find(known.begin(), known.end(), value);
    if (found == known.end()) found = known.insert(known.end(), std::move(value));
    return fmt::format("[{}]", found - known.begin() + 1);
  }
  /// A line for each, cut in the middle where even a line is too short; --format json has them whole.
  std::string legend() const {
    constexpr std::size_t head = 110, tail = 24;
    std::string text;
    for (const auto& [path, values] : long_ones_) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::string& value = values[i];
        text += fmt::format("{} [{}]: {}\n", path, i + 1,
                            value.size() <= head + tail + 5
                                ? value
                                : value.substr(0, head) + " ... " + value.substr(value.size() - tail));
      }
    }
    return text;
  }

 private:
  static constexpr std::size_t widest = 40;
  std::map<std::string, std::vector<std::string>> long_ones_;  // [path], in the order of their first row
};

std::string table(const std::vector<Prediction>& results, bool explain) {
  Values values;
  const std::vector<std::string> extra = extra_columns(results);
  const bool inter_node =
      std::any_of(results.begin(), results.end(), [](const auto& r) { return r.inter_node.has_value(); });
  const bool jobs = has_jobs(results), delayed = is_delayed(results), measured = is_measured(results),
             replayed = is_replayed(results), modelled = is_modelled(results);
  std::vector<std::string> head{"bytes", "collective", "algorithm", "model", "ranks"};
  const bool protocols =
      std::any_of(results.begin(), results.end(), [](const auto& r) { return r.protocol->slots > 0; });
  if (protocols) head.emplace_back("protocol");
  if (jobs) head.insert(head.begin(), "job");
  for (const std::string& path : extra) head.push_back(path.substr(path.rfind('.') + 1));
  for (const char* name : {"time us", "algbw GB/s", "busbw GB/s"}) head.emplace_back(name);
  if (measured) head.emplace_back("measured us");
  if (replayed) head.insert(head.end(), {"min us", "max us", "wrong"});
  if (modelled) head.insert(head.end(), {"in turn us", "shared us"});
  if (measured) head.emplace_back("error");
  if (inter_node) head.emplace_back("node out GB/s");
  for (const char* name : {"closed form", "bottleneck", "busy"}) head.emplace_back(name);
  if (delayed) head.emplace_back("delayed");
  Table table(head);
  for (const Prediction& r : results) {
    std::vector<std::string> row{format(r.request.bytes), std::string(to_string(r.request.op)), algorithm_text(r),
                                 std::string(to_string(r.model)), fmt::to_string(r.request.ranks)};
    if (protocols) row.emplace_back(r.protocol->name);
    if (jobs) row.insert(row.begin(), r.job);
    for (const std::string& path : extra) row.push_back(values.shown(r, path));
    row.push_back(fmt::format("{:.3f}", microseconds(r.time)));
    row.push_back(fmt::format("{:.3f}", r.algbw));
    row.push_back(fmt::format("{:.3f}", r.busbw));
    if (measured) row.push_back(r.measured_us ? fmt::format("{:.3f}", *r.measured_us) : "");
    if (replayed) {
      row.push_back(r.replayed ? fmt::format("{:.3f}", r.replayed->min_us) : "");
      row.push_back(r.replayed ? fmt::format("{:.3f}", r.replayed->max_us) : "");
      row.push_back(r.replayed ? fmt::to_string(r.replayed->wrong) : "");
    }
    if (modelled) {
      row.push_back(r.modelled ? fmt::format("{:.3f}", r.modelled->in_turn_us) : "");
      row.push_back(r.modelled ? fmt::format("{:.3f}", r.modelled->shared_us) : "");
    }
    if (measured) row.push_back(r.measured_us ? fmt::format("{:+.1f} %", 100 * error_of(r)) : "");
    if (inter_node) row.push_back(r.inter_node ? fmt::format("{:.3f}", r.inter_node->second) : "");
    const auto ratio = r.form ? r.form->ratio(r.time) : std::nullopt;
    row.push_back(!r.form ? "none known"
                          : (ratio ? fmt::format("x {:.4f}", *ratio) : "0 us") + (r.form->holds() ? "" : " (*)"));
    row.push_back(r.bottleneck ? (r.bottleneck->link.empty() ? "latency" : r.bottleneck->link) : "");
    row.push_back(r.bottleneck ? fmt::format("{:.1f} %", 100 * r.bottleneck->busy) : "");
    if (delayed) row.push_back(r.bottleneck ? fmt::format("{:.1f} %", 100 * r.bottleneck->delay) : "");
    table.add(row);
  }
  std::string text = table.text() + values.legend();
  std::vector<std::string> reasons;
  for (const Prediction& r : results) {
    if (!r.form) continue;
    for (const std::string& because : r.form->because)
      if (std::find(reasons.begin(), reasons.end(), because) == reasons.end()) reasons.push_back(because);
  }
  for (const std::string& because : reasons) text += fmt::format("(*) not the form's case: {}\n", because);
  reasons.clear();
  for (const Prediction& r : results)
    if (!r.calibration.empty() && std::find(reasons.begin(), reasons.end(), r.calibration) == reasons.end())
      reasons.push_back(r.calibration);
  for (const std::string& factors : reasons) text += fmt::format("calibrated: {}\n", factors);
  reasons.clear();
  for (const Prediction& r : results)
    if (r.folded && std::find(reasons.begin(), reasons.end(), *r.folded) == reasons.end()) reasons.push_back(*r.folded);
  for (const std::string& because : reasons) text += fmt::format("folded: {}\n", because);
  reasons.clear();
  for (const Prediction& r : results) {
    std::string what = algorithm_text(r);
    if (r.proof.by == Proof::By::matching && std::find(reasons.begin(), reasons.end(), what) == reasons.end())
      reasons.push_back(std::move(what));
  }
  for (const std::string& what : reasons)
    text += fmt::format("matching only: {} names no regions; that it is the collective is not proved\n", what);
  if (!explain) return text;
  for (const Prediction& r : results) {
    text += fmt::format("\n{}{} {} {}", r.job.empty() ? "" : r.job + ": ", format(r.request.bytes),
                        to_string(r.request.op), algorithm_text(r));
    for (const std::string& path : extra) text += fmt::format(", {} {}", path, values.shown(r, path));
    if (r.bottleneck)
      text += fmt::format(": {:.1f} % of the critical path is owed to {}, {:.1f} % to latency and filling",
                          100 * r.bottleneck->busy, r.bottleneck->link.empty() ? "no link" : r.bottleneck->link,
                          100 * r.bottleneck->latency);
    if (r.bottleneck && r.bottleneck->delay > 0)
      text += fmt::format(", {:.1f} % to ranks that are late, slow or unsteady", 100 * r.bottleneck->delay);
    text += '\n';
    if (!r.ring.empty()) text += fmt::format("ring: {}\n", r.ring);
    if (!r.job.empty() && r.links.empty()) continue;  // told with the first one's
    Table links({"links", "kind", "count", "busiest carried", "utilisation"});
    for (const LinkGroup& group : r.links)
      links.add({group.links, group.kind, fmt::to_string(group.count), format(group.most),
                 fmt::format("{:.1f} %", 100 * group.utilisation)});
    text += links.text();
  }
  return text;
}

std::string csv(const std::vector<Prediction>& results) {
  std::vector<std::string> varied;
  if (!results.empty())
    for (const auto& [path, value] : results.front().varied) varied.push_back(path);
  std::string text =
      "collective,algorithm,protocol,model,ranks,bytes,time_us,algbw_GBps,busbw_GBps,transfers,"
      "closed_form,closed_form_us,closed_form_ratio,closed_form_holds,bottleneck_link,bottleneck_kind,bottleneck_busy,"
      "bottleneck_latency,inter_node_bytes,inter_node_GBps,fingerprint";
  const bool jobs = has_jobs(results);
  const bool disturbed = std::any_of(results.begin(), results.end(), [](const auto& r) { return r.disturbed; });
  if (jobs) text += ",job,start_us";
  if (disturbed) text += ",delayed";
  const bool measured = is_measured(results), replayed = is_replayed(results), modelled = is_modelled(results);
  if (measured) text += ",measured_us,error";
  if (replayed) text += ",measured_min_us,measured_max_us,wrong";
  if (modelled) text += ",modelled_in_turn_us,modelled_shared_us";
  const bool calibrated = is_calibrated(results);
  if (calibrated) text += ",calibration";
  for (const std::string& path : varied) text += "," + csv_field("point." + path);
  text += '\n';
  for (const Prediction& r : results) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},", to_string(r.request.op), csv_field(algorithm_text(r)),
                        r.protocol->name, to_string(r.model), r.request.ranks, r.request.bytes.count,
                        microseconds(r.time), r.algbw, r.busbw, r.transfers);
    const auto ratio = r.form ? r.form->ratio(r.time) : std::nullopt;
    text += r.form ? fmt::format("{},{},{},{},", csv_field(r.form->formula), microseconds(r.form->time),
                                 ratio ? fmt::to_string(*ratio) : "", r.form->holds())
                   : ",,,,";
    text += r.bottleneck ? fmt::format("{},{},{},{},", csv_field(r.bottleneck->link), r.bottleneck->kind,
                                       r.bottleneck->busy, r.bottleneck->latency)
                         : ",,,,";
    text += r.inter_node ? fmt::format("{},{},", r.inter_node->first.count, r.inter_node->second) : ",,";
    text += fingerprint_text(r);
    if (jobs) text += fmt::format(",{},{}", csv_field(r.job), microseconds(r.start));
    if (disturbed) text += fmt::format(",{}", r.bottleneck ? r.bottleneck->delay : 0.0);
    if (measured) text += r.measured_us ? fmt::format(",{},{}", *r.measured_us, error_of(r)) : ",,";
    if (replayed)
      text += r.replayed ? fmt::format(",{},{},{}", r.replayed->min_us, r.replayed->max_us, r.replayed->wrong) : ",,,";
    if (modelled) text += r.modelled ? fmt::format(",{},{}", r.modelled->in_turn_us, r.modelled->shared_us) : ",,";
    if (calibrated) text += "," + csv_field(r.calibration);
    for (const std::string& path : varied) text += "," + csv_field(value_of(r, path));
    text += '\n';
  }
  return text;
}

// The layout of nccl-tests (common.cu): out-of-place and in-place columns, which are one figure here, the predicted
// one. Wrong elements are those of a replay; else none move that could be wrong. One byte an element: a simulated size
// need not be a multiple of anything.
std::string nccl_tests(const std::vector<Prediction>& results) {
  std::string text, before;
  double sum = 0;
  for (const Prediction& r : results) {
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
                          r.replayed ? fmt::to_string(r.replayed->wrong) : "N/A");
    text += '\n';
    sum += r.busbw;
  }
  if (!results.empty())
    text += fmt::format("# Avg bus bandwidth    : {:.6g}\n", sum / static_cast<double>(results.size()));
  if (is_measured(results)) {
    const ErrorBand errors = all_errors(results);
    text += fmt::format("# Beside {} measured times: median |error| {:.1f} %, 90th percentile {:.1f} %\n", errors.rows,
                        100 * errors.median_abs, 100 * errors.p90_abs);
  }
  return text;
}

}  // namespace

MeasuredTable read_measured_as(const std::string& path, const std::string& collective) {
  if (collective.empty()) return read_measured(path);
  const auto op = collective_named(collective);
  if (!op)
    throw InputError("--collective", fmt::format("expected the name of a collective, found \"{}\"", collective),
                     "all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, ...");
  return read_measured(path, op);
}

std::string algorithm_text(const Prediction& r) {
  std::string text = r.algorithm;
  for (const auto& [name, value] : r.parameters) text += fmt::format(" {}={}", name, without_quotes(value));
  return text;
}

std::string report_line(const ScenarioFile& file, const Prediction& result, bool explain) {
  Json line = heading(file);
  line.update(as_json(result, explain));
  return json_text(line) + "\n";
}

std::string sweep_rows(const std::string& name, const PointId& id, const Prediction& result) {
  Json line = sweep_heading(name, id);
  line.update(as_json(result, false));
  std::string rows = json_text(line) + "\n";
  for (const Prediction& job : result.jobs) rows += sweep_rows(name, id, job);
  return rows;
}

std::string failed_row(const std::string& name, const PointId& id, const PointError& error) {
  Json line = sweep_heading(name, id);
  if (!id.varied.empty()) line["point"] = object_of(id.varied);
  line["error"] = {{"kind", error.kind}, {"where", error.where}, {"message", error.message}, {"hint", error.hint}};
  return json_text(line) + "\n";
}

std::string report(const ScenarioFile& file, const std::vector<Prediction>& results, Format format, bool explain) {
  switch (format) {
    case Format::table:
      return table(results, explain);
    case Format::csv:
      return csv(results);
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
      for (const Prediction& result : results) document["results"].push_back(as_json(result, explain));
      return json_text(document, 2) + "\n";
    }
    case Format::jsonl: {
      std::string text;
      for (const Prediction& result : results) text += report_line(file, result, explain);
      return text;
    }
  }
  return "";
}

}  // namespace ringsim::tools
