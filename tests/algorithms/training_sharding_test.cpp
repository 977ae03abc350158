// Sharded data parallelism: who gathers and reduces when, closed forms to the picosecond, bytes, memory, proof.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "algorithms/training/plan_gathers.hpp"
#include "algorithms/training/plan_program.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/verdict.hpp"
#include "validate/closed_forms/small_plan.hpp"

namespace training_sharding_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

constexpr auto gpipe = PipelineSchedule::gpipe, one_f_one_b = PipelineSchedule::one_f_one_b,
               interleaved = PipelineSchedule::interleaved;

/// One stage, without tensor ranks; each micro-batch takes 3 us forward and 5 us backward over all layers.
PlanSpec sharded(PlanShard shard, int data, int layers, int micro_batches = 1) {
  PlanSpec spec = small_plan(1, 1, data, {one_f_one_b, 1, 1, micro_batches}, layers);
  spec.shard = shard;
  return spec;
}

Stream data_stream(const Program& program) {
  for (std::size_t s = 1; s < program.streams.size(); ++s)
    for (const Program::Task& task : program.roles[0].streams[s])
      if (program.name_of(task).starts_with("reduce")) return static_cast<Stream>(s);
  FAIL("a program of several data ranks reduces");
  return -1;
}

/// The calls of rank 0's data stream: "gather 0 gather 1 reduce 1".
std::string calls_of(const PlanSpec& spec) {
  const Program program = small_plan_program(spec).program;
  std::string text;
  for (const Program::Task& task : program.roles[0].streams[static_cast<std::size_t>(data_stream(program))]) {
    std::string name = program.name_of(task);
    if (const auto at = name.find("layers."); at != std::string::npos) name.erase(at, 7);
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

Picoseconds simulated(const PlanSpec& spec) {
  return run_on_star(small_plan_program(spec).program).timeline.duration();
}

/// A ring's reduce_scatter or all_gather on ports of 2 us and 80 ps a byte.
Picoseconds ring_time(int ranks, std::int64_t bytes) {
  return (ranks - 1) * (Picoseconds{2us} + Picoseconds{80} * (bytes / ranks));
}

}  // namespace

// FSDP2: the gather of the layer before is issued when a layer's backward pass begins, its reduction when it ends.
TEST_CASE("fully sharded layers are gathered one ahead, freed, gathered again, and reduced") {
  CHECK(calls_of(sharded(PlanShard::full, 2, 3)) ==
        "gather 0, gather 1, gather 2, gather 2, gather 1, reduce 2, gather 0, reduce 1, reduce 0");
  PlanSpec spec = sharded(PlanShard::full, 2, 3);
  spec.prefetch = 0;
  CHECK(calls_of(spec) == "gather 0, gather 1, gather 2, gather 2, reduce 2, gather 1, reduce 1, gather 0, reduce 0");
  spec.prefetch = 2;
  CHECK(calls_of(spec) == "gather 0, gather 1, gather 2, gather 2, gather 1, gather 0, reduce 2, reduce 1, reduce 0");
  spec.prefetch = 1;
  spec.reshards = false;
  CHECK(calls_of(spec) == "gather 0, gather 1, gather 2, reduce 2, reduce 1, reduce 0");
  spec.micro_batches = 2;  // freed after each backward pass
  CHECK(calls_of(spec) ==
        "gather 0, gather 1, gather 2, reduce 2, reduce 1, reduce 0, gather 0, gather 1, gather 2, reduce 2, reduce 1, "
        "reduce 0");
}

// As torch.distributed.pipelining does it: nothing is freed or reduced before the last micro-batch.
TEST_CASE("stages of a pipeline keep gathered weights over the micro-batches of a step") {
  PlanSpec spec = small_plan(1, 2, 2, {one_f_one_b, 2, 1, 4}, 2);
  spec.shard = PlanShard::full;
  spec.reshards = false;
  CHECK(calls_of(spec) == "gather 0, gather 1, reduce 1, reduce 0");
  spec.reshards = true;
  // Stage 0 runs F F B F B F B B. A backward pass that is not the last leaves weights whole, a forward pass frees them.
  CHECK(calls_of(spec) ==
        "gather 0, gather 1, gather 0, gather 1, gather 1, gather 0, gather 1, gather 0, gather 1, gather 0, reduce 1, "
        "reduce 0");
}

// DeepSpeed reduces the gradients of each micro-batch into the part that the rank keeps; weights are gathered once.
TEST_CASE("parts of gradients are reduced bucket by bucket in each micro-batch") {
  PlanSpec spec = sharded(PlanShard::optimizer_gradients, 2, 3, 2);
  spec.bucket = 1'500;
  CHECK(calls_of(spec) ==
        "reduce bucket 0, reduce bucket 1, reduce bucket 0, reduce bucket 1, gather bucket 1, gather bucket 0");
  spec.bucket = default_plan_bucket(PlanShard::optimizer_gradients, 2);
  CHECK(calls_of(spec) == "reduce bucket 0, reduce bucket 0, gather bucket 0");
}

TEST_CASE("plans of all shards are proved") {
  int n = 0;
  for (const int t : {1, 2})
    for (const int d : {1, 2, 4})
      for (const PipelineShape shape :
           {PipelineShape{one_f_one_b, 1, 1, 1}, PipelineShape{one_f_one_b, 1, 1, 3}, PipelineShape{gpipe, 3, 1, 4},
            PipelineShape{one_f_one_b, 2, 1, 5}, PipelineShape{interleaved, 2, 2, 4}})
        for (const PlanShard shard : {PlanShard::optimizer_gradients, PlanShard::full})
          for (int options = 0; options < 16; ++options) {
            if (shard == PlanShard::optimizer_gradients && shape.stages > 1) continue;
            PlanSpec spec = small_plan(t, shape.stages, d, shape, 3);
            spec.iterations = 2;
            spec.shard = shard;
            spec.bucket = 1'000;  // each layer
            if (shard == PlanShard::full) {
              spec.reshards = (options & 1) != 0;
              spec.prefetch = options / 2 % 4;
              if ((options & 8) != 0 && d == 4) spec.shard_group = 2;
            } else {
              spec.overlaps_reduce = (options & 1) != 0;
              spec.overlaps_gather = (options & 2) != 0;
            }
            if (shape.stages == 1 && options % 3 == 0) spec.tied = 500;
            CAPTURE(options);
            CAPTURE(d);
            CHECK(verdict_of(small_plan_program(spec).program) == "accepted");
            ++n;
          }
  CHECK(n == 2 * 3 * (2 * 16 + 5 * 16));
}

// Bytes of weights 2, of gradients 4 a parameter. A ring of d sends (d - 1)/d of them for a gather or a reduction.
TEST_CASE("sharded plans send what their uses say, to the byte") {
  const auto sent = [](const PlanSpec& spec) {
    return run_on_star(small_plan_program(spec).program).timeline.bytes_sent.count;
  };
  const std::int64_t all = 3'000;
  for (const int d : {2, 4})
    for (const int m : {1, 2}) {
      CAPTURE(d);
      CAPTURE(m);
      const std::int64_t gather = d * all * 2 * (d - 1) / d, reduce = d * all * 4 * (d - 1) / d;
      CHECK(sent(sharded(PlanShard::optimizer, d, 3, m)) == reduce + gather);
      CHECK(sent(sharded(PlanShard::optimizer_gradients, d, 3, m)) == m * reduce + gather);
      PlanSpec spec = sharded(PlanShard::full, d, 3, m);
      CHECK(sent(spec) == m * (2 * gather + reduce));
      spec.reshards = false;
      CHECK(sent(spec) == m * (gather + reduce));
      PlanSpec staged = small_plan(1, 2, d, {one_f_one_b, 2, 1, 2 * m}, 3);
      staged.shard = PlanShard::full;
      staged.reshards = false;
      CHECK(sent(staged) == 2 * (gather + reduce) + 2LL * d * 2 * m * 1'000);
    }
  // Groups of 2 of 8: half of the weights goes twice around them, and each part's sum over 4 replicas.
  PlanSpec spec = sharded(PlanShard::full, 8, 3);
  spec.shard_group = 2;
  CHECK(sent(spec) == 8 * (all * (2 * 2 + 4) / 2 + 2 * 3 * (all * 4 / 2) / 4));
}

// The sum over replicas has a stream of its own: it follows each reduction, next to the gathers and reductions to come.
TEST_CASE("sums over replicas overlap with the backward pass, the last one does not") {
  PlanSpec spec = sharded(PlanShard::full, 4, 3);
  for (PlanLayer& layer : spec.layers[0][0]) {
    layer.parameters = 40'000;
    layer.forward[0].time = layer.backward[0].time = 1ms;
  }
  spec.shard_group = 2;
  const Picoseconds a = ring_time(2, 80'000), r = ring_time(2, 160'000), sum = 2 * ring_time(2, 80'000);
  CHECK(simulated(spec) == 2 * a + Picoseconds{6ms} + r + sum);
}

// A tied embedding is gathered once; the head also reads it.
TEST_CASE("a tied embedding stays gathered until its backward pass") {
  PlanSpec spec = sharded(PlanShard::full, 2, 3);
  spec.tied = 500;
  CHECK(calls_of(spec) == "gather 0, gather 1, gather 2, gather 2, gather 1, reduce 2, reduce 1, reduce 0");
  Program program = small_plan_program(spec).program;
  task_named(program, 0, "forward layers.0 of micro-batch 0")
      .touches.push_back({Program::Touch::As::drop, *program.calls[0].into.begin(), -1});
  REQUIRE(program.calls[0].name == "gather layers.0");
  CHECK(verdict_of(program) ==
        "rank 0, stream 0, task 2 (forward layers.2 of micro-batch 0) reads the gathered weights of bucket 2 of chunk "
        "0, which rank 0 has freed and not gathered again");
}

TEST_CASE("a rank keeps its part, and the layers that are gathered at a time") {
  PlanSpec spec = small_plan(1, 1, 4, {one_f_one_b, 1, 1, 2}, 3);
  spec.layers[0][0][1].parameters = 5'000;
  const auto kept = [&](PlanShard shard) {
    spec.shard = shard;
    return plan_sharding(spec, 0);
  };
  CHECK(kept(PlanShard::none).state == 1);
  CHECK(kept(PlanShard::optimizer).state == 4);
  CHECK(kept(PlanShard::optimizer).gradients == 1);
  spec.bucket = 1'000;
  CHECK(kept(PlanShard::optimizer_gradients).gradients == 4);
  CHECK(kept(PlanShard::optimizer_gradients).whole_gradients == Bytes{4 * 5'000});
  spec.overlaps_reduce = true;
  CHECK(kept(PlanShard::optimizer_gradients).whole_gradients == Bytes{4 * 6'000});
  CHECK(kept(PlanShard::full).weights == 4);
  CHECK(kept(PlanShard::full).whole_weights == Bytes{2 * 6'000});  // a layer and the one that is gathered ahead
  CHECK(kept(PlanShard::full).whole_gradients == Bytes{4 * 6'000});
  spec.prefetch = 0;
  CHECK(kept(PlanShard::full).whole_weights == Bytes{2 * 5'000});
  spec.reshards = false;
  CHECK(kept(PlanShard::full).whole_weights == Bytes{2 * 7'000});
  spec.shard_group = 2;
  CHECK(kept(PlanShard::full).state == 2);
  PlanSpec staged = small_plan(1, 2, 4, {one_f_one_b, 2, 1, 4}, 3);
  staged.shard = PlanShard::full;
  staged.reshards = false;
  CHECK(plan_sharding(staged, 0).gradients == 1);  // added up before they are reduced
  CHECK(plan_sharding(staged, 0).whole_weights == Bytes{2 * 3'000});
}

// Programs that are almost right, each refused with what is wrong.
TEST_CASE("mutations of a sharded plan are refused by name") {
  using As = Program::Touch::As;
  PlanSpec spec = sharded(PlanShard::full, 4, 3, 2);
  const auto of_data = [](const Program& program) {
    return [stream = data_stream(program)](const Program::After& after) { return after.stream == stream; };
  };
  Program program = small_plan_program(spec).program;
  REQUIRE(verdict_of(program) == "accepted");

  SUBCASE("a pass that does not wait for its gather") {
    Program::Task& task = task_named(program, 0, "forward layers.1 of micro-batch 0");
    REQUIRE(std::any_of(task.after.begin(), task.after.end(), of_data(program)));
    task.after.clear();
    CHECK(
        verdict_of(program) ==
        "rank 0, stream 1, task 1 (gather layers.1) and rank 0, stream 0, task 1 (forward layers.1 of micro-batch 0): "
        "both touch the gathered weights of bucket 1 of chunk 0, one of them writes it, and nothing orders them");
  }
  SUBCASE("weights that are freed too early") {
    spec.reshards = false;
    program = small_plan_program(spec).program;
    Program::Task& task = task_named(program, 0, "forward layers.1 of micro-batch 0");
    task.touches.push_back({As::drop, task.touches.begin()->variable, -1});
    CHECK(verdict_of(program) ==
          "rank 0, stream 0, task 4 (backward layers.1 of micro-batch 0) reads the gathered weights of bucket 1 of "
          "chunk 0, which rank 0 has freed and not gathered again");
  }
  SUBCASE("weights that were updated within the step") {
    // The last layer's gradient is reduced when the first layer's backward pass begins; it is applied there.
    Program::Task &update = task_named(program, 0, "update"),
                  &early = task_named(program, 0, "backward layers.0 of micro-batch 0");
    early.touches.push_back(*update.touches.begin());
    CHECK(
        verdict_of(program) ==
        "rank 0, stream 0, task 8 (forward layers.2 of micro-batch 1) reads the gathered weights of bucket 0 of chunk "
        "0, which at rank 0 are not those that the ranks had at the end of the step before");
  }
  SUBCASE("weights that the step before has gathered") {
    // The first layer's gather comes last in the step: before its update, for the next step.
    Program::Task& update = task_named(program, 0, "update");
    std::vector<Program::Task>& data = program.roles[0].streams[static_cast<std::size_t>(data_stream(program))];
    REQUIRE(program.name_of(data.front()) == "gather layers.0");
    std::rotate(data.begin(), data.begin() + 1, data.end());
    data.back().after = {{0, static_cast<int>(program.roles[0].streams[0].size()) - 1, 0}};
    for (Program::Task& task : program.roles[0].streams[0])
      for (Program::After& after : task.after)
        if (of_data(program)(after) && &task != &update) --after.tasks;
    update.after.begin()->tasks = static_cast<int>(data.size());
    CHECK(
        verdict_of(program) ==
        "rank 0, stream 0, task 0 (forward layers.0 of micro-batch 0) reads the gathered weights of bucket 2 of chunk "
        "0, of which rank 0 has only what the step before has left");
  }
  SUBCASE("a micro-batch that overwrites gradients before they are reduced") {
    task_named(program, 0, "forward layers.0 of micro-batch 1").after.clear();
    CHECK(verdict_of(program).find("both touch the") != std::string::npos);
    CHECK(verdict_of(program).find("of bucket 2 of chunk 0, one of them writes it") != std::string::npos);
  }
  SUBCASE("a micro-batch whose gradient is not reduced") {
    for (Program::Call& call : program.calls)
      if (call.name == "reduce layers.1") {
        call.variables = {};
        call.into = {};
        break;
      }
    CHECK(verdict_of(program) ==
          "rank 0: an iteration must add to the weights of bucket 1 of chunk 0 the sum of the gradient of bucket 1 of "
          "chunk 0 over 4 ranks, divided by 4, found something else");
  }
  SUBCASE("replicas that do not sum their parts") {
    spec.shard_group = 2;
    program = small_plan_program(spec).program;
    REQUIRE(verdict_of(program) == "accepted");
    for (Program::Call& call : program.calls)
      if (call.name == "sum layers.1") {
        call.variables = {};
        call.into = {};
      }
    CHECK(verdict_of(program) ==
          "rank 0, stream 0, task 12 (update) applies the reduced gradient of bucket 1 of chunk 0 before it is made");
  }
  SUBCASE("a divisor that leaves out the replicas") {
    spec.shard_group = 2;
    program = small_plan_program(spec).program;
    for (Program::Call& call : program.calls)
      if (call.name == "reduce layers.1") call.divisor = 2;
    CHECK(verdict_of(program) ==
          "rank 0: an iteration must add to the weights of bucket 1 of chunk 0 the sum of the gradient of bucket 1 of "
          "chunk 0 over 4 ranks, divided by 4, found the sum divided by 2");
  }
}

}  // namespace training_sharding_test
