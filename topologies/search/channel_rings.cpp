#include "topologies/search/channel_rings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/splitmix.hpp"

namespace ringsim {

namespace {

/// Hops tried for one ring in one node; NCCL's own limit (NCCL_SEARCH_TIMEOUT) is of this size.
constexpr int most_hops_tried = 20'000;

/// Orders in which GPUs are tried, on a mesh of one node.
constexpr int most_attempts = 64;
/// The most rings on one link, whose rate they share: NCCL's speeds go down to 3 GB/s of 40 in the same way.
constexpr int most_that_share = 32;

/// What a hop takes of the resources on its way, for each byte.
struct Hop {
  std::vector<std::pair<std::uint32_t, double>> takes;  // resource, share; each once
  std::vector<std::uint32_t> starts;                    // the resource of its first link
  std::size_t legs = 0;                                 // 0: there is no way
};

/// Hops between ranks, found once. Within a node they are the same for all channels.
class Hops {
 public:
  Hops(const Topology& topology, std::span<const NodeId> ranks, const Transport& transport,
       const std::atomic<bool>* stop)
      : topology_(topology), ranks_(ranks), routes_(topology, as_nccl_sees(transport)), stop_(stop) {}

  void stop_if_asked() const {
    if (stop_ != nullptr && stop_->load(std::memory_order_relaxed))
      throw Interrupted("stopped while rings for its channels were searched for");
  }

  const Hop& find(Actor from, Actor to, int channel) {
    const auto host = [&](Actor rank) { return topology_.node(node(rank)).host; };
    const bool inside = host(from) == host(to);
    const auto [entry, is_new] = known_.try_emplace({from, to, inside ? 0 : channel});
    if (!is_new) return entry->second;
    stop_if_asked();
    return entry->second = made(node(from), node(to), channel);
  }
  double rate(std::uint32_t resource) const {
    return static_cast<double>(topology_.resource({resource}).bandwidth.bytes_per_second);
  }
  /// The most that one ring could bring over the hop.
  double width(const Hop& hop) const {
    double least = hop.legs == 0 ? 0 : 1e18;
    for (const auto& [resource, share] : hop.takes) least = std::min(least, rate(resource) / share);
    return least;
  }

 private:
  static Transport as_nccl_sees(Transport transport) {
    transport.gpudirect_costs = false;
    transport.acs = false;
    return transport;
  }
  NodeId node(Actor rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  Hop made(NodeId from, NodeId to, int channel) {
    Hop hop;
    try {
      const Path path = routes_.find(from, to, static_cast<std::uint32_t>(channel));
      std::map<std::uint32_t, double> takes;
      for (const Leg& leg : path.legs)
        for (std::size_t l = 0; l < leg.links.size(); ++l)
          takes[topology_.link(leg.links[l]).resource.value] += leg.share(l);
      hop.takes.assign(takes.begin(), takes.end());
      hop.legs = path.legs.size();
      if (!path.legs.empty()) hop.starts = {topology_.link(path.legs.front().links.front()).resource.value};
    } catch (const InputError&) {
      // No path, no hop; if no ring can do without it, that is said.
    }
    return hop;
  }

  const Topology& topology_;
  std::span<const NodeId> ranks_;
  Routes routes_;
  std::map<std::tuple<Actor, Actor, int>, Hop> known_;
  const std::atomic<bool>* stop_;
};

/// The ranks by node, in the order of each node's first rank.
std::vector<std::vector<Actor>> by_node(const Topology& topology, std::span<const NodeId> ranks) {
  std::vector<std::vector<Actor>> nodes;
  std::map<std::uint32_t, std::size_t> number;
  for (Actor r = 0; r < static_cast<Actor>(ranks.size()); ++r) {
    const auto host = topology.node(ranks[static_cast<std::size_t>(r)]).host;
    if (!host) {  // of a free topology: all in one
      if (nodes.empty()) nodes.emplace_back();
      nodes.front().push_back(r);
      continue;
    }
    const auto [entry, is_new] = number.try_emplace(*host, nodes.size());
    if (is_new) nodes.emplace_back();
    nodes[entry->second].push_back(r);
  }
  return nodes;
}

/// As many rings of one speed as find room.
class Search {
 public:
  Search(Hops& hops, const std::vector<std::vector<Actor>>& nodes, double speed)
      : hops_(hops), nodes_(nodes), speed_(speed) {}

  /// On one node, if rings that are found early may leave no room for others (a mesh of NVLinks), some orders in
  /// which to try GPUs; NCCL goes back over rings instead.
  std::vector<std::vector<Actor>> find() {
    std::vector<std::vector<Actor>> best = find_once();
    const std::size_t bound = nodes_.size() == 1 ? most_at_once() : 0;
    for (attempt_ = 1; attempt_ <= most_attempts && best.size() < bound; ++attempt_) {
      used_.clear();
      if (auto rings = find_once(); rings.size() > best.size()) best = std::move(rings);
    }
    return best;
  }

