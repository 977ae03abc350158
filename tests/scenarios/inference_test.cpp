// `inference`: steps of a model that serves, as scenarios; what they take on a star, what is refused, what a library
// decides.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/inference/inference_costs.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/json_scenario.hpp"
#include "validate/results/results.hpp"

namespace inference_test {

using namespace ringsim;
using namespace ringsim::literals;
using test::changed;
using test::predicted;
using test::refusal;
using Json = nlohmann::json;

namespace {

/// A small transformer on four ranks of a star: 3 layers of 512, 1000 words.
Json small() {
  return Json::parse(R"({"version": 1, "name": "small",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
      "inference": {"workload": {"transformer": {"layers": 3, "hidden": 512, "heads": 8, "ffn": 2048,
                                                 "vocabulary": 1000},
                                 "compute": {"gemm": "60%", "attention": "40%", "memory": "80%",
                                             "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}},
                    "parallel": {"tensor": 4}, "phase": "decode", "batch": 8, "context": 100}})");
}

/// Llama 3 70B in fp8 on an HGX H100.
Json llama(int tensor) {
  return Json::parse(fmt::format(R"({{"version": 1, "name": "llama",
      "topology": {{"kind": "cluster", "node": "hgx-h100", "nodes": 1}},
      "inference": {{"workload": {{"model": "llama3_70b", "precision": "fp8", "kv_bytes": 1,
                                   "compute": {{"gemm": "70%", "attention": "50%", "memory": "80%",
                                                "peak": "1979 TFLOP/s", "hbm": "3350 GB/s"}}}},
                     "parallel": {{"tensor": {}}}, "phase": "decode", "batch": 1, "context": 1024}}}})",
                                 tensor));
}

Picoseconds kernels_of(const Json& scenario) {
  const Scenario point = ScenarioFile::parse(scenario.dump(), "s.json").point(0);
  Picoseconds sum{0};
  for (const PlanLayer& layer : point.training->plan->program.layers[0][0])
    for (const PlanKernel& kernel : layer.forward) sum += kernel.time;
  return sum;
}

/// From port to port: two links.
constexpr Picoseconds path{2'000'000};

/// A collective by itself on the star of small().
Picoseconds alone(const char* op, const Json& algorithm, std::int64_t bytes) {
  Json scenario = small();
  scenario.erase("inference");
  scenario["collective"] = {{"op", op}, {"algorithm", algorithm}, {"bytes", fmt::format("{} B", bytes)}};
  return predicted(scenario).time;
}

}  // namespace

