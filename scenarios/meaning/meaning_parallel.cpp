#include "scenarios/meaning/meaning_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "algorithms/training/plan_exchanges.hpp"
#include "algorithms/training/regimes.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "scenarios/meaning/meaning_training.hpp"
#include "scenarios/meaning/roofline.hpp"
#include "scenarios/meaning/transformer.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;
using Recompute = TransformerPlan::Recompute;
const std::string at_parallel = "/training/parallel", at_workload = "/training/workload",
                  at_compute = "/training/workload/compute";
const RooflinePlace plan_place{
    .workload = at_workload, .user = "with parallel", .otherwise = R"(; or {"flops": ..., "efficiency": ...})"};

/// Keys of a training that a plan does not read, and what reads them.
void expect_only_plan_keys(const Canonical& canonical, const Blame& blame) {
  const auto refuse = [&](const std::string& pointer, const std::string& key, const std::string& hint) {
    blame.fail(pointer, fmt::format("cannot be combined with parallel: {} applies to regimes", key), hint);
  };
  const Canonical &workload = canonical["workload"], &host = canonical["host"];
  if (workload.contains("layers"))
    blame.fail(at_workload + "/layers", "expected a transformer with parallel, found layers",
               "give a model card, \"transformer\": {...}, or the name of a model: \"model\": \"llama3_70b\"");
  if (workload.contains("batch"))
    refuse(at_workload + "/batch", "batch",
           "use micro_batch_size for the samples per micro-batch and global_batch_size for the samples per step");
  if (workload.contains("global_batch"))
    refuse(at_workload + "/global_batch", "global_batch", "in a plan, use global_batch_size");
  for (const char* key : {"sample_bytes", "output_bytes", "activation_bytes"})
    if (workload.contains(key))
      refuse(fmt::format("{}/{}", at_workload, key), key,
             "the data passed between stages follows from the transformer");
  if (workload["bytes_per_parameter"] != 4)
    refuse(at_workload + "/bytes_per_parameter", "bytes_per_parameter",
           "use precision for the size of weights and parallel.grad_bytes for the size of gradients");
  if (workload["compute"]["backward"] != 2'000'000)
    refuse(at_compute + "/backward", "backward", "the time of the backward pass follows from its kernels");
  if (host["launch"] != 0 || host.contains("order") || host["waits"] != true)
    refuse("/training/host", "host", "kernel launches are not modeled for plans; remove the key");
  for (const char* key : {"updates", "warmup_updates"})
    if (canonical.contains(key)) refuse(fmt::format("/training/{}", key), key, "use steps to set how long a plan runs");
  for (const char* key : {"micro_batch_size", "global_batch_size"})
    if (!workload.contains(key))
      blame.fail(at_workload, fmt::format("expected the key \"{}\" with parallel, found none", key),
                 "micro_batch_size: samples per micro-batch; global_batch_size: samples per step over all GPUs");
}

/// From shares of a stated peak and HBM, or from one efficiency, which leaves bytes out.
KernelSpeeds speeds_of(const Canonical& compute, double speed, TrainingSpec& out, const Blame& blame) {
  if (compute.contains("step"))
    blame.fail(at_compute + "/step", "cannot be combined with parallel: a measured step is that of one GPU",
               R"(set shares: {"gemm": "72%", "attention": "35%", "memory": "80%", "peak": ..., "hbm": ...})");
  if (compute.contains("measured"))
    blame.fail(at_compute + "/measured",
               "expected a measured plan only in the main training of the scenario, found another",
               "set the share: gemm");
  KernelSpeeds speeds;
  if (compute.contains("flops") || compute.contains("efficiency")) {
    for (const char* key : {"gemm", "attention", "memory", "peak", "hbm"})
      if (compute.contains(key))
        blame.fail(fmt::format("{}/{}", at_compute, key), "cannot be combined with flops and efficiency",
                   "one efficiency represents all kernels");
    for (const char* key : {"flops", "efficiency"})
      if (!compute.contains(key))
        blame.fail(at_compute, fmt::format("expected the key \"{}\", found none", key),
                   "flops: the peak of the GPU; efficiency: the share of the peak that is reached");
    const double peak = flops_of(compute, "flops", plan_place, blame);
    out.compute = "flops";
    out.peak = static_cast<std::int64_t>(peak);
    speeds.gemm = speeds.attention = speed * peak * share_of(compute, "efficiency", plan_place, blame);
    return speeds;
  }
  speeds = roofline_of(compute, speed, plan_place, blame);
  out.compute = "roofline";
  out.peak = static_cast<std::int64_t>(flops_of(compute, "peak", plan_place, blame));
  return speeds;
}

