// Training steps of one GPU and of DDP: their closed forms to the picosecond, and the rules for buckets.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/training/ddp.hpp"
#include "sim/program/account.hpp"
#include "sim/program/lower.hpp"
#include "tests/support/tiny.hpp"

namespace training_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec port{.bandwidth = 100_Gbps, .latency = 1us};

struct Result {
  RankAccount rank;
  std::vector<Picoseconds> calls;  // [bucket] its all-reduce alone, with its launch
  Timeline timeline;
};

/// Runs a step on a star, all-reduces by `algorithm`.
Result run_step(TrainingStep step, const char* algorithm, int ranks, const LinkSpec& link = port) {
  const Topology topology = star(ranks, link);
  Result result;
  for (const Bucket& bucket : step.buckets) {
    CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = ranks};
    request.bytes = bucket.bytes;
    step.schedules.push_back(check(make_schedule(*find_algorithm(algorithm), request, {})));
    result.calls.push_back(run(topology, step.schedules.back()).duration() + step.launch);
  }
  const LoweredProgram lowered(check(training_program(step)));
  Accounts accounts(lowered, step.steps - 1);
  RunOptions options;
  options.on_compute = [&](const ComputeEvent& event) { accounts.on_compute(event); };
  result.timeline = run(topology, lowered.schedule(), options);
  result.rank = accounts.ranks().back();
  return result;
}

/// n equal layers, a bucket each: forward and backward pass evenly spread over them.
TrainingStep even(int n, Bytes gradients, Picoseconds forward, Picoseconds backward) {
  TrainingStep step{.name = "even", .layers = {}};
  for (int l = 0; l < n; ++l)
    step.layers.push_back({.name = fmt::format("l{}", l),
                           .tensors = {gradients.count / 4 / n},
                           .forward = forward / n,
                           .backward = backward / n});
  step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_B);
  step.steps = 2;
  return step;
}

Picoseconds sum(const std::vector<Picoseconds>& times) {
  Picoseconds all{0};
  for (const Picoseconds time : times) all += time;
  return all;
}

}  // namespace

