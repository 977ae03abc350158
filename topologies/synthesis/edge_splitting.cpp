#include "topologies/synthesis/edge_splitting.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/bound/flow_graph.hpp"

namespace ringsim {

namespace {

/// Tells if a run of edges is part of a preferred way. Keeps hashes: if two ways have the same hash, one more way is
/// preferred.
class WayParts {
 public:
  explicit WayParts(const PreferredWays& ways) : any_(ways.empty()) {
    for (const std::vector<int>& way : ways)
      for (std::size_t first = 0; first < way.size(); ++first) {
        std::uint64_t hash = seed;
        for (std::size_t i = first; i < way.size(); ++i) hashes_.push_back(hash = mixed(hash, way[i]));
      }
    std::sort(hashes_.begin(), hashes_.end());
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
  }
  bool has(const std::vector<int>& first, const std::vector<int>& second) const {
    if (any_) return true;
    std::uint64_t hash = seed;
    for (const int edge : first) hash = mixed(hash, edge);
    for (const int edge : second) hash = mixed(hash, edge);
    return std::binary_search(hashes_.begin(), hashes_.end(), hash);
  }

 private:
  static constexpr std::uint64_t seed = 0x9E3779B97F4A7C15U;
  static std::uint64_t mixed(std::uint64_t hash, int edge) {
    hash ^= static_cast<std::uint64_t>(edge) + seed + (hash << 6U) + (hash >> 2U);
    hash *= 0xBF58476D1CE4E5B9U;
    return hash ^ (hash >> 31U);
  }
  bool any_;
  std::vector<std::uint64_t> hashes_;
};

/// So much of a pair of edges of a switch. Edges of one device back to itself vanish.
struct EdgePair {
  std::size_t in = 0, out = 0;
  std::int64_t amount = 0;
};

enum class PairKind { between_hosts, within_host, other_way, back };

class SwitchRemoval {
 public:
  SwitchRemoval(TreeGraph& graph, const PreferredWays& preferred, const Breath& breath)
      : graph_(graph), preferred_(preferred), breath_(breath), fit_(breath), is_rank_(graph.host.size()) {
    for (const int vertex : graph.ranks) is_rank_[index(vertex)] = true;
  }

  void run() {
    for (std::vector<int> some = next_switches(); !some.empty(); some = next_switches()) {
      std::vector<EdgePair> even;
      for (const int w : some) plan(w, even);
      replace(even);
      std::vector<EdgePair> rest;
      for (const int w : some) pair_off(w, rest);
      drop(rest);
      for (const int w : some) finish(w);
      std::erase_if(graph_.edges, [](const TreeGraph::Edge& edge) { return edge.capacity == 0; });
    }
  }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  TreeGraph::Edge& edge(std::size_t e) { return graph_.edges[e]; }

  /// Switches of which no two are neighbors, those with the fewest edges first: each way through a NIC is clear then.
  std::vector<int> next_switches() const {
    std::map<int, int> degree;
    for (const TreeGraph::Edge& each : graph_.edges) {
      if (!is_rank_[index(each.from)]) ++degree[each.from];
      if (!is_rank_[index(each.to)]) ++degree[each.to];
    }
    std::vector<int> order;
    for (const auto& [vertex, edges] : degree) order.push_back(vertex);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return degree[a] < degree[b]; });
    std::vector<bool> taken(graph_.host.size()), near(graph_.host.size());
    std::vector<std::vector<int>> neighbors(graph_.host.size());
    for (const TreeGraph::Edge& each : graph_.edges) {
      neighbors[index(each.from)].push_back(each.to);
      neighbors[index(each.to)].push_back(each.from);
    }
    std::vector<int> chosen;
    for (const int w : order) {
      if (near[index(w)] || degree[w] > 2 * degree[order.front()]) continue;
      chosen.push_back(w);
      for (const int v : neighbors[index(w)]) near[index(v)] = true;
    }
    return chosen;
  }

  std::vector<std::size_t> edges_of(int w, bool in) const {
    std::vector<std::size_t> found;
    for (std::size_t e = 0; e < graph_.edges.size(); ++e)
      if ((in ? graph_.edges[e].to : graph_.edges[e].from) == w && graph_.edges[e].capacity > 0) found.push_back(e);
    return found;
  }

