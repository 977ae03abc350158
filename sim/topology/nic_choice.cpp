#include "sim/topology/nic_choice.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// A path as NCCL rates it; width 0: none.
struct Reach {
  std::int64_t width = 0;  // bytes per second
  PathType type = PathType::net;

  bool exists() const { return width > 0; }
  friend bool operator==(const Reach&, const Reach&) = default;
  bool better_than(const Reach& other) const { return std::tuple(-width, type) < std::tuple(-other.width, other.type); }
};

/// Two stretches that meet in a CPU: NCCL's mergePathType, and the narrower of the two.
Reach joined(const Reach& one, const Reach& other) {
  const auto [near, far] = std::minmax(one.type, other.type);
  return {std::min(one.width, other.width), near == PathType::c2c && far == PathType::phb ? PathType::p2c : far};
}

using Indices = std::vector<std::uint16_t>;
constexpr std::uint16_t no_index = std::numeric_limits<std::uint16_t>::max();

/// Bytes per second; without limit if a way has no links.
std::int64_t narrowest_of(const Topology& topology, const Way& way) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const LinkId id : way) least = std::min(least, topology.link(id).bandwidth.bytes_per_second);
  return least;
}

/// The first `n` of which `reach(i)` is best: all that equal the best. Empty if nothing is reached.
template <class Reaches>
Indices best_of(std::size_t n, Reaches reach) {
  Indices best;
  Reach of_best;
  for (std::size_t i = 0; i < n; ++i) {
    const Reach here = reach(i);
    if (!here.exists()) continue;
    if (best.empty() || here.better_than(of_best)) best.clear(), of_best = here;
    if (here == of_best) best.push_back(static_cast<std::uint16_t>(i));
  }
  return best;
}

bool is_power_of_two(std::size_t n) { return (n & (n - 1)) == 0; }

/// The lowest bits of `value`, as many as tell `n` (a power of two) apart, in reverse order.
std::size_t mirrored(std::size_t value, std::size_t n) {
  std::size_t mirror = 0;
  for (std::size_t low = 1, high = n >> 1; low < n; low <<= 1, high >>= 1)
    if ((value & low) != 0) mirror |= high;
  return mirror;
}

/// A GPU's local NICs, and which of them its channels use: start, start + 1, ... `turns` of them.
struct Local {
  Indices nics;
  std::size_t sharers = 1;  ///< the GPUs that are best placed for the first of them
  std::size_t start = 0, turns = 1;

  std::size_t nic(std::size_t channel) const { return nics[(start + channel % turns) % nics.size()]; }
};

/// Works out rules 1 to 3 for a host. GPUs and NICs are indices into the two lists.
class Reaching {
 public:
  Reaching(const Topology& topology, HostWays& hosts, const Transport& transport, const std::vector<NodeId>& gpus,
           const std::vector<CabledNic>& nics, bool outward)
      : topology_(topology), hosts_(hosts), transport_(transport), gpus_(gpus), nics_(nics) {
    for (const CabledNic& nic : nics_) cables_.push_back(hosts_.cable_of(nic.id, outward).bytes_per_second);
    for (const NodeId gpu : gpus_) {
      for (std::size_t n = 0; n < nics_.size(); ++n) {
        out_.push_back(over_pcie(gpu, nics_[n].id, cables_[n]));
        in_.push_back(over_pcie(nics_[n].id, gpu, cables_[n]));
      }
    }
    proxies_.assign(out_.size(), no_index);
    for (std::size_t g = 0; g < gpus_.size(); ++g) mark_chip_to_chip(g);
    const bool pxn = transport_.pxn && transport_.p2p_level >= PathType::nvl;
    for (std::size_t n = 0; n < nics_.size(); ++n) {
      for (std::size_t g = 0; g < gpus_.size(); ++g) {
        if (pxn) find_proxy(g, n);
        leave_by_cpu(g, n);
      }
    }
  }

  Local local(std::size_t g) const {
    Local found{.nics = best_of(nics_.size(), [&](std::size_t n) { return out_[at(g, n)]; })};
    if (found.nics.empty()) return found;
    const std::size_t count = found.nics.size();
    found.sharers = std::max<std::size_t>(1, nearest_gpus(found.nics.front()).size());
    found.turns = (count + found.sharers - 1) / found.sharers;
    found.start = g % found.sharers;
    if (is_power_of_two(count)) found.start = mirrored(found.start, count);
    return found;
  }

  /// The GPU that is local to a NIC, or no_index.
  std::uint16_t local_gpu(std::size_t n) const {
    std::vector<std::pair<std::uint16_t, Local>> near;
    std::size_t turns = 0;
    for (const std::uint16_t g : nearest_gpus(n)) {
      near.emplace_back(g, local(g));
      turns = std::max(turns, near.back().second.turns);
    }
    for (std::size_t channel = 0; channel < turns; ++channel)
      for (const auto& [g, its] : near)
        if (!its.nics.empty() && its.nic(channel) == n) return g;
    return no_index;
  }

