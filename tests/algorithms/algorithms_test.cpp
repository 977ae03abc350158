// What the doc comments of algorithms/*.hpp say, counted from the schedules: steps, bytes sent a rank, links used.
#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "tests/support/every_algorithm.hpp"

namespace algorithms_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

struct Count {
  int steps = 0;
  Bytes sent;
  std::set<Actor> to;  // whom it sends to
};

Count count(const Schedule& schedule, Actor actor) {
  Count found;
  found.steps = schedule.n_steps(actor, 0);
  for (int i = 0; i < found.steps; ++i) {
    Step step;
    schedule.step(actor, 0, i, step);
    for (const Op& op : step.ops) {
      if (op.what != Do::send) continue;
      found.sent += schedule.size(op.region);
      found.to.insert(op.peer);
    }
  }
  return found;
}

}  // namespace

TEST_CASE("a ring takes 2(n-1) or n-1 steps, sends that many chunks, and only to the next rank") {
  for (int n = 2; n <= 17; ++n) {
    const Bytes size{n * 1000};
    for (Actor r = 0; r < n; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      const Count both = count(ring_all_reduce(n, size), r);
      CHECK(both.steps == 2 * (n - 1));
      CHECK(both.sent == Bytes{2 * (n - 1) * 1000});  // 2(n-1)/n size
      CHECK(both.to == std::set<Actor>{wrap(r + 1, n)});
      for (const Schedule& half : {ring_reduce_scatter(n, size), ring_all_gather(n, size)}) {
        const Count once = count(half, r);
        CHECK(once.steps == n - 1);
        CHECK(once.sent == Bytes{(n - 1) * 1000});
        CHECK(once.to == std::set<Actor>{wrap(r + 1, n)});
      }
    }
  }
}

TEST_CASE("a ring broadcast takes a step more than segments at all but its ends, and the last rank sends nothing") {
  for (int n = 2; n <= 17; ++n) {
    for (const int segments : {1, 4, n}) {
      for (const Actor root : {0, n / 2, n - 1}) {
        const Schedule schedule = ring_broadcast(n, 1000003_B, root, segments);
        for (Actor r = 0; r < n; ++r) {
          CAPTURE(n);
          CAPTURE(segments);
          CAPTURE(root);
          CAPTURE(r);
          const int distance = wrap(r - root, n);
          const bool is_end = distance == 0 || distance == n - 1;
          const Count found = count(schedule, r);
          CHECK(found.steps == (is_end ? segments : segments + 1));
          CHECK(found.sent == (distance == n - 1 ? 0_B : 1000003_B));
          CHECK(found.to == (distance == n - 1 ? std::set<Actor>{} : std::set<Actor>{wrap(r + 1, n)}));
        }
      }
    }
  }
}

TEST_CASE("a parameter server takes 2 steps; ranks send the buffer once, the root n-1 times") {
  for (int n = 2; n <= 17; ++n) {
    for (const Actor root : {0, n - 1}) {
      const Schedule schedule = parameter_server(n, 1000003_B, root);
      for (Actor r = 0; r < n; ++r) {
        CAPTURE(n);
        CAPTURE(r);
        const Count found = count(schedule, r);
        CHECK(found.steps == 2);
        CHECK(found.sent == 1000003_B * (r == root ? n - 1 : 1));
        CHECK(found.to.size() == (r == root ? static_cast<std::size_t>(n - 1) : 1));
        if (r != root) CHECK(*found.to.begin() == root);
      }
    }
  }
}

TEST_CASE("separate servers take 2 steps and send n times their share; ranks send only to servers") {
  for (int n = 2; n <= 17; ++n) {
    for (const int servers : {1, 2, 5}) {
      const Schedule schedule = sharded_parameter_server(n, 1000_B, servers);
      REQUIRE(schedule.actors == n + servers);
      for (Actor a = 0; a < schedule.actors; ++a) {
        CAPTURE(n);
        CAPTURE(a);
        const Count found = count(schedule, a);
        CHECK(found.steps == 2);
        CHECK(found.sent == (a < n ? 1000_B : Bytes{1000 / servers} * n));
        CHECK(found.to.size() == static_cast<std::size_t>(a < n ? servers : n));
        for (const Actor to : found.to) CHECK((to >= n) == (a < n));
      }
    }
  }
}

TEST_CASE("halving-doubling takes 2m steps, 2(m+1) or 2m+3 with a fold, and meets ranks that differ in one bit") {
  for (int n = 2; n <= 17; ++n) {
    int m = 0;
    while ((2 << m) <= n) ++m;
    const int core = 1 << m, extra = n - core;
    const Bytes size{1024 * 15};  // divisible by 2 K' for each K' up to 16
    const Bytes among{2 * (core - 1) * (size.count / core)};
    for (const Fold fold : {Fold::naive, Fold::rabenseifner}) {
      const Schedule schedule = halving_doubling(n, size, fold);
      int most_steps = 0;
      for (Actor r = 0; r < n; ++r) {
        CAPTURE(n);
        CAPTURE(r);
        const Count found = count(schedule, r);
        most_steps = std::max(most_steps, found.steps);
        if (extra == 0) {
          CHECK(found.steps == 2 * m);
          CHECK(found.sent == among);
          CHECK(found.to.size() == static_cast<std::size_t>(m));
          for (const Actor to : found.to) CHECK((((to ^ r) & ((to ^ r) - 1)) == 0));  // one bit
        } else if (fold == Fold::naive) {
          CHECK(found.sent == (r >= core ? size : r < extra ? among + size : among));
        } else if (r < 2 * extra) {
          // The folded rank sends the lower half, then the upper half's sum; its partner the upper half, and in the
          // end the whole result.
          CHECK(found.sent == (r % 2 == 1 ? size : among + Bytes{size.count / 2} + size));
        } else {
          CHECK(found.sent == among);
        }
      }
      CHECK(most_steps == 2 * m + (extra == 0 ? 0 : fold == Fold::naive ? 2 : 3));
    }
  }
}

