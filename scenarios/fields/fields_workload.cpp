// Workloads, as fields: a model's layers or its card, the batch, and how fast a GPU computes.
#include <utility>

#include "scenarios/fields/fields.hpp"
#include "scenarios/fields/workload_files.hpp"

namespace ringsim::scenarios {

namespace {

Field layers_field() {
  const Field layer{
      .name = "layer",
      .type = Type::object,
      .doc = "One layer, or several equal ones.",
      .members = {
          {.name = "name",
           .type = Type::text,
           .doc = "What messages call it.",
           .required = true,
           .min = 1,
           .examples = {R"("embedding")"}},
          {.name = "times",
           .type = Type::whole,
           .doc = "How many such layers follow each other.",
           .fallback = "1",
           .min = 1,
           .max = 100'000},
          {.name = "parameters",
           .type = Type::whole,
           .doc = "How many parameters it has, in one tensor.",
           .required = true,
           .max = 1'000'000'000'000,
           .examples = {"2500000"}},
          {.name = "macs",
           .type = Type::whole,
           .doc = "Multiply-adds of the forward pass for one sample; by them `compute` is divided among the layers.",
           .max = 1'000'000'000'000'000},
          duration("forward", "Of the forward pass, for the whole batch; instead of `compute`.", R"("7 ms")"),
          duration("backward", "The same of the backward pass.", R"("13 ms")")}};
  return {.name = "layers",
          .type = Type::list,
          .doc = "The layers in the order of the forward pass; instead of `model`.",
          .min = 1,
          .examples = {R"([{"name": "all", "parameters": 2500000, "forward": "7 ms", "backward": "13 ms"}])"},
          .members = {layer}};
}

Field transformer_field() {
  const auto figure = [](const char* name, const char* doc, std::int64_t max, bool required) {
    return Field{.name = name, .type = Type::whole, .doc = doc, .required = required, .min = 1, .max = max};
  };
  const auto flag = [](const char* name, const char* doc, const char* fallback) {
    return Field{.name = name, .type = Type::boolean, .doc = doc, .fallback = fallback};
  };
  Field layers = figure("layers", "Layers.", 100'000, true),
        ffn = figure("ffn", "Inner size of the MLP.", 10'000'000, true);
  layers.words = {"num_layers", "num_hidden_layers"};
  ffn.words = {"ffn_hidden_size", "intermediate_size"};
  return {.name = "transformer",
          .type = Type::object,
          .doc = "A decoder by the figures of its model card; instead of `model`.",
          .otherwise = "the name of a card goes into \"model\", which takes the place of \"transformer\"",
          .examples = {R"({"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11008, "vocabulary": 32000})"},
          .members = {
              std::move(layers), figure("hidden", "Size of a token's vector.", 1'000'000, true),
              figure("heads", "Heads of the attention.", 100'000, true),
              figure("kv_heads", "Heads of keys and values; default: heads.", 100'000, false),
              figure("head_dim", "Size of a head; default: hidden / heads.", 1'000'000, false), std::move(ffn),
              figure("vocabulary", "Words.", 10'000'000, true),
              figure("positions", "Learned positions; default: none.", 100'000'000, false),
              figure("experts", "Experts of each layer; default: none.", 10'000, false),
              figure("top_k", "How many of them a token meets.", 10'000, false),
              figure("expert_ffn", "Inner size of one of them; default: ffn.", 10'000'000, false),
              figure("shared_ffn", "Inner size of an expert that all tokens meet; default: there is none.", 10'000'000,
                     false),
              figure("dense_layers", "This many first layers have an MLP instead of experts; default: none.", 100'000,
                     false),
              flag("gated", "The MLP has two matrices up to its inner size, as SwiGLU has.", "true"),
              flag("tied", "The head is the embedding.", "false"),
              flag("biases", "Matrices have biases, norms are LayerNorm, Q, K and V one matrix, as in GPT.", "false")}};
}

/// A plan and its measured step, in place of the share of matrix products.
Field measured_field(Field parallel) {
  parallel.doc = "The plan that was measured, as training.parallel.";
  const auto size = [](const char* name, const char* doc, std::int64_t most) {
    return Field{.name = name, .type = Type::whole, .doc = doc, .min = 1, .max = most, .examples = {"64"}};
  };
  return {.name = "measured",
          .type = Type::object,
          .doc =
              "parallel: one measured plan of the same model and GPUs, instead of `gemm`, which is solved from it by "
              "simulation.",
          .examples = {R"({"step": "14.6 s", "parallel": {"tensor": 8}})"},
          .members = {duration("step", "Its step, as measured.", R"("14.6 s")"), std::move(parallel),
                      size("micro_batch_size", "Its samples of a micro-batch; default: the workload's.", 1'000'000),
                      size("global_batch_size", "Its samples in a step; default: the workload's.", 1'000'000'000),
                      size("sequence", "Its tokens of a sample; default: the workload's.", 100'000'000),
                      size("nodes", "Nodes of the cluster that it ran on; default: all.", 1'000'000)},
          .only_said = true};
}

}  // namespace

Field serving_workload_field() {
  std::vector<std::string> models;
  for (const auto& [name, text] : workload_files()) models.push_back(name);
  const auto share = [](const char* name, const char* doc, const char* example) {
    return Field{.name = name, .type = Type::portion, .doc = doc, .required = true, .examples = {example}};
  };
  const Field compute{
      .name = "compute",
      .type = Type::object,
      .doc = "The rates that kernels reach. A kernel takes the longer time of its operations and its bytes.",
      .required = true,
      .members = {
          share("gemm", "The share of `peak` that matrix products reach. No share has a default.", R"("70%")"),
          share("attention", "The share of `peak` that attention reaches.", R"("50%")"),
          share("memory", "The share of `hbm` that memory-limited kernels reach.", R"("80%")"),
          {.name = "peak",
           .type = Type::text,
           .doc = "Operations per second of the GPU's tensor cores at this precision.",
           .required = true,
           .min = 1,
           .examples = {R"("1979 TFLOP/s")"}},
          {.name = "hbm",
           .type = Type::rate,
           .doc = "Bytes per second of the GPU's memory.",
           .required = true,
           .min = 1,
           .examples = {R"("3350 GB/s")"}},
          {.name = "source", .type = Type::text, .doc = "Where the figures come from.", .min = 1, .varies = false}}};
  return {.name = "workload",
          .type = Type::object,
          .doc = "The model, its precision, and how fast a GPU computes.",
          .required = true,
          .members = {{.name = "model",
                       .type = Type::text,
                       .doc = "A model of scenarios/workloads that has a card.",
                       .choices = std::move(models),
                       .numbers = Numbers::exact,
                       .otherwise = "other models are not modeled yet; give the card: \"transformer\": {...}"},
                      transformer_field(),
                      {.name = "precision",
                       .type = Type::text,
                       .doc = "Of the layers' matrices and their products; fp8: 1 B per weight. Embedding, head, norms "
                              "and routers have 2 B.",
                       .fallback = "bf16",
                       .choices = {"fp16", "bf16", "fp8"}},
                      {.name = "kv_bytes",
                       .type = Type::whole,
                       .doc = "Bytes of an element of the KV cache.",
                       .fallback = "2",
                       .min = 1,
                       .max = 2,
                       .words = {"kv_cache_dtype"}},
                      compute},
          .named_by = "model",
          .one_of = {{"model", "transformer"}}};
}

Field workload_field(Field parallel) {
  std::vector<std::string> models;
  for (const auto& [name, text] : workload_files()) models.push_back(name);
  const auto share = [](const char* name, const char* doc, const char* example) {
    return Field{.name = name, .type = Type::portion, .doc = doc, .examples = {example}};
  };
  const Field compute{
      .name = "compute",
      .type = Type::object,
      .doc = "How long a GPU computes: a measured step, or its speed.",
      .members = {
          duration("step", "A step of one GPU with this batch, as measured, the update included.", R"("351.5 ms")"),
          {.name = "flops",
           .type = Type::text,
           .doc = "The GPU's peak; a multiply-add is two operations. Needs `efficiency`.",
           .min = 1,
           .examples = {R"("125 TFLOP/s")"}},
          {.name = "efficiency",
           .type = Type::portion,
           .doc = "The share of the peak that is reached. There is no default: state it.",
           .examples = {R"("40%")"}},
          share("gemm", "parallel: the share of `peak` that matrix products reach. No share has a default.",
                R"("72%")"),
          share("attention", "parallel: the share of `peak` that the attention core reaches.", R"("35%")"),
          share("memory", "parallel: the share of `hbm` that memory-limited kernels reach.", R"("80%")"),
          {.name = "peak",
           .type = Type::text,
           .doc = "parallel: operations per second of the GPU's tensor cores at this precision.",
           .min = 1,
           .examples = {R"("312 TFLOP/s")"}},
          {.name = "hbm",
           .type = Type::rate,
           .doc = "parallel: bytes per second of the GPU's memory.",
           .min = 1,
           .examples = {R"("2039 GB/s")"}},
          measured_field(std::move(parallel)),
          {.name = "backward",
           .type = Type::factor,
           .doc = "The time of the backward pass over that of the forward pass: two products per layer instead of one.",
           .fallback = "2",
           .max = 100'000'000},
          {.name = "source", .type = Type::text, .doc = "Where the figures come from.", .min = 1, .varies = false}}};
  return {
      .name = "workload",
      .type = Type::object,
      .doc = "What one GPU computes in a step.",
      .required = true,
      .examples = {R"({"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}})"},
      .members =
          {{.name = "model",
            .type = Type::text,
            .doc = "A model of scenarios/workloads.",
            .choices = std::move(models),
            .numbers = Numbers::exact,
            .otherwise =
                "other models are not modeled yet; say what their layers are: \"layers\": [{\"name\": \"all\", "
                "\"parameters\": 2500000, \"forward\": \"7 ms\", \"backward\": \"13 ms\"}]"},
           layers_field(),
           transformer_field(),
           {.name = "sequence",
            .type = Type::whole,
            .doc = "Tokens of a sample, with a transformer or the card of one; default: the card's.",
            .min = 1,
            .max = 100'000'000,
            .examples = {"4096"},
            .words = {"seq_length", "seq_len", "sequence_length"}},
           {.name = "batch",
            .type = Type::whole,
            .doc = "Samples per GPU and step.",
            .min = 1,
            .max = 1'000'000'000,
            .examples = {"32"},
            .words = {"batch_size"}},
           {.name = "global_batch",
            .type = Type::whole,
            .doc = "Instead of batch: samples of all GPUs in a step. Each computes its part, in its part of the times.",
            .min = 1,
            .max = 1'000'000'000,
            .examples = {"256"},
            .words = {}},
           {.name = "micro_batch_size",
            .type = Type::whole,
            .doc = "parallel: samples of a micro-batch.",
            .min = 1,
            .max = 1'000'000,
            .examples = {"2"}},
           {.name = "global_batch_size",
            .type = Type::whole,
            .doc = "parallel: samples of all GPUs in a step.",
            .min = 1,
            .max = 1'000'000'000,
            .examples = {"1536"}},
           {.name = "precision",
            .type = Type::text,
            .doc = "parallel: of weights and activations; default: bf16. fp16 and bf16 keep a copy of the weights in "
                   "fp32.",
            .choices = {"fp16", "bf16", "fp32"},
            .known_names = {{"fp8", "which is not modeled yet", "state the peak of bf16, or shares that fit"}}},
           {.name = "attention",
            .type = Type::text,
            .doc = "parallel: flash: one kernel that keeps no scores (default); unfused: products, softmax and dropout "
                   "apart.",
            .choices = {"flash", "unfused"}},
           {.name = "sample_bytes",
            .type = Type::size,
            .doc = "Of a sample that the master of data_parallel, or with sample_bytes a parameter server, sends to a "
                   "GPU.",
            .examples = {R"("588 KiB")"}},
           {.name = "output_bytes",
            .type = Type::size,
            .doc = "data_parallel: of the model's outputs for a sample; their gradients are as large.",
            .examples = {R"("4000 B")"}},
           {.name = "activation_bytes",
            .type = Type::size,
            .doc = "model_parallel: of the output of a GPU's last layer for a sample; its gradient is as large.",
            .min = 1,
            .examples = {R"("784 KiB")"}},
           {.name = "bytes_per_parameter",
            .type = Type::whole,
            .doc = "Of a gradient: 4 for fp32, 2 for fp16 and bf16.",
            .fallback = "4",
            .min = 1,
            .max = 8},
           compute},
      .named_by = "model",
      .one_of = {{"model", "layers", "transformer"}, {"batch", "global_batch", "global_batch_size"}}};
}

}  // namespace ringsim::scenarios