void expect_divides(std::int64_t part, std::int64_t whole, const std::string& pointer, const std::string& what,
                    const std::string& hint, const Blame& blame) {
  if (whole % part != 0)
    blame.fail(pointer, fmt::format("expected a number that divides {}, {}, found {}", what, whole, part), hint);
}

/// The sizes of the plan; `data` follows from the GPUs.
PlanGrid grid_of(const Canonical& parallel, std::int64_t ranks, bool has_experts, const Blame& blame) {
  const auto context = parallel["context"].get<std::int64_t>();
  if (context > 1 && !parallel.contains("cp_comm"))
    blame.fail(
        at_parallel, "expected the key \"cp_comm\" with context above 1, found none",
        R"("p2p" (Megatron-LM's default) passes keys and values around a ring while attention computes; "all_gather" gathers them before the attention)");
  const auto tensor = parallel["tensor"].get<std::int64_t>(), pipeline = parallel["pipeline"].get<std::int64_t>();
  if (context > 1 && ranks % (tensor * pipeline * context) != 0)
    blame.fail(
        at_parallel,
        fmt::format("expected tensor times pipeline times context to divide the {} GPUs, found {} x {} x {} = {}",
                    ranks, tensor, pipeline, context, tensor * pipeline * context),
        "the remaining factor is the number of data parallel ranks; training.ranks selects the participating GPUs");
  if (ranks % (tensor * pipeline) != 0)
    blame.fail(
        at_parallel,
        fmt::format("expected tensor times pipeline to divide the {} GPUs, found {} x {} = {}", ranks, tensor, pipeline,
                    tensor * pipeline),
        "the remaining factor is the number of data parallel ranks; training.ranks selects the participating GPUs");
  const std::int64_t data = ranks / (tensor * pipeline * context);
  if (parallel.contains("data") && parallel["data"] != data)
    blame.fail(at_parallel + "/data",
               fmt::format("expected {}, which follows from {} GPUs, tensor {} and pipeline {}, found {}", data, ranks,
                           tensor, pipeline, parallel["data"].get<std::int64_t>()),
               "remove it");
  const auto order = parallel["order"].get<std::string>();
  if (!PlanGrid::is_order(order))
    blame.fail(at_parallel + "/order",
               fmt::format("expected a permutation of tp-cp-ep-dp-pp, found {}", in_quotes(order)),
               "the first varies fastest, as in Megatron-LM");
  const std::int64_t expert = parallel["expert"].get<std::int64_t>(),
                     expert_tensor = has_experts ? parallel.value("expert_tensor", tensor) : tensor,
                     stage = ranks / pipeline;
  if (expert_tensor != 1 && expert_tensor != tensor)
    blame.fail(at_parallel + "/expert_tensor", fmt::format("expected 1 or tensor, {}, found {}", tensor, expert_tensor),
               "1: each rank holds whole experts; tensor: the tensor ranks split experts as they split other layers");
  if (stage % (expert_tensor * expert) != 0)
    blame.fail(at_parallel + "/expert",
               fmt::format("expected expert times expert_tensor to divide the {} ranks of a stage, found {} x {} = {}",
                           stage, expert, expert_tensor, expert * expert_tensor),
               expert_tensor > 1
                   ? "expert ranks are taken from data and context ranks; \"expert_tensor\": 1 also takes tensor ranks"
                   : "expert ranks are taken from tensor, data and context ranks");
  return {static_cast<int>(tensor),  static_cast<int>(pipeline), static_cast<int>(data * context), order,
          static_cast<int>(context), static_cast<int>(expert),   static_cast<int>(expert_tensor)};
}