 private:
  /// No more than leave any GPU.
  std::size_t most_at_once() {
    double least = most_channel_rings;
    for (const Actor from : nodes_.front()) {
      std::set<std::uint32_t> first;
      double rate = 0;
      for (const Actor to : nodes_.front())
        if (from != to)
          for (const std::uint32_t resource : hops_.find(from, to, 0).starts)
            if (first.insert(resource).second) rate += hops_.rate(resource);
      least = std::min(least, rate * (1 + 1e-9) / speed_);
    }
    return static_cast<std::size_t>(least);
  }

  std::vector<std::vector<Actor>> find_once() {
    std::vector<std::vector<Actor>> rings;
    std::size_t most = 0;  // GPUs of a node
    for (const auto& node : nodes_) most = std::max(most, node.size());
    // A ring that finds no room from one GPU on may find it from another; on one node all are the same.
    for (std::size_t start = 0; start < (nodes_.size() == 1 ? 1 : most);) {
      if (static_cast<int>(rings.size()) == most_channel_rings) break;
      channel_ = static_cast<int>(rings.size());
      auto ring = ring_from(start);
      if (!ring) {
        ++start;
        continue;
      }
      rings.push_back(std::move(*ring));
      // Most cables have room for the way back, which other rings would cut into.
      if (nodes_.size() > 1 || rings.size() == most_channel_rings) continue;
      if (std::vector<Actor> back(rings.back().rbegin(), rings.back().rend()); take_ring(back)) rings.push_back(back);
    }
    return rings;
  }

  std::optional<std::vector<Actor>> ring_from(std::size_t start) {
    for (const bool direct : {true, false}) {
      const std::map<std::uint32_t, double> before = used_;
      order_.clear();
      bool found = true;
      for (std::size_t n = 0; n < nodes_.size() && found; ++n) {
        hops_.stop_if_asked();
        const auto& next = nodes_[(n + 1) % nodes_.size()];
        exit_to_ = next[start % next.size()];
        direct_exit_ = direct && nodes_.size() > 1;
        tries_ = 0;
        const auto& node = nodes_[n];
        visited_.assign(node.size(), false);
        found = has_ways_out(node, start % node.size()) && extend(node, start % node.size(), 1);
      }
      if (found) return order_;
      used_ = before;
      if (nodes_.size() == 1) break;
    }
    return std::nullopt;
  }

  /// True if every GPU of the node has room for some hop to another one, but for one that may leave the node instead,
  /// and whether one can leave: else all orders would be tried in vain.
  bool has_ways_out(const std::vector<Actor>& node, std::size_t start) {
    int n_exits = 0, n_ends = 0;
    for (std::size_t g = 0; g < node.size(); ++g) {
      const bool may_exit = (g != start || node.size() == 1) && is_exit(hops_.find(node[g], exit_to_, channel_));
      const auto leads_on = [&](Actor to) { return to != node[g] && has_room(hops_.find(node[g], to, channel_)); };
      n_exits += may_exit ? 1 : 0;
      if (std::any_of(node.begin(), node.end(), leads_on)) continue;
      if (!may_exit || ++n_ends > 1) return false;
    }
    return n_exits > 0;
  }
  /// True if a GPU other than `next` that is not in the ring yet can leave the node: without one, no order that goes on
  /// to `next` now ends.
  bool leaves_an_exit(const std::vector<Actor>& node, std::size_t next) {
    for (std::size_t g = 0; g < node.size(); ++g)
      if (g != next && !visited_[g] && is_exit(hops_.find(node[g], exit_to_, channel_))) return true;
    return false;
  }
  bool is_exit(const Hop& hop) const { return has_room(hop) && (!direct_exit_ || hop.legs == 1); }

  /// Takes the GPU with that number as the `count`-th of its node, and goes on from there.
  bool extend(const std::vector<Actor>& node, std::size_t here, std::size_t count) {
    order_.push_back(node[here]);
    visited_[here] = true;
    if (count == node.size())
      if (const Hop& out = hops_.find(order_.back(), exit_to_, channel_); is_exit(out)) return take(out);
    for (const std::size_t next : choices(node, here)) {
      if (count + 1 < node.size() && !leaves_an_exit(node, next)) continue;
      if (++tries_ > most_hops_tried) break;
      const Hop& hop = hops_.find(node[here], node[next], channel_);
      if (!take(hop)) continue;
      if (extend(node, next, count + 1)) return true;
      give_back(hop);
    }
    order_.pop_back();
    visited_[here] = false;
    return false;
  }

