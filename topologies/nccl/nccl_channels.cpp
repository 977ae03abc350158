// What NCCL's search would find on a machine: channels and their speeds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"
#include "topologies/catalog.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl/nccl_library.hpp"
#include "topologies/nccl/nccl_tuner.hpp"
#include "topologies/nccl_search/node_search.hpp"

namespace ringsim::nccl {

namespace {

constexpr double inside_70[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double inside_90[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double inside_100[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double inside_100_2_25[] = {90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};  // before 2.29; 18 from 2.27 on
constexpr double between_70[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double between_90[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double between_100[] = {96, 86,   80, 48, 45.1, 42, 40,  30,  24,   22,
                                  20, 17.5, 15, 12, 6,    3,  2.4, 1.2, 0.24, 0.12};
constexpr double between_100_2_29[] = {96,   80, 48, 45.1, 42, 40,  30,  24,   22,  20,
                                       17.5, 15, 12, 6,    3,  2.4, 1.2, 0.24, 0.12};
constexpr double between_100_2_27[] = {96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12};
// Before 2.18; the one between nodes has 28 from 2.15 on.
constexpr double inside_2_10[] = {44, 30, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double between_2_10[] = {48, 30, 24, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
constexpr double any_2_8_3[] = {42, 30, 24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12};
using Speeds = std::span<const double>;

Speeds speeds_inside(int sm, Release release) {
  if (release == Release::v2_8_3) return any_2_8_3;
  if (release < Release::v2_18 && sm < 90) return inside_2_10;
  if (sm >= 100 && release < Release::v2_29) return inside_100_2_25;
  return sm >= 100 ? Speeds(inside_100) : sm >= 90 ? Speeds(inside_90) : Speeds(inside_70);
}
Speeds speeds_between(int sm, Release release) {
  if (release == Release::v2_8_3) return any_2_8_3;
  if (release < Release::v2_18 && sm < 90) return between_2_10;
  if (sm < 90) return between_70;
  if (sm < 100 || release < Release::v2_27) return between_90;  // the first releases for Blackwell have no others
  return release < Release::v2_29     ? Speeds(between_100_2_27)
         : release < Release::v2_30_7 ? Speeds(between_100_2_29)
                                      : Speeds(between_100);
}

double gigabytes(Bandwidth rate) { return static_cast<double>(rate.bytes_per_second) / 1e9; }

/// The most that channels of one speed bring through `total`; the lowest speed if none fits.
double filled(Speeds speeds, double total) {
  double most = 0;
  for (const double speed : speeds)
    if (speed <= total) most = std::max(most, std::floor(total / speed) * speed);
  return most > 0 ? most : speeds.back();
}

double nvlink(int sm, Release release) {
  if (release == Release::v2_8_3 && sm >= 70 && sm != 86) return 21;
  if (release < Release::v2_18 && sm >= 70 && sm < 90 && sm != 86) return 22;
  if (release < Release::v2_20 && sm >= 90 && sm < 100) return 20;
  return gigabytes(nvlink_bandwidth(sm));
}

class Looked {
 public:
  Looked(const Machine& machine, std::vector<std::uint32_t> gpus) : machine_(machine), gpus_(std::move(gpus)) {
    const Machine::Device& first = machine.devices[gpus_.front()];
    const std::optional<int> sm = compute_capability(first);
    if (first.attributes.contains("gcn"))
      throw InputError("", fmt::format("expected NVIDIA GPUs for NCCL, found AMD GPUs in {}", machine.name),
                       R"(write "library": "rccl")");
    if (!sm)
      throw InputError(
          "", fmt::format("expected GPUs with a known compute capability, found none in {}", machine.name),
          R"(a machine with these GPUs supplies it: --like NODE ("like" in a scenario's topology); in a machine )"
          R"(file, set "attributes": {"sm": "80"} of each gpu, 80 for A100)");
    sm_ = *sm;
  }

  int sm() const { return sm_; }
  bool is_kind(std::uint32_t device, NodeKind kind) const { return machine_.devices[device].kind == kind; }

  bool has_switches() const {
    return std::any_of(machine_.cables.begin(), machine_.cables.end(), [&](const Machine::Cable& cable) {
      const auto takes_part = [&](std::uint32_t d) { return std::find(gpus_.begin(), gpus_.end(), d) != gpus_.end(); };
      return cable.link.kind == LinkKind::nvlink &&
             ((takes_part(cable.from) && is_kind(cable.to, NodeKind::nvswitch)) ||
              (takes_part(cable.to) && is_kind(cable.from, NodeKind::nvswitch)));
    });
  }

  /// True if NVLinks lead from each GPU that takes part to each other one, over others that do and over switches.
  bool joined_by_nvlink() const {
    const std::set<std::uint32_t> reached = spread({gpus_.front()}, [&](const Machine::Cable& cable, std::uint32_t to) {
      const bool takes_part = std::find(gpus_.begin(), gpus_.end(), to) != gpus_.end();
      return cable.link.kind == LinkKind::nvlink && (takes_part || is_kind(to, NodeKind::nvswitch));
    });
    return std::all_of(gpus_.begin(), gpus_.end(), [&](std::uint32_t gpu) { return reached.count(gpu) > 0; });
  }

  /// NVLinks from each GPU that takes part to each other one, or to the switches; of the pair that has least.
  int nvlinks_of_a_pair() const {
    std::map<std::uint32_t, int> to_switch;
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> direct;
    for (const Machine::Cable& cable : machine_.cables) {
      if (cable.link.kind != LinkKind::nvlink) continue;
      for (const auto& [end, other] : {std::pair(cable.from, cable.to), std::pair(cable.to, cable.from)})
        (is_kind(other, NodeKind::nvswitch) ? to_switch[end] : direct[{end, other}]) += cable.link.joined;
    }
    int least = std::numeric_limits<int>::max();
    for (const std::uint32_t from : gpus_)
      for (const std::uint32_t to : gpus_)
        if (from != to) least = std::min(least, std::max(std::min(to_switch[from], to_switch[to]), direct[{from, to}]));
    return least == std::numeric_limits<int>::max() ? 0 : least;
  }

  /// True if some NIC that NCCL uses has that attribute.
  bool nic_says(const char* key, std::string_view value) const {
    return std::any_of(machine_.devices.begin(), machine_.devices.end(), [&](const Machine::Device& device) {
      const auto found = device.attributes.find(key);
      return device.kind == NodeKind::nic && !device.idle && found != device.attributes.end() && found->second == value;
    });
  }

  struct OverPcie {
    double most = std::numeric_limits<double>::max();  ///< what a ring in the GPUs' order leaves on its busiest link
    bool through_host = false;                         ///< some hop rests in host memory
  };
  OverPcie ring_over_pcie(PathType level) const {
    const auto as_nccl_takes_it = std::make_shared<Machine>(machine_);
    for (Machine::Cable& cable : as_nccl_takes_it->cables)
      if (cable.link.nccl_bandwidth) cable.link.bandwidth = *cable.link.nccl_bandwidth;
    Cluster one;
    one.parts.push_back({as_nccl_takes_it, 1});
    const Topology topology = build(one);
    Routes routes(topology, {.p2p_level = level});
    OverPcie found;
    std::map<std::uint32_t, double> uses;
    const auto node_of = [&](std::size_t g) {
      const auto node = topology.find("node0." + machine_.devices[gpus_[g % gpus_.size()]].name);
      ensure(node.has_value(), "a machine's devices are in its topology");
      return *node;
    };
    for (std::size_t g = 0; g < gpus_.size(); ++g) {
      const NodeId from = node_of(g), to = node_of(g + 1);
      const Path path = routes.find(from, to);
      found.through_host = found.through_host || path.legs.size() > 1;
      for (const Leg& leg : path.legs)
        for (std::size_t l = 0; l < leg.links.size(); ++l)
          if (topology.link(leg.links[l]).kind != LinkKind::memory)  // which NCCL does not count
            uses[leg.links[l].value] += leg.share(l);
    }
    for (const auto& [link, n] : uses)
      found.most = std::min(found.most, gigabytes(topology.link({link}).bandwidth) / n);
    return found;
  }

  /// All that can be cabled and are not left out, in the machine's order.
  std::vector<std::uint32_t> cabled() const {
    const std::set<std::uint32_t> all = all_nics();
    return {all.begin(), all.end()};
  }

  struct Nics {
    int count = 0;
    double slowest = std::numeric_limits<double>::max();  ///< of NIC and PCIe
  };
  /// The nearest to the GPUs that take part: those that PCIe switches join to them; else those on the same CPUs; else
  /// all.
  Nics nics(Bandwidth rate) const {
    std::set<std::uint32_t> used = nics_within({NodeKind::pcie_switch, NodeKind::pcie_slot});
    if (used.empty())
      used = nics_within({NodeKind::pcie_switch, NodeKind::pcie_slot, NodeKind::host_bridge, NodeKind::cpu});
    if (used.empty()) used = all_nics();
    if (used.empty())
      throw InputError("", fmt::format("expected a NIC that can be cabled, found none in {}", machine_.name));
    Nics found{static_cast<int>(used.size()), gigabytes(rate)};
    for (const Machine::Cable& cable : machine_.cables)
      if (used.count(cable.from) + used.count(cable.to) > 0)
        found.slowest = std::min(found.slowest, gigabytes(cable.link.bandwidth));
    for (std::uint32_t d = 0; d < machine_.devices.size(); ++d)
      if (is_kind(d, NodeKind::pcie_slot)) found.slowest = std::min(found.slowest, share_of_slot(d, used));
    return found;
  }

 private:
  /// What each of the NICs in a slot has of its link.
  double share_of_slot(std::uint32_t slot, const std::set<std::uint32_t>& nics) const {
    double uplink = std::numeric_limits<double>::max();
    int inside = 0;
    for (const Machine::Cable& cable : machine_.cables) {
      if (cable.from != slot && cable.to != slot) continue;
      const std::uint32_t other = cable.from == slot ? cable.to : cable.from;
      if (nics.count(other) > 0) ++inside;
      if (!is_kind(other, NodeKind::nic) && !is_kind(other, NodeKind::gpu)) uplink = gigabytes(cable.link.bandwidth);
    }
    return inside == 0 ? std::numeric_limits<double>::max() : uplink / inside;
  }

  bool has_port(std::uint32_t device) const {
    return machine_.devices[device].port.has_value() && !machine_.devices[device].idle;
  }

  std::set<std::uint32_t> all_nics() const {
    std::set<std::uint32_t> nics;
    for (std::uint32_t d = 0; d < machine_.devices.size(); ++d)
      if (has_port(d)) nics.insert(d);
    return nics;
  }

  /// These devices and all that cables lead to from them, as far as `leads(cable, to)`.
  template <class Leads>
  std::set<std::uint32_t> spread(std::set<std::uint32_t> reached, const Leads& leads) const {
    for (std::size_t before = 0; before != reached.size();) {
      before = reached.size();
      for (const Machine::Cable& cable : machine_.cables)
        for (const auto& [from, to] : {std::pair(cable.from, cable.to), std::pair(cable.to, cable.from)})
          if (reached.count(from) > 0 && leads(cable, to)) reached.insert(to);
    }
    return reached;
  }

  /// NICs that the GPUs reach over devices of these kinds, from socket to socket not.
  std::set<std::uint32_t> nics_within(std::initializer_list<NodeKind> kinds) const {
    std::set<std::uint32_t> nics;
    spread({gpus_.begin(), gpus_.end()}, [&](const Machine::Cable& cable, std::uint32_t to) {
      if (cable.link.kind == LinkKind::socket) return false;
      if (has_port(to)) nics.insert(to);
      return std::find(kinds.begin(), kinds.end(), machine_.devices[to].kind) != kinds.end();
    });
    return nics;
  }

  const Machine& machine_;
  std::vector<std::uint32_t> gpus_;
  int sm_ = 0;
};

}  // namespace

int spread_over_ports(int channels, const TunerMachine& machine) {
  return std::min(channels * machine.ports, std::max(channels, machine.gpus * machine.ports));
}

bool knows_ll128(int sm, Release release) {
  if (release >= Release::v2_27) return sm >= 70;
  if (sm == 100 || sm == 120) return release >= Release::v2_23;  // from 2.25 on, which is the first to know them
  return sm == 70 || sm == 80 || (sm == 90 && release >= Release::v2_14);
}

PathType p2p_level(const Machine& machine, int gpus, Release release) {
  const bool amd = machine.host.peer_access == PathType::sys;
  const bool all = release == Release::v2_8_3 || (amd && (gpus <= 2 || release < Release::v2_23));
  return all ? PathType::sys : PathType::pxb;
}

bool has_chip_to_chip(const Machine& machine) {
  return std::any_of(machine.cables.begin(), machine.cables.end(),
                     [](const Machine::Cable& cable) { return cable.link.kind == LinkKind::c2c; });
}

TunerMachine tuner_machine(const Machine& machine, int gpus, int nodes, Bandwidth nic, Release release,
                           const SearchSettings& settings) {
  std::vector<std::string> first;
  for (const Machine::Device& device : machine.devices)
    if (device.kind == NodeKind::gpu && static_cast<int>(first.size()) < gpus) first.push_back(device.name);
  if (static_cast<int>(first.size()) < gpus)
    throw InputError("", fmt::format("expected at least {} GPUs, found {} in {}", gpus, first.size(), machine.name));
  return tuner_machine(machine, first, nodes, nic, release, settings);
}

namespace {

/// The line rate of a port, GB/s, that payload at such a rate belongs to: the least of InfiniBand's and Ethernet's
/// rates that is no lower, if at least four fifths of it are reached. Assumption: no link type of topologies/machines
/// has less.
double line_rate_of(Bandwidth payload) {
  constexpr double least_share = 0.8;
  const double rate = gigabytes(payload);
  for (const double gigabits : {10.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0})
    if (const double line = gigabits / 8; rate <= line) return rate >= least_share * line ? line : rate;
  return rate;
}

/// The rate at which NCCL sees a NIC, GB/s: what its topology file states of its ports, if payload at such a rate
/// belongs to that, else line_rate_of().
double seen_rate_of(const Machine::Device& nic, Bandwidth payload) {
  double stated = 0;
  for (int i = 0; const std::optional<int> mbps = whole_attribute(nic, fmt::format("net{}.speed", i), 1, 10'000'000);
       ++i)
    stated += static_cast<double>(*mbps) / 8000;
  const double rate = gigabytes(payload);
  return rate <= stated && rate >= 0.8 * stated ? stated : line_rate_of(payload);
}

}  // namespace

Channels channels_of(const SearchGraph& graph, const TunerMachine& machine, Release release) {
  // LL128 needs NVLink and NICs as near as PXB, from Hopper on PXN (src/graph/tuning.cc).
  const PathType farthest = machine.sm >= 90 ? PathType::pxn : PathType::pxb;
  Channels out{.count = static_cast<int>(graph.channels.size()),
               .inside = graph.inside,
               .between = graph.between,
               .nvlink = graph.type_inside == PathType::nvl,
               .ll128 = knows_ll128(machine.sm, release) && graph.type_inside <= PathType::nvb &&
                        (machine.nodes == 1 || graph.type_between <= farthest),
               .chains = graph.pattern == 3};
  const auto half = static_cast<std::ptrdiff_t>(graph.channels.size() / 2);
  const auto middle = graph.channels.begin() + half;
  const double before = 2 * out.between;
  const Speeds speeds = machine.nodes > 1 ? speeds_between(machine.sm, release) : speeds_inside(machine.sm, release);
  const bool as_if = graph.times == 0 && graph.id != SearchGraph::Id::nvls && out.count % 2 == 0 && before >= 25 &&
                     (before >= 50 || half <= 4) && std::find(speeds.begin(), speeds.end(), before) != speeds.end() &&
                     std::equal(graph.channels.begin(), middle, middle);
  if (machine.sm >= 100 && (graph.times > 1 || as_if)) {
    out.count /= 2;
    out.inside *= 2;
    out.between *= 2;
  }
  return out;
}

TunerMachine tuner_machine(const Machine& machine, const std::vector<std::string>& names, int nodes, Bandwidth nic,
                           Release release, const SearchSettings& settings) {
  std::vector<std::uint32_t> found;
  for (const std::string& name : names) {
    const auto is_it = [&](const Machine::Device& each) { return each.kind == NodeKind::gpu && each.name == name; };
    const auto device = std::find_if(machine.devices.begin(), machine.devices.end(), is_it);
    if (device == machine.devices.end())
      throw InputError("", fmt::format("expected the name of a GPU of {}, found \"{}\"", machine.name, name));
    found.push_back(static_cast<std::uint32_t>(device - machine.devices.begin()));
  }
  if (found.empty()) throw InputError("", fmt::format("expected GPUs of {}, found none", machine.name));
  const auto gpus = static_cast<int>(found.size());
  const Looked looked(machine, std::move(found));
  const int sm = looked.sm();
  TunerMachine out{.nodes = nodes, .gpus = gpus, .sm = sm};
  out.nvlink = gpus == 1 || looked.joined_by_nvlink();
  out.amd = machine.host.peer_access == PathType::sys;  // only AMD's sockets forward from GPU to GPU everywhere
  out.arm = has_chip_to_chip(machine);
  out.nvlinks = looked.nvlinks_of_a_pair();
  out.nvlinks_GBps = out.nvlinks * nvlink(sm, release);
  out.switched = gpus > 1 && out.nvlink && looked.has_switches();
  const PathType level = settings.p2p_level.value_or(p2p_level(machine, gpus, release));
  if (!out.nvlink) {
    const Looked::OverPcie pcie = looked.ring_over_pcie(level);
    out.through_host = pcie.through_host;
    out.pcie_GBps = filled(speeds_inside(sm, release), pcie.most);
  }
  NodeAsked asked{.gpus = names, .nics = {}, .nodes = nodes, .options = {}, .speeds = {}};
  if (nodes > 1) {
    Looked::Nics nics = looked.nics(nic);
    out.provider = looked.nic_says("provider", "cxi")   ? NicProvider::cxi
                   : looked.nic_says("provider", "efa") ? NicProvider::efa
                                                        : NicProvider::verbs;
    // aws-ofi-nccl makes one device of all adapters of a GPU, and spreads each message over them (aws/aws-ofi-nccl
    // 2daf7d303aa1 src/nccl_ofi_topo.cpp, nccl_ofi_topo_group). There is no other way to EFA.
    if (out.provider == NicProvider::efa && nics.count > gpus && nics.count % gpus == 0) {
      out.ports = nics.count / gpus;
      nics.count = gpus;
      nics.slowest *= out.ports;
    }
    out.rails = std::max(1, nics.count / gpus);
    out.nic_GBps = nics.slowest;
    const std::vector<std::uint32_t> all = looked.cabled();
    for (std::size_t n = 0; n < all.size(); n += static_cast<std::size_t>(out.ports)) {
      const Machine::Device& device = machine.devices[all[n]];
      asked.nics.push_back(
          {all[n], seen_rate_of(device, std::min(nic, device.port->bandwidth)) * out.ports, out.ports});
    }
  }
  asked.options = {.p2p_level = level,
                   .peer_access = machine.host.peer_access,
                   .gdr_level = settings.gdr_level.value_or(release >= Release::v2_27 ? PathType::p2c : PathType::pxb),
                   .pxn = settings.pxn && release >= Release::v2_12,
                   .nvlink = nvlink(sm, release)};
  asked.speeds = {speeds_inside(sm, release), speeds_between(sm, release)};
  const CrossNic if_needed = release >= Release::v2_20 ? CrossNic::if_needed : CrossNic::if_needed_by_any_nic;
  asked.cross_nic = settings.cross_nic == 0 ? CrossNic::never : settings.cross_nic == 1 ? CrossNic::always : if_needed;
  asked.doubles_any = release == Release::v2_8_3;
  out.search = search_node(machine, asked);
  const NodeSearch& search = *out.search;
  out.ring = channels_of(search.ring, out, release);
  out.tree = channels_of(search.tree, out, release);
  out.nvls = channels_of(search.nvls, out, release);
  if (looked.nic_says("distance", "PHB") && nodes > 1) out.ring.ll128 = out.tree.ll128 = false;
  out.ll128 = out.ring.ll128;
  out.same_rings = search.ring.same_channels;
  out.crosses_nics = search.ring.cross_nic != 0;
  if (settings.cross_nic != 2 && nodes > 1) {
    asked.cross_nic = if_needed;
    const std::shared_ptr<const NodeSearch> usual = search_node(machine, asked);
    out.cross_nic_decides = !(usual->ring == search.ring && usual->tree == search.tree);
  }
  return out;
}

}  // namespace ringsim::nccl
