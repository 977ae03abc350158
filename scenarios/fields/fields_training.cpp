// Training steps, as fields: what is trained, on which GPUs, and how gradients are exchanged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "algorithms/training/regimes.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/fields/workload_files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"

namespace ringsim::scenarios {

namespace {

Field duration(std::string name, std::string doc, std::string example, std::string fallback = {}, Member into = {}) {
  return {.name = std::move(name),
          .type = Type::time,
          .doc = std::move(doc),
          .fallback = std::move(fallback),
          .examples = {std::move(example)},
          .into = std::move(into)};
}

/// Where a value of the step itself goes.
template <class Value>
Member of_step(Value TrainingStep::*member) {
  return Member::through<TrainingSpec>([member](TrainingSpec& to) -> Value& { return to.step.*member; });
}

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
        ffn = figure("ffn", "Inner size of the MLP; of one expert.", 10'000'000, true);
  layers.words = {"num_layers", "num_hidden_layers"};
  ffn.words = {"ffn_hidden_size", "intermediate_size"};
  return {.name = "transformer",
          .type = Type::object,
          .doc = "A decoder by the figures of its model card; instead of `model`.",
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
              flag("gated", "The MLP has two matrices up to its inner size, as SwiGLU has.", "true"),
              flag("tied", "The head is the embedding.", "false"),
              flag("biases", "Matrices have biases, norms are LayerNorm, Q, K and V one matrix, as in GPT.", "false")}};
}

Field workload_field() {
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
           .doc = "The share of the peak that is reached. There is no default: it is the user's statement.",
           .examples = {R"("40%")"}},
          share("gemm", "parallel: the share of `peak` that matrix products reach. No share has a default.",
                R"("72%")"),
          share("attention", "parallel: the share of `peak` that the attention core reaches.", R"("35%")"),
          share("memory", "parallel: the share of `hbm` that kernels reach which memory limits.", R"("80%")"),
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
            .doc = "model_parallel: of what a GPU's last layer puts out for a sample; their gradients are as large.",
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

/// A plan, in Megatron-LM's words without "_parallel_size".
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
  const KnownName zero_bubble{"zero_bubble", "which is not modeled yet", "there are gpipe, 1f1b and interleaved"};
  algorithm.doc = "The schedule of all collectives, without a library; default: ring.";
  return {
      .name = "parallel",
      .type = Type::object,
      .doc = "A plan of tensor, pipeline and data parallelism for a transformer; instead of `regime`.",
      .examples = {R"({"tensor": 8, "pipeline": 2})"},
      .members =
          {size("tensor", "Ranks that split each layer.", "1", {"tp", "tensor_parallel", "tensor_model_parallel_size"}),
           size("pipeline", "Stages.", "1", {"pp", "pipeline_parallel", "pipeline_model_parallel_size"}),
           size("virtual_pipeline", "Chunks of layers of each stage.", "1",
                {"vp", "vpp", "virtual_pipeline_model_parallel_size", "num_model_chunks"}),
           size("data", "Ranks with the same part of the model; it follows from the GPUs.", "",
                {"dp", "data_parallel", "data_parallel_size"}),
           size("context", "Ranks that split the sequence: 1, others are not modeled yet.", "1",
                {"cp", "context_parallel", "context_parallel_size"}),
           size("expert", "Ranks that split experts: 1, others are not modeled yet.", "1",
                {"ep", "expert_parallel", "expert_model_parallel_size"}),
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
                  {"gpipe", "1f1b", "interleaved"},
                  {zero_bubble,
                   {"zero_bubble_h1", zero_bubble.what, zero_bubble.hint},
                   {"zero_bubble_h2", zero_bubble.what, zero_bubble.hint},
                   {"dualpipe", zero_bubble.what, zero_bubble.hint}}),
           choice("shard", "optimizer: each data rank updates its part of the weights (ZeRO-1); default: none.",
                  {"none", "optimizer"},
                  {{"full", "which is not modeled yet", "there are none (DDP) and optimizer (ZeRO-1)"},
                   {"fsdp", "which is not modeled yet", "there are none (DDP) and optimizer (ZeRO-1)"},
                   {"optimizer_gradients", "which is not modeled yet", "there are none (DDP) and optimizer (ZeRO-1)"},
                   {"zero1", "which is called optimizer here", R"("shard": "optimizer")"},
                   {"zero2", "which is not modeled yet", "there are none (DDP) and optimizer (ZeRO-1)"},
                   {"zero3", "which is not modeled yet", "there are none (DDP) and optimizer (ZeRO-1)"}}),
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
           {.name = "grad_bytes",
            .type = Type::whole,
            .doc = "Of a gradient: 2 or 4; default: 4.",
            .min = 2,
            .max = 4,
            .examples = {"2"}},
           {.name = "bucket_size",
            .type = Type::whole,
            .doc = "Parameters that close a bucket, with overlap grad_reduce; default: 40 million, or 1 million for "
                   "each data rank if that is more.",
            .min = 1,
            .max = 1'000'000'000'000,
            .examples = {"40000000"}},
           std::move(algorithm)},
      .only_said = true};
}