  /// The GPUs to which the ring may go on: directly before through other GPUs (a relay takes what belongs to two hops),
  /// then in the order of numbers, or, in later attempts, in one of chance.
  std::vector<std::size_t> choices(const std::vector<Actor>& node, std::size_t here) {
    std::vector<std::tuple<std::size_t, std::uint64_t, std::size_t>> found;
    for (std::size_t d = 1; d < node.size(); ++d) {
      const std::size_t next = (here + d) % node.size();
      if (visited_[next]) continue;
      const auto ring =
          static_cast<std::uint64_t>(attempt_) * most_channel_rings + static_cast<std::uint64_t>(channel_);
      const std::uint64_t chance = splitmix((ring * 64 + order_.size()) * 4096 + next);
      found.emplace_back(hops_.find(node[here], node[next], channel_).legs, attempt_ == 0 ? d : chance, next);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::size_t> sorted;
    for (const auto& each : found) sorted.push_back(std::get<2>(each));
    return sorted;
  }

  bool has_room(const Hop& hop) const {
    const auto left = [&](std::uint32_t resource) {
      const auto used = used_.find(resource);
      return hops_.rate(resource) * (1 + 1e-9) - (used == used_.end() ? 0 : used->second);  // for sums of thirds
    };
    return hop.legs > 0 && std::all_of(hop.takes.begin(), hop.takes.end(),
                                       [&](const auto& each) { return each.second * speed_ <= left(each.first); });
  }
  bool take(const Hop& hop) {
    if (!has_room(hop)) return false;
    for (const auto& [resource, share] : hop.takes) used_[resource] += share * speed_;
    return true;
  }
  bool take_ring(const std::vector<Actor>& ring) {
    const std::map<std::uint32_t, double> before = used_;
    for (std::size_t i = 0; i < ring.size(); ++i) {
      if (take(hops_.find(ring[i], ring[(i + 1) % ring.size()], channel_))) continue;
      used_ = before;
      return false;
    }
    return true;
  }
  void give_back(const Hop& hop) {
    for (const auto& [resource, share] : hop.takes) used_[resource] -= share * speed_;
  }

  Hops& hops_;
  const std::vector<std::vector<Actor>>& nodes_;
  double speed_;
  std::map<std::uint32_t, double> used_;  // by resource, bytes/s
  std::vector<Actor> order_;
  std::vector<bool> visited_;  // [GPU of the node]
  Actor exit_to_ = 0;
  bool direct_exit_ = false;
  int channel_ = 0, tries_ = 0, attempt_ = 0;
};

/// Speeds worth trying: what a hop is wide, and parts of it.
std::set<double, std::greater<>> speeds(Hops& hops, const std::vector<std::vector<Actor>>& nodes) {
  std::set<double, std::greater<>> found;
  const auto add = [&](Actor from, Actor to) {
    if (from == to) return;
    const double width = hops.width(hops.find(from, to, 0));
    for (int rings = 1; rings <= most_that_share && width > 0; ++rings) found.insert(width / rings);
  };
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto &node = nodes[n], &next = nodes[(n + 1) % nodes.size()];
    for (const Actor from : node)
      for (const Actor to : node) add(from, to);
    for (std::size_t g = 0; g < next.size() && nodes.size() > 1; ++g) add(node[g % node.size()], next[g]);
  }
  return found;
}

}  // namespace

ChannelRings channel_rings(const Topology& topology, std::span<const NodeId> ranks, const Transport& transport,
                           const std::atomic<bool>* stop) {
  ChannelRings best{.orders = {}, .each = {0}};
  if (ranks.size() < 2) {
    best.orders.assign(1, std::vector<Actor>(ranks.size(), 0));
    return best;
  }
  Hops hops(topology, ranks, transport, stop);
  const std::vector<std::vector<Actor>> nodes = by_node(topology, ranks);
  double best_each = 0, best_sum = 0, last = 1e30;
  for (const double speed : speeds(hops, nodes)) {
    if (speed < 0.49 * best_each) break;
    if (speed > last * 0.999) continue;  // as good as the same
    last = speed;
    std::vector<std::vector<Actor>> rings = Search(hops, nodes, speed).find();
    const double sum = speed * static_cast<double>(rings.size());
    if (sum <= best_sum * (1 + 1e-9)) continue;
    best_each = speed;
    best_sum = sum;
    best.orders = std::move(rings);
  }
  if (best.orders.empty())
    throw InputError("",
                     "expected rings for the channels, found no closed path through all ranks with enough bandwidth");
  best.each = {static_cast<std::int64_t>(best_each)};
  return best;
}

}  // namespace ringsim
