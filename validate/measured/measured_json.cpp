// JSON of nccl-tests (-J), of rccl-tests (-x FILE -Z json) and of mscclpp-test (-o FILE).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "sim/text/json_scan.hpp"
#include "sim/text/plain_text.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

namespace {

/// A value, and how errors call its place.
struct Spot {
  const Json& json;
  std::string where;

  Spot at(const std::string& key) const {
    if (!json.is_object() || !json.contains(key)) throw InputError(where, fmt::format("expected a key \"{}\"", key));
    return {json.at(key), where + "/" + key};
  }
  bool has(const std::string& key) const { return json.is_object() && json.contains(key) && !json.at(key).is_null(); }

  [[noreturn]] void refuse(const std::string& expected) const {
    throw InputError(where, fmt::format("expected {}, found {}", expected, describe(json)));
  }
  Number number() const {
    if (!json.is_number()) refuse("a number");
    const auto value = json.get<double>();
    if (!std::isfinite(value) || value < 0) refuse("a number of at least 0");
    return {value, 5e-7};  // nccl-tests prints six decimals
  }
  /// As flaw_of(). nccl-tests writes NaN as a string (src/util.cu, jsonDouble).
  std::optional<std::string> flaw(Measure measure) const {
    if (!json.is_string() && !json.is_number()) return std::nullopt;
    const std::string text = json.is_string() ? lower(json.get<std::string>()) : fmt::format("{}", json.get<double>());
    if (json.is_string() && !number_in(text)) return std::nullopt;
    auto flaw = flaw_of(text, measure, where.substr(where.rfind('/') + 1));
    if (flaw) flaw = fmt::format("{}: {}", where, *flaw);
    return flaw;
  }
  std::int64_t count() const {
    if (!json.is_number_integer() || json.get<double>() < 0 || json.get<double>() > 9e18)
      refuse("a whole number of at least 0");
    return json.get<std::int64_t>();
  }
  std::string text() const {
    if (!json.is_string()) refuse("a text");
    return json.get<std::string>();
  }
  std::vector<Spot> items() const {
    if (!json.is_array()) refuse("a list");
    std::vector<Spot> all;
    for (std::size_t i = 0; i < json.size(); ++i) all.push_back({json[i], fmt::format("{}/{}", where, i)});
    return all;
  }
};

/// The names of one benchmark's keys.
struct Keys {
  const char *time, *algbw, *busbw;
};

/// Reads a time and its bandwidths. Returns a flaw with its place, and leaves `timed` empty then.
std::optional<std::string> take_timed(Timed& timed, const Spot& place, const Keys& keys) {
  place.at(keys.time);
  for (const char* key : {keys.time, keys.algbw, keys.busbw})
    if (place.has(key))
      if (auto flaw = place.at(key).flaw(key == keys.time ? Measure::time : Measure::quantity)) return flaw;
  timed.time = place.at(keys.time).number();
  if (place.has(keys.algbw)) timed.algbw = place.at(keys.algbw).number();
  if (place.has(keys.busbw)) timed.busbw = place.at(keys.busbw).number();
  return std::nullopt;
}

/// `time`, `alg_bw`, `bus_bw`, `nwrong`.
std::optional<std::string> take_place(Row& row, const Spot& place, bool in_place) {
  if (place.has("cpu_time") && !place.has("time"))
    throw InputError(place.where, "expected times of whole collectives, found CPU times only (cpu_time)",
                     "measure without -C");
  if (auto flaw = take_timed(in_place ? row.in : row.out, place, {"time", "alg_bw", "bus_bw"})) return flaw;
  if (place.has("nwrong") && !place.at("nwrong").flaw(Measure::quantity)) {
    const Number wrong = place.at("nwrong").number();
    if (wrong.value > 9e18) place.at("nwrong").refuse("a count");
    row.wrong = row.wrong.value_or(0) + static_cast<std::int64_t>(wrong.value);
  }
  return std::nullopt;
}

/// Ranks of one group: all have as many.
std::optional<int> ranks_of(const Spot& document) {
  if (!document.has("config") || !document.at("config").has("devices")) return std::nullopt;
  std::map<std::int64_t, int> sizes;
  const Spot devices = document.at("config").at("devices");
  for (const Spot& device : devices.items()) ++sizes[device.has("group") ? device.at("group").count() : 0];
  for (const auto& [group, size] : sizes)
    if (size != sizes.begin()->second) devices.refuse("groups with the same number of ranks");
  return sizes.empty() ? std::nullopt : std::optional(sizes.begin()->second);
}

/// The run of a document of nccl-tests.
Run run_of(const Spot& document) {
  Run run{.ranks = ranks_of(document), .op = std::nullopt, .program = {}};
  if (!document.has("args") || document.at("args").items().empty()) return run;
  std::string program = document.at("args").items().front().text();
  program.erase(0, program.rfind('/') + 1);
  if (!program.ends_with("_perf")) return run;
  run.op = collective_named(program);
  if (!run.op) run.program = program;
  return run;
}

void take_result(Found& found, const Spot& result, int line) {
  Row row{.op = found.runs.back().op, .run = found.runs.size() - 1, .line = line};
  row.where = result.where;
  row.bytes = {result.at("size").count()};
  for (const auto& [key, kept] :
       {std::pair{"type", &row.type}, std::pair{"redop", &row.redop}, std::pair{"root", &row.root}})
    if (result.has(key)) *kept = trimmed(result.at(key).text());
  if (result.has("out_of_place"))
    if (const auto flaw = take_place(row, result.at("out_of_place"), false)) return found.leave_out("", *flaw);
  if (result.has("in_place"))
    if (const auto flaw = take_place(row, result.at("in_place"), true)) {
      if (!row.out.time) return found.leave_out("", *flaw);
      found.warnings.push_back(*flaw + "; the in-place time is ignored");
    }
  if (result.has("out_of_place_per_iter")) {
    const Spot iterations = result.at("out_of_place_per_iter");
    const Spot least = iterations.at("min_us"), most = iterations.at("max_us");
    for (const Spot& each : {least, most})
      if (const auto flaw = each.flaw(Measure::time)) return found.leave_out("", *flaw);
    row.min = least.number();
    row.max = most.number();
  }
  found.rows.push_back(std::move(row));
}

void take_nccl(Found& found, const Spot& document, int line) {
  found.format = "nccl-tests JSON";
  found.runs.push_back(run_of(document));
  if (document.has("nccl_version")) found.about["nccl_version"] = document.at("nccl_version").json.dump();
  for (const Spot& result : document.at("results").items()) take_result(found, result, line);
}

/// {"numCycle": 0, "name": "AllReduce", "ranks": 8, "gpusPerRank": 1, "size": ..., "inPlace": 0, "time": ..., ...} of
/// rccl-tests; mscclpp-test has no type, redop and inPlace, and "kernel" (test/mscclpp-test/common.cc, runTest).
void take_object(Found& found, const Spot& object, int line) {
  const bool is_rccl = object.has("inPlace");
  found.format = is_rccl ? "rccl-tests JSON" : "mscclpp-test JSON";
  Row row{.line = line};
  row.where = object.where;
  row.op = collective_named(object.at("name").text());
  if (!row.op) object.at("name").refuse("the name of a collective");
  row.bytes = {object.at("size").count()};
  if (is_rccl) {
    row.type = object.at("type").text();
    row.redop = object.at("redop").text();
  } else if (object.has("kernel")) {
    row.type = "kernel " + object.at("kernel").json.dump();
  }
  for (const char* key : {"numCycle", "cycle"})
    if (object.has(key)) row.cycle = object.at(key).json.dump();
  Timed& timed = is_rccl && object.at("inPlace").count() != 0 ? row.in : row.out;
  if (const auto flaw = take_timed(timed, object, {"time", "algBw", "busBw"})) return found.leave_out("", *flaw);
  // They print as iostreams do: six digits.
  for (auto* number : {&timed.algbw, &timed.busbw})
    if (*number) (*number)->half = 5e-6 * (*number)->value + 5e-7;
  for (const char* key : {"#wrong", "wrong"}) {
    if (!object.has(key)) continue;
    const Spot wrong = object.at(key);
    if (!wrong.json.is_string())
      row.wrong = wrong.count();
    else if (wrong.text() != "N/A")
      row.wrong = measured_count(wrong.text(), key, wrong.where);
  }
  std::int64_t gpus_each = 1;
  for (const char* key : {"gpusPerRank", "gpus"})  // with MPI, without
    if (object.has(key)) gpus_each = object.at(key).count();
  const int ranks = check_ranks(object.has("ranks") ? object.at("ranks").count() : 1, gpus_each, object.where);
  for (row.run = 0; row.run < found.runs.size() && found.runs[row.run].ranks != ranks;) ++row.run;
  if (row.run == found.runs.size()) found.runs.push_back({.ranks = ranks, .op = std::nullopt, .program = {}});
  found.rows.push_back(std::move(row));
}

/// Quotes NaN and infinities: printf() and Python write them without quotes, which is not JSON.
std::string with_quoted_infinities(std::string_view text) {
  std::string out;
  bool quoted = false;
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) out += text[i++];
    if (text[i] == '"') quoted = !quoted;
    std::size_t end = i + (text[i] == '-' ? 1 : 0);
    while (!quoted && end < text.size() && is_word(text[end])) ++end;
    std::string word = lower(text.substr(i, end - i));
    if (word.starts_with('-')) word.erase(0, 1);
    if (word == "nan" || word == "inf" || word == "infinity") {
      out += '"' + std::string(text.substr(i, end - i)) + '"';
      i = end - 1;
    } else {
      out += text.substr(i, std::max<std::size_t>(end - i, 1));
      i = std::max(end, i + 1) - 1;
    }
  }
  return out;
}

