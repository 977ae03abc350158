// Ranks that compute unequally: draws, the barrel effect next to the same draws, and a server's queue.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/training/local_sgd.hpp"
#include "algorithms/training/server.hpp"
#include "algorithms/training/stragglers.hpp"
#include "sim/program/account.hpp"
#include "sim/program/draws.hpp"
#include "sim/program/lower.hpp"
#include "tests/support/tiny.hpp"

namespace training_stragglers_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec port{.bandwidth = 100_Gbps, .latency = 1us};

CheckedSchedule schedule(const char* algorithm, CollectiveOp op, int ranks, Bytes bytes, Actor root = 0) {
  CollectiveRequest request{.op = op, .ranks = ranks};
  request.bytes = bytes;
  request.root = root;
  return check(make_schedule(*find_algorithm(algorithm), request, {}));
}

/// One layer, one bucket: 20 ms of both passes.
TrainingStep one_layer(Bytes gradients, int steps) {
  TrainingStep step{.name = "one", .layers = {}};
  step.layers = {{.name = "l", .tensors = {gradients.count / 4}, .forward = 8ms, .backward = 12ms}};
  step.steps = steps;
  return step;
}

Timeline run_on_star(const Program& program) {
  return run(star(program.ranks, port, program.actors - program.ranks), LoweredProgram(check(program)).schedule());
}

}  // namespace

// log2 of powers of two is exact; others to 40 units of 2^-40.
TEST_CASE("logarithms by whole numbers are right to 2^-34") {
  for (int i = 0; i < 64; ++i) CHECK(log2_in_2_40ths(std::uint64_t{1} << i) == static_cast<std::uint64_t>(i) << 40);
  for (const std::uint64_t x : {3ULL, 5ULL, 1000ULL, 123456789ULL, 18446744073709551615ULL}) {
    CAPTURE(x);
    const double exact = std::log2(static_cast<double>(x)) * std::ldexp(1, 40);
    CHECK(std::abs(static_cast<double>(log2_in_2_40ths(x)) - exact) < 64);
  }
}

