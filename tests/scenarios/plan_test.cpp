// `training.parallel`: plans as scenarios, what their steps are made of, what is refused, what a library decides.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "algorithms/training/plan_program.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/json_scenario.hpp"

namespace plan_test {

using namespace ringsim;
using namespace ringsim::literals;
using test::changed;
using test::predicted;
using test::refusal;
using Json = nlohmann::json;

namespace {

/// A small transformer on a star of 50 GB/s: tensor 2, pipeline 2, and the data ranks that are left.
Json small(int ranks) {
  return Json::parse(fmt::format(
      R"({{"version": 1, "name": "small",
      "topology": {{"kind": "star", "ranks": {}, "link": {{"bandwidth": "50 GB/s", "latency": "1 us"}}}},
      "training": {{"workload": {{"transformer": {{"layers": 8, "hidden": 512, "heads": 8, "ffn": 2048,
                                                   "vocabulary": 1000}},
                                  "sequence": 256, "micro_batch_size": 2, "global_batch_size": 32,
                                  "compute": {{"gemm": "60%", "attention": "40%", "memory": "80%",
                                               "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}}}},
                    "parallel": {{"tensor": 2, "pipeline": 2}}, "optimizer": "adam", "steps": 1, "warmup": 1}}}})",
      ranks));
}

/// The bytes of one micro-batch's vectors: sequence x micro-batch x hidden x 2.
constexpr std::int64_t whole = 256 * 2 * 512 * 2;

}  // namespace

TEST_CASE("compute, bubble and what is exposed add up to a plan's step, whatever the plan") {
  int n = 0;
  for (const char* recompute : {"none", "selective", "full"})
    for (const bool sequence_parallel : {false, true})
      for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble_h1", "zero_bubble_h2"})
        for (const char* shard : {"none", "optimizer", "full"}) {
          if (std::string(schedule).starts_with("zero_bubble") &&
              (shard == std::string("full") || recompute == std::string("full")))
            continue;
          CAPTURE(recompute);
          CAPTURE(schedule);
          CAPTURE(shard);
          Json scenario = changed(small(8), {{"/training/parallel/recompute", recompute},
                                             {"/training/parallel/sequence_parallel", sequence_parallel},
                                             {"/training/parallel/schedule", schedule},
                                             {"/training/parallel/shard", shard},
                                             {"/training/parallel/overlap", Json::array({"grad_reduce"})}});
          if (schedule == std::string("interleaved")) scenario["training"]["parallel"]["virtual_pipeline"] = 2;
          if (shard == std::string("optimizer")) scenario["training"]["parallel"]["overlap"].push_back("param_gather");
          const Prediction p = predicted(scenario);
          const PlanReport& plan = p.training->plan.value();
          CHECK(plan.split.total() == p.training->step);
          CHECK(plan.split.compute() == p.training->split.compute);
          CHECK((plan.split.recompute.count() > 0) == (recompute != std::string("none")));
          CHECK(plan.split.optimizer.count() > 0);
          CHECK(plan.split.bubble.count() > 0);
          CHECK(plan.split.tensor.count() > 0);
          CHECK(plan.data == 2);
          CHECK(plan.micro_batches == 8);
          ++n;
        }
  CHECK(n == 54 + 2 * 2 * 2 * 2);
}

// Products are computed as often as with 1f1b, and inputs gathered as often. The bubble of equal stages, (p - 1)(F + B
// + W), becomes (p - 1)(F + B - W): 6 W less. Here the last stage also has the head.
TEST_CASE("passes for weights divide the backward pass, and shorten the bubble") {
  for (const bool sequence_parallel : {false, true})
    for (const int tensor : {1, 2}) {
      if (sequence_parallel && tensor == 1) continue;
      const Json plan = changed(small(8), {{"/training/parallel/tensor", tensor},
                                           {"/training/parallel/pipeline", 4},
                                           {"/training/parallel/sequence_parallel", sequence_parallel}});
      const Json zero_bubble = changed(plan, {{"/training/parallel/schedule", "zero_bubble_h1"}});
      const Prediction one = predicted(plan), zero = predicted(zero_bubble);
      const PlanReport &before = one.training->plan.value(), &after = zero.training->plan.value();
      CHECK(after.schedule == "zero_bubble_h1");
      // Of some 1,000 kernels, each rounded to a picosecond.
      CHECK(std::abs((after.split.compute() - before.split.compute()).count()) < 4'000);
      CHECK(zero.training->sent == one.training->sent);
      Picoseconds weights{0};  // of a stage in the middle
      const Scenario scenario = ScenarioFile::parse(zero_bubble.dump(), "s.json").point(0);
      for (const PlanLayer& layer : scenario.training->plan->program.layers[1][0])
        for (const PlanKernel& kernel : layer.weights) weights += kernel.time;
      const auto less = static_cast<double>((before.split.bubble - after.split.bubble).count()),
                 six_passes = static_cast<double>(6 * weights.count());
      if (!sequence_parallel) CHECK(less == doctest::Approx(six_passes).epsilon(0.25));
      CHECK(less > 0.75 * six_passes);  // these passes also gather inputs
      for (std::size_t stage = 0; stage < 4; ++stage) {
        CHECK(after.memory[stage].in_flight == 4);
        CHECK(after.memory[stage].weights == before.memory[stage].weights);
      }
      CHECK(after.memory[0] == before.memory[0]);
      CHECK(after.memory[3].activations.count == 4 * before.memory[3].activations.count);
    }
  const auto refused = [](std::map<std::string, Json> values) {
    values["/training/parallel/schedule"] = "zero_bubble_h1";
    return refusal(changed(small(8), values));
  };
  const std::string at = "s.json: /training/parallel";
  CHECK(refused({{"/training/parallel/recompute", "full"}}) ==
        at + "/recompute: expected none or selective with zero_bubble_h1, found full\n  hint: weight passes would have "
             "to recompute everything again or keep it: use selective, or 1f1b");
  CHECK(refused({{"/training/parallel/shard", "full"}}) ==
        at + "/shard: expected none or optimizer with zero_bubble_h1, found full\n  hint: gathers are not modeled with "
             "separate weight passes: use optimizer, or 1f1b");
  CHECK(refused({{"/training/parallel/virtual_pipeline", 2}})
            .find(at +
                  "/virtual_pipeline: expected virtual_pipeline above 1 with interleaved and only with interleaved") ==
        0);
  CHECK(refused({{"/training/workload/transformer/experts", 8},
                 {"/training/workload/transformer/top_k", 2},
                 {"/training/workload/transformer/expert_ffn", 1'024},
                 {"/training/parallel/sequence_parallel", true}}) ==
        at + "/schedule: expected a model without experts with zero_bubble_h1, found experts\n  hint: separate weight "
             "passes are not modeled for experts: use 1f1b");
}

// Gathers of weights hide in the forward pass of the next step, the last one's in nothing; kernels take as long in
// every step. Without a next step there is nothing to hide them.
TEST_CASE("what a plan's next step hides is not exposed in the last step, whatever their number") {
  for (const char* shard : {"optimizer", "optimizer_gradients"}) {
    CAPTURE(shard);
    const auto plan_with = [&](int steps, int warmup, const Json& overlap) {
      return changed(small(8), {{"/training/parallel/pipeline", 1},
                                {"/training/parallel/shard", shard},
                                {"/training/parallel/overlap", overlap},
                                {"/training/parallel/bucket_size", 500'000},
                                {"/training/steps", steps},
                                {"/training/warmup", warmup}});
    };
    const Json both = Json::array({"grad_reduce", "param_gather"}), one = Json::array({"grad_reduce"});
    const Prediction plain = predicted(plan_with(1, 1, one)), hidden = predicted(plan_with(1, 1, both));
    const PlanSplit &apart = plain.training->plan->split, &split = hidden.training->plan->split;
    CHECK(split.compute() == apart.compute());
    CHECK(split.data < apart.data);
    CHECK(hidden.training->split.compute == split.compute());
    for (const int steps : {2, 3, 5}) {
      const Prediction more = predicted(plan_with(steps, 1, both));
      CHECK(more.training->step == hidden.training->step);
      CHECK(more.training->plan->split == split);
    }
    const Scenario alone = ScenarioFile::parse(plan_with(1, 0, both).dump(), "s.json").point(0);
    CHECK(alone.warnings == std::vector<std::string>{
                                "s.json: /training/parallel/overlap: param_gather has no effect: weights are gathered "
                                "during the next step, and there is only one step: set warmup to 1"});
    CHECK(predicted(plan_with(1, 0, both)).training->step == predicted(plan_with(1, 0, one)).training->step);
    CHECK(ScenarioFile::parse(plan_with(1, 0, one).dump(), "s.json").point(0).warnings.empty());
    CHECK(ScenarioFile::parse(plan_with(1, 1, both).dump(), "s.json").point(0).warnings.empty());
  }
}

// With 8 micro-batches on 4 stages, all of which are in flight in the 7 = 2p - 1 that H2 keeps. Without updates and
// with products that take equally long in all passes, F + B - 2 W is what attention, its core and norms add.
TEST_CASE("zero_bubble_h2 has a shorter bubble than h1, which more activations pay for") {
  const auto plan_of = [](const char* schedule) {
    const Prediction p = predicted(changed(small(8), {{"/training/parallel/tensor", 1},
                                                      {"/training/parallel/pipeline", 4},
                                                      {"/training/workload/global_batch_size", 32},
                                                      {"/training/steps", 2},
                                                      {"/training/parallel/schedule", schedule}}));
    return std::pair{p.training->step, p.training->plan.value()};
  };
  const auto [step1, h1] = plan_of("zero_bubble_h1");
  const auto [step2, h2] = plan_of("zero_bubble_h2");
  CHECK(h2.schedule == "zero_bubble_h2");
  CHECK(h1.micro_batches == 8);
  CHECK(step2 < step1);
  CHECK(h2.split.bubble < h1.split.bubble);
  CHECK(h2.split.total() == step2);
  for (std::size_t stage = 0; stage < 4; ++stage) {
    CHECK(h1.memory[stage].in_flight == 4);
    CHECK(h2.memory[stage].in_flight == 7);
    CHECK(h2.memory[stage].activations.count * 4 == h1.memory[stage].activations.count * 7);
  }
}

TEST_CASE("embedding and loss count as layers of the stages, as Megatron-LM can divide them") {
  // Six layers and two that count, on four chunks of two.
  const auto counted = [](const Json& more) {
    Json scenario = changed(small(8), {{"/training/workload/transformer/layers", 6},
                                       {"/training/parallel/pipeline", 4},
                                       {"/training/parallel/account_for_embedding", true},
                                       {"/training/parallel/account_for_loss", true}});
    for (const auto& [key, value] : more.items()) scenario["training"]["parallel"][key] = value;
    return scenario;
  };
  const auto names_of = [](const Json& scenario) {
    std::vector<std::vector<std::string>> names;  // [place]
    const Scenario point = ScenarioFile::parse(scenario.dump(), "s.json").point(0);
    const PlanTraining& plan = *point.training->plan;
    std::int64_t parameters = 0;
    for (int stage = 0; stage < plan.model.shape.stages; ++stage) parameters += stage_parameters(plan.model, stage);
    // Of the vocabulary's 1,000 words each of two tensor ranks has half, in the first stage and in the last.
    CHECK(parameters == 6 * layer_parameters(plan.model.card, 2) + 2 * embedding_parameters(plan.model.card, 2) + 512);
    for (int chunk = 0; chunk < plan.model.shape.chunks; ++chunk)
      for (const auto& chunks : plan.program.layers) {
        names.emplace_back();
        for (const PlanLayer& layer : chunks[static_cast<std::size_t>(chunk)]) names.back().push_back(layer.name);
      }
    return names;
  };
  const std::vector<std::vector<std::string>> in_order{
      {"embeddings", "layers.0"}, {"layers.1", "layers.2"}, {"layers.3", "layers.4"}, {"layers.5", "head"}};
  CHECK(names_of(counted({})) == in_order);
  CHECK(names_of(counted({{"pipeline", 2}, {"virtual_pipeline", 2}})) == in_order);
  for (const Json& more :
       {Json::object(), Json{{"pipeline", 2}, {"virtual_pipeline", 2}}, Json{{"schedule", "gpipe"}},
        Json{{"shard", "full"}}, Json{{"schedule", "zero_bubble_h1"}}, Json{{"schedule", "zero_bubble_h2"}}}) {
    CAPTURE(more.dump());
    const Prediction p = predicted(counted(more));
    const PlanReport& plan = p.training->plan.value();
    CHECK(plan.split.total() == p.training->step);
    // A stage in the middle has two layers, the first one has one; their activations in flight tell them apart.
    if (more.empty()) CHECK(plan.memory[1].activations * 4 == plan.memory[0].activations * 6);
  }
  CHECK(refusal(counted({{"account_for_loss", false}})) ==
        "s.json: /training/parallel/pipeline: expected a number that divides the number of layers that are counted, "
        "7, found 4\n  hint: account_for_embedding and account_for_loss each count one layer more; "
        "other stages with different numbers of layers are not modeled");
  const Scenario one = ScenarioFile::parse(counted({{"pipeline", 1}}).dump(), "s.json").point(0);
  REQUIRE(one.warnings.size() == 2);
  CHECK(
      one.warnings[0] ==
      "s.json: /training/parallel/account_for_embedding: has no effect: layers are not divided among stages, pipeline "
      "is 1");
}

TEST_CASE("tensor ranks send parts of activations to the next stage, where that changes something") {
  const auto with = [](const Json& changes) {
    Json all{{"/training/parallel/scatter_gather", true}};
    all.update(changes);
    return changed(small(8), all);
  };
  // Each of two tensor ranks sends a half.
  const auto sent = [](const Json& scenario) {
    return ScenarioFile::parse(scenario.dump(), "s.json").point(0).training->plan->program.activations;
  };
  CHECK(sent(with(Json::object())) == Bytes{whole / 2});
  CHECK(sent(with({{"/training/parallel/scatter_gather", false}})) == Bytes{whole});
  const Prediction p = predicted(with(Json::object()));
  CHECK(p.training->plan.value().split.total() == p.training->step);

  const auto warning = [&](const Json& changes) {
    const Scenario one = ScenarioFile::parse(with(changes).dump(), "s.json").point(0);
    REQUIRE(one.warnings.size() == 1);
    CHECK_FALSE(one.training->plan->program.scatters);
    return one.warnings[0];
  };
  const std::string at = "s.json: /training/parallel/scatter_gather: has no effect, because ";
  CHECK(warning({{"/training/parallel/tensor", 1}}) == at + "tensor is 1 and each rank has all activations");
  CHECK(warning({{"/training/parallel/pipeline", 1}}) == at + "pipeline is 1 and no stage sends activations");
  CHECK(warning({{"/training/parallel/sequence_parallel", true}}) ==
        at + "with sequence_parallel, each rank has only its part of them");
}

// The gather of the parts cannot begin before the other stage has sent them: that is the bubble of 3 stages in 4 + 3
// micro-batches, as without parts, and the way of half as many bytes.
TEST_CASE("a rank that gathers what a stage has not sent waits for the stage, not for its tensor group") {
  const auto split = [](bool in_parts) {
    const Prediction p = predicted(changed(small(8), {{"/training/parallel/pipeline", 4},
                                                      {"/training/parallel/scatter_gather", in_parts},
                                                      {"/training/workload/global_batch_size", 8}}));
    CHECK(p.training->plan->split.total() == p.training->step);
    return p.training->plan->split;
  };
  const PlanSplit whole_ones = split(false), parts = split(true);
  const auto ratio = [&](Picoseconds PlanSplit::*part) {
    return static_cast<double>((parts.*part).count()) / static_cast<double>((whole_ones.*part).count());
  };
  CHECK(ratio(&PlanSplit::bubble) == doctest::Approx(1).epsilon(0.05));
  CHECK(ratio(&PlanSplit::pipeline) == doctest::Approx(0.5).epsilon(0.2));
  CHECK(ratio(&PlanSplit::tensor) < 1.3);  // a gather more for each micro-batch, next to 4 collectives of a layer
}

TEST_CASE("compute and what is exposed add up to a sharded step without stages") {
  for (const char* shard : {"optimizer_gradients", "full"})
    for (const int tensor : {1, 2})
      for (const Json& overlap : {Json::array(), Json::array({"grad_reduce"})}) {
        CAPTURE(shard);
        CAPTURE(tensor);
        Json scenario = changed(small(8), {{"/training/parallel/tensor", tensor},
                                           {"/training/parallel/pipeline", 1},
                                           {"/training/parallel/shard", shard},
                                           {"/training/parallel/overlap", overlap}});
        if (shard == std::string("full")) scenario["training"]["parallel"]["hybrid"] = 2;
        const Prediction p = predicted(scenario);
        const PlanReport& plan = p.training->plan.value();
        CHECK(plan.split.total() == p.training->step);
        CHECK(plan.split.compute() == p.training->split.compute);
        CHECK(plan.split.data.count() > 0);
        CHECK(plan.split.bubble.count() == 0);
        CHECK(plan.shard == shard);
      }
}

// Four data ranks, m = 4, weights of 2 B and gradients of 4 B: each of the two gathers and the reduction of a
// micro-batch sends 3/4 of its bytes from each rank. A layer has 4 h^2 + 3 h f and two norms, embedding and head 1,000
// words each.
TEST_CASE("a fully sharded transformer sends and keeps what its layers say, to the byte") {
  const std::int64_t layer = 4 * 512 * 512 + 3 * 512 * 2'048 + 2 * 512, all = 8 * layer + 2 * 512'000 + 512;
  const Json full = changed(small(4), {{"/training/parallel", Json{{"shard", "full"}}}});
  const Prediction p = predicted(full);
  CHECK(p.training->sent.count == 3 * 4 * (2 * 2 + 4) * all);
  const PlanMemory& memory = p.training->plan->memory[0];
  CHECK(memory.weights.count == 2 * all / 4 + 2 * 2 * layer);  // two layers are gathered at a time
  CHECK(memory.gradients.count == all + 4 * 2 * layer);
  CHECK(memory.state.count == 12 * all / 4);
  CHECK(predicted(changed(full, {{"/training/parallel/reshard_after_forward", false}})).training->sent.count ==
        3 * 4 * (2 + 4) * all);
  // ZeRO-2 gathers once a step. Tied, the embedding is gathered once a micro-batch, and is the head.
  CHECK(predicted(changed(full, {{"/training/parallel/shard", "optimizer_gradients"}})).training->sent.count ==
        3 * (4 * 4 + 2) * all);
  CHECK(predicted(changed(full, {{"/training/workload/transformer/tied", true}})).training->sent.count ==
        3 * 4 * ((2 * 2 + 4) * (all - 512'000) - 2 * 512'000));
}

TEST_CASE("keys of full sharding are refused where nothing is gathered, and groups that do not divide the ranks") {
  const auto refused = [](std::map<std::string, Json> values) { return refusal(changed(small(8), values)); };
  const std::string at = "s.json: /training/parallel";
  const std::pair<const std::string, Json> full{"/training/parallel/shard", "full"};
  CHECK(refused({{"/training/parallel/prefetch", 2}}) ==
        at + "/prefetch: expected prefetch only with shard full, found shard none\n"
             "  hint: only fully sharded weights are gathered layer by layer");
  CHECK(refused({{"/training/parallel/reshard_after_forward", true}, {"/training/parallel/shard", "optimizer"}})
            .find(at + "/reshard_after_forward: expected reshard_after_forward only with shard full") == 0);
  CHECK(refused({full, {"/training/parallel/hybrid", 3}}) ==
        at + "/hybrid: expected a number that divides the data parallel ranks, 2, found 3\n  hint: this many ranks "
             "share one copy of the model, and each group of them has a replica");
  CHECK(refused({{"/training/parallel/shard", "optimizer_gradients"}}) ==
        at + "/shard: expected optimizer_gradients only with pipeline 1, found pipeline 2\n  hint: the gradients of "
             "every micro-batch would have to be reduced, which DeepSpeed refuses as well: use optimizer or full");
  CHECK(
      refused({full, {"/training/workload/transformer/tied", true}}) ==
      at +
          "/shard: expected an untied embedding with shard full and pipeline 2, found a tied one\n  hint: gathering an "
          "embedding on two stages is not modeled: use pipeline 1, or shard optimizer");
  const Json overlap = changed(small(8), {full, {"/training/parallel/overlap", Json::array({"grad_reduce"})}});
  const std::vector<std::string> warnings = ScenarioFile::parse(overlap.dump(), "s.json").point(0).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "s.json: /training/parallel/overlap: has no effect: with shard full, gathers and reductions always overlap");
}

// Four ranks share each sample, two such groups: m = 8. Keys and values of a layer are 2 b s h of 2 B, gathered forward
// and backward, and their gradients summed: each time a group of four sends them three times. Gradients of all eight
// ranks are reduced once.
TEST_CASE("context ranks divide computation and activations, and send keys and values, to the byte") {
  const Json plain =
      changed(small(2), {{"/training/parallel", Json{{"order", "tp-cp-ep-dp-pp"}}},
                         {"/training/workload/compute", Json{{"flops", "312 TFLOP/s"}, {"efficiency", "50%"}}}});
  const Json shared = changed(
      plain, {{"/topology/ranks", 8}, {"/training/parallel/context", 4}, {"/training/parallel/cp_comm", "all_gather"}});
  const std::int64_t layer = 4 * 512 * 512 + 3 * 512 * 2'048 + 2 * 512, all = 8 * layer + 2 * 512'000 + 512;
  const Prediction one = predicted(plain), four = predicted(shared);
  CHECK(four.training->sent.count == 2 * 8 * 8 * 3 * 3 * 2 * whole + 2 * 7 * 4 * all);
  const PlanReport &before = one.training->plan.value(), &after = four.training->plan.value();
  CHECK(after.context == 4);
  CHECK(after.data == 2);
  CHECK(after.micro_batches == before.micro_batches);
  CHECK((after.memory[0].activations.count - 2 * 2 * whole) * 4 == before.memory[0].activations.count);
  CHECK(after.memory[0].gradients == before.memory[0].gradients);
  // Some 900 kernels, each rounded to a picosecond.
  CHECK(std::abs((after.split.compute() * 4 - before.split.compute()).count()) < 4'000);
  CHECK(after.split.context.count() > 0);
  CHECK(after.split.total() == four.training->step);
  for (const char* recompute : {"selective", "full"})
    for (const int tensor : {1, 2})
      for (const char* shard : {"none", "full"}) {
        const Prediction p = predicted(changed(shared, {{"/training/parallel/recompute", recompute},
                                                        {"/training/parallel/tensor", tensor},
                                                        {"/training/parallel/sequence_parallel", tensor == 2},
                                                        {"/training/parallel/shard", shard}}));
        CHECK(p.training->plan->split.total() == p.training->step);
        CHECK(p.training->plan->split.recompute.count() > 0);
      }
}

/// Eight experts of 1,024, of which a token meets two.
Json routed(int ranks, const Json& parallel) {
  return changed(small(ranks), {{"/training/parallel", parallel},
                                {"/training/workload/transformer/experts", 8},
                                {"/training/workload/transformer/top_k", 2},
                                {"/training/workload/transformer/expert_ffn", 1'024}});
}

// Eight data ranks, m = 2, e = 4. Each of the four exchanges of a layer and micro-batch sends 3/4 of b s k h elements
// of 2 B from each rank. Per layer all but experts are 4 h^2, two norms and a router of 8 h; a rank has two experts of
// 3 h f. The former are reduced among eight ranks, the latter among two.
TEST_CASE("expert ranks send tokens and gradients, and keep their experts, to the byte") {
  const std::int64_t copies = 2 * whole, m = 2, layers = 8, each = 3 * 512 * 1'024;
  const std::int64_t dense = layers * (4 * 512 * 512 + 2 * 512 + 8 * 512) + 2 * 512'000 + 512,
                     experts = layers * 2 * each;
  const std::int64_t tokens = 8 * m * layers * 4 * copies * 3 / 4;
  const Json four = routed(8, {{"expert", 4}});
  const Prediction p = predicted(four);
  CHECK(p.training->sent.count == tokens + 4 * (2 * 7 * dense + 4 * 2 * 1 * experts));
  const PlanReport& plan = p.training->plan.value();
  CHECK(plan.expert == 4);
  CHECK(plan.data == 8);
  CHECK(plan.memory[0].weights.count == 2 * (dense + experts));
  CHECK(plan.memory[0].gradients.count == 4 * (dense + experts));
  CHECK(plan.memory[0].state.count == 12 * (dense + experts));
  CHECK(plan.split.expert.count() > 0);
  CHECK(plan.split.total() == p.training->step);
  // Recomputation in full sends tokens there and back once more.
  CHECK(predicted(changed(four, {{"/training/parallel/recompute", "full"}})).training->sent.count ==
        p.training->sent.count + tokens / 2);
  // A reduce_scatter of 4 B and an all_gather of 2 B; each rank keeps the state of its part.
  const Prediction parts = predicted(changed(four, {{"/training/parallel/shard", "optimizer"}}));
  CHECK(parts.training->sent.count == tokens + (4 + 2) * (7 * dense + 4 * experts));
  CHECK(parts.training->plan->memory[0].state.count == 12 * dense / 8 + 12 * experts / 2);
  // All experts on each rank, and all reduced among eight: nothing is sent to experts.
  CHECK(predicted(routed(8, {{"expert", 1}})).training->sent.count == 4 * 2 * 7 * (dense + layers * 8 * each));
}

// t = 2, four data ranks: m = 4, each rank has half of a sample's tokens between products. Whole experts, e = 8: no
// collectives of tensor groups among experts, and no ranks with the same ones. Split experts, e = 4: half of each, and
// tensor ranks gather copies of both and add up answers: each such collective of b s k h elements sends half from each.
TEST_CASE("with tensor ranks experts are whole on more ranks, or split, to the byte") {
  const std::int64_t copies = 2 * whole, m = 4, layers = 8;
  const Json base = {{"tensor", 2}, {"sequence_parallel", true}, {"expert", 8}, {"expert_tensor", 1}};
  const Prediction w = predicted(routed(8, base)),
                   s = predicted(changed(routed(8, base),
                                         {{"/training/parallel/expert", 4}, {"/training/parallel/expert_tensor", 2}}));
  const std::int64_t more_gathers = 8 * m * layers * 4 * copies / 2;
  const std::int64_t whole_tokens = 8 * m * layers * 4 * (copies / 2) * 7 / 8,
                     split_tokens = 8 * m * layers * 4 * (copies / 2) * 3 / 4;
  CHECK(s.training->sent.count - w.training->sent.count == more_gathers + split_tokens - whole_tokens);
  CHECK(w.training->plan->memory[0].weights == s.training->plan->memory[0].weights);
  // Copies that were gathered are kept in full.
  CHECK(s.training->plan->memory[0].activations.count - w.training->plan->memory[0].activations.count ==
        layers * copies / 2);
  for (const Prediction* each : {&w, &s}) {
    const PlanReport& plan = each->training->plan.value();
    CHECK(plan.split.total() == each->training->step);
    CHECK(plan.split.tensor.count() > 0);
    CHECK(plan.split.expert.count() > 0);
  }
}

TEST_CASE("plans with expert ranks add up, whatever else they have") {
  int n = 0;
  for (const char* recompute : {"none", "full"})
    for (const int tensor : {1, 2})
      for (const int pipeline : {1, 2})
        for (const int context : {1, 2})
          for (const char* shard : {"none", "optimizer"})
            for (const bool has_shared : {false, true}) {
              Json scenario = routed(16, {{"tensor", tensor},
                                          {"pipeline", pipeline},
                                          {"sequence_parallel", tensor > 1},
                                          {"expert", 4},
                                          {"recompute", recompute},
                                          {"shard", shard}});
              if (context > 1) scenario["training"]["parallel"]["context"] = 2;
              if (context > 1) scenario["training"]["parallel"]["cp_comm"] = "all_gather";
              Json& card = scenario["training"]["workload"]["transformer"];
              if (has_shared) card["shared_ffn"] = 1'024;
              if (has_shared) card["dense_layers"] = 3;
              const Prediction p = predicted(scenario);
              CHECK(p.training->plan->split.total() == p.training->step);
              CHECK(p.training->plan->split.compute() == p.training->split.compute);
              CHECK(p.training->plan->split.expert.count() > 0);
              ++n;
            }
  CHECK(n == 64);
}

// All ranks take the time of the busiest: 1.5 times the bytes of exchanges, products and sorts.
TEST_CASE("an imbalance lengthens the work of experts and the exchanges of tokens") {
  const Json even = routed(8, {{"expert", 4}}), uneven = changed(even, {{"/training/parallel/imbalance", 1.5}});
  const Prediction a = predicted(even), b = predicted(uneven);
  const std::int64_t tokens = 8 * 2 * 8 * 4 * 2 * whole * 3 / 4;
  CHECK(b.training->sent.count - a.training->sent.count == tokens / 2);
  CHECK(b.training->plan->split.compute() > a.training->plan->split.compute());
  CHECK(b.training->plan->split.expert > a.training->plan->split.expert);
  // Of a copy of a token: its vector and three inner sizes, in 16 bits.
  CHECK(b.training->plan->memory[0].activations.count - a.training->plan->memory[0].activations.count ==
        8 * 256 * 2 * 2 * 2 * (512 + 3 * 1'024) / 2);
  CHECK(predicted(changed(even, {{"/training/parallel/imbalance", 1}})).time == a.time);
}

TEST_CASE("plans of experts that are not modeled are refused with the sizes that do not fit") {
  const auto refused = [](const Json& parallel) { return refusal(routed(8, parallel)); };
  const std::string at = "s.json: /training/parallel";
  CHECK(refused({{"expert", 3}}) ==
        at + "/expert: expected expert times expert_tensor to divide the 8 ranks of a stage, found 3 x 1 = 3\n  hint: "
             "expert ranks are taken from tensor, data and context ranks");
  CHECK(refused({{"tensor", 2}, {"sequence_parallel", true}, {"expert", 8}}) ==
        at + "/expert: expected expert times expert_tensor to divide the 8 ranks of a stage, found 8 x 2 = 16\n  hint: "
             "expert ranks are taken from data and context ranks; \"expert_tensor\": 1 also takes tensor ranks");
  CHECK(refused({{"tensor", 4}, {"sequence_parallel", true}, {"expert_tensor", 2}}) ==
        at + "/expert_tensor: expected 1 or tensor, 4, found 2\n  hint: 1: each rank holds whole experts; tensor: the "
             "tensor ranks split experts as they split other layers");
  CHECK(refusal(changed(routed(8, {{"expert", 8}}), {{"/training/workload/transformer/experts", 12}})) ==
        at + "/expert: expected a number that divides the number of experts per layer, 12, found 8\n  hint: each rank "
             "needs the same number");
  CHECK(refused({{"tensor", 2}, {"expert", 2}}) ==
        at + "/sequence_parallel: expected sequence_parallel with experts and tensor 2, found none\n  hint: without "
             "it, every tensor rank would send the same tokens; Megatron-LM refuses this as well "
             "(transformer/moe/moe_layer.py)");
  CHECK(refused({{"expert", 4}, {"shard", "full"}}) ==
        at + "/shard: expected none or optimizer with experts on 4 ranks, found full\n  hint: layer-by-layer gathers "
             "and reductions of weights in two kinds of groups are not modeled: use optimizer, or expert 1 with "
             "expert_tensor equal to tensor");
  CHECK(refused({{"pipeline", 2}, {"expert", 2}, {"order", "tp-cp-ep-pp-dp"}}) ==
        at + "/order: expected an order in which each rank has the same stage and tensor group in experts as in other "
             "layers, found \"tp-cp-ep-pp-dp\"\n  hint: Megatron-LM asserts this (parallel_state.py, "
             "initialize_model_parallel); put tp first and pp last");
  CHECK(refused({{"expert", 4}, {"imbalance", 5}}) ==
        at + "/imbalance: expected at most expert, 4, found 5\n  hint: at that value, one rank gets all tokens");
  // Weights and gradients alone take 6 B for each of some 35 million parameters.
  CHECK(test::complaint([&] {
          predicted(changed(routed(8, {{"expert", 4}}), {{"/training/gpu_memory", "100 MB"}}));
        }).find("it does not fit with any recomputation: use more expert, tensor or pipeline ranks or a smaller") !=
        std::string::npos);
  const auto warning = [](const Json& scenario) {
    const std::vector<std::string> all = ScenarioFile::parse(scenario.dump(), "s.json").point(0).warnings;
    return all.empty() ? "" : all.front();
  };
  CHECK(warning(routed(8, {{"imbalance", 1.5}})) ==
        at + "/imbalance: has no effect: every rank has all experts because expert is 1");
  CHECK(warning(changed(small(8), {{"/training/parallel/expert_tensor", 1}})) ==
        at + "/expert_tensor: has no effect: the model has no experts");
}

// Bytes by hand: a ring of two sends half of an all-reduce twice. A layer has two sums a pass; embedding and head one
// each, and three figures of 4 B a token in the loss.
TEST_CASE("a plan's traffic is what its volumes say, to the byte") {
  const auto sent = [](const Json& scenario) { return predicted(scenario).training->sent.count; };
  const Json base = changed(small(4), {{"/training/workload/global_batch_size", 8}});  // m = 4
  const std::int64_t layers = 8 * 4 * whole, ends = 2 * whole + 3 * 256 * 2 * 4, cut = 2 * 2 * whole;
  // Per rank of a ring of two: 2 (t - 1)/t = 1 of each sum.
  CHECK(sent(base) == 4 * (2 * (layers + ends) + cut));
  // Forward again: six sums a layer.
  CHECK(sent(changed(base, {{"/training/parallel/recompute", "full"}})) == 4 * (2 * (8 * 6 * whole + ends) + cut));
  // Parts: a gather or a scatter is half of a sum; two more gathers a layer, and stages hand on half.
  const std::int64_t gathers = 8 * 2 * whole / 2, of_ends = whole + whole / 2;
  CHECK(sent(changed(base, {{"/training/parallel/sequence_parallel", true}})) ==
        4 * (2 * (layers + gathers + of_ends + whole / 2 + whole / 2 + 3 * 256 * 2 * 4) + cut / 2));
}

TEST_CASE("what is not a whole plan is refused with the sizes that do not fit") {
  const auto refused = [](const std::map<std::string, Json>& values) { return refusal(changed(small(8), values)); };
  const std::string at = "s.json: /training";
  CHECK(refused({{"/training/parallel/tensor", 3}}) ==
        at + "/parallel: expected tensor times pipeline to divide the 8 GPUs, found 3 x 2 = 6\n  hint: the remaining "
             "factor is the number of data parallel ranks; training.ranks selects the participating GPUs");
  CHECK(
      refused({{"/training/parallel/data", 4}}) ==
      at +
          "/parallel/data: expected 2, which follows from 8 GPUs, tensor 2 and pipeline 2, found 4\n  hint: remove it");
  CHECK(refused({{"/training/workload/transformer/heads", 4},
                 {"/training/parallel/tensor", 8},
                 {"/training/parallel/pipeline", 1}}) ==
        at + "/parallel/tensor: expected a number that divides the number of attention heads, 4, found 8\n  hint: each "
             "rank needs whole heads");
  CHECK(refused({{"/training/workload/transformer/layers", 7}}) ==
        at +
            "/parallel/pipeline: expected a number that divides the number of layers, 7, found 2\n  hint: "
            "account_for_embedding and account_for_loss each count one layer more; other stages with different numbers "
            "of layers are not modeled");
  CHECK(refused({{"/training/workload/global_batch_size", 30}}) ==
        at + "/workload/global_batch_size: expected a multiple of micro_batch_size times the number of data parallel "
             "ranks, 2 x 2 = 4, found 30\n  hint: every data parallel rank needs whole micro-batches");
  CHECK(refused({{"/training/workload/global_batch_size", 12}, {"/training/parallel/virtual_pipeline", 2}}) ==
        at + "/parallel/schedule: expected a number of micro-batches that is a multiple of pipeline, 2, with "
             "interleaved, found 3\n  hint: change global_batch_size or micro_batch_size, or use 1f1b");
  CHECK(refused({{"/training/parallel/order", "tp-dp-pp"}}) ==
        at + "/parallel/order: expected a permutation of tp-cp-ep-dp-pp, found \"tp-dp-pp\"\n"
             "  hint: the first varies fastest, as in Megatron-LM");
  CHECK(refused({{"/training/parallel/expert", 2}}) ==
        at + "/parallel/expert: expected 1 with a model without experts, found 2\n  hint: set experts and top_k on the "
             "model card");
  CHECK(refused({{"/training/parallel/context", 2}}) ==
        at + "/parallel: expected the key \"cp_comm\" with context above 1, found none\n  hint: \"p2p\" (Megatron-LM's "
             "default) passes keys and values around a ring while attention computes; \"all_gather\" gathers them "
             "before the attention");
  CHECK(
      refused({{"/training/parallel/context", 4}, {"/training/parallel/cp_comm", "all_gather"}}) ==
      at +
          "/parallel: expected tensor times pipeline times context to divide the 8 GPUs, found 2 x 2 x 4 = 16\n  hint: "
          "the remaining factor is the number of data parallel ranks; training.ranks selects the participating GPUs");
  CHECK(refused({{"/training/parallel/context", 2},
                 {"/training/parallel/cp_comm", "all_gather"},
                 {"/training/workload/sequence", 250}}) ==
        at + "/workload/sequence: expected a multiple of two chunks for each of 2 context ranks, 4, found 250\n  hint: "
             "each rank gets one chunk from either end of a sample, so all ranks have the same work");
  CHECK(refused({{"/training/parallel/grad_bytes", 3}}) ==
        at + "/parallel/grad_bytes: expected 2 or 4, found 3\n  hint: 2: gradients in bf16 or fp16; 4: in fp32");
  CHECK(refused({{"/training/regime", "single"}}) ==
        at + ": expected either regime or parallel, found both\n  hint: regime selects how GPUs train together, such "
             "as ddp; parallel is a plan of tensor, pipeline and data parallelism");
  CHECK(refused({{"/training/workload/compute/gemm", nullptr}})
            .find(at + "/workload/compute: expected the key \"gemm\" with parallel, found none") == 0);
  CHECK(refused({{"/training/parallel/overlap", Json::array({"param_gather"})}}) ==
        at +
            "/parallel/overlap: expected param_gather only with a shard such as optimizer, found none\n  hint: without "
            "shards, no weights are gathered");
  CHECK(refused({{"/training/parallel/shard", "optimizer"}, {"/training/parallel/algorithm", "double_binary_tree"}}) ==
        at + "/parallel/algorithm: expected an algorithm for reduce_scatter, which this plan requires, found "
             "double_binary_tree\n  hint: use ring, which supports all of them, or remove the key");
  CHECK(refused({{"/training/parallel", nullptr}, {"/training/regime", "single"}}) ==
        at + "/workload/micro_batch_size: expected micro_batch_size only with parallel, found a regime\n  hint: to "
             "describe a plan, write \"parallel\": {\"tensor\": 8, \"pipeline\": 2} instead of \"regime\"");
}

// Keys that a plan does not read are refused, each with what stands for it.
TEST_CASE("no key of a regime is ignored by a plan") {
  const std::map<std::string, Json> keys{{"/training/workload/batch", 4},
                                         {"/training/workload/global_batch", 4},
                                         {"/training/workload/activation_bytes", "1 MiB"},
                                         {"/training/workload/bytes_per_parameter", 2},
                                         {"/training/workload/compute/backward", 3},
                                         {"/training/host", Json{{"launch", "5 us"}}},
                                         {"/training/updates", 100}};
  for (const auto& key : keys) {
    CAPTURE(key.first);
    CHECK(refusal(changed(small(8), {key})).find("cannot be combined with parallel") != std::string::npos);
  }
}

TEST_CASE("a plan that its GPUs have no room for is refused with the sum and what would fit") {
  // Stage 1: 4 layers of 4 h^2 + 3 h f over 2, its norms, the head of 16,000 x 4,096 and a norm.
  const std::int64_t parameters =
      4 * ((4 * 4'096 * 4'096 + 3 * 4'096 * 16'384) / 2 + 2 * 4'096) + 16'000 * 4'096 + 4'096;
  Json scenario = changed(small(8), {{"/training/gpu_memory", "10 GB"},
                                     {"/training/workload/transformer/hidden", 4'096},
                                     {"/training/workload/transformer/heads", 32},
                                     {"/training/workload/transformer/ffn", 16'384},
                                     {"/training/workload/transformer/vocabulary", 32'000}});
  const std::string refused = test::complaint([&] { predicted(scenario); });
  CHECK(refused ==
        "s.json: /training: expected a plan that fits in GPU memory, found that rank 0 (gpu0, stage 0) needs 11.2 of "
        "10.0 GB: weights 1.2, gradients 2.4, optimizer 7.2, activations 0.4 (2 in flight)\n  hint: shard optimizer "
        "needs 7.6 GB; shard full needs 8.2 GB; both shard optimizer and recompute full needs 7.3 GB; both shard full "
        "and recompute full needs 7.9 GB; or set training.memory to \"ignore\"");
  scenario["training"]["memory"] = "ignore";
  const Prediction ignored = predicted(scenario);
  REQUIRE(ignored.warnings.size() == 1);
  const std::vector<PlanMemory>& memory = ignored.training->plan->memory;
  REQUIRE(memory.size() == 2);
  CHECK(memory[1].weights.count == 2 * parameters);
  CHECK(memory[1].gradients.count == 4 * parameters);
  CHECK(memory[1].state.count == 12 * parameters);
  CHECK(memory[0].in_flight == 2);
  CHECK(memory[1].in_flight == 1);
}

// The tensor groups lie on NVSwitch, whose switches add up; the data groups go over NICs.
TEST_CASE("a library decides for each shape of group and each size") {
  const Json scenario = Json::parse(R"({"version": 1, "name": "two nodes",
    "topology": {"kind": "cluster", "node": "dgx-h100", "nodes": 2,
                 "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}},
    "library": "nccl",
    "training": {"workload": {"transformer": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 8192, "vocabulary": 8000},
                              "sequence": 1024, "micro_batch_size": 1, "global_batch_size": 4,
                              "compute": {"flops": "989 TFLOP/s", "efficiency": "50%"}},
                 "parallel": {"tensor": 8}, "steps": 1, "warmup": 0}})");
  const Prediction p = predicted(scenario);
  std::set<std::string> algorithms;
  for (const ExchangeReport& exchange : p.training->exchanges) algorithms.insert(exchange.algorithm);
  CHECK(algorithms.contains("NVLS"));
  CHECK(algorithms.size() > 1);
  // Two sums a pass of 4 layers and 2 micro-batches, and those of embedding and head.
  const auto sums = std::find_if(p.training->exchanges.begin(), p.training->exchanges.end(),
                                 [](const ExchangeReport& each) { return each.bytes == 4_MiB && each.times > 1; });
  REQUIRE(sums != p.training->exchanges.end());
  CHECK(sums->times == 2 * (4 * 4 + 2));
  CHECK(p.training->plan->split.total() == p.training->step);
}

// Expert ranks are the GPUs of a node, or every other GPU of two nodes. Four exchanges of 4 layers and one micro-batch.
TEST_CASE("a library decides for the exchanges of tokens by where experts lie") {
  const Json scenario = Json::parse(R"({"version": 1, "name": "two nodes",
    "topology": {"kind": "cluster", "node": "dgx-h100", "nodes": 2,
                 "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}},
    "library": "nccl",
    "training": {"workload": {"transformer": {"layers": 4, "hidden": 2048, "heads": 16, "ffn": 2048, "vocabulary": 8000,
                                              "experts": 16, "top_k": 2},
                              "sequence": 1024, "micro_batch_size": 1, "global_batch_size": 16,
                              "compute": {"flops": "989 TFLOP/s", "efficiency": "50%"}},
                 "parallel": {"expert": 8}, "steps": 1, "warmup": 0}})");
  const Prediction node = predicted(scenario),
                   nodes = predicted(changed(scenario, {{"/training/parallel/order", "tp-dp-cp-ep-pp"}}));
  for (const Prediction* p : {&node, &nodes}) {
    const auto found = std::find_if(p->training->exchanges.begin(), p->training->exchanges.end(),
                                    [](const ExchangeReport& each) { return each.bytes == 8_MiB && each.times == 16; });
    REQUIRE(found != p->training->exchanges.end());
    CHECK(found->op == CollectiveOp::all_to_all);
    CHECK(p->training->plan->split.total() == p->training->step);
  }
  // 8 MiB, 7/8 of it at 450 GB/s; of groups on every other GPU of two nodes half at a NIC's 50 GB/s.
  CHECK(node.training->plan->split.expert > 16 * Picoseconds{16'000'000});
  CHECK(nodes.training->plan->split.expert > 16 * Picoseconds{83'000'000});
  CHECK(nodes.training->plan->split.expert < 16 * Picoseconds{250'000'000});
  CHECK(node.training->plan->split.expert * 2 < nodes.training->plan->split.expert);
}

// Three nodes, four stages of 6 GPUs: stage 1 has GPUs 6 and 7 of node 0 and 0 to 3 of node 1.
TEST_CASE("groups that lie on unlike GPUs of their nodes are refused next to a library, with their stage") {
  const Json scenario = Json::parse(R"({"version": 1, "name": "three nodes",
    "topology": {"kind": "cluster", "node": "dgx-h100", "nodes": 3,
                 "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}},
    "library": "nccl",
    "training": {"workload": {"transformer": {"layers": 4, "hidden": 64, "heads": 4, "ffn": 128, "vocabulary": 100},
                              "sequence": 64, "micro_batch_size": 1, "global_batch_size": 12,
                              "compute": {"flops": "989 TFLOP/s", "efficiency": "50%"}},
                 "parallel": {"tensor": 2, "pipeline": 4}, "steps": 1, "warmup": 0}})");
  CHECK(refusal(scenario).find("s.json: /training/parallel: expected ") == 0);
  CHECK(refusal(scenario).find("(groups of data parallel ranks, stage 1)\n  hint: ") != std::string::npos);
  CHECK(refusal(scenario).find("choose sizes or an order that place all groups identically") != std::string::npos);
}

TEST_CASE("a slow rank makes the step of a plan longer") {
  const Prediction usual = predicted(small(8));
  const Prediction slow =
      predicted(changed(small(8), {{"/training/slow", Json::array({{{"rank", 0}, {"factor", 3}}})}}));
  CHECK(slow.time > usual.time);
}

}  // namespace plan_test
