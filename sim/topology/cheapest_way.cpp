#include "sim/topology/cheapest_way.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

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
}  // namespace

struct CheapestWay::Impl {
  Impl(const Topology& topology, std::uint32_t first, std::uint32_t last, std::function<Role(const Node&)> role,
       Usable usable)
      : topology_(topology), first_(first), last_(last), role_(std::move(role)), usable_(std::move(usable)) {}

  std::optional<Way> find(NodeId from, NodeId to) {
    if (from == to) return Way{};
    if (const auto link = direct(from, to)) return Way{*link};
    const NodeId entry = only_neighbor(from, topology_.links_from(from), &Link::to);
    const NodeId exit = only_neighbor(to, topology_.links_to(to), &Link::from);
    // A neighbor that may not be crossed leads nowhere: `to` is not the neighbor, or the link would be direct.
    if ((entry != from && !can_cross(entry)) || (exit != to && !can_cross(exit))) return std::nullopt;
    Way way;
    if (entry != from) way.push_back(*direct(from, entry));
    if (entry != exit && !append_core(entry, exit, way)) return std::nullopt;
    if (exit != to) way.push_back(*direct(exit, to));
    return way;
  }

  std::optional<Way> find(NodeId from, NodeId to, bool by_hops, const Pick& pick) {
    Way way;
    for (NodeId at = from; at != to;) {
      const std::vector<LinkId> candidates = next_links(at, to, by_hops);
      // With one way on, there is still the choice to leave it: a table may send data round.
      if (candidates.empty()) return std::nullopt;
      way.push_back(pick(at, candidates));
      at = topology_.link(way.back()).to;
      if (way.size() <= topology_.n_nodes()) continue;
      throw InputError("", "the tables send data from " + topology_.node(from).name + " to " + topology_.node(to).name +
                               " round in circles, through " + topology_.node(at).name);
    }
    return way;
  }

  std::optional<std::vector<Share>> spread(NodeId from, NodeId to) {
    std::vector<Share> used;
    std::map<NodeId, double> level{{from, 1.0}};  // nodes equally far from `to`, and which share is there
    while (level.begin()->first != to || level.size() > 1) {
      std::map<NodeId, double> next;
      for (const auto& [at, here] : level) {
        const std::vector<LinkId> candidates = next_links(at, to, true);
        if (candidates.empty()) return std::nullopt;
        for (const LinkId id : candidates) {
          used.push_back({id, here / static_cast<double>(candidates.size())});
          next[topology_.link(id).to] += used.back().share;
        }
      }
      level = std::move(next);
    }
    return used;
  }

  /// The links by which a cheapest way from `at` goes on, oldest first.
  std::vector<LinkId> next_links(NodeId at, NodeId to, bool by_hops) {
    std::vector<LinkId> next = links_between(at, to, by_hops);
    if (!next.empty()) return next;
    const NodeId entry = only_neighbor(at, topology_.links_from(at), &Link::to);
    if (entry != at) {
      if (can_cross(entry)) next = links_between(at, entry, by_hops);
      return next;
    }
    const NodeId exit = only_neighbor(to, topology_.links_to(to), &Link::from);
    if (exit != to && !can_cross(exit)) return {};
    const std::vector<Cost>* tree = tree_of(exit);
    if (tree == nullptr || !in_core(at) || (*tree)[place(at)] == unreachable) return {};
    for (const LinkId id : topology_.links_from(at)) {
      if (leads_on(*tree, at, id, exit, by_hops)) next.push_back(id);
    }
    return next;
  }

  /// All links from one node to another; without `by_hops` only the best, and those that equal it.
  std::vector<LinkId> links_between(NodeId from, NodeId to, bool by_hops) const {
    std::vector<LinkId> all;
    const auto best = direct(from, to);
    if (!best) return all;
    const auto out = topology_.links_from(from), in = topology_.links_to(to);
    for (const LinkId id : out.size() <= in.size() ? out : in) {
      const Link& link = topology_.link(id);
      if (link.from == from && link.to == to && is_usable(id) && (by_hops || cost(id) == cost(*best)))
        all.push_back(id);
    }
    return all;
  }

  struct Weight {
    Cost cost;
  };
  using Core = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, Weight, boost::no_property,
                                                  std::uint32_t, std::uint32_t>;
  /// Lets the tree grow only from its root and from nodes that may be crossed.
  struct MayGrow {
    const Impl* search = nullptr;
    const Core* core = nullptr;
    std::uint32_t root = 0;
    bool operator()(const Core::edge_descriptor& edge) const {
      const auto at = static_cast<std::uint32_t>(source(edge, *core));
      return at == root || search->can_cross(search->members_[at]);
    }
  };

  bool contains(NodeId id) const { return id.value >= first_ && id.value < last_ && role(id) != Role::outside; }
  Role role(NodeId id) const { return role_(topology_.node(id)); }
  bool is_usable(LinkId id) const { return !usable_ || usable_(id); }
  std::optional<LinkId> direct(NodeId from, NodeId to) const { return best_link(topology_, from, to, usable_); }
  bool can_cross(NodeId id) const { return role(id) >= Role::relay; }

  Cost cost(LinkId id) const {
    const Link& link = topology_.link(id);
    return {role(link.to) == Role::relay ? 1 : 0, 1, link.latency.count(), link.bandwidth.bytes_per_second};
  }

  /// The one node to which all of these links lead, or `self` if there are none or several.
  NodeId only_neighbor(NodeId self, std::span<const LinkId> links, NodeId Link::*end) const {
    NodeId only = self;
    for (const LinkId id : links) {
      const NodeId other = topology_.link(id).*end;
      if (other == only || !contains(other) || !is_usable(id)) continue;
      if (only != self) return self;
      only = other;
    }
    return only;
  }

