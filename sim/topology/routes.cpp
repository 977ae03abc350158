#include "sim/topology/routes.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/topology/fabric_ways.hpp"
#include "sim/topology/host_ways.hpp"
#include "sim/topology/nic_choice.hpp"

namespace ringsim {

struct Routes::Impl {
  /// How data leaves a host, and enters the other.
  struct Gates {
    Gate out, in;
  };

  Impl(const Topology& t, const Transport& how, Routing which, const Usable& usable)
      : topology(t),
        transport(how),
        hosts(t, usable),
        choice(t, hosts, transport),
        fabric(t, hosts, std::move(which), usable) {}

  Path find(NodeId from, NodeId to, std::uint32_t label) {
    ensure(from.value < topology.n_nodes() && to.value < topology.n_nodes(), "a path joins nodes of its topology");
    if (from == to) return {};
    const auto& there = topology.node(to).host;
    const auto& here = topology.node(from).host;
    if (here && here == there) return find_inside(from, to);
    if (here || there) return find_between_hosts(from, to, gates(from, to, label), label);
    Path path{{}, PathType::dir};
    const FabricWays::Crossing crossing = fabric.across(from, to, from, to, label);
    path.turns = crossing.turns;
    path.has_choice = crossing.has_choice;
    append_legs(crossing.links, path);
    return path;
  }

  std::vector<Path> find_parts(NodeId from, NodeId to, std::uint32_t label) {
    const auto& there = topology.node(to).host;
    const auto& here = topology.node(from).host;
    if (transport.nics != Transport::Nics::all || !here || !there || here == there) return {find(from, to, label)};
    // The NICs of both hosts by number, so that rails meet; if one host has more, the other's take turns.
    const std::vector<Gate> outs = by_number(choice.gates(from, true)), ins = by_number(choice.gates(to, false));
    if (outs.empty() || ins.empty()) return {find(from, to, label)};  // says what is missing
    std::vector<Path> parts;
    for (std::size_t i = 0; i < std::max(outs.size(), ins.size()); ++i) {
      Gates pair{outs[i % outs.size()], ins[i % ins.size()]};
      for (std::size_t k = 0; k < ins.size() && !fabric.are_joined(pair.out.nic, pair.in.nic); ++k)
        pair.in = ins[(i + k) % ins.size()];
      parts.push_back(find_between_hosts(from, to, pair, label));
    }
    return parts;
  }

  // --- within a host -----------------------------------------------------------------------------------------------

  Path find_inside(NodeId from, NodeId to) {
    const Host& host = topology.hosts()[*topology.node(from).host];
    Path path;
    const bool gpus = topology.node(from).kind == NodeKind::gpu && topology.node(to).kind == NodeKind::gpu;
    // An NVSwitch is an end if it adds up itself; NVLink is all that it has. That is no peer access: NCCL runs NVLS
    // with NCCL_P2P_DISABLE as well (NVIDIA/nccl 5067397c2676 src/transport/nvls.cc asks for no level).
    const bool switches =
        topology.node(from).kind == NodeKind::nvswitch || topology.node(to).kind == NodeKind::nvswitch;
    if (switches || (gpus && transport.p2p_level >= PathType::nvl)) {
      if (const auto way = hosts.nvlink(from, to)) {
        path.type = PathType::nvl;
        append_legs(chain(*way), path);
        return path;
      }
    }
    if (gpus && transport.p2p_level >= PathType::nvb) {
      if (const auto relay = hosts.relay(from, to)) {
        path.type = PathType::nvb;
        path.legs = {leg(chain({relay->first})), leg(chain({relay->second}))};
        return path;
      }
    }
    const std::optional<Way>& way = hosts.pcie(from, to);
    if (!way) {
      fail(from, to, "no chain of PCIe switches and CPUs connects them, and at most one GPU may relay over NVLink",
           "add the PCIe links of this host");
    }
    path.type = hosts.type_of(from, *way);
    const PathType reach = std::min(transport.p2p_level, host.peer_access);
    if (!gpus || path.type <= reach) {
      append_legs(gpus && path.type >= PathType::phb ? peer_way(topology, host, *way) : over_pcie(*way), path);
      return path;
    }
    const auto [memory, from_memory] = hosts.nearest_memory(to, false);
    const auto to_memory = memory == no_node ? std::nullopt : hosts.pcie(from, memory);
    if (!to_memory) {
      fail(from, to, "they have no peer access, and there is no host memory that both can reach",
           "add host memory, or raise p2p_level or the machine's peer_access");
    }
    path.legs = {leg(chain(*to_memory)), leg(chain(from_memory))};
    return path;
  }