  PairKind kind_of(std::size_t in, std::size_t out) const {
    const TreeGraph::Edge &a = graph_.edges[in], &b = graph_.edges[out];
    if (a.from == b.to) return PairKind::back;
    if (!preferred_.has(a.way, b.way)) return PairKind::other_way;
    const auto &from = graph_.host[index(a.from)], &to = graph_.host[index(b.to)];
    return from && to && *from == *to ? PairKind::within_host : PairKind::between_hosts;
  }

  /// Spreads the capacity of w over its preferred pairs, as evenly as it goes.
  void plan(int w, std::vector<EdgePair>& out) const {
    const std::vector<std::size_t> ins = edges_of(w, true), outs = edges_of(w, false);
    std::map<int, std::size_t> place;  // of both ends, so that each in-edge begins with its own successor
    for (const std::size_t e : ins) place[graph_.edges[e].from];
    for (const std::size_t e : outs) place[graph_.edges[e].to];
    std::size_t n = 0;
    for (auto& [vertex, at] : place) at = n++;
    struct Candidate {
      std::size_t turn, in, out;  // in, out: places in ins and outs
    };
    std::vector<Candidate> candidates[2];
    for (std::size_t i = 0; i < ins.size(); ++i)
      for (std::size_t o = 0; o < outs.size(); ++o) {
        const PairKind kind = kind_of(ins[i], outs[o]);
        if (kind != PairKind::between_hosts && kind != PairKind::within_host) continue;
        const std::size_t turn = (place[graph_.edges[outs[o]].to] + n - place[graph_.edges[ins[i]].from]) % n;
        candidates[kind == PairKind::within_host].push_back({turn, i, o});
      }
    std::vector<std::int64_t> left_in, left_out;
    for (const std::size_t e : ins) left_in.push_back(graph_.edges[e].capacity);
    for (const std::size_t e : outs) left_out.push_back(graph_.edges[e].capacity);
    for (auto& some : candidates) {
      std::stable_sort(some.begin(), some.end(), [](const auto& a, const auto& b) { return a.turn < b.turn; });
      std::vector<std::int64_t> given(some.size());
      for (bool gave = true; gave;) {
        gave = false;
        std::vector<std::int64_t> open_in(ins.size()), open_out(outs.size());
        for (const Candidate& each : some)
          if (left_in[each.in] > 0 && left_out[each.out] > 0) ++open_in[each.in], ++open_out[each.out];
        const std::vector<std::int64_t> had_in = left_in, had_out = left_out;
        for (std::size_t c = 0; c < some.size(); ++c) {
          const auto [turn, i, o] = some[c];
          if (left_in[i] == 0 || left_out[o] == 0) continue;
          const std::int64_t share =
              std::max<std::int64_t>(1, std::min(had_in[i] / open_in[i], had_out[o] / open_out[o]));
          const std::int64_t amount = std::min({share, left_in[i], left_out[o]});
          given[c] += amount;
          left_in[i] -= amount;
          left_out[o] -= amount;
          gave = true;
        }
      }
      for (std::size_t c = 0; c < some.size(); ++c)
        if (given[c] > 0) out.push_back({ins[some[c].in], outs[some[c].out], given[c]});
    }
  }

  /// What is left of w in pairs that may be dropped whole: from a device back to itself, then between ranks. Other
  /// switches would no longer be balanced.
  void pair_off(int w, std::vector<EdgePair>& out) const {
    const std::vector<std::size_t> ins = edges_of(w, true), outs = edges_of(w, false);
    std::map<std::size_t, std::int64_t> left;
    for (const auto* some : {&ins, &outs})
      for (const std::size_t e : *some) left[e] = graph_.edges[e].capacity;
    for (const bool back : {true, false})
      for (const std::size_t in : ins)
        for (const std::size_t o : outs) {
          const int u = graph_.edges[in].from, t = graph_.edges[o].to;
          const std::int64_t amount = std::min(left[in], left[o]);
          if (amount == 0 || !(back ? u == t : is_rank_[index(u)] && is_rank_[index(t)])) continue;
          out.push_back({in, o, amount});
          left[in] -= amount;
          left[o] -= amount;
        }
  }

