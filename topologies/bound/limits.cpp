#include "topologies/bound/limits.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using Set = std::vector<bool>;  // [vertex]

std::size_t at(int i) { return static_cast<std::size_t>(i); }

Set complement(Set set) {
  set.flip();
  return set;
}

std::int64_t ranks_in(const Wires& wires, const Set& set) {
  std::int64_t n = 0;
  for (std::size_t v = 0; v < set.size(); ++v)
    if (set[v]) n += wires.vertices[v].ranks;
  return n;
}

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) fail_too_large("a flow of the bound");
  return product;
}

[[noreturn]] void fail_unreachable() {
  throw InputError("", "no links lead to some of the ranks, or from them",
                   "every rank must be able to reach all others");
}

/// amount / (what leaves the sets together). Throws if something must leave and nothing can.
Limit limit_of(const Wires& wires, std::int64_t amount, std::vector<Set> sets) {
  const std::int64_t capacity = leaving(wires, sets);
  if (capacity == 0) fail_unreachable();
  return {fraction(amount, capacity), std::move(sets), amount};
}

void keep_worse(Limit& worst, Limit other) {
  if (other.inverse_rate > worst.inverse_rate) worst = std::move(other);
}

Set only(const Wires& wires, int vertex) {
  Set set(wires.vertices.size());
  set[at(vertex)] = true;
  return set;
}

/// The vertices that hold ranks, each once.
std::vector<int> places(const Wires& wires) {
  std::vector<int> found;
  for (std::size_t v = 0; v < wires.vertices.size(); ++v)
    if (wires.vertices[v].ranks > 0) found.push_back(static_cast<int>(v));
  return found;
}

/// All vertices of each host that holds ranks.
std::vector<Set> hosts(const Wires& wires) {
  std::map<std::uint32_t, Set> found;
  for (const int v : places(wires))
    if (const auto host = wires.vertices[at(v)].host) found.try_emplace(*host, wires.vertices.size());
  for (auto& [host, set] : found)
    for (std::size_t v = 0; v < set.size(); ++v) set[v] = wires.vertices[v].host == host;
  std::vector<Set> sets;
  for (auto& [host, set] : found) sets.push_back(std::move(set));
  return sets;
}

/// The wires, and a source that feeds each rank at the rate 1 / inverse_rate; all times the numerator of that.
struct Fed {
  FlowGraph graph;
  int source;
  std::int64_t wanted;  // that must arrive at each rank

  Fed(const Wires& wires, const Fraction& inverse_rate)
      : graph(flow_graph(wires, inverse_rate.over)),
        source(graph.add_vertex()),
        wanted(times(inverse_rate.under, wires.n_ranks())) {
    for (const int v : places(wires)) graph.add_edge(source, v, times(inverse_rate.under, wires.vertices[at(v)].ranks));
  }

  /// Nothing if the rank gets what it wants; otherwise the cut that prevents it, as the set that sends.
  std::optional<Set> cut_before(int sink) {
    if (graph.max_flow(source, sink, wanted) >= wanted) return std::nullopt;
    Set sends = complement(graph.sink_side());
    sends.pop_back();  // the source
    return sends;
  }
};

/// What links carry both ways together.
FlowGraph undirected(const Wires& wires) {
  FlowGraph graph(static_cast<int>(wires.vertices.size()));
  const auto join = [&](int a, int b, std::int64_t capacity) {
    graph.add_edge(a, b, capacity);
    graph.add_edge(b, a, capacity);
  };
  std::vector<bool> of_medium(wires.vertices.size());
  for (const Wires::Medium& medium : wires.media) {
    of_medium[at(medium.in)] = of_medium[at(medium.out)] = true;
    join(medium.a, medium.b, medium.capacity);
  }
  for (const Wires::Edge& edge : wires.edges)
    if (!of_medium[at(edge.from)] && !of_medium[at(edge.to)]) join(edge.from, edge.to, edge.capacity);
  return graph;
}

/// The narrowest way into a rank.
Limit first_guess(const Wires& wires) {
  Limit worst;
  for (const int v : places(wires))
    keep_worse(worst, limit_of(wires, wires.n_ranks() - wires.vertices[at(v)].ranks, {complement(only(wires, v))}));
  return worst;
}

/// Media are shared by both directions: `amount` must cross each cut between two ranks, one way or the other, over what
/// it carries both ways together. Without media a cut of one direction is always as bad.
Limit both_ways_limit(const Wires& wires, std::int64_t amount) {
  Limit worst;
  if (wires.media.empty()) return worst;
  FlowGraph graph = undirected(wires);
  const std::vector<int> all = places(wires);
  std::int64_t least = FlowGraph::unlimited;
  for (const int v : all) {
    if (v == all.front()) continue;
    const std::int64_t flow = graph.max_flow(all.front(), v, least);
    if (flow == least) continue;
    least = flow;
    const Set side = graph.sink_side();
    worst = limit_of(wires, amount, {side, complement(side)});
  }
  return worst;
}

}  // namespace

