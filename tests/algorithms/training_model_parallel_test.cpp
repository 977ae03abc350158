// Model parallelism: how layers are divided, its time to the picosecond, its proof.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/training/model_parallel.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/verdict.hpp"

namespace training_model_parallel_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// A microbatch has 12.5 MB of activations: a transfer takes 1 ms, and 2 us for the path.
Pipeline pipeline(int ranks, int microbatches) {
  Pipeline made{.ranks = ranks, .microbatches = microbatches};
  if (ranks > 1) made.transfer = direct(CollectiveOp::broadcast, 2, 12'500'000_B);
  return made;
}

/// Of 1,000 elements each; the passes of a layer take 6 and 12 ms.
TrainingStep equal_layers(int n) {
  TrainingStep step{.name = "equal", .layers = {}, .update = Picoseconds{800us}};
  for (int l = 0; l < n; ++l)
    step.layers.push_back({.name = "l" + std::to_string(l), .tensors = {1'000}, .forward = 6ms, .backward = 12ms});
  step.steps = 3;
  return step;
}

Picoseconds longest_stage(const std::vector<LayerCost>& layers, const std::vector<std::size_t>& ends) {
  Picoseconds longest{0};
  std::size_t l = 0;
  for (const std::size_t end : ends) {
    Picoseconds time{0};
    for (; l < end; ++l) time += layers[l].forward + layers[l].backward;
    longest = std::max(longest, time);
  }
  return longest;
}

/// Of all ways to cut.
Picoseconds least_longest_stage(const std::vector<LayerCost>& layers, int ranks) {
  Picoseconds least = Picoseconds::max();
  std::vector<std::size_t> ends;
  const std::function<void()> cut = [&] {
    const std::size_t begun = ends.empty() ? 0 : ends.back();
    if (static_cast<int>(ends.size()) + 1 == ranks) {
      ends.push_back(layers.size());
      least = std::min(least, longest_stage(layers, ends));
      ends.pop_back();
      return;
    }
    for (std::size_t end = begun + 1; end < layers.size(); ++end) {
      ends.push_back(end);
      cut();
      ends.pop_back();
    }
  };
  cut();
  return least;
}

}  // namespace

TEST_CASE("layers are divided such that no division has a shorter longest rank, and every rank has one") {
  Draw draw(7);
  for (int i = 0; i < 300; ++i) {
    std::vector<LayerCost> layers(static_cast<std::size_t>(draw.number(1, 9)));
    for (LayerCost& layer : layers) {  // zeros as well
      layer.forward = Picoseconds{draw.number(0, 5)};
      layer.backward = Picoseconds{draw.number(0, 9)};
      layer.tensors = {7, 3};
    }
    for (int ranks = 1; ranks <= static_cast<int>(layers.size()); ++ranks) {
      std::vector<std::size_t> ends;
      std::int64_t parameters = 0;
      for (const Stage& stage : stages_of(layers, ranks)) {
        CHECK(stage.first == (ends.empty() ? 0 : ends.back()));
        ends.push_back(stage.end);
        parameters += stage.parameters;
      }
      CHECK(parameters == 10 * static_cast<std::int64_t>(layers.size()));
      REQUIRE(static_cast<int>(ends.size()) == ranks);
      CHECK(ends.front() > 0);
      CHECK(ends.back() == layers.size());
      CHECK(std::adjacent_find(ends.begin(), ends.end(), std::greater_equal<>()) == ends.end());
      CHECK(longest_stage(layers, ends) == least_longest_stage(layers, ranks));
    }
  }
}

// Each rank has L/K layers of 18 ms, K/M of which a microbatch takes: M + K - 1 of those on the way there and back.
TEST_CASE("M microbatches through K equal GPUs take (M + K - 1)/M of one GPU's passes, and 2(K-1) transfers") {
  const TrainingStep step = equal_layers(8);
  for (const int ranks : {1, 2, 4, 8})
    for (const int microbatches : {1, 2, 4, 12}) {
      CAPTURE(ranks);
      CAPTURE(microbatches);
      const Pipeline lies = pipeline(ranks, microbatches);
      const Ran ran = run_on_star(model_parallel_program(step, lies));
      const Picoseconds passes = (microbatches + ranks - 1) * (8 * 18ms) / microbatches;
      const Picoseconds time = passes + 2 * (ranks - 1) * 1'002us + Picoseconds{800us} / ranks;
      CHECK(ran.timeline.duration() == 3 * time);
      CHECK(pipeline_step_ends(step, lies, 1'002us).front() == time);
      CHECK(ran.timeline.bytes_sent.count == 3LL * 2 * (ranks - 1) * microbatches * 12'500'000);
      for (const RankAccount& rank : ran.ranks) CHECK(rank.split.compute == 8 * 18ms + Picoseconds{800us} / ranks);
    }
}

// 64 microbatches of 3 and 6 ms through 8 GPUs, 1 ms from one to the next: 64 * 9 + 7 * (3 + 6 + 2 * 1) ms.
TEST_CASE("transfers add to the beginning and the end of a pipeline, not to each microbatch") {
  TrainingStep step = equal_layers(8);
  for (LayerCost& layer : step.layers) layer = {.name = layer.name, .tensors = {1}, .forward = 24ms, .backward = 48ms};
  step.update = Picoseconds{0};
  Pipeline lies{.ranks = 8, .microbatches = 64};
  lies.transfer = direct(CollectiveOp::broadcast, 2, 12'475'000_B);  // 998 us and 2 us of a path
  CHECK(run_on_star(model_parallel_program(step, lies)).ranks[0].last == 653ms);
}

// Where layers differ, and where a transfer (10 ms) takes longer than what a rank computes, ports hold microbatches up.
TEST_CASE("unequal layers and slow transfers take what the recurrence says") {
  Draw draw(11);
  for (int i = 0; i < 200; ++i) {
    TrainingStep step{.name = "drawn", .layers = {}, .update = Picoseconds{1us}};
    const int n = static_cast<int>(draw.number(2, 7));
    for (int l = 0; l < n; ++l)
      step.layers.push_back({.name = "l" + std::to_string(l),
                             .tensors = {draw.number(1, 50)},
                             .forward = Picoseconds{draw.number(1, 20'000'000'000)},
                             .backward = Picoseconds{draw.number(1, 20'000'000'000)}});
    if (draw.once_in(2)) step.launch = 7us;
    const int ranks = static_cast<int>(draw.number(2, n)), parts = static_cast<int>(draw.number(1, 5));
    Pipeline lies{.ranks = ranks, .microbatches = parts};
    lies.transfer = direct(CollectiveOp::broadcast, 2, 125'000'000_B);
    const Ran ran = run_on_star(model_parallel_program(step, lies));
    CHECK(ran.ranks[0].last == pipeline_step_ends(step, lies, 10'002us).front());
  }
}

TEST_CASE("a host's launches hold up the kernels of its rank") {
  TrainingStep step = equal_layers(2);
  step.host_launch = 10ms;
  // Rank 0: launched at 10, runs 12 ms (two GPUs' batch of 6) to 22, arrives at 23.002; rank 1 runs to 35.002
  // and 59.002, arrives at 60.004, to 84.004, and the update of half of 0.8 ms.
  const Ran ran = run_on_star(model_parallel_program(step, pipeline(2, 1)));
  CHECK(ran.ranks[0].last == 10ms + 2 * 36ms + 2 * 1'002us + 400us);
}

TEST_CASE("mutations of model parallelism are refused, and by name") {
  const Program good = model_parallel_program(equal_layers(3), pipeline(3, 2));
  CHECK(verdict_of(good) == "accepted");
  Program dropped = good;  // the gradients of microbatch 1, which comes back first, are lost
  for (Program::Touch& touch : task_named(dropped, 1, "backward l1 of micro-batch 0").touches)
    if (touch.as == Program::Touch::As::add) touch.as = Program::Touch::As::make;
  CHECK(verdict_of(dropped) ==
        "rank 1: an iteration must add to the weights of bucket 0 of chunk 0 the sum of the gradient of bucket 0 of "
        "chunk 0 over 1 rank, divided by 1, found something else");
  Program early = good;
  task_named(early, 1, "forward l1 of micro-batch 1").after.clear();
  CHECK(verdict_of(early) ==
        "rank 1, stream 1, task 1 (send on micro-batch 1) and rank 1, stream 0, task 1 (forward l1 of micro-batch 1): "
        "both touch the activations of micro-batch 1 between stages, chunk 0, one of them writes it, and nothing "
        "orders them");
  Program idle = good;  // rank 1 does not update its layer
  task_named(idle, 1, "update").touches.clear();
  CHECK(verdict_of(idle) ==
        "rank 1: an iteration must add to the weights of bucket 0 of chunk 0 the sum of the gradient of bucket 0 of "
        "chunk 0 over 1 rank, divided by 1, found something else");
  Program never = good;
  never.calls.front().variables.clear();
  CHECK(verdict_of(never) ==
        "rank 1, stream 0, task 0 (forward l1 of micro-batch 0) reads the activations of micro-batch 0 between stages, "
        "chunk 0 before it is made or has come in");
  Program more = good;
  for (Program::Touch& touch : task_named(more, 2, "backward l2 of micro-batch 1").touches)
    if (touch.as == Program::Touch::As::make) touch.as = Program::Touch::As::add;
  CHECK(verdict_of(more) ==
        "rank 2, stream 0, task 2 (backward l2 of micro-batch 1) adds to the gradient of bucket 0 of chunk 0 before it "
        "is made in this iteration");
}

}  // namespace training_model_parallel_test