  /// A way over PCIe as data takes it.
  std::vector<Share> over_pcie(const Way& way) { return chain(transport.acs ? hosts.redirected(way) : way); }

  /// GPU to GPU through a CPU: what a byte costs there, it costs on all PCIe links on the way.
  static std::vector<Share> peer_way(const Topology& topology, const Host& host, const Way& way) {
    std::vector<Share> shares = chain(way);
    for (Share& each : shares)
      if (topology.link(each.link).kind == LinkKind::pcie) each.share = host.peer_cost;
    return shares;
  }

  // --- between hosts -----------------------------------------------------------------------------------------------

  Path find_between_hosts(NodeId from, NodeId to, const Gates& gates, std::uint32_t label) {
    Path path{{}, PathType::net, gates.out.type, gates.in.type};
    std::vector<Share> middle;
    if (gates.out.proxy != no_node) {
      path.out = PathType::pxn;
      path.legs.push_back(leg(chain(*hosts.nvlink(from, gates.out.proxy))));
      middle = read_by_nic(from, *hosts.pcie(gates.out.proxy, gates.out.nic));
    } else {
      middle = leave(from, to, gates.out, path);
    }
    const FabricWays::Crossing crossing = fabric.across(gates.out.nic, gates.in.nic, from, to, label);
    path.turns = crossing.turns;
    path.has_choice = crossing.has_choice;
    middle.insert(middle.end(), crossing.links.begin(), crossing.links.end());
    std::optional<Leg> last;
    for (const Share& each : enter(from, to, gates.in, last)) middle.push_back(each);
    append_legs(middle, path);
    if (last) path.legs.push_back(*last);
    return path;
  }

  bool is_direct(NodeId device, const Gate& gate) const {
    const Node& end = topology.node(device);
    return end.kind != NodeKind::gpu || transport.always_direct ||
           gate.type <= gdr_level_of(transport, end, topology.node(gate.nic));
  }

  /// The way from a device to a NIC that reads its memory. What the NIC reads from all GPUs shares the link's rate.
  std::vector<Share> read_by_nic(NodeId from, const Way& way) {
    std::vector<Share> shares = over_pcie(way);
    if (!transport.gpudirect_costs) return shares;
    if (topology.node(from).kind == NodeKind::gpu && topology.link(shares.back().link).kind == LinkKind::pcie)
      shares.back().share *= topology.hosts()[*topology.node(from).host].gpudirect_cost;
    return shares;
  }

  /// From the sender to its NIC: the last leg's beginning. What comes before (to host memory) is added to the path.
  std::vector<Share> leave(NodeId from, NodeId to, const Gate& gate, Path& path) {
    if (from == gate.nic) return {};
    if (is_direct(from, gate)) return read_by_nic(from, *hosts.pcie(from, gate.nic));
    const auto [memory, way] = hosts.nearest_memory(from, true);
    if (memory == no_node) fail_without_memory(from, to, from, gate.nic);
    const std::optional<Way>& onward = hosts.pcie(memory, gate.nic);
    if (!onward)
      fail(from, to, "no chain of links connects " + name(memory) + " and " + name(gate.nic), "add the missing link");
    path.legs.push_back(leg(chain(way)));
    return chain(*onward);
  }

