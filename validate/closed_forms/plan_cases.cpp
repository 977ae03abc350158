#include "validate/closed_forms/plan_cases.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"
#include "topologies/catalog.hpp"
#include "validate/closed_forms/closed_form_plans.hpp"
#include "validate/closed_forms/small_plan.hpp"

namespace ringsim {

using namespace literals;
using namespace std::chrono_literals;

namespace {

constexpr Bandwidth star_port = 100_Gbps;

// Steps.

struct OnStar {
  Picoseconds link_latency{0};
  NetworkModel model = NetworkModel::fair;

  Picoseconds path() const { return 2 * link_latency; }
  /// A reduce_scatter or an all_gather by a ring.
  Picoseconds ring(int ranks, std::int64_t bytes) const {
    return (ranks - 1) * (path() + transfer_time(Bytes{bytes / ranks}, star_port));
  }
};

Picoseconds simulated(const PlanSpec& spec, const OnStar& machine) {
  const Program program = small_plan_program(spec).program;
  const LinkSpec link{.bandwidth = star_port, .latency = machine.link_latency, .source = "grid"};
  const LoweredProgram lowered(check(program));
  return run(build(Star{program.ranks, link, program.actors - program.ranks}), lowered.schedule(),
             {.model = machine.model})
      .duration();
}

PlanNumbers numbers(const ClosedForm& form, Picoseconds time) {
  return {.formula = form.formula, .form = form.time.count(), .simulated = time.count(), .holds = form.holds()};
}

template <class Add>
void on_each_star(Add add_case, Picoseconds some_latency = 1us) {
  for (const Picoseconds latency : {Picoseconds{0}, some_latency})
    for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair}) {
      const OnStar machine{latency, model};
      add_case(machine, fmt::format("link latency {}, {}", format(latency), to_string(model)));
    }
}

// Passes take 3 and 5 us, a hop 80 ns or 2.08 us; with passes for weights 3, 3 and 2 us, and a hop at most 880 ns.
void add_pipeline(const PipelineShape& shape, std::vector<PlanCase>& cases) {
  on_each_star(
      [&](const OnStar& machine, const std::string& on) {
        cases.push_back(
            {.quantity = PlanCase::Quantity::time,
             .plan = std::string(to_string(shape.schedule)),
             .where = fmt::format("p {}, v {}, m {}, {}", shape.stages, shape.chunks, shape.micro_batches, on),
             .run = [=] {
               const PlanSpec spec = small_plan(1, shape.stages, 1, shape);
               const Picoseconds hop = machine.path() + transfer_time(spec.activations, star_port);
               const ClosedForm form = shape.splits_backward() ? pipeline_form(shape, 3us, 3us, hop, 2us)
                                                               : pipeline_form(shape, 3us, 5us, hop);
               return numbers(form, simulated(spec, machine));
             }});
      },
      shape.splits_backward() ? Picoseconds{400ns} : Picoseconds{1us});
}

/// The third step's end after the second one's: stages run the next step while later ones end this one.
void add_period(const PipelineShape& shape, Picoseconds weights, std::vector<PlanCase>& cases) {
  on_each_star(
      [&](const OnStar& machine, const std::string& on) {
        cases.push_back(
            {.quantity = PlanCase::Quantity::time,
             .plan = fmt::format("{}, steps in a row", to_string(shape.schedule)),
             .where = fmt::format("p {}, m {}, W {}, {}", shape.stages, shape.micro_batches, format(weights), on),
             .run = [=] {
               PlanSpec spec = small_plan(1, shape.stages, 1, shape);
               const Picoseconds hop = machine.path() + transfer_time(spec.activations, star_port);
               for (auto& chunks : spec.layers) chunks.front().front().weights.front().time = weights;
               spec.iterations = 2;
               const Picoseconds two = simulated(spec, machine);
               spec.iterations = 3;
               return numbers(pipeline_period_form(shape, 3us, 3us, hop, weights), simulated(spec, machine) - two);
             }});
      },
      400ns);
}

