// Plans of tensor, pipeline and data parallelism, as fields; in Megatron-LM's words without "_parallel_size".
#include <utility>

#include "algorithms/training/pipeline_order.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

Field parallel_field(Field algorithm) {
  const auto size = [](const char* name, const char* doc, const char* fallback, std::vector<std::string> words) {
    return Field{.name = name,
                 .type = Type::whole,
                 .doc = doc,
                 .fallback = fallback,
                 .min = 1,
                 .max = most_ranks,
                 .words = std::move(words)};
  };
  const auto choice = [](const char* name, const char* doc, std::vector<std::string> choices,
                         std::vector<KnownName> known) {
    return Field{
        .name = name, .type = Type::text, .doc = doc, .choices = std::move(choices), .known_names = std::move(known)};
  };
  const KnownName zero_bubble{"zero_bubble", "which is called zero_bubble_h1 or zero_bubble_h2 here",
                              R"("schedule": "zero_bubble_h1")"};
  const char *const not_modeled = "which is not modeled",
                    *const there_are = "use gpipe, 1f1b, interleaved, zero_bubble_h1 or zero_bubble_h2";
  std::vector<std::string> schedules;
  for (const PipelineSchedule each : pipeline_schedules) schedules.emplace_back(to_string(each));
  algorithm.doc = "The algorithm of all collectives if no library is set. Default: ring.";
  return {
      .name = "parallel",
      .type = Type::object,
      .doc =
          "How to parallelize a transformer: tensor, pipeline, data, context and expert parallelism, instead of "
          "`regime`.",
      .examples = {R"({"tensor": 8, "pipeline": 2})"},
      .members =
          {size("tensor", "The number of ranks that split each layer.", "1",
                {"tp", "tensor_parallel", "tensor_model_parallel_size"}),
           size("pipeline", "The number of pipeline stages.", "1",
                {"pp", "pipeline_parallel", "pipeline_model_parallel_size"}),
           size("virtual_pipeline", "The number of layer chunks per stage.", "1",
                {"vp", "vpp", "virtual_pipeline_model_parallel_size", "num_model_chunks"}),
           {.name = "account_for_embedding",
            .type = Type::boolean,
            .doc = "The embedding counts as a layer when layers are divided among the stages. Default: false.",
            .examples = {"true"},
            .words = {"account_for_embedding_in_pipeline_split"}},
           {.name = "account_for_loss",
            .type = Type::boolean,
            .doc =
                "The output layer with the loss counts as a layer when layers are divided among the stages. Default: "
                "false.",
            .examples = {"true"},
            .words = {"account_for_loss_in_pipeline_split"}},
           size("data",
                "The number of ranks with the same part of the model. It follows from the number of GPUs and can be "
                "omitted.",
                "", {"dp", "data_parallel", "data_parallel_size"}),
           size("context", "The number of ranks that split the tokens of each sample.", "1",
                {"cp", "context_parallel", "context_parallel_size"}),
           size("expert", "The number of ranks that hold different experts, taken from the data and context ranks.",
                "1", {"ep", "expert_parallel", "expert_model_parallel_size"}),
           {.name = "expert_tensor",
            .type = Type::whole,
            .doc = "The number of ranks that split each expert: 1 or the value of tensor (default).",
            .min = 1,
            .max = most_ranks,
            .examples = {"1"},
            .words = {"etp", "expert_tensor_parallel_size"}},
           {.name = "imbalance",
            .type = Type::factor,
            .doc = "With expert above 1: the number of tokens routed to the busiest rank divided by the mean. Default: "
                   "1, which gives all ranks the same number.",
            .min = 1'000'000,
            .max = 1'000'000'000,
            .examples = {"1.2"},
            .words = {"hottest", "load_imbalance"}},
           {.name = "order",
            .type = Type::text,
            .doc = "The order in which ranks are assigned to the dimensions, fastest-varying first.",
            .fallback = "tp-cp-ep-dp-pp",
            .min = 1,
            .examples = {R"("tp-cp-ep-pp-dp")"}},
           {.name = "sequence_parallel",
            .type = Type::boolean,
            .doc = "Tensor ranks split the tokens of norms and dropout, using reduce_scatter and all_gather instead of "
                   "all_reduce.",
            .fallback = "false"},
           {.name = "scatter_gather",
            .type = Type::boolean,
            .doc = "With tensor and pipeline, without sequence_parallel: each tensor rank sends its part of the "
                   "activations to the next stage, which gathers them. Default: false.",
            .examples = {"true"},
            .words = {"scatter_gather_tensors_in_pipeline", "pipe_partitioned", "grad_partitioned"}},
           choice("schedule",
                  "The order of the forward and backward passes of a stage. Default: 1f1b, or interleaved with "
                  "virtual_pipeline.",
                  std::move(schedules),
                  {zero_bubble, {"zb_v", not_modeled, there_are}, {"dualpipe", not_modeled, there_are}}),
           choice("shard",
                  "The state that is sharded over the data parallel ranks. optimizer: the optimizer state (ZeRO-1); "
                  "optimizer_gradients: also gradients (ZeRO-2); full: also weights (ZeRO-3, FSDP). Default: none.",
                  {"none", "optimizer", "optimizer_gradients", "full"},
                  {{"fsdp", "which is called full here", R"("shard": "full")"},
                   {"fsdp2", "which is called full here", R"("shard": "full")"},
                   {"hsdp", "which is called full with hybrid here", R"("shard": "full", "hybrid": 8)"},
                   {"zero1", "which is called optimizer here", R"("shard": "optimizer")"},
                   {"zero2", "which is called optimizer_gradients here", R"("shard": "optimizer_gradients")"},
                   {"zero3", "which is called full here", R"("shard": "full")"}}),
           {.name = "reshard_after_forward",
            .type = Type::boolean,
            .doc = "With shard full: free the weights of a layer after its forward pass and gather them again for its "
                   "backward pass. Default: true, or false with a pipeline.",
            .examples = {"false"}},
           {.name = "prefetch",
            .type = Type::whole,
            .doc = "With shard full: the number of layers whose weights are gathered ahead of time. Default: 1.",
            .min = 0,
            .max = 1000,
            .examples = {"2"}},
           {.name = "hybrid",
            .type = Type::whole,
            .doc = "With shard full: the number of ranks over which one copy of the model is sharded; each group of "
                   "that size has a replica. Default: all data parallel ranks.",
            .min = 2,
            .max = most_ranks,
            .examples = {"8"},
            .words = {"hsdp", "hybrid_shard"}},
           choice("recompute",
                  "The activations that the backward pass recomputes. selective: the attention core; full: whole "
                  "layers. Default: none.",
                  {"none", "selective", "full"}, {}),
           {.name = "overlap",
            .type = Type::list,
            .doc =
                "The communication that overlaps with computation. grad_reduce: gradient buckets, during the backward "
                "pass of the last micro-batch; param_gather: weights, during the forward pass of the next step.",
            .examples = {R"(["grad_reduce"])"},
            .members = {choice(
                "overlap", "One kind of communication.", {"grad_reduce", "param_gather"},
                {{"tensor", "which is not modeled", "use grad_reduce or param_gather"},
                 {"tp", "which is not modeled", "use grad_reduce or param_gather"},
                 {"expert", "which is not modeled", "use grad_reduce or param_gather"},
                 {"p2p", "which cannot be chosen: transfers between stages always overlap", "leave it out"}})},
            .unique = true},
           choice("cp_comm",
                  "With context: how context ranks exchange keys and values. all_gather: gather all of them before the "
                  "attention; p2p: pass them around a ring in steps that overlap with the attention.",
                  {"all_gather", "p2p"},
                  {{"ring", "which is called p2p", R"(write "p2p", as Megatron-LM does)"},
                   {"a2a", "which is not modeled", R"(use all_gather or p2p)"},
                   {"a2a+p2p", "which is not modeled", R"(use all_gather or p2p)"}}),
           {.name = "grad_bytes",
            .type = Type::whole,
            .doc = "Bytes per gradient: 2 or 4. Default: 4.",
            .min = 2,
            .max = 4,
            .examples = {"2"}},
           {.name = "bucket_size",
            .type = Type::whole,
            .doc = "With overlap grad_reduce: the number of parameters per bucket. Default: 40 million, or 1 million "
                   "per data rank if that is more; 500 million with shard optimizer_gradients.",
            .min = 1,
            .max = 1'000'000'000'000,
            .examples = {"40000000"}},
           std::move(algorithm)},
      .only_said = true};
}

}  // namespace ringsim::scenarios