  /// The core: all nodes of the search but those with one neighbor in both directions. Its edges point against the
  /// links, so that a tree leads to a destination.
  void build_core() {
    index_.assign(last_ - first_, 0);
    const auto is_core = [&](NodeId id) {
      const NodeId next = only_neighbor(id, topology_.links_from(id), &Link::to);
      const NodeId before = only_neighbor(id, topology_.links_to(id), &Link::from);
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
        if (!contains(before) || index_[before.value - first_] == 0 || !is_usable(id)) continue;
        edges.emplace_back(place(node), place(before));
        weights.push_back({cost(id)});
      }
    }
    // The edges are sorted by source already: members_ ascends.
    core_.emplace(boost::edges_are_sorted, edges.begin(), edges.end(), weights.begin(),
                  static_cast<std::uint32_t>(members_.size()));
  }

  std::uint32_t place(NodeId id) const { return index_[id.value - first_] - 1; }
  bool in_core(NodeId id) const { return index_[id.value - first_] != 0; }

  /// Appends the cheapest way through the core; false if there is none.
  bool append_core(NodeId from, NodeId to, Way& way) {
    const std::vector<Cost>* tree = tree_of(to);
    if (tree == nullptr || !in_core(from) || (*tree)[place(from)] == unreachable) return false;
    // Downhill to the root. Several links may be on a cheapest way: the one added first is taken, so that the answer
    // does not depend on the order in which the tree grew.
    for (NodeId at = from; at != to;) {
      const auto links = topology_.links_from(at);
      const auto next =
          std::find_if(links.begin(), links.end(), [&](LinkId id) { return leads_on(*tree, at, id, to, false); });
      ensure(next != links.end(), "a node of the tree of cheapest ways has a next link");
      way.push_back(*next);
      at = topology_.link(*next).to;
    }
    return true;
  }

  /// True if a cheapest way from `at` to the tree's root goes over the link.
  bool leads_on(const std::vector<Cost>& tree, NodeId at, LinkId id, NodeId root, bool by_hops) const {
    const NodeId other = topology_.link(id).to;
    if (!contains(other) || !in_core(other) || !is_usable(id) || (other != root && !can_cross(other))) return false;
    if (tree[place(other)] == unreachable) return false;
    const Cost whole = tree[place(other)] + cost(id);
    const Cost& least = tree[place(at)];
    return by_hops ? whole.relays == least.relays && whole.hops == least.hops : whole == least;
  }

  /// The cost from every node of the core to `root`; none if the root is not in the core.
  const std::vector<Cost>* tree_of(NodeId root) {
    if (!core_) build_core();
    if (!in_core(root)) return nullptr;
    const auto known = trees_.find(root.value);
    if (known != trees_.end()) return &known->second;
    constexpr std::size_t most_bytes = std::size_t{64} << 20;
    if ((trees_.size() + 1) * members_.size() * sizeof(Cost) > most_bytes) trees_.clear();
    return &trees_.emplace(root.value, grown_tree(root)).first->second;
  }

  std::vector<Cost> grown_tree(NodeId to) const {
    std::vector<Cost> tree(members_.size());
    const boost::filtered_graph<Core, MayGrow> grown(*core_, MayGrow{this, &*core_, place(to)});
    boost::dijkstra_shortest_paths(
        grown, place(to),
        boost::weight_map(get(&Weight::cost, *core_))
            .distance_map(boost::make_iterator_property_map(tree.begin(), get(boost::vertex_index, *core_)))
            .distance_compare(std::less<Cost>{})
            .distance_combine(std::plus<Cost>{})
            .distance_inf(unreachable)
            .distance_zero(Cost{}));
    return tree;
  }

  const Topology& topology_;
  std::uint32_t first_, last_;
  std::function<Role(const Node&)> role_;
  Usable usable_;
  std::vector<NodeId> members_;       ///< of the core, ascending
  std::vector<std::uint32_t> index_;  ///< [id - first_]: 1 + place in members_, 0 if it is no member
  std::optional<Core> core_;
  std::unordered_map<std::uint32_t, std::vector<Cost>> trees_;  ///< by root: [place] the cost from there to it
};

CheapestWay::CheapestWay(const Topology& topology, std::uint32_t first, std::uint32_t last,
                         std::function<Role(const Node&)> role, Usable usable)
    : impl_(std::make_unique<Impl>(topology, first, last, std::move(role), std::move(usable))) {}
CheapestWay::~CheapestWay() = default;
CheapestWay::CheapestWay(CheapestWay&&) noexcept = default;

std::optional<Way> CheapestWay::find(NodeId from, NodeId to) { return impl_->find(from, to); }
std::optional<Way> CheapestWay::find(NodeId from, NodeId to, bool by_hops, const Pick& pick) {
  return impl_->find(from, to, by_hops, pick);
}
std::optional<std::vector<Share>> CheapestWay::spread(NodeId from, NodeId to) { return impl_->spread(from, to); }

std::optional<LinkId> best_link(const Topology& topology, NodeId from, NodeId to, const Usable& usable) {
  const auto out = topology.links_from(from), in = topology.links_to(to);
  const auto key = [&](LinkId id) {
    const Link& link = topology.link(id);
    return std::tuple(link.latency, -link.bandwidth.bytes_per_second, id);
  };
  std::optional<LinkId> best;
  for (const LinkId id : out.size() <= in.size() ? out : in) {
    const Link& link = topology.link(id);
    if (link.from == from && link.to == to && (!usable || usable(id)) && (!best || key(id) < key(*best))) best = id;
  }
  return best;
}

}  // namespace ringsim
