#include "sim/routes.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/cheapest_way.hpp"
#include "sim/error.hpp"

namespace ringsim {

namespace {

/// A free topology, or the fabric between hosts: what belongs to no host, and the NICs as ports.
Role fabric_role(const Node& node) {
  if (node.host) return node.kind == NodeKind::nic ? Role::end : Role::outside;
  if (node.kind == NodeKind::gpu) return Role::relay;
  return node.kind == NodeKind::memory ? Role::end : Role::transit;
}

/// The inside of a host without NVLink: only PCIe switches and CPUs are crossed.
Role host_role(const Node& node) {
  if (node.kind == NodeKind::cpu || node.kind == NodeKind::host_bridge || node.kind == NodeKind::pcie_switch) {
    return Role::transit;
  }
  return node.kind == NodeKind::nvswitch ? Role::outside : Role::end;
}

/// The inside of a host over NVLink: only NVSwitches are crossed.
Role nvlink_role(const Node& node) {
  if (node.kind == NodeKind::nvswitch) return Role::transit;
  return node.kind == NodeKind::gpu ? Role::end : Role::outside;
}

}  // namespace

struct Routes::Impl {
  /// The ids of a host's nodes lie in [first, last).
  struct Host {
    std::uint32_t first = UINT32_MAX, last = 0;
  };
  /// Both ways of looking at one host's inside.
  struct Inside {
    std::uint32_t host;
    CheapestWay nvlink, pcie;
  };
  /// How data gets from a device to the fabric, or back: the leg that the NIC is part of, and the leg that ends (or
  /// starts) in host memory, where it is staged.
  struct Gate {
    NodeId nic;
    Way beside_nic;
    std::optional<Way> staged;
  };

  Impl(const Topology& t, Transport how)
      : topology(t), transport(how), fabric(t, 0, static_cast<std::uint32_t>(t.n_nodes()), fabric_role) {
    for (std::uint32_t n = 0; n < t.n_nodes(); ++n) {
      const auto& host = t.node(NodeId{n}).host;
      if (!host) continue;
      if (*host >= hosts.size()) hosts.resize(*host + 1);
      hosts[*host].first = std::min(hosts[*host].first, n);
      hosts[*host].last = std::max(hosts[*host].last, n + 1);
    }
  }

  Path find(NodeId from, NodeId to) {
    ensure(from.value < topology.n_nodes() && to.value < topology.n_nodes(), "a path joins nodes of its topology");
    if (from == to) return {};
    const auto& there = topology.node(to).host;
    const auto& here = topology.node(from).host;
    if (here && here == there) return find_inside(*here, from, to);
    if (here || there) return find_between_hosts(from, to);
    const auto way = fabric.find(from, to);
    if (!way) {
      fail(from, to, "no chain of links leads there",
           "add a link on the way; a one-way link is not used backwards, and data never passes through memory");
    }
    Path path{{}, PathType::dir};
    append_legs(*way, path);
    return path;
  }

  // --- within a host -----------------------------------------------------------------------------------------------

  Inside& inside(std::uint32_t host) {
    if (last_inside && last_inside->host == host) return *last_inside;
    const auto [first, last] = hosts[host];
    const auto only_here = [host](Role (*role)(const Node&)) {
      return [host, role](const Node& node) { return node.host == host ? role(node) : Role::outside; };
    };
    last_inside.reset(new Inside{host, CheapestWay(topology, first, last, only_here(nvlink_role)),
                                 CheapestWay(topology, first, last, only_here(host_role))});
    return *last_inside;
  }

  Path find_inside(std::uint32_t host, NodeId from, NodeId to) {
    Path path;
    const bool gpus = topology.node(from).kind == NodeKind::gpu && topology.node(to).kind == NodeKind::gpu;
    if (gpus) {
      if (const auto way = inside(host).nvlink.find(from, to)) {
        path.type = PathType::nvl;
        append_legs(*way, path);
        return path;
      }
      if (const auto relay = best_relay(from, to)) {
        path.type = PathType::nvb;
        path.legs = {leg({relay->first}), leg({relay->second})};
        return path;
      }
    }
    const auto way = inside(host).pcie.find(from, to);
    if (!way) {
      fail(from, to, "no chain of PCIe switches and CPUs joins them, and at most one GPU may relay over NVLink",
           "add the PCIe links of this host");
    }
    path.type = type_of(from, *way);
    append_legs(*way, path);
    return path;
  }

