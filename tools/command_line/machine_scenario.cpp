#include "tools/command_line/machine_scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "algorithms/catalog.hpp"
#include "scenarios/decoder/edit.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/spelling.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/machines/preset_names.hpp"
#include "topologies/nccl/nccl_library.hpp"
#include "topologies/rccl/rccl_library.hpp"
#include "topologies/rccl/rccl_machine.hpp"

namespace ringsim::tools {

namespace {

/// For a cable and a switch together, as in scenarios/examples/networks.
constexpr const char* cable_latency = "150 ns";
/// Half the ports of a switch with 64: the others lead up.
constexpr int most_nics_per_switch = 32;

constexpr int most_nodes = 65'536;  // as topology.nodes

std::vector<std::string> parts_of(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

int whole(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most_nodes)
    throw InputError("", fmt::format("expected a whole number from 1 to {}, found \"{}\"", most_nodes, text));
  return value;
}

/// The kind of fabric that a word names: hyphens and capitals do not count.
std::string fabric_kind(const std::string& word) {
  static const std::vector<std::pair<std::string, std::string>> others{
      {"rail_optimized", "rail"}, {"rails", "rail"}, {"spine_leaf", "leaf_spine"}, {"switch", "star"}};
  std::vector<std::string> kinds;
  for (const CatalogEntry& entry : fabric_catalog()) {
    if (same_letters(entry.name, word)) return entry.name;
    kinds.push_back(entry.name);
  }
  for (const auto& [name, kind] : others)
    if (same_letters(name, word)) return kind;
  const std::string hint = did_you_mean(word, kinds);
  throw InputError(
      "", fmt::format("expected one of {}, found \"{}\"", fmt::join(kinds, ", "), word),
      hint.empty() ? "leaf_spine:2 is 2:1 oversubscribed; `ringsim list topologies` describes the fabrics" : hint);
}

/// What --like and --nic add to a topology that a file describes.
Json with_what_it_lacks(Json topology, const MachineWords& words, std::vector<Assumption>& assumptions) {
  if (!words.like.empty()) {
    const PresetNames* like = preset_named(words.like);
    if (like == nullptr)
      throw InputError("--like", fmt::format("expected the name of a machine, found \"{}\"", words.like),
                       preset_hint(words.like));
    const std::string note = preset_note(words.like);
    if (!note.empty()) assumptions.push_back({"topology.like", fmt::format("{} is {}", words.like, note)});
    topology["like"] = note.empty() ? plain_machine_name(words.like) : like->choice_of(words.like);
  }
  if (!words.nic.empty()) {
    try {
      topology["nic"] = {{"bandwidth", format(parse_bandwidth(words.nic))}};
    } catch (const InputError& error) {
      throw InputError("--nic", error.message(), error.hint());
    }
  }
  return topology;
}

/// Presets and machine files lack nothing.
void refuse_like(const MachineWords& words) {
  for (const auto& [value, option] : {std::pair{&words.like, "--like"}, {&words.nic, "--nic"}})
    if (!value->empty())
      throw InputError(option,
                       fmt::format("expected this option only with NCCL's topology XML or the output of `nvidia-smi "
                                   "topo -m`, found {}",
                                   words.node),
                       "this machine lacks nothing; `ringsim topology export MACHINE --to machine` writes it to a file "
                       "that you can change");
}

/// The first presets with as many GPUs as the matrix has, for a hint.
std::string presets_like(const std::string& matrix) {
  std::size_t gpus = 0;
  while (matrix.find(fmt::format("GPU{}", gpus)) != std::string::npos) ++gpus;
  constexpr std::size_t most = 4;
  std::vector<std::string> names;
  for (const PresetNames& preset : preset_names())
    if (names.size() < most && node_preset(preset.name).n_gpus() == gpus) names.push_back(preset.name);
  return names.empty() ? "" : fmt::format("; with {} GPUs: {}, ...", gpus, fmt::join(names, ", "));
}

/// Nodes of a preset, of a machine file, of NCCL's XML or of nvidia-smi's matrix: the topology without `nodes` and
/// fabric.
Json node_of(const MachineWords& words, std::vector<Assumption>& assumptions) {
  const std::string& node = words.node;
  if (const PresetNames* preset = preset_named(node); preset != nullptr) {
    refuse_like(words);
    const std::string note = preset_note(node);
    if (!note.empty()) assumptions.push_back({"topology.node", fmt::format("{} is {}", node, note)});
    return {{"kind", "cluster"}, {"node", note.empty() ? plain_machine_name(node) : preset->choice_of(node)}};
  }
  std::error_code error;
  const std::filesystem::path path(node);
  const bool is_file = std::filesystem::is_regular_file(path, error);
  if (is_file && path.extension() == ".json") {
    refuse_like(words);
    return {{"kind", "cluster"}, {"node_file", node}};
  }
  if (is_file && path.extension() == ".xml")
    return with_what_it_lacks({{"kind", "nccl_xml"}, {"file", node}}, words, assumptions);
  if (is_file) {
    const std::string text = scenarios::read_text(node, "a machine");
    if (!is_smi_matrix(text))
      throw InputError("--node",
                       fmt::format("expected a machine file (.json), NCCL's topology XML (.xml) or the output of "
                                   "`nvidia-smi topo -m`, found {}",
                                   node),
                       "docs/guide/my-machine.md describes these files");
    if (words.like.empty())
      throw InputError("--node",
                       fmt::format("expected --like with the output of `nvidia-smi topo -m`, which contains no speeds, "
                                   "found {} without it",
                                   node),
                       "--like NODE names a machine that supplies them, one with the same GPUs" + presets_like(text));
    return with_what_it_lacks({{"kind", "nvidia_smi"}, {"file", node}}, words, assumptions);
  }
  throw InputError("--node", fmt::format("expected a machine name or a file, found \"{}\"", node), preset_hint(node));
}

/// The machine of a topology of one node.
std::shared_ptr<const Machine> machine_of(Json topology) {
  topology["nodes"] = 1;
  const Json document{{"version", 1},
                      {"topology", std::move(topology)},
                      {"collective", {{"op", "all_reduce"}, {"algorithm", "direct"}, {"bytes", "1 B"}}}};
  const Scenario scenario = ScenarioFile::parse(json_text(document), "--node").point(0);
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  ensure(cluster != nullptr && !cluster->parts.empty(), "nodes form a cluster");
  return cluster->parts.front().machine;
}

/// The nodes that a fabric joins.
struct Joined {
  int nodes = 0;
  int nics = 0;  ///< of a node
};

/// Nodes on one leaf: at most half of all, so that there are two leaves, and at most as many as a switch has room for;
/// fewer or more if only so the oversubscription leaves whole cables.
int nodes_per_leaf(const Joined& joined, int oversubscription) {
  const int most = std::max(1, std::min((joined.nodes + 1) / 2, most_nics_per_switch / joined.nics));
  const auto fits = [&](int nodes) { return nodes * joined.nics % oversubscription == 0; };
  for (int nodes = most; nodes >= 1; --nodes)
    if (fits(nodes)) return nodes;
  for (int nodes = most + 1; nodes < joined.nodes; ++nodes)
    if (fits(nodes)) return nodes;
  return most;  // the fabric says which numbers would fit
}

/// The smallest even k whose fat tree has room, k^3/4 NICs times the oversubscription, and whose edge switches have
/// whole nodes.
int ports_of_fat_tree(const Joined& joined, int oversubscription) {
  const std::int64_t nics = std::int64_t{joined.nodes} * joined.nics;
  std::int64_t k = 2;
  while (k * k * k / 4 * oversubscription < nics || k / 2 * oversubscription % joined.nics != 0) k += 2;
  return static_cast<int>(k);
}

/// The grid that is nearest to a square.
std::vector<int> near_square(int nodes) {
  int shorter = static_cast<int>(std::sqrt(nodes));
  while (nodes % shorter != 0) --shorter;
  if (shorter == 1) return {nodes};
  return {shorter, nodes / shorter};
}

/// The keys of a fabric besides its link.
Json keys_of(const FabricWord& word, const Joined& joined, std::vector<Assumption>& assumptions) {
  const auto assume = [&](const char* key, const std::string& text) {
    assumptions.push_back({std::string("topology.fabric.") + key, text});
  };
  Json fabric{{"kind", word.kind}};
  const int oversubscription = word.numbers.empty() ? 1 : word.numbers.front();
  if (word.kind == "star") return fabric;
  if (word.kind == "torus") {
    fabric["dimensions"] = word.numbers.empty() ? near_square(joined.nodes) : word.numbers;
    if (word.numbers.empty())
      assume("dimensions", fmt::format("a torus of {} nodes", fmt::join(near_square(joined.nodes), " x ")));
    return fabric;
  }
  if (word.kind == "dragonfly") {
    fabric.update({{"groups", word.numbers[0]}, {"routers", word.numbers[1]}, {"nodes_per_router", word.numbers[2]}});
    return fabric;
  }
  if (word.numbers.empty()) assume("oversubscription", word.kind + " 1:1, without oversubscription");
  if (word.kind == "leaf_spine") {
    const int per_leaf = nodes_per_leaf(joined, oversubscription);
    fabric["nodes_per_leaf"] = per_leaf;
    assume("nodes_per_leaf",
           fmt::format("{} node{} per leaf{}", per_leaf, per_leaf == 1 ? "" : "s",
                       per_leaf > 1 && oversubscription > 1 ? "; with fewer, more traffic shares the uplinks" : ""));
  } else if (word.kind == "fat_tree") {
    fabric["k"] = ports_of_fat_tree(joined, oversubscription);
    assume("k", fmt::format("switches with {} ports, the fewest that have room for all NICs and whole nodes",
                            ports_of_fat_tree(joined, oversubscription)));
  } else {
    ensure(word.kind == "rail", "every kind of fabric has a word");
    const int group = std::min(joined.nodes, most_nics_per_switch), spines = std::max(1, group / oversubscription);
    fabric.update({{"nodes_per_group", group}, {"spines", spines}});
    assume("nodes_per_group", fmt::format("{} nodes per group of rail switches", group));
    assume("spines",
           fmt::format("{} spine{} that connect{} the rails", spines, spines == 1 ? "" : "s", spines == 1 ? "s" : ""));
  }
  fabric["oversubscription"] = oversubscription;
  return fabric;
}

Json fabric_of(const MachineWords& words, const Machine& machine, std::vector<Assumption>& assumptions) {
  Joined joined{.nodes = words.nodes, .nics = 0};
  Bandwidth fastest;
  for (const Machine::Device& device : machine.devices)
    if (device.port) {
      ++joined.nics;
      fastest = std::max(fastest, device.port->bandwidth);
    }
  if (joined.nics == 0) {
    const bool has_nics = std::any_of(machine.devices.begin(), machine.devices.end(),
                                      [](const Machine::Device& device) { return device.kind == NodeKind::nic; });
    throw InputError(
        "--nodes",
        fmt::format("expected 1, because {} has no NIC{}, found {}", words.node, has_nics ? " with a known speed" : "",
                    words.nodes),
        has_nics ? "--nic RATE sets it; --like NODE takes it, and what else the file lacks, from a known machine"
                 : "choose a machine with NICs, or add them to a machine file: `ringsim topology export MACHINE --to "
                   "machine`");
  }
  if (!words.fabric) assumptions.push_back({"topology.fabric", "one non-blocking switch connects the nodes (star)"});
  Json fabric = keys_of(words.fabric.value_or(FabricWord{"star", {}}), joined, assumptions);
  fabric["link"] = {{"bandwidth", format(fastest)}, {"latency", cable_latency}};
  assumptions.push_back({"topology.fabric.link",
                         fmt::format("each cable is as fast as {} of a node, {}, and has a latency of {}",
                                     joined.nics == 1 ? "the NIC" : fmt::format("one of the {} NICs", joined.nics),
                                     format(fastest), cable_latency)});
  // Rails join the GPUs of one number in any order; of few nodes each is next to each other anyway.
  const bool has_places = fabric["kind"] != "star" && fabric["kind"] != "rail";
  if (has_places && words.nodes > 2)
    assumptions.push_back(
        {"collective.ranks",
         "ranks are numbered in the order of nodes and switches; if a scheduler numbers them otherwise, "
         "more traffic crosses between switches"});
  return fabric;
}

std::vector<std::string> gpus_of(const Machine& machine) {
  std::vector<std::string> names;
  for (const Machine::Device& device : machine.devices)
    if (device.kind == NodeKind::gpu) names.push_back(device.name);
  return names;
}

/// The first GPUs of each node; null: all.
Json ranks_of(const MachineWords& words, const Machine& machine, std::vector<Assumption>& assumptions) {
  const std::vector<std::string> gpus = gpus_of(machine);
  if (words.gpus > static_cast<int>(gpus.size()))
    throw InputError("--gpus",
                     fmt::format("expected at most {}, the GPUs of {}, found {}", gpus.size(), words.node, words.gpus));
  if (words.gpus == 0 || words.gpus == static_cast<int>(gpus.size())) return nullptr;
  assumptions.push_back(
      {"collective.ranks", fmt::format("the first {} of {} GPUs of each node participate", words.gpus, gpus.size())});
  Json ranks = Json::array();
  for (int node = 0; node < words.nodes; ++node)
    for (int gpu = 0; gpu < words.gpus; ++gpu)
      ranks.push_back(fmt::format("node{}.{}", node, gpus[static_cast<std::size_t>(gpu)]));
  return ranks;
}

/// True if each two GPUs have a link of their own.
bool gpus_are_fully_joined(const Machine& machine) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const Machine::Cable& cable : machine.cables)
    if (machine.devices[cable.from].kind == NodeKind::gpu && machine.devices[cable.to].kind == NodeKind::gpu)
      pairs.insert(std::minmax(cable.from, cable.to));
  const std::size_t gpus = machine.n_gpus();
  return pairs.size() == gpus * (gpus - 1) / 2;
}

