// What NCCL's search would find on a machine: channels and their speeds.
#include <fmt/format.h>

#include <algorithm>
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
#include "topologies/nccl/nccl_library.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

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

/// The first (highest) of the list that is no more than `most`; the lowest if there is none.
double listed(Speeds speeds, double most) {
  const auto found = std::find_if(speeds.begin(), speeds.end(), [&](double speed) { return speed <= most; });
  return found == speeds.end() ? speeds.back() : *found;
}

double nvlink(int sm, Release release) {
  if (release == Release::v2_8_3 && sm >= 70 && sm != 86) return 21;
  if (release < Release::v2_18 && sm >= 70 && sm < 90 && sm != 86) return 22;
  if (release < Release::v2_20 && sm >= 90 && sm < 100) return 20;
  return gigabytes(nvlink_bandwidth(sm));
}

/// As ncclTopoDupChannels: few fast channels become twice as many of half the speed.
Channels doubled(Channels found, int sm, Release release) {
  const bool enough = release != Release::v2_8_3 && sm > 80 && found.inside < 50 && found.count > 4;
  // From Blackwell on they are left as they are: so the sizes at which measured tables change protocol have it.
  if (found.inside < 25 || enough || sm >= 100) return found;
  return {2 * found.count, found.inside / 2, found.between / 2};
}

/// The speed of trees inside a node, one of several: NCCL's search raises it step by step up its list, as long as
/// NVLink has room for all channels and it is below twice the speed between nodes (src/graph/search.cc,
/// ncclTopoCompute, pass 2: "increase bwIntra for trees"). On two nodes that speed counts (src/graph/tuning.cc, busBw),
/// so that trees may exceed the NICs' rate, by which rings are bound: a tree sends each byte out of a node once, a ring
/// nearly twice.
double raised_inside(Speeds speeds, const Channels& found, const std::function<bool(double)>& has_room) {
  double inside = found.inside;
  const auto at = std::find_if(speeds.begin(), speeds.end(), [&](double speed) { return speed <= found.between; });
  for (auto next = at; next != speeds.begin() && inside < 2 * found.between;) {
    --next;
    if (!has_room(*next)) break;
    inside = *next;
  }
  return inside;
}

/// The most that channels of one speed bring through `total`, none faster than `widest`; of equals the fastest. The
/// search gives up lowering the speed at half of what it has found.
Channels fill(Speeds speeds, double total, double widest) {
  Channels best;
  for (const double speed : speeds) {
    if (speed > widest) continue;
    if (speed <= 0.49 * best.inside) break;
    const Channels found{static_cast<int>(total / speed), speed, speed};
    if (found.count * speed > best.count * best.inside) best = found;
  }
  return best;
}

class Looked {
 public:
  Looked(const Machine& machine, std::vector<std::uint32_t> gpus, Release release)
      : machine_(machine), release_(release), gpus_(std::move(gpus)) {
    const Machine::Device& first = machine.devices[gpus_.front()];
    const std::optional<int> sm = compute_capability(first);
    if (first.attributes.contains("gcn"))
      throw InputError("", fmt::format("expected NVIDIA GPUs for NCCL, found AMD GPUs in {}", machine.name),
                       R"(write "library": "rccl")");
    if (!sm)
      throw InputError(
          "", fmt::format("expected GPUs with a known compute capability, found none in {}", machine.name),
          R"(set the model: --gpu A100 of `topology import`, "gpu": "A100" next to "file" of kind nccl_xml, )"
          R"(or in a machine file "attributes": {"sm": "80"} for each gpu)");
    sm_ = *sm;
  }

  int sm() const { return sm_; }
  bool is_kind(std::uint32_t device, NodeKind kind) const { return machine_.devices[device].kind == kind; }

  /// Through the GPU that has least: its NVLinks to the others that take part, and to NVSwitches. `switched`: to these.
  double least_nvlink(bool& switched) const {
    std::map<std::uint32_t, int> links;
    for (const std::uint32_t gpu : gpus_) links[gpu] = 0;
    for (const Machine::Cable& cable : machine_.cables) {
      if (cable.link.kind != LinkKind::nvlink) continue;
      for (const auto& [end, other] : {std::pair(cable.from, cable.to), std::pair(cable.to, cable.from)}) {
        const bool to_switch = is_kind(other, NodeKind::nvswitch);
        if (links.count(end) == 0 || !(to_switch || links.count(other) > 0)) continue;
        links[end] += cable.link.joined;
        switched = switched || to_switch;
      }
    }
    int least = std::numeric_limits<int>::max();
    for (const auto& [gpu, count] : links) least = std::min(least, count);
    return least * nvlink(sm_, release_);
  }

  /// True if NVLinks lead from each GPU that takes part to each other one, over others that do and over switches.
  bool joined_by_nvlink() const {
    const std::set<std::uint32_t> reached = spread({gpus_.front()}, [&](const Machine::Cable& cable, std::uint32_t to) {
      const bool takes_part = std::find(gpus_.begin(), gpus_.end(), to) != gpus_.end();
      return cable.link.kind == LinkKind::nvlink && (takes_part || is_kind(to, NodeKind::nvswitch));
    });
    return std::all_of(gpus_.begin(), gpus_.end(), [&](std::uint32_t gpu) { return reached.count(gpu) > 0; });
  }