Field buckets_field() {
  return {
      .name = "buckets",
      .type = Type::object,
      .doc = "Which gradients are reduced together.",
      .members =
          {{.name = "rule",
            .type = Type::text,
            .doc = "pytorch: tensors in reverse order, a bucket closes when it reaches its size; horovod: what is "
                   "requested at the end of a cycle, up to the size.",
            .fallback = "pytorch",
            .choices = {"pytorch", "horovod"}},
           {.name = "size",
            .type = Type::size,
            .doc = "Limit of a bucket; default: 25 MiB (pytorch), 64 MiB (horovod).",
            .min = 1,
            .examples = {R"("25 MiB")"},
            .words = {"bucket_size", "bucket_cap_mb"}},
           {.name = "first",
            .type = Type::size,
            .doc = "pytorch: limit of the first bucket; default: 1 MiB.",
            .min = 1,
            .examples = {R"("1 MiB")"}},
           duration("cycle", "horovod: length of a cycle; default: 1 ms.", R"("5 ms")"),
           {.name = "requested",
            .type = Type::text,
            .doc =
                "horovod: when a gradient is: launched, when the host has launched the kernel that computes it (as on "
                "GPUs), so that a bucket waits for the last of its gradients; computed, when it is there; default: "
                "launched.",
            .choices = {"launched", "computed"}}},
      .named_by = "rule"};
}

