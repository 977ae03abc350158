// The greedy all-gather: known numbers of steps, and every plan recounted.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "algorithms/trees/ordered_messages.hpp"
#include "sim/check/check.hpp"
#include "tests/support/bound_graphs.hpp"
#include "topologies/synthesis/greedy_gather.hpp"

namespace greedy_gather_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// The edge between neighbors, or none.
WayBetween to_neighbors(const Wires& wires) {
  return [&wires](int from, int to) {
    for (std::size_t e = 0; e < wires.edges.size(); ++e)
      if (wires.edges[e].from == wires.ranks[static_cast<std::size_t>(from)] &&
          wires.edges[e].to == wires.ranks[static_cast<std::size_t>(to)])
        return std::vector<int>{static_cast<int>(e)};
    return std::vector<int>{};
  };
}

Wires wires_from(const test::BareGraph& graph) {
  const Topology topology = graph.build();
  return wires_of(topology, topology.ranks());
}

/// Steps of 1 ms without latency: pieces of 1 MB over links of 1 GB/s.
std::int64_t steps_on(const test::BareGraph& graph, int pieces = 1) {
  const Wires wires = wires_from(graph);
  const WireCosts costs{std::vector<Picoseconds>(wires.edges.size()),
                        std::vector<Bandwidth>(wires.edges.size(), Bandwidth{1'000'000'000})};
  Picoseconds last{0};
  for (const PlannedMessage& each : greedy_gather(wires, costs, to_neighbors(wires), pieces, Bytes{1'000'000}))
    last = std::max(last, each.arrival);
  CHECK(last % 1ms == Picoseconds{0});
  return last / Picoseconds(1ms);
}

}  // namespace

TEST_CASE("on homogeneous rings and grids the greedy all-gather takes as few steps as links allow, or one more") {
  // K - 1 blocks must come in over the links of a rank: one, two or four; of a grid's corner over two.
  CHECK(steps_on(test::bare_ring(8, 1, true)) == 7);
  CHECK(steps_on(test::bare_ring(8, 1, false)) == 4);  // 7 / 2
  CHECK(steps_on(test::bare_ring(9, 1, false)) == 4);  // 8 / 2
  CHECK(steps_on(test::bare_grid(3, 3, false)) == 4);  // 8 / 2
  // A torus of 4x4 could do with 4 (15 / 4), if all links but one per rank were always busy: a greedy choice needs 5.
  CHECK(steps_on(test::bare_grid(4, 4, true)) == 5);
}

TEST_CASE("plans for random graphs are proved, and no edge carries two messages at once") {
  std::mt19937 random(11);
  for (int ranks = 2; ranks <= 16; ++ranks) {
    test::BareGraph graph;
    graph.gpus(ranks);
    for (int r = 1; r < ranks; ++r)  // connected, and some cables more
      graph.cable(fmt::format("gpu{}", r), fmt::format("gpu{}", random() % static_cast<unsigned>(r)),
                  1 + static_cast<double>(random() % 4));
    std::set<std::pair<int, int>> cables;
    for (int i = 0; i < ranks; ++i) {
      const int a = static_cast<int>(random() % static_cast<unsigned>(ranks)), b = (a + 1 + i) % ranks;
      if (a != b && cables.insert(std::minmax(a, b)).second && ranks > 4)
        graph.cable(fmt::format("gpu{}", a), fmt::format("gpu{}", b), 1 + static_cast<double>(random() % 4));
    }
    CAPTURE(ranks);
    const Wires wires = wires_from(graph);
    WireCosts costs;
    for (const Wires::Edge& edge : wires.edges) {
      costs.latency.push_back(Picoseconds(1us) * static_cast<int>(random() % 3));
      costs.rate.push_back({edge.capacity * wires.unit});
    }
    for (const int pieces : {1, 3}) {
      const auto plan = greedy_gather(wires, costs, to_neighbors(wires), pieces, 64_KiB);
      REQUIRE(plan.size() == static_cast<std::size_t>(ranks * pieces * (ranks - 1)));
      std::map<std::pair<int, int>, Picoseconds> free;
      std::vector<OrderedMessage> list;
      for (const PlannedMessage& each : plan) {
        const int edge = to_neighbors(wires)(each.from, each.to).front();
        Picoseconds& from = free[{each.from, each.to}];
        CHECK(each.start >= from);
        from = each.start + transfer_time(64_KiB, costs.rate[static_cast<std::size_t>(edge)]);
        CHECK(each.arrival == from + costs.latency[static_cast<std::size_t>(edge)]);
        list.push_back({each.from, each.to, each.piece});
      }
      for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce})
        CHECK_NOTHROW(check(ordered_messages(op, ranks, 64_KiB, pieces, list, list)));
    }
  }
}

}  // namespace greedy_gather_test
