// Gossip: the closed form to the picosecond, limits of unequal ranks, and the proof that neighbors are averaged.
#include "algorithms/training/gossip.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/program/lower.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"

namespace training_gossip_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec port{.bandwidth = 100_Gbps, .latency = 1us};
constexpr Bytes weights{16'000'000};  // 1.28 ms at 12.5 GB/s
constexpr Picoseconds copy = 1'280us;

TrainingStep two_layers(int rounds) {
  TrainingStep step{.name = "two", .layers = {}, .update = 500us};
  step.layers = {{.name = "a", .tensors = {1'000'000, 17}, .forward = 3ms, .backward = 5ms},
                 {.name = "b", .tensors = {2'999'983}, .forward = 5ms, .backward = 7ms}};
  step.steps = rounds;
  return step;
}

std::optional<CheckedSchedule> to_the_next(int ranks) {
  if (ranks == 1) return std::nullopt;
  CollectiveRequest request{.op = CollectiveOp::send_recv, .ranks = ranks};
  request.bytes = weights;
  return check(make_schedule(*find_algorithm("direct"), request, {}));
}

Timeline run_on_star(const Program& program) {
  return run(star(program.ranks, port), LoweredProgram(check(program)).schedule());
}

/// The first task of that name.
Program::Task* find_task(Program& program, const std::string& name) {
  for (auto& stream : program.roles[0].streams)
    for (Program::Task& task : stream)
      if (program.name_of(task) == name) return &task;
  return nullptr;
}

/// max-plus, as naive as it can be: a rank ends a round one exchange after the last of itself and its neighbors.
Picoseconds last_end(const TrainingStep& step, const Stragglers& stragglers, int ranks, int every,
                     Picoseconds exchange) {
  std::vector<Picoseconds> ends(static_cast<std::size_t>(ranks), Picoseconds{0});
  for (int round = 0; round < step.steps; ++round) {
    std::vector<Picoseconds> ready;
    for (Actor rank = 0; rank < ranks; ++rank) {
      ready.push_back(ends[static_cast<std::size_t>(rank)]);
      for (int i = 0; i < every; ++i)
        ready.back() = passes_end(step, stragglers, rank, round * every + i, ready.back()) +
                       stragglers.time(step.update, rank, round * every + i, false);
    }
    for (int rank = 0; rank < ranks; ++rank)
      ends[static_cast<std::size_t>(rank)] =
          std::max({ready[static_cast<std::size_t>(rank)], ready[static_cast<std::size_t>((rank + 1) % ranks)],
                    ready[static_cast<std::size_t>((rank + ranks - 1) % ranks)]}) +
          exchange;
  }
  return *std::max_element(ends.begin(), ends.end());
}

}  // namespace

