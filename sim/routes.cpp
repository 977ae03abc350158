#include "sim/routes.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "sim/error.hpp"

namespace ringsim {

std::string_view to_string(PathType type) {
  constexpr std::string_view words[] = {"LOC", "NVL", "NVB", "PIX", "PXB", "PHB", "SYS", "NET", "DIR"};
  return words[static_cast<std::size_t>(type)];
}

namespace {

/// What a way costs, the first difference deciding: fewer relays, fewer hops, less latency, more bandwidth.
struct Cost {
  std::int32_t relays = 0, hops = 0;
  std::int64_t latency = 0;
  std::int64_t width = std::numeric_limits<std::int64_t>::max();  ///< its narrowest link, bytes per second

  bool operator==(const Cost&) const = default;
  friend bool operator<(const Cost& a, const Cost& b) {
    return std::tuple(a.relays, a.hops, a.latency, -a.width) < std::tuple(b.relays, b.hops, b.latency, -b.width);
  }
  friend Cost operator+(const Cost& a, const Cost& b) {
    return {a.relays + b.relays, a.hops + b.hops, a.latency + b.latency, std::min(a.width, b.width)};
  }
};
constexpr Cost unreachable{std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::max(), 0, 0};

/// What a search may do at a node.
enum class Role : std::uint8_t {
  outside,  ///< no part of the search
  end,      ///< only first or last
  relay,    ///< crossed where nothing else leads there; data rests in it
  transit,  ///< crossed freely
};

using Way = std::vector<LinkId>;

/// Cheapest ways within a part of the topology. Three things keep it fast and small: a direct link is always cheapest;
/// a node with one neighbour is never crossed, so it is taken off and its port put back; and the rest, the core, is
/// built only when a way through it is asked for. Of the core's trees the one of the last destination is kept.
class Search {
 public:
  /// Searches among the ids [first, last) to which `role` gives a part.
  Search(const Topology& topology, std::uint32_t first, std::uint32_t last, std::function<Role(const Node&)> role)
      : topology_(topology), first_(first), last_(last), role_(std::move(role)) {}

  std::optional<Way> find(NodeId from, NodeId to) {
    if (from == to) return Way{};
    if (const auto link = best_between(from, to)) return Way{*link};
    const NodeId entry = only_neighbour(from, topology_.links_from(from), &Link::to);
    const NodeId exit = only_neighbour(to, topology_.links_to(to), &Link::from);
    // A neighbour that may not be crossed leads nowhere: `to` is not the neighbour, or the link would be direct.
    if ((entry != from && !can_cross(entry)) || (exit != to && !can_cross(exit))) return std::nullopt;
    Way way;
    if (entry != from) way.push_back(*best_between(from, entry));
    if (entry != exit && !append_core(entry, exit, way)) return std::nullopt;
    if (exit != to) way.push_back(*best_between(exit, to));
    return way;
  }

  /// The best of the direct links: lower latency, then higher bandwidth, then added first.
  std::optional<LinkId> best_between(NodeId from, NodeId to) const {
    const auto out = topology_.links_from(from), in = topology_.links_to(to);
    std::optional<LinkId> best;
    for (const LinkId id : out.size() <= in.size() ? out : in) {
      const Link& link = topology_.link(id);
      if (link.from == from && link.to == to && (!best || cost(id) < cost(*best))) best = id;
    }
    return best;
  }

 private:
  struct Weight {
    Cost cost;
  };
  using Core = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Weight, boost::no_property,
                                                  std::uint32_t, std::uint32_t>;
  /// Lets the tree grow only from its root and from nodes that may be crossed.
  struct MayGrow {
    const Search* search = nullptr;
    const Core* core = nullptr;
    std::uint32_t root = 0;
    bool operator()(const Core::edge_descriptor& edge) const {
      const auto at = static_cast<std::uint32_t>(source(edge, *core));
      return at == root || search->can_cross(search->members_[at]);
    }
  };

  bool contains(NodeId id) const { return id.value >= first_ && id.value < last_ && role(id) != Role::outside; }
  Role role(NodeId id) const { return role_(topology_.node(id)); }
  bool can_cross(NodeId id) const { return role(id) >= Role::relay; }

  Cost cost(LinkId id) const {
    const Link& link = topology_.link(id);
    return {role(link.to) == Role::relay ? 1 : 0, 1, link.latency.count(), link.bandwidth.bytes_per_second};
  }

  /// The one node to which all of these links lead, or `self` where there are none or several.
  NodeId only_neighbour(NodeId self, std::span<const LinkId> links, NodeId Link::*end) const {
    NodeId only = self;
    for (const LinkId id : links) {
      const NodeId other = topology_.link(id).*end;
      if (other == only || !contains(other)) continue;
      if (only != self) return self;
      only = other;
    }
    return only;
  }

