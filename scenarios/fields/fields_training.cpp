// Training steps, as fields: what is trained, on which GPUs, and how gradients are exchanged.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "algorithms/training/regimes.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"

namespace ringsim::scenarios {

namespace {

/// Where a value of the step itself goes.
template <class Value>
Member of_step(Value TrainingStep::*member) {
  return Member::through<TrainingSpec>([member](TrainingSpec& to) -> Value& { return to.step.*member; });
}

Field buckets_field() {
  return {.name = "buckets",
          .type = Type::object,
          .doc = "How gradients are grouped into buckets.",
          .members = {{.name = "rule",
                       .type = Type::text,
                       .doc = "pytorch: tensors in reverse order, and a bucket closes when it reaches the size; "
                              "horovod: all gradients requested by the end of a cycle, up to the size.",
                       .fallback = "pytorch",
                       .choices = {"pytorch", "horovod"}},
                      {.name = "size",
                       .type = Type::size,
                       .doc = "The size limit of a bucket. Default: 25 MiB (pytorch), 64 MiB (horovod).",
                       .min = 1,
                       .examples = {R"("25 MiB")"},
                       .words = {"bucket_size", "bucket_cap_mb"}},
                      {.name = "first",
                       .type = Type::size,
                       .doc = "pytorch: the size limit of the first bucket. Default: 1 MiB.",
                       .min = 1,
                       .examples = {R"("1 MiB")"}},
                      duration("cycle", "horovod: the length of a cycle. Default: 1 ms.", R"("5 ms")"),
                      {.name = "requested",
                       .type = Type::text,
                       .doc = "horovod: when a gradient is requested. launched (default): when the host has launched "
                              "the kernel that computes it, as on GPUs; a bucket then waits for its last gradient. "
                              "computed: when the gradient is ready.",
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
      algorithm.doc =
          "How the master broadcasts the model and adds up the gradients. Default: direct, all copies at the same time "
          "from or to the master. PyTorch with NCCL uses rings for both; chain with many segments is close to this.";
      algorithm.examples = {R"({"name": "chain", "segments": 64})"};
      return {std::move(algorithm), rank("The rank of the master GPU. Default: 0."),
              duration("loss", "The time that the master needs to compute the loss of the whole batch.", R"("1 ms")",
                       "0 us", &TrainingSpec::loss)};
    case Regime::Kind::parameter_server:
      return {{.name = "servers",
               .type = Type::whole,
               .doc = "The number of separate servers, each with a shard of the model. Default: no separate servers; a "
                      "rank, the master, is the server.",
               .min = 1,
               .max = 256,
               .into = &TrainingSpec::servers},
              {.name = "servers_on",
               .type = Type::text,
               .doc = "Where separate servers run. Default: on extra ports of a star. cpu: on the first CPU of each "
                      "node, then on the second.",
               .choices = {"cpu"}},
              rank("The rank that is the server if there are no separate servers. Default: 0."),
              {.name = "mode",
               .type = Type::text,
               .doc = "sync (default): the server waits for all workers, and the workers wait for the server; async: "
                      "the server applies each worker's gradients on arrival, and the worker continues with the "
                      "resulting weights.",
               .choices = {"sync", "async"}},
              {.name = "every",
               .type = Type::whole,
               .doc = "async: the number of steps between two exchanges. Default: 1. With more than 1, each step "
                      "updates the worker's own weights, the server averages weights, and `updates` counts exchanges.",
               .min = 1,
               .max = 1000,
               .examples = {"4"},
               .into = &TrainingSpec::every},
              {.name = "start",
               .type = Type::text,
               .doc = "async: when workers start. staggered (default): worker w of K starts after w/K of its "
                      "computation between two exchanges; random: after a random share of it; together: all at once.",
               .choices = {"staggered", "together", "random"}},
              {.name = "seed", .type = Type::whole, .doc = "async: the random seed of the start times. Default: 0."}};
    case Regime::Kind::ddp:
      algorithm.doc += " It is used to reduce the buckets.";
      return {std::move(algorithm),
              {.name = "servers_on",
               .type = Type::text,
               .doc = "Where the separate servers of the algorithm run. Default: on extra ports of a star. cpu: on the "
                      "first CPU of each node, then on the second.",
               .choices = {"cpu"}},
              buckets_field(),
              {.name = "overlap",
               .type = Type::boolean,
               .doc = "True to reduce buckets during the backward pass; false to wait for its end.",
               .fallback = "true",
               .into = of_step(&TrainingStep::overlap)},
              duration("hooks", "The time on the GPU before each bucket, for copying gradients into it.", R"("50 us")",
                       "0 us", of_step(&TrainingStep::hook))};
    case Regime::Kind::local_sgd:
      algorithm.doc += " It is used to average the weights.";
      return {std::move(algorithm),
              {.name = "every",
               .type = Type::whole,
               .doc = "The number of steps per round; weights are averaged once per round. `steps` and `warmup` of the "
                      "training count rounds.",
               .required = true,
               .min = 1,
               .max = 1000,
               .examples = {"16"},
               .into = &TrainingSpec::every}};
    case Regime::Kind::gossip:
      return {{.name = "every",
               .type = Type::whole,
               .doc = "The number of steps per round; weights are averaged once per round. `steps` and `warmup` of the "
                      "training count rounds.",
               .fallback = "1",
               .min = 1,
               .max = 1000,
               .examples = {"4"},
               .into = &TrainingSpec::every},
              {.name = "overlap",
               .type = Type::boolean,
               .doc = "true: the weights of the previous round are sent during the first step of a round, and are "
                      "averaged before the update of that step.",
               .fallback = "false",
               .into = &TrainingSpec::overlap}};
    case Regime::Kind::model_parallel:
      return {{.name = "microbatches",
               .type = Type::whole,
               .doc = "The number of microbatches into which the global batch is split; they pass through the GPUs one "
                      "after another. With 1, only one GPU computes at a time.",
               .fallback = "1",
               .min = 1,
               .max = 100'000,
               .examples = {"8"},
               .into = &TrainingSpec::microbatches}};
    case Regime::Kind::plan:
    case Regime::Kind::trace:
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
  names.push_back({"zero_bubble", "which is a pipeline schedule, training.parallel.schedule",
                   R"(write "parallel": {"pipeline": 8, "schedule": "zero_bubble_h1"} instead of "regime")"});
  for (const char* name : {"expert_parallel", "moe"})
    names.push_back({name, "which belongs to a plan, training.parallel.expert",
                     R"(write "parallel": {"expert": 8} instead of "regime")"});
  for (const auto& [name, shard] : {std::pair{"fsdp", "full"},
                                    {"fsdp2", "full"},
                                    {"hsdp", "full"},
                                    {"fully_sharded_data_parallel", "full"},
                                    {"zero3", "full"},
                                    {"zero", "full"},
                                    {"deepspeed", "full"},
                                    {"zero2", "optimizer_gradients"},
                                    {"zero1", "optimizer"}})
    names.push_back({name, "which belongs to a plan, training.parallel.shard",
                     fmt::format(R"(write "parallel": {{"shard": "{}"}} instead of "regime")", shard)});
  names.push_back({"context_parallel", "which belongs to a plan, training.parallel.context",
                   R"(write "parallel": {"context": 2, "cp_comm": "all_gather"} instead of "regime")"});
  for (const char* name : {"tensor_parallel", "tp", "megatron", "megatron_lm", "sequence_parallel", "hybrid_parallel",
                           "3d", "3d_parallel", "parallel_3d", "1f1b", "pipedream", "interleaved_1f1b"})
    names.push_back({name, "which belongs to a plan, training.parallel",
                     R"(write "parallel": {"tensor": 8, "pipeline": 2} instead of "regime")"});
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
      .doc = "Ranks that compute more slowly than the others.",
      .examples = {R"([{"rank": 3, "factor": 2}])"},
      .members = {
          {.name = "slow rank",
           .type = Type::object,
           .doc = "A slow rank and the steps during which it is slow.",
           .members = {{.name = "rank",
                        .type = Type::whole,
                        .doc = "The number of the rank.",
                        .required = true,
                        .max = most_ranks - 1,
                        .into = &Slow::rank},
                       {.name = "factor",
                        .type = Type::factor,
                        .doc = "The factor by which all computation of the rank takes longer.",
                        .required = true,
                        .min = 1,
                        .max = 1'000'000'000,
                        .examples = {"2"},
                        .into = &Slow::millionths},
                       step_number("from", "The first slow step, counted from 0, including the warm-up. Default: 0.",
                                   &Slow::from),
                       step_number("until", "The step at which the rank returns to full speed. Default: never.",
                                   &Slow::until)}}}};
  const Field jitter{
      .name = "jitter",
      .type = Type::object,
      .doc = "A random time added to each rank's computation in each step.",
      .members = {{.name = "distribution",
                   .type = Type::text,
                   .doc = "uniform: between 0 and spread; exponential: with mean spread.",
                   .required = true,
                   .choices = {"uniform", "exponential"},
                   .into = {&Draws::distribution,
                            {{"uniform", Distribution::uniform}, {"exponential", Distribution::exponential}}}},
                  {.name = "spread",
                   .type = Type::time,
                   .doc = "The maximum (uniform) or mean (exponential) of the added time.",
                   .required = true,
                   .examples = {R"("4 ms")"},
                   .into = &Draws::spread},
                  {.name = "seed", .type = Type::whole, .doc = "The random seed. Default: 0.", .into = &Draws::seed}},
      .into = Member::through<TrainingSpec>(
          [](TrainingSpec& to) -> std::optional<Draws>& { return to.stragglers.jitter; })};
  const Field optimizer{.name = "optimizer",
                        .type = Type::object,
                        .doc = "The update of the weights.",
                        .members = {{.name = "name",
                                     .type = Type::text,
                                     .doc = "The optimizer, which determines the state kept per parameter: none (sgd), "
                                            "4 B (momentum) or 8 B (adam).",
                                     .fallback = "sgd",
                                     .choices = {"sgd", "momentum", "adam"},
                                     .into = &TrainingSpec::optimizer},
                                    duration("time",
                                             "The duration of the update. If it is 0 in a plan with shares, the "
                                             "duration follows from the bytes that the update moves.",
                                             R"("1.2 ms")", "0 us", of_step(&TrainingStep::update))},
                        .named_by = "name"};
  const Field host{
      .name = "host",
      .type = Type::object,
      .doc = "The host thread that launches the kernels of a GPU. With data_parallel, one thread serves all GPUs.",
      .members = {
          duration("launch", "The time per kernel launch: one launch per layer and pass, and one for the update.",
                   R"("5 us")", "0 us", of_step(&TrainingStep::host_launch)),
          {.name = "waits",
           .type = Type::boolean,
           .doc = "True if the thread launches a step only after the previous one has finished, as a loop that reads "
                  "the loss does.",
           .fallback = "true",
           .into = of_step(&TrainingStep::host_waits)},
          {.name = "order",
           .type = Type::text,
           .doc = "data_parallel: the launch order. by_gpu (default): all kernels of a pass on rank 0, then on rank 1; "
                  "by_layer: one layer on all ranks, then the next layer.",
           .choices = {"by_gpu", "by_layer"},
           .into = {&TrainingSpec::launch_by_layer, {{"by_gpu", false}, {"by_layer", true}}}}}};
  return {
      .name = "training",
      .type = Type::object,
      .doc = "A training step, instead of `collective`.",
      .members = {workload_field(parallel_field(algorithm)),
                  regime_field(algorithm),
                  parallel_field(algorithm),
                  optimizer,
                  host,
                  slow,
                  jitter,
                  {.name = "slowdown",
                   .type = Type::factor,
                   .doc = "The factor by which kernels slow down while a collective of this training runs on the same "
                          "GPU. Transfers between pipeline stages do not slow kernels down. Default: 1.",
                   .min = 1'000'000,  // millionths
                   .max = 1'000'000'000,
                   .examples = {"1.05"},
                   .into = &TrainingSpec::slowdown},
                  ranks_field("Names of the participating GPUs, in rank order. Default: all, or the first one with the "
                              "regime single."),
                  {.name = "gpu_memory",
                   .type = Type::size,
                   .doc = "The memory of a GPU. A warning is printed if weights, gradients and optimizer state need "
                          "more. Default: as in the machine file.",
                   .min = 1,
                   .examples = {R"("80 GiB")"},
                   .into = &TrainingSpec::gpu_memory},
                  {.name = "memory",
                   .type = Type::text,
                   .doc = "With parallel, ignore: run the plan even if it does not fit in GPU memory. Default: check.",
                   .choices = {"check", "ignore"}},
                  {.name = "steps",
                   .type = Type::whole,
                   .doc = "The number of timed steps.",
                   .fallback = "2",
                   .min = 1,
                   .max = 1'000'000,
                   .words = {"n_steps", "num_steps", "max_steps"}},
                  {.name = "warmup",
                   .type = Type::whole,
                   .doc = "The number of untimed steps before the timed ones.",
                   .fallback = "1",
                   .max = 1'000'000,
                   .into = &TrainingSpec::warmup},
                  {.name = "updates",
                   .type = Type::whole,
                   .doc = "Mode async, instead of steps: the number of model updates, by all workers together, after "
                          "which the run ends. Default: 110 per worker.",
                   .min = 1,
                   .max = 1'000'000'000,
                   .examples = {"2000"}},
                  {.name = "warmup_updates",
                   .type = Type::whole,
                   .doc = "Mode async: the number of updates at the start that are not timed. Default: 10 per worker, "
                          "or none if there are too few updates.",
                   .max = 1'000'000'000,
                   .examples = {"200"}}},
      .one_of = {{"regime", "parallel"}}};
}

}  // namespace ringsim::scenarios
