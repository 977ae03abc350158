// What a transformer costs the ranks of a plan: memory against published figures, kernels and bytes against sums by
// hand.
#include "algorithms/training/transformer_costs.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <numeric>
#include <string>

namespace transformer_costs_test {

using namespace ringsim;
using Recompute = TransformerPlan::Recompute;

namespace {

/// GPT as Megatron-LM has it, without the vectors and the embedding.
TransformerCard gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = heads,
          .head_dim = hidden / heads,
          .ffn = 4 * hidden,
          .vocabulary = 51'200,
          .gated = false,
          .tied = true,
          .biases = true};
}

TransformerPlan plan_of(const TransformerCard& card, int tensor, PipelineShape shape, std::int64_t micro_batch) {
  return {
      .card = card, .sequence = 2'048, .micro_batch = micro_batch, .tensor = tensor, .shape = shape, .flash = false};
}

constexpr auto one_f_one_b = PipelineSchedule::one_f_one_b, interleaved = PipelineSchedule::interleaved;

/// The four models of Korthikanti et al. (arXiv 2205.05198), table 3: t = 8.
struct Published {
  std::int64_t layers, hidden, heads;
  PipelineShape shape;
  std::int64_t micro_batch;
  double parameters_gib;  ///< figure 1: weights, gradients and the optimizer's state
};
const Published published[] = {{48, 6'144, 64, {one_f_one_b, 1, 1, 1}, 4, 45.5625},
                               {96, 12'288, 96, {interleaved, 8, 3, 64}, 1, 45.5625},
                               {105, 20'480, 128, {interleaved, 35, 3, 280}, 1, 31.640625},
                               {128, 25'600, 160, {one_f_one_b, 64, 1, 512}, 1, 32.958984375}};

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1U << 30U); }

Picoseconds time_of(const std::vector<PlanKernel>& kernels) {
  Picoseconds sum{0};
  for (const PlanKernel& kernel : kernels) sum += kernel.time;
  return sum;
}
std::int64_t bytes_of(const std::vector<PlanKernel>& kernels, CollectiveOp op) {
  std::int64_t sum = 0;
  for (const PlanKernel& kernel : kernels)
    if (kernel.is_call() && kernel.op == op) sum += kernel.bytes.count;
  return sum;
}

}  // namespace

// 18 bytes for each of the 12 L h^2 / (t p) elements of a rank's matrices: 2 + 4 of weights and gradients, 12 of Adam's
// moments and the copy in fp32. Without biases and norms, which the published figure leaves out.
TEST_CASE("weights, gradients and optimizer of four published models take what was published, exactly") {
  const OptimizerBytes adam = optimizer_bytes("adam", 2, 4);
  CHECK(adam.state == 12);
  for (const Published& row : published) {
    TransformerCard card = gpt(row.layers, row.hidden, row.heads);
    card.biases = false;
    const std::int64_t matrices = layer_parameters(card, 8) - 2 * row.hidden;
    CHECK(matrices == 12 * row.hidden * row.hidden / 8);
    CHECK(gib(matrices * row.layers / row.shape.stages * (2 + 4 + adam.state)) == row.parameters_gib);
  }
}

// s b h (10 + 24/t + 5 a s/(h t)) a layer; with sequence_parallel all over t; selective without the scores; full 2 s b
// h.
TEST_CASE("a layer of GPT keeps what the published equations say, and stage 0 as many layers as are in flight") {
  for (const Published& row : published) {
    const std::int64_t sbh = 2'048 * row.micro_batch * row.hidden,
                       scores = 5 * row.heads * 2'048 * 2'048 * row.micro_batch;
    TransformerPlan plan = plan_of(gpt(row.layers, row.hidden, row.heads), 8, row.shape, row.micro_batch);
    CHECK(layer_activations(plan).count == sbh * 13 + scores / 8);
    plan.sequence_parallel = true;
    CHECK(layer_activations(plan).count == (34 * sbh + scores) / 8);
    plan.recompute = Recompute::selective;
    CHECK(layer_activations(plan).count == 34 * sbh / 8);
    const int p = row.shape.stages, v = row.shape.chunks;
    const PlanMemory first = plan_memory(plan, 0, optimizer_bytes("adam", 2, 4), {});
    CHECK(first.in_flight == (v == 1 ? p : p * v + p - 1));
    if (p > 1)  // of all layers, 1 + (p - 1)/(p v) times
      CHECK(first.activations.count == 34 * sbh / 8 * (row.layers / (p * v)) * (p * v + p - 1 - (v == 1 ? p - 1 : 0)));
    plan.recompute = Recompute::full;
    CHECK(layer_activations(plan).count == 2 * sbh / 8);
    plan.sequence_parallel = false;
    CHECK(layer_activations(plan).count == 2 * sbh);
  }
}

TEST_CASE("flash keeps no scores, grouped queries fewer keys, and a gated MLP three inner sizes") {
  TransformerPlan plan = plan_of({.layers = 4,
                                  .hidden = 64,
                                  .heads = 8,
                                  .kv_heads = 2,
                                  .head_dim = 8,
                                  .ffn = 128,
                                  .vocabulary = 100,
                                  .gated = true,
                                  .biases = false},
                                 2, {one_f_one_b, 2, 1, 3}, 1);
  plan.flash = true;
  CHECK(layer_activations(plan).count == 2'048 * (4 * 2 * 64 + 2 * (2 * 64 + 2 * 16 + 3 * 128) / 2));
  // Matrices: Q and O of 64 x 64, K and V of 64 x 16, three of 64 x 128; two norms.
  CHECK(layer_parameters(plan.card, 2) == (2 * 64 * 64 + 2 * 64 * 16 + 3 * 64 * 128) / 2 + 2 * 64);
  CHECK(stage_parameters(plan, 0) == 2 * layer_parameters(plan.card, 2) + 50 * 64);
  CHECK(stage_parameters(plan, 1) == 2 * layer_parameters(plan.card, 2) + 50 * 64 + 64);
  plan.card.tied = true;  // the last stage has a copy
  CHECK(stage_parameters(plan, 1) == 2 * layer_parameters(plan.card, 2) + 50 * 64 + 64);
  plan.shape = {one_f_one_b, 1, 1, 3};
  CHECK(stage_parameters(plan, 0) == 4 * layer_parameters(plan.card, 2) + 50 * 64 + 64);
}

// Without memory limits: 2 operations a multiply-add, twice backward, once more with full recomputation.
TEST_CASE("kernels take their operations over the reached speed, or their bytes if those take longer") {
  TransformerPlan plan = plan_of(gpt(2, 1'024, 16), 1, {one_f_one_b, 1, 1, 1}, 1);
  const double tokens = 2'048, products = 2 * tokens * 12 * 1'024 * 1'024, core = 4 * tokens * 2'048 * 1'024;
  const PlanLayer layer = transformer_layers(plan, {.gemm = 1e14, .attention = 5e13})[0][0][1];
  CHECK(layer.name == "layers.0");
  CHECK(static_cast<double>(time_of(layer.forward).count()) ==
        doctest::Approx((products / 1e14 + core / 5e13) * 1e12).epsilon(1e-9));
  CHECK(static_cast<double>(time_of(layer.backward).count()) ==
        doctest::Approx(2 * (products / 1e14 + core / 5e13) * 1e12).epsilon(1e-9));
  // Flash kernels skip the half that the mask hides, and backward do two and a half times as much.
  plan.flash = true;
  const PlanLayer flash = transformer_layers(plan, {.gemm = 1e14, .attention = 5e13})[0][0][1];
  CHECK(static_cast<double>(time_of(flash.forward).count()) ==
        doctest::Approx((products / 1e14 + core / 2 / 5e13) * 1e12).epsilon(1e-9));
  CHECK(static_cast<double>(time_of(flash.backward).count()) ==
        doctest::Approx((2 * products / 1e14 + 2.5 * core / 2 / 5e13) * 1e12).epsilon(1e-9));
  // Memory alone, by hand for a token of h = 1024, two bytes an element: norms 4 h each, residuals 7 h each, transposes
  // 12 h, GeLU with its bias 8 f = 32 h; products read and write (4 h^2 + 8 h^2)/2048 tokens of weights and 3 + 1 + 1 +
  // 1 + 1 + 4 + 4 + 1 of h; the core Q, K, V and its output.
  const PlanLayer slow = transformer_layers(plan, {.gemm = 1e30, .attention = 1e30, .memory = 1e12})[0][0][1];
  const double h = 1'024, elements = 12 * h * h / 2'048 + h * (1 + 3 + 1 + 1 + 1 + 4 + 4 + 1) + 4 * h;
  CHECK(static_cast<double>(time_of(slow.forward).count()) ==
        doctest::Approx(tokens * (2 * 4 * h + 2 * 7 * h + 12 * h + 32 * h + 2 * elements)).epsilon(1e-9));
}

// Megatron-LM's two all-reduces a pass of b s h elements of 2 bytes; parts of sequences instead, and one gather more.
TEST_CASE("tensor ranks exchange two sums a pass of a layer, or with sequence_parallel their parts") {
  TransformerPlan plan = plan_of(gpt(2, 1'024, 16), 4, {one_f_one_b, 1, 1, 1}, 2);
  const std::int64_t whole = 2 * 2 * 2'048 * 1'024;
  PlanLayer layer = transformer_layers(plan, {.gemm = 1e14, .attention = 1e14})[0][0][1];
  CHECK(bytes_of(layer.forward, CollectiveOp::all_reduce) == 2 * whole);
  CHECK(bytes_of(layer.backward, CollectiveOp::all_reduce) == 2 * whole);
  CHECK(layer.recompute.empty());
  plan.recompute = Recompute::full;  // forward once more: 12 instead of 8 (t - 1)/t b s h by a ring
  layer = transformer_layers(plan, {.gemm = 1e14, .attention = 1e14})[0][0][1];
  CHECK(bytes_of(layer.recompute, CollectiveOp::all_reduce) == 2 * whole);
  plan.recompute = Recompute::selective;
  plan.sequence_parallel = true;
  layer = transformer_layers(plan, {.gemm = 1e14, .attention = 1e14})[0][0][1];
  CHECK(bytes_of(layer.forward, CollectiveOp::all_reduce) == 0);
  CHECK(bytes_of(layer.forward, CollectiveOp::reduce_scatter) == 2 * whole);
  CHECK(bytes_of(layer.forward, CollectiveOp::all_gather) == 2 * whole);
  CHECK(bytes_of(layer.backward, CollectiveOp::reduce_scatter) == 2 * whole);
  CHECK(bytes_of(layer.backward, CollectiveOp::all_gather) == 4 * whole);
  REQUIRE(layer.recompute.size() == 1);
  CHECK(!layer.recompute.front().is_call());
}

/// Two layers with eight experts of 512, of which a token meets two; two expert ranks.
TransformerPlan routed() {
  TransformerPlan plan = plan_of({.layers = 2,
                                  .hidden = 1'024,
                                  .heads = 16,
                                  .kv_heads = 16,
                                  .head_dim = 64,
                                  .ffn = 4'096,
                                  .vocabulary = 1'000,
                                  .experts = 8,
                                  .top_k = 2,
                                  .expert_ffn = 512,
                                  .biases = false},
                                 1, {one_f_one_b, 1, 1, 1}, 1);
  plan.flash = true;
  plan.expert = 2;
  return plan;
}

// Operations of a token, h = 1024: Q, K, V and output 4 h^2 multiply-adds, the router 8 h, two experts of three h x 512
// matrices 3 h^2, the causal half of the core. Backward twice, the core two and a half times.
TEST_CASE("a layer with experts takes the operations of those that a token meets") {
  TransformerPlan plan = routed();
  const double tokens = 2'048, h = 1'024, core = 2 * tokens * 2'048 * h / 5e13;
  const auto products = [&](double matrices) { return 2 * tokens * matrices / 1e14; };
  PlanLayer layer = transformer_layers(plan, {.gemm = 1e14, .attention = 5e13})[0][0][1];
  CHECK(static_cast<double>(time_of(layer.forward).count()) ==
        doctest::Approx((products(7 * h * h + 8 * h) + core) * 1e12).epsilon(1e-9));
  CHECK(static_cast<double>(time_of(layer.backward).count()) ==
        doctest::Approx((2 * products(7 * h * h + 8 * h) + 2.5 * core) * 1e12).epsilon(1e-9));
  plan.imbalance = 1.5;  // half as much more for the experts' 3 h^2
  layer = transformer_layers(plan, {.gemm = 1e14, .attention = 5e13})[0][0][1];
  CHECK(static_cast<double>(time_of(layer.forward).count()) ==
        doctest::Approx((products(8.5 * h * h + 8 * h) + core) * 1e12).epsilon(1e-9));
  plan.imbalance = 1;
  plan.card.shared_ffn = 1'024;  // three h x h more
  plan.card.dense_layers = 1;    // three h x 4 h in place of experts
  const auto layers = transformer_layers(plan, {.gemm = 1e14, .attention = 5e13});
  CHECK(static_cast<double>(time_of(layers[0][0][1].forward).count()) ==
        doctest::Approx((products(16 * h * h) + core) * 1e12).epsilon(1e-9));
  CHECK(static_cast<double>(time_of(layers[0][0][2].forward).count()) ==
        doctest::Approx((products(10 * h * h + 8 * h) + core) * 1e12).epsilon(1e-9));
}

// Bytes of a token by hand, two an element: two norms of 4 h, two residuals of 6 h, transposes 12 h, the core 8 h,
// scores 64, two copies of 6 h, two sorts by four local experts of 8 h, the activation 6 h. Products read and write 4 h
// + 2 h, h + 8, and of two experts 2 (h + h) + 2 (512 + h) elements, and weights of 4 h^2, 8 h and four experts' 6 h^2.
TEST_CASE("a layer with experts moves its copies of tokens, and all weights of a rank's experts") {
  const double tokens = 2'048, h = 1'024;
  const PlanLayer layer = transformer_layers(routed(), {.gemm = 1e30, .attention = 1e30, .memory = 1e12})[0][0][1];
  const double elements = 14 * h + 8 + (10 * h * h + 8 * h) / tokens;
  CHECK(static_cast<double>(time_of(layer.forward).count()) ==
        doctest::Approx(tokens * (8 * h + 12 * h + 12 * h + 8 * h + 64 + 12 * h + 16 * h + 6 * h + 2 * elements))
            .epsilon(1e-9));
}

// b s k h elements of 2 bytes there and back in either pass, over t; where tensor ranks split experts they gather them.
TEST_CASE("tokens are exchanged twice a pass of a layer with experts") {
  TransformerPlan plan = routed();
  const std::int64_t whole = 2 * 2'048 * 1'024, copies = 2 * whole;
  PlanLayer layer = transformer_layers(plan, {.gemm = 1e14, .attention = 1e14})[0][0][1];
  for (const auto* pass : {&layer.forward, &layer.backward})
    CHECK(bytes_of(*pass, CollectiveOp::all_to_all) == 2 * copies);
  CHECK(layer.recompute.empty());
  CHECK(layer.parameters == 4 * 1'024 * 1'024 + 8 * 1'024 + 2 * 1'024);
  CHECK(layer.expert_parameters == 4 * 3 * 1'024 * 512);
  plan.tensor = 4;
  plan.sequence_parallel = true;
  plan.recompute = Recompute::full;
  layer = transformer_layers(plan, {.gemm = 1e14, .attention = 1e14})[0][0][1];
  for (const auto* pass : {&layer.forward, &layer.recompute, &layer.backward}) {
    CHECK(bytes_of(*pass, CollectiveOp::all_to_all) == 2 * copies / 4);
    CHECK(bytes_of(*pass, CollectiveOp::reduce_scatter) == whole);
  }
  plan.expert_tensor = 4;
  layer = transformer_layers(plan, {.gemm = 1e14, .attention = 1e14})[0][0][1];
  CHECK(bytes_of(layer.forward, CollectiveOp::all_to_all) == 2 * copies / 4);
  CHECK(bytes_of(layer.forward, CollectiveOp::all_gather) == whole + copies);
  CHECK(bytes_of(layer.backward, CollectiveOp::all_gather) == 2 * whole + copies);
  CHECK(bytes_of(layer.backward, CollectiveOp::reduce_scatter) == whole + copies);
  CHECK(layer.expert_parameters == 4 * 3 * 1'024 * 512 / 4);
}

// 46.7 billion parameters over eight expert ranks: of 32 layers each has one expert of three 4096 x 14336 matrices.
TEST_CASE("the experts of Mixtral 8x7B are divided among expert ranks, and all else is on each") {
  TransformerPlan plan = routed();
  plan.card = {.layers = 32,
               .hidden = 4'096,
               .heads = 32,
               .kv_heads = 8,
               .head_dim = 128,
               .ffn = 14'336,
               .vocabulary = 32'000,
               .experts = 8,
               .top_k = 2,
               .expert_ffn = 14'336,
               .biases = false};
  plan.expert = 1;
  CHECK(stage_parameters(plan, 0) == 46'702'792'704);
  CHECK(stage_expert_parameters(plan, 0) == 0);  // reduced as all else is
  plan.expert = 8;
  const std::int64_t experts = std::int64_t{32} * 3 * 4'096 * 14'336;
  CHECK(stage_expert_parameters(plan, 0) == experts);
  CHECK(stage_parameters(plan, 0) == 46'702'792'704 - 7 * experts);
  const PlanMemory memory = plan_memory(plan, 0, optimizer_bytes("adam", 2, 4), {.state = 16, .expert_state = 2});
  CHECK(memory.state.count == 12 * ((46'702'792'704 - 8 * experts) / 16 + experts / 2));
}

TEST_CASE("the embedding is on the first stage, the head on the last, each chunk has equally many layers") {
  TransformerPlan plan = plan_of(gpt(12, 64, 4), 2, {interleaved, 2, 3, 2}, 1);
  const auto layers = transformer_layers(plan, {.gemm = 1e14, .attention = 1e14});
  REQUIRE(layers.size() == 2);
  REQUIRE(layers[0].size() == 3);
  CHECK(layers[0][0].front().name == "embeddings");
  CHECK(layers[0][0].back().name == "layers.1");
  CHECK(layers[1][0].front().name == "layers.2");
  CHECK(layers[0][1].front().name == "layers.4");
  CHECK(layers[1][2].back().name == "head");
  CHECK(layers[1][2].size() == 3);
  CHECK(layers[0][0].front().parameters == 0);  // tied: counted apart
}

}  // namespace transformer_costs_test