  /// The highest NVLink bandwidth from one GPU to another, or to the switches.
  double widest_nvlink() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> links;
    for (const Machine::Cable& cable : machine_.cables) {
      if (cable.link.kind != LinkKind::nvlink) continue;
      for (const auto& [end, other] : {std::pair(cable.from, cable.to), std::pair(cable.to, cable.from)})
        links[{end, is_kind(other, NodeKind::nvswitch) ? end : other}] += cable.link.joined;
    }
    int most = 0;
    for (const auto& [pair, count] : links) most = std::max(most, count);
    return most * nvlink(sm_, release_);
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

  struct Nics {
    int count = 0;
    double slowest = std::numeric_limits<double>::max();  ///< of NIC and PCIe
    bool near = true;                                     ///< no CPU between them and the GPUs
  };
  /// The nearest to the GPUs that take part: those that PCIe switches join to them; else those on the same CPUs; else
  /// all.
  Nics nics(Bandwidth rate) const {
    std::set<std::uint32_t> used = nics_within({NodeKind::pcie_switch, NodeKind::pcie_slot});
    const bool near = !used.empty();
    if (!near) used = nics_within({NodeKind::pcie_switch, NodeKind::pcie_slot, NodeKind::host_bridge, NodeKind::cpu});
    if (used.empty()) used = all_nics();
    if (used.empty())
      throw InputError("", fmt::format("expected a NIC that can be cabled, found none in {}", machine_.name));
    Nics found{static_cast<int>(used.size()), gigabytes(rate), near};
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
  Release release_;
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

TunerMachine tuner_machine(const Machine& machine, int gpus, int nodes, Bandwidth nic, Release release,
                           std::optional<PathType> level, bool cross_nic) {
  std::vector<std::string> first;
  for (const Machine::Device& device : machine.devices)
    if (device.kind == NodeKind::gpu && static_cast<int>(first.size()) < gpus) first.push_back(device.name);
  if (static_cast<int>(first.size()) < gpus)
    throw InputError("", fmt::format("expected at least {} GPUs, found {} in {}", gpus, first.size(), machine.name));
  return tuner_machine(machine, first, nodes, nic, release, level, cross_nic);
}

TunerMachine tuner_machine(const Machine& machine, const std::vector<std::string>& names, int nodes, Bandwidth nic,
                           Release release, std::optional<PathType> level, bool cross_nic) {
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
  const Looked looked(machine, std::move(found), release);
  const int sm = looked.sm();
  bool switched = false;
  const double through = gpus > 1 && looked.joined_by_nvlink() ? looked.least_nvlink(switched) : 0;
  TunerMachine out{.nodes = nodes, .gpus = gpus, .sm = sm};
  out.nvlink = through > 0 || gpus == 1;
  out.amd = machine.host.peer_access == PathType::sys;  // only AMD's sockets forward from GPU to GPU everywhere
  out.arm = std::any_of(machine.cables.begin(), machine.cables.end(),
                        [](const Machine::Cable& cable) { return cable.link.kind == LinkKind::c2c; });
  out.nvlinks = looked.nvlinks_of_a_pair();
  out.nvlinks_GBps = out.nvlinks * nvlink(sm, release);
  out.switched = switched;
  out.same_rings = switched || !out.nvlink || gpus == 1;
  out.ll128 = out.nvlink && knows_ll128(sm, release);
  const Speeds inside = speeds_inside(sm, release), between = speeds_between(sm, release);
  Looked::OverPcie pcie;
  if (!out.nvlink) pcie = looked.ring_over_pcie(level.value_or(p2p_level(machine, gpus, release)));
  out.through_host = pcie.through_host;
  if (nodes == 1) {
    const Channels rings =
        out.nvlink ? fill(inside, through, looked.widest_nvlink()) : fill(inside, pcie.most, pcie.most);
    out.ring = doubled(rings.count > 0 ? rings : Channels{1, inside.back(), inside.back()}, sm, release);
    out.tree = out.ring;
  } else {
    Looked::Nics nics = looked.nics(nic);
    out.ll128 = out.ll128 && nics.near;
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
    out.ll128 = out.ll128 && !looked.nic_says("distance", "PHB");
    const double room = through > 0 ? through / nics.count : std::numeric_limits<double>::max();
    const double of_nics = listed(between, nics.slowest);
    // With as many rings as GPUs, each GPU is the last of one ring.
    out.may_cross_nics = sm >= 100 && switched && nics.count == gpus && gpus % 2 == 0 && of_nics > room &&
                         of_nics * (gpus - 1) <= through;
    out.crosses_nics = cross_nic && out.may_cross_nics;
    const double speed = out.crosses_nics ? of_nics : listed(between, std::min(nics.slowest, room));
    out.ring = doubled({nics.count, speed, speed}, sm, release);
    out.tree = out.ring;
    if (through > 0)
      out.tree.inside = raised_inside(between, out.ring, [&](double each) {
        if (switched) return out.ring.count * each <= through;
        return out.ring.count <= gpus * static_cast<int>(out.nvlinks_GBps / each);
      });
  }
  if (sm >= 90 && switched && gpus > 1) {
    const int heads = nodes == 1 ? std::min(gpus, 32) : std::min({gpus, out.ring.count, 32});
    // On one node no NIC holds up the search, which then raises the speed between nodes as far as its list goes.
    out.nvls = {heads, listed(nodes == 1 ? inside : between, through / heads),
                nodes == 1 ? inside.front() : out.ring.between * out.ring.count / heads};
  }
  return out;
}

}  // namespace ringsim::nccl
