// Reads machine files: the format is described in topologies/README.md.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/link_types.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/machines/preset_names.hpp"
#include "topologies/machines/sourced.hpp"

namespace ringsim {

namespace {
const std::vector<std::pair<std::string, NodeKind>> device_kinds = {
    {"gpu", NodeKind::gpu},
    {"cpu", NodeKind::cpu},
    {"host_bridge", NodeKind::host_bridge},
    {"memory", NodeKind::memory},
    {"pcie_switch", NodeKind::pcie_switch},
    {"pcie_slot", NodeKind::pcie_slot},
    {"nvswitch", NodeKind::nvswitch},
    {"nic", NodeKind::nic},
};

/// The types of links that a file may name: its own, and those of the library that it does not define itself.
class LinkTypes {
 public:
  explicit LinkTypes(const Place& root) : known_(library_links()) {
    if (!root.has("link_types")) return;
    for (auto& [name, link] : read_link_types(root.at("link_types"))) {
      unused_.insert(name);
      known_.insert_or_assign(name, link);
    }
  }
  const LinkSpec& find(const Place& name) {
    unused_.erase(name.text());
    return name.look_up(name.text(), known_, "a link type");
  }
  /// A type of its own that nothing uses is a slip: a misspelt one would leave the library's in force.
  void require_used(const Place& root) const {
    if (unused_.empty()) return;
    const std::string& name = *unused_.begin();
    std::vector<std::string> library;
    for (const auto& [each, link] : library_links()) library.push_back(each);
    root.at("link_types").at(name).fail("no link or port has the type \"" + name + "\"", did_you_mean(name, library));
  }

 private:
  std::map<std::string, LinkSpec> known_;
  std::set<std::string> unused_;
};

/// Requires the origin of what the file says of devices and cables: a source, what is assumed, or both.
void require_origin(const Place& layout) {
  layout.allow({"source", "assumed"});
  if (layout.entries().empty()) layout.fail("expected \"source\", \"assumed\" or both");
  for (const auto& [key, text] : layout.entries()) text.text();
}

/// The other names of a machine, which are read for presets alone: topologies/machines/preset_names.hpp.
void check_names(const Place& root) {
  if (root.has("gpu")) root.at("gpu").text();
  for (const char* key : {"also", "taken_for"})
    if (root.has(key))
      for (const Place& name : root.at(key).items()) name.text();
  if (root.has("memories"))
    for (const Place& each : root.at("memories").items()) {
      each.allow({"names", "value", "source"});
      for (const Place& name : each.at("names").items()) name.text();
      if (quantity(each.at("value"), parse_bytes).count <= 0) each.at("value").fail("expected more than 0 B");
      each.at("source").text();
    }
  if (!root.has("near")) return;
  for (const Place& each : root.at("near").items()) {
    each.allow({"name", "differs", "source"});
    for (const char* key : {"name", "differs", "source"}) each.at(key).text();
  }
}

Host host(const Place& entry) {
  entry.allow({"peer_access", "peer_cost", "gpudirect_cost", "between_host_bridges", "domains_of_a_socket"});
  Host made;
  std::string origins;
  if (entry.has("peer_access")) {
    const Place value = sourced(entry.at("peer_access"), "peer access", origins);
    made.peer_access = value.word<PathType>({{"NVL", PathType::nvl},
                                             {"PIX", PathType::pix},
                                             {"PXB", PathType::pxb},
                                             {"PHB", PathType::phb},
                                             {"SYS", PathType::sys}});
  }
  const auto read_cost = [&](const char* key, double& cost) {
    if (!entry.has(key)) return;
    const Place value = sourced(entry.at(key), key, origins);
    const bool fits = value.json.is_number() && value.json >= 1 && value.json <= 100;
    if (!fits) value.fail("expected the cost of a byte, from 1 to 100, found " + value.json.dump());
    cost = value.json.get<double>();
  };
  read_cost("peer_cost", made.peer_cost);
  read_cost("gpudirect_cost", made.gpudirect_cost);
  if (entry.has("domains_of_a_socket")) {
    const Place value = sourced(entry.at("domains_of_a_socket"), "domains of a socket", origins);
    made.domains = static_cast<int>(value.whole(1, 64));
  }
  if (entry.has("between_host_bridges")) {
    const Place value = sourced(entry.at("between_host_bridges"), "between host bridges", origins);
    made.bridges_apart = value.word<bool>({{"NODE", false}, {"SYS", true}});
  }
  return made;
}

/// What the devices of an entry have in common; its name is a list.
Machine::Device device(const Place& entry, LinkTypes& types) {
  entry.allow({"name", "kind", "port", "cabled", "attributes", "memory"});
  Machine::Device made{"", entry.at("kind").word(device_kinds), std::nullopt, {}};
  const bool is_nic = made.kind == NodeKind::nic, stays_alone = entry.has("cabled") && !entry.at("cabled").truth();
  if (entry.has("port") != (is_nic && !stays_alone) || (entry.has("cabled") && !is_nic)) {
    entry.fail(
        "every nic that is connected to the fabric needs a \"port\", its link type; other devices cannot have one",
        "for a nic that is not connected to the fabric (storage, management), set \"cabled\": false instead");
  }
  if (entry.has("port")) made.port = types.find(entry.at("port"));
  if (entry.has("memory")) {
    if (made.kind != NodeKind::gpu) entry.at("memory").fail("expected this key only for a GPU");
    const std::string what = "memory";
    const Place size = sourced(entry.at("memory"), what, made.memory_source);
    made.memory_source.erase(0, what.size() + 2);  // "memory: "
    made.memory = quantity(size, parse_bytes);
    if (made.memory.count <= 0) size.fail("expected more than 0 B, found " + size.json.dump());
  }
  if (entry.has("attributes")) {
    for (const auto& [key, value] : entry.at("attributes").entries()) {
      const std::string text = value.text(), expected = expected_of_attribute(made.kind, key, text);
      if (!expected.empty()) value.fail("expected " + expected + ", found " + in_quotes(text));
      made.attributes.emplace(key, text);
    }
  }
  return made;
}

using Ids = std::map<std::string, std::uint32_t>;

std::vector<std::uint32_t> listed_devices(const Place& list, const Ids& ids) {
  std::vector<std::uint32_t> found;
  for (const std::string& name : listed_names(list)) found.push_back(list.look_up(name, ids, "a device"));
  return found;
}

/// The two ends of each cable of an entry. Lists of equal length go pairwise; if one is a multiple of the other,
/// each device of the shorter gets a run of the longer: gpu[0-3] to pcie[0-1] is 0-0, 1-0, 2-1, 3-1.
std::vector<std::pair<std::uint32_t, std::uint32_t>> ends(const Place& entry, const Ids& ids) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  if (entry.has("mesh")) {
    if (entry.has("from") || entry.has("to")) entry.fail("expected either \"mesh\", or \"from\" and \"to\"");
    const auto all = listed_devices(entry.at("mesh"), ids);
    if (all.size() < 2) entry.at("mesh").fail("expected two devices or more, found one");
    for (std::size_t a = 0; a < all.size(); ++a) {
      for (std::size_t b = a + 1; b < all.size(); ++b) pairs.emplace_back(all[a], all[b]);
    }
    return pairs;
  }
  const auto from = listed_devices(entry.at("from"), ids), to = listed_devices(entry.at("to"), ids);
  const std::size_t most = std::max(from.size(), to.size());
  if (most % from.size() != 0 || most % to.size() != 0) {
    entry.fail("expected two lists of equal length, or one length that is a multiple of the other, found " +
               std::to_string(from.size()) + " and " + std::to_string(to.size()) + " devices");
  }
  for (std::size_t i = 0; i < most; ++i) {
    pairs.emplace_back(from[i / (most / from.size())], to[i / (most / to.size())]);
  }
  return pairs;
}

void add_cables(const Place& entry, const Ids& ids, LinkTypes& types, Machine& machine) {
  entry.allow({"from", "to", "mesh", "type", "count"});
  const auto pairs = ends(entry, ids);
  LinkSpec link = types.find(entry.at("type"));
  if (entry.has("count")) {
    const Json& count = entry.at("count").json;
    if (!count.is_number_integer() || count < 1 || count > 1000) {
      entry.at("count").fail("expected the number of links combined into one (1 to 1000), found " + count.dump());
    }
    if (link.bandwidth.bytes_per_second > max_bandwidth.bytes_per_second / count.get<std::int64_t>()) {
      entry.at("count").fail("expected links of at most 1000000 TB/s in total, found " + count.dump() + " of " +
                             format(link.bandwidth));
    }
    link = joined(link, count.get<int>());
  }
  for (const auto& [from, to] : pairs) {
    if (from == to) entry.fail("a link from \"" + machine.devices[from].name + "\" to itself");
    for (const Machine::Cable& other : machine.cables) {
      const bool same = std::minmax(other.from, other.to) == std::minmax(from, to);
      if (same && other.link.kind == link.kind) {
        entry.fail("a second cable of this kind between \"" + machine.devices[from].name + "\" and \"" +
                       machine.devices[to].name + "\"",
                   "write parallel links as one cable with a \"count\"");
      }
    }
    machine.cables.push_back({from, to, link});
  }
}
}  // namespace