/// The settings of a regime.
std::vector<Field> settings_of(Regime::Kind kind, Field algorithm) {
  const auto rank = [](std::string doc) {
    return Field{.name = "master",
                 .type = Type::whole,
                 .doc = std::move(doc),
                 .max = most_ranks - 1,
                 .into = &TrainingSpec::master};
  };
  switch (kind) {
    case Regime::Kind::single:
      return {};
    case Regime::Kind::data_parallel:
      return {rank("The rank of the master GPU; default: 0."),
              duration("loss", "How long the master computes the loss of the whole batch.", R"("1 ms")", "0 us",
                       &TrainingSpec::loss)};
    case Regime::Kind::parameter_server:
      return {
          {.name = "servers",
           .type = Type::whole,
           .doc = "Separate servers, each with a shard of the model; default: the master, which is a rank.",
           .min = 1,
           .max = 256,
           .into = &TrainingSpec::servers},
          {.name = "servers_on",
           .type = Type::text,
           .doc = "Where separate servers sit; default: on extra ports of a star. cpu: the first CPU of each node, "
                  "then the second.",
           .choices = {"cpu"}},
          rank("The rank that is the server, if there are no separate ones; default: 0."),
          {.name = "mode",
           .type = Type::text,
           .doc = "sync: the server waits for all workers, and they for it (default); async: each worker's "
                  "gradients are applied when they come in, and it goes on with the weights of that moment.",
           .choices = {"sync", "async"}},
          {.name = "every",
           .type = Type::whole,
           .doc = "async: steps between two exchanges; of more than 1 each updates the worker's own weights, and the "
                  "server averages weights. updates then count exchanges; default: 1.",
           .min = 1,
           .max = 1000,
           .examples = {"4"},
           .into = &TrainingSpec::every},
          {.name = "start",
           .type = Type::text,
           .doc = "async: when workers begin. staggered: worker w of K after w/K of what it computes between two "
                  "exchanges (default); random: "
                  "after a random part of them; together.",
           .choices = {"staggered", "together", "random"}},
          {.name = "seed", .type = Type::whole, .doc = "async: other seeds give other random starts; default: 0."}};
    case Regime::Kind::ddp:
      algorithm.doc += " It reduces the buckets.";
      return {std::move(algorithm),
              {.name = "servers_on",
               .type = Type::text,
               .doc = "Where the separate servers of an algorithm sit; default: on extra ports of a star. cpu: the "
                      "first CPU of each node, then the second.",
               .choices = {"cpu"}},
              buckets_field(),
              {.name = "overlap",
               .type = Type::boolean,
               .doc = "false: all buckets wait for the end of the backward pass.",
               .fallback = "true",
               .into = of_step(&TrainingStep::overlap)},
              duration("hooks", "On the GPU, before each bucket: the copy into it.", R"("50 us")", "0 us",
                       of_step(&TrainingStep::hook))};
    case Regime::Kind::local_sgd:
      algorithm.doc += " It averages the weights.";
      return {std::move(algorithm),
              {.name = "every",
               .type = Type::whole,
               .doc = "Steps from one average to the next, a round; steps and warmup of training then count rounds.",
               .required = true,
               .min = 1,
               .max = 1000,
               .examples = {"16"},
               .into = &TrainingSpec::every}};
    case Regime::Kind::gossip:
      return {{.name = "every",
               .type = Type::whole,
               .doc = "Steps from one average to the next, a round; steps and warmup of training then count rounds.",
               .fallback = "1",
               .min = 1,
               .max = 1000,
               .examples = {"4"},
               .into = &TrainingSpec::every},
              {.name = "overlap",
               .type = Type::boolean,
               .doc = "true: the weights of the round before travel during both passes of a round's first step, and "
                      "are averaged before its update.",
               .fallback = "false",
               .into = &TrainingSpec::overlap}};
    case Regime::Kind::model_parallel:
      return {{.name = "microbatches",
               .type = Type::whole,
               .doc = "Into how many parts the batch of all GPUs is cut, which pass through the GPUs one after the "
                      "other; 1: each GPU waits for all others.",
               .fallback = "1",
               .min = 1,
               .max = 100'000,
               .examples = {"8"},
               .into = &TrainingSpec::microbatches}};
    case Regime::Kind::plan:
      break;
  }
  fail_invariant("a regime of the list has one of seven kinds");
}

/// Ways to train that people know by these names.
std::vector<KnownName> other_regimes() {
  std::vector<std::string> here;
  for (const Regime& regime : regimes()) here.push_back(regime.name);
  const std::string hint = fmt::format("there are {}", fmt::join(here, ", "));
  std::vector<KnownName> names;
  for (const char* name : {"fsdp", "fsdp2", "fully_sharded_data_parallel", "zero", "zero2", "zero3", "deepspeed",
                           "context_parallel", "expert_parallel", "moe", "zero_bubble"})
    names.push_back({name, "which is not modeled yet", hint});
  for (const char* name : {"tensor_parallel", "tp", "megatron", "megatron_lm", "sequence_parallel", "hybrid_parallel",
                           "3d", "3d_parallel", "parallel_3d", "1f1b", "pipedream", "interleaved_1f1b", "zero1"})
    names.push_back({name, "which is a plan, training.parallel",
                     R"(in place of "regime" write "parallel": {"tensor": 8, "pipeline": 2})"});
  for (const char* name : {"pipeline", "pipeline_parallel", "pp", "gpipe"})
    names.push_back(
        {name, "which is called model_parallel here",
         R"(write {"name": "model_parallel", "microbatches": 8}: all forward passes, then all backward passes)"});
  for (const char* name : {"async", "asynchronous", "async_sgd", "hogwild"})
    names.push_back(
        {name, "which is a mode of parameter_server", R"(write {"name": "parameter_server", "mode": "async"})"});
  names.push_back({"horovod", "which reduces buckets as ddp does",
                   R"(write {"name": "ddp", "algorithm": "ring", "buckets": "horovod"})"});
  return names;
}