  /// The GPU joined to both by NVLink whose narrower link is widest; of equals the lowest number.
  std::optional<std::pair<LinkId, LinkId>> best_relay(NodeId from, NodeId to) const {
    std::optional<std::pair<LinkId, LinkId>> best;
    std::pair<std::int64_t, std::uint32_t> best_key{};
    for (const LinkId id : topology.links_from(from)) {
      const Link& first = topology.link(id);
      if (first.kind != LinkKind::nvlink || topology.node(first.to).kind != NodeKind::gpu) continue;
      const auto second = best_link(topology, first.to, to);
      if (!second || topology.link(*second).kind != LinkKind::nvlink) continue;
      const auto width = std::min(first.bandwidth, topology.link(*second).bandwidth).bytes_per_second;
      const std::pair key{-width, first.to.value};
      if (!best || key < best_key) best = {id, *second}, best_key = key;
    }
    return best;
  }

  /// How near the ends of a way over PCIe are, in NCCL's words. A CPU at an end counts: GPU to CPU is PHB.
  PathType type_of(NodeId from, const Way& way) const {
    int cpus = topology.node(from).kind == NodeKind::cpu ? 1 : 0, switches = 0;
    for (const LinkId id : way) {
      const NodeKind kind = topology.node(topology.link(id).to).kind;
      cpus += kind == NodeKind::cpu ? 1 : 0;
      switches += kind == NodeKind::pcie_switch ? 1 : 0;
    }
    if (cpus > 1) return PathType::sys;
    if (cpus == 1) return PathType::phb;
    return switches > 1 ? PathType::pxb : PathType::pix;
  }

  // --- between hosts -----------------------------------------------------------------------------------------------

  Path find_between_hosts(NodeId from, NodeId to) {
    const Gate& out = gate(from, to, from, true);
    const Gate& in = gate(from, to, to, false);
    const auto across = fabric.find(out.nic, in.nic);
    if (!across) {
      fail(from, to, "the fabric does not join " + name(out.nic) + " and " + name(in.nic),
           "cable both NICs to switches that are joined");
    }
    Way middle = out.beside_nic;
    middle.insert(middle.end(), across->begin(), across->end());
    middle.insert(middle.end(), in.beside_nic.begin(), in.beside_nic.end());

    Path path{{}, PathType::net};
    if (out.staged) path.legs.push_back(leg(*out.staged));
    append_legs(middle, path);
    if (in.staged) path.legs.push_back(leg(*in.staged));
    return path;
  }

  /// The gate of `device`, one of the two ends of from -> to. Kept, one a device and direction: with it a path between
  /// hosts costs no more than its way over the fabric.
  const Gate& gate(NodeId from, NodeId to, NodeId device, bool outward) {
    auto& known = outward ? gates_out : gates_in;
    const auto found = known.find(device.value);
    if (found != known.end()) return found->second;
    return known.emplace(device.value, make_gate(from, to, device, outward)).first->second;
  }

  Gate make_gate(NodeId from, NodeId to, NodeId device, bool outward) {
    const auto& host = topology.node(device).host;
    if (!host || has_fabric_link(device)) return {device, {}, std::nullopt};
    const auto [nic, type, way] = nearest(device, outward, NodeKind::nic);
    if (nic == no_node) {
      fail(from, to, "no NIC of " + name(device) + "'s host is both cabled to the fabric and within its reach",
           "give the node a NIC and a fabric");
    }
    const bool is_gpu = topology.node(device).kind == NodeKind::gpu;
    if (!is_gpu || (transport.gpudirect && type <= PathType::pxb)) return {nic, way, std::nullopt};

    const auto [memory, memory_type, to_memory] = nearest(device, outward, NodeKind::memory);
    if (memory == no_node) {
      fail(from, to, "data must rest in host memory, and " + name(device) + "'s host has none within its reach",
           transport.gpudirect ? "the NIC is farther than PXB: add host memory, or a PCIe switch that joins the two"
                               : "add host memory, or turn gpudirect on");
    }
    const auto beside = outward ? find_pcie(*host, memory, nic) : find_pcie(*host, nic, memory);
    if (!beside)
      fail(from, to, "no chain of links joins " + name(memory) + " and " + name(nic), "add the missing link");
    return {nic, *beside, to_memory};
  }

