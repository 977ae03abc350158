// JSON of nccl-tests (-J) and of rccl-tests (-x FILE -Z json).
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
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
  Number time() const {
    const Number found = number();
    if (found.value < 1e-6) refuse("a time above 0");
    return found;
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

/// `time`, `alg_bw`, `bus_bw`, `nwrong`.
void take_place(Row& row, const Spot& place, bool in_place) {
  if (place.has("cpu_time") && !place.has("time"))
    throw InputError(place.where, "expected times of whole collectives, found those of the CPU alone (cpu_time)",
                     "measure without -C");
  (in_place ? row.in_place : row.time) = place.at("time").time();
  if (place.has("alg_bw")) (in_place ? row.in_place_algbw : row.algbw) = place.at("alg_bw").number();
  if (place.has("bus_bw")) (in_place ? row.in_place_busbw : row.busbw) = place.at("bus_bw").number();
  if (place.has("nwrong")) {
    const Number wrong = place.at("nwrong").number();
    if (wrong.value > 9e18) place.at("nwrong").refuse("a count");
    row.wrong = row.wrong.value_or(0) + static_cast<std::int64_t>(wrong.value);
  }
}

/// Ranks of one group: all have as many.
std::optional<int> ranks_of(const Spot& document) {
  if (!document.has("config") || !document.at("config").has("devices")) return std::nullopt;
  std::map<std::int64_t, int> sizes;
  const Spot devices = document.at("config").at("devices");
  for (const Spot& device : devices.items()) ++sizes[device.has("group") ? device.at("group").count() : 0];
  for (const auto& [group, size] : sizes)
    if (size != sizes.begin()->second) devices.refuse("groups of as many ranks each");
  return sizes.empty() ? std::nullopt : std::optional(sizes.begin()->second);
}

Found read_nccl_json(const Spot& document) {
  Found found{.format = "nccl-tests JSON", .from_benchmark = true};
  found.ranks = ranks_of(document);
  std::optional<CollectiveOp> op;
  if (document.has("args") && !document.at("args").items().empty()) {
    std::string program = document.at("args").items().front().text();
    program.erase(0, program.rfind('/') + 1);
    if (program.ends_with("_perf")) {
      op = collective_named(program);
      if (!op)
        throw InputError(document.where + "/args/0",
                         fmt::format("expected a collective that is known here, found {}", in_quotes(program)));
    }
  }
  if (document.has("nccl_version")) found.about["nccl_version"] = document.at("nccl_version").json.dump();
  for (const Spot& result : document.at("results").items()) {
    Row row{.op = op, .where = result.where};
    row.bytes = {result.at("size").count()};
    for (const char* key : {"type", "redop", "root"})
      if (result.has(key))
        row.variant += (row.variant.empty() ? "" : " ") + std::string(trimmed(result.at(key).text()));
    if (result.has("out_of_place")) take_place(row, result.at("out_of_place"), false);
    if (result.has("in_place")) take_place(row, result.at("in_place"), true);
    if (result.has("out_of_place_per_iter")) {
      row.min = result.at("out_of_place_per_iter").at("min_us").time();
      row.max = result.at("out_of_place_per_iter").at("max_us").time();
    }
    found.rows.push_back(std::move(row));
  }
  return found;
}

/// {"numCycle": 0, "name": "AllReduce", "ranks": 8, "gpusPerRank": 1, "size": ..., "inPlace": 0, "time": ..., ...}
void take_rccl(Found& found, const Spot& object, int line) {
  Row row{.line = line, .where = object.where};
  row.op = collective_named(object.at("name").text());
  if (!row.op) object.at("name").refuse("the name of a collective");
  row.bytes = {object.at("size").count()};
  row.variant = object.at("type").text() + " " + object.at("redop").text();
  const bool in_place = object.at("inPlace").count() != 0;
  (in_place ? row.in_place : row.time) = object.at("time").time();
  // They print as iostreams do: six digits.
  const auto six_digits = [](Number n) { return Number{n.value, 5e-6 * n.value + 5e-7}; };
  (in_place ? row.in_place_algbw : row.algbw) = six_digits(object.at("algBw").number());
  (in_place ? row.in_place_busbw : row.busbw) = six_digits(object.at("busBw").number());
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
  take_ranks(found, object.has("ranks") ? object.at("ranks").count() : 1, gpus_each, object.where);
  found.rows.push_back(std::move(row));
}

/// Objects a line each, with or without commas: rccl-tests before July 2025.
bool is_by_line(const std::vector<Line>& lines) {
  const auto is_object = [](std::string_view line) {
    line = trimmed(line);
    return line.starts_with('{') && (line.ends_with('}') || line.ends_with("},"));
  };
  return !lines.empty() && is_object(lines.front().text) &&
         lines.front().text.find("\"inPlace\"") != std::string_view::npos;
}

}  // namespace

Found read_json(std::string_view text, const std::string& name) {
  Found found{.format = "rccl-tests JSON", .from_benchmark = true};
  const std::vector<Line> lines = lines_of(text, name);
  if (is_by_line(lines)) {
    for (const Line& line : lines) {
      std::string_view object = trimmed(line.text);
      if (object.empty()) continue;
      if (object.ends_with(',')) object.remove_suffix(1);
      const Json json = parse_json(object, line.where);
      take_rccl(found, {json, line.where + ": "}, line.number);
    }
  } else {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    const Json json = parse_json(text, name);
    const Spot document{json, name + ": "};
    if (json.is_object() && json.contains("results")) return read_nccl_json(document);
    if (!json.is_array())
      throw InputError(name, "expected a list of results, or an object with \"results\", found an object without",
                       "these are read:\n" + measured_formats());
    for (const Spot& object : document.items()) take_rccl(found, object, 0);
  }
  join_places(found.rows);
  return found;
}

}  // namespace ringsim::measured
