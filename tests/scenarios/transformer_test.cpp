// Transformers by their model cards: parameters and multiply-adds against published counts and against lists by hand.
#include "scenarios/meaning/transformer.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"

namespace transformer_test {

using namespace ringsim;
using namespace ringsim::literals;
using scenarios::Workload;

namespace {

std::int64_t parameters_of(const Workload& workload) {
  std::int64_t sum = 0;
  for (const LayerCost& layer : workload.layers)
    sum += std::accumulate(layer.tensors.begin(), layer.tensors.end(), std::int64_t{0});
  return sum;
}

std::int64_t macs_of(const Workload& workload) {
  return std::accumulate(workload.macs.begin(), workload.macs.end(), std::int64_t{0});
}

Workload made_of(const char* card, std::int64_t sequence) {
  return scenarios::workload_of(scenarios::transformer_of(nlohmann::json::parse(card)), sequence);
}

std::string scenario_of(const std::string& workload) {
  return fmt::format(R"({{"version": 1, "topology": {{"kind": "star", "ranks": 2,
      "link": {{"bandwidth": "50 GB/s", "latency": "1 us"}}}},
    "training": {{"workload": {{{}, "batch": 1, "compute": {{"flops": "1 PFLOP/s", "efficiency": "50%"}}}},
                  "regime": {{"name": "ddp", "algorithm": "ring"}}}}}})",
                     workload);
}

