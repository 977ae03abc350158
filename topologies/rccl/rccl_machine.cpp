#include "topologies/rccl/rccl_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl/nccl_library.hpp"

namespace ringsim::rccl {

namespace {

using Order = std::array<int, gpus_of_mesh>;

/// rome_model_79, eight GPUs without NICs: its list has each of these twice. Each link of the mesh is in two of them,
/// each way.
constexpr std::array<Order, 14> on_one_node{{{0, 1, 2, 3, 4, 5, 6, 7},
                                             {0, 1, 2, 3, 4, 5, 7, 6},
                                             {0, 2, 4, 1, 3, 6, 5, 7},
                                             {0, 2, 4, 6, 1, 7, 3, 5},
                                             {0, 3, 1, 5, 2, 7, 4, 6},
                                             {0, 3, 5, 1, 6, 2, 7, 4},
                                             {0, 4, 1, 7, 3, 6, 2, 5},
                                             {7, 6, 5, 4, 3, 2, 1, 0},
                                             {6, 7, 5, 4, 3, 2, 1, 0},
                                             {7, 5, 6, 3, 1, 4, 2, 0},
                                             {5, 3, 7, 1, 6, 4, 2, 0},
                                             {6, 4, 7, 2, 5, 1, 3, 0},
                                             {4, 7, 2, 6, 1, 5, 3, 0},
                                             {5, 2, 6, 3, 7, 1, 4, 0}}};

/// rome_model_81, eight GPUs with eight NICs: its list has these eight times, each time beginning with the next one.
/// Each link of the mesh is in one of them, each way, and each NIC is the first of one and the last of another.
constexpr std::array<Order, 8> between_nodes{{{0, 1, 2, 3, 4, 5, 6, 7},
                                              {1, 0, 2, 4, 3, 5, 7, 6},
                                              {2, 5, 0, 3, 6, 1, 7, 4},
                                              {3, 7, 0, 4, 2, 1, 6, 5},
                                              {4, 6, 2, 7, 3, 0, 5, 1},
                                              {5, 4, 7, 1, 3, 2, 6, 0},
                                              {6, 3, 1, 4, 0, 7, 5, 2},
                                              {7, 2, 0, 6, 4, 1, 5, 3}}};

/// 28 rings of model 79 are doubled after the search; 64 of model 81 are as many as there may be between nodes
/// (src/graph/connect.cc, ncclTopoPostset).
constexpr int channels_on_one_node = 56, channels_between_nodes = 64;

const Machine::Device& device_named(const Machine& machine, const std::string& name) {
  const auto is_it = [&](const Machine::Device& each) { return each.kind == NodeKind::gpu && each.name == name; };
  const auto found = std::find_if(machine.devices.begin(), machine.devices.end(), is_it);
  if (found == machine.devices.end())
    throw InputError("", fmt::format("expected the name of a GPU of {}, found \"{}\"", machine.name, name));
  return *found;
}

/// "942" of "gfx942:sramecc+:xnack-", as files say it.
std::string architecture_of(const Machine::Device& gpu) {
  const auto found = gpu.attributes.find("gcn");
  if (found == gpu.attributes.end()) return {};
  std::string text = found->second.substr(0, found->second.find(':'));
  return text.starts_with("gfx") ? text.substr(3) : text;
}

void require_gpus(const Machine& machine, const std::vector<std::string>& gpus) {
  for (const std::string& name : gpus) {
    const Machine::Device& gpu = device_named(machine, name);
    const std::string architecture = architecture_of(gpu);
    if (architecture.empty() && compute_capability(gpu))
      throw InputError("", fmt::format("expected AMD GPUs for RCCL, found NVIDIA GPUs in {}", machine.name),
                       R"(write "library": "nccl")");
    if (architecture.empty())
      throw InputError("", fmt::format("expected GPUs with a known architecture, found none in {}", machine.name),
                       R"(in a machine file, set "attributes": {"gcn": "942"} for each gpu)");
    if (architecture != "942")
      throw InputError(
          "",
          fmt::format("expected gfx942 GPUs (MI300X, MI325X) for RCCL, found gfx{} in {}", architecture, machine.name),
          fmt::format("the rings and constants of RCCL for other GPUs are not modeled; {}", nccl::without_a_library));
  }
  if (gpus.size() != gpus_of_mesh)
    throw InputError("",
                     fmt::format("expected all {} GPUs of each node for RCCL, found {} of {}", gpus_of_mesh,
                                 gpus.size(), machine.name),
                     fmt::format("for fewer GPUs, RCCL searches rings based on the links, which is not modeled; {}",
                                 nccl::without_a_library));
}

/// The xGMI links of a machine among its GPUs.
struct Mesh {
  bool complete = false;  ///< one from each to each other
  Picoseconds latency{0};
};
Mesh mesh_of(const Machine& machine) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, int> links;
  Mesh out;
  for (const Machine::Cable& cable : machine.cables) {
    if (cable.link.kind != LinkKind::xgmi || machine.devices[cable.from].kind != NodeKind::gpu ||
        machine.devices[cable.to].kind != NodeKind::gpu)
      continue;
    links[std::minmax(cable.from, cable.to)] += cable.link.joined;
    out.latency = std::max(out.latency, cable.link.latency);
  }
  constexpr std::size_t pairs = gpus_of_mesh * (gpus_of_mesh - 1) / 2;
  out.complete = links.size() == pairs &&
                 std::all_of(links.begin(), links.end(), [](const auto& each) { return each.second == 1; });
  return out;
}

nccl::SearchGraph graph_of(nccl::SearchGraph::Id id, std::span<const Order> orders,
                           const std::vector<std::string>& gpus, const std::vector<std::string>& nics, double speed) {
  nccl::SearchGraph out;
  out.id = id;
  out.pattern = id == nccl::SearchGraph::Id::ring ? 4 : 1;
  out.inside = out.between = speed;
  out.turned = id == nccl::SearchGraph::Id::ring && !nics.empty();
  for (const Order& order : orders) {
    nccl::SearchGraph::Channel& channel = out.channels.emplace_back();
    for (const int gpu : order) channel.gpus.push_back(gpus[static_cast<std::size_t>(gpu)]);
    if (nics.empty()) continue;
    channel.enters = nics[static_cast<std::size_t>(order.front())];
    channel.leaves = nics[static_cast<std::size_t>(order.back())];
  }
  return out;
}

/// The NICs by GPU. Their rate, with what their PCIe links leave of it, goes into `slowest` (GB/s).
std::vector<std::string> nics_of(const Machine& machine, const std::vector<std::string>& gpus, Bandwidth nic,
                                 double& slowest) {
  std::set<std::uint32_t> used;
  for (std::uint32_t d = 0; d < machine.devices.size(); ++d)
    if (machine.devices[d].kind == NodeKind::nic && machine.devices[d].port && !machine.devices[d].idle) used.insert(d);
  std::optional<nccl::NearNics> near;
  if (used.size() == gpus_of_mesh) near = nccl::nearest_nics(machine, gpus, nic);
  if (!near)
    throw InputError(
        "",
        fmt::format("expected {} NICs for RCCL on several nodes, one for each GPU, found {} in {}", gpus_of_mesh,
                    used.size() == gpus_of_mesh ? "some that share one" : fmt::to_string(used.size()), machine.name),
        fmt::format("the rings of RCCL for other NICs are not modeled; {}", nccl::without_a_library));
  slowest = static_cast<double>(nic.bytes_per_second) / 1e9;
  for (const Machine::Cable& cable : machine.cables)
    if (used.count(cable.from) + used.count(cable.to) > 0)
      slowest = std::min(slowest, static_cast<double>(cable.link.bandwidth.bytes_per_second) / 1e9);
  return near->names;
}

}  // namespace

