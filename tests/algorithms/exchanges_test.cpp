// What the doc comments of the algorithms of log2(n) steps say, counted from the schedules.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/exchanges/powers.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"

namespace exchanges_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

struct Count {
  int sending_steps = 0;
  Bytes sent;
  std::set<Actor> to;
  std::vector<Bytes> of_step;  // what each sending step sends
};

Count count(const Schedule& schedule, Actor actor) {
  Count found;
  for (int i = 0; i < schedule.n_steps(actor, 0); ++i) {
    Step step;
    schedule.step(actor, 0, i, step);
    Bytes sent;
    bool sends = false;
    for (const Op& op : step.ops) {
      if (op.what != Do::send) continue;
      sends = true;
      sent += schedule.size(op.region);
      found.to.insert(op.peer);
    }
    if (!sends) continue;
    ++found.sending_steps;
    found.sent += sent;
    found.of_step.push_back(sent);
  }
  return found;
}

Bytes blocks(int n) { return Bytes{n * 1000}; }  // with chunks of 1000 bytes

}  // namespace

TEST_CASE("powers of two and logarithms, at the small numbers and at the edges between them") {
  CHECK(ceil_log2(1) == 0);
  CHECK(ceil_log2(2) == 1);
  CHECK(ceil_log2(3) == 2);
  CHECK(ceil_log2(8) == 3);
  CHECK(ceil_log2(9) == 4);
  CHECK(floor_log2(1) == 0);
  CHECK(floor_log2(7) == 2);
  CHECK(floor_log2(8) == 3);
  CHECK(is_power_of_two(1));
  CHECK_FALSE(is_power_of_two(12));
}

TEST_CASE("the halves of halving-doubling take m steps to partners one bit away, and send all but a chunk") {
  for (int n = 2; n <= 32; n *= 2) {
    for (Actor r = 0; r < n; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      for (const bool scatters : {true, false}) {
        const Count found =
            count(scatters ? halving_reduce_scatter(n, Bytes{n * 1000}) : doubling_all_gather(n, Bytes{n * 1000}), r);
        CHECK(found.sending_steps == floor_log2(n));
        CHECK(found.sent == Bytes{(n - 1) * 1000});
        for (const Actor to : found.to) CHECK(is_power_of_two(to ^ r));
        // Halving sends the large blocks first, doubling the small ones.
        CHECK(std::is_sorted(found.of_step.begin(), found.of_step.end()) == (!scatters || n == 2));
      }
    }
  }
}

TEST_CASE("binary blocks: 13 ranks are blocks of 8, 4 and 1, and each hands its sums to the next larger") {
  CHECK(binary_blocks(13) == std::vector{8, 4, 1});
  CHECK(binary_blocks(8) == std::vector{8});
  const Bytes size{8000};
  const Schedule s = halving_doubling(13, size, Fold::binary_blocks);
  const Count large = count(s, 5), middle = count(s, 8 + 1), last = count(s, 12);
  CHECK(s.n_steps(5, 0) == 2 * 3 + 2);                             // a smaller block
  CHECK(s.n_steps(9, 0) == 2 * 2 + 4);                             // a smaller and a larger one
  CHECK(s.n_steps(12, 0) == 2);                                    // a larger one, and nobody to exchange with
  CHECK(large.sent == Bytes{2 * 7000 + 1000});                     // and its chunk, to the block of 4
  CHECK(middle.sent == Bytes{2 * 6000 + 2000 + 2000});             // its chunk up to the 8, and its chunk down to the 1
  CHECK(last.sent == Bytes{8000});                                 // all it has, to the block of 4
  CHECK(large.to == std::set<Actor>{5 ^ 4, 5 ^ 2, 5 ^ 1, 8 + 2});  // 5 keeps chunk 5, which lies in what 2 of 4 keeps
  CHECK(middle.to == std::set<Actor>{8 + 3, 8 + 0, 2, 3, 12});
  CHECK(last.to == std::set<Actor>{8, 9, 10, 11});
}

TEST_CASE("recursive doubling sends the whole buffer m times; ranks beyond once, their partners once more") {
  for (int n = 2; n <= 17; ++n) {
    const int m = floor_log2(n), core = 1 << m;
    const Schedule s = recursive_doubling_all_reduce(n, 1000003_B);
    for (Actor r = 0; r < n; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      const Count found = count(s, r);
      const int times = r >= core ? 1 : r + core < n ? m + 1 : m;
      CHECK(found.sending_steps == times);
      CHECK(found.sent == 1000003_B * times);
      for (const Actor to : found.to) CHECK((is_power_of_two(to ^ r) || std::abs(to - r) == core));
    }
  }
  CHECK(count(recursive_doubling_all_gather(16, 16000_B), 3).sent == 15000_B);
}