Limit gather_limit(const Wires& wires, const std::vector<int>& sinks) {
  const std::vector<int> all = places(wires);
  if (all.size() < 2) return {};
  std::vector<int> asked;
  for (const int rank : sinks) asked.push_back(wires.ranks[at(rank)]);
  if (asked.empty()) asked = all;
  Limit worst = first_guess(wires);
  // Until a whole round of sinks finds no worse cut.
  std::optional<Fed> fed;
  for (std::size_t i = 0, satisfied = 0; satisfied < asked.size(); i = (i + 1) % asked.size()) {
    if (!fed) fed.emplace(wires, worst.inverse_rate);
    if (const auto sends = fed->cut_before(asked[i])) {
      Limit found = limit_of(wires, ranks_in(wires, *sends), {*sends});
      ensure(found.inverse_rate > worst.inverse_rate, "the cut of a flow that is too small is a worse one");
      worst = std::move(found);
      fed.reset();
      satisfied = 0;
    } else {
      ++satisfied;
    }
  }
  keep_worse(worst, both_ways_limit(wires, wires.n_ranks()));
  return worst;
}

Limit reduce_scatter_limit(const Wires& wires, const std::vector<int>& sinks) {
  Limit limit = gather_limit(reversed(wires), sinks);
  for (Set& set : limit.sets) set.flip();
  return limit;
}

Limit broadcast_limit(const Wires& wires, int root) {
  FlowGraph graph = flow_graph(wires);
  const int from = wires.ranks[at(root)];
  Limit worst;
  std::int64_t least = FlowGraph::unlimited;
  for (const int v : places(wires)) {
    if (v == from) continue;
    const std::int64_t flow = graph.max_flow(from, v, least);
    if (flow == least) continue;
    least = flow;
    worst = limit_of(wires, 1, {complement(graph.sink_side())});
  }
  return worst;
}

Limit reduce_limit(const Wires& wires, int root) {
  Limit limit = broadcast_limit(reversed(wires), root);
  for (Set& set : limit.sets) set.flip();
  return limit;
}

Limit scatter_limit(const Wires& wires, int root) {
  const int from = wires.ranks[at(root)];
  const std::int64_t blocks = wires.n_ranks() - wires.vertices[at(from)].ranks;
  if (blocks == 0) return {};
  Limit worst = limit_of(wires, blocks, {only(wires, from)});
  for (;;) {  // as in gather_limit()
    FlowGraph graph = flow_graph(wires, worst.inverse_rate.over);
    const int sink = graph.add_vertex();
    for (const int v : places(wires))
      if (v != from) graph.add_edge(v, sink, times(worst.inverse_rate.under, wires.vertices[at(v)].ranks));
    if (graph.max_flow(from, sink) >= times(worst.inverse_rate.under, blocks)) return worst;
    Set sends = complement(graph.sink_side());
    sends.pop_back();
    Limit found = limit_of(wires, wires.n_ranks() - ranks_in(wires, sends), {sends});
    ensure(found.inverse_rate > worst.inverse_rate, "the cut of a flow that is too small is a worse one");
    worst = std::move(found);
  }
}

Limit gather_to_root_limit(const Wires& wires, int root) {
  Limit limit = scatter_limit(reversed(wires), root);
  for (Set& set : limit.sets) set.flip();
  return limit;
}

namespace {

/// For each place the smallest set with it into which no more comes than it needs, at that rate: those that are tight.
std::vector<Set> tight_sets(const Wires& wires, const Fraction& inverse_rate) {
  std::vector<Set> found;
  Fed fed(wires, inverse_rate);
  for (const int v : places(wires)) {
    // The flow fills every tight set; if there is none, the smallest sink side is all but the source.
    fed.graph.max_flow(fed.source, v);
    Set sends = complement(fed.graph.sink_side());
    sends.pop_back();
    const std::int64_t ranks = ranks_in(wires, sends);
    if (ranks == 0 || fraction(ranks, leaving(wires, {sends})) != inverse_rate) continue;
    Set set = complement(std::move(sends));
    if (std::find(found.begin(), found.end(), set) == found.end()) found.push_back(std::move(set));
  }
  return found;
}

/// Those of the sets that share no vertex, the largest first, and the ranks that are in none of them one by one.
std::vector<Set> disjoint(const Wires& wires, std::vector<Set> sets) {
  std::stable_sort(sets.begin(), sets.end(),
                   [&](const Set& a, const Set& b) { return ranks_in(wires, a) > ranks_in(wires, b); });
  std::vector<Set> chosen;
  Set taken(wires.vertices.size());
  const auto take = [&](const Set& set) {
    for (std::size_t v = 0; v < set.size(); ++v)
      if (set[v] && taken[v]) return;
    for (std::size_t v = 0; v < set.size(); ++v)
      if (set[v]) taken[v] = true;
    chosen.push_back(set);
  };
  for (const Set& set : sets) take(set);
  for (const int v : places(wires)) take(only(wires, v));
  return chosen;
}

}  // namespace