  /// True if GPU `g` can send to a NIC through GPU `by`, or is that GPU, and GPUDirect reaches from there.
  bool may_pass(std::size_t g, std::size_t by, std::size_t n) {
    const Reach& onward = out_[at(by, n)];
    return onward.exists() && onward.type <= std::min({PathType::p2c, gdr_level(by, n), gdr_level(g, n)}) &&
           (by == g || nvlink_width(g, by) > 0);
  }

  PathType type(std::size_t g, std::size_t n) const { return out_[at(g, n)].type; }
  std::uint16_t proxy(std::size_t g, std::size_t n) const { return proxies_[at(g, n)]; }

 private:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  std::size_t at(std::size_t g, std::size_t n) const { return g * nics_.size() + n; }

  PathType gdr_level(std::size_t g, std::size_t n) const {
    return gdr_level_of(transport_, topology_.node(gpus_[g]), topology_.node(nics_[n].id));
  }

  /// At most as wide as `width`. PHB also if NCCL may later say P2C: mark_chip_to_chip().
  Reach over_pcie(NodeId from, NodeId to, std::int64_t width) const {
    const auto way = hosts_.search_pcie(from, to);
    if (!way) return {};
    const PathType type = hosts_.type_of(from, *way);
    return {std::min(width, narrowest_of(topology_, *way)), type == PathType::p2c ? PathType::phb : type};
  }

  /// The CPU that is local to a GPU: widest, then nearest, then fewest hops.
  NodeId local_cpu(NodeId gpu) const {
    NodeId best = no_node;
    std::tuple<std::int64_t, PathType, std::size_t> least;
    for (const NodeId cpu : hosts_.nodes_of(gpu, NodeKind::cpu)) {
      const auto way = hosts_.search_pcie(gpu, cpu);
      if (!way) continue;
      const std::tuple key{-narrowest_of(topology_, *way), hosts_.type_of(gpu, *way), way->size()};
      if (best == no_node || key < least) best = cpu, least = key;
    }
    return best;
  }

  void mark_chip_to_chip(std::size_t g) {
    const NodeId cpu = local_cpu(gpus_[g]);
    if (cpu == no_node) return;
    const Reach to_cpu = over_pcie(gpus_[g], cpu, unlimited);
    for (const std::uint16_t n : best_of(nics_.size(), [&](std::size_t nic) { return out_[at(g, nic)]; })) {
      if (joined(to_cpu, over_pcie(cpu, nics_[n].id, unlimited)).type != PathType::p2c) continue;
      for (auto* reaches : {&out_, &in_}) {
        Reach& reach = (*reaches)[at(g, n)];
        reach.type = std::min(PathType::p2c, reach.type);
      }
    }
  }

  void find_proxy(std::size_t g, std::size_t n) {
    const std::uint16_t by = local_gpu(n);
    if (by == no_index || by == g || !may_pass(g, by, n)) return;
    Reach& own = out_[at(g, n)];
    const Reach& its = out_[at(by, n)];
    if (its.width <= own.width && own.type <= PathType::pxn) return;
    own = {std::min(its.width, nvlink_width(g, by)), PathType::pxn};
    proxies_[at(g, n)] = by;
  }

  void leave_by_cpu(std::size_t g, std::size_t n) {
    Reach &out = out_[at(g, n)], &in = in_[at(g, n)];
    // Who sends through another GPU does so because GPUDirect reaches the NIC from there.
    if (out.type >= PathType::phb || out.type == PathType::pxn || out.type <= gdr_level(g, n)) return;
    const NodeId gpu = gpus_[g], nic = nics_[n].id, cpu = local_cpu(gpu);
    if (cpu == no_node) return;
    out = joined(over_pcie(gpu, cpu, unlimited), over_pcie(cpu, nic, cables_[n]));
    in = joined(over_pcie(nic, cpu, cables_[n]), over_pcie(cpu, gpu, unlimited));
  }

  /// The GPUs with the best path from a NIC.
  Indices nearest_gpus(std::size_t n) const {
    return best_of(gpus_.size(), [&](std::size_t g) { return in_[at(g, n)]; });
  }

  /// The narrowest NVLink from one GPU to another, without a relay; 0: none joins them.
  std::int64_t nvlink_width(std::size_t from, std::size_t to) {
    if (nvlinks_.empty()) nvlinks_.assign(gpus_.size() * gpus_.size(), -1);
    std::int64_t& width = nvlinks_[from * gpus_.size() + to];
    if (width < 0) {
      const auto way = hosts_.nvlink(gpus_[from], gpus_[to]);
      width = way ? narrowest_of(topology_, *way) : 0;
    }
    return width;
  }