// L layers of two all-reduces, one of the embedding, and the logits of all sequences: each rank sends its part of 2 B
// for 250 words to three others.
TEST_CASE("on a star a step is its kernels, 2 L + 1 all-reduces and the gather of logits, to the picosecond") {
  for (const char* phase : {"decode", "prefill"})
    for (const int batch : {1, 8, 32}) {
      CAPTURE(phase);
      CAPTURE(batch);
      const Json scenario = changed(small(), {{"/inference/phase", phase}, {"/inference/batch", batch}});
      const std::int64_t tokens = phase == std::string("decode") ? batch : 100 * batch, vectors = tokens * 512 * 2;
      const Picoseconds part = transfer_time({vectors / 4}, 50_GBps) + path, ring = 2 * 3 * part,
                        gather = transfer_time({3 * 2 * 250 * batch}, 50_GBps) + path;
      CHECK(alone("all_reduce", "ring", vectors) == ring);
      CHECK(alone("all_gather", "direct", 2 * 1'000 * batch) == gather);
      const Prediction p = predicted(scenario);
      CHECK(p.time == kernels_of(scenario) + 7 * ring + gather);
      CHECK(p.training->split.compute == kernels_of(scenario));
      CHECK(p.training->plan->split.tensor == 7 * ring + gather);
      CHECK(p.training->plan->split.total() == p.time);
      // All ranks together send 2 (t - 1) vectors in each all-reduce, and t - 1 times the logits.
      CHECK(p.training->sent.count == 7 * 2 * 3 * vectors + 3 * 2 * 1'000 * batch);
      CHECK(p.training->inference->communication ==
            doctest::Approx(static_cast<double>((7 * ring + gather).count()) / static_cast<double>(p.time.count())));
    }
}

TEST_CASE("the stated algorithm does the all-reduces, and direct gathers the logits whatever it is") {
  const std::int64_t vectors = 8 * 512 * 2;
  const Picoseconds gather = alone("all_gather", "direct", 2 * 1'000 * 8);
  for (const Json& algorithm : {Json("ring"), Json("halving_doubling"), Json{{"name", "direct"}, {"shots", 1}},
                                Json{{"name", "direct"}, {"shots", 2}}}) {
    CAPTURE(algorithm.dump());
    const Json scenario = changed(small(), {{"/inference/parallel/algorithm", algorithm}});
    CHECK(predicted(scenario).time == kernels_of(scenario) + 7 * alone("all_reduce", algorithm, vectors) + gather);
  }
}

TEST_CASE("speeds of another GPU than the machine's are warned of, by their source or as too fast") {
  const auto warnings = [](const char* node, const Json& more) {
    Json scenario = changed(llama(2), more);
    scenario["topology"]["node"] = node;
    std::string all;
    for (const std::string& each : ScenarioFile::parse(scenario.dump(), "s.json").point(0).warnings) all += each + '\n';
    return all;
  };
  // 1979 TFLOP/s of 8 bits, as the data sheet of H100 says.
  const Json h100{{"/inference/workload/compute/source", "NVIDIA H100 data sheet"}}, assumed = Json::object();
  CHECK(warnings("dgx-h100", h100).empty());
  CHECK(
      warnings("dgx-a100", h100) ==
      "s.json: /inference/workload/compute: these are the speeds of another GPU (\"NVIDIA H100 data sheet\"), but the "
      "topology has dgx-a100 with A100; set the speeds of its GPU\n");
  CHECK(warnings("dgx-h100", assumed).empty());
  CHECK(warnings("dgx-a100", assumed) ==
        "s.json: /inference/workload/compute: a peak of 1979 TFLOP/s is that of another GPU: no GPU like those of "
        "dgx-a100 has more than 312; set the speeds of its GPU\n");
  CHECK(warnings("hgx-b200", assumed).empty());  // a slower GPU may be meant
  CHECK(warnings("k80x8", assumed).empty());     // not listed
}

TEST_CASE("in_switch on a machine whose NVSwitches cannot add is warned of") {
  const auto warnings = [](const char* node) {
    Json scenario = changed(llama(2), {{"/inference/parallel/algorithm", "in_switch"},
                                       {"/inference/workload/compute/peak", "312 TFLOP/s"}});
    scenario["topology"]["node"] = node;
    return predicted(scenario).warnings;
  };
  CHECK(warnings("dgx-h100").empty());
  CHECK(warnings("dgx-a100") ==
        std::vector<std::string>{
            "s.json: /inference/parallel: in_switch lets NVSwitches add, but those of dgx-a100 cannot: NVLink SHARP "
            "needs H100 or later; the time is that of switches that could"});
}

// A switch adds up for each call of in_switch, so a step has an actor more than ranks.
TEST_CASE("a picture of streams has the ranks and the switch that adds up, by their names") {
  const Json scenario = changed(llama(2), {{"/inference/parallel/algorithm", "in_switch"}});
  Recording recording;
  recording.keep_streams = true;
  PredictOptions options;
  options.recording = &recording;
  predict(ScenarioFile::parse(scenario.dump(), "s.json").point(0), options);
  std::vector<std::string> who;
  for (const Recording::Streams& each : recording.streams) who.push_back(each.who);
  CHECK(who == std::vector<std::string>{"rank 0 (node0.gpu0)", "helper 0 (node0.nvswitch0)"});
}

TEST_CASE("one rank calls nothing, and launches come before kernels and before collectives") {
  const Json one = changed(small(), {{"/inference/parallel/tensor", 1}});
  CHECK(predicted(one).time == kernels_of(one));
  CHECK(predicted(one).training->sent.count == 0);
  const Picoseconds before = predicted(small()).time;
  // Look-up and norm, nine kernels a layer, head and sampling.
  CHECK(predicted(changed(small(), {{"/inference/host", {{"launch", "2 us"}, {"step", "5 us"}}}})).time ==
        before + Picoseconds{5'000'000} + (4 + 3 * 9) * Picoseconds{2'000'000});
  CHECK(predicted(changed(small(), {{"/transport", {{"launch", "3 us"}}}})).time ==
        before + 8 * Picoseconds{3'000'000});
}

TEST_CASE("the first GPUs serve unless others are named, and all of them have the same part") {
  const Prediction two = predicted(changed(small(), {{"/inference/parallel/tensor", 2}}));
  CHECK(two.request.ranks == 2);
  REQUIRE(two.training->by_rank.size() == 1);
  CHECK(two.training->by_rank[0].who == "ranks 0 to 1");
  const Json named = changed(llama(2), {{"/inference/ranks", {"node0.gpu3", "node0.gpu6"}}});
  const Prediction p = predicted(named);
  CHECK(p.time == predicted(llama(2)).time);
  REQUIRE(p.bottleneck.has_value());
  CHECK((p.bottleneck->link.find("gpu3") != std::string::npos || p.bottleneck->link.find("gpu6") != std::string::npos));
}

TEST_CASE("more GPUs make a token faster and serve fewer tokens each, a larger batch the other way round") {
  Picoseconds last_time[4]{};
  for (const int tensor : {1, 2, 4, 8}) {
    double last = 0;
    int i = 0;
    for (const int batch : {1, 8, 64, 256}) {
      CAPTURE(tensor);
      CAPTURE(batch);
      Json scenario = changed(llama(tensor), {{"/inference/batch", batch}, {"/library", "nccl"}});
      if (tensor == 1) scenario["inference"]["memory"] = "ignore";
      const Prediction p = predicted(scenario);
      const InferenceReport& report = p.training->inference.value();
      const double seconds = static_cast<double>(p.time.count()) / 1e12;
      CHECK(report.tokens_per_s_per_gpu == doctest::Approx(batch / seconds / tensor));
      CHECK(p.training->tokens_per_s == doctest::Approx(batch / seconds));
      CHECK(report.tokens_per_s_per_gpu > last);
      last = report.tokens_per_s_per_gpu;
      if (tensor > 1) CHECK(p.time < last_time[i]);
      CHECK((report.communication > 0) == (tensor > 1));
      last_time[i++] = p.time;
    }
  }
}

TEST_CASE("NCCL chooses by the size of each collective") {
  const Json scenario = changed(llama(8), {{"/library", "nccl"}, {"/inference/batch", 256}});
  const auto exchanges = predicted(scenario).training->exchanges;
  REQUIRE(exchanges.size() == 2);
  CHECK(exchanges[0].bytes == Bytes{256 * 8'192 * 2});
  CHECK(exchanges[0].times == 161);
  CHECK(exchanges[1].bytes == Bytes{256 * 128'256 * 2});
  CHECK(exchanges[1].times == 1);
  const auto small_ones = predicted(changed(scenario, {{"/inference/batch", 1}})).training->exchanges;
  CHECK(small_ones[0].protocol == "LL");
  CHECK(exchanges[0].protocol != "LL");
}

TEST_CASE("memory is weights and cache, and a batch without room is refused with the sum and the batch that fits") {
  const Prediction p = predicted(changed(llama(2), {{"/inference/batch", 64}}));
  CHECK(p.training->memory.weights.count == 36'329'504'768);
  CHECK(p.training->memory.cache.count == std::int64_t{64} * 1'024 * 81'920);
  CHECK(p.training->memory.total().count == 36'329'504'768 + std::int64_t{64} * 1'024 * 81'920);
  const auto run = [](const Json& scenario) { return test::complaint([&] { predicted(scenario); }); };
  CHECK(run(changed(llama(2), {{"/inference/batch", 1'000}})) ==
        "s.json: /inference: expected a batch that fits in GPU memory, found that rank 0 (node0.gpu0) needs 120.2 of "
        "85.9 GB: weights 36.3, KV cache 83.9 (1000 sequences of 1024 tokens, 81920 B per token), excluding "
        "activations\n  hint: a batch of 590 fits; or set inference.memory to \"ignore\"");
  CHECK(predicted(changed(llama(2), {{"/inference/batch", 590}})).warnings.empty());
  const Prediction ignored =
      predicted(changed(llama(2), {{"/inference/batch", 1'000}, {"/inference/memory", "ignore"}}));
  REQUIRE(ignored.warnings.size() == 1);
  CHECK(ignored.warnings[0].starts_with("s.json: /inference: rank 0 (node0.gpu0) needs 120.2 of 85.9 GB"));
  CHECK(run(changed(llama(1), {{"/inference/workload/precision", "bf16"}}))
            .find("hint: the weights alone do not fit: use more ranks or fp8; or") != std::string::npos);
  CHECK(run(changed(llama(2), {{"/inference/context", 1'000'000}}))
            .find("hint: not even one sequence fits: use more tensor ranks or a shorter context; or") !=
        std::string::npos);
  CHECK(run(changed(llama(2), {{"/inference/gpu_memory", "40 GB"}, {"/inference/batch", 100}}))
            .find("needs 44.7 of 40.0 GB") != std::string::npos);
}

TEST_CASE("what a step of inference cannot be is refused at its place") {
  const auto refused = [](std::map<std::string, Json> values) { return refusal(changed(small(), values)); };
  const std::string at = "s.json: /inference";
  CHECK(refused({{"/inference/parallel/tensor", 3}}) ==
        at + "/parallel/tensor: expected a number that divides the number of attention heads, 8, found 3\n  hint: each "
             "rank needs whole heads");
  CHECK(refused({{"/inference/workload/transformer/kv_heads", 2}}) ==
        at + "/parallel/tensor: expected a number that divides the number of key-value heads, 2, found 4\n  hint: each "
             "rank needs whole heads; copies of a head on several ranks are not modeled");
  CHECK(refused({{"/inference/parallel/tensor", 8}}) ==
        at + "/parallel/tensor: expected at most the number of GPUs in the topology, 4, found 8\n  hint: pipeline "
             "parallel inference is not modeled: use fewer tensor ranks");
  CHECK(refused({{"/inference/ranks", {"port0"}}}) ==
        at + "/ranks: expected tensor times expert GPUs, 4, found 1\n  hint: the simulation covers one copy of the "
             "model; other copies do the same on other GPUs");
  CHECK(refused({{"/inference/parallel", {{"expert", 2}}}}) ==
        at + "/parallel/expert: expected 1 with a model without experts, found 2\n  hint: set experts and top_k on the "
             "model card");
  CHECK(refused({{"/inference/workload/model", "llama3_8b"}}) ==
        at + "/workload: expected either model or transformer, found both\n  hint: use a model that has a card, "
             "\"model\": \"llama3_70b\", or give a card, \"transformer\": {...}");
  CHECK(refused({{"/inference/workload/transformer", nullptr}, {"/inference/workload/model", "resnet50"}})
            .starts_with(
                at +
                "/workload/model: expected a transformer in inference, found resnet50\n  hint: models with a card: "));
  CHECK(refused({{"/inference/workload/transformer/heads", 7}}) ==
        at + "/workload/transformer/heads: expected a number that divides hidden, 512, found 7\n  hint: set the head "
             "size with head_dim");
  CHECK(refused({{"/inference/workload/compute/memory", "25 GB/s"}}) ==
        at + "/workload/compute/memory: expected a share such as \"72%\", found a rate");
  CHECK(refused({{"/inference/parallel/algorithm", {{"name", "parameter_server"}, {"servers", 1}}}}) ==
        at + "/parallel/algorithm: expected an algorithm without servers, found parameter_server\n  hint: servers are "
             "not modeled for groups");
  CHECK(refused({{"/inference/parallel/algorithm", "bruck"}}) ==
        at + "/parallel/algorithm: expected an algorithm for all_reduce, found bruck\n  hint: `ringsim list "
             "algorithms` lists the algorithms for it");
  CHECK(refused({{"/inference/batch", 1'000'000},
                 {"/inference/context", 100'000'000},
                 {"/inference/workload/transformer/layers", 100'000}}) ==
        at + "/batch: expected a batch and a context of at most 4e18 bytes, found 2e+22\n"
             "  hint: use fewer sequences or a shorter context");
  CHECK(refused({{"/library", "nccl"}, {"/inference/parallel/algorithm", "ring"}})
            .starts_with(at + "/parallel/algorithm: cannot be combined with a library, which chooses it"));
  CHECK(refused({{"/disturbance", {{"slow", {{{"rank", 1}, {"step_delay", "1 us"}}}}}}}) ==
        "s.json: /disturbance/slow: cannot be combined with inference\n  hint: it would delay every step of every "
        "message");
  CHECK(refused({{"/collective", {{"op", "all_reduce"}, {"algorithm", "ring"}, {"bytes", "1 MiB"}}}}) ==
        "s.json: expected one of the keys \"collective\", \"training\", \"inference\" and \"trace\", found collective "
        "and inference\n  hint: collective: one collective; training: a training step; inference: an inference step; "
        "trace: a step of a real job");
  CHECK(refused({{"/inference/phase", nullptr}}).find("expected the key \"phase\"") != std::string::npos);
  CHECK(refused({{"/inference/steps", 2}}) ==
        at + "/steps: expected a known key of inference, found \"steps\"\n  hint: did you mean training.steps?");
}

namespace {

/// small() with eight experts, two of them for a token, on four ranks.
Json routed() {
  return changed(small(), {{"/inference/parallel", {{"expert", 4}}},
                           {"/inference/batch", 16},
                           {"/inference/workload/transformer/experts", 8},
                           {"/inference/workload/transformer/top_k", 2},
                           {"/inference/workload/transformer/expert_ffn", 256}});
}

}  // namespace

// Each of four ranks has a quarter of the tokens, and sends two copies of 512 x 2 B of each: a quarter to every rank.
TEST_CASE("a step with experts on several ranks takes its kernels and two all_to_alls per layer, to the picosecond") {
  for (const int batch : {4, 16, 64}) {
    CAPTURE(batch);
    const Json scenario = changed(routed(), {{"/inference/batch", batch}});
    const std::int64_t copies = batch / 4 * 2 * 512 * 2;
    const Picoseconds exchange = transfer_time({3 * copies / 4}, 50_GBps) + path;
    const Prediction p = predicted(scenario);
    CHECK(p.time == kernels_of(scenario) + 3 * 2 * exchange);
    CHECK(p.training->plan->split.expert == 3 * 2 * exchange);
    CHECK(p.training->plan->split.tensor.count() == 0);
    CHECK(p.training->sent.count == 3 * 2 * 4 * 3 * copies / 4);
    CHECK(p.training->tokens_per_s == doctest::Approx(batch / (static_cast<double>(p.time.count()) / 1e12)));
    CHECK(p.request.ranks == 4);
    CHECK(p.training->inference->communication > 0);
  }
}

TEST_CASE("ranks with different experts keep their experts and the cache of their own sequences") {
  const Prediction p = predicted(routed());
  const std::int64_t attention = 4 * 512 * 512, experts = 2 * 3 * 512 * 256, others = 2 * 512 + 8 * 512;
  CHECK(p.training->memory.weights.count == 2 * (3 * (attention + experts + others) + 2 * 512'000 + 512));
  CHECK(p.training->memory.cache.count == 2 * 2 * 4 * 100 * 3 * 512);
}

TEST_CASE("experts that do not fit their ranks are refused") {
  const auto refused = [](std::map<std::string, Json> values) { return refusal(changed(routed(), values)); };
  const std::string at = "s.json: /inference";
  CHECK(refused({{"/inference/parallel/expert", 3}}) ==
        at + "/parallel/expert: expected a number that divides the number of experts per layer, 8, found 3\n  hint: "
             "each rank needs the same number");
  CHECK(refused({{"/inference/batch", 10}}) ==
        at + "/batch: expected a multiple of expert, 4, found 10\n  hint: batch counts the sequences of all ranks, and "
             "each rank needs the same number");
  CHECK(refused({{"/inference/parallel", {{"expert", 2}, {"tensor", 2}}}}) ==
        at + "/parallel/expert: expected 1 with tensor 2, found 2\n  hint: tensor ranks split every expert; with "
             "expert parallelism, each rank has the complete attention and its own sequences");
  CHECK(refused({{"/inference/parallel/expert", 8}}) ==
        at + "/parallel/expert: expected at most the number of GPUs in the topology, 4, found 8\n  hint: the "
             "simulation covers one copy of the model: use fewer expert ranks or more nodes");
}

TEST_CASE("NCCL does the all_to_alls of experts, between nodes too") {
  Json scenario = changed(llama(1), {{"/inference/workload/model", "qwen3_30b_a3b"},
                                     {"/inference/parallel", {{"expert", 16}}},
                                     {"/inference/batch", 256},
                                     {"/library", "nccl"}});
  scenario["topology"]["nodes"] = 2;
  scenario["topology"]["fabric"] = {{"kind", "star"}, {"link", {{"bandwidth", "400 Gb/s"}, {"latency", "1 us"}}}};
  const Prediction p = predicted(scenario);
  REQUIRE(p.training->exchanges.size() == 1);
  CHECK(p.training->exchanges[0].times == 2 * 48);
  CHECK(p.training->exchanges[0].bytes == Bytes{16 * 8 * 2'048 * 2});
  CHECK(p.training->plan->split.expert.count() > 0);
}

TEST_CASE("an algorithm of one rank has no effect, and says so") {
  const Json scenario =
      changed(small(), {{"/inference/parallel/tensor", 1}, {"/inference/parallel/algorithm", "ring"}});
  const Scenario point = ScenarioFile::parse(scenario.dump(), "s.json").point(0);
  REQUIRE(point.warnings.size() == 1);
  CHECK(point.warnings[0] == "s.json: /inference/parallel/algorithm: has no effect: tensor is 1");
}

TEST_CASE("a batch of experts reads the weights of those that it meets") {
  Json scenario = changed(llama(2), {{"/inference/workload/model", "mixtral_8x7b"}, {"/inference/context", 1}});
  const auto time = [&](int batch) {
    scenario["inference"]["batch"] = batch;
    return static_cast<double>(kernels_of(scenario).count());
  };
  const double one = time(1), two = time(2), many = time(64), more = time(65);
  // Two experts, then 3.5 in the mean, then all eight; each has 3 x 4096 x 14336 weights, of which a rank has half.
  const double expert = 32 * 3.0 * 4'096 * 14'336 / 2 / (0.8 * 3350e9) * 1e12;
  CHECK((two - one) / expert == doctest::Approx(1.5).epsilon(0.01));
  CHECK((many - one) / expert == doctest::Approx(6).epsilon(0.1));
  CHECK(more - many < 0.01 * expert);
}

}  // namespace inference_test
