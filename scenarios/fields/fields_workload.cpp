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
      .doc = "One layer, or several identical layers.",
      .members = {
          {.name = "name",
           .type = Type::text,
           .doc = "The name of the layer in output.",
           .required = true,
           .min = 1,
           .examples = {R"("embedding")"}},
          {.name = "times",
           .type = Type::whole,
           .doc = "The number of identical layers in sequence.",
           .fallback = "1",
           .min = 1,
           .max = 100'000},
          {.name = "parameters",
           .type = Type::whole,
           .doc = "The number of parameters, all in one tensor.",
           .required = true,
           .max = 1'000'000'000'000,
           .examples = {"2500000"}},
          {.name = "macs",
           .type = Type::whole,
           .doc = "The multiply-adds of the forward pass for one sample. `compute` is divided among the layers in "
                  "proportion.",
           .max = 1'000'000'000'000'000},
          duration("forward", "The time of the forward pass for the whole batch, instead of `compute`.", R"("7 ms")"),
          duration("backward", "The time of the backward pass for the whole batch.", R"("13 ms")")}};
  return {.name = "layers",
          .type = Type::list,
          .doc = "The layers in the order of the forward pass, instead of `model`.",
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
  Field layers = figure("layers", "The number of layers.", 100'000, true),
        ffn = figure("ffn", "The inner size of the MLP.", 10'000'000, true);
  layers.words = {"num_layers", "num_hidden_layers"};
  ffn.words = {"ffn_hidden_size", "intermediate_size"};
  return {
      .name = "transformer",
      .type = Type::object,
      .doc = "A decoder described by the figures of its model card, instead of `model`.",
      .otherwise = "to use the card of a model, write its name as \"model\" instead of \"transformer\"",
      .examples = {R"({"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11008, "vocabulary": 32000})"},
      .members = {
          std::move(layers), figure("hidden", "The hidden size (the length of a token's vector).", 1'000'000, true),
          figure("heads", "The number of attention heads.", 100'000, true),
          figure("kv_heads", "The number of key-value heads. Default: heads.", 100'000, false),
          figure("head_dim", "The size of a head. Default: hidden / heads.", 1'000'000, false), std::move(ffn),
          figure("vocabulary", "The vocabulary size.", 10'000'000, true),
          figure("positions", "The number of learned positions. Default: none.", 100'000'000, false),
          figure("experts", "The number of experts per layer. Default: none.", 10'000, false),
          figure("top_k", "The number of experts that process each token.", 10'000, false),
          figure("expert_ffn", "The inner size of an expert. Default: ffn.", 10'000'000, false),
          figure("shared_ffn",
                 "The inner size of the shared expert, which processes all tokens. Default: no shared expert.",
                 10'000'000, false),
          figure("dense_layers", "The number of leading layers that have an MLP instead of experts. Default: none.",
                 100'000, false),
          flag("gated", "True if the MLP has two matrices up to its inner size, as in SwiGLU.", "true"),
          flag("tied", "True if the output head shares the weights of the embedding.", "false"),
          flag("biases", "True if matrices have biases, norms are LayerNorm, and Q, K and V are one matrix, as in GPT.",
               "false")}};
}

/// A plan and its measured step, in place of the share of matrix products.
Field measured_field(Field parallel) {
  parallel.doc = "The measured plan, with the same keys as training.parallel.";
  const auto size = [](const char* name, const char* doc, std::int64_t most) {
    return Field{.name = name, .type = Type::whole, .doc = doc, .min = 1, .max = most, .examples = {"64"}};
  };
  return {.name = "measured",
          .type = Type::object,
          .doc =
              "parallel: a measured plan of the same model on the same GPUs, instead of `gemm`. Simulation determines "
              "the value of `gemm` that reproduces it.",
          .examples = {R"({"step": "14.6 s", "parallel": {"tensor": 8}})"},
          .members = {duration("step", "The measured step time.", R"("14.6 s")"), std::move(parallel),
                      size("micro_batch_size",
                           "The samples per micro-batch of the measured plan. Default: as in the workload.", 1'000'000),
                      size("global_batch_size",
                           "The samples per step of the measured plan. Default: as in the workload.", 1'000'000'000),
                      size("sequence", "The tokens per sample of the measured plan. Default: as in the workload.",
                           100'000'000),
                      size("nodes", "The number of nodes that the measured plan ran on. Default: all.", 1'000'000)},
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
      .doc =
          "The rates that kernels reach. The time of a kernel is that of its operations or of its bytes, whichever is "
          "longer.",
      .required = true,
      .members = {
          share("gemm", "The share of `peak` that matrix products reach. Required; no default fits all software.",
                R"("70%")"),
          share("attention", "The share of `peak` that attention reaches.", R"("50%")"),
          share("memory", "The share of `hbm` that memory-limited kernels reach.", R"("80%")"),
          {.name = "peak",
           .type = Type::text,
           .doc = "The operations per second of the GPU's tensor cores at this precision.",
           .required = true,
           .min = 1,
           .examples = {R"("1979 TFLOP/s")"}},
          {.name = "hbm",
           .type = Type::rate,
           .doc = "The bandwidth of the GPU's memory.",
           .required = true,
           .min = 1,
           .examples = {R"("3350 GB/s")"}},
          {.name = "source", .type = Type::text, .doc = "The source of the figures.", .min = 1, .varies = false}}};
  return {.name = "workload",
          .type = Type::object,
          .doc = "The model, its precision, and the speed of a GPU.",
          .required = true,
          .members = {{.name = "model",
                       .type = Type::text,
                       .doc = "A model in scenarios/workloads that has a model card.",
                       .choices = std::move(models),
                       .numbers = Numbers::exact,
                       .otherwise = "for other models, give the model card: \"transformer\": {...}"},
                      transformer_field(),
                      {.name = "precision",
                       .type = Type::text,
                       .doc = "The precision of the layers' matrices and of their products; fp8: 1 B per weight. The "
                              "embedding, head, norms and routers use 2 B.",
                       .fallback = "bf16",
                       .choices = {"fp16", "bf16", "fp8"}},
                      {.name = "kv_bytes",
                       .type = Type::whole,
                       .doc = "Bytes per element of the KV cache.",
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
      .doc = "The compute time of a GPU, given as a measured step or as a speed.",
      .members = {
          duration("step", "The measured time of a step on one GPU with this batch, including the update.",
                   R"("351.5 ms")"),
          {.name = "flops",
           .type = Type::text,
           .doc = "The peak of the GPU, where a multiply-add counts as two operations. Requires `efficiency`.",
           .min = 1,
           .examples = {R"("125 TFLOP/s")"}},
          {.name = "efficiency",
           .type = Type::portion,
           .doc = "The share of the peak that is reached. There is no default.",
           .examples = {R"("40%")"}},
          share("gemm", "parallel: the share of `peak` that matrix products reach. There is no default.", R"("72%")"),
          share("attention", "parallel: the share of `peak` that the attention core reaches.", R"("35%")"),
          share("memory", "parallel: the share of `hbm` that memory-limited kernels reach.", R"("80%")"),
          {.name = "peak",
           .type = Type::text,
           .doc = "parallel: the operations per second of the GPU's tensor cores at this precision.",
           .min = 1,
           .examples = {R"("312 TFLOP/s")"}},
          {.name = "hbm",
           .type = Type::rate,
           .doc = "parallel: the bandwidth of the GPU's memory.",
           .min = 1,
           .examples = {R"("2039 GB/s")"}},
          measured_field(std::move(parallel)),
          {.name = "backward",
           .type = Type::factor,
           .doc = "The time of the backward pass divided by that of the forward pass; the default of 2 reflects two "
                  "products per layer instead of one.",
           .fallback = "2",
           .max = 100'000'000},
          {.name = "source", .type = Type::text, .doc = "The source of the figures.", .min = 1, .varies = false}}};
  return {
      .name = "workload",
      .type = Type::object,
      .doc = "The computation of one GPU in a step.",
      .required = true,
      .examples = {R"({"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}})"},
      .members =
          {{.name = "model",
            .type = Type::text,
            .doc = "A model in scenarios/workloads.",
            .choices = std::move(models),
            .numbers = Numbers::exact,
            .otherwise = "for other models, describe the layers: \"layers\": [{\"name\": \"all\", \"parameters\": "
                         "2500000, \"forward\": \"7 ms\", \"backward\": \"13 ms\"}]"},
           layers_field(),
           transformer_field(),
           {.name = "sequence",
            .type = Type::whole,
            .doc = "Tokens per sample, for a transformer or a model with a card. Default: as on the card.",
            .min = 1,
            .max = 100'000'000,
            .examples = {"4096"},
            .words = {"seq_length", "seq_len", "sequence_length"}},
           {.name = "batch",
            .type = Type::whole,
            .doc = "Samples per GPU in a step.",
            .min = 1,
            .max = 1'000'000'000,
            .examples = {"32"},
            .words = {"batch_size"}},
           {.name = "global_batch",
            .type = Type::whole,
            .doc = "Samples per step over all GPUs, instead of batch. Each GPU computes its share, in the "
                   "corresponding share of the time.",
            .min = 1,
            .max = 1'000'000'000,
            .examples = {"256"},
            .words = {}},
           {.name = "micro_batch_size",
            .type = Type::whole,
            .doc = "parallel: samples per micro-batch.",
            .min = 1,
            .max = 1'000'000,
            .examples = {"2"}},
           {.name = "global_batch_size",
            .type = Type::whole,
            .doc = "parallel: samples per step over all GPUs.",
            .min = 1,
            .max = 1'000'000'000,
            .examples = {"1536"}},
           {.name = "precision",
            .type = Type::text,
            .doc = "parallel: the precision of weights and activations. Default: bf16. With fp16 and bf16, a copy of "
                   "the weights is kept in fp32. With fp32, set `compute.peak` to the GPU's TF32 rate, or to its fp32 "
                   "rate if TF32 is off.",
            .choices = {"fp16", "bf16", "fp32"},
            .known_names = {{"fp8", "which is not modeled", "use bf16 and adjust the peak or the shares"}}},
           {.name = "attention",
            .type = Type::text,
            .doc = "parallel: the attention kernels. flash (default): one kernel that does not store the scores; "
                   "unfused: separate kernels for products, softmax and dropout.",
            .choices = {"flash", "unfused"}},
           {.name = "sample_bytes",
            .type = Type::size,
            .doc = "The size of a sample that the master of data_parallel sends to a GPU. If it is set with "
                   "parameter_server, the server sends samples as well.",
            .examples = {R"("588 KiB")"}},
           {.name = "output_bytes",
            .type = Type::size,
            .doc = "data_parallel: the size of the model's outputs for one sample. Their gradients have the same size.",
            .examples = {R"("4000 B")"}},
           {.name = "activation_bytes",
            .type = Type::size,
            .doc = "model_parallel: the size of the output of a GPU's last layer for one sample. Its gradient has the "
                   "same size.",
            .min = 1,
            .examples = {R"("784 KiB")"}},
           {.name = "bytes_per_parameter",
            .type = Type::whole,
            .doc = "Bytes per gradient element: 4 for fp32, 2 for fp16 and bf16.",
            .fallback = "4",
            .min = 1,
            .max = 8},
           compute},
      .named_by = "model",
      .one_of = {{"model", "layers", "transformer"}, {"batch", "global_batch", "global_batch_size"}}};
}

}  // namespace ringsim::scenarios