/// A document and where it begins.
struct Document {
  std::string_view text;
  int line = 0;
};

/// True if a benchmark wrote it.
bool is_measured(std::string_view document) {
  const auto keys = first_keys(document);
  if (keys.contains("results")) return true;
  return keys.contains("size") && keys.contains("time") && (keys.contains("busBw") || keys.contains("inPlace"));
}

/// Documents of benchmarks in a text, except those inside other documents.
struct Documents {
  std::vector<Document> whole;
  std::vector<int> cut;  ///< lines at which an unfinished one begins
};

Documents documents_in(std::string_view text) {
  Documents found;
  int line = 1;
  std::size_t counted = 0;
  const auto line_at = [&](std::size_t at) {
    for (; counted < at; ++counted) line += text[counted] == '\n' ? 1 : 0;
    return line;
  };
  for (std::size_t at = 0; (at = text.find_first_of("{[", at)) != std::string_view::npos;) {
    const std::size_t end = json_end(text, at);
    const bool whole = end != std::string_view::npos;
    const std::string_view document = text.substr(at, whole ? end - at : end);
    if (whole && is_measured(document)) found.whole.push_back({document, line_at(at)});
    if (!whole && text[at] == '{' && is_measured(document)) found.cut.push_back(line_at(at));
    at = whole ? end : at + 1;
  }
  return found;
}