TEST_CASE("Bruck's all-gather takes ceil(log2 n) steps and sends all but a chunk, to ranks 2^k below") {
  for (int n = 2; n <= 33; ++n) {
    for (Actor r = 0; r < n; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      const Count found = count(bruck_all_gather(n, blocks(n)), r);
      CHECK(found.sending_steps == ceil_log2(n));
      CHECK(found.sent == Bytes{(n - 1) * 1000});
      for (const Actor to : found.to) CHECK(is_power_of_two(wrap(r - to, n)));
      CHECK(std::is_sorted(found.of_step.begin(), found.of_step.end() - 1));  // the last step sends what is left
    }
  }
}

TEST_CASE("Bruck's all-to-all sends a block once for each bit of its distance, in ceil(log2 n) steps") {
  for (int n = 2; n <= 33; ++n) {
    int bits = 0;
    for (int j = 1; j < n; ++j) bits += std::popcount(static_cast<unsigned>(j));
    for (Actor r = 0; r < n; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      const Count found = count(bruck_all_to_all(n, blocks(n)), r);
      CHECK(found.sending_steps == ceil_log2(n));
      CHECK(found.sent == Bytes{bits * 1000});
      for (const Actor to : found.to) CHECK(is_power_of_two(wrap(to - r, n)));
    }
  }
}

TEST_CASE(
    "PAT sends all but a chunk in ceil(log2 n) steps: one chunk far away first, half of all to the next rank last") {
  for (int n = 2; n <= 33; ++n) {
    for (Actor r = 0; r < n; ++r) {
      CAPTURE(n);
      CAPTURE(r);
      Count down = count(pat_all_gather(n, blocks(n)), r), up = count(pat_reduce_scatter(n, blocks(n)), r);
      for (const Count* found : {&down, &up}) {
        CHECK(found->sending_steps == ceil_log2(n));
        CHECK(found->sent == Bytes{(n - 1) * 1000});
      }
      for (const Actor to : down.to) CHECK(is_power_of_two(wrap(to - r, n)));
      for (const Actor to : up.to) CHECK(is_power_of_two(wrap(r - to, n)));
      CHECK(down.of_step.front() == Bytes{1000});
      CHECK(down.of_step.back() == Bytes{n / 2 * 1000});
      std::reverse(up.of_step.begin(), up.of_step.end());
      CHECK(up.of_step == down.of_step);
    }
  }
}

TEST_CASE("Swing's partners lie 1, 1, 3, 5, 11 places away, on alternating sides") {
  CHECK(swing_distance(0) == 1);
  CHECK(swing_distance(1) == -1);
  CHECK(swing_distance(2) == 3);
  CHECK(swing_distance(3) == -5);
  CHECK(swing_distance(4) == 11);
  const Schedule s = swing_all_reduce({16}, 16000_B);
  CHECK(count(s, 0).to == std::set<Actor>{1, 15, 3, 11});  // even: +1, -1, +3, -5
  CHECK(count(s, 7).to == std::set<Actor>{6, 8, 4, 12});   // odd: -1, +1, -3, +5
  CHECK(count(s, 7).sent == Bytes{2 * 15 * 1000});
  CHECK(s.n_steps(7, 0) == 8);
  // Two dimensions of 4 take turns: 1 along the last... and -1; never farther than a neighbor.
  CHECK(count(swing_all_reduce({4, 4}, 16000_B), 5).to == std::set<Actor>{4, 6, 1, 9});
}

TEST_CASE("Swing is right for large powers of two, in one dimension and in several") {
  for (const std::vector<int>& dimensions : {std::vector{256}, {16, 32}, {8, 8, 8}, {64, 1, 4}, {2, 128}}) {
    const Schedule s = swing_all_reduce(dimensions, 1_MiB);
    CAPTURE(s.collective.ranks);
    CHECK(check(s).proof().slots_needed == 0);
  }
}

