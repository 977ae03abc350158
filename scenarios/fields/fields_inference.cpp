// Steps of inference, as fields: a forward pass of a transformer that serves.
#include <utility>

#include "scenarios/fields/fields.hpp"

namespace ringsim::scenarios {

namespace {

Field serving_parallel_field(Field algorithm) {
  algorithm.required = false;
  algorithm.doc =
      "The algorithm of the all-reduces if no library is set. Default: ring. Logits are gathered with direct.";
  return {.name = "parallel",
          .type = Type::object,
          .doc = "How the ranks divide one copy of the model.",
          .required = true,
          .examples = {R"({"tensor": 8})"},
          .members = {{.name = "tensor",
                       .type = Type::whole,
                       .doc = "The number of ranks that split each layer.",
                       .fallback = "1",
                       .min = 1,
                       .max = most_ranks,
                       .words = {"tp", "tensor_parallel", "tensor_parallel_size"}},
                      {.name = "expert",
                       .type = Type::whole,
                       .doc = "The number of ranks that hold different experts. Values above 1 require tensor 1: each "
                              "rank then has its own sequences and the complete attention.",
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
      .doc =
          "Launch times on the host. A step is one CUDA graph; its collectives use transport.launch or the library's "
          "launch.",
      .members = {
          duration("launch", "The gap before each kernel of the graph, after the previous one ends.", R"("1 us")",
                   "0 us"),
          duration("step", "The time before the first kernel of a step, for scheduling and launching the graph.",
                   R"("200 us")", "0 us")}};
  return {
      .name = "inference",
      .type = Type::object,
      .doc =
          "One inference step of a transformer, instead of `collective`: the prefill of prompts, or the decoding of "
          "one token per sequence.",
      .members = {
          serving_workload_field(),
          serving_parallel_field(std::move(algorithm)),
          {.name = "phase",
           .type = Type::text,
           .doc = "prefill: all tokens of the prompts at once; decode: one token per sequence.",
           .required = true,
           .choices = {"prefill", "decode"}},
          {.name = "batch",
           .type = Type::whole,
           .doc = "The number of sequences computed together, over all ranks.",
           .required = true,
           .min = 1,
           .max = 1'000'000,
           .examples = {"8"},
           .words = {"concurrency", "batch_size", "max_num_seqs", "max_batch_size"}},
          {.name = "context",
           .type = Type::whole,
           .doc = "Tokens per sequence: the length of the prompt (prefill), or the number of tokens whose keys and "
                  "values the new token attends to (decode).",
           .required = true,
           .min = 1,
           .max = 100'000'000,
           .examples = {"4096"},
           .words = {"input_len", "max_model_len", "isl"}},
          host,
          ranks_field("Names of the serving GPUs, in rank order. Default: the first (tensor times expert) GPUs."),
          {.name = "gpu_memory",
           .type = Type::size,
           .doc = "The memory of a GPU, which must hold the weights and the KV cache. Default: as in the machine file.",
           .min = 1,
           .examples = {R"("80 GiB")"}},
          {.name = "memory",
           .type = Type::text,
           .doc = "ignore: run even if the batch does not fit in GPU memory. Default: check.",
           .choices = {"check", "ignore"}}}};
}

}  // namespace ringsim::scenarios