/// Keys that are about experts, where there are none; and plans of experts that are not modeled.
void expect_experts(const Canonical& parallel, const TransformerPlan& plan, const PlanGrid& grid, const Blame& blame,
                    std::vector<std::string>& warnings) {
  const TransformerCard& card = plan.card;
  if (card.experts == 0 && parallel["expert"] != 1)
    blame.fail(at_parallel + "/expert",
               fmt::format("expected 1 with a model without experts, found {}", parallel["expert"].get<std::int64_t>()),
               "set experts and top_k on the model card");
  const auto idle = [&](const char* key, const std::string& why) {
    if (parallel.contains(key))
      warnings.push_back(blame.where(fmt::format("{}/{}", at_parallel, key)) + ": has no effect: " + why);
  };
  if (card.experts == 0) {
    idle("expert_tensor", "the model has no experts");
    idle("imbalance", "the model has no experts");
    return;
  }
  expect_divides(plan.expert, card.experts, at_parallel + "/expert", "the number of experts per layer",
                 "each rank needs the same number", blame);
  expect_divides(plan.expert_tensor, card.expert_ffn, at_parallel + "/expert_tensor", "the inner size of an expert",
                 "each rank needs the same number of columns", blame);
  expect_divides(plan.tensor, card.shared_ffn, at_parallel + "/tensor", "the inner size of the shared expert",
                 "each rank needs the same number of columns", blame);
  if (plan.tensor > 1 && !plan.sequence_parallel)
    blame.fail(at_parallel + "/sequence_parallel",
               fmt::format("expected sequence_parallel with experts and tensor {}, found none", plan.tensor),
               "without it, every tensor rank would send the same tokens; Megatron-LM refuses this as well "
               "(transformer/moe/moe_layer.py)");
  if (plan.has_experts_apart() && !grid.experts_fit())
    blame.fail(at_parallel + "/order",
               fmt::format("expected an order in which each rank has the same stage and tensor group in experts as in "
                           "other layers, found {}",
                           in_quotes(parallel["order"].get<std::string>())),
               "Megatron-LM asserts this (parallel_state.py, initialize_model_parallel); put tp first and pp last");
  const std::string shard = parallel.value("shard", "none");
  if (plan.has_experts_apart() && (shard == "full" || shard == "optimizer_gradients"))
    blame.fail(at_parallel + "/shard",
               fmt::format("expected none or optimizer with experts on {} ranks, found {}",
                           plan.expert * plan.expert_tensor, shard),
               "layer-by-layer gathers and reductions of weights in two kinds of groups are not modeled: use "
               "optimizer, or expert 1 with expert_tensor equal to tensor");
  if (plan.expert == 1) idle("imbalance", "every rank has all experts because expert is 1");
  if (plan.imbalance > plan.expert)
    blame.fail(at_parallel + "/imbalance",
               fmt::format("expected at most expert, {}, found {}", plan.expert, plan.imbalance),
               "at that value, one rank gets all tokens");
}

