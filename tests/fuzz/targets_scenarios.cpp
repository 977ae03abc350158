// Scenarios, and the small languages that are written in them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/calibration.hpp"
#include "scenarios/conditions/expression.hpp"
#include "scenarios/decoder/astra_import.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "tests/fuzz/laws.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/paths.hpp"

namespace ringsim::fuzz {

namespace {

/// Sweeps of more points would take minutes if `where` asks each of them.
constexpr std::size_t most_points_asked = 500;

/// Next to examples that name files, so that theirs are found.
std::string scenario_name() { return test::source_dir() + "/scenarios/examples/algorithms/fuzz.json"; }

/// The same document with the keys of all objects in the opposite order.
Json turned(const Json& value) {
  Json out = value;
  if (value.is_object()) {
    out = Json::object();
    std::vector<std::pair<std::string, Json>> members;
    for (const auto& [key, member] : value.items()) members.emplace_back(key, turned(member));
    std::reverse(members.begin(), members.end());
    for (auto& [key, member] : members) out[key] = std::move(member);
  } else if (value.is_array()) {
    for (Json& element : out) element = turned(element);
  }
  return out;
}

void check_point(const ScenarioFile& file, std::size_t i) {
  const PointId id = file.id(i);
  try {
    const Scenario point = file.point(i);
    law(point.hash == id.hash, "a point has one hash, decoded or not");
    law(point.varied == id.varied, "a point varies in one way, decoded or not");
    law(parse_json(file.canonical(i), "canonical").is_object(), "the canonical form is JSON");
  } catch (const InputError& error) {
    law(!error.message().empty(), "an error has a message");
  }
}

/// What a path stands for depends on its letters, so that all kinds of values meet all operators.
std::optional<ExpressionValue> value_of_path(const std::string& path) {
  switch (path.size() % 6) {
    case 0:
      return Quantity{8, Dimension::none, 0};
    case 1:
      return Quantity{1024, Dimension::size, 1};
    case 2:
      return Quantity{1e6, Dimension::time, 1e6};
    case 3:
      return "text";
    case 4:
      return true;
    default:
      return std::nullopt;
  }
}

/// What became of a condition: true, false, or the message of the error.
std::string outcome(const Expression& condition) {
  try {
    return condition.holds(value_of_path) ? "true" : "false";
  } catch (const InputError& error) {
    return "refused";
  }
}

}  // namespace

bool read_scenario_text(std::string_view text) {
  return reads_or_refuses([&] {
    const std::string name = scenario_name();
    const Json document = parse_json(text, name);
    if (document.is_object() && document.contains("where")) {
      Json all = document;
      all.erase("where");
      if (ScenarioFile::parse(json_text(all), name).size() > most_points_asked) return;
    }
    const ScenarioFile file = ScenarioFile::parse(text, name);
    const ScenarioFile again = ScenarioFile::parse(json_text(turned(document), 2), name);
    law(again.hash() == file.hash(), "the hash of a scenario does not depend on the order of keys");
    law(again.size() == file.size(), "the number of points does not depend on the order of keys");
    for (const std::size_t i : std::set<std::size_t>{0, file.size() / 2, file.size() - 1}) check_point(file, i);
  });
}

bool read_astra_files(std::string_view text) {
  using scenarios::AstraFile;
  const bool is_system = text.starts_with('{');
  const std::string ring = "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";
  const AstraFile network{is_system ? ring : std::string(text), "network.yml"};
  const auto system = is_system ? std::optional(AstraFile{std::string(text), "system.json"}) : std::nullopt;
  return reads_or_refuses([&] {
    const std::string imported =
        import_astra(network, system, {.op = "all_reduce", .bytes = Bytes{1 << 20}, .ignore = {}}).text;
    try {
      law(ScenarioFile::parse(imported, scenario_name()).size() == 1, "what is imported is one point");
    } catch (const InputError& error) {
      // More ranks than a topology may have, rates that are too large.
      law(!error.message().empty(), "an error has a message");
    }
  });
}

bool read_set_option(std::string_view text) {
  static const std::string scenario = R"({"version": 1, "topology": {"kind": "star", "ranks": 4,
    "link": {"bandwidth": "10 GB/s", "latency": "1 us"}}, "collective": {"op": "all_reduce", "algorithm": "ring",
    "bytes": "1 MiB"}, "sweep": {"topology.ranks": [2, 4], "network.model": ["ideal", "fair"]}})";
  return reads_or_refuses([&] {
    const ScenarioFile file = ScenarioFile::parse(scenario, scenario_name(), {std::string(text)});
    if (file.size() <= most_points_asked) check_point(file, file.size() - 1);
  });
}

bool read_condition(std::string_view text) {
  const std::size_t cut = find_word(text, "where");
  law(cut == std::string_view::npos || text.substr(cut, 5) == "where", "a word is found where it stands");
  return reads_or_refuses([&] {
    const Expression condition = Expression::parse(text, "condition");
    const Expression again = Expression::parse(condition.text(), "condition");
    law(again.text() == condition.text(), "a condition has one spelling");
    law(again.paths() == condition.paths(), "a condition spelled otherwise names the same paths");
    law(outcome(again) == outcome(condition), "a condition spelled otherwise says the same");
  });
}

bool read_quantity(std::string_view text) {
  const bool size = reads_or_refuses([&] {
    const Bytes value = parse_bytes(text);
    law(parse_bytes(format(value)) == value, "a size is read back");
  });
  const bool rate = reads_or_refuses([&] {
    const Bandwidth value = parse_bandwidth(text);
    law(parse_bandwidth(format(value)) == value, "a rate is read back");
  });
  const bool time = reads_or_refuses([&] {
    const Picoseconds value = parse_time(text);
    law(parse_time(format(value)) == value, "a time is read back");
  });
  law(size + rate + time <= 1, "a text is a size, a rate or a time, not two of them");
  return size || rate || time;
}

bool read_json(std::string_view text) {
  return reads_or_refuses([&] {
    const Json value = parse_json(text, "text");
    for (const int indent : {0, 2}) {
      const Json again = parse_json(json_text(value, indent), "again");
      law(again == value, "JSON is read back");
      law(json_text(again) == json_text(value), "JSON is written in one way");
    }
    law(first_not_utf8(describe(value)) == std::string_view::npos, "a value is described in UTF-8");
  });
}

bool read_calibration_file(std::string_view text) {
  return reads_or_refuses([&] {
    std::vector<std::string> warnings;
    const Calibration calibration = read_calibration(text, "calibration", warnings);
    law(std::isfinite(calibration.links.latency) && std::isfinite(calibration.links.inside) &&
            std::isfinite(calibration.links.between) && calibration.launch >= Picoseconds{0},
        "factors are finite, and times are not negative");
    law(!to_string(calibration).empty(), "a calibration has a text");
  });
}

}  // namespace ringsim::fuzz
