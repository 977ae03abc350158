// The asynchronous parameter server: rates between their limits, the law of staleness, where time goes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "algorithms/training/async_account.hpp"
#include "algorithms/training/async_server.hpp"
#include "sim/program/lower.hpp"
#include "sim/run/units.hpp"
#include "tests/support/tiny.hpp"

namespace training_async_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec port{.bandwidth = 100_Gbps, .latency = 1us};

TrainingStep passes_of_20ms(Picoseconds update = Picoseconds{0}) {
  TrainingStep step{.name = "one", .layers = {}, .update = update};
  step.layers = {{.name = "l", .tensors = {1}, .forward = 7ms, .backward = 13ms}};
  return step;
}

AsyncServer servers_of(int workers, int servers, Bytes model, std::int64_t updates) {
  AsyncServer given{.workers = workers, .servers = servers, .updates = updates, .model = model, .offsets = {}};
  for (Actor worker = 0; worker < workers; ++worker)
    given.offsets.push_back(times(worker, Picoseconds{20ms} / workers));
  return given;
}

struct AsyncRan {
  AsyncResult result;
  Timeline timeline;
  std::vector<SimTime> ends;  // of updates of shards, in order
  double per_20ms = 0;        // updates
};

AsyncRan run_async(const TrainingStep& step, const AsyncServer& given, const Stragglers& stragglers,
                   std::int64_t warmup) {
  const LoweredProgram lowered(check(async_server_program(step, given, stragglers)));
  AsyncAccount account(lowered, given, warmup);
  AsyncRan ran;
  RunOptions options;
  options.on_compute = [&](const ComputeEvent& event) {
    account.on_compute(event);
    if (event.actor >= given.workers && !event.begins &&
        lowered.place_of(event.actor, event.lane, event.step).step == async_update_step)
      ran.ends.push_back(event.when);
  };
  options.on_message = [&](const Span& message) { account.on_message(message); };
  options.enough = [&] { return account.enough(); };
  const Topology topology = star(given.workers, port, given.servers);
  for (Actor worker = 0; worker < given.workers; ++worker)
    options.placement.push_back(topology.ranks()[static_cast<std::size_t>(worker)]);
  for (Actor worker = 0; worker < given.workers; ++worker)
    for (int server = 0; server < given.servers; ++server)
      options.placement.push_back(given.master >= 0 ? topology.ranks()[static_cast<std::size_t>(given.master)]
                                                    : topology.helpers()[static_cast<std::size_t>(server)]);
  ran.timeline = run(topology, lowered.schedule(), options);
  REQUIRE(account.enough());
  ran.result = account.result();
  ran.per_20ms = static_cast<double>(ran.result.updates) * 2e10 / static_cast<double>(ran.result.window.count());
  return ran;
}

Stragglers last_is_slow(int workers) {
  return {.slow = {{.rank = workers - 1, .millionths = 2'000'000}}, .jitter = {}};
}

/// What must hold of every run, whatever the times are.
void expect_laws(const AsyncRan& ran, const TrainingStep& step, const AsyncServer& given,
                 const Stragglers& stragglers) {
  const AsyncResult& result = ran.result;
  const auto n = static_cast<double>(result.updates), workers = static_cast<double>(given.workers);
  // The law of staleness. An interval that is still open at the end also counts: it may be the longest.
  std::int64_t longest = 0, sum = 0, updates = 0;
  Picoseconds split{0};
  for (const AsyncWorker& worker : result.workers) {
    longest += worker.stalest;
    sum += worker.staleness;
    updates += worker.updates;
    CHECK(worker.split.total() == result.window);
    split += worker.split.total();
  }
  CHECK(updates == result.updates);
  CHECK(split == result.window * given.workers);
  CHECK(std::abs(result.mean_staleness() - (workers - 1)) <= 2.0 * static_cast<double>(longest) / n);
  std::int64_t counted = 0, weighed = 0;
  for (const auto& [staleness, count] : result.histogram) {
    counted += count;
    weighed += staleness * count;
  }
  CHECK(weighed == sum);
  CHECK(std::abs(static_cast<double>(counted) - n * given.servers) <= workers * given.servers);
  if (stragglers.jitter) return;
  const Picoseconds once = transfer_time(given.model, port.bandwidth);
  const UpdateRates rates = async_rates(step, given, stragglers, once, 2us);
  const double seconds = static_cast<double>(result.window.count()) / 1e12, rate = n / seconds;
  CHECK(rate <= rates.high + workers / seconds);
  CHECK(rate >= rates.low - workers / seconds);
}

}  // namespace