void expect_divisible(const TransformerCard& card, const TransformerPlan& plan, const Blame& blame) {
  const std::string tensor = at_parallel + "/tensor";
  expect_divides(plan.tensor, card.heads, tensor, "the number of attention heads", "each rank needs whole heads",
                 blame);
  expect_divides(plan.tensor, card.kv_heads, tensor, "the number of key-value heads", "each rank needs whole heads",
                 blame);
  if (card.experts == 0 || card.dense_layers > 0)
    expect_divides(plan.tensor, card.ffn, tensor, "the inner size of the MLP",
                   "each rank needs the same number of columns", blame);
  expect_divides(std::int64_t{plan.shape.stages} * plan.shape.chunks, plan.all_layers(),
                 at_parallel + (plan.shape.chunks > 1 ? "/virtual_pipeline" : "/pipeline"),
                 fmt::format("the number of layers{}{}", plan.all_layers() == card.layers ? "" : " that are counted",
                             plan.shape.chunks > 1 ? " as pipeline times virtual_pipeline" : ""),
                 "account_for_embedding and account_for_loss each count one layer more; other stages with different "
                 "numbers of layers are not modeled",
                 blame);
}

PipelineShape shape_of(const Canonical& parallel, const PlanGrid& grid, std::int64_t micro_batches,
                       const Blame& blame) {
  PipelineShape shape{.stages = grid.pipeline(), .micro_batches = static_cast<int>(micro_batches)};
  shape.chunks = parallel["virtual_pipeline"].get<int>();
  const std::string schedule = parallel.contains("schedule") ? parallel["schedule"].get<std::string>()
                               : shape.chunks > 1            ? "interleaved"
                                                             : "1f1b";
  for (const PipelineSchedule one : pipeline_schedules)
    if (to_string(one) == schedule) shape.schedule = one;
  if ((shape.chunks > 1) != (shape.schedule == PipelineSchedule::interleaved))
    blame.fail(
        at_parallel + "/virtual_pipeline",
        fmt::format("expected virtual_pipeline above 1 with interleaved and only with interleaved, found {} with {}",
                    shape.chunks, schedule),
        "virtual_pipeline is the number of layer chunks per stage");
  if (shape.chunks > 1 && shape.stages == 1)
    blame.fail(at_parallel + "/virtual_pipeline", "expected pipeline above 1 with chunks, found 1");
  if (shape.chunks > 1 && micro_batches % shape.stages != 0)
    blame.fail(
        at_parallel + "/schedule",
        fmt::format("expected a number of micro-batches that is a multiple of pipeline, {}, with interleaved, found {}",
                    shape.stages, micro_batches),
        "change global_batch_size or micro_batch_size, or use 1f1b");
  if (parallel.contains("schedule") && shape.stages == 1)
    blame.fail(at_parallel + "/schedule", "expected a schedule only with pipeline above 1, found pipeline 1");
  return shape;
}

/// Plans whose passes for weights are not modeled.
void expect_weight_passes(const Canonical& parallel, const TransformerPlan& plan, const Blame& blame) {
  if (!plan.shape.splits_backward()) return;
  const std::string schedule{to_string(plan.shape.schedule)};
  if (plan.card.experts > 0)
    blame.fail(at_parallel + "/schedule",
               fmt::format("expected a model without experts with {}, found experts", schedule),
               "separate weight passes are not modeled for experts: use 1f1b");
  if (plan.recompute == Recompute::full)
    blame.fail(at_parallel + "/recompute", fmt::format("expected none or selective with {}, found full", schedule),
               "weight passes would have to recompute everything again or keep it: use selective, or 1f1b");
  if (const std::string shard = parallel.value("shard", "none"); shard == "full")
    blame.fail(at_parallel + "/shard", fmt::format("expected none or optimizer with {}, found full", schedule),
               "gathers are not modeled with separate weight passes: use optimizer, or 1f1b");
}

std::int64_t micro_batches_of(const Canonical& workload, const PlanGrid& grid, const Blame& blame) {
  const std::int64_t global = workload["global_batch_size"].get<std::int64_t>(), data = grid.data() / grid.context(),
                     each = workload["micro_batch_size"].get<std::int64_t>() * data;
  if (global % each != 0)
    blame.fail(
        at_workload + "/global_batch_size",
        fmt::format(
            "expected a multiple of micro_batch_size times the number of data parallel ranks, {} x {} = {}, found {}",
            workload["micro_batch_size"].get<std::int64_t>(), data, each, global),
        "every data parallel rank needs whole micro-batches");
  constexpr std::int64_t most = 100'000;
  if (global / each > most)
    blame.fail(at_workload + "/global_batch_size",
               fmt::format("expected at most {} micro-batches of a pipeline, found {}", most, global / each));
  return global / each;
}

