// The closed forms of plans, worked out by hand, and where they do not hold; and all cases of `ringsim check`.
#include "validate/closed_forms/closed_form_plans.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "scenarios/scenario.hpp"
#include "tests/support/small_training.hpp"
#include "validate/closed_forms/plan_cases.hpp"
#include "validate/closed_forms/small_plan.hpp"

namespace closed_form_plans_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace std::chrono_literals;

namespace {

constexpr auto gpipe = PipelineSchedule::gpipe, one_f_one_b = PipelineSchedule::one_f_one_b,
               interleaved = PipelineSchedule::interleaved, zero_bubble = PipelineSchedule::zero_bubble_h1,
               zero_bubble_h2 = PipelineSchedule::zero_bubble_h2;

/// A transformer of 4 layers, h = 64, s = 16, b = 2, on 8 ranks; 16 samples.
PlanTraining plan_of(const std::string& parallel, const std::string& card = "") {
  const std::string text = R"({"version": 1, "name": "small",
      "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
      "training": {"workload": {"transformer": {"layers": 4, "hidden": 64, "heads": 4, "ffn": 256, "vocabulary": 80)" +
                           card + R"(}, "sequence": 16, "micro_batch_size": 2, "global_batch_size": 16,
                                "attention": "unfused",
                                "compute": {"flops": "1 TFLOP/s", "efficiency": "50%"}},
                   "parallel": {)" +
                           parallel + R"(}, "optimizer": "adam"}})";
  return *ScenarioFile::parse(text, "s.json").point(0).training->plan;
}

}  // namespace

// F = 3 us, B = 5 us, p = 4, m = 6 = 1 x 4 + 2: bubbles of 3 x 8 us; hops 2 x 3 x 1 us, and 2 x (3 + 2 + 1) x 1 us.
TEST_CASE("the forms of pipelines, worked by hand") {
  CHECK(pipeline_form({gpipe, 4, 1, 6}, 3us, 5us, 1us).time == Picoseconds{48us + 24us + 6us});
  CHECK(pipeline_form({one_f_one_b, 4, 1, 6}, 3us, 5us, 1us).time == Picoseconds{48us + 24us + 12us});
  CHECK(pipeline_form({one_f_one_b, 4, 1, 8}, 3us, 5us, 1us).time == Picoseconds{64us + 24us + 2 * (6us + 2us)});
  CHECK(pipeline_form({interleaved, 4, 2, 8}, 3us, 5us, 1us).time == Picoseconds{128us + 24us + 14us});
  CHECK(pipeline_form({one_f_one_b, 1, 1, 6}, 3us, 5us, 1us).time == Picoseconds{48us});
  // W = 2 us: 6 x 10 us, a bubble of 3 x 6 us, 12 hops; with m = p one round trip less.
  CHECK(pipeline_form({zero_bubble, 4, 1, 6}, 3us, 5us, 1us, 2us).time == Picoseconds{60us + 18us + 12us});
  CHECK(pipeline_form({zero_bubble, 4, 1, 4}, 3us, 5us, 1us, 2us).time == Picoseconds{40us + 18us + 10us});
  // H2: 8 x 10 us; alone 3 x max(3 + 1, 8 - 4 + 2); in a row of steps the same, because 8 - 4 + 2 is the larger one.
  CHECK(pipeline_form({zero_bubble_h2, 4, 1, 8}, 3us, 5us, 1us, 2us).time == Picoseconds{80us + 18us});
  CHECK(pipeline_period_form({zero_bubble_h2, 4, 1, 8}, 3us, 5us, 1us, 2us).time == Picoseconds{80us + 18us});
  // With equal passes and no hops nothing but the first fill of the pipeline is left, and in a row of steps not even
  // it.
  CHECK(pipeline_form({zero_bubble_h2, 4, 1, 8}, 3us, 3us, 0us, 3us).time == Picoseconds{72us + 9us});
  CHECK(pipeline_period_form({zero_bubble_h2, 4, 1, 8}, 3us, 3us, 0us, 3us).time == Picoseconds{72us});
  // 8 x 12 us; hops of 1 us: 3 x (8 - 8 + 2), then 3 x (6 - 8 + 2) = 0, so one hop is left.
  CHECK(pipeline_period_form({zero_bubble_h2, 4, 1, 8}, 4us, 4us, 1us, 4us).time == Picoseconds{96us + 6us});
  CHECK(pipeline_period_form({zero_bubble_h2, 4, 1, 8}, 3us, 3us, 1us, 4us).time == Picoseconds{80us + 1us});
  CHECK(pipeline_period_form({one_f_one_b, 4, 1, 6}, 3us, 5us, 1us).time == Picoseconds{48us + 24us + 12us});
}

TEST_CASE("the form of a pipeline does not hold where a hop is longer than a pass, and then simulation differs") {
  CHECK(pipeline_form({one_f_one_b, 4, 1, 8}, 3us, 5us, 3us).holds());
  for (const PipelineShape shape : {PipelineShape{gpipe, 3, 1, 6}, PipelineShape{one_f_one_b, 3, 1, 6},
                                    PipelineShape{interleaved, 3, 2, 6}, PipelineShape{zero_bubble_h2, 3, 1, 6}}) {
    PlanSpec spec = small_plan(1, 3, 1, shape);
    spec.activations = Bytes{100'000};  // 10 us
    const bool splits = shape.splits_backward();
    const ClosedForm form = pipeline_form(shape, 3us, splits ? 3us : 5us, 10us, splits ? 2us : 0us);
    CHECK(form.because == std::vector<std::string>{"a hop takes longer than a pass"});
    CHECK(run_on_star(small_plan_program(spec).program).timeline.duration() > form.time);
  }
}

TEST_CASE("the form with passes for weights does not hold where these are long, hops longer, or micro-batches few") {
  const auto expect_other = [](int m, Picoseconds weights, Picoseconds hop, const char* because) {
    const PipelineShape shape{zero_bubble, 4, 1, m};
    const ClosedForm form = pipeline_form(shape, 5us, 3us, hop, weights);
    CHECK(form.because == std::vector<std::string>{because});
    CHECK(pipeline_time(shape, 5us, 3us, hop, weights) != form.time);
  };
  expect_other(8, 4us, 0us, "a pass for weights takes longer than another");
  expect_other(8, 2us, 2us, "two hops take longer than a pass for weights");
  expect_other(2, 2us, 0us, "there are fewer micro-batches than stages");
}

TEST_CASE("the forms of zero_bubble_h2 do not hold where passes for weights are long or micro-batches few") {
  const auto expect_other = [](int m, Picoseconds weights, const char* because) {
    const PipelineShape shape{zero_bubble_h2, 4, 1, m};
    const ClosedForm alone = pipeline_form(shape, 3us, 11us, 0us, weights),
                     in_row = pipeline_period_form(shape, 3us, 11us, 0us, weights);
    CHECK(alone.because == std::vector<std::string>{because});
    CHECK(in_row.because == std::vector<std::string>{because});
    CHECK(pipeline_period(shape, 3us, 11us, 0us, weights) != in_row.time);
  };
  expect_other(8, 4us, "a pass for weights takes longer than another");
  expect_other(6, 2us, "there are fewer micro-batches than 2p-1");
}

// L = 3, m = 1, f = 9 us, b = 16 us, u = 7 us. a = 20 us, r = 40 us: forward 20 + 2 x 20 + 9; backward 20 + 20 + 60 +
// 40 + 40; kept 16 + 2 x 40 + 40. In turn: 3 (20 + 9) + 3 (20 + 16 + 40).
TEST_CASE("the forms of sharded layers, worked by hand") {
  const DataLayers layers{
      .layers = 3, .micro_batches = 1, .forward = 9us, .backward = 16us, .gather = 20us, .reduce = 40us, .update = 7us};
  CHECK(fully_sharded_form(layers, true, 1).time == Picoseconds{69us + 180us + 7us});
  CHECK(fully_sharded_form(layers, false, 1).time == Picoseconds{69us + 136us + 7us});
  CHECK(fully_sharded_form(layers, true, 0).time == Picoseconds{87us + 228us + 7us});
  CHECK_FALSE(fully_sharded_form(layers, true, 2).holds());
  // Three reductions of 40 us, the first when the last layer's backward pass ends: 43 us.
  CHECK(overlapped_reduction_form(layers).time == Picoseconds{43us + 120us + 7us});
  DataLayers hidden = layers;
  hidden.reduce = 10us;
  CHECK(overlapped_reduction_form(hidden).time == Picoseconds{75us + 10us + 7us});
}

// Four ranks, steps of 10 and 25 us, hops of 8 and 14 us: all hidden. Then hops of 30 and 58 us, which are longer.
TEST_CASE("the form of a ring, worked by hand") {
  RingLayer ring{.ranks = 4, .forward = 10us, .backward = 25us, .sum = 1us, .hop = 8us, .double_hop = 14us};
  CHECK(ring_attention_form(ring).time == Picoseconds{4 * 10us + 4 * 25us + 4 * 1us});
  ring.hop = 30us;
  ring.double_hop = 58us;
  CHECK(ring_attention_form(ring).time == Picoseconds{3 * 30us + 10us + 2 * 30us + 2 * 58us + 4 * 1us});
  ring.ranks = 2;  // no hop carries both
  CHECK(ring_attention_form(ring).time == Picoseconds{30us + 10us + 2 * 30us + 2 * 1us});
  // As with gathers: blocks of 2 x 8 tokens x 64 x 2 B, 3 forward and 6 backward, in 4 layers and 4 micro-batches.
  PlanTraining plan = plan_of(R"("context": 4, "cp_comm": "all_gather")", R"(, "gated": false, "biases": true)");
  plan.model.flash = true;
  const PlanVolumes gathers = plan_volumes(plan, 0);
  const PlanMemory gathered = plan_memory_form(plan, 12, 0);
  plan.model.ring = true;
  CHECK(plan_volumes(plan, 0).context.count == 4 * 4 * 9 * 2'048);
  CHECK(plan_volumes(plan, 0).total() == gathers.total());
  // s b h / c = 512: blocks and results of four steps, 24 of it, in place of 4 x 8.
  CHECK((plan_memory_form(plan, 12, 0).activations - gathered.activations).count == (24 - 32) * 512);
}

// E = 2 x 16 x 2 x 64 = 4,096 B. t = 2, p = 2, d = 2: m = 4. Stage 0: 2 layers of 4 all-reduces and the embedding's,
// each of which sends E; 4 activations. Its parameters: 2 layers of (4 x 64^2 + 3 x 64 x 256)/2 + 128, and 40 x 64: 4 x
// 2 x 1/2 B. Stage 1: the head's all-reduce, 3 of 4 B for each of 32 tokens; its norm has 64 parameters.
TEST_CASE("the volumes of a plan, worked by hand") {
  const PlanTraining plan = plan_of(R"("tensor": 2, "pipeline": 2)");
  const std::int64_t layer = (4 * 64 * 64 + 3 * 64 * 256) / 2 + 128;
  const PlanVolumes first = plan_volumes(plan, 0), last = plan_volumes(plan, 1);
  CHECK(first.tensor.count == 4 * (2 * 4 + 1) * 4'096);
  CHECK(first.pipeline.count == 4 * 4'096);
  CHECK(first.data.count == 4 * (2 * layer + 2'560));
  CHECK(last.tensor.count == 4 * ((2 * 4 + 1) * 4'096 + 3 * 4 * 32));
  CHECK(last.pipeline.count == 4 * 4'096);
  CHECK(last.data.count == 4 * (2 * layer + 2'560 + 64));
  CHECK(first.total() == first.tensor + first.pipeline + first.data);
  // Context 4 of 8 data ranks: m = 4; K and V of 2 samples are 2 x 2 x 16 x 64 x 2 B, 3/4 of them 3 times a layer.
  CHECK(plan_volumes(plan_of(R"("context": 4, "cp_comm": "all_gather")"), 0).context.count == 4 * 4 * 3 * 6'144);
  // Experts on 4 of 8 ranks: m = 1; two copies of each token, 3/4 of them 4 times a layer.
  const char* experts = R"(, "experts": 4, "top_k": 2, "expert_ffn": 128)";
  CHECK(plan_volumes(plan_of(R"("expert": 4)", experts), 0).expert.count == 4 * 4 * 6'144);
}

// s b h = 2,048, a s/h = 1: 2,048 x (10 + 24/2 + 5/2) = 50,176 B a layer; in flight p - i = 2 and 1.
TEST_CASE("the memory of a plan, worked by hand") {
  const PlanTraining plan =
      plan_of(R"("tensor": 2, "pipeline": 2, "shard": "optimizer")", R"(, "gated": false, "biases": true)");
  const std::int64_t layer = (12 * 64 * 64 + 3 * 64 + 256) / 2 + 6 * 64, words = 2'560;  // 40 x 64
  const PlanMemory first = plan_memory_form(plan, 12, 0), last = plan_memory_form(plan, 12, 1);
  CHECK(first.weights.count == 2 * (2 * layer + words));
  CHECK(first.gradients.count == 4 * (2 * layer + words));
  CHECK(first.state.count == 12 * (2 * layer + words) / 2);
  CHECK(first.activations.count == 2 * 2 * 50'176);
  CHECK(first.in_flight == 2);
  CHECK(last.weights.count == 2 * (2 * layer + words + 128));
  CHECK(last.activations.count == 2 * 50'176 + 4 * 2'048 + 4 * 32 * 40);
}

TEST_CASE("every plan of `ringsim check` equals its closed form") {
  std::map<PlanCase::Quantity, int> cases;
  for (const PlanCase& c : plan_cases()) {
    CAPTURE(c.plan);
    CAPTURE(c.where);
    const PlanNumbers its = c.run();
    CAPTURE(its.formula);
    CHECK(its.holds);
    CHECK(its.form > 0);
    CHECK(its.simulated == its.form);
    ++cases[c.quantity];
  }
  CHECK(cases[PlanCase::Quantity::time] == 2'208);
  CHECK(cases[PlanCase::Quantity::sent] == 157);
  CHECK(cases[PlanCase::Quantity::memory] == 109);
}

}  // namespace closed_form_plans_test
