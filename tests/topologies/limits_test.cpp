// Bounds: the table of known optima to the last digit, and equality with a search of all cuts.
#include <doctest/doctest.h>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/bound_graphs.hpp"
#include "tests/support/complaint.hpp"
#include "topologies/bound/flow_graph.hpp"
#include "topologies/bound/fraction.hpp"
#include "topologies/bound/limits.hpp"
#include "topologies/bound/wires.hpp"

namespace limits_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

Wires wires(const test::BareGraph& graph) {
  const Topology topology = graph.build();
  return wires_of(topology, topology.ranks());
}

/// In seconds per GB.
std::string inverse(const Limit& limit, const Wires& of) {
  return to_string(limit.inverse_rate * fraction(1'000'000'000, of.unit));
}

/// What leaves a set, edge by edge. For wires without media.
std::int64_t edges_out_of(const Wires& w, const std::vector<bool>& set) {
  std::int64_t sum = 0;
  for (const Wires::Edge& edge : w.edges)
    if (set[static_cast<std::size_t>(edge.from)] && !set[static_cast<std::size_t>(edge.to)]) sum += edge.capacity;
  return sum;
}

/// The maximum over all sets of vertices, one by one.
Fraction worst_cut(const Wires& w, bool& reachable) {
  Fraction worst;
  reachable = true;
  const auto n = w.vertices.size();
  for (std::uint32_t mask = 1; mask < (1U << n); ++mask) {
    std::vector<bool> set(n);
    std::int64_t inside = 0;
    for (std::size_t v = 0; v < n; ++v) {
      set[v] = (mask >> v & 1U) != 0;
      inside += set[v] ? w.vertices[v].ranks : 0;
    }
    if (inside == 0 || inside == w.n_ranks()) continue;
    const std::int64_t out = edges_out_of(w, set);
    if (out == 0) {
      reachable = false;
      continue;
    }
    worst = std::max(worst, fraction(inside, out));
  }
  return worst;
}

/// What leaves the sets together, straight from the links of the topology. For full-duplex cables.
std::int64_t rate_out_of(const Topology& topology, const Wires& w, const std::vector<std::vector<bool>>& sets) {
  std::int64_t sum = 0;
  for (const std::vector<bool>& set : sets) {
    std::vector<bool> inside(topology.n_nodes());
    for (std::size_t v = 0; v < set.size(); ++v)
      if (set[v]) inside[w.vertices[v].node.value] = true;
    for (const Link& link : topology.links())
      if (inside[link.from.value] && !inside[link.to.value]) sum += link.bandwidth.bytes_per_second;
  }
  return sum;
}

std::int64_t gpus_in(const Topology& topology, const Wires& w, const std::vector<bool>& set) {
  std::int64_t n = 0;
  for (std::size_t v = 0; v < set.size(); ++v)
    n += set[v] && topology.node(w.vertices[v].node).kind == NodeKind::gpu ? 1 : 0;
  return n;
}

/// The maximum over all sets with the root and without some rank, of amount(ranks outside) / what leaves.
template <class Amount>
Fraction worst_cut_around(const Wires& w, int root, Amount amount) {
  Fraction worst;
  const auto n = w.vertices.size();
  for (std::uint32_t mask = 1; mask < (1U << n); ++mask) {
    if ((mask >> w.ranks[static_cast<std::size_t>(root)] & 1U) == 0) continue;
    std::vector<bool> set(n);
    std::int64_t outside = 0;
    for (std::size_t v = 0; v < n; ++v) {
      set[v] = (mask >> v & 1U) != 0;
      outside += set[v] ? 0 : w.vertices[v].ranks;
    }
    if (outside > 0) worst = std::max(worst, fraction(amount(outside), edges_out_of(w, set)));
  }
  return worst;
}

struct RandomWires {
  Wires wires;
  explicit RandomWires(std::mt19937& random) {
    const int compute = 2 + static_cast<int>(random() % 4), switches = static_cast<int>(random() % 4);
    const int n = compute + switches;
    wires.vertices.resize(static_cast<std::size_t>(n));
    for (int r = 0; r < compute; ++r) {
      wires.ranks.push_back(r);
      wires.vertices[static_cast<std::size_t>(r)].ranks = 1;
    }
    const int n_edges = n + static_cast<int>(random() % static_cast<unsigned>(2 * n));
    for (int e = 0; e < n_edges; ++e) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(n));
      const int to = static_cast<int>(random() % static_cast<unsigned>(n));
      if (from != to) wires.edges.push_back({from, to, 1 + static_cast<std::int64_t>(random() % 9)});
    }
  }
};

}  // namespace