  const Topology& topology_;
  HostWays& hosts_;
  const Transport& transport_;
  const std::vector<NodeId>& gpus_;
  const std::vector<CabledNic>& nics_;
  std::vector<std::int64_t> cables_;   // [nic] bytes per second
  std::vector<Reach> out_, in_;        // [gpu][nic]
  Indices proxies_;                    // [gpu][nic]
  std::vector<std::int64_t> nvlinks_;  // [gpu][gpu]; -1: not looked for yet
};

}  // namespace

const std::string* ChannelNics::find(int connection, std::string_view gpu) const {
  if (nic_of.empty()) return nullptr;
  const auto& of_channel = nic_of[static_cast<std::size_t>(connection % channels) % nic_of.size()];
  const auto found = of_channel.find(gpu);
  return found == of_channel.end() ? nullptr : &found->second;
}

/// A host's GPUs and cabled NICs, and the results of the rules, as indices into these.
struct NicChoice::Table {
  std::vector<NodeId> gpus;
  std::vector<CabledNic> nics;
  std::vector<Local> local;           // [gpu]
  Indices usual_channel;              // [gpu]
  Indices local_gpu;                  // [nic]; no_index: there is none
  std::vector<PathType> types;        // [gpu][nic], after PXN
  Indices proxies;                    // [gpu][nic]; no_index: the GPU reaches the NIC itself
  std::vector<bool> passes_to_local;  // [gpu][nic]: Reaching::may_pass() through the NIC's local GPU

  Table(const Topology& topology, HostWays& hosts, const Transport& transport, NodeId device, bool outward)
      : gpus(hosts.nodes_of(device, NodeKind::gpu)), nics(hosts.cabled_nics(device, outward)) {
    ensure(gpus.size() < no_index && nics.size() < no_index, "a host has fewer than 65535 GPUs, and NICs");
    Reaching reaching(topology, hosts, transport, gpus, nics, outward);
    for (std::size_t n = 0; n < nics.size(); ++n) local_gpu.push_back(reaching.local_gpu(n));
    for (std::size_t g = 0; g < gpus.size(); ++g) {
      local.push_back(reaching.local(g));
      const auto shares = [&](const Local& other) { return other.nics == local[g].nics; };
      const auto before = std::count_if(local.begin(), local.end() - 1, shares);
      usual_channel.push_back(static_cast<std::uint16_t>(static_cast<std::size_t>(before) / local[g].sharers));
      for (std::size_t n = 0; n < nics.size(); ++n) {
        types.push_back(reaching.type(g, n));
        proxies.push_back(reaching.proxy(g, n));
        passes_to_local.push_back(local_gpu[n] != no_index && reaching.may_pass(g, local_gpu[n], n));
      }
    }
  }

  std::size_t at(std::size_t gpu, std::size_t nic) const { return gpu * nics.size() + nic; }
  std::size_t index_of(NodeId gpu) const {
    return static_cast<std::size_t>(std::lower_bound(gpus.begin(), gpus.end(), gpu) - gpus.begin());
  }
  std::size_t local_nic(std::size_t gpu, std::optional<int> channel) const {
    return local[gpu].nic(channel ? static_cast<std::size_t>(*channel) : usual_channel[gpu]);
  }
};

NicChoice::NicChoice(const Topology& topology, HostWays& hosts, const Transport& transport)
    : topology_(topology), hosts_(hosts), transport_(transport) {}
NicChoice::~NicChoice() = default;

/// nullptr if the node is not a GPU of a host.
const NicChoice::Table* NicChoice::table(NodeId gpu, bool outward) {
  const Node& node = topology_.node(gpu);
  if (node.kind != NodeKind::gpu || !node.host) return nullptr;
  // Only if links are down do the NICs that send differ from those that receive.
  outward = outward || hosts_.all_up();
  const std::uint64_t key = 2 * std::uint64_t{*node.host} + (outward ? 1 : 0);
  auto& known = tables_[key];
  if (!known) known = std::make_unique<Table>(topology_, hosts_, transport_, gpu, outward);
  return known.get();
}

/// The way between a NIC and the device next to it: the GPU itself, or its proxy.
const std::optional<Way>& NicChoice::way_of(NodeId device, NodeId nic, bool outward) {
  return outward ? hosts_.pcie(device, nic) : hosts_.pcie(nic, device);
}

Gate NicChoice::gate_of(NodeId device, const CabledNic& nic, bool is_proxy, bool outward) {
  const std::optional<Way>& way = way_of(device, nic.id, outward);
  if (!way) return {};
  return {.nic = nic.id,
          .type = hosts_.type_of(outward ? device : nic.id, *way),
          .proxy = is_proxy ? device : no_node,
          .number = nic.number};
}

