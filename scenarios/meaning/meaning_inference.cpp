#include "scenarios/meaning/meaning_inference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "algorithms/training/regimes.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "scenarios/meaning/meaning_training.hpp"
#include "scenarios/meaning/roofline.hpp"
#include "sim/base/error.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;

const RooflinePlace serving_place{.workload = "/inference/workload", .user = "in inference"};

void expect_one_card(const Canonical& workload, const Blame& blame) {
  if (workload.contains("model") == workload.contains("transformer"))
    blame.fail(
        serving_place.workload,
        fmt::format("expected either model or transformer, found {}", workload.contains("model") ? "both" : "neither"),
        R"(use a model that has a card, "model": "llama3_70b", or give a card, "transformer": {...})");
}

void expect_one_rank_divides(const InferencePlan& plan, const Blame& blame) {
  const auto expect = [&](std::int64_t whole, const char* what, const char* hint) {
    if (whole % plan.tensor != 0)
      blame.fail("/inference/parallel/tensor",
                 fmt::format("expected a number that divides {}, {}, found {}", what, whole, plan.tensor), hint);
  };
  const TransformerCard& card = plan.card;
  expect(card.heads, "the number of attention heads", "each rank needs whole heads");
  expect(card.kv_heads, "the number of key-value heads",
         "each rank needs whole heads; copies of a head on several ranks are not modeled");
  if (card.experts == 0 || card.dense_layers > 0)
    expect(card.ffn, "the inner size of the MLP", "each rank needs the same number of columns");
  if (card.experts == 0) return;
  expect(card.expert_ffn, "the inner size of an expert", "each rank needs the same number of columns of every expert");
  expect(card.shared_ffn, "the inner size of the shared expert", "each rank needs the same number of columns");
}

/// Ranks with different experts have sequences of their own.
void expect_expert_ranks(const InferencePlan& plan, const Blame& blame) {
  const std::string at = "/inference/parallel/expert";
  if (plan.card.experts == 0)
    blame.fail(at, fmt::format("expected 1 with a model without experts, found {}", plan.expert),
               "set experts and top_k on the model card");
  if (plan.tensor > 1)
    blame.fail(at, fmt::format("expected 1 with tensor {}, found {}", plan.tensor, plan.expert),
               "tensor ranks split every expert; with expert parallelism, each rank has the complete attention and its "
               "own sequences");
  if (plan.card.experts % plan.expert != 0)
    blame.fail(at,
               fmt::format("expected a number that divides the number of experts per layer, {}, found {}",
                           plan.card.experts, plan.expert),
               "each rank needs the same number");
  if (plan.batch % plan.expert != 0)
    blame.fail("/inference/batch", fmt::format("expected a multiple of expert, {}, found {}", plan.expert, plan.batch),
               "batch counts the sequences of all ranks, and each rank needs the same number");
}

/// Bytes and operations are counted in 63 bits.
void expect_countable(const InferencePlan& plan, const Blame& blame) {
  constexpr double most = 4e18;
  const TransformerCard& card = plan.card;
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double cache =
      4 * real(plan.batch) * real(plan.context) * real(card.layers) * real(card.kv_heads) * real(card.head_dim);
  const double vectors = 4 * real(plan.batch) * (plan.phase == InferencePhase::prefill ? real(plan.context) : 1) *
                         real(card.hidden) * std::max(1.0, real(card.top_k));
  const double logits = 4 * real(plan.batch) * (real(card.vocabulary) + real(plan.tensor));
  for (const double bytes : {cache, vectors, logits})
    if (bytes > most)
      blame.fail("/inference/batch",
                 fmt::format("expected a batch and a context of at most 4e18 bytes, found {:.2g}", bytes),
                 "use fewer sequences or a shorter context");
}

/// One algorithm does all all-reduces that no library decides; logits are gathered by `direct`.
void expect_all_reduce(const Canonical& parallel, const Blame& blame) {
  if (!parallel.contains("algorithm")) return;
  const std::string at = "/inference/parallel/algorithm";
  const Algorithm& algorithm = algorithm_of_groups(parallel["algorithm"], at, blame);
  if (!algorithm.supports(CollectiveOp::all_reduce))
    blame.fail(at, fmt::format("expected an algorithm for all_reduce, found {}", algorithm.name),
               "`ringsim list algorithms` lists the algorithms for it");
}

