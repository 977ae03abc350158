#include "topologies/machine.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/error.hpp"
#include "sim/quantity.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nearest.hpp"

namespace ringsim {

namespace {
using Json = nlohmann::json;

/// A value of the file and where it stands: `file: /json/pointer`.
struct Place {
  const Json& json;
  std::string file, pointer;

  [[noreturn]] void fail(const std::string& message, const std::string& hint = "") const {
    throw InputError(file + ": " + (pointer.empty() ? "/" : pointer), message, hint);
  }
  bool has(const std::string& key) const { return json.contains(key); }
  Place at(const std::string& key) const {
    if (!has(key)) fail("expected a key \"" + key + "\"");
    return {json.at(key), file, pointer + "/" + key};
  }
  std::vector<Place> items() const {
    if (!json.is_array()) fail("expected a list");
    std::vector<Place> all;
    for (std::size_t i = 0; i < json.size(); ++i) all.push_back({json[i], file, pointer + "/" + std::to_string(i)});
    return all;
  }
  /// Holds an object to its keys.
  void allow(const std::vector<std::string>& keys) const {
    if (!json.is_object()) fail("expected an object");
    for (const auto& [key, value] : json.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        Place{value, file, pointer + "/" + key}.fail("unknown key \"" + key + "\"", did_you_mean(key, keys));
      }
    }
  }
  std::string text() const {
    if (!json.is_string() || json.get_ref<const std::string&>().empty()) fail("expected a text");
    return json.get<std::string>();
  }
  /// One of the words of a table, as what it stands for.
  template <class T>
  T word(const std::vector<std::pair<std::string, T>>& table) const {
    const std::string found = text();
    std::vector<std::string> words;
    for (const auto& [spelling, meaning] : table) {
      if (spelling == found) return meaning;
      words.push_back(spelling);
    }
    std::string list;
    for (const std::string& each : words) list += (list.empty() ? "\"" : ", \"") + each + "\"";
    fail("expected one of " + list + ", found \"" + found + "\"", did_you_mean(found, words));
  }
};

const std::vector<std::pair<std::string, NodeKind>> device_kinds = {
    {"gpu", NodeKind::gpu},           {"cpu", NodeKind::cpu},
    {"memory", NodeKind::memory},     {"pcie_switch", NodeKind::pcie_switch},
    {"nvswitch", NodeKind::nvswitch}, {"nic", NodeKind::nic},
};
const std::vector<std::pair<std::string, LinkKind>> link_kinds = {
    {"nvlink", LinkKind::nvlink},         {"pcie", LinkKind::pcie},
    {"socket", LinkKind::socket},         {"memory", LinkKind::memory},
    {"infiniband", LinkKind::infiniband}, {"ethernet", LinkKind::ethernet},
};

/// A number of the file: `{"value": ..., "source": "..."}`, or `"assumed": "why"` where nobody published one. Appends
/// what it says about its origin to `origins`.
Place sourced(const Place& number, const std::string& what, std::string& origins) {
  if (!number.json.is_object() || !(number.has("source") || number.has("assumed"))) {
    number.fail("a number without a source",
                R"(write {"value": ..., "source": "where it is from"}, or "assumed": "why it is taken to be so")");
  }
  number.allow({"value", "source", "assumed"});
  origins += (origins.empty() ? "" : "; ") + what + ": ";
  if (number.has("source")) origins += number.at("source").text();
  if (number.has("assumed")) {
    origins += (number.has("source") ? ", assumed: " : "assumed: ") + number.at("assumed").text();
  }
  return number.at("value");
}

/// Reads a quantity by `parse`, which knows the unit but not where the text stands.
template <class Parse>
auto quantity(const Place& value, Parse parse) {
  try {
    return parse(value.text());
  } catch (const InputError& error) {
    if (!error.where().empty()) throw;
    value.fail(error.message(), error.hint());
  }
}

double efficiency(const Place& value) {
  if (!value.json.is_number()) value.fail("expected a share such as 0.96");
  const double share = value.json.get<double>();
  if (!(share > 0 && share <= 1)) value.fail("expected a share above 0 and at most 1, found " + value.json.dump());
  return share;
}

/// `bandwidth` is what payload reaches; where it comes from a line rate, `line_rate` times `efficiency`.
LinkSpec link_type(const Place& type) {
  type.allow({"kind", "duplex", "bandwidth", "line_rate", "efficiency", "latency"});
  LinkSpec link;
  link.kind = type.at("kind").word(link_kinds);
  if (type.has("duplex")) {
    link.duplex = type.at("duplex").word<Duplex>({{"full", Duplex::full}, {"half", Duplex::half}});
  }
  if (type.has("bandwidth") == type.has("line_rate") || type.has("line_rate") != type.has("efficiency")) {
    type.fail("expected either \"bandwidth\", or \"line_rate\" and \"efficiency\"");
  }
  if (type.has("bandwidth")) {
    link.bandwidth = quantity(sourced(type.at("bandwidth"), "bandwidth", link.source), parse_bandwidth);
  } else {
    const Bandwidth line = quantity(sourced(type.at("line_rate"), "line rate", link.source), parse_bandwidth);
    const double share = efficiency(sourced(type.at("efficiency"), "efficiency", link.source));
    link.bandwidth = {std::llround(static_cast<double>(line.bytes_per_second) * share)};
    if (link.bandwidth.bytes_per_second < 1) type.fail("expected a rate of at least 1 B/s");
  }
  link.latency = quantity(sourced(type.at("latency"), "latency", link.source), parse_time);
  return link;
}

/// The JSON, refusing what nlohmann would let pass: a key that stands twice in an object (it keeps the last).
Json parse_strictly(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw InputError(file, "the key \"" + parsed.get<std::string>() + "\" stands twice in one object");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    const std::size_t end = std::min(text.size(), error.byte);
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    throw InputError(file + ":" + std::to_string(line), "not JSON");
  }
}