/// True if the embedding, or the loss, counts as a layer. Without stages it has no effect, which is a warning.
bool counts_as_layer(const Canonical& parallel, const char* key, const PipelineShape& shape, const Blame& blame,
                     std::vector<std::string>& warnings) {
  if (!parallel.value(key, false)) return false;
  if (shape.stages > 1) return true;
  warnings.push_back(fmt::format("{}: has no effect: layers are not divided among stages, pipeline is 1",
                                 blame.where(fmt::format("{}/{}", at_parallel, key))));
  return false;
}

TransformerPlan model_of(const Canonical& canonical, const TransformerCard& card, const PlanGrid& grid,
                         const Blame& blame, std::vector<std::string>& warnings) {
  const Canonical &workload = canonical["workload"], &parallel = canonical["parallel"];
  TransformerPlan plan;
  plan.card = card;
  plan.micro_batch = workload["micro_batch_size"].get<std::int64_t>();
  plan.tensor = grid.tensor();
  plan.context = grid.context();
  plan.expert = grid.expert();
  plan.expert_tensor = grid.expert_tensor();
  if (plan.card.experts > 0 && plan.expert > 1)
    plan.imbalance = static_cast<double>(parallel.value("imbalance", std::int64_t{1'000'000})) / 1e6;
  plan.shape = shape_of(parallel, grid, micro_batches_of(workload, grid, blame), blame);
  plan.sequence_parallel = parallel["sequence_parallel"].get<bool>();
  plan.flash = workload.value("attention", "flash") == "flash";
  plan.element_bytes = workload.value("precision", "bf16") == "fp32" ? 4 : 2;
  plan.gradient_bytes = parallel.value("grad_bytes", 4);
  if (plan.gradient_bytes == 3)
    blame.fail(at_parallel + "/grad_bytes", "expected 2 or 4, found 3", "2: gradients in bf16 or fp16; 4: in fp32");
  const std::string recompute = parallel.value("recompute", "none");
  plan.recompute = recompute == "full"        ? Recompute::full
                   : recompute == "selective" ? Recompute::selective
                                              : Recompute::none;
  plan.embedding_is_layer = counts_as_layer(parallel, "account_for_embedding", plan.shape, blame, warnings);
  plan.loss_is_layer = counts_as_layer(parallel, "account_for_loss", plan.shape, blame, warnings);
  expect_divisible(plan.card, plan, blame);
  expect_experts(parallel, plan, grid, blame, warnings);
  expect_weight_passes(parallel, plan, blame);
  if (plan.sequence_parallel && plan.tensor == 1) {
    warnings.push_back(blame.where(at_parallel + "/sequence_parallel") +
                       ": has no effect, because tensor is 1 and there are no tensor parallel ranks");
    plan.sequence_parallel = false;
  }
  plan.ring = plan.context > 1 && parallel["cp_comm"] == "p2p";
  if (plan.ring && !plan.flash)
    blame.fail(at_parallel + "/cp_comm", "expected all_gather with attention unfused, found p2p",
               "a ring combines the results of its steps using the log-sum-exp of the scores, which flash kernels "
               "return; Transformer Engine does not support unfused attention with context ranks either");
  if (plan.context == 1 && parallel.contains("cp_comm"))
    warnings.push_back(blame.where(at_parallel + "/cp_comm") +
                       ": has no effect, because context is 1 and no ranks share samples");
  return plan;
}

bool overlaps(const Canonical& parallel, const char* what) {
  if (!parallel.contains("overlap")) return false;
  const Canonical& list = parallel["overlap"];
  return std::find(list.begin(), list.end(), what) != list.end();
}

