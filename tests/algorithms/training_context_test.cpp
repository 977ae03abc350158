// Context parallelism: who shares samples, and the proof that all queries meet all keys and values.
#include <doctest/doctest.h>

#include <string>

#include "algorithms/training/plan_program.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/verdict.hpp"
#include "validate/closed_forms/small_plan.hpp"

namespace training_context_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;

namespace {

constexpr auto one_f_one_b = PipelineSchedule::one_f_one_b;

/// Each layer gathers keys and values before its core, again backward, and sums their gradients after it.
PlanSpec shared(int tensor, int pipeline, int data, int context, const PipelineShape& shape, int layers = 2) {
  PlanSpec spec = small_plan(tensor, pipeline, data, shape, layers);
  spec.grid = PlanGrid(tensor, pipeline, data, "tp-cp-ep-dp-pp", context);
  const auto exchange = [](std::vector<PlanKernel>& list, CollectiveOp op, const char* name) {
    list.push_back({.op = op, .bytes = 2'400_B, .use = PlanUse::context});
    list.push_back({.name = name, .time = Picoseconds{0}});
  };
  for (auto& chunks : spec.layers)
    for (auto& all : chunks)
      for (PlanLayer& layer : all) {
        exchange(layer.forward, CollectiveOp::all_gather, "core");
        exchange(layer.backward, CollectiveOp::all_gather, "core");
        exchange(layer.backward, CollectiveOp::reduce_scatter, "projections");
      }
  return spec;
}

}  // namespace

TEST_CASE("context ranks are neighbors in the order, and share gradients with the other data ranks") {
  const PlanGrid plain(2, 2, 4, "tp-cp-ep-dp-pp", 2), turned(2, 2, 4, "tp-dp-cp-ep-pp", 2);
  CHECK(plain.ranks() == 16);
  CHECK(plain.context_groups(0).front() == std::vector<Actor>{0, 2});
  CHECK(plain.context_groups(0).size() == 4);
  CHECK(turned.context_groups(0).front() == std::vector<Actor>{0, 4});
  CHECK(plain.data_groups(0).front() == std::vector<Actor>{0, 2, 4, 6});
  CHECK(turned.data_groups(0).front() == std::vector<Actor>{0, 4, 2, 6});
  for (const PlanGrid& grid : {plain, turned})
    for (Actor rank = 0; rank < grid.ranks(); ++rank) CHECK(grid.rank(grid.digits(rank)) == rank);
}

TEST_CASE("plans with context ranks are proved, whatever the shards") {
  int n = 0;
  for (const int t : {1, 2})
    for (const int c : {2, 4})
      for (const PipelineShape shape : {PipelineShape{one_f_one_b, 1, 1, 2}, PipelineShape{one_f_one_b, 2, 1, 3}})
        for (const PlanShard shard : {PlanShard::none, PlanShard::optimizer, PlanShard::full}) {
          PlanSpec spec = shared(t, shape.stages, 2 * c, c, shape);
          spec.iterations = 2;
          spec.shard = shard;
          spec.reshards = shape.stages == 1;
          CHECK(verdict_of(small_plan_program(spec).program) == "accepted");
          ++n;
        }
  CHECK(n == 24);
}

// A gather or a reduce_scatter of 2,400 B sends 2,400 (c - 1) in each of the groups: one forward, two backward.
TEST_CASE("keys and values travel once forward and twice backward, to the byte") {
  for (const int c : {2, 4}) {
    CAPTURE(c);
    const PlanSpec spec = shared(1, 1, 2 * c, c, {one_f_one_b, 1, 1, 3});
    const std::int64_t keys = 2 * 3 * 2 * 3LL * 2'400 * (c - 1), gradients = 2LL * (2 * c - 1) * 2'000 * 4;
    CHECK(run_on_star(small_plan_program(spec).program).timeline.bytes_sent.count == keys + gradients);
  }
}

TEST_CASE("mutations of a plan with context ranks are refused by name") {
  Program program = small_plan_program(shared(1, 1, 4, 2, {one_f_one_b, 1, 1, 2})).program;
  REQUIRE(verdict_of(program) == "accepted");

  SUBCASE("queries that meet the rank's own keys alone") {
    for (Program::Call& call : program.calls)
      if (call.name == "context all_gather") {
        call.variables = {};
        break;
      }
    CHECK(
        verdict_of(program) ==
        "rank 0, stream 0, task 1 (forward layers.0 core of micro-batch 0) reads keys and values of a layer, or their "
        "gradients, of which rank 0 has only what it has made itself");
  }
  SUBCASE("a core that does not wait for them") {
    task_named(program, 0, "forward layers.1 core of micro-batch 0").after.clear();
    CHECK(verdict_of(program).find(
              "both touch keys and values of a layer, or their gradients, one of them writes it") != std::string::npos);
  }
  SUBCASE("a divisor of the samples' ranks alone") {
    for (Program::Call& call : program.calls)
      if (call.name == "reduce bucket 0") call.divisor = 2;
    CHECK(verdict_of(program) ==
          "rank 0: an iteration must add to the weights of bucket 0 of chunk 0 the sum of the gradient of bucket 0 of "
          "chunk 0 over 4 ranks, divided by 4, found the sum divided by 2");
  }
}

}  // namespace training_context_test