Field regime_field(const Field& algorithm) {
  Field field{.name = "regime",
              .type = Type::variant,
              .doc = "How GPUs train together.",
              .known_names = other_regimes(),
              .list = "regimes",
              .examples = {R"("single")", R"({"name": "ddp", "algorithm": "ring"})"},
              .discriminator = "name",
              .named_by = "name"};
  for (const Regime& regime : regimes())
    field.variants.push_back({.name = regime.name,
                              .type = Type::object,
                              .doc = regime.summary,
                              .members = settings_of(regime.kind, algorithm),
                              .one_of = regime.kind == Regime::Kind::ddp || regime.kind == Regime::Kind::local_sgd
                                            ? std::vector<std::vector<std::string>>{{"algorithm", "/library"}}
                                            : std::vector<std::vector<std::string>>{}});
  return field;
}

}  // namespace

Field training_field(Field algorithm) {
  algorithm.required = false;  // where a library decides; else the meaning of a scenario asks for it
  using Slow = Stragglers::Slow;
  const auto step_number = [](std::string name, std::string doc, Member into) {
    return Field{.name = std::move(name),
                 .type = Type::whole,
                 .doc = std::move(doc),
                 .max = 1'000'000'000,
                 .into = std::move(into)};
  };
  const Field slow{
      .name = "slow",
      .type = Type::list,
      .doc = "Ranks that compute slower than the others.",
      .examples = {R"([{"rank": 3, "factor": 2}])"},
      .members = {
          {.name = "slow rank",
           .type = Type::object,
           .doc = "A rank, and for which steps.",
           .members = {{.name = "rank",
                        .type = Type::whole,
                        .doc = "Its number.",
                        .required = true,
                        .max = most_ranks - 1,
                        .into = &Slow::rank},
                       {.name = "factor",
                        .type = Type::factor,
                        .doc = "Everything that it computes takes so many times as long.",
                        .required = true,
                        .min = 1,
                        .max = 1'000'000'000,
                        .examples = {"2"},
                        .into = &Slow::millionths},
                       step_number("from", "The first slow step; default: 0. The warm-up counts.", &Slow::from),
                       step_number("until", "The first step at full speed again; default: none.", &Slow::until)}}}};
  const Field jitter{
      .name = "jitter",
      .type = Type::object,
      .doc = "A random time that each rank computes longer in each step.",
      .members = {{.name = "distribution",
                   .type = Type::text,
                   .doc = "uniform: from 0 to spread; exponential: of mean spread.",
                   .required = true,
                   .choices = {"uniform", "exponential"},
                   .into = {&Draws::distribution,
                            {{"uniform", Distribution::uniform}, {"exponential", Distribution::exponential}}}},
                  {.name = "spread",
                   .type = Type::time,
                   .doc = "How long it is.",
                   .required = true,
                   .examples = {R"("4 ms")"},
                   .into = &Draws::spread},
                  {.name = "seed",
                   .type = Type::whole,
                   .doc = "Other seeds give other times; default: 0.",
                   .into = &Draws::seed}},
      .into = Member::through<TrainingSpec>(
          [](TrainingSpec& to) -> std::optional<Draws>& { return to.stragglers.jitter; })};
  const Field gpu{.name = "gpu", .type = Type::text, .doc = "Name of a gpu.", .min = 1, .varies = false};
  const Field optimizer{
      .name = "optimizer",
      .type = Type::object,
      .doc = "The update of the weights.",
      .members = {{.name = "name",
                   .type = Type::text,
                   .doc = "It says what state the optimizer keeps per parameter: none, 4 B, 8 B.",
                   .fallback = "sgd",
                   .choices = {"sgd", "momentum", "adam"},
                   .into = &TrainingSpec::optimizer},
                  duration("time",
                           "How long the update takes; of a plan with shares 0 is worked out from the "
                           "bytes that it moves.",
                           R"("1.2 ms")", "0 us", of_step(&TrainingStep::update))},
      .named_by = "name"};
  const Field host{.name = "host",
                   .type = Type::object,
                   .doc = "The thread that launches the kernels of a GPU; of data_parallel one thread for all GPUs.",
                   .members = {duration("launch", "Per layer and pass, and for the update.", R"("5 us")", "0 us",
                                        of_step(&TrainingStep::host_launch)),
                               {.name = "waits",
                                .type = Type::boolean,
                                .doc = "It launches a step when the one before is done, as a loop that reads the loss.",
                                .fallback = "true",
                                .into = of_step(&TrainingStep::host_waits)},
                               {.name = "order",
                                .type = Type::text,
                                .doc = "data_parallel: by_gpu: all kernels of a pass on rank 0, then those of rank 1; "
                                       "by_layer: a layer on all ranks, then the next one; default: by_gpu.",
                                .choices = {"by_gpu", "by_layer"},
                                .into = {&TrainingSpec::launch_by_layer, {{"by_gpu", false}, {"by_layer", true}}}}}};
  return {
      .name = "training",
      .type = Type::object,
      .doc = "What the GPUs train; instead of `collective`.",
      .members = {workload_field(),
                  regime_field(algorithm),
                  parallel_field(algorithm),
                  optimizer,
                  host,
                  slow,
                  jitter,
                  {.name = "slowdown",
                   .type = Type::factor,
                   .doc = "Factor by which a GPU's kernels slow down while a collective of this training runs on it; "
                          "default: 1.",
                   .min = 1'000'000,  // millionths
                   .max = 1'000'000'000,
                   .examples = {"1.05"},
                   .into = &TrainingSpec::slowdown},
                  {.name = "ranks",
                   .type = Type::list,
                   .doc = "Names of the gpus that take part, in rank order; default: all, of single the first.",
                   .min = 1,
                   .examples = {R"(["gpu0", "gpu2"])"},
                   .members = {gpu},
                   .words = {"gpus", "workers"},
                   .unique = true},
                  {.name = "gpu_memory",
                   .type = Type::size,
                   .doc = "What a GPU has, for a warning if weights, gradients and the optimizer's state need more; "
                          "default: what its machine's file says.",
                   .min = 1,
                   .examples = {R"("80 GiB")"},
                   .into = &TrainingSpec::gpu_memory},
                  {.name = "memory",
                   .type = Type::text,
                   .doc = "parallel: ignore: run a plan that its GPUs have no room for; default: check.",
                   .choices = {"check", "ignore"}},
                  {.name = "steps",
                   .type = Type::whole,
                   .doc = "How many steps count.",
                   .fallback = "2",
                   .min = 1,
                   .max = 1'000'000,
                   .words = {"n_steps", "num_steps", "max_steps"}},
                  {.name = "warmup",
                   .type = Type::whole,
                   .doc = "Steps before them, which do not count.",
                   .fallback = "1",
                   .max = 1'000'000,
                   .into = &TrainingSpec::warmup},
                  {.name = "updates",
                   .type = Type::whole,
                   .doc = "Mode async, instead of steps: after how many updates of the model, by all workers "
                          "together, the run ends; default: 110 per worker.",
                   .min = 1,
                   .max = 1'000'000'000,
                   .examples = {"2000"}},
                  {.name = "warmup_updates",
                   .type = Type::whole,
                   .doc = "How many of them do not count; default: 10 per worker, of fewer updates none.",
                   .max = 1'000'000'000,
                   .examples = {"200"}}},
      .one_of = {{"regime", "parallel"}}};
}

}  // namespace ringsim::scenarios