TEST_CASE("the optimum of an all-gather is that of the table, to its last digit, on every machine of it") {
  for (const test::KnownOptimum& known : test::known_optima()) {
    CAPTURE(known.name);
    const Topology topology = known.graph.build();
    const Wires w = wires_of(topology, topology.ranks());
    const Limit limit = gather_limit(w);
    CHECK(inverse(limit, w) == known.inverse_rate);
    const double rate = 1 / as_double(limit.inverse_rate) * static_cast<double>(w.unit) / 1e9;
    CHECK(test::digits_as(w.n_ranks() * rate, known.algbw) == known.algbw);
    CHECK(test::digits_as((w.n_ranks() - 1) * rate, known.busbw) == known.busbw);
    CHECK(reduce_scatter_limit(w).inverse_rate == limit.inverse_rate);  // all of them are the same both ways
    CHECK(is_balanced(w));
  }
}

TEST_CASE("what is reported as bottleneck is one: its sets' ranks, over the links of the topology that leave them") {
  for (const test::KnownOptimum& known : test::known_optima()) {
    CAPTURE(known.name);
    const Topology topology = known.graph.build();
    const Wires w = wires_of(topology, topology.ranks());
    const auto n = static_cast<std::int64_t>(topology.ranks().size());
    const auto named = [&](const Limit& limit, std::int64_t amount) {
      return to_string(fraction(amount, 1) * fraction(1'000'000'000, rate_out_of(topology, w, limit.sets)));
    };
    const Limit gather = gather_limit(w), scatter = reduce_scatter_limit(w);
    CHECK(inverse(gather, w) == named(gather, gpus_in(topology, w, gather.sets.at(0))));
    CHECK(inverse(scatter, w) == named(scatter, n - gpus_in(topology, w, scatter.sets.at(0))));
    const Limit all_reduce = all_reduce_limit(w, gather.inverse_rate);
    CHECK(inverse(all_reduce, w) == named(all_reduce, 2 * (static_cast<std::int64_t>(all_reduce.sets.size()) - 1)));
    const Limit broadcast = broadcast_limit(w, 0), to_root = reduce_limit(w, 0);
    CHECK(inverse(broadcast, w) == named(broadcast, 1));
    CHECK(inverse(to_root, w) == named(to_root, 1));
    const Limit from_root = scatter_limit(w, 0);
    CHECK(inverse(from_root, w) == named(from_root, n - gpus_in(topology, w, from_root.sets.at(0))));
  }
}

TEST_CASE("on 1000 random graphs with switches the bound is the worst of all cuts, and its cut is a worst one") {
  std::mt19937 random(20);
  int compared = 0, unreachable = 0, with_switches = 0;
  while (compared < 1000) {
    const RandomWires drawn(random);
    const Wires& w = drawn.wires;
    CAPTURE(compared);
    bool reachable = false;
    const Fraction expected = worst_cut(w, reachable);
    if (!reachable) {
      CHECK(test::complaint([&] { gather_limit(w); }).find("no links lead to some of the ranks") != std::string::npos);
      ++unreachable;
      continue;
    }
    const Limit limit = gather_limit(w);
    CHECK(to_string(limit.inverse_rate) == to_string(expected));
    REQUIRE(limit.sets.size() == 1);
    CHECK(fraction(limit.amount, edges_out_of(w, limit.sets.front())) == expected);
    bool back = false;
    CHECK(to_string(reduce_scatter_limit(w).inverse_rate) == to_string(worst_cut(reversed(w), back)));
    ++compared;
    with_switches += w.vertices.size() > w.ranks.size() ? 1 : 0;
  }
  CHECK(with_switches > 500);
  CHECK(unreachable > 10);
}

TEST_CASE("on 300 random graphs broadcasts and scatters from every root are bound by the worst of all cuts around it") {
  std::mt19937 random(22);
  int compared = 0;
  while (compared < 300) {
    const RandomWires drawn(random);
    const Wires& w = drawn.wires;
    bool reachable = false;
    worst_cut(w, reachable);
    if (!reachable) continue;
    CAPTURE(compared);
    for (int root = 0; root < w.n_ranks(); ++root) {
      CAPTURE(root);
      const Limit broadcast = broadcast_limit(w, root), scatter = scatter_limit(w, root);
      CHECK(to_string(broadcast.inverse_rate) ==
            to_string(worst_cut_around(w, root, [](std::int64_t) { return std::int64_t{1}; })));
      CHECK(broadcast.inverse_rate == fraction(1, edges_out_of(w, broadcast.sets.at(0))));
      CHECK(to_string(scatter.inverse_rate) ==
            to_string(worst_cut_around(w, root, [](std::int64_t outside) { return outside; })));
    }
    ++compared;
  }
}

TEST_CASE("a flow is Boost's push-relabel flow, and its cut is as wide") {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Graph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<boost::edge_capacity_t, std::int64_t,
                      boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                      boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  std::mt19937 random(21);
  int below = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto n = 2 + static_cast<int>(random() % 14);
    FlowGraph ours(n);
    Graph theirs(static_cast<std::size_t>(n));
    auto capacity = get(boost::edge_capacity, theirs);
    auto reverse = get(boost::edge_reverse, theirs);
    struct Edge {
      int from, to;
      std::int64_t capacity;
    };
    std::vector<Edge> edges;
    for (unsigned e = 0; e < random() % static_cast<unsigned>(4 * n); ++e) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(n));
      const int to = static_cast<int>(random() % static_cast<unsigned>(n));
      if (from == to) continue;
      edges.push_back({from, to, static_cast<std::int64_t>(random() % 100)});
      ours.add_edge(from, to, edges.back().capacity);
      const auto there = add_edge(static_cast<std::size_t>(from), static_cast<std::size_t>(to), theirs).first;
      const auto back = add_edge(static_cast<std::size_t>(to), static_cast<std::size_t>(from), theirs).first;
      capacity[there] = edges.back().capacity;
      capacity[back] = 0;
      reverse[there] = back;
      reverse[back] = there;
    }
    CAPTURE(i);
    const std::int64_t flow = push_relabel_max_flow(theirs, vertex(0, theirs), vertex(1, theirs));
    REQUIRE(ours.max_flow(0, 1) == flow);
    const std::vector<bool> sink_side = ours.sink_side();
    std::int64_t cut = 0;
    for (const Edge& edge : edges)
      if (!sink_side[static_cast<std::size_t>(edge.from)] && sink_side[static_cast<std::size_t>(edge.to)])
        cut += edge.capacity;
    CHECK(cut == flow);
    CHECK(ours.max_flow(0, 1, 50) == std::min<std::int64_t>(flow, 50));
    below += flow > 0 && flow < 50 ? 1 : 0;
  }
  CHECK(below > 50);
}

