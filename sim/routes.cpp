#include "sim/routes.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
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
  struct Span {
    std::uint32_t first = UINT32_MAX, last = 0;
  };
  /// Both ways of looking at one host's inside.
  struct Inside {
    std::uint32_t host;
    CheapestWay nvlink, pcie;
  };
  /// A NIC that a device can use, and the way to it (or from it).
  struct Port {
    NodeId nic;
    PathType type = PathType::loc;
    Way way;
    NodeId leaf;               ///< the switch it is cabled to
    std::uint32_t number = 0;  ///< among the NICs of its host
  };
  /// What gets data out of a host, and into the other.
  struct Gates {
    const Port* out = nullptr;
    const Port* in = nullptr;
    NodeId proxy = no_node;  ///< PXN: the GPU near `out`
  };

  Impl(const Topology& t, const Transport& how, Routing which)
      : topology(t),
        transport(how),
        routing(std::move(which)),
        fabric(t, 0, static_cast<std::uint32_t>(t.n_nodes()), fabric_role),
        spans(t.hosts().size()) {
    std::vector<NodeId> nics;
    for (std::uint32_t n = 0; n < t.n_nodes(); ++n) {
      const auto& host = t.node(NodeId{n}).host;
      if (!host) continue;
      spans[*host].first = std::min(spans[*host].first, n);
      spans[*host].last = std::max(spans[*host].last, n + 1);
      if (has_fabric_link(NodeId{n})) nics.push_back(NodeId{n});
    }
    // A rail fabric is cabled rail by rail, so that the NICs below one of its switches have numbers in a row.
    const auto first_cable = [&](NodeId nic) {
      for (const LinkId id : t.links_from(nic))
        if (t.node(t.link(id).to).host != t.node(nic).host) return id;
      return no_link;
    };
    std::sort(nics.begin(), nics.end(), [&](NodeId a, NodeId b) { return first_cable(a) < first_cable(b); });
    for (std::size_t i = 0; i < nics.size(); ++i) numbers.emplace(nics[i].value, i);
    for (const Routing::Entry& entry : routing.table) {
      ensure(best_link(t, entry.at, entry.via).has_value(), "an entry of a table leads to a neighbour");
      table[{entry.at, entry.to}] = entry.via;
    }
  }

  Path find(NodeId from, NodeId to, std::uint32_t label) {
    ensure(from.value < topology.n_nodes() && to.value < topology.n_nodes(), "a path joins nodes of its topology");
    if (from == to) return {};
    const auto& there = topology.node(to).host;
    const auto& here = topology.node(from).host;
    if (here && here == there) return find_inside(*here, from, to);
    if (here || there) return find_between_hosts(from, to, gates(from, to), label);
    Path path{{}, PathType::dir};
    append_legs(across(from, to, from, to, label), path);
    return path;
  }

  std::vector<Path> find_parts(NodeId from, NodeId to, std::uint32_t label) {
    const auto& there = topology.node(to).host;
    const auto& here = topology.node(from).host;
    if (transport.nics == Transport::Nics::nearest || !here || !there || here == there) return {find(from, to, label)};
    // The NICs of both hosts by number, so that rails meet; where one host has more, the other's take turns.
    const std::vector<const Port*> outs = by_number(ports(from, true)), ins = by_number(ports(to, false));
    if (outs.empty() || ins.empty()) return {find(from, to, label)};  // says what is missing
    std::vector<Path> parts;
    for (std::size_t i = 0; i < std::max(outs.size(), ins.size()); ++i) {
      Gates pair{outs[i % outs.size()], ins[i % ins.size()]};
      for (std::size_t k = 0; k < ins.size() && !are_joined(*pair.out, *pair.in); ++k)
        pair.in = ins[(i + k) % ins.size()];
      parts.push_back(find_between_hosts(from, to, pair, label));
    }
    return parts;
  }

  // --- within a host -----------------------------------------------------------------------------------------------

  Inside& inside(std::uint32_t host) {
    if (last_inside && last_inside->host == host) return *last_inside;
    const auto [first, last] = spans[host];
    const auto only_here = [host](Role (*role)(const Node&)) {
      return [host, role](const Node& node) { return node.host == host ? role(node) : Role::outside; };
    };
    last_inside.reset(new Inside{
        host, CheapestWay(topology, first, last, only_here(nvlink_role)),
        CheapestWay(topology, first, last, only_here(host_role), [](const Link& link) { return !is_nvlink(link); })});
    return *last_inside;
  }

  Path find_inside(std::uint32_t host, NodeId from, NodeId to) {
    Path path;
    const bool gpus = topology.node(from).kind == NodeKind::gpu && topology.node(to).kind == NodeKind::gpu;
    if (gpus && transport.p2p_level >= PathType::nvl) {
      if (const auto way = inside(host).nvlink.find(from, to)) {
        path.type = PathType::nvl;
        append_legs(chain(*way), path);
        return path;
      }
    }
    if (gpus && transport.p2p_level >= PathType::nvb) {
      if (const auto relay = best_relay(from, to)) {
        path.type = PathType::nvb;
        path.legs = {leg(chain({relay->first})), leg(chain({relay->second}))};
        return path;
      }
    }
    const auto way = find_pcie(host, from, to);
    if (!way) {
      fail(from, to, "no chain of PCIe switches and CPUs joins them, and at most one GPU may relay over NVLink",
           "add the PCIe links of this host");
    }
    path.type = type_of(from, *way);
    const PathType reach = std::min(transport.p2p_level, topology.hosts()[host].peer_access);
    if (!gpus || path.type <= reach) {
      append_legs(gpus && path.type >= PathType::phb ? peer_way(host, *way) : chain(*way), path);
      return path;
    }
    const auto [memory, from_memory] = nearest_memory(to, false);
    const auto to_memory = memory == no_node ? std::nullopt : find_pcie(host, from, memory);
    if (!to_memory) {
      fail(from, to, "they have no peer access, and no host memory is within the reach of both",
           "add host memory, or raise p2p_level or the machine's peer_access");
    }
    path.legs = {leg(chain(*to_memory)), leg(chain(from_memory))};
    return path;
  }

  /// GPU to GPU through a CPU: what a byte costs there, it costs on all PCIe links on the way.
  std::vector<Share> peer_way(std::uint32_t host, const Way& way) const {
    std::vector<Share> shares = chain(way);
    for (Share& each : shares)
      if (topology.link(each.link).kind == LinkKind::pcie) each.share = topology.hosts()[host].peer_cost;
    return shares;
  }

  /// The GPU joined to both by NVLink whose narrower link is widest; of equals the lowest number.
  std::optional<std::pair<LinkId, LinkId>> best_relay(NodeId from, NodeId to) const {
    std::optional<std::pair<LinkId, LinkId>> best;
    std::pair<std::int64_t, std::uint32_t> best_key{};
    for (const LinkId id : topology.links_from(from)) {
      const Link& first = topology.link(id);
      if (!is_nvlink(first) || topology.node(first.to).kind != NodeKind::gpu) continue;
      const auto second = best_link(topology, first.to, to);
      if (!second || !is_nvlink(topology.link(*second))) continue;
      const auto width = std::min(first.bandwidth, topology.link(*second).bandwidth).bytes_per_second;
      const std::pair key{-width, first.to.value};
      if (!best || key < best_key) best = {id, *second}, best_key = key;
    }
    return best;
  }

  static bool is_nvlink(const Link& link) { return link.kind == LinkKind::nvlink || link.kind == LinkKind::xgmi; }

  /// How near the ends of a way over PCIe are, in NCCL's words. A CPU at an end counts: GPU to CPU is PHB, or C2C.
  PathType type_of(NodeId from, const Way& way) const {
    int cpus = topology.node(from).kind == NodeKind::cpu ? 1 : 0, bridges = 0, switches = 0, c2c = 0;
    for (const LinkId id : way) {
      const Link& link = topology.link(id);
      const NodeKind kind = topology.node(link.to).kind;
      cpus += kind == NodeKind::cpu ? 1 : 0;
      bridges += kind == NodeKind::host_bridge ? 1 : 0;
      switches += kind == NodeKind::pcie_switch ? 1 : 0;
      c2c += link.kind == LinkKind::c2c ? 1 : 0;
    }
    if (cpus > 1) return PathType::sys;
    if (c2c == 1 && cpus == 1) return way.size() == 1 ? PathType::c2c : PathType::p2c;
    if (cpus == 1 || bridges > 0) return PathType::phb;
    return switches > 1 ? PathType::pxb : PathType::pix;
  }

  std::optional<Way> find_pcie(std::uint32_t host, NodeId from, NodeId to) { return inside(host).pcie.find(from, to); }

  /// The host memory nearest to a device by hops, then the lower number, and the way to it (or from it).
  std::pair<NodeId, Way> nearest_memory(NodeId device, bool outward) {
    std::pair<NodeId, Way> best{no_node, {}};
    const std::uint32_t host = *topology.node(device).host;
    for (std::uint32_t n = spans[host].first; n < spans[host].last; ++n) {
      if (topology.node(NodeId{n}).host != host || topology.node(NodeId{n}).kind != NodeKind::memory) continue;
      auto way = outward ? find_pcie(host, device, NodeId{n}) : find_pcie(host, NodeId{n}, device);
      if (!way) continue;
      if (best.first == no_node || way->size() < best.second.size()) best = {NodeId{n}, std::move(*way)};
    }
    return best;
  }

  // --- between hosts -----------------------------------------------------------------------------------------------

  Path find_between_hosts(NodeId from, NodeId to, const Gates& gates, std::uint32_t label) {
    Path path{{}, PathType::net, gates.out->type, gates.in->type};
    std::vector<Share> middle;
    if (gates.proxy != no_node) {
      path.out = PathType::pxn;
      path.legs.push_back(leg(chain(*inside(*topology.node(from).host).nvlink.find(from, gates.proxy))));
      middle = chain(gates.out->way);
    } else {
      middle = leave(from, to, *gates.out, path);
    }
    for (const Share& each : across(gates.out->nic, gates.in->nic, from, to, label)) middle.push_back(each);
    std::optional<Leg> last;
    for (const Share& each : enter(from, to, *gates.in, last)) middle.push_back(each);
    append_legs(middle, path);
    if (last) path.legs.push_back(*last);
    return path;
  }

  bool is_direct(NodeId device, const Port& port) const {
    return topology.node(device).kind != NodeKind::gpu || port.way.empty() || port.type <= transport.gdr_level;
  }

  /// From the sender to its NIC: the last leg's beginning. What comes before (to host memory) is added to the path.
  std::vector<Share> leave(NodeId from, NodeId to, const Port& port, Path& path) {
    if (is_direct(from, port)) return chain(port.way);
    const auto [memory, way] = nearest_memory(from, true);
    if (memory == no_node) fail_without_memory(from, to, from);
    const auto onward = find_pcie(*topology.node(from).host, memory, port.nic);
    if (!onward)
      fail(from, to, "no chain of links joins " + name(memory) + " and " + name(port.nic), "add the missing link");
    path.legs.push_back(leg(chain(way)));
    return chain(*onward);
  }

  /// From the receiver's NIC on; `last`: the leg from host memory, where data is staged there.
  std::vector<Share> enter(NodeId from, NodeId to, const Port& port, std::optional<Leg>& last) {
    if (is_direct(to, port)) return chain(port.way);
    const auto [memory, way] = nearest_memory(to, false);
    if (memory == no_node) fail_without_memory(from, to, to);
    const auto before = find_pcie(*topology.node(to).host, port.nic, memory);
    if (!before)
      fail(from, to, "no chain of links joins " + name(port.nic) + " and " + name(memory), "add the missing link");
    last = leg(chain(way));
    return chain(*before);
  }

  [[noreturn]] void fail_without_memory(NodeId from, NodeId to, NodeId device) const {
    fail(from, to, "data must rest in host memory, and " + name(device) + "'s host has none within its reach",
         "add host memory, or let gdr_level (now " + std::string(to_string(transport.gdr_level)) + ") reach the NIC");
  }

  Gates gates(NodeId from, NodeId to) {
    const std::vector<Port>& outs = ports(from, true);
    const std::vector<Port>& ins = ports(to, false);
    for (const NodeId end : {from, to}) {
      if (!(end == from ? outs : ins).empty()) continue;
      fail(from, to, "no NIC of " + name(end) + "'s host is both cabled to the fabric and within its reach",
           "give the node a NIC and a fabric");
    }
    for (const Port& in : ins) {
      Gates best;
      int best_rank = 0;
      // Of equals NICs of one number meet, as NCCL has it (ncclTopoGetNetDev); so do not all take the first proxy.
      const auto consider = [&](const Port& out, NodeId proxy) {
        const int rank = 2 * rank_of(from, out, proxy, in) + (proxy == no_node || out.number == in.number ? 0 : 1);
        if ((best.out != nullptr && rank >= best_rank) || !are_joined(out, in)) return;
        best = {&out, &in, proxy};
        best_rank = rank;
      };
      for (const Port& out : outs) consider(out, no_node);
      if (best.out == nullptr || best_rank > 0)
        for (const NodeId proxy : proxies(from))
          for (const Port& out : ports(proxy, true))
            if (out.type <= std::min(PathType::p2c, transport.gdr_level)) consider(out, proxy);
      if (best.out != nullptr) return best;
    }
    fail(from, to, "the fabric joins no NIC of " + name(from) + "'s host to one of " + name(to) + "'s",
         "cable both to switches that are joined; where only rails are joined, allow PXN");
  }

  /// Lower is better; see the rules of Routes. Of equals the first counts.
  int rank_of(NodeId from, const Port& out, NodeId proxy, const Port& in) const {
    const bool same_switch = out.leaf != no_node && out.leaf == in.leaf;
    if (proxy != no_node) return same_switch ? 1 : 3;
    const bool near = topology.node(from).kind != NodeKind::gpu || out.type <= PathType::p2c;
    if (near) return same_switch && transport.pxn ? 0 : 2;
    return 4;
  }

  /// The GPUs of the same host to which a GPU has NVLink, without a relay: through whose NICs it may send.
  std::vector<NodeId> proxies(NodeId from) {
    std::vector<NodeId> found;
    const Node& node = topology.node(from);
    if (!transport.pxn || node.kind != NodeKind::gpu || !node.host) return found;
    for (std::uint32_t n = spans[*node.host].first; n < spans[*node.host].last; ++n) {
      const NodeId other{n};
      if (other == from || topology.node(other).host != node.host || topology.node(other).kind != NodeKind::gpu)
        continue;
      if (inside(*node.host).nvlink.find(from, other)) found.push_back(other);
    }
    return found;
  }

  /// The NICs within a device's reach that are cabled, nearest first. Kept, one list a device and direction: with it a
  /// path between hosts costs little more than its way over the fabric.
  const std::vector<Port>& ports(NodeId device, bool outward) {
    auto& known = outward ? ports_out : ports_in;
    const auto found = known.find(device.value);
    if (found != known.end()) return found->second;
    return known.emplace(device.value, make_ports(device, outward)).first->second;
  }

  std::vector<Port> make_ports(NodeId device, bool outward) {
    const auto& host = topology.node(device).host;
    if (!host || has_fabric_link(device)) return {{device, PathType::loc, {}, leaf_of(device), 0}};
    std::vector<Port> found = sorted_ports(device, outward);
    if (found.empty() || topology.node(device).kind != NodeKind::gpu) return found;
    // Equally near NICs are dealt out to the GPUs to which the same ones are nearest.
    const std::size_t before = sharers_before(device, outward, nearest_nics(found));
    for (auto first = found.begin(); first != found.end();) {
      const auto last =
          std::find_if(first, found.end(), [&](const Port& p) { return nearness(p) != nearness(*first); });
      std::rotate(first, first + static_cast<std::ptrdiff_t>(before % static_cast<std::size_t>(last - first)), last);
      first = last;
    }
    return found;
  }

  static std::pair<PathType, std::size_t> nearness(const Port& port) { return {port.type, port.way.size()}; }

  /// The cabled NICs of a device's host, nearest first, then by number.
  std::vector<Port> sorted_ports(NodeId device, bool outward) {
    const std::uint32_t host = *topology.node(device).host;
    std::vector<Port> found;
    std::uint32_t number = 0;
    for (std::uint32_t n = spans[host].first; n < spans[host].last; ++n) {
      const NodeId nic{n};
      if (topology.node(nic).host != host || !has_fabric_link(nic)) continue;
      const std::uint32_t this_number = number++;
      auto way = outward ? find_pcie(host, device, nic) : find_pcie(host, nic, device);
      if (!way) continue;
      const PathType type = type_of(outward ? device : nic, *way);
      found.push_back({nic, type, std::move(*way), leaf_of(nic), this_number});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Port& a, const Port& b) { return nearness(a) < nearness(b); });
    return found;
  }

  static std::vector<NodeId> nearest_nics(const std::vector<Port>& ports) {
    std::vector<NodeId> nearest;
    for (const Port& port : ports)
      if (nearness(port) == nearness(ports.front())) nearest.push_back(port.nic);
    return nearest;
  }

  /// How many GPUs of the host with lower numbers have these NICs nearest.
  std::size_t sharers_before(NodeId device, bool outward, const std::vector<NodeId>& nearest) {
    std::size_t count = 0;
    const auto& host = topology.node(device).host;
    for (std::uint32_t n = spans[*host].first; n < device.value; ++n) {
      const Node& node = topology.node(NodeId{n});
      if (node.host != host || node.kind != NodeKind::gpu) continue;
      if (nearest_nics(sorted_ports(NodeId{n}, outward)) == nearest) ++count;
    }
    return count;
  }

  static std::vector<const Port*> by_number(const std::vector<Port>& ports) {
    std::vector<const Port*> sorted;
    for (const Port& port : ports) sorted.push_back(&port);
    std::sort(sorted.begin(), sorted.end(), [](const Port* a, const Port* b) { return a->number < b->number; });
    return sorted;
  }

  /// Whether it is a NIC with a link that leaves its host.
  bool has_fabric_link(NodeId id) const {
    const Node& node = topology.node(id);
    const auto leaves = [&](LinkId link) { return topology.node(topology.link(link).to).host != node.host; };
    const auto links = topology.links_from(id);
    return node.kind == NodeKind::nic && std::any_of(links.begin(), links.end(), leaves);
  }

  /// The first switch to which a NIC is cabled.
  NodeId leaf_of(NodeId nic) const {
    for (const LinkId id : topology.links_from(nic)) {
      const NodeId other = topology.link(id).to;
      if (topology.node(other).kind == NodeKind::network_switch) return other;
    }
    return no_node;
  }

  // --- over the fabric ---------------------------------------------------------------------------------------------

  bool are_joined(const Port& out, const Port& in) {
    return (out.leaf != no_node && out.leaf == in.leaf) || fabric.find(out.nic, in.nic).has_value();
  }

  /// From one port of the fabric to another, as the policy says; `from` and `to` are the devices that talk.
  std::vector<Share> across(NodeId port, NodeId far, NodeId from, NodeId to, std::uint32_t label) {
    if (port == far) return {};
    if (routing.policy == Routing::Policy::packet_spray) {
      auto ways = fabric.spread(port, far);
      if (!ways) fail_across(from, to, port, far);
      for (const Share& each : *ways)
        if (topology.link(each.link).to != far && topology.node(topology.link(each.link).to).kind == NodeKind::gpu)
          fail(from, to,
               "data rests in " + name(topology.link(each.link).to) + " on its way and cannot be spread by packet",
               "take another policy than packet_spray");
      return std::move(*ways);
    }
    const bool is_plain =
        routing.policy == Routing::Policy::fixed && routing.table.empty() && topology.ties() == Ties::first;
    const bool by_hops = routing.policy != Routing::Policy::fixed;
    const auto way = is_plain ? fabric.find(port, far) : fabric.find(port, far, by_hops, chooser(far, from, to, label));
    if (!way) fail_across(from, to, port, far);
    return chain(*way);
  }

  /// What the switches on the way to `far` choose.
  Pick chooser(NodeId far, NodeId from, NodeId to, std::uint32_t label) const {
    // D-mod-k takes another digit of the destination's number at every switch that has a choice; so do turns.
    const auto number_of = numbers.find(far.value);
    const std::uint64_t pair = mix(routing.seed ^ mix(static_cast<std::uint64_t>(from.value) << 32 | to.value));
    const bool destination = routing.policy == Routing::Policy::fixed;
    std::uint64_t digits = !destination ? label : number_of == numbers.end() ? 0 : number_of->second;
    return [=, this](NodeId at, std::span<const LinkId> candidates) mutable {
      if (const auto listed = listed_link(at, far)) return *listed;
      if (candidates.size() == 1 || (destination && topology.ties() == Ties::first)) return candidates.front();
      std::uint64_t number = digits;
      if (routing.policy == Routing::Policy::ecmp) {
        number = mix(pair ^ mix(static_cast<std::uint64_t>(at.value) << 32 | label));
        return candidates[number % candidates.size()];
      }
      // A neighbour takes a digit; of parallel cables to it the rest of the number chooses and is not used up, so that
      // the far switch tells apart in the same way what it sends on through a bundle.
      std::vector<NodeId> neighbours;
      for (const LinkId id : candidates) {
        const NodeId next = topology.link(id).to;
        if (std::find(neighbours.begin(), neighbours.end(), next) == neighbours.end()) neighbours.push_back(next);
      }
      digits /= neighbours.size();
      if (!destination) number += mix(pair ^ at.value);
      const NodeId next = neighbours[number % neighbours.size()];
      std::vector<LinkId> bundle;
      for (const LinkId id : candidates)
        if (topology.link(id).to == next) bundle.push_back(id);
      return bundle[number / neighbours.size() % bundle.size()];
    };
  }

  std::optional<LinkId> listed_link(NodeId at, NodeId far) const {
    if (table.empty()) return std::nullopt;
    auto entry = table.find({at, far});
    if (entry == table.end() && !best_link(topology, at, far)) entry = table.find({at, no_node});
    if (entry == table.end()) return std::nullopt;
    return best_link(topology, at, entry->second);
  }

  static std::uint64_t mix(std::uint64_t x) {  // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)
    x += 0x9E3779B97F4A7C15U;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
    return x ^ (x >> 31);
  }

  [[noreturn]] void fail_across(NodeId from, NodeId to, NodeId port, NodeId far) const {
    if (port == from && far == to)
      fail(from, to, "no chain of links leads there",
           "add a link on the way; a one-way link is not used backwards, and data never passes through memory");
    fail(from, to, "the fabric does not join " + name(port) + " and " + name(far),
         "cable both NICs to switches that are joined");
  }

  // --- common ------------------------------------------------------------------------------------------------------

  static std::vector<Share> chain(const Way& way) {
    std::vector<Share> shares;
    for (const LinkId id : way) shares.push_back({id, 1});
    return shares;
  }

  /// One leg of these links, which stand in order of distance.
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
    for (std::size_t i = 0; i < way.size(); ++i) {
      stretch.push_back(way[i]);
      if (i + 1 < way.size() && topology.node(topology.link(way[i].link).to).kind == NodeKind::gpu) {
        path.legs.push_back(leg(stretch));
        stretch.clear();
      }
    }
    path.legs.push_back(leg(stretch));
  }

  const std::string& name(NodeId id) const { return topology.node(id).name; }

  [[noreturn]] void fail(NodeId from, NodeId to, const std::string& because, const std::string& hint) const {
    throw InputError("", "no path from " + name(from) + " to " + name(to) + ": " + because, hint);
  }

  const Topology& topology;
  const Transport transport;
  const Routing routing;
  CheapestWay fabric;
  std::vector<Span> spans;                                   ///< [host]
  std::unordered_map<std::uint32_t, std::uint64_t> numbers;  ///< of NICs, in the order of their cables to the fabric
  std::map<std::pair<NodeId, NodeId>, NodeId> table;
  std::unique_ptr<Inside> last_inside;
  std::unordered_map<std::uint32_t, std::vector<Port>> ports_out, ports_in;  ///< by device
};

Routes::Routes(const Topology& topology, Transport transport, Routing routing)
    : impl_(std::make_unique<Impl>(topology, transport, std::move(routing))) {}
Routes::~Routes() = default;
Routes::Routes(Routes&&) noexcept = default;

Path Routes::find(NodeId from, NodeId to, std::uint32_t label) { return impl_->find(from, to, label); }
std::vector<Path> Routes::find_parts(NodeId from, NodeId to, std::uint32_t label) {
  return impl_->find_parts(from, to, label);
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