PlanShard shard_of(const Canonical& parallel) {
  const std::string word = parallel.value("shard", "none");
  for (const PlanShard shard : {PlanShard::optimizer, PlanShard::optimizer_gradients, PlanShard::full})
    if (word == to_string(shard)) return shard;
  return PlanShard::none;
}

/// A group of `hybrid` ranks has all of the model.
void take_full_sharding(const Canonical& parallel, PlanSpec& program, const Blame& blame) {
  for (const char* key : {"reshard_after_forward", "prefetch", "hybrid"})
    if (program.shard != PlanShard::full && parallel.contains(key))
      blame.fail(fmt::format("{}/{}", at_parallel, key),
                 fmt::format("expected {} only with shard full, found shard {}", key, to_string(program.shard)),
                 "only fully sharded weights are gathered layer by layer");
  program.reshards = parallel.value("reshard_after_forward", program.grid.pipeline() == 1);
  program.prefetch = parallel.value("prefetch", 1);
  if (!parallel.contains("hybrid")) return;
  const auto ranks = parallel["hybrid"].get<std::int64_t>();
  if (program.grid.data() % ranks != 0)
    blame.fail(
        at_parallel + "/hybrid",
        fmt::format("expected a number that divides the data parallel ranks, {}, found {}", program.grid.data(), ranks),
        "this many ranks share one copy of the model, and each group of them has a replica");
  program.shard_group = static_cast<int>(ranks);
}

void take_sharding(const Canonical& parallel, PlanSpec& program, const Blame& blame,
                   std::vector<std::string>& warnings) {
  const auto idle = [&](const std::string& key, const std::string& why) {
    warnings.push_back(blame.where(fmt::format("{}/{}", at_parallel, key)) + ": has no effect: " + why);
  };
  program.shard = shard_of(parallel);
  program.overlaps_reduce = overlaps(parallel, "grad_reduce");
  program.overlaps_gather = overlaps(parallel, "param_gather");
  const bool is_full = program.shard == PlanShard::full;
  if (program.overlaps_gather && program.shard == PlanShard::none)
    blame.fail(at_parallel + "/overlap", "expected param_gather only with a shard such as optimizer, found none",
               "without shards, no weights are gathered");
  if (program.shard == PlanShard::optimizer_gradients && program.grid.pipeline() > 1)
    blame.fail(
        at_parallel + "/shard",
        fmt::format("expected optimizer_gradients only with pipeline 1, found pipeline {}", program.grid.pipeline()),
        "the gradients of every micro-batch would have to be reduced, which DeepSpeed refuses as well: use optimizer "
        "or full");
  take_full_sharding(parallel, program, blame);
  if (is_full && program.grid.pipeline() > 1 && program.tied > 0)
    blame.fail(at_parallel + "/shard",
               fmt::format("expected an untied embedding with shard full and pipeline {}, found a tied one",
                           program.grid.pipeline()),
               "gathering an embedding on two stages is not modeled: use pipeline 1, or shard optimizer");
  if (is_full && (program.overlaps_reduce || program.overlaps_gather))
    idle("overlap", "with shard full, gathers and reductions always overlap");
  if (is_full && parallel.contains("bucket_size")) idle("bucket_size", "with shard full, each layer is a bucket");
  const PlanGrid& grid = program.grid;
  if (grid.data() > 1 || (grid.has_experts_apart() && grid.expert_data() > 1)) return;
  if (program.shard != PlanShard::none) idle("shard", "there is only one data parallel rank");
  if (!is_full && (program.overlaps_reduce || program.overlaps_gather))
    idle("overlap", "there is only one data parallel rank");
}

