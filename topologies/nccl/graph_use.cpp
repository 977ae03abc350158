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
  const auto channels_of = [](const SearchGraph& graph) {
    return Channels{static_cast<int>(graph.channels.size()), graph.inside, graph.between};
  };
  const auto warn = [&](const SearchGraph& graph, const std::string& what) {
    file.warnings.push_back(fmt::format("{}:{}: {}", name, graph.line, what));
  };
  const SearchGraph *ring = file.find(Id::ring), *tree = file.find(Id::tree);
  if (ring != nullptr) machine.ring = machine.tree = channels_of(*ring);
  if (tree != nullptr) machine.tree = channels_of(*tree);
  const int fewer = std::min(machine.ring.count, machine.tree.count);
  machine.ring.count = machine.tree.count = fewer;
  if (const SearchGraph* first = ring != nullptr ? ring : tree; first != nullptr) {
    const auto joined = [](const SearchGraph& graph) { return graph.type_inside <= PathType::nvl; };
    // LL128 needs NVLink and NICs as near as PXB, from Hopper on PXN (src/graph/tuning.cc).
    const PathType farthest = machine.sm >= 90 ? PathType::pxn : PathType::pxb;
    const auto near = [&](const SearchGraph& graph) {
      return graph.type_inside <= PathType::nvb && (machine.nodes == 1 || graph.type_between <= farthest);
    };
    machine.nvlink = joined(*first);
    machine.net_latency_us = first->latency_us;
    machine.ll128 = knows_ll128(machine.sm, release) && near(*first) && (tree == nullptr || near(*tree));
    if (ring != nullptr) machine.same_rings = ring->same_channels;
    if (ring != nullptr && tree != nullptr &&
        (joined(*ring) != joined(*tree) || near(*ring) != near(*tree) || ring->latency_us != tree->latency_us))
      warn(*tree,
           "typeintra, typeinter or latencyinter differ between trees and rings; the tuner uses the values of the "
           "rings for both, and LL128 only where both allow it");
  }
  const SearchGraph* nvls = file.find(Id::nvls);
  if (nvls == nullptr) return;
  if (machine.nvls.count > 0)
    machine.nvls = channels_of(*nvls);
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

