#include "validate/analysis/difference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/results/results.hpp"

namespace ringsim {

namespace {

void flatten(const std::string& path, const Json& value, std::map<std::string, std::string>& into) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      flatten(path.empty() ? key : fmt::format("{}.{}", path, key), member, into);
  } else if (value.is_array() &&
             std::any_of(value.begin(), value.end(), [](const Json& e) { return e.is_structured(); })) {
    for (std::size_t i = 0; i < value.size(); ++i) flatten(fmt::format("{}.{}", path, i), value[i], into);
  } else {
    into[path] = value.dump();
  }
}

/// What a row of `run` tells about its input.
bool is_input_column(const std::string& column) {
  static const std::set<std::string> names{"job",
                                           "collective",
                                           "algorithm",
                                           "protocol",
                                           "model",
                                           "ranks",
                                           "nodes",
                                           "bytes",
                                           "calibration",
                                           "scenario.name",
                                           "scenario.hash",
                                           "ringsim.version",
                                           "ringsim.model_version"};
  return names.contains(column) || column.starts_with("point.") || column.starts_with("parameters.");
}

/// A result's time in picoseconds; requires us >= 0.
Picoseconds picoseconds_of(double us, const std::string& where) {
  constexpr double most_ps = 9.2e18;
  if (us * 1e6 > most_ps)
    throw InputError(where, fmt::format("expected a time of at most 106 days, found {} us", us),
                     "the file was changed, or is damaged");
  return Picoseconds{std::llround(us * 1e6)};
}

ExplainedRun of_row(const ResultRow& row, const std::string& name) {
  if (row.failed()) throw InputError(name, "expected a result, found a failed point: " + row.error());
  ExplainedRun run{.name = name, .input = {}, .time = picoseconds_of(row.time_us(), name)};
  for (const Cell& cell : row.cells) {
    if (!is_input_column(cell.column)) continue;
    run.input[cell.column] = std::holds_alternative<std::string>(cell.value)
                                 ? Json(std::get<std::string>(cell.value)).dump()
                                 : plain_text(cell);
  }
  if (const Cell* busbw = row.find("busbw_GBps")) run.busbw = std::strtod(plain_text(*busbw).c_str(), nullptr);
  if (const Cell* link = row.find("bottleneck.link")) run.bottleneck = plain_text(*link);
  return run;
}

std::vector<ExplainedRun::Part> read_parts(const Json& why, const std::string& name) {
  std::vector<ExplainedRun::Part> parts;
  const auto fail = [&](std::size_t i, const std::string& found) {
    throw InputError(fmt::format("{}: /why/{}", name, i),
                     "expected a part with cause, kind and us of at least 0, found " + found,
                     "`ringsim explain --format json` writes such files");
  };
  if (!why.is_array()) throw InputError(name + ": /why", "expected a list of parts, found another value");
  for (std::size_t i = 0; i < why.size(); ++i) {
    const Json& part = why[i];
    const auto is_text = [&](const char* key) { return part.contains(key) && part[key].is_string(); };
    if (!part.is_object() || !is_text("cause") || !is_text("kind") || !part.contains("us") || !part["us"].is_number() ||
        part["us"].get<double>() < 0)
      fail(i, part.is_object() ? "another object" : describe(part));
    parts.push_back({.cause = part["cause"].get<std::string>(),
                     .kind = part["kind"].get<std::string>(),
                     .links = is_text("links") ? part["links"].get<std::string>() : "",
                     .time = picoseconds_of(part["us"].get<double>(), fmt::format("{}: /why/{}", name, i)),
                     .task = is_text("task") ? part["task"].get<std::string>() : ""});
  }
  return parts;
}

}  // namespace

ExplainedRun explained_run(const std::string& name, const Result& result, const std::string& canonical) {
  const Prediction& p = result.prediction;
  ensure(p.explanation.has_value(), "only explained predictions are compared");
  ExplainedRun run{.name = name, .input = {}, .time = p.time, .busbw = p.busbw};
  flatten("", Json::parse(canonical), run.input);
  if (p.bottleneck) run.bottleneck = p.bottleneck->link;
  run.parts.emplace();
  for (const ExplainedPart& part : p.explanation->parts)
    run.parts->push_back({part.cause, part.kind, part.links, part.time, part.task});
  return run;
}