Limit all_reduce_limit(const Wires& wires, const Fraction& gather_inverse_rate) {
  Limit worst;
  if (places(wires).size() < 2) return worst;
  const auto try_sets = [&](std::vector<Set> sets) {
    const auto k = static_cast<std::int64_t>(sets.size());
    if (k > 1) keep_worse(worst, limit_of(wires, 2 * (k - 1), std::move(sets)));
  };
  const auto try_cut = [&](const Set& set) {
    if (ranks_in(wires, set) < wires.n_ranks()) try_sets({set, complement(set)});
  };
  const std::vector<Set> tight = tight_sets(wires, gather_inverse_rate), nodes = hosts(wires);
  try_sets(disjoint(wires, {}));
  try_sets(disjoint(wires, nodes));
  try_sets(disjoint(wires, tight));
  for (const int v : places(wires)) try_cut(only(wires, v));
  keep_worse(worst, both_ways_limit(wires, 2));
  for (const Set& set : nodes) try_cut(set);
  for (const Set& set : tight) try_cut(set);
  return worst;
}

Limit all_reduce_in_fabric_limit(const Wires& wires) {
  const std::vector<int> all = places(wires);
  Limit worst;
  if (all.size() < 2) return worst;
  // Every cut between two ranks parts some rank from the first, one way or the other.
  keep_worse(worst, broadcast_limit(wires, 0));
  keep_worse(worst, reduce_limit(wires, 0));
  keep_worse(worst, both_ways_limit(wires, 2));
  return worst;
}

namespace {

/// The narrowest cut between some ranks and the others.
class Between {
 public:
  Between(const Wires& wires, FlowGraph graph)
      : wires_(wires), graph_(std::move(graph)), source_(graph_.add_vertex()), sink_(graph_.add_vertex()) {
    for (const int v : places(wires)) {
      places_.push_back(v);
      from_.push_back(graph_.add_edge(source_, v, 0));
      to_.push_back(graph_.add_edge(v, sink_, 0));
    }
  }

  /// From the ranks that are `inside`, [rank]; nothing if a device holds ranks of both sides.
  std::optional<Set> cut(const std::vector<bool>& inside) {
    std::map<int, std::pair<bool, bool>> sides;  // [vertex] whether some of its ranks are inside, outside
    for (int r = 0; r < wires_.n_ranks(); ++r)
      (inside[at(r)] ? sides[wires_.ranks[at(r)]].first : sides[wires_.ranks[at(r)]].second) = true;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const auto [in, out] = sides[places_[i]];
      if (in && out) return std::nullopt;
      graph_.set_capacity(from_[i], in ? FlowGraph::unlimited : 0);
      graph_.set_capacity(to_[i], out ? FlowGraph::unlimited : 0);
    }
    graph_.max_flow(source_, sink_);
    Set sends = complement(graph_.sink_side());
    sends.resize(wires_.vertices.size());
    return sends;
  }

 private:
  const Wires& wires_;
  FlowGraph graph_;
  int source_, sink_;
  std::vector<int> places_, from_, to_;
};

/// The sets of ranks around which crossing_limit() looks, [rank]. At most some hundred: each costs two flows.
std::vector<std::vector<bool>> sets_of_ranks(const Wires& wires) {
  const int n = wires.n_ranks(), stride = std::max(1, n / 128);
  std::vector<std::vector<bool>> sets;
  for (int r = 0; r < n; r += stride) {
    std::vector<bool> one(at(n)), run(at(n));
    one[at(r)] = true;
    std::fill(run.begin(), run.begin() + r + 1, true);
    sets.push_back(std::move(one));
    if (r + 1 < n) sets.push_back(std::move(run));
  }
  for (const Set& host : hosts(wires)) {
    if (sets.size() > 512) break;
    std::vector<bool> inside(at(n));
    for (int r = 0; r < n; ++r) inside[at(r)] = host[at(wires.ranks[at(r)])];
    if (std::find(inside.begin(), inside.end(), false) != inside.end()) sets.push_back(std::move(inside));
  }
  return sets;
}

}  // namespace

Limit crossing_limit(const Wires& wires, const Crossing& crossing) {
  Limit worst;
  if (places(wires).size() < 2) return worst;
  Between between(wires, flow_graph(wires)), both_ways(wires, undirected(wires));
  for (std::vector<bool>& inside : sets_of_ranks(wires)) {
    if (!wires.media.empty()) {
      const std::int64_t amount = crossing(inside);
      inside.flip();
      if (const auto side = both_ways.cut(inside); side && amount + crossing(inside) > 0)
        keep_worse(worst, limit_of(wires, amount + crossing(inside), {*side, complement(*side)}));
    }
    for (int way = 0; way < 2; ++way, inside.flip()) {
      const std::int64_t amount = crossing(inside);
      if (amount == 0) continue;
      if (auto sends = between.cut(inside)) keep_worse(worst, limit_of(wires, amount, {std::move(*sends)}));
    }
  }
  return worst;
}

}  // namespace ringsim