// p = 102.4 MB, K = 8, b = 12.5 GB/s, a = 2 us, f = 10 ms, B = 20 ms. Bucket j of n is ready at f + B j/n and takes
// T = 14 (a + p/(8 n b)), with p/(8 b) = 1024 us. Below T < B/n: the backward pass hides all buckets but the last, so
// the step is f + B + T (n = 2 and more: T = 28 us + 14336 us / n, B/n = 20000 us / n; T > B/n from n = 203 on).
TEST_CASE("DDP of 8 ranks takes what the closed form says, for 17 numbers of buckets") {
  for (const int n : {1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 40, 50, 64, 80, 100, 128, 200}) {
    CAPTURE(n);
    const TrainingStep step = even(n, 102'400'000_B, 10ms, 20ms);
    const Result result = run_step(step, "ring", 8);
    const Picoseconds call = 14 * (2us + Picoseconds{1'024'000'000 / n});
    CHECK(result.calls == std::vector<Picoseconds>(static_cast<std::size_t>(n), call));
    CHECK(result.rank.last == Picoseconds{30ms} + call);
    CHECK(result.rank.last == training_step_time(step, result.calls));
    CHECK(result.rank.before_last.count() == 0);                          // one of the two steps is warm-up
    CHECK(result.rank.first_end.time_since_epoch() == result.rank.last);  // which took as long
    if (n == 1) CHECK(result.rank.last == 44'364us);
    if (n == 25) CHECK(result.rank.last == 30'601'440ns);
    if (n == 200) CHECK(result.rank.last == 30'099'680ns);
    // All of it: the GPU computes for 30 ms, the last bucket is exposed, the others overlap.
    CHECK(result.rank.split.compute == 30ms);
    CHECK(result.rank.split.exposed_communication == call);
    CHECK(result.rank.split.overlapped == (n - 1) * call);
    CHECK(result.rank.split.total() == result.rank.last);
  }
}

TEST_CASE("a DDP step lies between its bounds, and is the closed form where ranks divide the buckets") {
  for (const char* algorithm : {"ring", "halving_doubling"})
    for (const int ranks : {2, 3, 4, 5, 7, 8, 16, 17})
      for (const int n : {1, 2, 3, 7, 13}) {
        CAPTURE(algorithm);
        CAPTURE(ranks);
        CAPTURE(n);
        TrainingStep step{.name = "uneven", .layers = {}, .update = 700us};
        Picoseconds forward{0}, backward{0};
        for (int l = 0; l < n; ++l) {  // the last layers are the largest, the first compute longest
          step.layers.push_back({.name = fmt::format("l{}", l),
                                 .tensors = {5040 * 17 * (1 + l * l)},
                                 .forward = 300us * (n - l),
                                 .backward = 500us * (1 + (n - l) * l % 5)});
          forward += step.layers.back().forward;
          backward += step.layers.back().backward;
        }
        step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_MiB);
        step.launch = 5us;
        step.steps = 2;
        const Result result = run_step(step, algorithm, ranks);
        const Picoseconds step_time = result.rank.last - step.update;
        CHECK(step_time >= forward + std::max(backward, sum(result.calls)));
        CHECK(step_time <= forward + backward + sum(result.calls));
        CHECK(result.rank.split.total() == result.rank.last);
        const bool is_even = std::all_of(step.buckets.begin(), step.buckets.end(),
                                         [&](const Bucket& bucket) { return bucket.bytes.count % ranks == 0; });
        if (is_even && (algorithm == std::string("ring") || (ranks & (ranks - 1)) == 0))
          CHECK(result.rank.last == training_step_time(step, result.calls));
      }
}

namespace {

/// The number of buckets, of all that divide 240 layers, whose step is shortest.
int best_number(Bytes gradients, Picoseconds backward, const LinkSpec& link) {
  int best = 0;
  Picoseconds shortest = Picoseconds::max();
  for (int n = 1; n <= 240; ++n) {
    if (240 % n != 0) continue;
    const Picoseconds time = run_step(even(n, gradients, 10ms, backward), "ring", 4, link).rank.last;
    if (time < shortest) {
      shortest = time;
      best = n;
    }
  }
  return best;
}

}  // namespace

// T = alpha + beta p/n with alpha = 6 * 2a, beta p = 6 p/(4 b). Where communication binds (beta p > B), the step is
// f + B/n + n alpha + beta p, least at n = sqrt(B/alpha). Where compute does, it falls as long as the next layers hide
// a bucket: n = (B - beta p)/alpha.
TEST_CASE("the best number of buckets is the closed form's") {
  // B = 20 ms, alpha = 600 us (a = 100 us a path): sqrt(B/alpha) = 5.8; 1 GB/s: beta p = 144 ms. Candidates: 5, 6, 8.
  CHECK(best_number(96'000'000_B, 20ms, {.bandwidth = 1_GBps, .latency = 50us}) == 6);
  // beta p = 9.6 ms of 96 MB at 15 GB/s; B = 20 ms, alpha = 120 us: (20 - 9.6)/0.12 = 86.7. Candidates: 80, 120.
  CHECK(best_number(96'000'000_B, 20ms, {.bandwidth = 15_GBps, .latency = 10us}) == 80);
}

TEST_CASE("a host that launches every kernel holds up short ones: form of Lindley") {
  // Launches of 10 us; kernels 5, 30 and 5 us forward, as long backward, update 5 us.
  TrainingStep step{.name = "launches", .layers = {}, .update = 5us, .host_launch = 10us};
  for (const Picoseconds time : {Picoseconds{5us}, Picoseconds{30us}, Picoseconds{5us}})
    step.layers.push_back({.name = "l", .tensors = {1000}, .forward = time, .backward = time});
  step.steps = 2;
  const Result result = run_step(step, "ring", 1);
  // Launched at 10, 20, ..., 70; the second kernel runs from 20 to 50, the fifth (backward l1) from 60 to 90, update 95
  // to 100: one launch more than work is waited for before each of the first two, and 5 us in between.
  CHECK(training_step_time(step, {}) == 100us);
  CHECK(result.rank.last == 100us);
  CHECK(result.rank.split.compute == 85us);
  CHECK(result.rank.split.waiting_for_host == 15us);
  // If the host does not wait, it launches a step during the one before: the step takes its 85 us of work.
  step.host_waits = false;
  step.steps = 9;
  CHECK(run_step(step, "ring", 1).rank.last == 85us);
}

// Six kernels of 5, 30, 5, 5, 30, 5 us and an update of 5 us: 85 us of work. With launches of 10 us the first step
// takes 100 us; a host that does not wait has launched the next ones before they can begin. With launches of 20 us
// seven take 140 us, and 5 us of the update come after the last.
TEST_CASE("one GPU alone: the mean step with a host that waits, and with one that runs ahead") {
  TrainingStep step{.name = "alone", .layers = {}, .update = 5us};
  for (const Picoseconds time : {Picoseconds{5us}, Picoseconds{30us}, Picoseconds{5us}})
    step.layers.push_back({.name = "l", .tensors = {1000}, .forward = time, .backward = time});
  step.steps = 8;
  const auto simulated = [&](int warmup) {
    const LoweredProgram lowered(check(training_program(step)));
    Accounts accounts(lowered, warmup);
    RunOptions options;
    options.on_compute = [&](const ComputeEvent& event) { accounts.on_compute(event); };
    run(star(1, {.bandwidth = 1_GBps}), lowered.schedule(), options);
    return accounts.ranks()[0].split.total() / (8 - warmup);
  };
  struct Row {
    Picoseconds launch;
    bool waits;
    Picoseconds first, later;
  };
  for (const Row& row : {Row{0us, true, 85us, 85us}, Row{10us, true, 100us, 100us}, Row{10us, false, 100us, 85us},
                         Row{20us, true, 145us, 145us}, Row{20us, false, 145us, 140us}}) {
    CAPTURE(row.launch.count());
    CAPTURE(row.waits);
    step.host_launch = row.launch;
    step.host_waits = row.waits;
    const Picoseconds of_all = (row.first + 7 * row.later) / 8;
    CHECK(alone_step_time(step, {}, 0, 8) == of_all);
    CHECK(alone_step_time(step, {}, 3, 8) == row.later);
    CHECK(simulated(0) == of_all);
    CHECK(simulated(3) == row.later);
  }
}

// Parameters in reverse order; a bucket closes when it reaches its limit. By hand: 4 B an element, first limit 1 KiB,
// others 4 KiB.
TEST_CASE("PyTorch's buckets close when they reach their limit, and split no tensor") {
  const std::vector<LayerCost> layers = {{.name = "a", .tensors = {100}},
                                         {.name = "b", .tensors = {2000, 10}},
                                         {.name = "c", .tensors = {255, 1}},
                                         {.name = "d", .tensors = {200, 50}}};
  const std::vector<Bucket> buckets = pytorch_buckets(layers, 4, 1_KiB, 4_KiB);
  // 50 + 200 + 1 = 251 elements are 1004 B, below 1 KiB; with 255 more 2024 B: closed. Then 10, 2000: 8040 B. Then 100.
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].bytes == 2024_B);
  CHECK(buckets[0].ready == 2);
  CHECK(buckets[1].bytes == 8040_B);
  CHECK(buckets[1].ready == 1);
  CHECK(buckets[2].bytes == 400_B);
  CHECK(buckets[2].ready == 0);
}