void add_pipelines(std::vector<PlanCase>& cases) {
  for (const int p : {1, 2, 3, 4, 6, 8})
    for (const int m : {1, 2, 3, 5, 8, 12})
      for (const auto schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b})
        add_pipeline({schedule, p, 1, m}, cases);
  for (const int p : {2, 3, 4, 6})
    for (const int m : {0, 1, 2, 5, 9}) {
      add_pipeline({PipelineSchedule::zero_bubble_h1, p, 1, p + m}, cases);
      add_pipeline({PipelineSchedule::zero_bubble_h2, p, 1, 2 * p - 1 + m}, cases);
      for (const Picoseconds weights : {2us, 3us})  // 3 us: no bubble
        add_period({PipelineSchedule::zero_bubble_h2, p, 1, 2 * p - 1 + m}, weights, cases);
    }
  for (const int p : {2, 3, 4, 6})
    for (const int v : {2, 3, 4})
      for (const int k : {1, 2, 3}) add_pipeline({PipelineSchedule::interleaved, p, v, k * p}, cases);
}

struct Sharding {
  const char* name;
  PlanShard shard;
  bool reshards;
  int prefetch;
};
constexpr Sharding shardings[] = {{"full, prefetch 1", PlanShard::full, true, 1},
                                  {"full, weights kept", PlanShard::full, false, 1},
                                  {"full, prefetch 0", PlanShard::full, true, 0},
                                  {"full, prefetch 0, weights kept", PlanShard::full, false, 0},
                                  {"none, overlap grad_reduce", PlanShard::none, false, 0}};

// Passes of a layer take 9 and 16 us; calls from 0.1 us to 250 us.
PlanNumbers layers_case(const Sharding& how, const OnStar& machine, int d, DataLayers layers, std::int64_t parameters) {
  PlanSpec spec = small_plan(1, 1, d, {PipelineSchedule::one_f_one_b, 1, 1, layers.micro_batches}, layers.layers);
  spec.shard = how.shard;
  spec.reshards = how.reshards;
  spec.prefetch = how.prefetch;
  spec.overlaps_reduce = how.shard == PlanShard::none;
  spec.bucket = 1;  // a layer each
  layers.forward = 9us;
  layers.backward = 16us;
  layers.update = 7us;
  layers.gather = machine.ring(d, spec.weight_bytes * parameters);
  layers.reduce = machine.ring(d, spec.gradient_bytes * parameters) * (how.shard == PlanShard::none ? 2 : 1);
  spec.update[0] = layers.update;
  for (PlanLayer& layer : spec.layers[0][0]) {
    layer.parameters = parameters;
    layer.forward[0].time = layers.forward;
    layer.backward[0].time = layers.backward;
  }
  const ClosedForm form = how.shard == PlanShard::none ? overlapped_reduction_form(layers)
                                                       : fully_sharded_form(layers, how.reshards, how.prefetch);
  return numbers(form, simulated(spec, machine));
}

void add_layers(std::vector<PlanCase>& cases) {
  for (const Sharding& how : shardings)
    for (const int d : {2, 4})
      for (const int n : {2, 3, 5})
        for (const std::int64_t parameters : {1'000, 20'000, 60'000, 200'000, 1'000'000})
          for (const int m : {1, 3})
            on_each_star([&](const OnStar& machine, const std::string& on) {
              cases.push_back(
                  {.quantity = PlanCase::Quantity::time,
                   .plan = how.name,
                   .where = fmt::format("d {}, L {}, m {}, {} parameters per layer, {}", d, n, m, parameters, on),
                   .run = [=] { return layers_case(how, machine, d, {.layers = n, .micro_batches = m}, parameters); }});
            });
}

