// Expert parallelism: the ranks of experts, and the proof that each token comes back from all of its experts.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include "algorithms/training/plan_program.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/verdict.hpp"
#include "validate/closed_forms/small_plan.hpp"

namespace training_expert_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;

namespace {

constexpr auto one_f_one_b = PipelineSchedule::one_f_one_b;

/// Each layer has 1,000 parameters and 600 of experts, whose tokens, 4,800 B per rank, go there and back in either
/// pass. A pass of a layer: its kernels, then 1 us at the experts. Tensor ranks that split experts gather tokens and
/// add up what each has made of them.
PlanSpec mixed(int tensor, int data, int expert, int expert_tensor, const PipelineShape& shape, int layers = 2) {
  PlanSpec spec = small_plan(tensor, shape.stages, data, shape, layers);
  spec.grid = PlanGrid(tensor, shape.stages, data, "tp-cp-ep-dp-pp", 1, expert, expert_tensor);
  const auto add = [&](std::vector<PlanKernel>& list) {
    const auto kernel = [&](const char* name, Picoseconds time = Picoseconds{0}) {
      list.push_back({.name = name, .time = time});
    };
    const auto call = [&](PlanUse use, CollectiveOp op) { list.push_back({.op = op, .bytes = 4'800_B, .use = use}); };
    if (expert > 1) call(PlanUse::expert, CollectiveOp::all_to_all);
    if (expert > 1) kernel("arrived");
    if (expert_tensor > 1) call(PlanUse::tensor, CollectiveOp::all_gather);
    kernel("experts", 1us);
    if (expert_tensor > 1) call(PlanUse::tensor, CollectiveOp::reduce_scatter);
    if (expert_tensor > 1) kernel("answers");
    if (expert > 1) call(PlanUse::expert, CollectiveOp::all_to_all);
    kernel("sum");
  };
  for (auto& chunks : spec.layers)
    for (auto& all : chunks)
      for (PlanLayer& layer : all) {
        if (spec.grid.has_experts_apart()) layer.expert_parameters = 600;
        add(layer.forward);
        add(layer.backward);
      }
  return spec;
}

void drop(Program::Task& task, Program::Touch::As how) {
  const auto found = std::find_if(task.touches.begin(), task.touches.end(),
                                  [&](const Program::Touch& touch) { return touch.as == how; });
  REQUIRE(found != task.touches.end());
  task.touches.erase(found);
}

std::string changed(Program program, const std::function<void(Program&)>& change) {
  change(program);
  return verdict_of(std::move(program));
}

}  // namespace

// Megatron-LM's second rank generator: tensor, then expert, then data, then pipeline, without context.
TEST_CASE("expert ranks are the next data and context ranks; with whole experts tensor ranks, too") {
  const std::string order = "tp-cp-ep-dp-pp";
  const PlanGrid split(2, 2, 4, order, 1, 2), whole(2, 2, 4, order, 1, 4, 1), context(1, 1, 4, order, 2, 4);
  CHECK(split.expert_groups(0) == Program::Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(split.expert_data_groups(0) == Program::Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(split.expert_groups(1).front() == std::vector<Actor>{8, 10});
  CHECK(whole.expert_groups(0) == Program::Groups{{0, 1, 2, 3}, {4, 5, 6, 7}});
  CHECK(whole.expert_data_groups(1).front() == std::vector<Actor>{8, 12});
  CHECK(context.expert_groups(0) == Program::Groups{{0, 1, 2, 3}});
  CHECK(context.expert_data() == 1);
  // Data before context: expert ranks lie where the order has ep.
  CHECK(PlanGrid(1, 1, 4, "dp-cp-ep-tp-pp", 2, 2).expert_groups(0).front() == std::vector<Actor>{0, 2});
  for (const PlanGrid& grid : {split, whole, context}) CHECK(grid.experts_fit());
  CHECK(!PlanGrid(1, 2, 4, "tp-cp-ep-pp-dp", 1, 2).experts_fit());    // stages differ
  CHECK(!PlanGrid(2, 1, 4, "dp-tp-cp-ep-pp", 1, 2).experts_fit());    // tensor groups differ
  CHECK(PlanGrid(2, 1, 4, "dp-tp-cp-ep-pp", 1, 2, 1).experts_fit());  // experts have none
  CHECK(split.has_experts_apart());
  CHECK(!PlanGrid(2, 2, 4, order).has_experts_apart());
}

TEST_CASE("plans with experts on several ranks are proved") {
  int n = 0;
  for (const int t : {1, 2})
    for (const int expert : {1, 2, 4})
      for (const bool splits : {false, true})
        for (const PipelineShape shape : {PipelineShape{one_f_one_b, 1, 1, 2}, PipelineShape{one_f_one_b, 2, 1, 3},
                                          PipelineShape{PipelineSchedule::interleaved, 2, 2, 2}})
          for (const PlanShard shard : {PlanShard::none, PlanShard::optimizer})
            for (const bool overlaps : {false, true}) {
              if (splits && t == 1) continue;
              PlanSpec spec = mixed(t, 4, expert, splits ? t : 1, shape);
              spec.iterations = 2;
              spec.shard = shard;
              spec.overlaps_reduce = overlaps;
              spec.overlaps_gather = overlaps && shard == PlanShard::optimizer;
              spec.bucket = 1'000;
              CAPTURE(t);
              CAPTURE(expert);
              CAPTURE(splits);
              CHECK(verdict_of(small_plan_program(spec).program) == "accepted");
              ++n;
            }
  CHECK(n == 108);
}

// Each of the two all_to_alls of a pass sends 4,800 (e - 1)/e B from each rank. Gradients of 2 x 1,000 parameters are
// summed among all d ranks, those of 2 x 600 among d/e: 2 (n - 1) parts of all of it in each group.
TEST_CASE("tokens travel four times a layer and micro-batch, and experts' gradients among the ranks that have them") {
  for (const int expert : {2, 4})
    for (const int data : {4, 8}) {
      CAPTURE(expert);
      CAPTURE(data);
      const PlanSpec spec = mixed(1, data, expert, 1, {one_f_one_b, 1, 1, 3});
      const std::int64_t tokens = 4LL * 2 * 3 * data * 4'800 * (expert - 1) / expert;
      const std::int64_t gradients = 2LL * 4 * ((data - 1) * 2'000 + expert * (data / expert - 1) * 1'200);
      CHECK(run_on_star(small_plan_program(spec).program).timeline.bytes_sent.count == tokens + gradients);
      PlanSpec parts = spec;  // a reduce_scatter of 4 B and an all_gather of 2 B
      parts.shard = PlanShard::optimizer;
      CHECK(run_on_star(small_plan_program(parts).program).timeline.bytes_sent.count ==
            tokens + gradients / 2 + gradients / 4);
    }
}

// One layer on e ports of 2 us and 80 ps a byte. A direct all_to_all leaves each port as (e - 1) messages at once:
// a = 2 us + 80 ps (e - 1)/e B. A pass: its kernels, a, the experts, a. Two passes of 3 and 5 us, then the ring of the
// gradients of all but experts.
TEST_CASE("a step of one layer with experts takes its closed form, to the picosecond") {
  for (const int expert : {2, 4, 8}) {
    CAPTURE(expert);
    const PlanSpec spec = mixed(1, expert, expert, 1, {one_f_one_b, 1, 1, 1}, 1);
    const Picoseconds a = Picoseconds{2us} + Picoseconds{80} * (4'800 * (expert - 1) / expert);
    const Picoseconds ring = 2 * (expert - 1) * (Picoseconds{2us} + Picoseconds{80} * (4'000 / expert));
    CHECK(run_on_star(small_plan_program(spec).program).timeline.duration() ==
          Picoseconds{3us} + Picoseconds{5us} + 4 * a + 2 * Picoseconds{1us} + ring);
  }
}

TEST_CASE("mutations of a plan with expert ranks are refused by name") {
  const Program program = small_plan_program(mixed(1, 4, 2, 1, {one_f_one_b, 1, 1, 2})).program;
  REQUIRE(verdict_of(program) == "accepted");
  using As = Program::Touch::As;
  const auto call_of = [](Program& p, const std::string& name) -> Program::Call& {
    for (Program::Call& call : p.calls)
      if (call.name == name) return call;
    throw std::runtime_error("no call " + name);
  };

  // A layer skips its combine.
  CHECK(changed(program, [&](Program& p) { call_of(p, "combine tokens").variables = {}; }) ==
        "rank 0, stream 0, task 3 (forward layers.0 sum of micro-batch 0) reads tokens of a layer's experts, or their "
        "gradients, of which rank 0 has only its answers to what other ranks have sent it");
  // Tokens come back that experts have not met.
  CHECK(changed(program,
                [&](Program& p) { drop(task_named(p, 0, "forward layers.0 experts of micro-batch 0"), As::answer); }) ==
        "rank 0: combine tokens sends tokens of a layer's experts, or their gradients before it has "
        "answered what other ranks have sent it");
  // Experts meet the rank's own tokens.
  CHECK(changed(program, [&](Program& p) { call_of(p, "dispatch tokens").variables = {}; }) ==
        "rank 0, stream 0, task 2 (forward layers.0 experts of micro-batch 0) answers tokens of a layer's experts, or "
        "their gradients, of which rank 0 has nothing that other ranks have sent it");
  // Experts answer twice.
  CHECK(changed(program,
                [&](Program& p) {
                  auto& touches = task_named(p, 0, "forward layers.0 experts of micro-batch 0").touches;
                  const auto answer = std::find_if(touches.begin(), touches.end(),
                                                   [](const Program::Touch& touch) { return touch.as == As::answer; });
                  const Program::Touch again = *answer;
                  touches.push_back(again);
                }) ==
        "rank 0, stream 0, task 2 (forward layers.0 experts of micro-batch 0) answers tokens of a layer's "
        "experts, or their gradients, of which rank 0 has already answered what other ranks have sent it");
  // Tokens come back from the experts of other ranks.
  CHECK(changed(program,
                [&](Program& p) {
                  call_of(p, "combine tokens").members = {0, 2, 1, 3};
                }) ==
        "rank 0: combine tokens must bring back the answers of the 2 ranks to which it has sent parts "
        "of tokens of a layer's experts, or their gradients, each once; found something else");
  // A kernel does not wait for them.
  CHECK(changed(program, [&](Program& p) { task_named(p, 0, "forward layers.0 sum of micro-batch 0").after.clear(); })
            .find("both touch tokens of a layer's experts, or their gradients, one of them writes it") !=
        std::string::npos);
  // The divisor of the ranks that have the same experts.
  CHECK(changed(program, [&](Program& p) { call_of(p, "reduce expert bucket 0").divisor = 2; }) ==
        "rank 0: an iteration must add to the weights of expert bucket 0 of chunk 0 the sum of the gradient of expert "
        "bucket 0 of chunk 0 over 2 ranks, divided by 4, found the sum divided by 2");
  // Experts that one rank alone has are divided by nothing.
  const Program alone = small_plan_program(mixed(1, 4, 4, 1, {one_f_one_b, 1, 1, 2})).program;
  CHECK(changed(alone, [&](Program& p) { drop(task_named(p, 0, "update"), As::divide); }) ==
        "rank 0: an iteration must add to the weights of expert bucket 0 of chunk 0 the sum of the gradient of "
        "expert bucket 0 of chunk 0 over 1 rank, divided by 4, found the sum divided by 1");
}

}  // namespace training_expert_test