TEST_CASE("on all ports Swing takes 2m a + 2(n-1)/n size/(2D b) if partners are neighbors, m (a + size/(2D b)) whole") {
  // 4 x 4 x 4: six directions. 64 * 6 chunks of 1000 B; a link has 1 GB/s and takes 100 ns.
  const std::vector<int> dimensions{4, 4, 4};
  const Topology net = build(Torus{.dimensions = dimensions, .link = {.bandwidth = 1_GBps, .latency = 100'000_ps}});
  const auto time = [&](const SwingOptions& options) {
    return run(net, check(swing_all_reduce(dimensions, 384'000_B, options))).duration();
  };
  CHECK(time({.all_ports = true}) == Picoseconds{12 * 100'000 + 126'000'000L});
  CHECK(time({.all_ports = true, .whole = true}) == Picoseconds{6 * 64'100'000L});
  CHECK(time({}) == Picoseconds{12 * 100'000 + 6 * 126'000'000L});
  CHECK(time({.whole = true}) == Picoseconds{6 * 384'100'000L});
}

TEST_CASE("on all ports each lane of Swing starts along a dimension and a direction of its own") {
  const Schedule s = swing_all_reduce({8, 8}, 1_MiB, {.all_ports = true});
  REQUIRE(s.lanes == 4);
  std::set<Actor> first;
  for (Lane lane = 0; lane < s.lanes; ++lane) {
    Step step;
    s.step(9, lane, 0, step);  // row 1, column 1
    first.insert(step.ops[0].peer);
    CHECK(step.ops[0].channel == lane);
  }
  CHECK(first == std::set<Actor>{1, 17, 8, 10});
  CHECK(swing_all_reduce({1, 16}, 1_MiB, {.all_ports = true}).lanes == 2);
  CHECK(swing_all_reduce({1}, 1_MiB, {.all_ports = true}).lanes == 1);
}

TEST_CASE(
    "on an 8 x 8 torus Swing on all ports comes within a third of bucket for large messages, far ahead of one port") {
  // The paper's congestion deficiency of large 2D tori is 1.19; one port at a time takes 4.2 times as long as bucket.
  const std::vector<int> dimensions{8, 8};
  const Topology net = build(Torus{.dimensions = dimensions, .link = {.bandwidth = 50_GBps, .latency = 500'000_ps}});
  const auto time = [&](const Schedule& s) { return static_cast<double>(run(net, check(s)).duration().count()); };
  const double bucket = time(bucket_all_reduce(dimensions, 64_MiB));
  CHECK(time(swing_all_reduce(dimensions, 64_MiB)) > 4 * bucket);
  const double ratio = time(swing_all_reduce(dimensions, 64_MiB, {.all_ports = true})) / bucket;
  CHECK(ratio > 1);
  CHECK(ratio < 4.0 / 3);
  // Small messages: bucket takes 28 steps to a neighbor. Swing's partners are 1, 1 and 3 hops away in each of two
  // dimensions: 10 hops, and as many back unless the whole is exchanged.
  const double small = time(bucket_all_reduce(dimensions, 1_KiB));
  const double halves = time(swing_all_reduce(dimensions, 1_KiB, {.all_ports = true}));
  const double whole = time(swing_all_reduce(dimensions, 1_KiB, {.all_ports = true, .whole = true}));
  CHECK(halves == doctest::Approx(small * 20 / 28).epsilon(0.01));
  CHECK(whole == doctest::Approx(small * 10 / 28).epsilon(0.02));
}

TEST_CASE("on a ring, Swing loads links less than recursive halving and doubling do") {
  // 16 GPUs in a ring, relayed by those between them: both send as much, but Swing 1, 1, 3, 5 places far, the other 1,
  // 2, 4, 8, whose largest messages, half of the buffer each, go the farthest.
  const Topology net = build(Ring{.ranks = 16, .link = {.bandwidth = 10_GBps, .latency = 100'000_ps}});
  const auto time = [&](const Schedule& s) { return run(net, check(s)).duration(); };
  CHECK(time(swing_all_reduce({16}, 16_MiB)) < time(halving_doubling(16, 16_MiB, Fold::naive)) * 3 / 4);
}

TEST_CASE("what needs a power of two says so by name") {
  const auto refused = [](const char* name, CollectiveOp op) {
    try {
      find_algorithm(name)->make({.op = op, .ranks = 12, .bytes = 1_KiB}, {});
      return std::string("accepted");
    } catch (const InputError& error) {
      return error.message();
    }
  };
  CHECK(refused("swing", CollectiveOp::all_reduce) == "swing needs a power-of-two number of ranks, found 12");
  CHECK(refused("halving_doubling", CollectiveOp::reduce_scatter) ==
        "halving_doubling reduce_scatter needs a power-of-two number of ranks, found 12");
  CHECK(refused("halving_doubling", CollectiveOp::all_gather) ==
        "halving_doubling all_gather needs a power-of-two number of ranks, found 12");
  CHECK(refused("recursive_doubling", CollectiveOp::all_gather) ==
        "recursive_doubling all_gather needs a power-of-two number of ranks, found 12");
  CHECK(refused("halving_doubling", CollectiveOp::all_reduce) == "accepted");
  const Algorithm& halving = *find_algorithm("halving_doubling");
  CHECK_THROWS_WITH_AS(
      halving.make({.op = CollectiveOp::all_gather, .ranks = 8, .bytes = 1_KiB}, {.texts = {{"fold", "naive"}}}),
      "halving_doubling: fold applies to all_reduce, not to all_gather\n  hint: remove fold", InputError);
}

TEST_CASE("binary blocks beat either fold where the blocks are of similar size, and not where one rank is left") {
  const auto time = [](int ranks, Fold fold) {
    return run(star(ranks, {.bandwidth = 10_GBps}), check(halving_doubling(ranks, 64_MiB, fold))).duration();
  };
  // 12 = 8 + 4: sums of size/4 go up and down, half of size/b, where a fold costs twice the size.
  CHECK(time(12, Fold::binary_blocks) < time(12, Fold::naive));
  CHECK(time(12, Fold::binary_blocks) < time(12, Fold::rabenseifner));
  CHECK(time(13, Fold::binary_blocks) > time(13, Fold::naive));
}

}  // namespace exchanges_test