// Steps of 3 and 5 us, sums of 1 us; hops of 80 ns to 322 us.
PlanNumbers ring_case(const OnStar& machine, int ranks, int micro_batches, Bytes block, Picoseconds sum) {
  constexpr int n_layers = 2;
  PlanSpec spec = small_plan(1, 1, ranks, {PipelineSchedule::one_f_one_b, 1, 1, micro_batches}, n_layers);
  spec.grid = PlanGrid(1, 1, ranks, "tp-cp-ep-dp-pp", ranks);
  const RingLayer its{.ranks = ranks,
                      .forward = 3us,
                      .backward = 5us,
                      .sum = sum,
                      .hop = machine.path() + transfer_time(block, star_port),
                      .double_hop = machine.path() + transfer_time(2 * block, star_port)};
  for (PlanLayer& layer : spec.layers[0][0]) add_small_ring(layer, ranks, block, its.forward, its.backward, its.sum);
  const Picoseconds passes = small_plan_passes(spec);
  ClosedForm form = ring_attention_form(its);
  const Picoseconds gradients = 2 * machine.ring(ranks, std::int64_t{4'000} * n_layers);
  form.formula = "m L(f' + b' + " + form.formula + ") + r";
  form.time = micro_batches * (passes + n_layers * form.time) + gradients;
  return numbers(form, simulated(spec, machine));
}

void add_rings(std::vector<PlanCase>& cases) {
  for (const int n : {2, 4, 5, 8})
    for (const int m : {1, 3})
      for (const std::int64_t block : {1'000, 20'000, 60'000, 2'000'000})
        for (const Picoseconds sum : {Picoseconds{0}, Picoseconds{1us}})
          on_each_star([&](const OnStar& machine, const std::string& on) {
            cases.push_back({.quantity = PlanCase::Quantity::time,
                             .plan = "context p2p",
                             .where = fmt::format("c {}, m {}, {} B of keys and values, sums of {}, {}", n, m, block,
                                                  format(sum), on),
                             .run = [=] { return ring_case(machine, n, m, Bytes{block}, sum); }});
          });
}

// Bytes and memory, of scenarios.

/// A scenario of a transformer on a star. Texts are JSON keys, each followed by a comma.
struct Transformer {
  std::string name, where, formula;
  int ranks = 1;
  std::string parallel = {};                   ///< of training.parallel
  std::string card = {}, attention = "flash";  ///< further ones of the card; how attention is computed
  std::string sizes = R"("layers": 8, "hidden": 512, "heads": 8, "ffn": 2048, "vocabulary": 1000)";
  int sequence = 256, micro_batch = 2, global_batch = 32;

  Scenario scenario() const {
    const std::string text = fmt::format(
        R"({{"version": 1, "name": "plan",
  "topology": {{"kind": "star", "ranks": {}, "link": {{"bandwidth": "50 GB/s", "latency": "1 us"}}}},
  "training": {{"workload": {{"transformer": {{{} {}}}, "attention": "{}", "sequence": {}, "micro_batch_size": {}, "global_batch_size": {},
                              "compute": {{"flops": "312 TFLOP/s", "efficiency": "50%"}}}},
                "parallel": {{{} "order": "tp-cp-ep-dp-pp"}}, "optimizer": "adam", "steps": 1, "warmup": 1}}}})",
        ranks, card, sizes, attention, sequence, micro_batch, global_batch, parallel);
    return ScenarioFile::parse(text, name).point(0);
  }
};

constexpr int adam_state = 12;  // bytes per parameter: two moments and, of weights of 2 bytes, a copy, each in fp32

/// The first rank, the last and the sum of all.
PlanNumbers sent(const Transformer& of) {
  const Scenario scenario = of.scenario();
  const PlanTraining& plan = *scenario.training->plan;
  const TrainingReport report = *predict(scenario).training;
  const int stages = plan.model.shape.stages;
  Bytes sum;
  for (int stage = 0; stage < stages; ++stage)
    sum += plan_volumes(plan, stage).total() * (plan.program.grid.ranks() / stages);
  const std::pair<Bytes, Bytes> both[] = {{plan_volumes(plan, 0).total(), report.by_rank.front().sent},
                                          {plan_volumes(plan, stages - 1).total(), report.by_rank.back().sent},
                                          {sum, report.sent}};
  PlanNumbers out{.formula = of.formula};
  for (const auto& [form, bytes] : both) {
    out.form = form.count;
    out.simulated = bytes.count;
    if (form != bytes) break;
  }
  return out;
}

/// The first part that differs of any stage, else the whole of the last one.
PlanNumbers memory(const Transformer& of) {
  const Scenario scenario = of.scenario();
  const PlanTraining& plan = *scenario.training->plan;
  PlanNumbers out{.formula = of.formula};
  for (int stage = 0; stage < plan.model.shape.stages; ++stage) {
    const PlanMemory form = plan_memory_form(plan, adam_state, stage),
                     &made = plan.memory[static_cast<std::size_t>(stage)];
    for (const Bytes PlanMemory::*part :
         {&PlanMemory::weights, &PlanMemory::gradients, &PlanMemory::state, &PlanMemory::activations}) {
      out.form = (form.*part).count;
      out.simulated = (made.*part).count;
      if (out.form != out.simulated) return out;
    }
    out.form = form.in_flight;
    out.simulated = made.in_flight;
    if (out.form != out.simulated) return out;
    out.form = form.total().count;
    out.simulated = made.total().count;
  }
  return out;
}

void add_case(PlanCase::Quantity quantity, PlanNumbers (*compared)(const Transformer&), Transformer of,
              std::vector<PlanCase>& cases) {
  cases.push_back({.quantity = quantity, .plan = of.name, .where = of.where, .run = {}});
  cases.back().run = [compared, of = std::move(of)] { return compared(of); };
}
void add_sent(Transformer of, std::vector<PlanCase>& cases) {
  add_case(PlanCase::Quantity::sent, sent, std::move(of), cases);
}
void add_memory(Transformer of, std::vector<PlanCase>& cases) {
  add_case(PlanCase::Quantity::memory, memory, std::move(of), cases);
}

const char* const recomputations[] = {"none", "selective", "full"};

struct Shard {
  const char *name, *more_keys, *sent, *kept;
};
constexpr Shard shards[] = {
    {"none", "", "2(d-1)/d gP", "(w+g+o)P + activations"},
    {"optimizer", "", "(d-1)/d (g+w)P", "(w+g+o/d)P + activations"},
    {"optimizer_gradients", "", "(d-1)/d (m g+w)P", "(w+(g+o)/d)P + gP before it is reduced + activations"},
    {"full", R"("reshard_after_forward": true,)", "m(d-1)/d (g+2w)P", "(w+g+o)/d P + 2(w+g) of a layer + activations"}};
constexpr Shard keeps_weights = {"full", R"("reshard_after_forward": false,)", "m(d-1)/d (g+w)P", ""};

std::string text(bool value) { return value ? "true" : "false"; }

// One kind of parallelism each.
void add_volumes(std::vector<PlanCase>& cases) {
  for (const int t : {2, 4, 8})
    for (const bool is_split : {false, true})
      for (const char* recompute : recomputations)
        add_sent({.name = is_split ? "sequence_parallel" : "tensor",
                  .where = fmt::format("t {}, recompute {}", t, recompute),
                  .formula = is_split ? "m(t-1)/t ((10 or 14)L + 5)E + loss" : "m(t-1)/t ((8 or 12)L + 4)E + loss",
                  .ranks = t,
                  .parallel = fmt::format(R"("tensor": {}, "sequence_parallel": {}, "recompute": "{}",)", t,
                                          text(is_split), recompute)},
                 cases);
  for (const int p : {2, 4})
    for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble_h1", "zero_bubble_h2"})
      add_sent({.name = schedule,
                .where = fmt::format("p {}, m 16", p),
                .formula = "m(2v)E, m(2v-1)E of the first stage and the last",
                .ranks = p,
                .parallel = fmt::format(R"("pipeline": {}, "schedule": "{}", "virtual_pipeline": {},)", p, schedule,
                                        schedule == std::string_view("interleaved") ? 2 : 1)},
               cases);
  const auto add_shard = [&](const Shard& shard, const char* what) {
    for (const int d : {2, 4, 8})
      add_sent({.name = fmt::format("shard {}{}", shard.name, what),
                .where = fmt::format("d {}, m {}", d, 16 / d),
                .formula = shard.sent,
                .ranks = d,
                .parallel = fmt::format(R"("shard": "{}", {})", shard.name, shard.more_keys)},
               cases);
  };
  for (const Shard& shard : shards) add_shard(shard, "");
  add_shard(keeps_weights, ", weights kept");
  for (const char* comm : {"all_gather", "p2p"})
    for (const int c : {2, 4})
      for (const char* recompute : recomputations)
        add_sent({.name = comm == std::string_view("p2p") ? "context p2p" : "context",
                  .where = fmt::format("c {}, recompute {}", c, recompute),
                  .formula = "m L(3 or 4)(c-1)/c (K and V) + 2(d-1)/d gP",
                  .ranks = c,
                  .parallel = fmt::format(R"("context": {}, "cp_comm": "{}", "recompute": "{}",)", c, comm, recompute),
                  .card = R"("kv_heads": 4,)"},
                 cases);
  for (const int expert : {2, 4, 8})
    for (const char* recompute : {"none", "full"})
      for (const char* shard : {"none", "optimizer"})
        add_sent(
            {.name = "expert",
             .where = fmt::format("ep {}, d 8, recompute {}, shard {}", expert, recompute, shard),
             .formula = "m L(4 or 6)(ep-1)/ep k E + gradients among d and d/ep",
             .ranks = 8,
             .parallel = fmt::format(R"("expert": {}, "recompute": "{}", "shard": "{}",)", expert, recompute, shard),
             .card = R"("experts": 8, "top_k": 2, "expert_ffn": 1024, "dense_layers": 2,)"},
            cases);
}

// Several together: t 2, p 2, d 4.
void add_mixed_volumes(std::vector<PlanCase>& cases) {
  for (const char* comm : {"all_gather", "p2p"})
    for (const char* recompute : recomputations)
      for (const bool is_split : {false, true})
        for (const char* shard : {"none", "optimizer", "full"})
          for (const int chunks : {1, 2})
            add_sent({.name = comm == std::string_view("p2p") ? "tensor, pipeline, context p2p, data"
                                                              : "tensor, pipeline, context, data",
                      .where = fmt::format("t 2, p 2, v {}, c 2, d 2, recompute {}, sequence_parallel {}, shard {}",
                                           chunks, recompute, is_split, shard),
                      .formula = "the sum of those",
                      .ranks = 16,
                      .parallel = fmt::format(R"("tensor": 2, "pipeline": 2, "virtual_pipeline": {}, "context": 2,
                                                 "cp_comm": "{}", "recompute": "{}", "sequence_parallel": {},
                                                 "shard": "{}",)",
                                              chunks, comm, recompute, is_split, shard)},
                     cases);
  for (const int t : {2, 4})
    for (const char* schedule : {"gpipe", "1f1b", "interleaved", "zero_bubble_h1"})
      add_sent({.name = "tensor, pipeline, scatter_gather",
                .where = fmt::format("t {}, p 2, {}", t, schedule),
                .formula = "tensor + (t-1)/t E, E/t per cut",
                .ranks = 2 * t,
                .parallel = fmt::format(R"("tensor": {}, "pipeline": 2, "schedule": "{}", "virtual_pipeline": {},
                                           "scatter_gather": true,)",
                                        t, schedule, schedule == std::string_view("interleaved") ? 2 : 1)},
               cases);
  // Six layers with embedding and loss on four chunks of two: 1, 2, 2 and 1.
  for (const char* schedule : {"1f1b", "gpipe", "interleaved"})
    for (const bool has_experts : {false, true})
      add_sent(
          {.name = "stages of unequal layers",
           .where = fmt::format("p {}, {}{}", schedule == std::string_view("interleaved") ? 2 : 4, schedule,
                                has_experts ? ", ep 2" : ", t 2"),
           .formula = "the sum of those, by stage",
           .ranks = 8,
           .parallel = fmt::format(R"("pipeline": {}, "virtual_pipeline": {}, "schedule": "{}", {} "shard": "optimizer",
                                           "account_for_embedding": true, "account_for_loss": true,)",
                                   schedule == std::string_view("interleaved") ? 2 : 4,
                                   schedule == std::string_view("interleaved") ? 2 : 1, schedule,
                                   has_experts ? R"("expert": 2,)" : R"("tensor": 2,)"),
           .card = has_experts ? R"("experts": 8, "top_k": 2, "expert_ffn": 1024, "dense_layers": 1,)" : "",
           .sizes = R"("layers": 6, "hidden": 256, "heads": 8, "ffn": 1024, "vocabulary": 512)"},
          cases);
  for (const int expert_tensor : {1, 2})
    for (const char* recompute : {"none", "full"})
      add_sent({.name = "tensor, pipeline, expert, data",
                .where = fmt::format("t 2, p 2, ep 4, expert_tensor {}, d 4, recompute {}", expert_tensor, recompute),
                .formula = "the sum of those",
                .ranks = 16,
                .parallel = fmt::format(R"("tensor": 2, "pipeline": 2, "expert": 4, "expert_tensor": {},
                                           "sequence_parallel": true, "recompute": "{}", "shard": "optimizer",)",
                                        expert_tensor, recompute),
                .card = R"("experts": 8, "top_k": 2, "expert_ffn": 1024,)"},
               cases);
}

