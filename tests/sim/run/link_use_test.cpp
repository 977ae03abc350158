// What links carry over time: steps of the right length, and bytes in the steps in which they crossed.
#include "sim/run/link_use.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "tests/support/tiny.hpp"

namespace link_use_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

using Bytes64 = std::vector<std::int64_t>;

Timeline timeline_of(SimTime finish, std::vector<Bytes> link_bytes) {
  Timeline timeline;
  timeline.finish = finish;
  timeline.link_bytes = std::move(link_bytes);
  return timeline;
}

const SimTime zero{};

}  // namespace

TEST_CASE("traffic is divided among steps by time, and rounded such that the sum stays") {
  LinkUse use(10us);
  use.add({.link = {0}, .begin = zero + 5us, .end = zero + 25us, .bytes = 100});  // a quarter, half, a quarter
  use.add({.link = {2}, .begin = zero, .end = zero + 30us, .bytes = 100});        // thirds
  const auto series = use.finish(timeline_of(zero + 35us, {{100}, {0}, {100}}), false);
  REQUIRE(series.size() == 2);
  CHECK(series[0].bytes == Bytes64{25, 50, 25, 0});  // the last step is cut by the end of the run
  CHECK(series[1].link == LinkId{2});
  CHECK(series[1].bytes == Bytes64{33, 34, 33, 0});
}

TEST_CASE("the length of the steps is 1, 2 or 5 times a power of ten, with at most 200 of them") {
  struct Row {
    Picoseconds run, step;
  };
  for (const Row& row : {Row{150_ps, 1_ps}, Row{200_ps, 1_ps}, Row{201_ps, 2_ps}, Row{1us, 5000_ps},
                         Row{1001000_ps, 10000_ps}, Row{3ms, 20us}, Row{1s, 5ms}}) {
    CAPTURE(row.run.count());
    LinkUse use;
    use.add({.link = {0}, .begin = zero, .end = zero + row.run, .bytes = 1000});
    const auto series = use.finish(timeline_of(zero + row.run, {{1000}}), false);
    CHECK(use.step() == row.step);
    REQUIRE(series.size() == 1);
    CHECK(series[0].bytes.size() <= LinkUse::most_steps);
    CHECK(std::accumulate(series[0].bytes.begin(), series[0].bytes.end(), std::int64_t{0}) == 1000);
  }
}

TEST_CASE("what does not sum to the bytes of the link is a broken law") {
  LinkUse use;
  use.add({.link = {0}, .begin = zero, .end = zero + 1us, .bytes = 100});
  CHECK_THROWS_AS(use.finish(timeline_of(zero + 1us, {{98}}), false), InvariantError);
}

TEST_CASE("steps too short for the memory are refused, whatever follows") {
  LinkUse use(1_ps);
  for (int i = 0; i < 3; ++i) use.add({.link = {0}, .begin = zero, .end = zero + 1s, .bytes = 100});
  CHECK_THROWS_AS(use.finish(timeline_of(zero + 1s, {{300}}), false), InputError);
}

// Two messages of 10 MB cross the trunk of 10 GB/s at once, each at 5 GB/s for 2 ms; their ports are half used.
TEST_CASE("a shared link is full, and the links that wait for it are not") {
  const Topology net = dumbbell({.bandwidth = 10_GBps, .latency = 0us}, {.bandwidth = 10_GBps, .latency = 0us});
  for (const NetworkModel model : {NetworkModel::fair, NetworkModel::packet}) {
    CAPTURE(to_string(model));
    LinkUse use(500us);
    RunOptions options{.model = model};
    options.placement = {NodeId{0}, NodeId{2}, NodeId{1}, NodeId{3}};
    options.on_traffic = [&](const Traffic& traffic) { use.add(traffic); };
    const CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 4, .bytes = {40'000'000}};
    const Timeline line = run(net, check(make_schedule(*find_algorithm("ring"), request, {})), options);
    // Six steps: rank 0 -> 1 and 2 -> 3 cross to the right, 1 -> 2 and 3 -> 0 to the left: 2 ms each.
    CHECK(line.duration() >= 12ms);
    for (const LinkUse::Series& series : use.finish(line, false)) {
      const bool is_trunk =
          series.link == link_between(net, "s0", "s1") || series.link == link_between(net, "s1", "s0");
      // 5 MB in 500 us over the trunk, half over a port.
      CHECK(static_cast<double>(series.bytes[2]) == doctest::Approx(is_trunk ? 5e6 : 2.5e6).epsilon(0.01));
      CHECK(std::accumulate(series.bytes.begin(), series.bytes.end(), std::int64_t{0}) ==
            line.link_bytes[series.link.value].count);
    }
  }
}

}  // namespace link_use_test
