// Trail against sums that are simply kept.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <utility>

#include "sim/run/critical_path.hpp"

namespace critical_path_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// Adds to a trail and to a map of the sums by class; each class is one link.
struct Both {
  Trail trail;
  std::map<std::uint32_t, std::int64_t> sums;
  std::int64_t total = 0;

  /// The lower the class, the higher the resource: among equals only the class counts.
  static ResourceId resource_of(std::uint32_t link_class) { return {1'000'000 - link_class}; }

  void add(std::uint32_t link_class, std::int64_t time) {
    trail.go_on(link_class, resource_of(link_class), Picoseconds{time}, 0_ps);
    sums[link_class] += time;
    total += time;
  }
  std::pair<std::uint32_t, std::int64_t> longest() const {
    std::pair<std::uint32_t, std::int64_t> best{0, -1};
    for (const auto& [link_class, sum] : sums)
      if (sum > best.second) best = {link_class, sum};  // of equals the lowest class
    return best;
  }
};

}  // namespace

TEST_CASE("with up to 8 links a trail knows the longest exactly, of equals the lowest class") {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Both both;
    const std::uint64_t n_links = 1 + random() % 8;
    for (int i = 0; i < 200; ++i) {
      both.add(static_cast<std::uint32_t>(random() % n_links * 1000 + 3),
               static_cast<std::int64_t>(1 + random() % (seed % 2 == 0 ? 2 : 1'000'000)));
      const Bottleneck found = both.trail.bottleneck(both.trail.at);
      REQUIRE(found.resource == Both::resource_of(both.longest().first));
      REQUIRE(found.busy.count() == both.longest().second);
    }
  }
}

TEST_CASE("with more links each is counted at most as long as it was, and at most a ninth of all too short") {
  // Each of the 8 entries and the newcomer lose as much at a time: nine times what one may lose is within the total.
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Both both;
    const std::uint64_t n_links = 9 + random() % 40;
    for (int i = 0; i < 500; ++i) {
      // Every other time the first link, in some of the cases: then there is something to find.
      const std::uint64_t link = seed % 3 == 0 && i % 2 == 0 ? 0 : random() % n_links;
      both.add(static_cast<std::uint32_t>(link), static_cast<std::int64_t>(1 + random() % 1000));
    }
    std::map<std::uint32_t, std::int64_t> kept;
    for (const TrailEntry& entry : both.trail.entries)
      if (entry.time > 0) kept[entry.link_class] += entry.time;
    for (const auto& entry : both.sums) {
      const std::uint32_t link = entry.first;  // CAPTURE takes no structured binding (clang 14)
      const std::int64_t sum = entry.second;
      CAPTURE(link);
      const auto found = kept.find(link);
      const std::int64_t counted = found == kept.end() ? 0 : found->second;
      CHECK(counted <= sum);
      CHECK((sum - counted) * 9 <= both.total);
    }

    const Bottleneck bottleneck = both.trail.bottleneck(both.trail.at);
    CHECK(bottleneck.busy.count() * 9 >= both.longest().second * 9 - both.total);
    if (seed % 3 == 0) CHECK(bottleneck.resource == Both::resource_of(0));
  }
}

TEST_CASE("a trail of nothing has no link, and what took no time leaves no trace") {
  Trail trail;
  CHECK(trail.bottleneck(SimTime{}).resource == no_resource);
  trail.go_on(3, ResourceId{3}, 0_ps, 0_ps);
  trail.go_on(4, no_resource, 5_ps, 7_ps);
  trail.compute_until(SimTime{20_ps});
  trail.delay_until(SimTime{29_ps});
  const Bottleneck found = trail.bottleneck(SimTime{29_ps});
  CHECK(found.resource == no_resource);
  CHECK(found.busy == 0_ps);
  CHECK(found.others == 5_ps);
  CHECK(found.latency == 7_ps);
  CHECK(found.compute == 8_ps);
  CHECK(found.delay == 9_ps);
}