std::string refusal(const std::string& workload) {
  return test::complaint([&] { ScenarioFile::parse(scenario_of(workload), "s.json").point(0); });
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a card has the layers that were written by hand: GPT-2 XL and Llama 2 7B, tensor by tensor") {
  const Workload llama =
                     made_of(R"({"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11008, "vocabulary": 32000})", 4096),
                 gpt = made_of(R"({"layers": 48, "hidden": 1600, "heads": 25, "ffn": 6400, "vocabulary": 50257,
                                   "positions": 1024, "gated": false, "tied": true, "biases": true})",
                               1024);
  const Workload list = scenarios::workload_named("gpt2_xl");
  REQUIRE(gpt.layers.size() == list.layers.size());
  for (std::size_t l = 0; l < list.layers.size(); ++l) {
    CAPTURE(l);
    CHECK(gpt.layers[l].tensors == list.layers[l].tensors);
    CHECK(gpt.macs[l] == list.macs[l]);
  }
  CHECK(gpt.sample == list.sample);
  // As Llama-2-7b-hf registers its tensors: Q, K, V, O, gate, up, down, both norms.
  using Tensors = std::vector<std::int64_t>;
  for (const Workload& each : {llama, scenarios::workload_named("llama2_7b")}) {
    REQUIRE(each.layers.size() == 34);
    CHECK(each.layers[0].tensors == Tensors{131'072'000});
    CHECK(each.layers[33].tensors == Tensors{4'096, 131'072'000});
    CHECK(each.macs[0] == 0);
    CHECK(each.macs[33] == 536'870'912'000);
    for (std::size_t l = 1; l < 33; ++l) {
      CHECK(each.layers[l].tensors ==
            Tensors{16'777'216, 16'777'216, 16'777'216, 16'777'216, 45'088'768, 45'088'768, 45'088'768, 4'096, 4'096});
      CHECK(each.macs[l] == 966'367'641'600);
    }
    CHECK(each.sample == "sequence of 4096 tokens");
  }
}

TEST_CASE("named cards have the published numbers of parameters") {
  struct Row {
    const char* name;
    std::int64_t parameters;
  };
  // HuggingFace's, and of GPT-3 the sum by hand: 96 (12 h^2 + 13 h) + (50257 + 2048) h + 2 h with h = 12288. Of
  // BERT the same with 24 layers, 30522 + 512 rows and h = 1024.
  for (const Row& row :
       {Row{"bert_336m", 334'090'240}, Row{"gpt3_175b", 174'604'259'328}, Row{"llama2_13b", 13'015'864'320},
        Row{"llama2_70b", 68'976'648'192}, Row{"llama3_8b", 8'030'261'248}, Row{"llama3_70b", 70'553'706'496},
        Row{"llama3_405b", 405'853'388'800}, Row{"mixtral_8x7b", 46'702'792'704},
        Row{"qwen3_30b_a3b", 30'532'122'624 - 12'288}, Row{"qwen3_235b_a22b", 235'093'634'560 - 24'064}}) {
    CAPTURE(row.name);
    const Workload workload = scenarios::workload_named(row.name);
    CHECK(parameters_of(workload) == row.parameters);
    CHECK(has(workload.source, fmt::format("{}", row.parameters / 1'000'000'000)));
  }
}

TEST_CASE("multiply-adds: tokens times what a token meets, and attention in full") {
  // A layer of 3 matrices of 8 x 16 in the MLP, 4 of 8 x 8 in attention, 10 tokens: 10 (384 + 256) + 2 8 10^2. Head: 10
  // x 8 x 5.
  const char* plain = R"({"layers": 1, "hidden": 8, "heads": 2, "ffn": 16, "vocabulary": 5})";
  CHECK(macs_of(made_of(plain, 10)) == 10 * (384 + 256) + 2 * 8 * 100 + 10 * 8 * 5);
  // One head of keys and values for both: those two matrices are 8 x 4.
  const char* grouped = R"({"layers": 1, "hidden": 8, "heads": 2, "kv_heads": 1, "ffn": 16, "vocabulary": 5})";
  CHECK(macs_of(made_of(plain, 10)) - macs_of(made_of(grouped, 10)) == 10 * 2 * 32);
  // Four experts of which a token meets two: twice the MLP, and the router of 8 x 4; parameters are those of all four.
  const char* experts =
      R"({"layers": 1, "hidden": 8, "heads": 2, "ffn": 16, "vocabulary": 5, "experts": 4, "top_k": 2})";
  CHECK(macs_of(made_of(experts, 10)) - macs_of(made_of(plain, 10)) == 10 * (384 + 32));
  CHECK(parameters_of(made_of(experts, 10)) - parameters_of(made_of(plain, 10)) == 3 * 384 + 32);
  // Of half the size, with a shared one of 24; of two layers the first has the plain MLP.
  const char* more = R"({"layers": 2, "hidden": 8, "heads": 2, "ffn": 16, "vocabulary": 5, "experts": 4, "top_k": 2,
                         "expert_ffn": 8, "shared_ffn": 24, "dense_layers": 1})";
  const char* two = R"({"layers": 2, "hidden": 8, "heads": 2, "ffn": 16, "vocabulary": 5})";
  CHECK(macs_of(made_of(more, 10)) - macs_of(made_of(two, 10)) == 10 * (2 * 192 + 576 + 32 - 384));
  CHECK(parameters_of(made_of(more, 10)) - parameters_of(made_of(two, 10)) == 4 * 192 + 576 + 32 - 384);
  // Twice the tokens: everything twice, attention four times.
  CHECK(macs_of(made_of(plain, 20)) == 2 * macs_of(made_of(plain, 10)) + 2 * 2 * 8 * 100);
}

TEST_CASE("a sequence makes a step longer, by its multiply-adds") {
  const auto step = [](const std::string& workload) {
    return predict(ScenarioFile::parse(scenario_of(workload), "s.json").point(0), PredictOptions{});
  };
  const Prediction usual = step(R"("model": "llama3_8b")"), shorter = step(R"("model": "llama3_8b", "sequence": 4096)");
  CHECK(usual.request.bytes == shorter.request.bytes);
  // 3 passes of 2 operations a multiply-add, at half of 10^15 a second.
  const auto seconds = [](const Prediction& p) {
    return static_cast<double>(p.training->split.compute.count()) / 1e12;
  };
  CHECK(seconds(usual) ==
        doctest::Approx(6.0 * static_cast<double>(macs_of(scenarios::workload_named("llama3_8b"))) / 5e14));
  // All of the step's time, two GPUs.
  const double step_s = static_cast<double>(usual.time.count()) / 1e12,
               macs = static_cast<double>(macs_of(scenarios::workload_named("llama3_8b")));
  CHECK(usual.training->tokens_per_s == doctest::Approx(2 * 8192 / step_s));
  CHECK(usual.training->tflops_per_gpu == doctest::Approx(6 * macs / step_s / 1e12));
  CHECK(usual.training->mfu == doctest::Approx(6 * macs / step_s / 1e15));
  CHECK(usual.training->mfu ==
        doctest::Approx(0.5 * usual.training->efficiency));          // half of the peak while it computes
  CHECK(step(R"("model": "gpt2_xl")").training->tokens_per_s == 0);  // a list of layers knows no tokens
  CHECK(seconds(shorter) ==
        doctest::Approx(6.0 * static_cast<double>(macs_of(scenarios::workload_named("llama3_8b", 4096))) / 5e14));
}

TEST_CASE("cards whose figures do not fit together, and sequences without one, are refused at their place") {
  const auto card = [](const std::string& more) {
    return R"("sequence": 8, "transformer": {"layers": 2, "hidden": 8, "ffn": 16, "vocabulary": 5, )" + more + "}";
  };
  CHECK(has(refusal(card(R"("heads": 3)")),
            "/training/workload/transformer/heads: expected a number that divides hidden, 8"));
  CHECK(refusal(card(R"("heads": 3, "head_dim": 4)")).empty());
  CHECK(has(refusal(card(R"("heads": 4, "kv_heads": 3)")),
            "/transformer/kv_heads: expected a number that divides heads, 4"));
  CHECK(has(refusal(card(R"("heads": 4, "expert_ffn": 16)")),
            "/transformer/expert_ffn: expected expert_ffn only with experts, found none"));
  CHECK(has(refusal(card(R"("heads": 4, "experts": 4, "top_k": 2, "dense_layers": 100)")),
            "/transformer/dense_layers: expected fewer layers without experts than layers, "));
  CHECK(has(refusal(card(R"("heads": 4, "experts": 4)")), "/transformer/experts: expected experts and a top_k from 1"));
  CHECK(has(refusal(card(R"("heads": 4, "experts": 4, "top_k": 5)")),
            "/transformer/top_k: expected experts and a top_k"));
  CHECK(has(refusal(card(R"("heads": 4, "biases": true)")), "/transformer/biases: expected biases only without gated"));
  CHECK(has(refusal(R"("transformer": {"layers": 2, "hidden": 8, "heads": 1, "ffn": 16, "vocabulary": 5})"),
            "expected the key \"sequence\" with a transformer, found none"));
  CHECK(has(refusal(R"("model": "resnet50", "sequence": 8)"),
            "/sequence: expected a sequence only for a model with a transformer card"));
  CHECK(has(
      refusal(
          R"("model": "llama3_8b", "transformer": {"layers": 2, "hidden": 8, "heads": 1, "ffn": 16, "vocabulary": 5})"),
      "expected either model, layers or transformer, found model and transformer"));
  CHECK(has(
      refusal(
          R"("sequence": 100000000, "transformer": {"layers": 100000, "hidden": 1000000, "heads": 1, "ffn": 1, "vocabulary": 5})"),
      "/transformer: expected at most 4e18 parameters and multiply-adds"));
  CHECK(has(refusal(card(R"("heads": 4, "intermediate_size": 4)")), "did you mean training.workload.transformer.ffn"));
}

}  // namespace transformer_test