/// What runs on AMD's GPUs whose RCCL is not modeled.
std::string algorithm_without_library(const MachineWords& words, const std::string& op, const Machine& machine) {
  const auto ops = collective_ops();
  const auto its = std::find_if(ops.begin(), ops.end(), [&](CollectiveOp each) { return to_string(each) == op; });
  const bool has_ring = its != ops.end() && find_algorithm("ring")->supports(*its);
  return has_ring && (words.nodes > 1 || !gpus_are_fully_joined(machine)) ? "ring" : "direct";
}

bool is_amd(const Machine& machine) {
  return std::any_of(machine.devices.begin(), machine.devices.end(),
                     [](const Machine::Device& device) { return device.attributes.contains("gcn"); });
}

/// Why RCCL's choice for the op is not modeled there; empty: it is.
std::string why_not_rccl(const MachineWords& words, const std::string& op, const Machine& machine,
                         const Json& topology) {
  for (const CollectiveOp each : collective_ops())
    if (to_string(each) == op && !rccl::is_modeled(each, words.nodes))
      return fmt::format("{} on {}", op, words.nodes > 1 ? "several nodes" : "one node");
  std::vector<std::string> gpus = gpus_of(machine);
  if (words.gpus > 0 && words.gpus < static_cast<int>(gpus.size())) gpus.resize(static_cast<std::size_t>(words.gpus));
  try {
    Bandwidth nic;
    if (topology.contains("fabric")) nic = parse_bandwidth(topology["fabric"]["link"]["bandwidth"].get<std::string>());
    rccl::known_machine(machine, gpus, words.nodes, nic);
  } catch (const InputError& error) {
    return error.message();
  }
  return "";
}