/// One algorithm does all collectives of a plan that no library decides.
void expect_served(const Canonical& parallel, const PlanSpec& program, const Blame& blame) {
  if (!parallel.contains("algorithm")) return;
  const std::string at = at_parallel + "/algorithm";
  const Algorithm* algorithm = &algorithm_of_groups(parallel["algorithm"], at, blame);
  for (const PlanExchange& exchange : plan_exchanges(program))
    if (exchange.op != CollectiveOp::send_recv && exchange.op != CollectiveOp::all_to_all &&
        !algorithm->supports(exchange.op))
      blame.fail(at,
                 fmt::format("expected an algorithm for {}, which this plan requires, found {}", to_string(exchange.op),
                             algorithm->name),
                 "use ring, which supports all of them, or remove the key");
}

/// With sequence_parallel the tensor ranks divide the tokens of a sample; context ranks have two chunks each.
void expect_tokens(const TransformerPlan& plan, const Blame& blame) {
  const int parts = plan.context * 2 * (plan.sequence_parallel ? plan.tensor : 1);
  if (plan.context > 1 && plan.sequence % parts != 0)
    blame.fail(at_workload + "/sequence",
               fmt::format("expected a multiple of two chunks for each of {} context ranks{}, {}, found {}",
                           plan.context, plan.sequence_parallel ? ", divided by tensor" : "", parts, plan.sequence),
               "each rank gets one chunk from either end of a sample, so all ranks have the same work");
  if (plan.sequence_parallel && plan.sequence % plan.tensor != 0)
    blame.fail(
        at_workload + "/sequence",
        fmt::format("expected a multiple of tensor, {}, with sequence_parallel, found {}", plan.tensor, plan.sequence),
        "each rank needs the same number of tokens");
}

/// True if tensor ranks send parts of activations between stages.
bool scatters_of(const Canonical& parallel, const TransformerPlan& plan, const Blame& blame,
                 std::vector<std::string>& warnings) {
  if (!parallel.value("scatter_gather", false)) return false;
  const std::string at = at_parallel + "/scatter_gather";
  const char* const why = plan.shape.stages == 1   ? "pipeline is 1 and no stage sends activations"
                          : plan.tensor == 1       ? "tensor is 1 and each rank has all activations"
                          : plan.sequence_parallel ? "with sequence_parallel, each rank has only its part of them"
                                                   : nullptr;
  if (why != nullptr) {
    warnings.push_back(blame.where(at) + ": has no effect, because " + why);
    return false;
  }
  const std::int64_t elements = plan.tokens() * plan.card.hidden;
  if (elements % plan.tensor != 0)
    blame.fail(at,
               fmt::format("expected tensor, {}, to divide the {} elements of a micro-batch's activations", plan.tensor,
                           elements),
               "in this case, Megatron-LM sends all of them: remove the key");
  return true;
}

Picoseconds update_time(const TransformerPlan& model, int stage, const OptimizerBytes& optimizer,
                        const PlanSharding& sharding, const KernelSpeeds& speeds) {
  const auto time = [&](std::int64_t parameters, int parts) {
    return static_cast<double>(picoseconds_per_second) * static_cast<double>(parameters) * optimizer.moved / parts /
           speeds.memory;
  };
  const std::int64_t experts = stage_expert_parameters(model, stage);
  return Picoseconds{std::llround(time(stage_parameters(model, stage) - experts, sharding.state) +
                                  time(experts, sharding.expert_state))};
}

}  // namespace