void take_document(Found& found, const Document& document, const std::string& name, bool is_alone) {
  const Json json = parse_json(with_quoted_infinities(document.text), name, static_cast<std::size_t>(document.line));
  const Spot root{json, is_alone ? name + ": " : fmt::format("{}:{}: ", name, document.line)};
  const int line = is_alone ? 0 : document.line;
  if (json.is_object() && json.contains("results")) return take_nccl(found, root, line);
  if (json.is_object() && json.contains("busBw")) return take_object(found, root, line);
  if (!json.is_array())
    throw InputError(name, "expected a list of results, or an object with \"results\", found an object without",
                     "supported formats:\n" + measured_formats());
  for (const Spot& object : root.items()) {
    if (object.has("results"))
      take_nccl(found, object, line);
    else
      take_object(found, object, line);
  }
}

}  // namespace

Found read_json(std::string_view text, const std::string& name) {
  Found found{.format = "JSON", .from_benchmark = true};
  take_document(found, {text, 1}, name, true);
  join_places(found.rows);
  return found;
}

Found read_json_among(std::string_view text, const std::string& name) {
  Found found{.format = "JSON", .from_benchmark = true};
  const Documents documents = documents_in(text);
  for (const Document& document : documents.whole) take_document(found, document, name, false);
  for (const int line : documents.cut)
    found.warnings.push_back(
        fmt::format("{}:{}: the JSON document that starts here is incomplete and was ignored", name, line));
  join_places(found.rows);
  return found;
}

}  // namespace ringsim::measured
