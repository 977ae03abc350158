// Costs of inference on each rank: kernels, messages and memory, next to sums by hand.
#include "algorithms/inference/inference_costs.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace inference_costs_test {

using namespace ringsim;

namespace {

const TransformerCard llama3_70b{.layers = 80,
                                 .hidden = 8'192,
                                 .heads = 64,
                                 .kv_heads = 8,
                                 .head_dim = 128,
                                 .ffn = 28'672,
                                 .vocabulary = 128'256,
                                 .biases = false};

InferencePlan fp8(int tensor, std::int64_t batch, std::int64_t context) {
  return {.card = llama3_70b, .batch = batch, .context = context, .tensor = tensor, .weight_bytes = 1, .kv_bytes = 1};
}

/// One byte takes a nanosecond, operations take none.
constexpr KernelSpeeds only_bytes{.gemm = 1e30, .attention = 1e30, .memory = 1e9};
/// One operation takes a picosecond, bytes take none.
constexpr KernelSpeeds only_operations{.gemm = 1e12, .attention = 1e12, .memory = 1e30};

/// The bytes, or operations, of a kernel of a layer, by the time that it takes at a rate of one per `unit`.
std::int64_t amount(const PlanLayer& layer, const std::string& name, std::int64_t unit) {
  std::int64_t found = 0;
  for (const PlanKernel& kernel : layer.forward)
    if (!kernel.is_call() && kernel.name == name) found += kernel.time.count() / unit;
  return found;
}

PlanLayer layer_of(const InferencePlan& plan, const KernelSpeeds& speeds, std::size_t number = 1) {
  return inference_layers(plan, speeds).at(number);
}

Picoseconds sum_of(const std::vector<PlanLayer>& layers) {
  Picoseconds sum{0};
  for (const PlanLayer& layer : layers)
    for (const PlanKernel& kernel : layer.forward) sum += kernel.time;
  return sum;
}

}  // namespace