TrainingSpec plan_training_of(const Canonical& canonical, std::size_t gpus, double speed, const Blame& blame,
                              std::vector<std::string>& warnings) {
  const Canonical &workload = canonical["workload"], &parallel = canonical["parallel"];
  TrainingSpec out;
  training_detail::expect_one_model(workload, blame);
  expect_only_plan_keys(canonical, blame);
  out.regime = &plan_regime();
  out.workload = workload.contains("model") ? workload["model"].get<std::string>() : "transformer";
  const Field& row = field_at("training");
  read_members(row, canonical, out);
  read_members(*find(row.members, "optimizer"), canonical["optimizer"], out);
  const auto ranks = static_cast<std::int64_t>(canonical.contains("ranks") ? canonical["ranks"].size() : gpus);
  auto plan = std::make_shared<PlanTraining>();
  PlanSpec& program = plan->program;
  const TransformerCard card = card_of(workload, plan_place, blame);
  program.grid = grid_of(parallel, ranks, card.experts > 0, blame);
  const Workload made = training_detail::layers_of(workload, blame);
  TransformerPlan& model = plan->model = model_of(canonical, card, program.grid, blame, warnings);
  model.sequence = made.sequence;
  expect_tokens(model, blame);
  plan->global_batch = workload["global_batch_size"].get<std::int64_t>();
  plan->ignores_memory = canonical.value("memory", "check") == "ignore";
  program.name = fmt::format("a plan of {}", out.workload);
  program.schedule = model.shape.schedule;
  program.chunks = model.shape.chunks;
  program.micro_batches = model.shape.micro_batches;
  program.bucket = parallel.value("bucket_size", default_plan_bucket(shard_of(parallel), program.grid.data()));
  program.gradient_bytes = model.gradient_bytes;
  program.weight_bytes = model.element_bytes;
  if (model.card.tied) program.tied = embedding_parameters(model.card, model.tensor);
  take_sharding(parallel, program, blame, warnings);
  const KernelSpeeds speeds = speeds_of(workload["compute"], speed, out, blame);
  program.layers = transformer_layers(model, speeds);
  program.scatters = scatters_of(parallel, model, blame, warnings);
  program.activations = Bytes{model.tokens() * model.card.hidden * model.element_bytes /
                              (model.sequence_parallel || program.scatters ? model.tensor : 1)};
  const OptimizerBytes optimizer = optimizer_bytes(out.optimizer, model.element_bytes, model.gradient_bytes);
  for (int stage = 0; stage < program.grid.pipeline(); ++stage) {
    const PlanSharding sharding = plan_sharding(program, stage);
    plan->memory.push_back(plan_memory(model, stage, optimizer, sharding));
    Picoseconds update = out.step.update;
    if (update.count() == 0 && speeds.memory > 0) update = update_time(model, stage, optimizer, sharding, speeds);
    program.update.push_back(update);
  }
  for (const LayerCost& layer : made.layers)
    for (const std::int64_t tensor : layer.tensors) out.parameters += tensor;
  out.sequence = made.sequence;
  out.macs = std::accumulate(made.macs.begin(), made.macs.end(), std::int64_t{0});
  out.bytes_per_parameter = out.step.bytes_per_element = model.gradient_bytes;
  out.step.name = program.name;
  out.step.steps = program.iterations = out.warmup + canonical["steps"].get<int>();
  if (program.iterations == 1 && program.overlaps_gather && program.shard != PlanShard::full &&
      plan_detail::updates_parts(program))
    warnings.push_back(blame.where(at_parallel + "/overlap") +
                       ": param_gather has no effect: weights are gathered during the next step, and there is only one "
                       "step: set warmup to 1");
  expect_served(parallel, program, blame);
  out.plan = std::move(plan);
  training_detail::take_stragglers(canonical, ranks, out, blame, warnings);
  return out;
}

Canonical plan_gradients_of(const Canonical& canonical, const TrainingSpec& training) {
  const TransformerPlan& model = training.plan->model;
  Bytes most;
  for (int stage = 0; stage < model.shape.stages; ++stage)
    most = std::max(most, Bytes{stage_parameters(model, stage)} * model.gradient_bytes);
  Canonical collective{{"op", "all_reduce"}, {"bytes", most.count}, {"root", 0},
                       {"order", "given"},   {"seed", 0},           {"both_ways", false}};
  const Canonical& parallel = canonical["parallel"];
  collective["algorithm"] = parallel.contains("algorithm") ? parallel["algorithm"] : Canonical{{"name", "ring"}};
  if (canonical.contains("ranks")) collective["ranks"] = canonical["ranks"];
  return collective;
}

}  // namespace ringsim::scenarios
