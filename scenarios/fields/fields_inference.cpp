// Steps of inference, as fields: a forward pass of a transformer that serves.
#include <utility>

#include "scenarios/fields/fields.hpp"

namespace ringsim::scenarios {

namespace {

Field serving_parallel_field(Field algorithm) {
  algorithm.required = false;
  algorithm.doc = "The schedule of the all-reduces, without a library; default: ring. Logits are gathered by direct.";
  return {.name = "parallel",
          .type = Type::object,
          .doc = "The ranks of one copy of the model.",
          .required = true,
          .examples = {R"({"tensor": 8})"},
          .members = {{.name = "tensor",
                       .type = Type::whole,
                       .doc = "Ranks that split each layer.",
                       .fallback = "1",
                       .min = 1,
                       .max = most_ranks,
                       .words = {"tp", "tensor_parallel", "tensor_parallel_size"}},
                      {.name = "expert",
                       .type = Type::whole,
                       .doc = "Ranks that have different experts. With more than 1 tensor is 1: each has sequences of "
                              "its own, and all of the "
                              "attention.",
                       .fallback = "1",
                       .min = 1,
                       .max = most_ranks,
                       .words = {"ep", "expert_parallel", "enable_expert_parallel"}},
                      std::move(algorithm)}};
}

}  // namespace

Field inference_field(Field algorithm) {
  const Field host{
      .name = "host",
      .type = Type::object,
      .doc = "Launches. A step is one CUDA graph; its collectives take transport.launch, or the library's launch.",
      .members = {duration("launch", "Before each kernel of the graph: from the end of what comes before it.",
                           R"("1 us")", "0 us"),
                  duration("step", "Once a step, before its first kernel: scheduling, and launching the graph.",
                           R"("200 us")", "0 us")}};
  return {
      .name = "inference",
      .type = Type::object,
      .doc =
          "One step of a transformer that serves, instead of `collective`: prefill of prompts, or decode of a "
          "token for each sequence.",
      .members = {
          serving_workload_field(),
          serving_parallel_field(std::move(algorithm)),
          {.name = "phase",
           .type = Type::text,
           .doc = "prefill: all tokens of the prompts at once; decode: one token for each sequence.",
           .required = true,
           .choices = {"prefill", "decode"}},
          {.name = "batch",
           .type = Type::whole,
           .doc = "Sequences that are computed together, of all ranks.",
           .required = true,
           .min = 1,
           .max = 1'000'000,
           .examples = {"8"},
           .words = {"concurrency", "batch_size", "max_num_seqs", "max_batch_size"}},
          {.name = "context",
           .type = Type::whole,
           .doc = "Tokens of each sequence: of prefill the prompt; of decode those whose keys and values "
                  "the new token meets.",
           .required = true,
           .min = 1,
           .max = 100'000'000,
           .examples = {"4096"},
           .words = {"input_len", "max_model_len", "isl"}},
          host,
          ranks_field("Names of the gpus that serve, in rank order; default: the first tensor times expert of all."),
          {.name = "gpu_memory",
           .type = Type::size,
           .doc = "A GPU's memory for weights and the KV cache; default: that of its machine's file.",
           .min = 1,
           .examples = {R"("80 GiB")"}},
          {.name = "memory",
           .type = Type::text,
           .doc = "ignore: run a batch that the GPUs have no room for; default: check.",
           .choices = {"check", "ignore"}}}};
}

}  // namespace ringsim::scenarios