  /// Replaces as much of the pairs as may be.
  void replace(std::span<const EdgePair> pairs) {
    if (pairs.empty()) return;
    if (pairs.size() == 1) return split(pairs.front());
    const std::size_t had = graph_.edges.size();
    for (const EdgePair& pair : pairs) apply(pair, true);
    if (fit_(graph_)) return;
    graph_.edges.resize(had);
    for (const EdgePair& pair : pairs) undo(pair);
    replace(pairs.first(pairs.size() / 2));
    replace(pairs.subspan(pairs.size() / 2));
  }

  /// Drops the pairs that no tree needs.
  void drop(std::span<const EdgePair> pairs) {
    if (pairs.empty()) return;
    for (const EdgePair& pair : pairs) apply(pair, false);
    if (fit_(graph_)) return;
    for (const EdgePair& pair : pairs) undo(pair);
    if (pairs.size() == 1) return;
    drop(pairs.first(pairs.size() / 2));
    drop(pairs.subspan(pairs.size() / 2));
  }

  void apply(const EdgePair& pair, bool keep) {
    edge(pair.in).capacity -= pair.amount;
    edge(pair.out).capacity -= pair.amount;
    if (!keep || edge(pair.in).from == edge(pair.out).to) return;
    TreeGraph::Edge made{edge(pair.in).from, edge(pair.out).to, pair.amount, edge(pair.in).way};
    made.way.insert(made.way.end(), edge(pair.out).way.begin(), edge(pair.out).way.end());
    graph_.edges.push_back(std::move(made));
  }
  void undo(const EdgePair& pair) {
    edge(pair.in).capacity += pair.amount;
    edge(pair.out).capacity += pair.amount;
  }

  void split(EdgePair pair) {
    pair.amount = std::min({pair.amount, edge(pair.in).capacity, edge(pair.out).capacity});
    pair.amount = slack(pair, true);
    if (pair.amount > 0) pair.amount = slack(pair, false);
    if (pair.amount > 0) apply(pair, true);
  }

  /// The least that a cut between u, t and w has to spare, at most pair.amount. `into`: of cuts that w is behind.
  std::int64_t slack(const EdgePair& pair, bool into) const {
    const int u = graph_.edges[pair.in].from, w = graph_.edges[pair.in].to, t = graph_.edges[pair.out].to;
    FlowGraph flows(graph_.n_vertices());
    for (const TreeGraph::Edge& each : graph_.edges)
      if (each.capacity > 0) flows.add_edge(each.from, each.to, each.capacity);
    const int source = flows.add_vertex();
    for (std::size_t r = 0; r < graph_.ranks.size(); ++r)
      if (graph_.wanted[r] > 0) flows.add_edge(source, graph_.ranks[r], graph_.wanted[r]);
    const int from = into ? u : w, to = into ? w : t;
    flows.add_edge(from, source, FlowGraph::unlimited);
    if (u != t) flows.add_edge(u, t, FlowGraph::unlimited);
    const std::int64_t all = graph_.n_trees();
    std::int64_t least = pair.amount;
    for (const int v : graph_.ranks) {
      if (into && (v == u || v == t)) continue;  // u and t are on the other side of such a cut
      if (breath_) breath_();
      const int door = v == to ? -1 : flows.add_edge(v, to, FlowGraph::unlimited);
      least = std::min(least, std::max<std::int64_t>(0, flows.max_flow(from, to, all + least) - all));
      if (door >= 0) flows.set_capacity(door, 0);
      if (least == 0) break;
    }
    return least;
  }

  /// Splits what is left of w, pair by pair, the preferred ones first.
  void finish(int w) {
    for (const std::size_t in : edges_of(w, true)) {
      std::vector<std::size_t> outs = edges_of(w, false);
      std::stable_sort(outs.begin(), outs.end(),
                       [&](std::size_t a, std::size_t b) { return kind_of(in, a) < kind_of(in, b); });
      for (const std::size_t out : outs) {
        if (edge(in).capacity == 0) break;
        split({in, out, edge(in).capacity});
      }
    }
    ensure(edges_of(w, true).empty() && edges_of(w, false).empty(), "a balanced switch can be split off whole");
  }

  TreeGraph& graph_;
  WayParts preferred_;
  Breath breath_;
  TreesFit fit_;
  std::vector<bool> is_rank_;
};

}  // namespace

void remove_switches(TreeGraph& graph, const PreferredWays& preferred, const Breath& breath) {
  SwitchRemoval(graph, preferred, breath).run();
}

}  // namespace ringsim
