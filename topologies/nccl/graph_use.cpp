#include "topologies/nccl/graph_use.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nccl/nccl_library.hpp"

namespace ringsim::nccl {

namespace {

std::optional<int> number_said(const Machine::Device& device, const std::string& key) {
  const auto found = device.attributes.find(key);
  if (found == device.attributes.end()) return std::nullopt;
  const std::string& text = found->second;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The devices by the numbers that they have themselves; nothing if some has none, or two have the same.
std::optional<std::map<int, std::string>> said_numbers(const std::vector<const Machine::Device*>& devices,
                                                       const std::string& key, const std::string& prefix) {
  std::map<int, std::string> out;
  for (const Machine::Device* device : devices) {
    const auto first = number_said(*device, prefix.empty() ? key : fmt::format("{}0.{}", prefix, key));
    if (!first) return std::nullopt;
    for (int i = 0; i == 0 || !prefix.empty(); ++i) {  // each port of a NIC has a number
      const auto number = prefix.empty() ? first : number_said(*device, fmt::format("{}{}.{}", prefix, i, key));
      if (!number) break;
      if (!out.emplace(*number, device->name).second) return std::nullopt;
    }
  }
  return out;
}

std::map<int, std::string> numbered(const std::vector<const Machine::Device*>& devices, const std::string& key,
                                    const std::string& prefix) {
  if (auto said = said_numbers(devices, key, prefix)) return std::move(*said);
  std::map<int, std::string> out;
  for (const Machine::Device* device : devices) out.emplace(static_cast<int>(out.size()), device->name);
  return out;
}

}  // namespace

GraphDevices graph_devices(const Machine& machine, const std::vector<std::string>& gpus) {
  std::vector<const Machine::Device*> all_gpus, nics;
  for (const Machine::Device& device : machine.devices) {
    if (device.kind == NodeKind::gpu) all_gpus.push_back(&device);
    if (device.kind == NodeKind::nic && device.port && !device.idle) nics.push_back(&device);
  }
  GraphDevices out{.gpus = {}, .nics = numbered(nics, "dev", "net")};
  for (auto& [dev, name] : numbered(all_gpus, "dev", ""))
    if (std::find(gpus.begin(), gpus.end(), name) != gpus.end()) out.gpus.emplace(dev, std::move(name));
  return out;
}

GraphReading graph_reading(GraphDevices devices, int nodes, const std::string& version) {
  const int minor = minor_of_version(version);
  return {.devices = std::move(devices),
          .nodes = nodes,
          .most_channels = most_channels_of(version),
          .hexadecimal = minor >= 21};
}

void leave_out_cross_nic(GraphFile& file, const std::string& name) {
  for (const SearchGraph& graph : file.graphs)
    if (graph.cross_nic == 1)
      file.warnings.push_back(fmt::format(
          "{}:{}: <graph> of id {} has no effect: with NCCL_CROSS_NIC=0, NCCL ignores graphs with crossnic 1", name,
          graph.line, static_cast<int>(graph.id)));
  std::erase_if(file.graphs, [](const SearchGraph& graph) { return graph.cross_nic == 1; });
}

void take_graphs(TunerMachine& machine, GraphFile& file, const std::string& name, Release release) {
  using Id = SearchGraph::Id;
  const auto warn = [&](const SearchGraph& graph, const std::string& what) {
    file.warnings.push_back(fmt::format("{}:{}: {}", name, graph.line, what));
  };
  const SearchGraph *ring = file.find(Id::ring), *tree = file.find(Id::tree);
  if (ring != nullptr) machine.ring = machine.tree = channels_of(*ring, machine, release);
  if (tree != nullptr) machine.tree = channels_of(*tree, machine, release);
  const int fewer = std::min(machine.ring.count, machine.tree.count);
  machine.ring.count = machine.tree.count = fewer;
  if (const SearchGraph* first = ring != nullptr ? ring : tree; first != nullptr) {
    machine.nvlink = first->type_inside <= PathType::nvl;
    machine.ll128 = machine.ring.ll128;
    machine.net_latency_us = first->latency_us;
    if (ring != nullptr) machine.same_rings = ring->same_channels;
    if (ring != nullptr && tree != nullptr && ring->latency_us != tree->latency_us)
      warn(*tree, "latencyinter differs between trees and rings; the tuner uses the value of the rings for both");
  }
  const SearchGraph* nvls = file.find(Id::nvls);
  if (nvls == nullptr) return;
  if (machine.nvls.count > 0)
    machine.nvls = channels_of(*nvls, machine, release);
  else
    warn(*nvls, "<graph> of id 3 has no effect: NVLS needs Hopper or later GPUs on NVSwitches");
}

namespace {

std::string local_name_of(const Topology& topology, NodeId id) {
  return std::string(local_name(topology.node(id).name));
}

/// The ranks of a node.
struct OfNode {
  std::optional<std::uint32_t> host;
  std::map<std::string, Actor> ranks;  ///< by the GPU's name in the node
};

std::vector<OfNode> nodes_of(const Topology& topology, std::span<const NodeId> ranks) {
  std::vector<OfNode> out;
  for (Actor r = 0; r < static_cast<Actor>(ranks.size()); ++r) {
    const NodeId id = ranks[static_cast<std::size_t>(r)];
    const auto host = topology.node(id).host;
    auto node = std::find_if(out.begin(), out.end(), [&](const OfNode& each) { return each.host == host; });
    if (node == out.end()) node = out.insert(out.end(), OfNode{host, {}});
    node->ranks.emplace(local_name_of(topology, id), r);
  }
  return out;
}

std::set<std::string> gpus_of(const OfNode& node) {
  std::set<std::string> out;
  for (const auto& [gpu, rank] : node.ranks) out.insert(gpu);
  return out;
}
std::set<std::string> gpus_of(const SearchGraph& graph) {
  const std::vector<std::string>& any = graph.channels.front().gpus;
  return {any.begin(), any.end()};
}

bool exchanges_rings(const SearchGraph& graph, std::size_t nodes, const std::string& version) {
  const int minor = minor_of_version(version);
  if (minor < 20 || graph.channels.size() % 2 != 0 || (minor == 20 && nodes % 2 != 0)) return false;
  return graph.id == SearchGraph::Id::ring && graph.cross_nic >= (minor < 26 ? 1 : 2);
}

}  // namespace

std::optional<NearNics> nearest_nics(const Machine& machine, const std::vector<std::string>& gpus, Bandwidth nic) {
  Cluster two;
  two.parts.push_back({std::make_shared<Machine>(machine), 2});
  two.fabric = StarFabric{{.bandwidth = nic}};
  const Topology topology = build(two);
  Routes routes(topology, {});
  NearNics out;
  for (const std::string& gpu : gpus) {
    const auto from = topology.find("node0." + gpu), to = topology.find("node1." + gpu);
    ensure(from && to, "a machine's GPUs are in its topology");
    const Path path = routes.find(*from, *to);
    const auto own = first_nic(topology, path);
    ensure(own.has_value(), "hosts are joined by NICs");
    out.names.push_back(local_name_of(topology, *own));
    out.farthest = std::max({out.farthest, path.out, path.in});
  }
  if (std::set<std::string>(out.names.begin(), out.names.end()).size() != gpus.size()) return std::nullopt;
  return out;
}

bool is_on_gpus_of(const SearchGraph& graph, const Topology& topology, std::span<const NodeId> ranks) {
  const std::set<std::string> wanted = gpus_of(graph);
  const std::vector<OfNode> nodes = nodes_of(topology, ranks);
  return std::all_of(nodes.begin(), nodes.end(), [&](const OfNode& node) { return gpus_of(node) == wanted; });
}

int rings_in(const SearchGraph& graph, int nodes, const std::string& version) {
  const bool exchanged = exchanges_rings(graph, static_cast<std::size_t>(nodes), version);
  const auto& channels = graph.channels;
  const auto same = [&](std::size_t a, std::size_t b) {
    return channels[a].gpus == channels[b].gpus && (!exchanged || channels[a ^ 1].gpus == channels[b ^ 1].gpus);
  };
  for (std::size_t n = 1; n < channels.size(); ++n) {
    bool repeats = true;
    for (std::size_t c = n; c < channels.size() && repeats; ++c) repeats = same(c, c - n);
    if (repeats) return static_cast<int>(n);
  }
  return static_cast<int>(channels.size());
}

std::vector<std::vector<Actor>> rings_of(const SearchGraph& graph, const Topology& topology,
                                         std::span<const NodeId> ranks, const std::string& file,
                                         const std::string& version) {
  const std::vector<OfNode> nodes = nodes_of(topology, ranks);
  const std::set<std::string> wanted = gpus_of(graph);
  for (const OfNode& node : nodes)
    if (const std::set<std::string> found = gpus_of(node); found != wanted)
      throw InputError(
          "",
          fmt::format("expected ranks on the GPUs of {}, {}, on every node, found {}", file, fmt::join(wanted, ", "),
                      fmt::join(found, ", ")),
          "a file describes one communicator; other communicators read it as well and do not find their GPUs");
  const bool exchanged = exchanges_rings(graph, nodes.size(), version);
  std::vector<std::vector<Actor>> rings;
  const auto distinct = static_cast<std::size_t>(rings_in(graph, static_cast<int>(nodes.size()), version));
  for (std::size_t c = 0; c < distinct; ++c) {
    std::vector<Actor>& ring = rings.emplace_back();
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const bool second = n % 2 == 1;
      std::vector<std::string> gpus = graph.channels[exchanged && second ? c ^ 1 : c].gpus;
      if (graph.turned && second) std::reverse(gpus.begin(), gpus.end());
      for (const std::string& gpu : gpus) ring.push_back(nodes[n].ranks.at(gpu));
    }
  }
  return rings;
}

ChannelNics nics_of(const SearchGraph& graph, int channels) {
  ChannelNics out{.channels = channels, .nic_of = {}};
  for (const SearchGraph::Channel& channel : graph.channels) {
    auto& nics = out.nic_of.emplace_back();
    if (!channel.enters || !channel.leaves) continue;
    for (const std::string& gpu : channel.gpus)
      nics.emplace(gpu, gpu == channel.gpus.front() ? *channel.enters : *channel.leaves);
  }
  return out;
}

}  // namespace ringsim::nccl