// 100,000 draws: a uniform one of 0 to 4 ms has mean 2 ms and standard deviation 4/sqrt(12) ms = 1.155 ms, so its mean
// is known to 3.65 us; an exponential one of mean 4 ms has standard deviation 4 ms: 12.6 us. Within 4 of these.
TEST_CASE("draws have the mean of their distribution, and depend on seed, actor and number alone") {
  for (const Distribution distribution : {Distribution::uniform, Distribution::exponential}) {
    const Draws draws{.distribution = distribution, .spread = 4ms, .seed = 7};
    double sum = 0;
    Picoseconds most{0};
    for (int i = 0; i < 100'000; ++i) {
      const Picoseconds time = draws.of(i % 100, i / 100);
      CHECK(time >= 0_ps);
      sum += static_cast<double>(time.count());
      most = std::max(most, time);
    }
    const bool is_uniform = distribution == Distribution::uniform;
    CHECK(std::abs(sum / 100'000 - (is_uniform ? 2e9 : 4e9)) < 4 * (is_uniform ? 3.65e6 : 12.6e6));
    CHECK(most > (is_uniform ? 3990us : 30ms));  // one of 100,000 exponential ones passes 30 ms with 1 - e^-55
    CHECK(most <= (is_uniform ? 4ms : 180ms));
    CHECK(draws.of(3, 5) == draws.of(3, 5));
    CHECK(draws.of(3, 5) != draws.of(5, 3));
    CHECK(draws.of(3, 5) != Draws{distribution, 4ms, 8}.of(3, 5));
  }
}

// step_i = max_r C(r, i) + T for the same draws: one bucket, so nothing overlaps.
TEST_CASE("with jitter a step is as long as its slowest rank and the all-reduce, to the picosecond") {
  for (const char* algorithm : {"ring", "halving_doubling"})
    for (const Distribution distribution : {Distribution::uniform, Distribution::exponential})
      for (const int ranks : {2, 4, 8, 16, 32}) {
        CAPTURE(algorithm);
        CAPTURE(ranks);
        const int steps = 40;
        TrainingStep step = one_layer(16'000'000_B, steps);
        step.update = 500us;
        step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_B);
        step.schedules = {schedule(algorithm, CollectiveOp::all_reduce, ranks, 16'000'000_B)};
        const Picoseconds call = run(star(ranks, port), step.schedules[0]).duration();
        const Stragglers stragglers{.slow = {}, .jitter = Draws{distribution, 4ms, 11}};
        Program program = training_program(step);
        add_stragglers(program, stragglers, 1);
        const Timeline timeline = run_on_star(program);
        Picoseconds all{0};
        for (int i = 0; i < steps; ++i) {
          Picoseconds most{0};
          for (Actor rank = 0; rank < ranks; ++rank) most = std::max(most, stragglers.jitter->of(rank, i));
          all += 20ms + most + call + 500us;
        }
        CHECK(timeline.duration() == all);
        CHECK(barrel_step_time(step, stragglers, ranks, {call}, 1, 0) == all / steps);
      }
}

// A round of local SGD waits once in H steps: max_r of the sum of H draws.
TEST_CASE("with jitter a round of local SGD is as long as the longest sum of its steps, to the picosecond") {
  for (const int every : {1, 4, 16}) {
    CAPTURE(every);
    const int ranks = 8, rounds = 6;
    TrainingStep step = one_layer(16'000'000_B, rounds);
    step.update = 500us;
    const CheckedSchedule average = schedule("ring", CollectiveOp::all_reduce, ranks, 16'000'000_B);
    const Picoseconds call = run(star(ranks, port), average).duration();
    const Stragglers stragglers{.slow = {}, .jitter = Draws{Distribution::exponential, 4ms, 3}};
    Program program = local_sgd_program(step, every, average);
    add_stragglers(program, stragglers, every);
    Picoseconds all{0};
    for (int round = 0; round < rounds; ++round) {
      Picoseconds most{0};
      for (Actor rank = 0; rank < ranks; ++rank) {
        Picoseconds sum{0};
        for (int i = 0; i < every; ++i) sum += stragglers.jitter->of(rank, round * every + i);
        most = std::max(most, sum);
      }
      all += every * 20'500us + most + call;
    }
    CHECK(run_on_star(program).duration() == all);
    CHECK(barrel_step_time(step, stragglers, ranks, {call}, every, 0) == all / rounds / every);
  }
}

// One of 8 ranks computes for 2C = 40 ms. With an all-reduce of time T the throughput falls to (C + T)/(2C + T); with
// one separate server, whose port has worked off the others' pushes by then, from C + 2 W x + 2a to max(C + W x, 2C +
// x) + W x + 2a, x = p/b: for 100 MB not at all.
TEST_CASE("one slow rank of eight: the all-reduce waits for it, a busy server does not") {
  struct Row {
    Bytes gradients;
    double all_reduce, server;
  };
  for (const Row& row : {Row{1'000'000_B, 0.502091, 0.522640}, Row{16'000'000_B, 0.526829, 0.785731},
                         Row{100'000'000_B, 0.629822, 1.0}}) {
    CAPTURE(row.gradients.count);
    const Stragglers stragglers{.slow = {{.rank = 3, .millionths = 2'000'000}}, .jitter = {}};
    const auto time = [&](Program program, bool is_slow) {
      if (is_slow) add_stragglers(program, stragglers, 1);
      return run_on_star(program).duration();
    };
    TrainingStep step = one_layer(row.gradients, 3);
    const ServerExchange exchange{.push = {schedule("direct", CollectiveOp::reduce, 9, row.gradients, 8)},
                                  .pull = {schedule("direct", CollectiveOp::broadcast, 9, row.gradients, 8)},
                                  .servers = 1};
    const Program served = parameter_server_program(step, 8, exchange);
    const Picoseconds x = transfer_time(row.gradients, port.bandwidth);
    CHECK(time(served, false) == 3 * (20ms + 16 * x + 4us));
    // A message's share of the port is rounded when the straggler joins: at most 1 ps a step.
    const Picoseconds one_slow = std::max(20ms + 8 * x, 40ms + x) + 8 * x + 4us;
    CHECK(server_queue_step_time(step, stragglers, 8, -1, x, 2us, 0) == one_slow);
    CHECK(time(served, true) >= 3 * one_slow);
    CHECK(time(served, true) <= 3 * (one_slow + 1_ps));
    const auto share = [](Picoseconds a, Picoseconds b) {
      return static_cast<double>(a.count()) / static_cast<double>(b.count());
    };
    CHECK(std::abs(share(time(served, false), time(served, true)) - row.server) < 5e-7);
    step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_B);
    step.schedules = {schedule("ring", CollectiveOp::all_reduce, 8, row.gradients)};
    const Program reduced = training_program(step);
    CHECK(std::abs(share(time(reduced, false), time(reduced, true)) - row.all_reduce) < 5e-7);
  }
}

TEST_CASE("a rank is slow only in the steps that are said") {
  TrainingStep step = one_layer(16'000'000_B, 5);
  step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_B);
  step.schedules = {schedule("ring", CollectiveOp::all_reduce, 4, 16'000'000_B)};
  Program program = training_program(step);
  const Picoseconds equal = run_on_star(program).duration();
  const Stragglers stragglers{.slow = {{.rank = 1, .millionths = 1'500'000, .from = 1, .until = 3}}, .jitter = {}};
  add_stragglers(program, stragglers, 1);
  CHECK(run_on_star(program).duration() == equal + 2 * 10ms);
}

// The server is among the ranks: nobody's push begins before its own passes have ended.
TEST_CASE("a slow master holds up every push") {
  const TrainingStep step = one_layer(16'000'000_B, 2);
  const ServerExchange exchange{.push = {schedule("direct", CollectiveOp::reduce, 4, 16'000'000_B, 2)},
                                .pull = {schedule("direct", CollectiveOp::broadcast, 4, 16'000'000_B, 2)},
                                .servers = 0,
                                .master = 2};
  const Picoseconds x = transfer_time(16'000'000_B, port.bandwidth);
  for (const Actor slow : {2, 0}) {
    CAPTURE(slow);
    const Stragglers stragglers{.slow = {{.rank = slow, .millionths = 2'000'000}}, .jitter = {}};
    Program program = parameter_server_program(step, 4, exchange);
    add_stragglers(program, stragglers, 1);
    const Picoseconds pushed = slow == 2 ? 40ms + 3 * x : std::max(20ms + 3 * x, 40ms + x);
    CHECK(run_on_star(program).duration() == 2 * (pushed + 3 * x + 4us));
    CHECK(server_queue_step_time(step, stragglers, 4, 2, x, 2us, 0) == pushed + 3 * x + 4us);
  }
}

}  // namespace training_stragglers_test