Machine parse_machine(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  const Place root{json, file, ""};
  root.allow({"name", "summary", "gpu", "also", "taken_for", "memories", "near", "layout", "host", "link_types",
              "devices", "links"});
  Machine machine;
  machine.name = root.at("name").text();
  machine.summary = root.at("summary").text();
  check_names(root);
  if (root.has("layout")) require_origin(root.at("layout"));
  if (root.has("host")) machine.host = host(root.at("host"));
  LinkTypes types(root);

  Ids ids;
  for (const Place& entry : root.at("devices").items()) {
    Machine::Device made = device(entry, types);
    for (const std::string& name : listed_names(entry.at("name"))) {
      if (!ids.emplace(name, machine.devices.size()).second) {
        entry.at("name").fail("two devices are named \"" + name + "\"");
      }
      made.name = name;
      machine.devices.push_back(made);
    }
  }
  if (machine.n_gpus() == 0) root.at("devices").fail("expected at least one device of kind \"gpu\"");
  for (const Place& entry : root.at("links").items()) add_cables(entry, ids, types, machine);
  types.require_used(root);
  return machine;
}

Machine node_preset(const std::string& name) {
  const PresetNames* preset = preset_named(name);
  if (preset == nullptr)
    throw InputError("", "expected the name of a node preset, found \"" + name + "\"", preset_hint(name));
  const auto file = std::find_if(preset_files().begin(), preset_files().end(),
                                 [&](const PresetFile& each) { return each.name == preset->name; });
  Machine machine = parse_machine(file->text, preset->name + ".json");
  if (const PresetNames::Memory* memory = preset->memory_of(name); memory != nullptr)
    for (Machine::Device& device : machine.devices)
      if (device.kind == NodeKind::gpu) {
        device.memory = memory->bytes;
        device.memory_source = memory->source;
      }
  return machine;
}

std::vector<CatalogEntry> node_catalog() {
  std::vector<CatalogEntry> entries;
  for (const PresetNames& preset : preset_names()) entries.push_back({preset.name, preset.summary});
  return entries;
}

}  // namespace ringsim