/// LL128 goes by how far NICs are, which has to come out as it is. `farthest`: on the way.
PathType type_between(const TunerMachine& machine, PathType farthest) {
  const bool may = machine.nvlink && machine.nodes > 1;
  if (may && machine.ll128) return std::min(farthest, PathType::pxb);
  return std::clamp(farthest, may ? PathType::phb : PathType::pix, PathType::sys);
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

std::optional<SearchGraph> crossing_rings(const TunerMachine& tuner, const Machine& machine,
                                          const std::vector<std::string>& gpus, Bandwidth nic) {
  const std::optional<NearNics> near = nearest_nics(machine, gpus, nic);
  if (!near) return std::nullopt;
  const std::vector<std::string>& nics = near->names;
  SearchGraph out;
  out.cross_nic = 2;
  out.inside = tuner.ring.inside;
  out.between = tuner.ring.between;
  out.latency_us = tuner.net_latency_us;
  out.type_between = type_between(tuner, near->farthest);
  out.same_channels = false;
  for (std::size_t k = 0; k + 1 < gpus.size(); k += 2) {
    std::vector<std::string> order{gpus[k]};
    for (std::size_t i = 2; i < gpus.size(); ++i) order.push_back(gpus[(k + i) % gpus.size()]);
    order.push_back(gpus[k + 1]);
    out.channels.push_back({order, nics[k], nics[k + 1]});
    std::reverse(order.begin(), order.end());
    out.channels.push_back({order, nics[k + 1], nics[k]});
  }
  return out;
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
  const std::set<std::string> wanted(graph.channels.front().gpus.begin(), graph.channels.front().gpus.end());
  for (const OfNode& node : nodes) {
    std::set<std::string> found;
    for (const auto& [gpu, rank] : node.ranks) found.insert(gpu);
    if (found != wanted)
      throw InputError(
          "",
          fmt::format("expected ranks on the GPUs of {}, {}, on every node, found {}", file, fmt::join(wanted, ", "),
                      fmt::join(found, ", ")),
          "a file describes one communicator; other communicators read it as well and do not find their GPUs");
  }
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

namespace {

/// A ring where it crosses a node.
struct Crossing {
  SearchGraph::Channel channel;
  PathType farthest = PathType::pix;  ///< between GPU and NIC
  bool operator==(const Crossing&) const = default;
};

class GraphMaker {
 public:
  GraphMaker(const TunerMachine& machine, const Topology& topology, std::span<const NodeId> ranks,
             const Transport& transport, const Routing& routing)
      : machine_(machine),
        topology_(topology),
        ranks_(ranks),
        routes_(topology, transport, routing),
        gpus_(static_cast<std::size_t>(machine.gpus)) {}

  SearchGraph ring(const std::vector<std::vector<Actor>>& rings) {
    SearchGraph out = head(SearchGraph::Id::ring, 4, machine_.ring);
    out.same_channels = machine_.same_rings;
    for (int k = 0; k < machine_.ring.count; ++k)
      out.channels.push_back(crossed(rings[static_cast<std::size_t>(k) % rings.size()], k));
    out.type_between = between();
    return out;
  }

  SearchGraph nvls() {
    SearchGraph out = head(SearchGraph::Id::nvls, 5, machine_.nvls);
    out.same_channels = false;
    out.type_between = between();
    const std::vector<OfNode> nodes = nodes_of(topology_, ranks_);
    std::vector<NodeId> heads;  // in the order of their ranks
    for (const NodeId id : ranks_)
      if (topology_.node(id).host == nodes.front().host) heads.push_back(id);
    for (int k = 0; k < machine_.nvls.count; ++k) {
      const NodeId gpu = heads[static_cast<std::size_t>(k) % heads.size()];
      SearchGraph::Channel channel{.gpus = {local_name_of(topology_, gpu)}, .enters = {}, .leaves = {}};
      if (machine_.nodes > 1) {
        const Actor other = nodes[1].ranks.at(channel.gpus.front());
        const Path path = routes_.find(gpu, ranks_[static_cast<std::size_t>(other)], static_cast<std::uint32_t>(k));
        channel.enters = channel.leaves = named(first_nic(topology_, path));
      }
      out.channels.push_back(std::move(channel));
    }
    return out;
  }

  SearchGraph head(SearchGraph::Id id, int pattern, const Channels& found) const {
    SearchGraph out;
    out.id = id;
    out.pattern = pattern;
    out.inside = found.inside;
    out.between = found.between;
    out.latency_us = machine_.net_latency_us;
    out.type_inside = machine_.nvlink ? PathType::nvl : machine_.through_host ? PathType::sys : PathType::phb;
    return out;
  }

 private:
  /// How the ring crosses each node, and that it crosses all alike.
  SearchGraph::Channel crossed(const std::vector<Actor>& ring, int channel) {
    const std::size_t nodes = ring.size() / gpus_;
    const auto at = [&](std::size_t i) { return ranks_[static_cast<std::size_t>(ring[i % ring.size()])]; };
    std::vector<Crossing> found(nodes);
    for (std::size_t n = 0; n < nodes; ++n) {
      for (std::size_t g = 0; g < gpus_; ++g)
        found[n].channel.gpus.push_back(local_name_of(topology_, at(n * gpus_ + g)));
      if (nodes == 1) break;
      const Path path =
          routes_.find(at(n * gpus_ + gpus_ - 1), at((n + 1) * gpus_), static_cast<std::uint32_t>(channel));
      Crossing& next = found[(n + 1) % nodes];
      found[n].channel.leaves = named(first_nic(topology_, path));
      next.channel.enters = named(last_nic(topology_, path));
      farthest_ = std::max({farthest_, path.out, path.in});
    }
    for (std::size_t n = 1; n < nodes; ++n)
      if (!(found[n] == found.front()))
        throw InputError("",
                         fmt::format("expected rings that cross all nodes in the same way, found that ring {} crosses "
                                     "node {} in another order or through other NICs than the first",
                                     channel, n),
                         "NCCL's graph XML describes one node, and every node reads the same file");
    return found.front().channel;
  }

  std::optional<std::string> named(std::optional<NodeId> nic) const {
    return nic ? std::optional(local_name_of(topology_, *nic)) : std::nullopt;
  }

  PathType between() const { return type_between(machine_, farthest_); }

  const TunerMachine& machine_;
  const Topology& topology_;
  std::span<const NodeId> ranks_;
  Routes routes_;
  std::size_t gpus_;
  PathType farthest_ = PathType::pix;
};

}  // namespace

std::vector<SearchGraph> graphs_of(const TunerMachine& machine, const std::vector<std::vector<Actor>>& rings,
                                   const Topology& topology, std::span<const NodeId> ranks, const Transport& transport,
                                   const Routing& routing) {
  GraphMaker maker(machine, topology, ranks, transport, routing);
  std::vector<SearchGraph> out{maker.ring(rings)};
  SearchGraph tree = maker.head(SearchGraph::Id::tree, 3, machine.tree);
  tree.type_between = out.front().type_between;
  tree.same_channels = out.front().same_channels;
  tree.channels = out.front().channels;
  out.push_back(std::move(tree));
  if (machine.nvls.count > 0) out.push_back(maker.nvls());
  return out;
}

}  // namespace ringsim::nccl