/// As it is typed.
std::string text_of(const FabricWord& fabric) {
  return fabric.kind + (fabric.numbers.empty() ? "" : fmt::format(":{}", fmt::join(fabric.numbers, "x")));
}

/// "hgx-h100", "4 hgx-h100, leaf_spine:2".
std::string name_of(const MachineWords& words, const Json& topology, const Machine& machine) {
  std::string node = topology.contains("node") ? topology["node"].get<std::string>() : machine.name;
  if (words.nodes == 1) return node;
  return fmt::format("{} {}{}", words.nodes, node, words.fabric ? ", " + text_of(*words.fabric) : "");
}

}  // namespace

FabricWord parse_fabric(const std::string& word) {
  const std::size_t colon = word.find(':');
  FabricWord fabric{.kind = fabric_kind(word.substr(0, colon)), .numbers = {}};
  if (colon != std::string::npos)
    for (const std::string& number : parts_of(word.substr(colon + 1), 'x')) fabric.numbers.push_back(whole(number));
  const std::size_t n = fabric.numbers.size();
  if (fabric.kind == "star" && n > 0)
    throw InputError("", fmt::format("expected \"star\" with no number, found \"{}\"", word),
                     "a star has a non-blocking switch");
  if (fabric.kind == "dragonfly" && n != 3)
    throw InputError("", fmt::format("expected dragonfly:GROUPSxROUTERSxNODES, found \"{}\"", word),
                     "for example dragonfly:9x4x2, which is 9 groups of 4 routers with 2 nodes each");
  if (fabric.kind != "torus" && fabric.kind != "dragonfly" && n > 1)
    throw InputError("", fmt::format("expected {0} or {0}:OVERSUBSCRIPTION, found \"{1}\"", fabric.kind, word),
                     fmt::format("such as {}:2", fabric.kind));
  return fabric;
}