// Forward 1 ms a layer; backward ends at 5, 6, 8 and 9 ms. Cycles of 5 ms: layer d is ready at 5 and goes then; c, b
// and a go at 10, at most 3000 B together.
TEST_CASE("Horovod's buckets are what is ready at the end of a cycle") {
  const std::vector<LayerCost> layers = {{.name = "a", .tensors = {400}, .forward = 1ms, .backward = 1ms},
                                         {.name = "b", .tensors = {500}, .forward = 1ms, .backward = 2ms},
                                         {.name = "c", .tensors = {200}, .forward = 1ms, .backward = 1ms},
                                         {.name = "d", .tensors = {100}, .forward = 1ms, .backward = 1ms}};
  const std::vector<Bucket> buckets = horovod_buckets(layers, 4, 3000_B, 5ms, std::nullopt);
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].bytes == 400_B);
  CHECK(buckets[0].cycle == 1);
  CHECK(buckets[1].bytes == 2800_B);
  CHECK(buckets[1].cycle == 2);
  CHECK(buckets[2].bytes == 1600_B);
  CHECK(buckets[2].cycle == 2);
  TrainingStep step{.name = "horovod", .layers = layers, .buckets = buckets};
  step.cycle = 5ms;
  step.steps = 3;
  const Result result = run_step(step, "ring", 4);
  CHECK(result.rank.last == 10ms + result.calls[1] + result.calls[2]);
  CHECK(result.rank.last == training_step_time(step, result.calls));
  // From the end of the backward pass (9 ms) to the cycle's: the host's.
  CHECK(result.rank.split.waiting_for_host == 1ms);
}

