// Laws of how a scenario is written: what says the same has one hash and one result.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/metamorphic/law.hpp"

namespace ringsim::metamorphic {

namespace {

void require_same_hash(Trial& trial, const std::string& text, const std::vector<std::string>& set = {}) {
  const ScenarioFile file = ScenarioFile::parse(text, "s.json", set);
  const ScenarioFile plain = ScenarioFile::parse(json_text(trial.scenario), "s.json");
  trial.require(file.hash() == plain.hash(), fmt::format("expected the hash {}, found {}", plain.hash(), file.hash()));
  trial.require(file.point(0).hash == plain.point(0).hash, "expected one hash of the point, found two");
  trial.require_same_run(predict(file.point(0)));
}

/// With the keys of all objects in another order.
Json shuffled_keys(Draw& draw, const Json& value) {
  Json out = value;
  if (value.is_object()) {
    std::vector<std::pair<std::string, Json>> members;
    for (const auto& [key, member] : value.items()) members.emplace_back(key, shuffled_keys(draw, member));
    draw.shuffle(members);
    out = Json::object();
    for (const auto& [key, member] : members) out[key] = member;
  } else if (value.is_array()) {
    for (Json& element : out) element = shuffled_keys(draw, element);
  }
  return out;
}

void hold_key_order(Trial& trial) { require_same_hash(trial, json_text(shuffled_keys(trial.draw, trial.scenario))); }

/// Comments and spaces at ends of lines: texts have no line breaks.
void hold_comments(Trial& trial) {
  std::string text = "// A question?\n";
  for (const char c : json_text(trial.scenario, static_cast<int>(trial.draw.number(1, 8)))) {
    if (c == '\n') text += trial.draw.once_in(2) ? "  // \"a\": {}, not /* read" : "\t/* [1,\n 2] */ ";
    text += c;
  }
  require_same_hash(trial, text);
}

bool fits_defaults(Draw& /*draw*/, Json& scenario) { return is_collective(scenario); }

void hold_defaults(Trial& trial) {
  Json changed = trial.scenario;
  const auto add = [&](const char* part, const Json& defaults) {
    for (const auto& [key, value] : defaults.items())
      if (!changed.contains(part) || !changed[part].contains(key)) changed[part][key] = value;
  };
  add("network", {{"model", "fair"}, {"routing", "auto"}, {"seed", 0}});
  add("transport", {{"gpudirect", true},
                    {"gdr_level", "P2C"},
                    {"p2p_level", "SYS"},
                    {"pxn", true},
                    {"nics", "nearest"},
                    {"protocol", "none"},
                    {"channels", 1},
                    {"staging", {{"size", "512 KiB"}, {"depth", 8}}}});
  if (is_at(changed, "transport.gpudirect", false)) changed["transport"].erase("gdr_level");
  add("collective", {{"order", "given"}});
  require_same_hash(trial, json_text(changed));
}

bool fits_alias(Draw& /*draw*/, Json& scenario) { return scenario.contains("collective"); }

void hold_alias(Trial& trial) {
  std::string op = trial.scenario["collective"]["op"].get<std::string>();
  op.erase(std::remove(op.begin(), op.end(), '_'), op.end());
  require_same_hash(trial, json_text(with(trial.scenario, "collective.op", op)));
}

void hold_shorthand(Trial& trial) {
  const Json algorithm = trial.scenario["collective"]["algorithm"];
  const Json other = algorithm.is_string() ? Json({{"name", algorithm}}) : algorithm;
  require_same_hash(trial, json_text(with(trial.scenario, "collective.algorithm", other)));
}

bool fits_shorthand(Draw& /*draw*/, Json& scenario) {
  return is_collective(scenario) && scenario["collective"]["algorithm"].is_string();
}

/// Some keys by --set instead of in the file, and a wrong value there.
void hold_overrides(Trial& trial) {
  Json file = trial.scenario;
  std::vector<std::string> set;
  for (const char* path : {"topology", "collective", "network.model", "collective.bytes", "training"}) {
    const Json value = value_at(trial.scenario, path);
    if (value.is_null() || trial.draw.once_in(2)) continue;
    set.push_back(fmt::format("{}={}", path, json_text(value)));
  }
  if (trial.draw.once_in(2)) {
    file["network"]["packet"] = {{"mtu", "17 B"}};
    const Json packet = value_at(trial.scenario, "network.packet");
    set.push_back("network.packet=" + json_text(packet));
    if (!trial.scenario.contains("network")) set.emplace_back("network=null");
  }
  require_same_hash(trial, json_text(file), set);
}

/// The name is part of the hash, so that a sweep distinguishes scenarios.
void hold_name(Trial& trial) {
  trial.require_same_run(trial.run(with(trial.scenario, "name", "another name, 1 GB/s")));
}

bool fits_point(Draw& /*draw*/, Json& scenario) {
  return scenario.contains("collective") && !is_at(scenario, "collective.op", "barrier");  // which has one size
}

/// The scenario as one point of several.
void hold_point(Trial& trial) {
  Json changed = trial.scenario;
  const Json bytes = trial.scenario["collective"]["bytes"];
  const bool in_sweep = trial.draw.once_in(2), first = trial.draw.once_in(2);
  const std::string other = "12345 B";
  const Json list = first ? Json::array({bytes, other}) : Json::array({other, bytes});
  if (in_sweep)
    changed["sweep"]["collective.bytes"] = list;
  else
    changed["collective"]["bytes"] = list;
  const ScenarioFile file = ScenarioFile::parse(json_text(changed), "s.json");
  trial.require(file.size() == 2, fmt::format("expected a point for each size, found {}", file.size()));
  const Scenario point = file.point(first ? 0 : file.size() - 1);
  trial.require(point.hash == decoded(trial.scenario).hash, "expected the hash of the point by itself, found another");
  trial.require_same_run(predict(point));
}

}  // namespace

std::vector<Law> spelling_laws() {
  return {
      {"key_order", "Keys in another order: the same hash, the same run.", always, hold_key_order},
      {"comments", "Comments and spaces: the same hash, the same run.", always, hold_comments},
      {"defaults", "Defaults written out: the same hash, the same run.", fits_defaults, hold_defaults},
      {"alias", "Operations as MPI spells them (allreduce): the same hash, the same run.", fits_alias, hold_alias},
      {"shorthand", "An algorithm's name as an object with a name: the same hash, the same run.", fits_shorthand,
       hold_shorthand},
      {"overrides", "Values by --set instead of in the file: the same hash, the same run.", always, hold_overrides},
      {"name", "Another name of the scenario: the same run.", always, hold_name},
      {"point", "One point of a sweep or a list: the hash and the run of the scenario by itself.", fits_point,
       hold_point},
  };
}

}  // namespace ringsim::metamorphic