// 1 kB: x = 0.08 us. Equal: 4 in 20,004.16 us. One of 4 twice as slow: 3 in 20,004.16 us and 1 in 40,004.16: 3.4993 a
// C. The slow one sees 2 (K - 1) = 6 updates by others in one of its own, the fast ones 2 by each other and half of
// one.
TEST_CASE("asynchronous workers: 3.4993 updates a C with one of four slow, and staleness 3, 6 and 2.5") {
  const TrainingStep step = passes_of_20ms();
  const AsyncServer given = servers_of(4, 1, 1'000_B, 4000);
  const AsyncRan equal = run_async(step, given, {}, 400);
  CHECK(equal.per_20ms == doctest::Approx(4 * 20'000 / 20'004.16).epsilon(1e-9));
  CHECK(equal.result.mean_staleness() == 3);
  for (const AsyncWorker& worker : equal.result.workers) {
    CHECK(worker.stalest == 3);
    CHECK(worker.shortest == 20'004'160'000_ps);
    CHECK(worker.longest == 20'004'160'000_ps);
    CHECK(worker.split.compute == 900 * Picoseconds{20ms});
    CHECK(worker.split.waiting_for_others == 0_ps);
  }
  const AsyncRan slow = run_async(step, given, last_is_slow(4), 400);
  CHECK(std::abs(slow.per_20ms - 3.4993) < 4 * 3.5 / 3600);  // W updates more or less
  CHECK(std::abs(slow.result.mean_staleness() - 3) < 0.01);
  for (Actor worker = 0; worker < 4; ++worker) {
    const AsyncWorker& its = slow.result.workers[static_cast<std::size_t>(worker)];
    const double mean = static_cast<double>(its.staleness) / static_cast<double>(its.updates);
    CHECK(std::abs(mean - (worker == 3 ? 6.0 : 2.5)) < 0.01);
  }
}

// 10 MB: x = 0.8 ms. Equal workers leave 5 ms apart and never meet: 4 in 21,604 us, 3.7030 a C. With one of them slow
// they meet: 3.2521 instead of the 3.2580 of the sum; with 50 MB 2.34 instead of 2.56.
TEST_CASE("workers that never meet have the rate of the closed form; those that meet have less") {
  const TrainingStep step = passes_of_20ms();
  const auto ten = [&](const Stragglers& stragglers, Bytes model) {
    return run_async(step, servers_of(4, 1, model, 4400), stragglers, 400).per_20ms;
  };
  CHECK(ten({}, 10'000'000_B) == doctest::Approx(4 * 20'000 / 21'604.0).epsilon(1e-9));
  CHECK(std::abs(ten(last_is_slow(4), 10'000'000_B) - 3.2521) < 0.004);
  const double fifty = ten(last_is_slow(4), 50'000'000_B);
  CHECK(fifty < 2.5592);
  CHECK(std::abs(fifty - 2.3431) < 0.06);  // the source says neither its offsets nor its window
}

TEST_CASE("rates lie between their limits and the law of staleness holds, for all sizes, servers and starts") {
  for (const int workers : {1, 2, 4, 9})
    for (const int servers : {1, 3})
      for (const std::int64_t megabytes : {0, 1, 10, 100})
        for (const Picoseconds update : {Picoseconds{0}, Picoseconds{3ms}})
          for (const bool slow : {false, true})
            for (const bool together : {false, true}) {
              CAPTURE(workers);
              CAPTURE(servers);
              CAPTURE(megabytes);
              CAPTURE(slow);
              CAPTURE(together);
              const TrainingStep step = passes_of_20ms(update);
              AsyncServer given = servers_of(workers, servers, Bytes{megabytes * 1'000'000}, 40 * workers);
              if (together) std::fill(given.offsets.begin(), given.offsets.end(), Picoseconds{0});
              const Stragglers stragglers = slow ? last_is_slow(workers) : Stragglers{};
              expect_laws(run_async(step, given, stragglers, 8 * workers), step, given, stragglers);
            }
}

TEST_CASE("the same with a master among the workers") {
  for (const int workers : {1, 2, 5})
    for (const Actor master : {0, workers - 1})
      for (const std::int64_t megabytes : {0, 10, 100})
        for (const Picoseconds update : {Picoseconds{0}, Picoseconds{3ms}})
          for (const int every : {1, 3})
            for (const bool slow : {false, true}) {
              CAPTURE(workers);
              CAPTURE(master);
              CAPTURE(megabytes);
              CAPTURE(every);
              CAPTURE(slow);
              TrainingStep step = passes_of_20ms(update);
              step.layers.push_back({.name = "m", .tensors = {1}, .forward = 1ms, .backward = 2ms});
              AsyncServer given = servers_of(workers, 1, Bytes{megabytes * 1'000'000}, 40 * workers);
              given.master = master;
              given.every = every;
              const Stragglers stragglers = slow ? last_is_slow(workers) : Stragglers{};
              expect_laws(run_async(step, given, stragglers, 8 * workers), step, given, stragglers);
            }
}

// Worker 0 is the server. x = 0.8 ms, a = 2 us, updates take no time: worker 0 steps in 20 ms, because none of it
// travels, worker 1 in 20 + 2 (0.8 + 0.002) ms. In 20 * 21.604 ms they make 21,604 and 20,000 thousandths.
TEST_CASE("a master's gradients do not travel: 1/C updates of its own, whatever the others do") {
  AsyncServer given = servers_of(2, 1, 10'000'000_B, 2000);
  given.master = 0;
  const AsyncRan ran = run_async(passes_of_20ms(), given, {}, 200);
  CHECK(ran.result.workers[0].longest == 20ms);
  CHECK(ran.result.workers[0].shortest == 20ms);
  CHECK(ran.result.workers[0].split.compute == ran.result.window);
  CHECK(ran.result.workers[1].longest == 21'604us);
  CHECK(ran.result.workers[1].split.waiting_for_others == 0_ps);
  CHECK(std::abs(ran.per_20ms - (1 + 20 / 21.604)) < 2.0 * 2 / 1800);
}

// Both begin at once; f = 7 ms, B = 13 ms, u = 3 ms. The master's GPU updates with its own gradients at 20 ms, then
// with those of worker 1, which came at 20.802 ms, before the forward pass that asks at 23: it runs from 26 to 33. The
// same again every C + 2u = 26 ms: it never stands still. Worker 1: weights leave at 26 and are there at 26.802;
// gradients are back at 47.604, while the master updates (46 to 49), so that they wait for 1.396 ms before their 3.
TEST_CASE("the GPU of a master runs passes and updates one at a time, first come first served") {
  AsyncServer given = servers_of(2, 1, 10'000'000_B, 22);
  given.master = 0;
  given.offsets = {0ms, 0ms};
  const AsyncRan ran = run_async(passes_of_20ms(3ms), given, {}, 2);
  CHECK(ran.ends[0] == SimTime{23ms});
  CHECK(ran.ends[1] == SimTime{26ms});
  CHECK(ran.ends[2] == SimTime{49ms});
  CHECK(ran.result.window == 10 * 26ms);
  CHECK(ran.result.busy[0] == 10 * 6ms);
  const TimeSplit &master = ran.result.workers[0].split, &other = ran.result.workers[1].split;
  CHECK(master.compute == 10 * 20ms);
  CHECK(master.waiting_for_others == 10 * 6ms);  // updates: its own, and the one that its forward pass waits for
  CHECK(master.idle == 0ms);
  CHECK(other.compute == 10 * 20ms);
  CHECK(other.exposed_communication == 10 * 1'604us);
  CHECK(other.waiting_for_others == 10 * 4'396us);
}

// Layers of 10 and 30 ms, forward and backward alike: 80 ms in kernels of 10, 30, 30 and 10. The gradients of worker 1,
// which begins 1 ms later, are there at 81.802 ms. The master has updated with its own until 81 ms, and computes its
// first layer until 91; the second asks after them.
TEST_CASE("an update waits for a layer of the master, not for its pass") {
  TrainingStep step = passes_of_20ms(1ms);
  step.layers = {{.name = "l", .tensors = {1}, .forward = 10ms, .backward = 10ms},
                 {.name = "m", .tensors = {1}, .forward = 30ms, .backward = 30ms}};
  AsyncServer given = servers_of(2, 1, 10'000'000_B, 2);
  given.master = 0;
  given.offsets = {0ms, 1ms};
  const AsyncRan ran = run_async(step, given, {}, 0);
  CHECK(ran.ends[0] == SimTime{81ms});  // the master's own
  CHECK(ran.ends[1] == SimTime{92ms});
}

TEST_CASE("the same of random workers, sizes, offsets and jitter") {
  std::mt19937 draw(20261123);  // NOLINT(cert-msc51-cpp): a test repeats
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const auto one_of = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
    const TrainingStep step = passes_of_20ms(Picoseconds{one_of(4) * 1'000'000'000LL});
    const int workers = 1 + one_of(8);
    AsyncServer given = servers_of(workers, 1 + one_of(3), Bytes{one_of(60'000'000)}, 50 * workers);
    for (Picoseconds& offset : given.offsets) offset = Picoseconds{one_of(20'000'000) * 1000LL};
    Stragglers stragglers;
    if (one_of(2) == 0)
      stragglers.slow.push_back({.rank = one_of(workers), .millionths = 1'000'000 + one_of(2'000'000)});
    if (one_of(2) == 0) stragglers.jitter = Draws{Distribution::exponential, 4ms, static_cast<std::uint64_t>(i)};
    expect_laws(run_async(step, given, stragglers, one_of(10 * workers)), step, given, stragglers);
  }
}

// Nothing to send, and no latency to speak of: 5 workers that start together queue for updates of 3 ms. A first come
// first served queue of its own, with whole numbers: worker w asks 20 ms (and 4 us of latency) after its last update.
TEST_CASE("updates wait for each other at the server's unit, first come first served, as in a naive queue") {
  const TrainingStep step = passes_of_20ms(3ms);
  AsyncServer given = servers_of(5, 1, 0_B, 60);
  given.offsets = {0ms, 0ms, 1ms, 1ms, 12ms};
  const AsyncRan ran = run_async(step, given, {}, 0);
  std::vector<Picoseconds> asks;
  for (const Picoseconds offset : given.offsets) asks.push_back(offset + 20ms + 2us);
  Picoseconds free{0}, waited{0};
  for (int update = 0; update < 60; ++update) {
    const auto next = std::min_element(asks.begin(), asks.end());
    free = std::max(free, *next) + 3ms;
    waited += free - *next;
    REQUIRE(ran.ends[static_cast<std::size_t>(update)] == SimTime{free});
    *next = free + 2us + 20ms + 2us;
  }
  for (const Picoseconds ask : asks)
    waited += std::max(Picoseconds{0}, free - ask);  // of those still in the queue at the end
  CHECK(ran.result.window == free);
  Picoseconds waiting{0};
  for (const AsyncWorker& worker : ran.result.workers) waiting += worker.split.waiting_for_others;
  CHECK(waiting == waited);
  CHECK(ran.result.busy[0] == 60 * Picoseconds{3ms});
}

// Two servers that always have updates waiting: each updates its shard in 5 ms, one after the other. Shards of 500,000
// and 500,001 bytes: server 0 is 80 ps ahead, the time of a byte at 12.5 GB/s. The window begins and ends when server 1
// has updated its shard; of the first update of server 0 in it those 80 ps are over already, and 60 updates end in it.
TEST_CASE("a server's update that was under way when the window began counts from then on") {
  const AsyncServer given = servers_of(8, 2, 1'000'001_B, 100);
  const AsyncRan ran = run_async(passes_of_20ms(10ms), given, {}, 40);
  CHECK(ran.result.window == 60 * Picoseconds{5ms});
  CHECK(ran.result.busy[0] == ran.result.window - 80_ps);
  CHECK(ran.result.busy[1] == ran.result.window);
}

TEST_CASE("a unit serves those who wait in the order in which they asked") {
  ComputeUnits units;
  CHECK(units.take(1, {7, 5us}));
  CHECK(!units.take(1, {3, 1us}));
  CHECK(!units.take(1, {9, 2us}));
  CHECK(units.take(0, {4, 1us}));  // another unit
  CHECK(units.next(1)->lane == 3);
  CHECK(!units.take(1, {5, 1us}));
  CHECK(units.next(1)->lane == 9);
  CHECK(units.next(1)->lane == 5);
  CHECK(!units.next(1));
  CHECK(units.take(1, {6, 1us}));
}

// Between two exchanges a worker computes 4 (20 + 1) ms; x = 0.8 ms, a = 2 us, and the server averages in 1 ms: 86.604
// ms. One of two workers twice as slow: 168 ms, and 170.604.
TEST_CASE("a worker that trains four steps by itself exchanges weights after them") {
  AsyncServer given = servers_of(1, 1, 10'000'000_B, 10);
  given.every = 4;
  const AsyncRan alone = run_async(passes_of_20ms(1ms), given, {}, 2);
  CHECK(alone.result.window == 8 * 86'604us);
  CHECK(alone.result.workers[0].shortest == 86'604us);
  CHECK(alone.result.workers[0].split.compute == 8 * 84ms);
  AsyncServer both = servers_of(2, 1, 10'000'000_B, 10);
  both.every = 4;
  const AsyncRan slow = run_async(passes_of_20ms(1ms), both, last_is_slow(2), 0);
  CHECK(slow.result.workers[1].longest == 170'604us);
}

// Launches of 2 ms: forward 2 to 9, backward 9 to 22, update 22 to 23 ms; four such steps, and the exchange as above.
TEST_CASE("a host that waits launches each step between two exchanges when the one before is done") {
  AsyncServer given = servers_of(1, 1, 10'000'000_B, 10);
  given.every = 4;
  TrainingStep step = passes_of_20ms(1ms);
  step.host_launch = 2ms;
  const AsyncRan ran = run_async(step, given, {}, 2);
  CHECK(ran.result.window == 8 * (4 * 23ms + 2'604us));
  CHECK(ran.result.workers[0].split.waiting_for_host == 8 * 4 * 2ms);
}

// Step 5 of the worker is the second of its second exchange: 40 ms instead of 20, the update 2 ms instead of 1.
TEST_CASE("steps of stragglers count across exchanges") {
  AsyncServer given = servers_of(1, 1, 10'000'000_B, 3);
  given.every = 4;
  const AsyncRan ran =
      run_async(passes_of_20ms(1ms), given, {.slow = {{.rank = 0, .millionths = 2'000'000, .from = 5, .until = 6}}}, 1);
  CHECK(ran.result.window == 2 * 86'604us + 21ms);
}

// What is under way when enough updates are there comes to its end: two messages an update, and less than two a worker.
TEST_CASE("a run that ends by count repeats to the byte, and what was sent arrives") {
  const TrainingStep step = passes_of_20ms(1ms);
  const AsyncServer given = servers_of(6, 2, 30'000'001_B, 300);
  const Stragglers stragglers{.slow = {{.rank = 2, .millionths = 1'300'000}},
                              .jitter = Draws{Distribution::uniform, 2ms, 5}};
  const AsyncRan one = run_async(step, given, stragglers, 30), two = run_async(step, given, stragglers, 30);
  CHECK(one.timeline.fingerprint == two.timeline.fingerprint);
  CHECK(one.timeline.finish == two.timeline.finish);
  CHECK(one.timeline.bytes_sent == two.timeline.bytes_sent);
  CHECK(one.result.window == two.result.window);
  CHECK(one.result.histogram == two.result.histogram);
  // No worker begins another step than that which it is in: of each update the gradients at least have come.
  CHECK(one.timeline.bytes_sent.count >= 300 * given.model.count);
  CHECK(one.timeline.bytes_sent.count <= (300 + 6) * 2 * given.model.count);
}

TEST_CASE("the exchange of a worker is proved: what comes back has its gradient in it, and no task is unordered") {
  const CheckedSchedule good = async_exchange(1'000_B, 3, 1ms);
  CHECK(good.proof().by == Proof::By::all_ranks);
  CHECK(good.proof().slots_needed == 0);
  const auto verdict = [](Schedule schedule) {
    try {
      check(std::move(schedule));
      return std::string("accepted");
    } catch (const ScheduleError& error) {
      return error.message();
    }
  };
  // A server that sends back what came in twice, or another shard's weights.
  Schedule twice = good.schedule();
  twice.step = [whole = good.schedule().step](Actor actor, Lane lane, int i, Step& out) {
    whole(actor, lane, i, out);
    if (actor == 2 && i == async_update_step) out.add({Buffer::scratch, 1, 1}, {Buffer::data, 1, 1});
  };
  CHECK(verdict(twice).find("output[1]") != std::string::npos);
  Schedule late = good.schedule();
  late.step = [whole = good.schedule().step](Actor actor, Lane lane, int i, Step& out) {
    if (actor == 2 && i == 1) return;  // never added
    whole(actor, lane, i, out);
  };
  CHECK(verdict(late).find("reads data[1] before anything has arrived there") != std::string::npos);

  const AsyncServer given = servers_of(3, 2, 1'000_B, 10);
  const Program program = async_server_program(passes_of_20ms(), given, {});
  const auto program_verdict = [](Program changed) {
    try {
      check(std::move(changed));
      return std::string("accepted");
    } catch (const ScheduleError& error) {
      return error.message();
    }
  };
  CHECK(program_verdict(program) == "accepted");
  Program early = program;  // pushes before the backward pass is done
  early.roles[0].streams[1][0].after.clear();
  CHECK(program_verdict(early).find("both touch the gradients") != std::string::npos);
  Program ahead = program;  // computes before the weights are there
  ahead.roles[2].streams[0][0].after.clear();
  CHECK(program_verdict(ahead).find("both touch the gradients") != std::string::npos);
}

}  // namespace training_async_test
