// Programs: their proof, their schedule, and where their time goes.
#include "sim/program/program.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/training/ddp.hpp"
#include "sim/program/account.hpp"
#include "sim/program/lower.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/naive/naive_program.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"

namespace program_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec port{.bandwidth = 100_Gbps, .latency = 1us};

/// Four layers of one tensor each on `ranks` GPUs, every layer a bucket.
Program four_buckets(int ranks, int iterations = 2) {
  TrainingStep step{.name = "four", .layers = {}, .update = 1ms};
  for (int l = 0; l < 4; ++l)
    step.layers.push_back({.name = fmt::format("l{}", l), .tensors = {250'000}, .forward = 1ms, .backward = 2ms});
  step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_B);
  for (const Bucket& bucket : step.buckets) step.schedules.push_back(check(ring_all_reduce(ranks, bucket.bytes)));
  step.steps = iterations;
  return training_program(step);
}

/// A role of its own for one rank.
Program::Role& role_for(Program& program, Actor actor) {
  program.role_of.assign(static_cast<std::size_t>(program.actors), 0);
  program.role_of[static_cast<std::size_t>(actor)] = 1;
  program.roles.push_back(program.roles[0]);
  return program.roles.back();
}

}  // namespace

TEST_CASE("a training step of several buckets is accepted") { CHECK(verdict_of(four_buckets(4)) == "accepted"); }

TEST_CASE("a bucket that does not wait for the backward pass is refused, with both tasks") {
  Program program = four_buckets(4);
  program.roles[0].streams[1][2].after.clear();
  CHECK(
      verdict_of(program) ==
      "rank 0, stream 0, task 6 (backward l1) and rank 0, stream 1, task 2 (bucket 2): both touch the gradient of l1, "
      "one of them writes it, and nothing orders them");
}

TEST_CASE("an update that does not wait for the buckets is refused") {
  Program program = four_buckets(4);
  program.roles[0].streams[0].back().after.clear();
  CHECK(verdict_of(program).find("(update)") != std::string::npos);
  CHECK(verdict_of(program).find("nothing orders them") != std::string::npos);
}

TEST_CASE("two buckets in another order on one rank are refused, with rank, stream and task") {
  Program program = four_buckets(4);
  Program::Role& role = role_for(program, 3);
  std::swap(role.streams[1][1], role.streams[1][2]);
  CHECK(verdict_of(program) ==
        "rank 3, stream 1, task 2 (bucket 1) comes after bucket 2; rank 0, stream 1, task 2 (bucket 2) comes after "
        "bucket 1: a cycle of waits");
}

TEST_CASE("a task that waits for a later one is refused with the whole circle") {
  Program program = four_buckets(4);
  program.roles[0].streams[0][0].after.push_back({1, 4, 0});
  CHECK(verdict_of(program).find("task 0 (forward l0) comes after bucket 3") != std::string::npos);
  CHECK(verdict_of(program).find("a cycle of waits") != std::string::npos);
}

namespace {

/// One rank, two or three streams of a few tasks that touch three variables, with waits anywhere.
Program random_touches(Draw& draw) {
  using As = Program::Touch::As;
  Program program{.name = "random", .ranks = 1, .actors = 1, .variables = {"a", "b", "c"}};
  Program::Role role;
  const auto streams = static_cast<int>(draw.number(2, 3));
  for (int s = 0; s < streams; ++s) {
    program.streams.push_back(Program::StreamKind::compute);
    role.streams.emplace_back(static_cast<std::size_t>(draw.number(1, 4)));
  }
  for (auto& tasks : role.streams)
    for (Program::Task& task : tasks) {
      task.name = fmt::format("task {}", draw.number(0, 999));
      for (auto n = draw.number(0, 2); n > 0; --n)
        task.touches.push_back({draw.once_in(3) ? As::clear : As::read, static_cast<int>(draw.number(0, 2))});
      for (auto n = draw.number(0, 3); n > 0; --n) {
        const auto stream = static_cast<std::size_t>(draw.number(0, streams - 1));
        const auto most = static_cast<std::int64_t>(role.streams[stream].size());
        task.after.push_back(
            {static_cast<Stream>(stream), static_cast<int>(draw.number(0, most)), draw.once_in(2) ? 1 : 0});
      }
    }
  program.roles = {role};
  return program;
}

/// True if two tasks of two iterations touch a variable, one of them writing, and neither is reached from the other
/// along streams and waits; none if tasks wait in a circle.
std::optional<bool> has_race(const Program& program) {
  const auto& streams = program.roles[0].streams;
  std::vector<std::vector<std::size_t>> number(streams.size());  // [stream][task over two iterations]
  std::size_t n = 0;
  for (std::size_t s = 0; s < streams.size(); ++s)
    for (std::size_t t = 0; t < 2 * streams[s].size(); ++t) number[s].push_back(n++);
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  const auto each = [&](auto visit) {
    for (std::size_t s = 0; s < streams.size(); ++s)
      for (std::size_t t = 0; t < 2 * streams[s].size(); ++t)
        visit(number[s][t], streams[s][t % streams[s].size()], t / streams[s].size(), s, t);
  };
  each([&](std::size_t i, const Program::Task& task, std::size_t iteration, std::size_t s, std::size_t t) {
    if (t > 0) before[number[s][t - 1]][i] = true;
    for (const Program::After& after : task.after) {
      const auto& others = number[static_cast<std::size_t>(after.stream)];
      const auto done =
          static_cast<std::ptrdiff_t>(others.size() / 2) * (static_cast<std::ptrdiff_t>(iteration) - after.back) +
          after.tasks;
      if (after.tasks > 0 && done > 0) before[others[static_cast<std::size_t>(done) - 1]][i] = true;
    }
  });
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (before[i][k] && before[k][j]) before[i][j] = true;
  for (std::size_t i = 0; i < n; ++i)
    if (before[i][i]) return std::nullopt;
  bool found = false;
  each([&](std::size_t i, const Program::Task& one, std::size_t, std::size_t, std::size_t) {
    each([&](std::size_t j, const Program::Task& other, std::size_t, std::size_t, std::size_t) {
      for (const Program::Touch& a : one.touches)
        for (const Program::Touch& b : other.touches) {
          const bool writes = a.as == Program::Touch::As::clear || b.as == Program::Touch::As::clear;
          if (i != j && a.variable == b.variable && writes && !before[i][j] && !before[j][i]) found = true;
        }
    });
  });
  return found;
}

}  // namespace

TEST_CASE("races of random programs are those of a search over all pairs of tasks") {
  int races = 0, none = 0, circles = 0;
  for (std::uint64_t seed = 1; seed <= 4'000; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const Program program = random_touches(draw);
    const std::optional<bool> expected = has_race(program);
    const std::string verdict = verdict_of(program);
    CHECK((verdict.find("a cycle of waits") != std::string::npos) == !expected.has_value());
    CHECK((verdict.find("nothing orders them") != std::string::npos) == expected.value_or(false));
    ++(!expected ? circles : *expected ? races : none);
  }
  CHECK(races > 300);
  CHECK(none > 300);
  CHECK(circles > 300);
}

TEST_CASE("a task waits for tasks of its own process alone") {
  Program program = four_buckets(4);
  role_for(program, 2).streams[0][1].after.push_back({0, 3, 0, 1});
  CHECK(verdict_of(program) ==
        "rank 2, stream 0, task 1 (forward l1): it waits for actor 1, which belongs to another process");
  program.process_of = {0, 1, 1, 0};
  CHECK(verdict_of(program) == "accepted");
  program.roles[1].streams[0][1].after.back() = {0, 10, 0, 1};  // rank 1 has nine: 4 + 4 passes, the update
  CHECK(verdict_of(program).find("it waits for 10 tasks of stream 0, which has 9") != std::string::npos);
  // Rank 1 has done bucket 3 only when rank 2 has also called it, which comes after this task.
  program.roles[1].streams[0][1].after.back() = {1, 4, 0, 1};
  CHECK(verdict_of(program).find("a cycle of waits") != std::string::npos);
}

// All do the same, but rank 0 does not wait for another: one rank cannot stand for all.
TEST_CASE("ranks that wait for each other's tasks have no symmetry") {
  Program program = four_buckets(4);
  CHECK(LoweredProgram(check(program)).schedule().proof().repeated.why_no_symmetry.empty());
  program.process_of = {0, 0, 0, 0};
  program.roles[0].streams[0][2].after.push_back({0, 2, 0, 0});
  CHECK(LoweredProgram(check(program)).schedule().proof().repeated.why_no_symmetry ==
        "ranks of one process may wait for each other");
}

TEST_CASE("a gradient in two buckets, or in none, is refused by name") {
  Program twice = four_buckets(4);
  twice.calls[1].variables.push_back(twice.calls[0].variables[0]);
  CHECK(verdict_of(twice).find("the gradient of l3 is summed 2 times, in bucket 0 and bucket 1") != std::string::npos);
  Program never = four_buckets(4);
  never.calls[1].variables.clear();
  CHECK(verdict_of(never) == "the gradient of l2 is in no call: the ranks never sum it");
}

TEST_CASE("a wrong divisor is refused, with what is found") {
  Program program = four_buckets(4);
  program.calls[3].divisor = 2;
  CHECK(verdict_of(program) ==
        "rank 0: an iteration must add to the weights of l0 the mean of the gradient of l0 over 4 ranks, found the sum "
        "divided by 2");
}

TEST_CASE("a gradient that is applied before it is summed, or summed before it is made, is refused") {
  Program early = four_buckets(4);
  // The buckets wait for the update, and the update for nothing: ordered, but the wrong way round.
  const int n = static_cast<int>(early.roles[0].streams[0].size());
  early.roles[0].streams[0].back().after.clear();
  for (Program::Task& task : early.roles[0].streams[1]) task.after = {{0, n, 0}};
  early.roles[0].streams[0].front().after = {{1, 4, 1}};
  CHECK(verdict_of(early).find("(update) applies the gradient of l0 before the ranks have summed it") !=
        std::string::npos);
  Program before = four_buckets(4);
  before.roles[0].streams[1][0].after = {{0, n, 1}};
  before.roles[0].streams[0][0].after = {{1, 1, 0}};
  CHECK(verdict_of(before).find("bucket 0 sums the gradient of l3 before it is made") != std::string::npos);
}

TEST_CASE("a member that never calls, or calls twice, and one call on two streams are refused") {
  Program never = four_buckets(4);
  Program::Role& role = role_for(never, 2);
  role.streams[1].pop_back();
  role.streams[0].back().after = {{1, 3, 0}};
  CHECK(verdict_of(never) == "rank 2 never calls bucket 3, although it is a member");
  Program twice = four_buckets(4);
  twice.roles[0].streams[1].push_back(twice.roles[0].streams[1].back());
  CHECK(verdict_of(twice).find("calls bucket 3 a second time") != std::string::npos);
  Program two = four_buckets(4);
  Program::Role& other = role_for(two, 1);
  other.streams[0].back().after = {{1, 3, 0}};
  other.streams[0].push_back(other.streams[1].back());
  other.streams[1].pop_back();
  CHECK(verdict_of(two).find("one call on two streams") != std::string::npos);
}

namespace {

struct Ran {
  Timeline timeline;
  std::vector<RankAccount> ranks;
  std::vector<TaskSpan> spans;
};

Ran run_program(const Topology& topology, const Program& program, int warmup = 0) {
  const LoweredProgram lowered(check(program));
  Accounts accounts(lowered, warmup);
  Ran ran;
  accounts.on_task = [&](const TaskSpan& span) { ran.spans.push_back(span); };
  RunOptions options;
  options.on_compute = [&](const ComputeEvent& event) { accounts.on_compute(event); };
  ran.timeline = run(topology, lowered.schedule(), options);
  ran.ranks = accounts.ranks();
  return ran;
}

Picoseconds alone(const Topology& topology, const CheckedSchedule& schedule) {
  return run(topology, schedule).duration();
}

/// Layers of random times on a ring of ranks that divide every size, one bucket each; ranks of unlike speed; perhaps a
/// host that launches.
Program random_program(std::mt19937_64& random, int ranks) {
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  TrainingStep step{.name = "random", .layers = {}, .update = draw(0, 3) * 100us};
  const int n_layers = draw(1, 5);
  for (int l = 0; l < n_layers; ++l)
    step.layers.push_back({.name = fmt::format("l{}", l),
                           .tensors = {ranks * 1000 * draw(1, 50)},
                           .forward = draw(0, 20) * 10us,
                           .backward = draw(0, 20) * 10us});
  step.buckets = pytorch_buckets(step.layers, 4, 1_B, {draw(1, 800'000)});
  for (const Bucket& bucket : step.buckets) step.schedules.push_back(check(ring_all_reduce(ranks, bucket.bytes)));
  step.launch = draw(0, 2) * 7us;
  step.hook = draw(0, 1) * 3us;
  step.host_launch = draw(0, 1) * 60us;
  step.host_waits = draw(0, 1) == 0;
  step.steps = draw(1, 4);
  Program program = training_program(step);
  if (draw(0, 1) == 0) return program;
  const Actor straggler = draw(0, ranks - 1);
  Program::Role& role = role_for(program, straggler);
  for (auto& stream : role.streams)
    for (Program::Task& task : stream)
      if (task.call < 0) task.time += draw(0, 9) * 13us;
  if (draw(0, 1) == 0) return program;
  // One process: kernels of the straggler wait for some that another rank runs at or before the same place.
  program.process_of.assign(static_cast<std::size_t>(ranks), 0);
  for (std::size_t t = 0; t < role.streams[0].size(); ++t)
    if (draw(0, 1) == 1)
      role.streams[0][t].after.push_back({0, draw(0, static_cast<int>(t) + 1), draw(0, 1), (straggler + 1) % ranks});
  return program;
}

}  // namespace

// A ring all-reduce of K ranks ends at all of them at once, its time after the last launch: a late rank reaches all
// others in K/2 of its 2(K-1) steps.
TEST_CASE("every task of random programs ends when a solver without events says, to the picosecond") {
  std::mt19937_64 random(20261122);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const int ranks = 2 + round % 4;
    const Topology topology = star(ranks, port);
    const Program program = random_program(random, ranks);
    std::vector<Picoseconds> times;
    for (const Program::Call& call : program.calls) times.push_back(alone(topology, call.schedule));
    const auto expected = naive::ends_of(program, times);
    const Ran ran = run_program(topology, program);
    std::size_t n_tasks = 0;
    for (const TaskSpan& span : ran.spans) {
      ++n_tasks;
      CHECK(span.end ==
            expected[static_cast<std::size_t>(span.actor)][static_cast<std::size_t>(span.place.iteration)]
                    [static_cast<std::size_t>(span.place.stream)][static_cast<std::size_t>(span.place.task)]);
    }
    std::size_t all = 0;
    for (const auto& actor : expected)
      for (const auto& iteration : actor)
        for (const auto& stream : iteration) all += stream.size();
    CHECK(n_tasks == all);
    // The parts of each rank's time add up to it.
    for (const RankAccount& rank : ran.ranks) CHECK(rank.split.total() == rank.end.time_since_epoch());
  }
}

namespace {

/// The lowered schedule with the promise of its calls, for the proof that follows every message.
std::string flat_verdict(const Program& program) {
  Schedule flat = lowered(program);
  flat.collective.op = CollectiveOp::all_reduce;
  flat.collective.before = [](Actor actor, Buffer buffer, std::uint32_t chunk) {
    return Content{buffer == Buffer::data ? Content::Who::one : Content::Who::nothing, actor, chunk};
  };
  flat.collective.after = [](Actor, Buffer buffer, std::uint32_t chunk) {
    return Content{buffer == Buffer::data ? Content::Who::all : Content::Who::nothing, -1, chunk};
  };
  try {
    check(std::move(flat));
    return "accepted";
  } catch (const ScheduleError& error) {
    return error.message();
  }
}

/// Calls on one or two communication streams with random waits between them, sometimes in another order on one rank.
Program random_calls(std::mt19937_64& random) {
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  const int ranks = draw(2, 5), n_calls = draw(1, 4);
  Program program{.name = "calls", .ranks = ranks, .actors = ranks};
  program.streams = {Program::StreamKind::compute, Program::StreamKind::communication,
                     Program::StreamKind::communication};
  Program::Role role;
  role.streams.resize(3);
  for (int t = draw(0, 3); t > 0; --t)
    role.streams[0].push_back({.name = "compute", .time = 5us, .after = {}, .touches = {}});
  // The other proof asks that a connection keeps to one lane, so algorithms of one and of two lanes are not mixed.
  const bool trees = draw(0, 2) == 0;
  for (int c = 0; c < n_calls; ++c) {
    const Algorithm& algorithm = *find_algorithm(trees             ? "double_binary_tree"
                                                 : draw(0, 1) == 0 ? "ring"
                                                                   : "halving_doubling");
    program.calls.push_back(
        {.name = fmt::format("call {}", c),
         .schedule = check(make_schedule(
             algorithm, {.op = CollectiveOp::all_reduce, .ranks = ranks, .bytes = {draw(0, 3) * 1000}}, {})),
         .members = {},
         .variables = {}});
    role.streams[static_cast<std::size_t>(draw(1, 2))].push_back(
        {.name = fmt::format("call {}", c), .time = {}, .call = c, .after = {}, .touches = {}});
  }
  for (int a = draw(0, 3); a > 0; --a) {  // waits, some of which make a circle
    const auto s = static_cast<std::size_t>(draw(0, 2)), from = static_cast<std::size_t>(draw(0, 2));
    if (role.streams[s].empty() || role.streams[from].empty()) continue;
    const auto t = static_cast<std::size_t>(draw(0, static_cast<int>(role.streams[s].size()) - 1));
    role.streams[s][t].after.push_back(
        {static_cast<Stream>(from), draw(1, static_cast<int>(role.streams[from].size())), 0});
  }
  program.roles.push_back(role);
  if (draw(0, 2) == 0) {
    auto& stream = role_for(program, draw(0, ranks - 1)).streams[static_cast<std::size_t>(draw(1, 2))];
    if (stream.size() > 1) std::swap(stream.front(), stream.back());
  }
  return program;
}

}  // namespace

TEST_CASE("the proof in two levels agrees with the proof that follows every message") {
  std::mt19937_64 random(5);
  int accepted = 0, refused = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const Program program = random_calls(random);
    const bool is_right = verdict_of(program) == "accepted";
    const std::string flat = flat_verdict(program);
    CAPTURE(flat);
    CHECK((flat == "accepted") == is_right);
    ++(is_right ? accepted : refused);
  }
  CHECK(accepted > 50);  // both happen
  CHECK(refused > 50);
}

TEST_CASE("calls on two streams use different channels, and a call may have members in any order") {
  const Topology topology = star(4, port);
  Program program{.name = "halves", .ranks = 4, .actors = 4};
  program.streams = {Program::StreamKind::communication, Program::StreamKind::communication};
  const CheckedSchedule two = check(ring_all_reduce(2, 1_MiB)), four = check(ring_all_reduce(4, 1_MiB));
  program.calls = {{.name = "odd", .schedule = two, .members = {3, 1}, .variables = {}},
                   {.name = "even", .schedule = two, .members = {0, 2}, .variables = {}},
                   {.name = "all", .schedule = four, .members = {2, 0, 3, 1}, .variables = {}}};
  Program::Role even, odd;
  even.streams = {{{.name = "even", .time = {}, .call = 1, .after = {}, .touches = {}}},
                  {{.name = "all", .time = {}, .call = 2, .after = {{0, 1, 0}}, .touches = {}}}};
  odd = even;
  odd.streams[0][0].call = 0;
  program.roles = {even, odd};
  program.role_of = {0, 1, 0, 1};
  program.iterations = 3;
  // Pairs share no port, so both halves take as long as one.
  const Ran ran = run_program(topology, program);
  // In the next iteration the halves begin while the whole still runs; the first one has the ports for itself.
  CHECK(ran.spans.size() == 24);
  CHECK(ran.ranks[0].first_end.time_since_epoch() > alone(topology, two) + alone(topology, four));
  program.iterations = 1;
  CHECK(run_program(topology, program).timeline.duration() == alone(topology, two) + alone(topology, four));
}

TEST_CASE("a call ends when all of its lanes have ended, and its lanes begin when its stream reaches it") {
  const Topology topology = star(7, port);
  CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 7};
  request.bytes = 1_MiB;
  const CheckedSchedule trees = check(make_schedule(*find_algorithm("double_binary_tree"), request, {}));
  REQUIRE(trees.schedule().lanes > 1);
  Program program{.name = "trees", .ranks = 7, .actors = 7};
  program.streams = {Program::StreamKind::compute, Program::StreamKind::communication};
  program.calls = {{.name = "first", .schedule = trees, .members = {}, .variables = {}},
                   {.name = "second", .schedule = trees, .members = {}, .variables = {}}};
  Program::Role role;
  role.streams = {{{.name = "before", .time = 3ms, .after = {}, .touches = {}},
                   {.name = "after", .time = 2ms, .after = {{1, 2, 0}}, .touches = {}}},
                  {{.name = "first", .time = 5us, .call = 0, .after = {{0, 1, 0}}, .touches = {}},
                   {.name = "second", .time = {}, .call = 1, .after = {}, .touches = {}}}};
  program.roles = {role};
  // Ranks end a tree at different times and go on to the second one, which so begins before the first has ended
  // everywhere: a little shorter than one after the other, but no rank computes before both have ended at it.
  const Ran ran = run_program(topology, program);
  CHECK(ran.timeline.duration() <= 3ms + 5us + 2 * alone(topology, trees) + 2ms);
  CHECK(ran.timeline.duration() > 3ms + 5us + alone(topology, trees) + 2ms);
  program.calls.pop_back();
  program.roles[0].streams[1].pop_back();
  program.roles[0].streams[0][1].after = {{1, 1, 0}};
  CHECK(run_program(topology, program).timeline.duration() == 3ms + 5us + alone(topology, trees) + 2ms);
  // A rank whose last message comes in on the second lane computes after it.
  for (const TaskSpan& span : ran.spans)
    if (span.place.stream == 1 && span.place.task == 0)
      CHECK(span.end == SimTime{3ms + 5us} +
                            run(topology, trees).actor_finish[static_cast<std::size_t>(span.actor)].time_since_epoch());
}

// Two calls of 1 MB between two ranks, 80 us and 2 us each on ports of 12.5 GB/s, on two streams. Rank 1 launches one
// of them 10 ms late. Rank 0 has launched both at once: for 10 ms one of its two calls waits for rank 1; the other does
// not, and ends after 82 us.
TEST_CASE("a rank with two open calls waits for others only while neither is launched by all") {
  for (const int late : {0, 1}) {
    CAPTURE(late);
    Program program{.name = "two calls", .ranks = 2, .actors = 2};
    program.streams = {Program::StreamKind::compute, Program::StreamKind::communication,
                       Program::StreamKind::communication};
    for (int c = 0; c < 2; ++c) {
      CollectiveRequest request{.op = CollectiveOp::broadcast, .ranks = 2};
      request.bytes = 1'000'000_B;
      program.calls.push_back({.name = fmt::format("call {}", c),
                               .schedule = check(make_schedule(*find_algorithm("direct"), request, {})),
                               .members = {},
                               .variables = {}});
    }
    for (int rank = 0; rank < 2; ++rank) {
      Program::Role role{.streams = {{}, {{.name = {}, .call = 0}}, {{.name = {}, .call = 1}}}};
      if (rank == 1) role.streams[static_cast<std::size_t>(late) + 1][0].time = 10ms;
      program.roles.push_back(role);
      program.role_of.push_back(rank);
    }
    const LoweredProgram lowered(check(program));
    Accounts accounts(lowered, 0);
    run(star(2, port), lowered.schedule(),
        {.on_compute = [&](const ComputeEvent& event) { accounts.on_compute(event); }});
    const TimeSplit& split = accounts.of(0).split;
    CHECK(split.exposed_communication == 82us + 82us);
    CHECK(split.waiting_for_others == 10ms - 82us);
  }
}

// C = 3 ms of both passes; one of four ranks takes twice as long: the step grows from C + T to 2C + T.
TEST_CASE("ranks wait for a straggler, for as long as it is late") {
  TrainingStep step{.name = "straggler"};
  step.layers = {{.name = "l", .tensors = {250'000}, .forward = 1ms, .backward = 2ms}};
  step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_B);
  step.schedules = {check(ring_all_reduce(4, step.buckets[0].bytes))};
  step.steps = 3;
  Program program = training_program(step);
  const Topology topology = star(4, port);
  const Picoseconds call = alone(topology, step.schedules[0]);
  for (const RankAccount& rank : run_program(topology, program, 2).ranks) {
    CHECK(rank.last == 3ms + call);
    CHECK(rank.split.waiting_for_others.count() == 0);
  }
  for (Program::Task& task : role_for(program, 2).streams[0]) task.time *= 2;
  const std::vector<RankAccount> ranks = run_program(topology, program, 2).ranks;
  for (std::size_t r = 0; r < 4; ++r) {
    CAPTURE(r);
    CHECK(ranks[r].last == 6ms + call);
    CHECK(ranks[r].split.waiting_for_others == (r == 2 ? Picoseconds{0} : Picoseconds{3ms}));
    CHECK(ranks[r].split.exposed_communication == call);
    CHECK(ranks[r].split.compute == (r == 2 ? 6ms : 3ms));
  }
}

TEST_CASE("iterations take no memory, but have a limit") {
  Program program = four_buckets(2, 1'000'000);
  CHECK(lowered(program).n_steps(0, 1) == 1'000'000 * 4 * (2 + 2));  // a ring of 2 has 2 steps; launch and join
  program.iterations = 2'000'000'000;
  CHECK_THROWS_WITH_AS(
      lowered(program),
      "program four: 2000000000 iterations have more than 2^31 - 1 steps\n  hint: use fewer iterations", InputError);
}

}  // namespace program_test
