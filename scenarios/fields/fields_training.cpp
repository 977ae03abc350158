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
           .doc = "Where separate servers run; default: on extra ports of a star. cpu: the first CPU of each node, "
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
               .doc = "Where the separate servers of an algorithm run; default: on extra ports of a star. cpu: the "
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
  names.push_back({"zero_bubble", "which is a schedule of plans, training.parallel.schedule",
                   R"(instead of "regime" write "parallel": {"pipeline": 8, "schedule": "zero_bubble_h1"})"});
  for (const char* name : {"expert_parallel", "moe"})
    names.push_back(
        {name, "which is a plan, training.parallel.expert", R"(instead of "regime" write "parallel": {"expert": 8})"});
  for (const auto& [name, shard] : {std::pair{"fsdp", "full"},
                                    {"fsdp2", "full"},
                                    {"hsdp", "full"},
                                    {"fully_sharded_data_parallel", "full"},
                                    {"zero3", "full"},
                                    {"zero", "full"},
                                    {"deepspeed", "full"},
                                    {"zero2", "optimizer_gradients"},
                                    {"zero1", "optimizer"}})
    names.push_back({name, "which is a plan, training.parallel.shard",
                     fmt::format(R"(instead of "regime" write "parallel": {{"shard": "{}"}})", shard)});
  names.push_back({"context_parallel", "which is a plan, training.parallel.context",
                   R"(instead of "regime" write "parallel": {"context": 2, "cp_comm": "all_gather"})"});
  for (const char* name : {"tensor_parallel", "tp", "megatron", "megatron_lm", "sequence_parallel", "hybrid_parallel",
                           "3d", "3d_parallel", "parallel_3d", "1f1b", "pipedream", "interleaved_1f1b"})
    names.push_back({name, "which is a plan, training.parallel",
                     R"(instead of "regime" write "parallel": {"tensor": 8, "pipeline": 2})"});
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
                        .doc = "The factor by which everything that it computes takes longer.",
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
      .doc = "A random time that is added to each rank's computation in each step.",
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
      .members = {workload_field(parallel_field(algorithm)),
                  regime_field(algorithm),
                  parallel_field(algorithm),
                  optimizer,
                  host,
                  slow,
                  jitter,
                  {.name = "slowdown",
                   .type = Type::factor,
                   .doc =
                       "Factor by which a GPU's kernels slow down while a collective of this training runs on it; what "
                       "pipeline stages pass on does not count; default: 1.",
                   .min = 1'000'000,  // millionths
                   .max = 1'000'000'000,
                   .examples = {"1.05"},
                   .into = &TrainingSpec::slowdown},
                  ranks_field("Names of the gpus that take part, in rank order; default: all, of single the first."),
                  {.name = "gpu_memory",
                   .type = Type::size,
                   .doc = "The memory of a GPU, for a warning if weights, gradients and the optimizer's state need "
                          "more; default: that of its machine's file.",
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
                   .doc = "Steps before them, which are not timed.",
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
                   .doc = "How many of them are not timed; default: 10 per worker, of fewer updates none.",
                   .max = 1'000'000'000,
                   .examples = {"200"}}},
      .one_of = {{"regime", "parallel"}}};
}

}  // namespace ringsim::scenarios
