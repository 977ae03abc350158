// The record of the critical path: what it keeps, what it drops, and the paths of runs that can be worked out.
#include <doctest/doctest.h>

#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/run/path_record.hpp"
#include "tests/support/tiny.hpp"
#include "topologies/catalog.hpp"

namespace path_record_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

Timeline recorded(const Topology& net, const char* algorithm, int ranks, Bytes bytes, RunOptions options = {}) {
  options.record_path = true;
  const CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = ranks, .bytes = bytes};
  return run(net, check(make_schedule(*find_algorithm(algorithm), request, {})), options);
}

// Lanes of one per actor.
void by_lane(const PassedElement& element, PathElement& named) {
  named.from = static_cast<Actor>(element.from);
  named.to = static_cast<Actor>(element.to);
}

}  // namespace

TEST_CASE("chains share what they have in common, and what leads to no end is dropped") {
  PathRecord record;
  const PassedElement message{
      .busy = 10_ps, .latency = 2_ps, .bytes = 1_MiB, .resource = ResourceId{3}, .from = 0, .to = 1};
  PassedElement faster = message;
  faster.busy = 5_ps;
  faster.latency = 0_ps;
  faster.resource = ResourceId{4};
  const PathEnd first = record.add({}, message, 0);
  PathEnd left = record.add(first, {.busy = 8_ps, .from = 4, .to = 4, .cause = PathCause::late}, 1);
  record.add(first, {.busy = 87_ps, .from = 5, .to = 5, .cause = PathCause::slow}, 1);  // leads nowhere
  PathEnd right = record.add(first, faster, 1);
  record.collect({&left, &right});
  CHECK(left == PathEnd{2, 1});  // the node that was dropped has left its number
  CHECK(right == PathEnd{3, 1});
  const std::vector<PathElement> path = record.chain(left, by_lane);
  REQUIRE(path.size() == 3);
  CHECK(path[0].cause == PathCause::link);
  CHECK(path[0].resource == ResourceId{3});
  CHECK(path[0].end == SimTime{10_ps});
  CHECK(path[1].cause == PathCause::latency);
  CHECK(path[1].end == SimTime{12_ps});
  CHECK(path[2].cause == PathCause::late);
  CHECK(path[2].to == 4);
  CHECK_NOTHROW(expect_whole_path(path, SimTime{20_ps}));
  CHECK(record.chain(right, by_lane).back().end == SimTime{17_ps});
  CHECK(record.chain(right, by_lane).back().resource == ResourceId{4});
  // A message like an earlier one, after nodes have moved: the node is its own, and its step.
  const PathEnd again = record.add(right, message, 2);
  const std::vector<PathElement> longer = record.chain(again, by_lane);
  REQUIRE(longer.size() == 5);
  CHECK(longer[3].step == 2);
  CHECK(longer[3].resource == ResourceId{3});
  CHECK(longer[4].end == SimTime{29_ps});
}

TEST_CASE("the same in step after step is one node, which chains leave at any step") {
  PathRecord record;
  const PassedElement message{.busy = 10_ps, .bytes = 1_MiB, .resource = ResourceId{3}, .from = 0, .to = 1};
  const PassedElement other{.busy = 10_ps, .bytes = 1_MiB, .resource = ResourceId{3}, .from = 0, .to = 2};
  PathEnd once = record.add({}, message, 5);
  const PathEnd twice = record.add(once, message, 6);
  const PathEnd thrice = record.add(twice, message, 7);
  CHECK(once == PathEnd{1, 1});
  CHECK(thrice == PathEnd{1, 3});
  PathEnd aside = record.add(twice, other, 7);
  CHECK(aside == PathEnd{2, 1});
  CHECK(record.add(thrice, message, 9) == PathEnd{3, 1});  // step 8 had none of it
  CHECK(record.add(thrice, message, 8) == PathEnd{1, 4});
  record.collect({&aside, &once});
  const std::vector<PathElement> path = record.chain(aside, by_lane);
  REQUIRE(path.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(path[i].step == 5 + static_cast<int>(i));
    CHECK(path[i].to == (i < 2 ? 1 : 2));
  }
  CHECK(record.chain(once, by_lane).size() == 1);
  CHECK_NOTHROW(expect_whole_path(path, SimTime{30_ps}));
}

TEST_CASE("what took no time is no element") {
  PathRecord record;
  const PathEnd before = record.add({}, {.busy = 1_ps}, 0);
  CHECK(record.add(before, {.bytes = 1_MiB, .resource = ResourceId{0}}, 0) == before);
}

TEST_CASE("a path with a gap, or that ends early, is a broken law") {
  std::vector<PathElement> path{{.begin = SimTime{}, .end = SimTime{4_ps}},
                                {.begin = SimTime{5_ps}, .end = SimTime{6_ps}}};
  CHECK_THROWS_WITH_AS(expect_whole_path(path, SimTime{6_ps}),
                       "invariant broken: the elements of the critical path follow each other", InvariantError);
  path.pop_back();
  CHECK_NOTHROW(expect_whole_path(path, SimTime{4_ps}));
  CHECK_THROWS_WITH_AS(expect_whole_path(path, SimTime{6_ps}),
                       "invariant broken: the elements of the critical path sum to the time of the run",
                       InvariantError);
}

TEST_CASE("a ring's path is one message per step, its link's time and its latency") {
  // 4 ranks, 4 MiB: 2(K-1) = 6 steps, each 1 MiB at 1 GB/s = 1048.576 us and twice a port's 1 us.
  const Topology net = star(4, {.bandwidth = 1_GBps, .latency = 1us});
  const Timeline line = recorded(net, "ring", 4, 4_MiB);
  REQUIRE(line.path.size() == 12);
  for (std::size_t i = 0; i < line.path.size(); ++i) {
    CAPTURE(i);
    CHECK(line.path[i].cause == (i % 2 == 0 ? PathCause::link : PathCause::latency));
    CHECK(line.path[i].time() == (i % 2 == 0 ? 1048'576'000_ps : 2'000'000_ps));
    CHECK(line.path[i].step == static_cast<int>(i / 2));
    CHECK(line.path[i].bytes == 1_MiB);
  }
}

TEST_CASE("a folded run's path is rank 0's, as long as the whole run") {
  const Topology net = star(8, {.bandwidth = 1_GBps, .latency = 1us});
  const Timeline folded = recorded(net, "ring", 8, 8_MiB, {.fold_from = 0});
  REQUIRE(folded.folded.has_value());
  const Timeline whole = recorded(net, "ring", 8, 8_MiB);
  REQUIRE(!whole.folded.has_value());
  REQUIRE(folded.path.size() == whole.path.size());
  for (std::size_t i = 0; i < whole.path.size(); ++i) CHECK(folded.path[i].end == whole.path[i].end);
  CHECK(folded.path.front().from == 0);
  CHECK(folded.path.front().to == 1);
}

TEST_CASE("a run whose record is collected still has its whole path") {
  // 512 ranks, 1022 steps; what is drawn differs, so no two messages are one node: 523264, 32 times as many as the
  // record begins with.
  const Topology net = star(512, {.bandwidth = 1_GBps, .latency = 1us});
  const Timeline line = recorded(net, "ring", 512, 512_KiB, {.disturbance = {.jitter = {5us, 7}}});
  CHECK_NOTHROW(expect_whole_path(line.path, line.finish));
  // Each of the 1022 steps' messages has two elements at least.
  CHECK(line.path.size() >= 2044);
}

}  // namespace path_record_test