TEST_CASE("all-to-all sends each rank one block of the other's, in n-1 steps or at once, and none to itself") {
  for (const int n : {1, 2, 3, 4, 13}) {
    for (const bool in_steps : {true, false}) {
      CAPTURE(n);
      CAPTURE(in_steps);
      const Schedule s = in_steps ? pairwise_all_to_all(n, 1000003_B) : direct_all_to_all(n, 1000003_B);
      CHECK(s.n_steps(0, 0) == (in_steps ? n : 1));
      for (Actor r = 0; r < n; ++r) {
        std::set<Actor> to;
        Bytes sent;
        for (int i = 0; i < s.n_steps(r, 0); ++i) {
          Step step;
          s.step(r, 0, i, step);
          for (const Op& op : step.ops) {
            if (op.what != Do::send) continue;
            CHECK(to.insert(op.peer).second);
            sent += s.size(op.region);
          }
        }
        CHECK(to.size() == static_cast<std::size_t>(n - 1));
        CHECK_FALSE(to.contains(r));
        CHECK(sent == Bytes{1000003 - 1000003 / n});  // all but its own block, which is one of the smaller
      }
    }
  }
}

TEST_CASE("direct pairs take one step: the first half sends to the second, and back only where asked") {
  for (int n = 2; n <= 16; n += 2) {
    for (const bool both_ways : {false, true}) {
      const Schedule schedule = direct_pairs(n, 1000003_B, both_ways);
      for (Actor r = 0; r < n; ++r) {
        CAPTURE(n);
        CAPTURE(r);
        const Count found = count(schedule, r);
        const bool sends = r < n / 2 || both_ways;
        CHECK(found.steps == 1);
        CHECK(found.sent == (sends ? 1000003_B : 0_B));
        CHECK(found.to == (sends ? std::set<Actor>{r < n / 2 ? r + n / 2 : r - n / 2} : std::set<Actor>{}));
      }
    }
  }
}

TEST_CASE("one rank has nothing to do, but to copy what is not in place") {
  for (const Schedule& schedule : every_algorithm(1, 1_KiB)) {
    CAPTURE(schedule.algorithm);
    for (Actor a = 0; a < schedule.actors; ++a) {
      for (Lane lane = 0; lane < schedule.lanes; ++lane) {
        for (int i = 0; i < schedule.n_steps(a, lane); ++i) {
          Step step;
          schedule.step(a, lane, i, step);
          REQUIRE(step.ops.size() == 1);
          CHECK(step.ops[0].what == Do::copy);
        }
      }
    }
  }
}

TEST_CASE("the catalog makes what it says, and refuses what an algorithm cannot serve") {
  REQUIRE(algorithms().size() >= 4);
  CHECK(find_algorithm("no such thing") == nullptr);
  for (const Algorithm& algorithm : algorithms()) {
    CAPTURE(algorithm.name);
    CHECK(find_algorithm(algorithm.name) == &algorithm);
    CHECK_FALSE(algorithm.summary.empty());
    CHECK_FALSE(algorithm.source.empty());
    for (const CollectiveOp op : algorithm.ops) {
      CHECK(algorithm.supports(op));
      const Schedule schedule = algorithm.make(
          {.op = op, .ranks = 4, .bytes = op == CollectiveOp::barrier ? 0_B : 1_KiB, .grid = {2, 2}}, {});
      CHECK(schedule.collective.op == op);
      CHECK(schedule.collective.ranks == 4);
      CHECK(schedule.actors == 4 + algorithm.helpers({}));
      CHECK(schedule.algorithm.rfind(algorithm.name, 0) == 0);
    }
  }
  const Algorithm& ring = *find_algorithm("ring");
  CHECK_FALSE(ring.supports(CollectiveOp::pairs));
  CHECK_THROWS_WITH_AS(ring.make({.ranks = 4, .bytes = 1_KiB}, {.numbers = {{"segments", 2}}}),
                       "ring: segments applies to broadcast, not to all_reduce\n  hint: remove segments", InputError);
  CHECK_THROWS_WITH_AS(find_algorithm("direct")->make({.op = CollectiveOp::pairs, .ranks = 3, .bytes = 1_KiB}, {}),
                       "pairs needs an even number of ranks, found 3", InputError);
  const Algorithm& server = *find_algorithm("parameter_server");
  const Schedule two = server.make({.ranks = 4, .bytes = 1_KiB}, {.numbers = {{"servers", 2}}});
  CHECK(two.algorithm == "parameter_server servers=2");
  CHECK(two.actors == 6);
  CHECK(server.helpers({.numbers = {{"servers", 2}}}) == 2);
  const Algorithm& halving = *find_algorithm("halving_doubling");
  CHECK(halving.make({.ranks = 3, .bytes = 1_KiB}, {}).algorithm == "halving_doubling fold=rabenseifner");
  CHECK(halving.make({.ranks = 3, .bytes = 1_KiB}, {.texts = {{"fold", "naive"}}}).n_steps(2, 0) == 2);
  CHECK(ring.make({.op = CollectiveOp::broadcast, .ranks = 4, .bytes = 1_KiB}, {}).algorithm == "ring segments=4");
}

}  // namespace algorithms_test