TEST_CASE("an all-reduce is bound by single ranks on one box, by boxes on eight, by one slow port") {
  // One HGX H100: 2 * 7 messages leave eight ports of 450 GB/s.
  Wires w = wires(test::bare_boxes(1, 450, 50, 8));
  Limit limit = all_reduce_limit(w, gather_limit(w).inverse_rate);
  CHECK(inverse(limit, w) == to_string(fraction(2 * 7, 8 * 450)));
  CHECK(limit.sets.size() == 8);
  // Eight of them: single GPUs would allow a bus bandwidth of 500, the boxes' NICs 450 = twice the all-gather.
  w = wires(test::bare_boxes(8, 450, 50, 8));
  const Limit gather = gather_limit(w);
  limit = all_reduce_limit(w, gather.inverse_rate);
  CHECK(inverse(limit, w) == to_string(fraction(2 * 7, 8 * 400)));
  CHECK(limit.inverse_rate == gather.inverse_rate * fraction(2, 64));
  const double busbw = 2.0 * 63 / 64 / as_double(limit.inverse_rate * fraction(1'000'000'000, w.unit));
  CHECK(busbw == doctest::Approx(450));
  // Seven ports of 1000 GB/s and one of 1: the message must leave the slow one and come back.
  test::BareGraph slow = test::bare_star(7, 1000);
  slow.gpus(1, "slow").cable("slow0", "switch0", 1);
  w = wires(slow);
  limit = all_reduce_limit(w, gather_limit(w).inverse_rate);
  CHECK(inverse(limit, w) == "1");
  CHECK(limit.sets.size() == 2);
}

TEST_CASE("a broadcast is bound by the narrowest way to a rank, a scatter by what leaves the root or a group") {
  const Wires box = wires(test::bare_boxes(2, 300, 25, 2));
  CHECK(inverse(broadcast_limit(box, 0), box) == "1/200");  // the eight NICs into the other box
  CHECK(inverse(reduce_limit(box, 0), box) == "1/200");
  // 15 blocks leave rank 0 over 325 GB/s; 8 cross to the other box over 200.
  CHECK(inverse(scatter_limit(box, 0), box) == to_string(fraction(15, 325)));
  CHECK(inverse(gather_to_root_limit(box, 0), box) == to_string(fraction(15, 325)));
  const Wires spine = wires(test::bare_leaf_spine(2, 8, 100, 25));
  CHECK(inverse(scatter_limit(spine, 3), spine) == "8/25");  // 15/100 out of the root, 8/25 over the uplink
  // One way round a ring of four: what is for the last crosses three links, each carries all of a broadcast.
  const Wires ring = wires(test::bare_ring(4, 10, true));
  CHECK(inverse(broadcast_limit(ring, 1), ring) == "1/10");
  CHECK(inverse(scatter_limit(ring, 1), ring) == "3/10");
}

TEST_CASE("an all-to-all is bound by the narrowest cut: half a torus, an uplink, a port") {
  const auto all_to_all = [](const std::vector<bool>& inside) {
    const auto k = std::count(inside.begin(), inside.end(), true);
    return k * (static_cast<std::int64_t>(inside.size()) - k);
  };
  Wires w = wires(test::bare_star(8, 100));
  CHECK(inverse(crossing_limit(w, all_to_all), w) == "7/100");
  w = wires(test::bare_leaf_spine(2, 8, 100, 200));
  CHECK(inverse(crossing_limit(w, all_to_all), w) == "8/25");  // 64 pairs over 200 GB/s
  // An 8 x 4 torus: half of it has 16 ranks, 8 links leave it to the other half.
  w = wires(test::bare_grid(8, 4, true));
  CHECK(inverse(crossing_limit(w, all_to_all), w) == "32");
}

TEST_CASE("a half-duplex cable carries both directions together") {
  test::BareGraph g;
  g.gpus(2).half_duplex("gpu0", "gpu1", 10);
  const Wires w = wires(g);
  // Two blocks cross it, or twice the message of an all-reduce.
  CHECK(inverse(gather_limit(w), w) == "1/5");
  CHECK(inverse(reduce_scatter_limit(w), w) == "1/5");
  CHECK(inverse(all_reduce_limit(w, gather_limit(w).inverse_rate), w) == "1/5");
  CHECK(inverse(all_reduce_in_fabric_limit(w), w) == "1/5");
  CHECK(inverse(broadcast_limit(w, 0), w) == "1/10");
  CHECK(inverse(crossing_limit(w, [](const std::vector<bool>&) { return 1; }), w) == "1/5");
  // Beside it a full-duplex cable of 10: three cables' worth for two blocks.
  g.cable("gpu0", "gpu1", 10);
  const Wires both = wires(g);
  CHECK(inverse(gather_limit(both), both) == to_string(fraction(2, 30)));
  CHECK(links_leaving(both, gather_limit(both).sets) == std::vector<LinkId>{{0}, {2}, {3}});
  CHECK_FALSE(is_balanced(both));
}

TEST_CASE("with sums in the switches an all-reduce must leave and enter each rank once") {
  const Wires w = wires(test::bare_boxes(1, 450, 50, 8));
  CHECK(inverse(all_reduce_in_fabric_limit(w), w) == "1/450");
}

TEST_CASE("ranks on one device are one place; one rank needs no time") {
  const Topology topology = test::bare_star(3, 10).build();
  const std::vector<NodeId> places{topology.ranks()[0], topology.ranks()[0], topology.ranks()[1]};
  const Wires w = wires_of(topology, places);
  CHECK(inverse(gather_limit(w), w) == "1/5");  // two blocks leave gpu0
  CHECK(gather_limit(wires_of(topology, std::vector<NodeId>{topology.ranks()[0]})).inverse_rate == Fraction{0, 1});
}

TEST_CASE("ratios are exact: compared beyond 64 bits, multiplied in lowest terms, refused if they do not fit") {
  const std::int64_t big = INT64_MAX;
  CHECK(fraction(big, big - 1) < fraction(big - 1, big - 2));
  CHECK(fraction(6, 4) == Fraction{3, 2});
  CHECK(fraction(big, 7) * fraction(7, big) == Fraction{1, 1});
  CHECK(test::complaint([&] { (void)(fraction(big, 1) * fraction(big, 1)); }).find("a ratio of the bound") !=
        std::string::npos);
  // 1 GiB at 3 GB/s is 357913941.33 ns.
  CHECK(time_at(1_GiB, fraction(1, 3'000'000'000)) == Picoseconds{357'913'941'333});
}

}  // namespace limits_test
