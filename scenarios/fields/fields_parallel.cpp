// Plans of tensor, pipeline and data parallelism, as fields; in Megatron-LM's words without "_parallel_size".
#include <utility>

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
  const KnownName zero_bubble{"zero_bubble", "which is called zero_bubble_h1 here", R"("schedule": "zero_bubble_h1")"};
  const char *const not_modeled = "which is not modeled yet",
                    *const there_are = "there are gpipe, 1f1b, interleaved and zero_bubble_h1";
  algorithm.doc = "The schedule of all collectives, without a library; default: ring.";
  return {
      .name = "parallel",
      .type = Type::object,
      .doc = "A plan of tensor, pipeline, data, context and expert parallelism for a transformer; instead of `regime`.",
      .examples = {R"({"tensor": 8, "pipeline": 2})"},
      .members =
          {size("tensor", "Ranks that split each layer.", "1", {"tp", "tensor_parallel", "tensor_model_parallel_size"}),
           size("pipeline", "Stages.", "1", {"pp", "pipeline_parallel", "pipeline_model_parallel_size"}),
           size("virtual_pipeline", "Chunks of layers of each stage.", "1",
                {"vp", "vpp", "virtual_pipeline_model_parallel_size", "num_model_chunks"}),
           size("data", "Ranks with the same part of the model; it follows from the GPUs.", "",
                {"dp", "data_parallel", "data_parallel_size"}),
           size("context", "Ranks that split each sample by its tokens.", "1",
                {"cp", "context_parallel", "context_parallel_size"}),
           size("expert", "Ranks that have different experts; they are taken from data and context ranks.", "1",
                {"ep", "expert_parallel", "expert_model_parallel_size"}),
           {.name = "expert_tensor",
            .type = Type::whole,
            .doc = "Ranks that split each expert: 1 or as tensor; default: as tensor.",
            .min = 1,
            .max = most_ranks,
            .examples = {"1"},
            .words = {"etp", "expert_tensor_parallel_size"}},
           {.name = "imbalance",
            .type = Type::factor,
            .doc = "With expert above 1: tokens routed to the busiest rank, over the mean; default: 1, all ranks get "
                   "equally many.",
            .min = 1'000'000,
            .max = 1'000'000'000,
            .examples = {"1.2"},
            .words = {"hottest", "load_imbalance"}},
           {.name = "order",
            .type = Type::text,
            .doc = "Which number of a rank varies fastest, then the next.",
            .fallback = "tp-cp-ep-dp-pp",
            .min = 1,
            .examples = {R"("tp-cp-ep-pp-dp")"}},
           {.name = "sequence_parallel",
            .type = Type::boolean,
            .doc = "Tensor ranks divide norms and dropout by tokens: reduce_scatter and all_gather in place of "
                   "all_reduce.",
            .fallback = "false"},
           choice("schedule", "The order of a stage's passes; default: 1f1b, with virtual_pipeline interleaved.",
                  {"gpipe", "1f1b", "interleaved", "zero_bubble_h1"},
                  {zero_bubble, {"zero_bubble_h2", not_modeled, there_are}, {"dualpipe", not_modeled, there_are}}),
           choice("shard",
                  "What data ranks divide. optimizer: its state (ZeRO-1); optimizer_gradients: gradients too (ZeRO-2); "
                  "full: weights too (ZeRO-3, FSDP); default: none.",
                  {"none", "optimizer", "optimizer_gradients", "full"},
                  {{"fsdp", "which is called full here", R"("shard": "full")"},
                   {"fsdp2", "which is called full here", R"("shard": "full")"},
                   {"hsdp", "which is full with hybrid here", R"("shard": "full", "hybrid": 8)"},
                   {"zero1", "which is called optimizer here", R"("shard": "optimizer")"},
                   {"zero2", "which is called optimizer_gradients here", R"("shard": "optimizer_gradients")"},
                   {"zero3", "which is called full here", R"("shard": "full")"}}),
           {.name = "reshard_after_forward",
            .type = Type::boolean,
            .doc = "With shard full: weights are freed after a layer's forward pass and gathered again for its "
                   "backward pass; default: true, in a pipeline false.",
            .examples = {"false"}},
           {.name = "prefetch",
            .type = Type::whole,
            .doc = "With shard full: layers whose weights are gathered ahead; default: 1.",
            .min = 0,
            .max = 1000,
            .examples = {"2"}},
           {.name = "hybrid",
            .type = Type::whole,
            .doc = "With shard full: ranks that divide a model; groups of them have replicas; default: all data "
                   "parallel ranks.",
            .min = 2,
            .max = most_ranks,
            .examples = {"8"},
            .words = {"hsdp", "hybrid_shard"}},
           choice("recompute", "What the backward pass computes again: selective: the attention core; default: none.",
                  {"none", "selective", "full"}, {}),
           {.name = "overlap",
            .type = Type::list,
            .doc = "What overlaps with computation: grad_reduce: buckets during the last micro-batch's backward pass; "
                   "param_gather: weights during the next step's forward pass.",
            .examples = {R"(["grad_reduce"])"},
            .members = {choice(
                "overlap", "One of them.", {"grad_reduce", "param_gather"},
                {{"tensor", "which is not modeled yet", "there are grad_reduce and param_gather"},
                 {"tp", "which is not modeled yet", "there are grad_reduce and param_gather"},
                 {"expert", "which is not modeled yet", "there are grad_reduce and param_gather"},
                 {"p2p", "which is no choice: transfers between stages always overlap", "leave it out"}})},
            .unique = true},
           choice("cp_comm",
                  "With context: how ranks see each other's keys and values. all_gather: all of them before the "
                  "attention. p2p: around a ring, in steps that overlap with those of the attention.",
                  {"all_gather", "p2p"},
                  {{"ring", "which is called p2p", R"(write "p2p", as Megatron-LM does)"},
                   {"a2a", "which is not modeled yet", R"(there are all_gather and p2p)"},
                   {"a2a+p2p", "which is not modeled yet", R"(there are all_gather and p2p)"}}),
           {.name = "grad_bytes",
            .type = Type::whole,
            .doc = "Of a gradient: 2 or 4; default: 4.",
            .min = 2,
            .max = 4,
            .examples = {"2"}},
           {.name = "bucket_size",
            .type = Type::whole,
            .doc = "Parameters that close a bucket, with overlap grad_reduce; default: 40 million, or 1 million for "
                   "each data rank if that is more; with shard optimizer_gradients 500 million.",
            .min = 1,
            .max = 1'000'000'000'000,
            .examples = {"40000000"}},
           std::move(algorithm)},
      .only_said = true};
}

}  // namespace ringsim::scenarios