void suggest_machines(Option& node) {
  for (const PresetNames& preset : preset_names()) {
    node.suggested.push_back(preset.name);
    for (const std::string& alias : preset.also)
      if (alias.find(' ') == std::string::npos) node.suggested.push_back(alias);  // shells divide words at spaces
  }
}

void declare_nodes(Options& options, MachineWords& machine) {
  options.whole("--nodes", "N", 1, most_nodes, machine.nodes, "the number of nodes").fallback = "1";
  Option& fabric = options.read(
      "--fabric", "KIND[:N]", [&machine](const std::string& word) { machine.fabric = parse_fabric(word); },
      "the fabric that connects the nodes: star, leaf_spine, fat_tree or rail, with :N for N:1 oversubscription; torus "
      "or torus:4x4; dragonfly:GROUPSxROUTERSxNODES");
  fabric.fallback = "star";
  for (const CatalogEntry& entry : fabric_catalog()) fabric.suggested.push_back(entry.name);
  suggest_machines(options.text("--like", "NODE", machine.like,
                                "for NCCL's topology XML and the output of `nvidia-smi topo -m`: the machine that "
                                "supplies the speeds they lack"));
  options.text("--nic", "RATE", machine.nic, "the rate of NICs whose speed such a file does not state: 400Gb/s");
}