const char* const as_gpt = R"("gated": false, "biases": true,)";

/// The four models of Korthikanti et al., table 3, t = 8; without the positions that their equations leave out.
struct Published {
  const char* name;
  int layers, hidden, heads, stages, chunks, micro_batch, global_batch;
};
constexpr Published published_models[] = {{"22B", 48, 6'144, 64, 1, 1, 4, 4},
                                          {"175B", 96, 12'288, 96, 8, 3, 1, 64},
                                          {"530B", 105, 20'480, 128, 35, 3, 1, 280},
                                          {"1T", 128, 25'600, 160, 64, 1, 1, 512}};

constexpr std::pair<const char*, const char*> in_flight[] = {{"gpipe", "m"},
                                                             {"1f1b", "min(p-i, m)"},
                                                             {"interleaved", "min(2(p-i-1) + (v-1)p + 1, m v)"},
                                                             {"zero_bubble_h1", "min(p, m)"},
                                                             {"zero_bubble_h2", "min(2p-1, m)"}};

void add_memories(std::vector<PlanCase>& cases) {
  for (const Published& row : published_models)
    for (const bool is_split : {false, true})
      for (const char* recompute : recomputations)
        add_memory({.name = "GPT of Korthikanti et al.",
                    .where = fmt::format("{}, sequence_parallel {}, recompute {}", row.name, is_split, recompute),
                    .formula = "18 P + s b h(10 + 24/t + 5as/(ht)) of each layer in flight, or its variants",
                    .ranks = 8 * row.stages,
                    .parallel = fmt::format(R"("tensor": 8, "pipeline": {}, "virtual_pipeline": {},
                                               "sequence_parallel": {}, "recompute": "{}",)",
                                            row.stages, row.chunks, is_split, recompute),
                    .card = as_gpt,
                    .attention = "unfused",
                    .sizes = fmt::format(R"("layers": {}, "hidden": {}, "heads": {}, "ffn": {}, "vocabulary": 51200)",
                                         row.layers, row.hidden, row.heads, 4 * row.hidden),
                    .sequence = 2'048,
                    .micro_batch = row.micro_batch,
                    .global_batch = row.global_batch},
                   cases);
  for (const Shard& shard : shards)
    for (const int d : {1, 2, 8})
      for (const char* recompute : recomputations)
        add_memory({.name = fmt::format("shard {}", shard.name),
                    .where = fmt::format("d {}, recompute {}", d, recompute),
                    .formula = shard.kept,
                    .ranks = d,
                    .parallel = fmt::format(R"("shard": "{}", "recompute": "{}",)", shard.name, recompute),
                    .card = as_gpt},
                   cases);
  for (const int c : {2, 4, 8})
    for (const char* recompute : recomputations)
      add_memory({.name = "context p2p",
                  .where = fmt::format("c {}, recompute {}", c, recompute),
                  .formula = "(w+g+o)P + activations + max(6, 20/c) s b h/t",
                  .ranks = c,
                  .parallel = fmt::format(R"("context": {}, "cp_comm": "p2p", "recompute": "{}",)", c, recompute),
                  .card = as_gpt},
                 cases);
  for (const auto& [schedule, chunks] : in_flight)
    for (const int p : {2, 4})
      for (const int c : {1, 2})
        for (const int m : {4, 8})
          add_memory({.name = schedule,
                      .where = fmt::format("p {}, c {}, m {}", p, c, m),
                      .formula = fmt::format("(w+g+o)P + activations of {} chunks", chunks),
                      .ranks = p * c,
                      .parallel = fmt::format(R"("pipeline": {}, "schedule": "{}", "virtual_pipeline": {}, {})", p,
                                              schedule, schedule == std::string_view("interleaved") ? 2 : 1,
                                              c == 1 ? "" : R"("context": 2, "cp_comm": "all_gather",)"),
                      .card = as_gpt,
                      .global_batch = 2 * m},
                     cases);
}

}  // namespace

std::string_view to_string(PlanCase::Quantity quantity) {
  return quantity == PlanCase::Quantity::time ? "step" : quantity == PlanCase::Quantity::sent ? "bytes sent" : "memory";
}

std::vector<PlanCase> plan_cases() {
  std::vector<PlanCase> cases;
  add_pipelines(cases);
  add_layers(cases);
  add_rings(cases);
  add_volumes(cases);
  add_mixed_volumes(cases);
  add_memories(cases);
  return cases;
}

}  // namespace ringsim