// C = 20.5 ms with the update; two copies through one port take 2.56 ms (of two ranks one copy, 1.28), a = 2 us.
TEST_CASE("a round of gossip takes H steps, two copies of the weights and a latency, however many ranks there are") {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 64})
    for (const int every : {1, 4}) {
      CAPTURE(ranks);
      CAPTURE(every);
      const TrainingStep step = two_layers(3);
      const Picoseconds exchange = ranks == 1 ? Picoseconds{0} : ranks == 2 ? copy + 2us : 2 * copy + 2us;
      const Timeline ran = run_on_star(gossip_program(step, {.every = every}, to_the_next(ranks)));
      CHECK(ran.duration() == 3 * (every * 20'500us + exchange));
      CHECK(gossip_round_time(step, {.every = every}, exchange) == every * 20'500us + exchange);
      CHECK(ran.bytes_sent.count == 3LL * ranks * std::min(2, ranks - 1) * weights.count);
    }
}

// Both passes take 20 ms: an exchange of 2.562 ms hides, one of 16 times the weights, 40.962 ms, does not.
TEST_CASE("with overlap weights travel during both passes of a round's first step") {
  for (const int every : {1, 4})
    for (const int times : {1, 16}) {
      CAPTURE(every);
      CAPTURE(times);
      const TrainingStep step = two_layers(3);
      CollectiveRequest request{.op = CollectiveOp::send_recv, .ranks = 6};
      request.bytes = weights * times;
      const CheckedSchedule exchange = check(make_schedule(*find_algorithm("direct"), request, {}));
      const Gossip gossip{.every = every, .overlap = true};
      const Picoseconds round = std::max<Picoseconds>(20ms, times * 2 * copy + 2us) + 500us + (every - 1) * 20'500us;
      CHECK(run_on_star(gossip_program(step, gossip, exchange)).duration() == 3 * round);
      CHECK(gossip_round_time(step, gossip, times * 2 * copy + 2us) == round);
    }
}

// Kernels of 3, 5, 7, 5 and 0.5 ms, launched every 4 ms: 4 to 7, 8 to 13, 13 to 20, 20 to 25, 25 to 25.5 ms, in every
// step of a round. With overlap an exchange of 40.962 ms holds up the first update, launched long before.
TEST_CASE("a host that waits launches each step of a round of gossip when the one before is done") {
  for (const int every : {1, 2, 4}) {
    CAPTURE(every);
    TrainingStep step = two_layers(3);
    step.host_launch = 4ms;
    const Picoseconds exchange = 2 * copy + 2us;
    const Timeline ran = run_on_star(gossip_program(step, {.every = every}, to_the_next(6)));
    CHECK(ran.duration() == 3 * (every * 25'500us + exchange));
    CHECK(gossip_round_time(step, {.every = every}, exchange) == every * 25'500us + exchange);
    CollectiveRequest request{.op = CollectiveOp::send_recv, .ranks = 6};
    request.bytes = weights * 16;
    const CheckedSchedule large = check(make_schedule(*find_algorithm("direct"), request, {}));
    const Gossip overlapped{.every = every, .overlap = true};
    const Picoseconds round = 32 * copy + 2us + 500us + (every - 1) * 25'500us;
    CHECK(run_on_star(gossip_program(step, overlapped, large)).duration() == 3 * round);
    CHECK(gossip_round_time(step, overlapped, 32 * copy + 2us) == round);
  }
}

// TRAINING's example: f + B = 20 ms and no update, one rank twice as slow: every step of all takes C_max + 2x + a.
TEST_CASE("a rank that is slow for good slows all ranks, one hop a step") {
  for (const int ranks : {3, 4, 9, 16}) {
    CAPTURE(ranks);
    TrainingStep step = two_layers(20);
    step.update = Picoseconds{0};
    const Stragglers stragglers{.slow = {{.rank = 1, .millionths = 2'000'000}}, .jitter = {}};
    Program program = gossip_program(step, {}, to_the_next(ranks));
    add_stragglers(program, stragglers, 1);
    // The slow rank and its neighbors: 42.562 ms per step.
    CHECK(run_on_star(program).duration() == 20 * (40ms + 2 * copy + 2us));
    const StepLimits limits = gossip_step_limits(step, {}, stragglers, ranks, copy, 2, 2us, 0);
    CHECK(limits.high == 40ms + 2 * copy + 2us);
    CHECK(limits.low == 40ms + 2 * copy + 2us);
  }
}

// Where neighbors are not in step, a copy has more than half of a port: the form of equal ranks is an upper limit.
TEST_CASE("with jitter gossip ends between its limits, and its upper limit is the naive max-plus product") {
  for (const Distribution distribution : {Distribution::uniform, Distribution::exponential})
    for (const int ranks : {2, 3, 5, 16})
      for (const int every : {1, 3})
        for (const bool overlap : {false, true}) {
          CAPTURE(ranks);
          CAPTURE(every);
          CAPTURE(overlap);
          const TrainingStep step = two_layers(24 / every);
          const Stragglers stragglers{.slow = {}, .jitter = Draws{distribution, 2ms, 11}};
          const Gossip gossip{.every = every, .overlap = overlap};
          Program program = gossip_program(step, gossip, to_the_next(ranks));
          add_stragglers(program, stragglers, every);
          const int copies = ranks == 2 ? 1 : 2;
          const StepLimits limits = gossip_step_limits(step, gossip, stragglers, ranks, copy, copies, 2us, 0);
          const Picoseconds mean = run_on_star(program).duration() / 24;
          CHECK(mean >= limits.low - 10_ps);  // a share of a port is rounded whenever a copy begins or ends
          CHECK(mean <= limits.high + 10_ps);
          CHECK(limits.high - limits.low <= (copy * 24 / every) / 24);  // a copy a round at most
          if (!overlap) CHECK(limits.high == last_end(step, stragglers, ranks, every, copies * copy + 2us) / 24);
        }
}

TEST_CASE("gossip is proved: each rank averages itself and both neighbors, each once") {
  for (const bool overlap : {false, true}) {
    CAPTURE(overlap);
    for (const int ranks : {2, 3, 4, 7})
      CHECK(verdict_of(gossip_program(two_layers(2), {.every = 2, .overlap = overlap}, to_the_next(ranks))) ==
            "accepted");
    const Program good = gossip_program(two_layers(2), {.every = 2, .overlap = overlap}, to_the_next(4));
    const std::string wrong =
        "rank 0: an iteration must leave the weights of a[0] as the mean of those of the rank and "
        "its 2 neighbors, each once, " +
        std::string(overlap ? "and then add the rank's own gradient" : "each with its own gradient") +
        "; found something else";
    Program same = good;  // the rank to the left twice
    same.calls[1].members.clear();
    CHECK(verdict_of(same) == wrong);
    Program divisor = good;
    for (Program::Touch& touch : find_task(divisor, "average")->touches)
      if (touch.as == Program::Touch::As::divide) touch.divisor = 2;
    CHECK(verdict_of(divisor) == wrong);
    Program once = good;  // what came from the left is not added
    find_task(once, "average")->touches.erase(find_task(once, "average")->touches.begin());
    CHECK(verdict_of(once) == wrong);
    Program lost = good;  // one of two updates lacks
    find_task(lost, "update")->touches.clear();
    CHECK(verdict_of(lost) == wrong);
    Program never = good;
    never.calls[0].variables.clear();
    never.calls[0].into.clear();
    find_task(never, "average")->touches.clear();
    CHECK(verdict_of(never) != "accepted");
    Program early = good;  // averages before the left neighbor's weights are there
    find_task(early, "average")->after.pop_back();
    CHECK(verdict_of(early).find("both touch the weights of a[0]") != std::string::npos);
    Program unplaced = good;
    unplaced.calls[0].into.pop_back();
    CHECK(verdict_of(unplaced) == "call send right has 3 variables and 2 places for what comes in");
    Program zero = good;
    find_task(zero, "average")->touches.back().divisor = 0;
    CHECK(verdict_of(zero).find("(average): it divides by less than 1") != std::string::npos);
  }
  Program late = gossip_program(two_layers(2), {.overlap = true}, to_the_next(4));
  find_task(late, "update")->after.clear();
  CHECK(verdict_of(late).find("both touch the weights of a[0]") != std::string::npos);
  // The proofs of the two ways to average are not the same.
  Program other = gossip_program(two_layers(2), {}, to_the_next(4));
  for (Program::Learns& learns : other.learns) learns.how = Program::Learns::How::neighbors_first;
  CHECK(verdict_of(other).find("and then add the rank's own gradient") != std::string::npos);
}

}  // namespace training_gossip_test