  /// The core: all nodes of the search but those with one neighbour in both directions. Its edges point against the
  /// links, so that a tree leads to a destination.
  void build_core() {
    index_.assign(last_ - first_, 0);
    const auto is_core = [&](NodeId id) {
      const NodeId next = only_neighbour(id, topology_.links_from(id), &Link::to);
      const NodeId before = only_neighbour(id, topology_.links_to(id), &Link::from);
      return next == id || before == id || next != before;
    };
    for (std::uint32_t n = first_; n < last_; ++n) {
      if (!contains(NodeId{n}) || !is_core(NodeId{n})) continue;
      members_.push_back(NodeId{n});
      index_[n - first_] = static_cast<std::uint32_t>(members_.size());
    }
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
    std::vector<Weight> weights;
    for (const NodeId node : members_) {
      for (const LinkId id : topology_.links_to(node)) {
        const NodeId before = topology_.link(id).from;
        if (!contains(before) || index_[before.value - first_] == 0) continue;
        edges.emplace_back(place(node), place(before));
        weights.push_back({cost(id)});
      }
    }
    // The edges are sorted by source already: members_ ascends.
    core_.emplace(boost::edges_are_sorted, edges.begin(), edges.end(), weights.begin(),
                  static_cast<std::uint32_t>(members_.size()));
    tree_.resize(members_.size());
  }

  std::uint32_t place(NodeId id) const { return index_[id.value - first_] - 1; }
  bool in_core(NodeId id) const { return index_[id.value - first_] != 0; }

  /// Appends the cheapest way through the core; false where there is none.
  bool append_core(NodeId from, NodeId to, Way& way) {
    if (!core_) build_core();
    if (!in_core(from) || !in_core(to)) return false;
    if (tree_root_ != to) grow_tree(to);
    if (tree_[place(from)] == unreachable) return false;
    // Downhill to the root. Several links may be on a cheapest way: the one added first is taken, so that the answer
    // does not depend on the order in which the tree grew.
    for (NodeId at = from; at != to;) {
      const auto links = topology_.links_from(at);
      const auto next = std::find_if(links.begin(), links.end(), [&](LinkId id) {
        const NodeId other = topology_.link(id).to;
        if (!contains(other) || !in_core(other) || (other != to && !can_cross(other))) return false;
        return tree_[place(other)] != unreachable && tree_[place(other)] + cost(id) == tree_[place(at)];
      });
      ensure(next != links.end(), "a node of the tree of cheapest ways has a next link");
      way.push_back(*next);
      at = topology_.link(*next).to;
    }
    return true;
  }

  void grow_tree(NodeId to) {
    const boost::filtered_graph<Core, MayGrow> grown(*core_, MayGrow{this, &*core_, place(to)});
    boost::dijkstra_shortest_paths(
        grown, place(to),
        boost::weight_map(get(&Weight::cost, *core_))
            .distance_map(boost::make_iterator_property_map(tree_.begin(), get(boost::vertex_index, *core_)))
            .distance_compare(std::less<Cost>{})
            .distance_combine(std::plus<Cost>{})
            .distance_inf(unreachable)
            .distance_zero(Cost{}));
    tree_root_ = to;
  }

  const Topology& topology_;
  std::uint32_t first_, last_;
  std::function<Role(const Node&)> role_;
  std::vector<NodeId> members_;       ///< of the core, ascending
  std::vector<std::uint32_t> index_;  ///< [id - first_]: 1 + place in members_, 0 where it is no member
  std::optional<Core> core_;
  NodeId tree_root_ = no_node;
  std::vector<Cost> tree_;  ///< [place]: the cost from there to tree_root_
};

/// A free topology, or the fabric between hosts: what belongs to no host, and the NICs as ports.
Role fabric_role(const Node& node) {
  if (node.host) return node.kind == NodeKind::nic ? Role::end : Role::outside;
  if (node.kind == NodeKind::gpu) return Role::relay;
  return node.kind == NodeKind::memory ? Role::end : Role::transit;
}

/// The inside of a host without NVLink: only PCIe switches and CPUs are crossed.
Role host_role(const Node& node) {
  if (node.kind == NodeKind::cpu || node.kind == NodeKind::pcie_switch) return Role::transit;
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
    Search nvlink, pcie;
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
    last_inside.reset(new Inside{host, Search(topology, first, last, only_here(nvlink_role)),
                                 Search(topology, first, last, only_here(host_role))});
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
      if (const auto relay = best_relay(host, from, to)) {
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
  std::optional<std::pair<LinkId, LinkId>> best_relay(std::uint32_t host, NodeId from, NodeId to) {
    std::optional<std::pair<LinkId, LinkId>> best;
    std::pair<std::int64_t, std::uint32_t> best_key{};
    for (const LinkId id : topology.links_from(from)) {
      const Link& first = topology.link(id);
      if (first.kind != LinkKind::nvlink || topology.node(first.to).kind != NodeKind::gpu) continue;
      const auto second = inside(host).nvlink.best_between(first.to, to);
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
    const Gate out = gate(from, to, from, true);
    const Gate in = gate(from, to, to, false);
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

  /// The gate of `device`, one of the two ends of from -> to.
  Gate gate(NodeId from, NodeId to, NodeId device, bool outward) {
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
    for (const LinkId id : made.links) made.latency += topology.link(id).latency;
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
  Search fabric;
  std::vector<Host> hosts;
  std::unique_ptr<Inside> last_inside;
};

Routes::Routes(const Topology& topology, Transport transport) : impl_(std::make_unique<Impl>(topology, transport)) {}
Routes::~Routes() = default;
Routes::Routes(Routes&&) noexcept = default;

Path Routes::find(NodeId from, NodeId to) { return impl_->find(from, to); }
const Transport& Routes::transport() const { return impl_->transport; }

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