// Two ranks: 4096 columns of queries, 512 each of keys and values, 14336 of the MLP.
TEST_CASE("each kernel of decode moves the bytes that a sum by hand gives") {
  const InferencePlan plan = fp8(2, 4, 1'000);
  const PlanLayer layer = layer_of(plan, only_bytes);
  const auto bytes = [&](const char* name) { return amount(layer, name, 1'000); };
  CHECK(layer.name == "layers.0");
  CHECK(bytes("QKV") == (4 * 8'192 + 8'192 * 5'120) + 2 * 4 * 5'120);
  CHECK(bytes("rotary") == 2 * 4 * 5'120 + 2 * 4 * 4'096 + 2 * 4 * 512);
  CHECK(bytes("attention") == 2 * 4 * 1'000 * 512 + 2 * 2 * 4 * 4'096);
  CHECK(bytes("output") == (4 * 4'096 + 4'096 * 8'192) + 2 * 4 * 8'192);
  CHECK(bytes("residual") == 2 * 4 * 2 * 4 * 8'192);  // twice a layer
  CHECK(bytes("MLP up") == (4 * 8'192 + 8'192 * 28'672) + 2 * 4 * 28'672);
  CHECK(bytes("MLP activation") == 2 * 4 * 3 * 14'336);
  CHECK(bytes("MLP down") == (4 * 14'336 + 14'336 * 8'192) + 2 * 4 * 8'192);
  const PlanLayer head = layer_of(plan, only_bytes, 81);
  CHECK(head.name == "head");
  CHECK(amount(head, "", 1'000) ==
        2 * (4 * 8'192 + 8'192 * 64'128) + 2 * 4 * 64'128);  // in bf16, whatever the layers have
  CHECK(amount(head, "sampling", 1'000) == 2 * 4 * 128'256);
}

TEST_CASE("prefill computes all tokens of a prompt, half of the attention, and the head of its last token") {
  InferencePlan plan = fp8(2, 3, 100);
  const auto operations = [](const InferencePlan& of, const char* name, std::size_t layer = 1) {
    return amount(layer_of(of, only_operations, layer), name, 1);
  };
  CHECK(operations(plan, "QKV") == std::int64_t{2} * 3 * 8'192 * 5'120);
  CHECK(operations(plan, "attention") == 4 * 3 * 100 * 4'096);
  CHECK(operations(plan, "", 81) == std::int64_t{2} * 3 * 8'192 * 64'128);
  plan.phase = InferencePhase::prefill;
  CHECK(plan.tokens() == 300);
  CHECK(operations(plan, "QKV") == std::int64_t{2} * 300 * 8'192 * 5'120);
  CHECK(operations(plan, "attention") == 2 * 300 * 100 * 4'096);
  CHECK(operations(plan, "", 81) == std::int64_t{2} * 3 * 8'192 * 64'128);
}

TEST_CASE("a layer has two all-reduces of all tokens, the embedding one, and the head gathers logits") {
  for (const bool prefill : {false, true}) {
    CAPTURE(prefill);
    InferencePlan plan = fp8(4, 2, 50);
    if (prefill) plan.phase = InferencePhase::prefill;
    const Bytes vectors{(prefill ? 100 : 2) * 8'192 * 2};
    int sums = 0, gathers = 0;
    for (const PlanLayer& layer : inference_layers(plan, only_bytes))
      for (const PlanKernel& kernel : layer.forward) {
        if (!kernel.is_call()) continue;
        CHECK(kernel.use == PlanUse::tensor);
        if (kernel.op == CollectiveOp::all_reduce) {
          CHECK(kernel.bytes == vectors);
          ++sums;
        } else {
          CHECK(kernel.op == CollectiveOp::all_gather);
          CHECK(kernel.bytes == Bytes{2 * 2 * 128'256});
          ++gathers;
        }
      }
    CHECK(sums == 161);
    CHECK(gathers == 1);
    plan.tensor = 1;
    for (const PlanLayer& layer : inference_layers(plan, only_bytes))
      for (const PlanKernel& kernel : layer.forward) CHECK(!kernel.is_call());
  }
}

// 70.55 billion parameters in 1 B, of which embedding and head have 2: 36.3 GB on each of two ranks.
TEST_CASE("weights and cache of Llama 3 70B are those of its card, to the byte") {
  const std::int64_t matrices = 80 * (8'192 * (2 * 8'192 + 2 * 1'024) + std::int64_t{3} * 8'192 * 28'672),
                     norms = (2 * 80 + 1) * 8'192, words = 128'256 * 8'192;
  CHECK(matrices + norms + 2 * words == 70'553'706'496);  // as published
  for (const int tensor : {1, 2, 8}) {
    CAPTURE(tensor);
    const InferenceMemory memory = inference_memory(fp8(tensor, 3, 1'000));
    CHECK(memory.weights.count == matrices / tensor + 2 * norms + 2 * 2 * words / tensor);
    CHECK(memory.cache.count == 2 * 3 * 1'000 * 80 * 1'024 / tensor);
  }
  InferencePlan bf16 = fp8(2, 1, 1);
  bf16.weight_bytes = bf16.kv_bytes = 2;
  CHECK(inference_memory(bf16).weights.count == matrices + 2 * norms + 2 * words);
  CHECK(inference_memory(bf16).cache.count == 2 * 2 * 80 * 512);
  bf16.card.tied = true;
  CHECK(inference_memory(bf16).weights.count == matrices + 2 * norms + words);
}

TEST_CASE("the largest batch fits and one more sequence does not") {
  const Bytes memory{std::int64_t{80} << 30};
  for (const std::int64_t context : {100, 4'096, 100'000}) {
    CAPTURE(context);
    InferencePlan plan = fp8(2, 1, context);
    plan.batch = largest_batch(plan, memory);
    CHECK(plan.batch > 0);
    CHECK(inference_memory(plan).total() <= memory);
    ++plan.batch;
    CHECK(inference_memory(plan).total() > memory);
  }
  CHECK(largest_batch(fp8(2, 1, 1'000'000), memory) == 0);
  CHECK(largest_batch(fp8(1, 1, 1), Bytes{1 << 30}) == 0);
}

// Two of four experts per token: all pairs of choices of two tokens are equally likely.
TEST_CASE("the expected number of experts that tokens meet is the mean over all choices") {
  TransformerCard card = llama3_70b;
  card.experts = 4;
  card.top_k = 2;
  std::vector<unsigned> choices;
  for (unsigned set = 0; set < 16; ++set)
    if (std::popcount(set) == 2) choices.push_back(set);
  double two = 0, three = 0;
  for (const unsigned a : choices)
    for (const unsigned b : choices) {
      two += std::popcount(a | b) / 36.0;
      for (const unsigned c : choices) three += std::popcount(a | b | c) / 216.0;
    }
  CHECK(distinct_experts(card, 1) == doctest::Approx(2));
  CHECK(distinct_experts(card, 2) == doctest::Approx(two));
  CHECK(distinct_experts(card, 3) == doctest::Approx(three));
  CHECK(distinct_experts(card, 1'000) == doctest::Approx(4));
}

TEST_CASE("experts of a layer read the weights of those that tokens meet, and all of them count as memory") {
  InferencePlan plan = fp8(2, 2, 10);
  plan.card.experts = 4;
  plan.card.top_k = 2;
  plan.card.expert_ffn = 1'000;
  plan.card.shared_ffn = 600;
  plan.card.dense_layers = 1;
  const PlanLayer layer = layer_of(plan, only_bytes, 2);
  const auto bytes = [&](const char* name) { return amount(layer, name, 1'000); };
  // Two tokens make four rows and meet three experts; a rank has 500 columns of each.
  CHECK(bytes("experts up") == (4 * 8'192 + 3 * 8'192 * 1'000) + 2 * 4 * 1'000);
  CHECK(bytes("experts down") == (4 * 500 + 3 * 500 * 8'192) + 2 * 4 * 8'192);
  CHECK(bytes("experts activation") == 2 * 4 * 3 * 500);
  CHECK(bytes("router") == 2 * (2 * 8'192 + 8'192 * 4) + 2 * 2 * 4);
  CHECK(bytes("choice") == 8 * 4 * 2);
  CHECK(bytes("copies") == 2 * 8'192 * (2 + 4));
  CHECK(bytes("answers") == 2 * 8'192 * (2 + 4));
  CHECK(bytes("shared expert up") == (2 * 8'192 + 8'192 * 600) + 2 * 2 * 600);
  CHECK(bytes("MLP up") == 0);
  CHECK(amount(layer_of(plan, only_bytes, 1), "MLP up", 1'000) > 0);  // the dense layer
  CHECK(amount(layer_of(plan, only_operations, 2), "experts up", 1) == std::int64_t{2} * 4 * 8'192 * 1'000);
  const std::int64_t attention = 8'192 * (2 * 8'192 + 2 * 1'024), dense = std::int64_t{3} * 8'192 * 28'672,
                     routed = 3 * 8'192 * (4 * 1'000 + 600);
  CHECK(inference_memory(plan).weights.count ==
        (80 * attention + dense + 79 * routed) / 2 + 2 * (161 * 8'192 + 79 * 4 * 8'192) + 2 * 128'256 * 8'192);
}

// Four ranks with two tokens each: eight tokens make 16 copies, of which a rank sends 4 and computes 4; they meet
// 8 (1 - (3/4)^8) experts, of which a rank has a quarter.
TEST_CASE("ranks with different experts read a share of those that all tokens meet") {
  InferencePlan plan = fp8(1, 8, 10);
  plan.expert = 4;
  plan.card.experts = 8;
  plan.card.top_k = 2;
  plan.card.expert_ffn = 1'000;
  const PlanLayer layer = layer_of(plan, only_bytes);
  const double met = 8 * (1 - std::pow(0.75, 8)) / 4;
  CHECK(amount(layer, "experts up", 1'000) ==
        doctest::Approx(4 * 8'192 + met * 8'192 * 2'000 + 2 * 4 * 2'000).epsilon(1e-6));
  CHECK(amount(layer, "attention", 1'000) == 2 * 2 * 10 * 1'024 + 2 * 2 * 2 * 8'192);
  std::vector<std::string> around;  // kernels before and after each call
  for (std::size_t i = 0; i < layer.forward.size(); ++i) {
    if (!layer.forward[i].is_call()) continue;
    CHECK(layer.forward[i].op == CollectiveOp::all_to_all);
    CHECK(layer.forward[i].use == PlanUse::expert);
    CHECK(layer.forward[i].bytes == Bytes{2 * 2 * 8'192 * 2});
    around.push_back(layer.forward[i - 1].name + ", " + layer.forward[i + 1].name);
  }
  CHECK(around == std::vector<std::string>{"copies, experts up", "experts down, answers"});
  const Bytes memory{std::int64_t{200} << 30};
  plan.batch = largest_batch(plan, memory);
  CHECK(plan.batch % 4 == 0);
  CHECK(inference_memory(plan).total() <= memory);
  plan.batch += 4;
  CHECK(inference_memory(plan).total() > memory);
}

TEST_CASE("each kernel takes the gap before it, and a step the host once") {
  InferencePlan plan = fp8(2, 1, 100);
  const Picoseconds without = sum_of(inference_layers(plan, only_bytes));
  plan.kernel_gap = Picoseconds{1'000'000};
  plan.host = Picoseconds{7};
  // Look-up and norm; nine kernels a layer; the product of the head, and sampling.
  CHECK(sum_of(inference_layers(plan, only_bytes)) == without + Picoseconds{7} + (2 + 80 * 9 + 2) * plan.kernel_gap);
}

// Weights alone: 13.1 ms at 80 % of 3350 GB/s. What a token meets of the cache, activations and logits come on top.
TEST_CASE("a token of Llama 3 70B on two GPUs takes at least the time of its weights") {
  const KernelSpeeds h100{.gemm = 0.7 * 1979e12, .attention = 0.5 * 1979e12, .memory = 0.8 * 3350e9};
  const InferencePlan plan = fp8(2, 1, 1'024);
  const InferenceMemory memory = inference_memory(plan);
  const double embedding = 128'256 * 8'192.0;  // of which one row is read
  const double bound = (static_cast<double>(memory.total().count) - embedding) / h100.memory,
               step = static_cast<double>(sum_of(inference_layers(plan, h100)).count()) / 1e12;
  CHECK(bound == doctest::Approx(0.01320).epsilon(0.001));
  CHECK(step > bound);
  CHECK(step < 1.005 * bound);
}

}  // namespace inference_costs_test