// The same layers. All four kernels of the backward pass are launched 5 to 8 us after the start (1 us each, after four
// of the forward pass): in the first cycle of 5 ms. 400 B and 800 B and 2000 B are more than 3000 B: the third tensor
// begins a bucket; that and the last one are 3600 B, so the last goes alone. Each waits for the last of its gradients.
TEST_CASE("Horovod fuses what the host has launched, and waits for the last of it") {
  const std::vector<LayerCost> layers = {{.name = "a", .tensors = {400}, .forward = 1ms, .backward = 1ms},
                                         {.name = "b", .tensors = {500}, .forward = 1ms, .backward = 2ms},
                                         {.name = "c", .tensors = {200}, .forward = 1ms, .backward = 1ms},
                                         {.name = "d", .tensors = {100}, .forward = 1ms, .backward = 1ms}};
  const std::vector<Bucket> buckets = horovod_buckets(layers, 4, 3000_B, 5ms, Picoseconds{1us});
  REQUIRE(buckets.size() == 3);
  CHECK(buckets[0].bytes == 1200_B);
  CHECK(buckets[0].ready == 2);
  CHECK(buckets[1].bytes == 2000_B);
  CHECK(buckets[2].bytes == 1600_B);
  for (const Bucket& bucket : buckets) CHECK(bucket.cycle == 1);
  // In cycles of 6 us the launches after 5 and 6 us are in the first, those after 7 and 8 us in the second.
  const std::vector<Bucket> split = horovod_buckets(layers, 4, 64_MiB, Picoseconds{6us}, Picoseconds{1us});
  REQUIRE(split.size() == 2);
  CHECK(split[0].bytes == 1200_B);
  CHECK(split[1].cycle == 2);
  TrainingStep step{.name = "horovod", .layers = layers, .buckets = buckets};
  step.cycle = 5ms;
  step.steps = 3;
  const Result result = run_step(step, "ring", 4);
  CHECK(result.rank.last == training_step_time(step, result.calls));
  CHECK(result.rank.last == 9ms + result.calls[2]);  // the others fit into the two milliseconds before
}

TEST_CASE("without overlap all buckets follow the backward pass") {
  TrainingStep step = even(4, 40'000'000_B, 4ms, 8ms);
  step.overlap = false;
  const Result result = run_step(step, "ring", 4);
  CHECK(result.rank.last == 12ms + sum(result.calls));
  CHECK(result.rank.split.overlapped.count() == 0);
}

// p = 102,228,128 B over a ring of 8: each rank sends 2 * 7/8 of it. Five buckets; each of them divides by 4, and its
// chunks differ by at most 1 B, 14 of them sent: at most 14 B a bucket off.
TEST_CASE("a step sends what its all-reduces send, and helpers take part in them alone") {
  TrainingStep step = even(5, 102'228'120_B, 1ms, 2ms);
  const Result result = run_step(step, "ring", 8);
  CHECK(result.timeline.bytes_sent.count == 2LL * 2 * 7 * 102'228'120);  // two steps, all ranks
  const Topology with_server = star(4, port, 2);
  TrainingStep served = even(3, 30'000'000_B, 3ms, 6ms);
  Arguments two;
  two.numbers["servers"] = 2;
  for (const Bucket& bucket : served.buckets) {
    CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 4};
    request.bytes = bucket.bytes;
    served.schedules.push_back(check(make_schedule(*find_algorithm("parameter_server"), request, two)));
  }
  const LoweredProgram lowered(check(training_program(served)));
  CHECK(lowered.schedule().schedule().actors == 6);
  // W = 4 workers push to S = 2 servers and pull: 2 W p/(S b) + 2a a bucket, one after the other: they bind.
  const Picoseconds call = 2 * transfer_time(4 * 5'000'000_B, 100_Gbps) + 4us;
  CHECK(run(with_server, lowered.schedule()).duration() == 2 * (5ms + 3 * call));
}

}  // namespace training_test