InferencePlan plan_of(const Canonical& canonical, const Blame& blame) {
  const Canonical& workload = canonical["workload"];
  InferencePlan plan;
  plan.card = card_of(workload, serving_place, blame);
  plan.phase = canonical["phase"] == "prefill" ? InferencePhase::prefill : InferencePhase::decode;
  plan.batch = canonical["batch"].get<std::int64_t>();
  plan.context = canonical["context"].get<std::int64_t>();
  plan.tensor = canonical["parallel"]["tensor"].get<int>();
  plan.weight_bytes = workload["precision"] == "fp8" ? 1 : 2;
  plan.kv_bytes = workload["kv_bytes"].get<int>();
  plan.kernel_gap = Picoseconds{canonical["host"]["launch"].get<std::int64_t>()};
  plan.host = Picoseconds{canonical["host"]["step"].get<std::int64_t>()};
  plan.expert = canonical["parallel"]["expert"].get<int>();
  if (plan.expert > 1) expect_expert_ranks(plan, blame);
  expect_one_rank_divides(plan, blame);
  expect_countable(plan, blame);
  return plan;
}

}  // namespace

void name_serving_ranks(Canonical& canonical, const std::vector<std::string>& gpus, const Blame& blame) {
  const Canonical& parallel = canonical["parallel"];
  const auto n = parallel["tensor"].get<std::size_t>() * parallel["expert"].get<std::size_t>();
  if (canonical.contains("ranks")) {
    if (canonical["ranks"].size() != n)
      blame.fail("/inference/ranks",
                 fmt::format("expected tensor times expert GPUs, {}, found {}", n, canonical["ranks"].size()),
                 "the simulation covers one copy of the model; other copies do the same on other GPUs");
    return;
  }
  if (gpus.size() < n)
    blame.fail(parallel["tensor"] == 1 ? "/inference/parallel/expert" : "/inference/parallel/tensor",
               fmt::format("expected at most the number of GPUs in the topology, {}, found {}", gpus.size(), n),
               parallel["tensor"] == 1
                   ? "the simulation covers one copy of the model: use fewer expert ranks or more nodes"
                   : "pipeline parallel inference is not modeled: use fewer tensor ranks");
  canonical["ranks"] = std::vector<std::string>(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(n));
}

TrainingSpec inference_of(const Canonical& canonical, double speed, const Blame& blame,
                          std::vector<std::string>& warnings) {
  const Canonical& workload = canonical["workload"];
  expect_one_card(workload, blame);
  TrainingSpec out;
  out.regime = &plan_regime();
  out.workload = workload.contains("model") ? workload["model"].get<std::string>() : "transformer";
  out.compute = "roofline";
  auto plan = std::make_shared<PlanTraining>();
  const InferencePlan& serving = plan->inference.emplace(plan_of(canonical, blame));
  const KernelSpeeds speeds = roofline_of(workload["compute"], speed, serving_place, blame);
  out.peak = static_cast<std::int64_t>(flops_of(workload["compute"], "peak", serving_place, blame));
  plan->model.card = serving.card;
  plan->model.tensor = serving.tensor;
  plan->ignores_memory = canonical.value("memory", "check") == "ignore";
  const InferenceMemory memory = inference_memory(serving);
  plan->memory = {{.weights = memory.weights, .gradients = {}, .state = {}, .activations = {}, .cache = memory.cache}};
  PlanSpec& program = plan->program;
  program.name = fmt::format("{} of {}", to_string(serving.phase), out.workload);
  program.forward_only = true;
  program.grid = PlanGrid(serving.tensor, 1, serving.expert, "tp-cp-ep-dp-pp", 1, serving.expert);
  program.layers = {{inference_layers(serving, speeds)}};
  program.update = {Picoseconds{0}};
  out.batch = serving.batch;
  out.step.name = program.name;
  out.step.steps = program.iterations = 1;
  if (canonical.contains("gpu_memory")) out.gpu_memory = Bytes{canonical["gpu_memory"].get<std::int64_t>()};
  expect_all_reduce(canonical["parallel"], blame);
  if (serving.tensor == 1 && canonical["parallel"].contains("algorithm"))
    warnings.push_back(blame.where("/inference/parallel/algorithm") + ": has no effect: tensor is 1");
  out.plan = std::move(plan);
  return out;
}

Canonical layer_collective_of(const Canonical& canonical, const TrainingSpec& spec) {
  const InferencePlan& plan = *spec.inference();
  const bool sums = plan.expert == 1;
  const Bytes bytes =
      Bytes{plan.tokens() * plan.card.hidden * (sums ? 1 : plan.card.top_k)} * InferencePlan::element_bytes;
  Canonical collective{{"op", sums ? "all_reduce" : "all_to_all"},
                       {"bytes", bytes.count},
                       {"root", 0},
                       {"order", "given"},
                       {"seed", 0},
                       {"both_ways", false}};
  const Canonical& parallel = canonical["parallel"];
  collective["algorithm"] = parallel.contains("algorithm") ? parallel["algorithm"] : Canonical{{"name", "ring"}};
  if (!sums) collective["algorithm"] = {{"name", "direct"}};
  collective["ranks"] = canonical["ranks"];
  return collective;
}

}  // namespace ringsim::scenarios