std::string words_of(const MachineWords& machine) {
  return (machine.nodes == 1 ? "" : fmt::format(" --nodes {}", machine.nodes)) +
         (machine.fabric ? " --fabric " + text_of(*machine.fabric) : "") +
         (machine.like.empty() ? "" : " --like " + shell_word(machine.like)) +
         (machine.nic.empty() ? "" : " --nic " + shell_word(machine.nic));
}

std::vector<std::pair<std::string, std::string>> given_words(const MachineWords& machine) {
  std::vector<std::pair<std::string, std::string>> given;
  if (machine.nodes != 1) given.emplace_back("--nodes", "topology.nodes=N");
  if (machine.fabric) given.emplace_back("--fabric", "topology.fabric=...");
  if (!machine.like.empty()) given.emplace_back("--like", "topology.like=NODE");
  if (!machine.nic.empty()) given.emplace_back("--nic", "topology.nic.bandwidth=RATE");
  return given;
}

bool is_smi_matrix(const std::string& text) {
  return text.find("GPU0") != std::string::npos && text.find_first_not_of(" \t\r\n") != text.find('{') &&
         (text.find("CPU Affinity") != std::string::npos || text.find("Legend:") != std::string::npos);
}

MachineWords settled(MachineWords machine) {
  if (machine.nodes > 1 || !machine.fabric) return machine;
  warn("--fabric: it has no effect on one node; use --nodes to set the number of nodes");
  machine.fabric.reset();
  return machine;
}