Gate NicChoice::gate_of(const Table& table, std::size_t gpu, std::size_t nic, std::size_t by, bool outward) {
  const bool is_proxy = by != no_index && by != gpu;
  return gate_of(table.gpus[is_proxy ? by : gpu], table.nics[nic], is_proxy, outward);
}

Gate NicChoice::exit(NodeId from, NodeId to, std::optional<int> channel) {
  const Table* here = table(from, true);
  if (here == nullptr) return {};
  const std::size_t self = here->index_of(from);
  if (here->local[self].nics.empty()) return {};
  const std::size_t own = here->local_nic(self, channel);
  const auto by_proxy = [&](std::size_t nic) {
    return gate_of(*here, self, nic, here->proxies[here->at(self, nic)], true);
  };
  const auto by_own = [&] {
    return transport_.point_to_point ? gate_of(*here, self, own, no_index, true) : by_proxy(own);
  };
  if (const std::uint16_t said = said_nic(*here, self, channel); said != no_index) return by_proxy(said);
  // The GPU of this host with the receiver's number; its NIC is on the receiver's rail.
  const Table* there = transport_.pxn ? table(to, false) : nullptr;
  const std::size_t rail = there != nullptr ? there->index_of(to) : here->gpus.size();
  if (rail >= here->gpus.size() || here->local[rail].nics.empty()) return by_own();
  const std::size_t nic = here->local_nic(rail, channel), pair = here->at(self, nic);
  if (transport_.point_to_point)
    return here->passes_to_local[pair] ? gate_of(*here, self, nic, here->local_gpu[nic], true) : by_own();
  return here->types[pair] <= PathType::pxn ? by_proxy(nic) : by_own();
}

Gate NicChoice::entry(NodeId to, std::optional<int> channel) {
  const Table* there = table(to, false);
  if (there == nullptr) return {};
  const std::size_t self = there->index_of(to);
  if (there->local[self].nics.empty()) return {};
  const std::uint16_t said = said_nic(*there, self, channel);
  return gate_of(*there, self, said != no_index ? said : there->local_nic(self, channel), no_index, false);
}

/// The NIC that Transport::channel_nics names; no_index if it names none, or one that is down.
std::uint16_t NicChoice::said_nic(const Table& table, std::size_t gpu, std::optional<int> channel) const {
  if (!channel || transport_.channel_nics == nullptr) return no_index;
  const auto name_of = [&](NodeId id) { return local_name(topology_.node(id).name); };
  const std::string* said = transport_.channel_nics->find(*channel, name_of(table.gpus[gpu]));
  if (said == nullptr) return no_index;
  const auto is_it = [&](const CabledNic& nic) { return name_of(nic.id) == *said; };
  const auto found = std::find_if(table.nics.begin(), table.nics.end(), is_it);
  return found == table.nics.end() ? no_index : static_cast<std::uint16_t>(found - table.nics.begin());
}

int NicChoice::usual_channel(NodeId gpu) {
  const Table* its = table(gpu, true);
  ensure(its != nullptr, "a channel is of a GPU of a host");
  return its->usual_channel[its->index_of(gpu)];
}

std::vector<Gate> NicChoice::gates(NodeId device, bool outward) {
  if (!topology_.node(device).host || hosts_.is_cabled_nic(device)) return {{.nic = device}};
  using Key = std::tuple<std::int64_t, PathType, std::size_t>;
  std::vector<std::pair<Key, Gate>> found;
  const Table* its = table(device, outward);
  const std::vector<CabledNic> nics = hosts_.cabled_nics(device, outward);
  for (std::size_t n = 0; n < nics.size(); ++n) {
    const std::uint16_t by = its != nullptr && outward ? its->proxies[its->at(its->index_of(device), n)] : no_index;
    const Gate gate = gate_of(by == no_index ? device : its->gpus[by], nics[n], by != no_index, outward);
    if (gate.nic == no_node) continue;
    const Way& way = *way_of(by == no_index ? device : its->gpus[by], nics[n].id, outward);
    std::int64_t width = std::min(narrowest_of(topology_, way), hosts_.cable_of(gate.nic, outward).bytes_per_second);
    if (by != no_index) width = std::min(width, narrowest_of(topology_, *hosts_.nvlink(device, its->gpus[by])));
    // For what is no GPU NCCL has no rule; a port that is slower does not become the choice by being nearer.
    if (its == nullptr) width = hosts_.cable_of(gate.nic, outward).bytes_per_second;
    found.push_back({{-width, by == no_index ? gate.type : PathType::pxn, way.size()}, gate});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Gate> sorted;
  for (std::size_t i = 0; i < found.size(); ++i) {
    sorted.push_back(found[i].second);
    if (i > 0) sorted[i].rank = sorted[i - 1].rank + (found[i - 1].first < found[i].first ? 1 : 0);
  }
  return sorted;
}

}  // namespace ringsim
