// Rings whose narrowest hop is as wide as can be.
#include "topologies/search/ring_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/tiny.hpp"

namespace ring_order_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// GPUs with a cable of widths[i][j] GB/s between i and j > i; 0: none.
Topology meshed(const std::vector<std::vector<int>>& widths) {
  TopologyBuilder builder;
  for (std::size_t g = 0; g < widths.size(); ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::uint32_t i = 0; i < widths.size(); ++i)
    for (std::uint32_t j = i + 1; j < widths.size(); ++j)
      if (widths[i][j] > 0) builder.add_cable(NodeId{i}, NodeId{j}, {.bandwidth = {widths[i][j] * 1'000'000'000LL}});
  return builder.build();
}

bool visits_all_once(const RingOrder& ring, std::size_t n) {
  std::vector<std::size_t> sorted = ring.order, all(n);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::sort(sorted.begin(), sorted.end());
  return sorted == all && ring.order.front() == 0;
}

}  // namespace

TEST_CASE("a ring takes the wide cables: of a square and its diagonals, those round the outside or across") {
  // 0-1 and 2-3 are narrow; 0-2, 2-1, 1-3, 3-0 are wide.
  const Topology net = meshed({{0, 5, 20, 20}, {0, 0, 20, 20}, {0, 0, 0, 5}, {0, 0, 0, 0}});
  const RingOrder ring = best_ring(net, net.ranks(), {});
  CHECK(ring.narrowest == 20_GBps);
  CHECK(ring.is_best);
  CHECK(ring.order == std::vector<std::size_t>{0, 2, 1, 3});
}

TEST_CASE("of equally wide rings one without relayed hops is taken") {
  // 0-3 has no cable: its bytes go by 2 at half of 20 GB/s. The way round by 1-3 has no hop of less than 10 either.
  const Topology net = meshed({{0, 20, 20, 0}, {0, 0, 20, 10}, {0, 0, 0, 20}, {0, 0, 0, 0}});
  const RingOrder ring = best_ring(net, net.ranks(), {});
  CHECK(ring.narrowest == 10_GBps);
  CHECK(ring.is_best);
  CHECK(ring.order == std::vector<std::size_t>{0, 1, 3, 2});
  // A wider relay is taken nevertheless: 3-2-0 has half of 40.
  const Topology wide = meshed({{0, 20, 40, 0}, {0, 0, 20, 10}, {0, 0, 0, 40}, {0, 0, 0, 0}});
  CHECK(best_ring(wide, wide.ranks(), {}).narrowest == 20_GBps);
}

TEST_CASE("on small random meshes no order of all is wider, and the one given is kept where it is as wide") {
  int changed = 0, kept = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<std::vector<int>> widths(6, std::vector<int>(6));
    for (auto& row : widths)
      for (int& width : row) width = 1 + static_cast<int>(random() % 4);
    const Topology net = meshed(widths);
    const auto width_of = [&](const std::vector<std::size_t>& order) {
      int least = 100;
      for (std::size_t i = 0; i < 6; ++i) {
        const auto [a, b] = std::minmax(order[i], order[(i + 1) % 6]);
        least = std::min(least, widths[a][b]);
      }
      return least;
    };
    std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
    const int given = width_of(order);
    int best = 0;
    do best = std::max(best, width_of(order));
    while (std::next_permutation(order.begin() + 1, order.end()));
    const RingOrder ring = best_ring(net, net.ranks(), {});
    CHECK(visits_all_once(ring, 6));
    CHECK(width_of(ring.order) == best);
    CHECK(ring.narrowest == Bandwidth{best * 1'000'000'000LL});
    if (given == best) CHECK(std::is_sorted(ring.order.begin(), ring.order.end()));
    ++(given == best ? kept : changed);
  }
  CHECK(changed > 20);
  CHECK(kept > 5);
}

TEST_CASE("on a DGX-1V all hops are the double NVLinks; on a torus all are neighbors") {
  const Topology dgx = build(cluster_of("dgx-1v"));
  const RingOrder ring = best_ring(dgx, dgx.ranks(), {});
  CHECK(visits_all_once(ring, 8));
  for (std::size_t i = 0; i < 8; ++i) {
    const NodeId from = dgx.ranks()[ring.order[i]], to = dgx.ranks()[ring.order[(i + 1) % 8]];
    const LinkId link = link_between(dgx, dgx.node(from).name, dgx.node(to).name);
    REQUIRE(link.value != no_link.value);
    CHECK(dgx.link(link).joined == 2);
  }
  for (const std::vector<int>& dimensions : {std::vector{4, 4}, {3, 4}, {4, 4, 4}}) {
    const Topology torus = build(Torus{.dimensions = dimensions, .link = {.bandwidth = 10_GBps}});
    const RingOrder round = best_ring(torus, torus.ranks(), {});
    CHECK(visits_all_once(round, torus.ranks().size()));
    CHECK(round.narrowest == 10_GBps);  // no hop is relayed, or it would count half
  }
}

TEST_CASE("where no ring closes, or there are too many ranks, that is said") {
  TopologyBuilder builder;  // gpu2 hears of nobody
  for (int g = 0; g < 3; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  builder.add_cable(NodeId{0}, NodeId{1}, {.bandwidth = 1_GBps});
  const Topology parted = builder.build();
  CHECK_THROWS_WITH_AS(best_ring(parted, parted.ranks(), {}),
                       "best_ring: expected a closed path through all ranks, found none", InputError);
  const Topology large = star(513, {.bandwidth = 1_GBps});
  CHECK_THROWS_WITH_AS(best_ring(large, large.ranks(), {}), "best_ring: expected at most 512 ranks, found 513",
                       InputError);
}

}  // namespace ring_order_test