MachineScenario scenario_of(const MachineWords& words, const CollectiveWords& collective) {
  MachineScenario out;
  Json topology = node_of(words, out.assumptions);
  const auto machine = machine_of(topology);
  out.gpus = static_cast<std::int64_t>(machine->n_gpus()) * words.nodes;
  topology["nodes"] = words.nodes;
  const std::string name = name_of(words, topology, *machine);
  if (words.nodes > 1) topology["fabric"] = fabric_of(words, *machine, out.assumptions);
  out.document = {{"version", 1}, {"name", name}, {"topology", std::move(topology)}};

  std::vector<std::string> algorithms = collective.algorithms;
  bool by_rccl = false;
  if (algorithms.empty() && is_amd(*machine)) {
    if (!collective.nccl.empty())
      throw InputError(collective.nccl_from,
                       fmt::format("expected a machine that NCCL {} runs on, found {}, which has AMD GPUs",
                                   collective.nccl, words.node),
                       fmt::format("without an NCCL version, ringsim predicts RCCL {} where RCCL is modeled",
                                   rccl::modeled_version));
    const std::string because = why_not_rccl(words, collective.op, *machine, out.document["topology"]);
    by_rccl = because.empty();
    if (!by_rccl) {
      algorithms = {algorithm_without_library(words, collective.op, *machine)};
      out.assumptions.push_back(
          {"collective.algorithm",
           fmt::format("{}: RCCL is not modeled here, {}",
                       algorithms.front() == "ring" ? "ring" : "direct, messages to all", because)});
    }
  }
  Json run{{"op", collective.op}};
  if (algorithms.size() == 1) run["algorithm"] = algorithms.front();
  if (algorithms.size() > 1) run["algorithm"] = algorithms;
  if (by_rccl) {
    out.document["library"] = "rccl";
    out.assumptions.push_back(
        {"library", fmt::format("RCCL {}, the only release that is modeled", rccl::modeled_version)});
  } else if (algorithms.empty() && collective.nccl.empty()) {
    out.document["library"] = "nccl";
    out.assumptions.push_back(
        {"library", fmt::format("NCCL {}, the newest release that is modeled", nccl::newest_version)});
  } else if (algorithms.empty()) {
    out.document["library"] = {{"name", "nccl"}, {"version", collective.nccl}};
  } else if (!is_amd(*machine)) {
    out.assumptions.push_back(
        {"library",
         "none: a textbook algorithm, without NCCL's channels and kernels; for NCCL's own, leave out "
         "--algorithm and set library.env.NCCL_ALGO, such as Ring"});
  }
  run["bytes"] = collective.bytes;
  if (Json ranks = ranks_of(words, *machine, out.assumptions); !ranks.is_null()) run["ranks"] = std::move(ranks);
  out.document["collective"] = std::move(run);
  return out;
}

std::vector<Assumption> assumed_with(std::vector<Assumption> assumptions, const std::vector<std::string>& set) {
  std::erase_if(assumptions, [&](const Assumption& each) {
    const scenarios::DottedPath path = scenarios::split_path(each.path);
    return std::any_of(set.begin(), set.end(), [&](const std::string& change) {
      const scenarios::DottedPath changed = scenarios::split_path(change.substr(0, change.find('=')));
      return scenarios::leads_to(changed, path) || scenarios::leads_to(path, changed);
    });
  });
  return assumptions;
}

namespace {

/// parse_bytes(); the hint for sizes as nccl-tests takes them (8, 1G) is how to write them here.
Bytes parse_size(const std::string& word) {
  try {
    return parse_bytes(word);
  } catch (const InputError& error) {
    const std::size_t digits = word.find_first_not_of("0123456789");
    const bool is_number = !word.empty() && digits == std::string::npos;
    const bool has_letter = digits != 0 && digits + 1 == word.size() &&
                            std::string_view("KMGkmg").find(word[digits]) != std::string_view::npos;
    if (!is_number && !has_letter) throw;
    const std::string unit = is_number ? "B" : fmt::format("{}iB", static_cast<char>(std::toupper(word[digits])));
    throw InputError("", error.message(), fmt::format("write {}{}", word.substr(0, digits), unit));
  }
}

}  // namespace

Json parse_sizes(const std::string& word) {
  const std::size_t dots = word.find("..");
  if (dots == std::string::npos) {
    Json sizes = Json::array();
    for (const std::string& size : parts_of(word, ',')) sizes.push_back(format(parse_size(size)));
    return sizes.size() == 1 ? sizes.front() : sizes;
  }
  std::string to = word.substr(dots + 2);
  int factor = 2;
  if (const std::size_t colon = to.find(':'); colon != std::string::npos) {
    factor = whole(to.substr(colon + 1));
    to.resize(colon);
  }
  const Bytes from = parse_size(word.substr(0, dots)), end = parse_size(to);
  if (factor < 2) throw InputError("", "expected a factor of at least 2, found 1");
  if (from <= Bytes{0} || from > end)
    throw InputError("", fmt::format("expected FROM..TO with 0 B < FROM <= TO, found \"{}\"", word));
  return {{"from", format(from)}, {"to", format(end)}, {"factor", factor}};
}

}  // namespace ringsim::tools