  struct Near {
    NodeId node = no_node;
    PathType type = PathType::loc;
    Way way;
  };
  /// The device of that kind nearest to `device` in its host: NICs by PathType, then hops; memory by hops; then the
  /// lower number.
  Near nearest(NodeId device, bool outward, NodeKind kind) {
    Near best;
    std::tuple<PathType, std::size_t> best_key;
    const std::uint32_t host = *topology.node(device).host;
    for (std::uint32_t n = hosts[host].first; n < hosts[host].last; ++n) {
      const NodeId other{n};
      if (topology.node(other).host != host || topology.node(other).kind != kind) continue;
      if (kind == NodeKind::nic && !has_fabric_link(other)) continue;
      auto way = outward ? find_pcie(host, device, other) : find_pcie(host, other, device);
      if (!way) continue;
      const PathType type = type_of(outward ? device : other, *way);
      const std::tuple key{kind == NodeKind::nic ? type : PathType::loc, way->size()};
      if (best.node == no_node || key < best_key) best = {other, type, std::move(*way)}, best_key = key;
    }
    return best;
  }

  std::optional<Way> find_pcie(std::uint32_t host, NodeId from, NodeId to) { return inside(host).pcie.find(from, to); }

  /// Whether it is a NIC with a link that leaves its host.
  bool has_fabric_link(NodeId id) const {
    const Node& node = topology.node(id);
    const auto leaves = [&](LinkId link) { return topology.node(topology.link(link).to).host != node.host; };
    const auto links = topology.links_from(id);
    return node.kind == NodeKind::nic && std::any_of(links.begin(), links.end(), leaves);
  }

  // --- common ------------------------------------------------------------------------------------------------------

  Leg leg(Way links) const {
    Leg made{std::move(links), Picoseconds{0}};
    for (const LinkId id : made.links) made.latency = add(made.latency, topology.link(id).latency);
    return made;
  }

  /// Appends the way, cut into legs where it passes through a GPU: data rests there.
  void append_legs(const Way& way, Path& path) const {
    Way stretch;
    for (const LinkId id : way) {
      stretch.push_back(id);
      if (id != way.back() && topology.node(topology.link(id).to).kind == NodeKind::gpu) {
        path.legs.push_back(leg(std::exchange(stretch, {})));
      }
    }
    path.legs.push_back(leg(std::move(stretch)));
  }

  const std::string& name(NodeId id) const { return topology.node(id).name; }

  [[noreturn]] void fail(NodeId from, NodeId to, const std::string& because, const std::string& hint) const {
    throw InputError("", "no path from " + name(from) + " to " + name(to) + ": " + because, hint);
  }

  const Topology& topology;
  const Transport transport;
  CheapestWay fabric;
  std::vector<Host> hosts;
  std::unique_ptr<Inside> last_inside;
  std::unordered_map<std::uint32_t, Gate> gates_out, gates_in;  ///< by device
};

Routes::Routes(const Topology& topology, Transport transport) : impl_(std::make_unique<Impl>(topology, transport)) {}
Routes::~Routes() = default;
Routes::Routes(Routes&&) noexcept = default;

Path Routes::find(NodeId from, NodeId to) { return impl_->find(from, to); }
Bandwidth narrowest(const Topology& topology, const Path& path) {
  Bandwidth least{std::numeric_limits<std::int64_t>::max()};
  for (const Leg& leg : path.legs) {
    for (const LinkId id : leg.links) least = std::min(least, topology.link(id).bandwidth);
  }
  return least;
}

Picoseconds latency(const Path& path) {
  Picoseconds sum{0};
  for (const Leg& leg : path.legs) sum += leg.latency;
  return sum;
}

}  // namespace ringsim