void require_modeled(const std::string& version) {
  if (version == modeled_version) return;
  throw InputError(
      "", fmt::format("expected {}, the only release of RCCL that is modeled, found \"{}\"", modeled_version, version),
      fmt::format("other releases use other constants (docs/guide/rccl.md); \"{}\" shows what this release would do",
                  modeled_version));
}

KnownMachine known_machine(const Machine& machine, const std::vector<std::string>& gpus, int nodes, Bandwidth nic) {
  if (gpus.empty()) throw InputError("", fmt::format("expected GPUs of {}, found none", machine.name));
  require_gpus(machine, gpus);
  const Mesh mesh = mesh_of(machine);
  if (!mesh.complete || machine.n_gpus() != gpus_of_mesh)
    throw InputError(
        "",
        fmt::format("expected eight GPUs with an xGMI link between every two for RCCL, found another machine, {}",
                    machine.name),
        fmt::format("the rings of RCCL for this machine are not modeled; {}", nccl::without_a_library));
  const auto cpus = std::count_if(machine.devices.begin(), machine.devices.end(),
                                  [](const Machine::Device& device) { return device.kind == NodeKind::cpu; });
  if (cpus != 2)
    throw InputError("", fmt::format("expected two CPUs for RCCL, found {} in {}", cpus, machine.name),
                     fmt::format("only the rings of RCCL for machines with two NUMA nodes are modeled; {}",
                                 nccl::without_a_library));
  if (nodes > 1 && nodes % 2 != 0)
    throw InputError("", fmt::format("expected one node or an even number of nodes for RCCL, found {}", nodes),
                     "with an odd number, the last two nodes have different rings, which are not modeled");

  const bool several = nodes > 1;
  KnownMachine out;
  out.link = mesh.latency;
  nccl::TunerMachine& tuner = out.tuner;
  tuner.nodes = nodes;
  tuner.gpus = gpus_of_mesh;
  tuner.nvlink = true;
  tuner.amd = machine.host.peer_access == PathType::sys;  // as in nccl::tuner_machine()
  tuner.same_rings = true;                                // parseGraph() leaves graph->sameChannels at its first value
  tuner.nvlinks = 1;
  const double link = static_cast<double>(nccl::xgmi_bandwidth("gfx942").bytes_per_second) / 1e9;
  tuner.nvlinks_GBps = link;
  std::vector<std::string> nics;
  if (several) nics = nics_of(machine, gpus, nic, tuner.nic_GBps);
  const int channels = several ? channels_between_nodes : channels_on_one_node;
  const double speed = link * (gpus_of_mesh - 1) / channels;
  tuner.ring = tuner.tree = {channels, speed, speed};
  const std::span<const Order> orders = several ? std::span<const Order>(between_nodes) : on_one_node;
  out.rings = graph_of(nccl::SearchGraph::Id::ring, orders, gpus, nics, speed);
  out.trees = graph_of(nccl::SearchGraph::Id::tree, orders, gpus, nics, speed);
  return out;
}

}  // namespace ringsim::rccl