TEST_CASE("like links count together, and the one that holds the path back more than half of the time is named") {
  Trail trail;
  // Of one class: a link with 40 ps in pieces of 4, then ten with 3 ps each, too few together to outvote it.
  for (int i = 0; i < 10; ++i) trail.go_on(7, ResourceId{5}, 4_ps, 0_ps);
  for (std::uint32_t i = 0; i < 10; ++i) trail.go_on(7, ResourceId{100 + i}, 3_ps, 0_ps);
  trail.go_on(8, ResourceId{1}, 69_ps, 0_ps);
  CHECK(trail.bottleneck(trail.at).busy == 70_ps);
  CHECK(trail.bottleneck(trail.at).resource == ResourceId{5});
}

TEST_CASE(
    "a link that takes the lead leads by the difference, so that one with more than half of the time comes back") {
  // 6 of 11 ps are the first link's. It leads by 3, the second one by 5 - 3 = 2, and again the first one by 3 - 2 = 1.
  Trail trail;
  trail.go_on(7, ResourceId{1}, 3_ps, 0_ps);
  trail.go_on(7, ResourceId{2}, 5_ps, 0_ps);
  CHECK(trail.bottleneck(trail.at).resource == ResourceId{2});
  trail.go_on(7, ResourceId{1}, 3_ps, 0_ps);
  CHECK(trail.bottleneck(trail.at).resource == ResourceId{1});
  CHECK(trail.bottleneck(trail.at).busy == 11_ps);
}

TEST_CASE("of links of a class the one with more than half of the time is named, in any order of 4 links") {
  int majorities = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Trail trail;
    std::map<std::uint32_t, std::int64_t> sums;
    std::int64_t total = 0;
    for (int i = 0; i < 12; ++i) {
      const auto link = static_cast<std::uint32_t>(random() % 4);
      const auto time = static_cast<std::int64_t>(1 + random() % 9);
      trail.go_on(7, ResourceId{link}, Picoseconds{time}, 0_ps);
      sums[link] += time;
      total += time;
    }
    const Bottleneck found = trail.bottleneck(trail.at);
    CHECK(found.busy.count() == total);
    for (const auto& each : sums) {
      if (2 * each.second <= total) continue;
      ++majorities;
      CHECK(found.resource == ResourceId{each.first});
    }
  }
  CHECK(majorities > 100);
}

TEST_CASE("of classes with equal times the lower one is named, whatever the numbers of their resources") {
  // Class 2 has the highest resource, class 6 the lowest, and each order of adding them puts another one first.
  const std::array<std::pair<std::uint32_t, ResourceId>, 3> links{
      {{2, ResourceId{90}}, {4, ResourceId{50}}, {6, ResourceId{10}}}};
  std::array<std::size_t, 3> order{0, 1, 2};
  do {
    CAPTURE(order[0]);
    CAPTURE(order[1]);
    Trail trail;
    for (const std::size_t i : order) trail.go_on(links[i].first, links[i].second, 30_ps, 0_ps);
    CHECK(trail.bottleneck(trail.at).resource == ResourceId{90});
    CHECK(trail.bottleneck(trail.at).busy == 30_ps);
    CHECK(trail.bottleneck(trail.at).others == 60_ps);
    // The time comes before the class: one picosecond more decides.
    trail.go_on(6, ResourceId{10}, 1_ps, 0_ps);
    CHECK(trail.bottleneck(trail.at).resource == ResourceId{10});
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a trail that does not lead to the end of the run, or goes back, is a broken law") {
  Trail trail;
  trail.go_on(1, ResourceId{1}, 4_ps, 2_ps);
  CHECK(trail.at == SimTime{6_ps});
  CHECK_THROWS_WITH_AS(trail.bottleneck(SimTime{7_ps}),
                       "invariant broken: the parts of the critical path sum to the time of the run", InvariantError);
  CHECK_THROWS_WITH_AS(trail.go_on(1, ResourceId{1}, 4_ps, Picoseconds{-1}),
                       "invariant broken: no part of the critical path is below 0", InvariantError);
  CHECK_THROWS_AS(trail.go_on(1, ResourceId{1}, Picoseconds{-1}, 2_ps), InvariantError);
  CHECK_THROWS_AS(trail.compute_until(SimTime{5_ps}), InvariantError);
}

}  // namespace critical_path_test