  /// From the receiver's NIC on; `last`: the leg from host memory, if data is staged there.
  std::vector<Share> enter(NodeId from, NodeId to, const Gate& gate, std::optional<Leg>& last) {
    if (to == gate.nic) return {};
    if (is_direct(to, gate)) return over_pcie(*hosts.pcie(gate.nic, to));
    const auto [memory, way] = hosts.nearest_memory(to, false);
    if (memory == no_node) fail_without_memory(from, to, to, gate.nic);
    const std::optional<Way>& before = hosts.pcie(gate.nic, memory);
    if (!before)
      fail(from, to, "no chain of links connects " + name(gate.nic) + " and " + name(memory), "add the missing link");
    last = leg(chain(way));
    return chain(*before);
  }

  [[noreturn]] void fail_without_memory(NodeId from, NodeId to, NodeId device, NodeId nic) const {
    const bool denied = gdr_level_of(transport, topology.node(device), topology.node(nic)) != transport.gdr_level;
    fail(from, to,
         "data must be staged in host memory, but the host of " + name(device) + " has none that it can reach",
         denied ? "add host memory; " + name(topology.node(nic).gpudirect ? device : nic) + " has no GPUDirect"
                : "add host memory, or let gdr_level (now " + std::string(to_string(transport.gdr_level)) +
                      ") reach the NIC");
  }

  Gates gates(NodeId from, NodeId to, std::uint32_t label) {
    std::optional<int> channel;
    if (transport.nics == Transport::Nics::per_channel) channel = static_cast<int>(label);
    const Gates chosen{choice.exit(from, to, channel), choice.entry(to, channel)};
    if (chosen.out.nic != no_node && chosen.in.nic != no_node && fabric.are_joined(chosen.out.nic, chosen.in.nic))
      return chosen;
    // NCCL takes for granted that the fabric joins all NICs. If it does not (rails that are not joined, cables that
    // are down), or an end is no GPU: the best NICs that it joins, of equals those of one number.
    const std::vector<Gate> outs = choice.gates(from, true);
    std::vector<Gate> ins = choice.gates(to, false);
    for (const NodeId end : {from, to}) {
      if (!(end == from ? outs : ins).empty()) continue;
      fail(from, to, "no NIC of the host of " + name(end) + " is both cabled to the fabric and reachable",
           "give the node a NIC and a fabric");
    }
    // The receiver's own choice comes first.
    std::stable_partition(ins.begin(), ins.end(), [&](const Gate& in) { return in.nic == chosen.in.nic; });
    for (const Gate& in : ins) {
      const Gate* best = nullptr;
      const auto key = [&](const Gate& out) { return std::pair(out.rank, out.number != in.number); };
      for (const Gate& out : outs)
        if ((best == nullptr || key(out) < key(*best)) && fabric.are_joined(out.nic, in.nic)) best = &out;
      if (best != nullptr) return {*best, in};
    }
    fail(from, to, "the fabric connects no NIC of the host of " + name(from) + " to one of " + name(to) + "'s",
         "cable both to connected switches; if only rails are connected, allow PXN");
  }

  static std::vector<Gate> by_number(std::vector<Gate> gates) {
    std::sort(gates.begin(), gates.end(), [](const Gate& a, const Gate& b) { return a.number < b.number; });
    return gates;
  }

  // --- common ------------------------------------------------------------------------------------------------------

  /// One leg of these links, which are in order of distance.
  Leg leg(const std::vector<Share>& stretch) const {
    Leg made;
    for (const Share& each : stretch) {
      made.links.push_back(each.link);
      made.latency = add(made.latency, topology.link(each.link).latency);
      if (each.share != 1) made.shares.assign(1, 0);  // filled below
    }
    if (made.shares.empty()) return made;
    made.shares.clear();
    made.latency = Picoseconds{0};
    std::map<NodeId, Picoseconds> until;  // the longest way to a node so far
    for (const Share& each : stretch) {
      const Link& link = topology.link(each.link);
      made.shares.push_back(each.share);
      Picoseconds& there = until[link.to];
      there = std::max(there, add(until[link.from], link.latency));
      made.latency = std::max(made.latency, there);
    }
    return made;
  }