/// Finds an entry of a table of names, or says which one was likely meant.
template <class T>
const T& look_up(const Place& name, const std::map<std::string, T>& table, const std::string& what) {
  const auto found = table.find(name.text());
  if (found != table.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [each, value] : table) names.push_back(each);
  name.fail("expected the name of a " + what + ", found \"" + name.text() + "\"", did_you_mean(name.text(), names));
}

Machine::Device device(const Place& entry, const std::map<std::string, LinkSpec>& types) {
  entry.allow({"name", "kind", "port"});
  Machine::Device made{entry.at("name").text(), entry.at("kind").word(device_kinds), std::nullopt, {}};
  if (entry.has("port") != (made.kind == NodeKind::nic)) {
    entry.fail("a nic, and nothing else, has a \"port\": the type of link that it offers to the fabric");
  }
  if (entry.has("port")) made.port = look_up(entry.at("port"), types, "link type");
  return made;
}

Machine::Cable cable(const Place& entry, const std::map<std::string, std::uint32_t>& ids,
                     const std::map<std::string, LinkSpec>& types) {
  entry.allow({"from", "to", "type", "count"});
  Machine::Cable made{look_up(entry.at("from"), ids, "device"), look_up(entry.at("to"), ids, "device"),
                      look_up(entry.at("type"), types, "link type")};
  if (made.from == made.to) entry.fail("a link from \"" + entry.at("from").text() + "\" to itself");
  if (entry.has("count")) {
    const Json& count = entry.at("count").json;
    if (!count.is_number_integer() || count < 1 || count > 1000) {
      entry.at("count").fail("expected how many links are joined into one (1 to 1000), found " + count.dump());
    }
    made.link.bandwidth.bytes_per_second *= count.get<std::int64_t>();
    made.link.joined = count.get<std::uint16_t>();
    made.link.source = std::to_string(count.get<int>()) + " links as one, of each: " + made.link.source;
  }
  return made;
}
}  // namespace

std::size_t Machine::n_gpus() const {
  return static_cast<std::size_t>(
      std::count_if(devices.begin(), devices.end(), [](const Device& d) { return d.kind == NodeKind::gpu; }));
}

Machine parse_machine(std::string_view text, const std::string& file) {
  const Json json = parse_strictly(text, file);
  const Place root{json, file, ""};
  root.allow({"name", "summary", "link_types", "devices", "links"});
  Machine preset;
  preset.name = root.at("name").text();
  preset.summary = root.at("summary").text();

  std::map<std::string, LinkSpec> types;
  const Place type_table = root.at("link_types");
  if (!type_table.json.is_object()) type_table.fail("expected an object");
  for (const auto& [name, value] : type_table.json.items()) types.emplace(name, link_type(type_table.at(name)));

  std::map<std::string, std::uint32_t> ids;
  for (const Place& entry : root.at("devices").items()) {
    preset.devices.push_back(device(entry, types));
    if (!ids.emplace(preset.devices.back().name, preset.devices.size() - 1).second) {
      entry.at("name").fail("two devices are called \"" + preset.devices.back().name + "\"");
    }
  }
  if (preset.n_gpus() == 0) root.at("devices").fail("expected at least one device of kind \"gpu\"");
  for (const Place& entry : root.at("links").items()) preset.cables.push_back(cable(entry, ids, types));
  return preset;
}

Machine node_preset(const std::string& name) {
  std::vector<std::string> names;
  for (const PresetFile& file : preset_files()) {
    if (file.name == name) return parse_machine(file.text, name + ".json");
    names.emplace_back(file.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw InputError("", "expected the name of a node preset, found \"" + name + "\"",
                   hint.empty() ? "`ringsim list nodes` shows all" : hint);
}

std::vector<CatalogEntry> node_catalog() {
  std::vector<CatalogEntry> entries;
  for (const PresetFile& file : preset_files()) {
    entries.push_back({std::string(file.name), node_preset(std::string(file.name)).summary});
  }
  return entries;
}

}  // namespace ringsim