bool is_result_text(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') return false;
  const std::size_t key = text.find_first_not_of(" \t\r\n", first + 1);
  return key != std::string_view::npos && text.substr(key).starts_with("\"ringsim\"");
}

ExplainedRun read_explained(std::string_view text, const std::string& name) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  text = text.substr(0, end + 1);
  const auto one_of = [&](std::size_t n) {
    if (n != 1)
      throw InputError(name, fmt::format("expected one result, found {}", n),
                       "compare files with one point each, or scenarios, and choose the point with --set");
  };
  const std::size_t line_end = text.find('\n');
  // JSON lines: the first line is an object by itself.
  if (line_end != std::string_view::npos && line_end > 0 && text[line_end - 1] == '}' && text[line_end + 1] == '{')
    one_of(2);
  const Json document = parse_json(text, name);
  if (!document.is_object()) throw InputError(name, "expected a result of ringsim, found other JSON");
  if (document.contains("results")) {
    if (!document["results"].is_array()) throw InputError(name + ": /results", "expected a list, found another value");
    one_of(document["results"].size());
    const Json& result = document["results"].front();
    if (!result.is_object()) throw InputError(name + ": /results/0", "expected a result, found " + describe(result));
    Json row = document;
    row.erase("results");
    row.update(result);
    return of_row(ResultRow::parse(row.dump(), name), name);
  }
  ExplainedRun run = of_row(ResultRow::parse(document.dump(), name), name);
  if (!document.contains("why")) return run;
  run.parts = read_parts(document["why"], name);
  Picoseconds sum{0};
  bool too_long = false;  // then the sum may leave 64 bits
  for (const ExplainedRun::Part& part : *run.parts) {
    too_long = part.time > run.time - sum;
    if (too_long) break;
    sum += part.time;
  }
  if (too_long)
    throw InputError(name + ": /why",
                     fmt::format("expected parts that sum to time_us, {:.6f}, found more", microseconds(run.time)));
  if (sum != run.time)
    throw InputError(name + ": /why", fmt::format("expected parts that sum to time_us, {:.6f}, found {:.6f}",
                                                  microseconds(run.time), microseconds(sum)));
  if (document.contains("input")) {
    run.input.clear();
    flatten("", document["input"], run.input);
  }
  return run;
}

std::vector<InputChange> input_changes(const ExplainedRun& a, const ExplainedRun& b) {
  std::set<std::string> paths;
  for (const auto& [path, value] : a.input) paths.insert(path);
  for (const auto& [path, value] : b.input) paths.insert(path);
  const auto value_in = [](const ExplainedRun& run, const std::string& path) -> std::optional<std::string> {
    const auto found = run.input.find(path);
    return found == run.input.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<InputChange> changes;
  for (const std::string& path : paths) {
    InputChange change{path, value_in(a, path), value_in(b, path)};
    if (change.a != change.b) changes.push_back(std::move(change));
  }
  return changes;
}

std::vector<PartChange> part_changes(const ExplainedRun& a, const ExplainedRun& b) {
  ensure(a.parts && b.parts, "parts are compared where both sides have some");
  std::map<std::tuple<std::string, std::string, std::string, std::string>, PartChange> found;
  const auto add = [&](const ExplainedRun& run, Picoseconds PartChange::*side) {
    for (const ExplainedRun::Part& part : *run.parts) {
      PartChange& change = found[{part.task, part.cause, part.kind, part.links}];
      change.task = part.task;
      change.cause = part.cause;
      change.kind = part.kind;
      change.links = part.links;
      change.*side += part.time;
    }
  };
  add(a, &PartChange::a);
  add(b, &PartChange::b);
  std::vector<PartChange> changes;
  Picoseconds sum{0};
  for (auto& [key, change] : found) {
    sum += change.b - change.a;
    if (change.a != change.b) changes.push_back(std::move(change));
  }
  ensure(sum == b.time - a.time, "the differences of the parts sum to that of the times");
  const auto size = [](const PartChange& change) { return std::abs((change.b - change.a).count()); };
  std::stable_sort(changes.begin(), changes.end(),
                   [&](const PartChange& x, const PartChange& y) { return size(x) > size(y); });
  return changes;
}

}  // namespace ringsim