  /// Appends the way, cut into legs where it passes through a GPU: data rests there.
  void append_legs(const std::vector<Share>& way, Path& path) const {
    std::vector<Share> stretch;
    const NodeId end = topology.link(way.back().link).to;  // if several links may end, of a spread way
    for (std::size_t i = 0; i < way.size(); ++i) {
      stretch.push_back(way[i]);
      const NodeId next = topology.link(way[i].link).to;
      if (next != end && topology.node(next).kind == NodeKind::gpu) {
        path.legs.push_back(leg(stretch));
        stretch.clear();
      }
    }
    path.legs.push_back(leg(stretch));
  }

  const std::string& name(NodeId id) const { return topology.node(id).name; }
  [[noreturn]] void fail(NodeId from, NodeId to, const std::string& because, const std::string& hint) const {
    fail_path(topology, from, to, because, hint);
  }

  const Topology& topology;
  const Transport transport;
  HostWays hosts;
  NicChoice choice;
  FabricWays fabric;
};

namespace {
Usable all_but(std::vector<bool> down) {
  if (std::find(down.begin(), down.end(), true) == down.end()) return {};
  return [down = std::move(down)](LinkId id) { return !down[id.value]; };
}
}  // namespace

Routes::Routes(const Topology& topology, const Transport& transport, Routing routing, std::vector<bool> down)
    : impl_(std::make_unique<Impl>(topology, transport, std::move(routing), all_but(std::move(down)))) {}
Routes::~Routes() = default;
Routes::Routes(Routes&&) noexcept = default;

Path Routes::find(NodeId from, NodeId to, std::uint32_t label) { return impl_->find(from, to, label); }
std::vector<Path> Routes::find_parts(NodeId from, NodeId to, std::uint32_t label) {
  return impl_->find_parts(from, to, label);
}

PathType gdr_level_of(const Transport& transport, const Node& gpu, const Node& nic) {
  const bool both = gpu.gpudirect && nic.gpudirect;
  return both || transport.assumes_gpudirect ? transport.gdr_level : PathType::loc;
}

std::optional<NodeId> first_nic(const Topology& topology, const Path& path) {
  for (const Leg& leg : path.legs)
    for (const LinkId id : leg.links)
      for (const NodeId end : {topology.link(id).from, topology.link(id).to})
        if (topology.node(end).kind == NodeKind::nic) return end;
  return std::nullopt;
}

std::optional<NodeId> last_nic(const Topology& topology, const Path& path) {
  std::optional<NodeId> found;
  for (const Leg& leg : path.legs)
    for (const LinkId id : leg.links)
      for (const NodeId end : {topology.link(id).from, topology.link(id).to})
        if (topology.node(end).kind == NodeKind::nic) found = end;
  return found;
}

Bandwidth narrowest(const Topology& topology, const Path& path) {
  auto least = std::numeric_limits<double>::infinity();
  for (const Leg& leg : path.legs) {
    for (std::size_t i = 0; i < leg.links.size(); ++i) {
      const auto rate = static_cast<double>(topology.link(leg.links[i]).bandwidth.bytes_per_second);
      least = std::min(least, rate / leg.share(i));
    }
  }
  if (path.legs.empty()) return {std::numeric_limits<std::int64_t>::max()};
  return {static_cast<std::int64_t>(least)};
}

Picoseconds latency(const Path& path) {
  Picoseconds sum{0};
  for (const Leg& leg : path.legs) sum += leg.latency;
  return sum;
}

}  // namespace ringsim
