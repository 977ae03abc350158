// `cp_comm: p2p`: plans whose context ranks hand keys and values round a ring, next to plans that gather them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/json_scenario.hpp"

namespace plan_ring_test {

using namespace ringsim;
using test::changed;
using test::predicted;
using test::refusal;
using Json = nlohmann::json;

namespace {

/// Four of eight GPUs on a star share each sample.
Json shared(const char* comm, const char* link = "50 GB/s") {
  return Json::parse(fmt::format(
      R"({{"version": 1, "name": "small",
      "topology": {{"kind": "star", "ranks": 8, "link": {{"bandwidth": "{}", "latency": "1 us"}}}},
      "training": {{"workload": {{"transformer": {{"layers": 8, "hidden": 512, "heads": 8, "kv_heads": 4, "ffn": 2048,
                                                   "vocabulary": 1000}},
                                  "sequence": 1024, "micro_batch_size": 2, "global_batch_size": 16,
                                  "compute": {{"flops": "312 TFLOP/s", "efficiency": "50%"}}}},
                    "parallel": {{"context": 4, "cp_comm": "{}"}}, "optimizer": "adam", "steps": 1, "warmup": 1}}}})",
      link, comm));
}

}  // namespace

// Keys and values of a rank: 2 x 256 tokens x 2 x 256 x 2 B. Each of 8 ranks sends 3 such blocks forward, and 3 and 3
// gradients backward, in 8 layers and 4 micro-batches. Gradients of all parameters go round eight ranks.
TEST_CASE("a ring sends what gathers send, and computes what they compute, to the byte and the operation") {
  const Prediction ring = predicted(shared("p2p")), gathers = predicted(shared("all_gather"));
  const std::int64_t block = 2 * 256 * 2 * 256 * 2, layer = 2 * 512 * 512 + 2 * 512 * 256 + 3 * 512 * 2'048 + 2 * 512,
                     all = 8 * layer + 2 * 512'000 + 512;
  CHECK(ring.training->sent.count == 8LL * 4 * 8 * 9 * block + 2 * 7 * 4 * all);
  CHECK(ring.training->sent == gathers.training->sent);
  const PlanReport &one = ring.training->plan.value(), &other = gathers.training->plan.value();
  CHECK(one.context == 4);
  CHECK(one.data == 2);
  CHECK(one.micro_batches == 4);
  // Some 400 kernels more, each rounded to a picosecond.
  CHECK(std::abs((one.split.compute() - other.split.compute()).count()) < 2'000);
  CHECK(one.split.total() == ring.training->step);
  CHECK(one.split.context < other.split.context);
  CHECK(ring.training->step < gathers.training->step);
}

TEST_CASE("the slower the network, the more of a ring's hops show, up to those of gathers") {
  const auto exposed = [](const char* comm, const char* link) {
    return predicted(shared(comm, link)).training->plan->split.context;
  };
  CHECK(exposed("p2p", "400 GB/s") < exposed("p2p", "50 GB/s"));
  CHECK(exposed("p2p", "50 GB/s") < exposed("p2p", "5 GB/s"));
  CHECK(exposed("p2p", "5 GB/s") < exposed("all_gather", "5 GB/s"));
}

// A block is 256 x 2 tokens of 2 x 256 elements of 2 B, results of a step have 512 elements a token. Four of both are
// more than the backward pass's 10 x 256. Gathers: keys, values and their gradients of four ranks.
TEST_CASE("a ring keeps the blocks and results of all steps, or two buffers and a gradient") {
  const auto activations = [](const Json& scenario) {
    return ScenarioFile::parse(scenario.dump(), "s.json").point(0).training->plan->memory[0].activations.count;
  };
  const std::int64_t tokens = 256 * 2, element = 2;
  const auto difference = [&](const Json& ring) {
    return activations(ring) - activations(changed(ring, {{"/training/parallel/cp_comm", "all_gather"}}));
  };
  CHECK(difference(shared("p2p")) == tokens * element * (4 * (2 * 256 + 512) - 4 * 4 * 256));
  // Two ranks, as many heads of keys as of queries: 2 x 3 x 512 is less than 10 x 512.
  const Json two =
      changed(shared("p2p"), {{"/training/parallel/context", 2}, {"/training/workload/transformer/kv_heads", 8}});
  CHECK(difference(two) == 2 * tokens * element * (10 - 4 * 2) * 512);
}

TEST_CASE("plans with rings add up, whatever else they have") {
  int n = 0;
  for (const char* recompute : {"none", "selective", "full"})
    for (const int tensor : {1, 2})
      for (const char* schedule : {"", "1f1b", "interleaved", "zero_bubble_h1"})
        for (const char* shard : {"none", "optimizer", "full"})
          for (const bool has_experts : {false, true}) {
            const std::string order = schedule, divided = shard, again = recompute;
            if (order == "zero_bubble_h1" && (divided == "full" || again == "full" || has_experts)) continue;
            if (has_experts && divided == "full") continue;
            Json scenario = changed(shared("p2p"), {{"/topology/ranks", 16},
                                                    {"/training/parallel/context", 2},
                                                    {"/training/parallel/tensor", tensor},
                                                    {"/training/parallel/sequence_parallel", tensor > 1},
                                                    {"/training/parallel/recompute", recompute},
                                                    {"/training/parallel/shard", shard}});
            Json& parallel = scenario["training"]["parallel"];
            if (!order.empty()) parallel["pipeline"] = 2;
            if (!order.empty()) parallel["schedule"] = order;
            if (order == "interleaved") parallel["virtual_pipeline"] = 2;
            Json& card = scenario["training"]["workload"]["transformer"];
            if (has_experts) card.update({{"experts", 4}, {"top_k", 2}, {"expert_ffn", 512}});
            if (has_experts) parallel["expert"] = 2;
            CAPTURE(scenario.dump());
            const Prediction p = predicted(scenario);
            CHECK(p.training->plan->split.total() == p.training->step);
            CHECK(p.training->plan->split.compute() == p.training->split.compute);
            ++n;
          }
  CHECK(n == 98);  // 18 x (3 + 2) and, with zero_bubble_h1, 2 x 2 x 2
}

TEST_CASE("NCCL decides for hops of a ring, inside a node and between nodes") {
  Json scenario = shared("p2p");
  scenario["topology"] = Json::parse(
      R"({"kind": "cluster", "node": "dgx-h100", "nodes": 2,
          "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}})");
  scenario["library"] = "nccl";
  scenario["training"]["workload"]["global_batch_size"] = 32;
  const Prediction inside = predicted(scenario);
  scenario["training"]["parallel"]["order"] = "dp-cp-tp-ep-pp";
  const Prediction between = predicted(scenario);
  for (const Prediction* each : {&inside, &between}) {
    CHECK(each->training->plan->split.total() == each->training->step);
    CHECK(each->training->sent == inside.training->sent);
  }
  CHECK(inside.training->plan->split.context < between.training->plan->split.context);
}

TEST_CASE("what a ring cannot do is refused by name, and a setting without effect warned of") {
  const std::string at = "s.json: /training/parallel/cp_comm: ";
  CHECK(refusal(changed(shared("p2p"), {{"/training/workload/attention", "unfused"}})) ==
        at + "expected all_gather with attention unfused, found p2p\n  hint: a ring combines the results of its steps "
             "using the log-sum-exp of the scores, which flash kernels return; Transformer Engine does not support "
             "unfused attention with context ranks either");
  CHECK(refusal(shared("ring")) == at + "expected one of \"all_gather\", \"p2p\", found \"ring\", which is called p2p\n"
                                        "  hint: write \"p2p\", as Megatron-LM does");
  CHECK(refusal(shared("a2a")) == at + "expected one of \"all_gather\", \"p2p\", found \"a2a\", which is not modeled\n "
                                       " hint: use all_gather or p2p");
  const Json alone = changed(shared("p2p"), {{"/training/parallel/context", 1}});
  const std::vector<std::string> warnings = ScenarioFile::parse(alone.dump(), "s.json").point(0).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == at + "has no effect, because context is 1 and no ranks share samples");
}

}  // namespace plan_ring_test
