// Routes on virtual lanes: no circle on any of them, and no lane more than it takes.
#include <doctest/doctest.h>

#include <random>
#include <set>
#include <vector>

#include "sim/network/virtual_lanes.hpp"

namespace virtual_lanes_test {

using namespace ringsim;

namespace {

using Dependency = VirtualLanes::Dependency;
using Edges = std::set<Dependency>;

/// Takes away what nothing depends on until nothing is left, or only circles.
bool has_circle(Edges edges) {
  for (bool removed = true; removed;) {
    removed = false;
    for (auto edge = edges.begin(); edge != edges.end();) {
      bool is_needed = false;
      for (const Dependency& other : edges) is_needed = is_needed || other.second == edge->first;
      removed = removed || !is_needed;
      edge = is_needed ? std::next(edge) : edges.erase(edge);
    }
  }
  return !edges.empty();
}

std::vector<Dependency> chain(const std::vector<std::uint32_t>& links) {
  std::vector<Dependency> route;
  for (std::size_t i = 0; i + 1 < links.size(); ++i) route.emplace_back(LinkId{links[i]}, LinkId{links[i + 1]});
  return route;
}

}  // namespace

TEST_CASE("routes round a circle take a second lane where they close it, and no third") {
  constexpr std::uint32_t n = 6;
  VirtualLanes lanes(n, 15);
  for (std::uint32_t i = 0; i + 1 < n; ++i) CHECK(lanes.place(chain({i, (i + 1) % n})) == 0);
  CHECK(lanes.place(chain({n - 1, 0})) == 1);
  CHECK(lanes.place(chain({n - 1, 0})) == 1);
  CHECK(lanes.place(chain({2, 3, 4})) == 0);
  CHECK(lanes.place({}) == 0);
}

TEST_CASE("a route that finds no lane leaves nothing behind, and goes on the last") {
  VirtualLanes lanes(4, 1);
  CHECK(lanes.place(chain({0, 1})) == 0);
  CHECK(lanes.place(chain({2, 3, 1, 0})) == 0);  // closes 0 -> 1 -> 0, and is not kept
  VirtualLanes two(4, 2);
  CHECK(two.place(chain({0, 1})) == 0);
  CHECK(two.place(chain({2, 3, 1, 0})) == 1);
  CHECK(two.place(chain({3, 2})) == 0);  // 2 -> 3 is on lane 1 only
}

TEST_CASE("on 500 random networks no lane has a circle, and a route is above a lane only where it would close one") {
  int above = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto n_links = static_cast<std::uint32_t>(3 + random() % 10);
    VirtualLanes lanes(n_links, 100);
    std::vector<Edges> placed;
    for (std::uint64_t r = 5 + random() % 25; r > 0; --r) {
      std::vector<std::uint32_t> links;
      for (std::uint64_t i = 2 + random() % 3; i > 0; --i)
        links.push_back(static_cast<std::uint32_t>(random() % n_links));
      std::set<std::uint32_t> different(links.begin(), links.end());
      if (different.size() < links.size()) continue;  // a route crosses a link once
      const std::vector<Dependency> route = chain(links);
      const std::uint32_t lane = lanes.place(route);
      REQUIRE(lane <= placed.size());
      if (lane == placed.size()) placed.emplace_back();
      for (std::uint32_t below = 0; below < lane; ++below) {
        Edges with = placed[below];
        with.insert(route.begin(), route.end());
        CHECK(has_circle(with));
      }
      placed[lane].insert(route.begin(), route.end());
      CHECK_FALSE(has_circle(placed[lane]));
      above += lane > 0;
    }
  }
  CHECK(above > 500);
}

}  // namespace virtual_lanes_test
