#include "scenarios/predict/plan_training.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "scenarios/predict/training.hpp"
#include "sim/base/error.hpp"
#include "sim/check/in_groups.hpp"

namespace ringsim {

namespace {

std::string gigabytes_of(Bytes size) { return fmt::format("{:.1f}", static_cast<double>(size.count) / 1e9); }

/// visit(kernel, times) for each kernel and call of a stage, and how often it is made in a step.
template <class Visit>
void each_kernel(const PlanSpec& program, int stage, Visit visit) {
  for (const std::vector<PlanLayer>& chunk : program.layers[static_cast<std::size_t>(stage)])
    for (const PlanLayer& layer : chunk)
      for (const auto* pass : {&layer.forward, &layer.recompute, &layer.backward, &layer.weights})
        for (const PlanKernel& kernel : *pass) visit(kernel, program.micro_batches);
}

}  // namespace

std::int64_t uses_of(const PlanTraining& plan, const PlanExchange& exchange) {
  const PlanSpec& program = plan.program;
  std::int64_t uses = 0;
  if (exchange.use == PlanUse::tensor || exchange.use == PlanUse::context || exchange.use == PlanUse::expert ||
      is_ring(exchange.use))
    each_kernel(program, exchange.stage, [&](const PlanKernel& kernel, int times) {
      uses +=
          kernel.is_call() && kernel.use == exchange.use && kernel.op == exchange.op && kernel.bytes == exchange.bytes
              ? times
              : 0;
    });
  if (exchange.use == PlanUse::forward || exchange.use == PlanUse::backward)
    uses = std::int64_t{program.micro_batches} *
           (program.chunks - (exchange.stage + 1 == program.grid.pipeline() ? 1 : 0));
  if (exchange.use == PlanUse::data || exchange.use == PlanUse::expert_data || exchange.use == PlanUse::shard ||
      exchange.use == PlanUse::replica) {
    const std::map<PlanExchange, std::int64_t> all = plan_data_uses(program, exchange.stage);
    if (const auto found = all.find(exchange); found != all.end()) uses = found->second;
  }
  return std::max<std::int64_t>(uses, 1);
}

Picoseconds plan_compute_time(const PlanTraining& plan) {
  Picoseconds all{0};
  const int stages = plan.program.grid.pipeline();
  for (int stage = 0; stage < stages; ++stage) {
    all = add(all, plan.program.update[static_cast<std::size_t>(stage)]);
    each_kernel(plan.program, stage, [&](const PlanKernel& kernel, int times) { all = add(all, kernel.time * times); });
  }
  return all / stages;
}

namespace {

/// Needs of the same plan with less kept, where that fits.
std::vector<std::string> lighter_plans(const TrainingSpec& spec, int stage, Bytes has) {
  using Recompute = TransformerPlan::Recompute;
  const PlanTraining& plan = *spec.plan;
  const OptimizerBytes optimizer = optimizer_bytes(spec.optimizer, plan.model.element_bytes, plan.model.gradient_bytes);
  PlanSpec program = plan.program;
  std::vector<std::string> ways;
  const auto look_at = [&](const std::string& way, const TransformerPlan& model, PlanShard shard) {
    program.shard = shard;
    const Bytes needs = plan_memory(model, stage, optimizer, plan_sharding(program, stage)).total();
    if (needs <= has) ways.push_back(fmt::format("{} needs {} GB", way, gigabytes_of(needs)));
  };
  // Those that divide more than this plan does.
  std::vector<PlanShard> more;
  for (const PlanShard shard : {PlanShard::optimizer, PlanShard::optimizer_gradients, PlanShard::full}) {
    if (shard <= plan.program.shard || program.grid.data() == 1) continue;
    if (shard == PlanShard::optimizer_gradients && program.grid.pipeline() > 1) continue;
    if (shard == PlanShard::full && program.tied > 0 && program.grid.pipeline() > 1) continue;
    if (shard != PlanShard::optimizer && program.grid.has_experts_apart()) continue;
    more.push_back(shard);
  }
  TransformerPlan model = plan.model;
  for (const PlanShard shard : more) look_at(fmt::format("shard {}", to_string(shard)), model, shard);
  if (plan.program.shard == PlanShard::full && !plan.program.reshards) {
    program.reshards = true;
    look_at("reshard_after_forward true", model, PlanShard::full);
    program.reshards = false;
  }
  if (model.recompute == Recompute::none) {
    model.recompute = Recompute::selective;
    if (!model.flash) look_at("recompute selective", model, plan.program.shard);
  }
  if (plan.model.recompute != Recompute::full) {
    model.recompute = Recompute::full;
    look_at("recompute full", model, plan.program.shard);
    for (const PlanShard shard : more)
      look_at(fmt::format("both shard {} and recompute full", to_string(shard)), model, shard);
  }
  return ways;
}

}  // namespace

namespace {

std::string inference_needs(const TrainingSpec& spec, const std::string& gpu, Actor rank, Bytes has) {
  const InferencePlan& plan = *spec.inference();
  const PlanMemory& needs = spec.plan->memory.front();
  return fmt::format(
      "rank {} ({}) needs {} of {} GB: weights {}, KV cache {} ({} sequences of {} tokens, {} B per token), excluding "
      "activations",
      rank, gpu, gigabytes_of(needs.total()), gigabytes_of(has), gigabytes_of(needs.weights), gigabytes_of(needs.cache),
      plan.sequences(), plan.context, needs.cache.count / (plan.sequences() * plan.context));
}

/// The hint for a batch that does not fit: the largest one that does, if there is one.
std::string smaller_batch(const InferencePlan& plan, Bytes has) {
  const std::int64_t fits = largest_batch(plan, has);
  if (fits > 0) return fmt::format("a batch of {} fits", fits);
  InferencePlan shorter = plan;
  shorter.batch = shorter.expert;
  shorter.context = 1;
  if (inference_memory(shorter).weights > has) return "the weights alone do not fit: use more ranks or fp8";
  return "not even one sequence fits: use more tensor ranks or a shorter context";
}

}  // namespace

std::string plan_needs(const TrainingSpec& spec, const std::vector<NodeId>& ranks, const Topology& topology, Actor rank,
                       Bytes has) {
  if (spec.inference() != nullptr)
    return inference_needs(spec, topology.node(ranks[static_cast<std::size_t>(rank)]).name, rank, has);
  const int stage = spec.plan->program.grid.digits(rank).stage;
  const PlanMemory& needs = spec.plan->memory[static_cast<std::size_t>(stage)];
  return fmt::format(
      "rank {} ({}, stage {}) needs {} of {} GB: weights {}, gradients {}, optimizer {}, activations {} ({} in flight)",
      rank, topology.node(ranks[static_cast<std::size_t>(rank)]).name, stage, gigabytes_of(needs.total()),
      gigabytes_of(has), gigabytes_of(needs.weights), gigabytes_of(needs.gradients), gigabytes_of(needs.state),
      gigabytes_of(needs.activations), needs.in_flight);
}

LackOfMemory lack_of_memory(const TrainingSpec& spec, const std::vector<NodeId>& ranks, const Topology& topology) {
  LackOfMemory worst;
  for (Actor rank = 0; rank < static_cast<Actor>(ranks.size()); ++rank) {
    const Bytes has = spec.gpu_memory.value_or(topology.node(ranks[static_cast<std::size_t>(rank)]).memory);
    const auto stage = static_cast<std::size_t>(spec.plan->program.grid.digits(rank).stage);
    const Bytes needs = spec.plan->memory[stage].total();
    if (has.count == 0 || needs <= has || (worst.rank >= 0 && needs - has <= worst.needs - worst.has)) continue;
    worst = {rank, needs, has};
  }
  return worst;
}

void expect_plans_fit(const Scenario& scenario, const Setup& setup) {
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const TrainingSpec* spec = scenario.training_of(j);
    if (spec == nullptr || !spec->plan || spec->plan->ignores_memory) continue;
    const std::vector<NodeId>& ranks = setup.collectives[j].ranks;
    const auto [worst, needs, has] = lack_of_memory(*spec, ranks, setup.topology);
    if (worst < 0) continue;
    if (const InferencePlan* serving = spec->inference())
      throw InputError(scenario.file + ": /inference",
                       "expected a batch that fits in GPU memory, found that " +
                           plan_needs(*spec, ranks, setup.topology, worst, has),
                       smaller_batch(*serving, has) + "; or set inference.memory to \"ignore\"");
    std::vector<std::string> ways = lighter_plans(*spec, spec->plan->program.grid.digits(worst).stage, has);
    if (ways.empty())
      ways.push_back(
          fmt::format("it does not fit with any recomputation: use more {} ranks or a smaller micro_batch_size",
                      spec->plan->model.card.experts > 0 ? "expert, tensor or pipeline" : "tensor or pipeline"));
    throw InputError(
        scenario.file + (j == 0 ? ": /training" : fmt::format(": /jobs/{}/training", j - 1)),
        "expected a plan that fits in GPU memory, found that " + plan_needs(*spec, ranks, setup.topology, worst, has),
        fmt::format("{}; or set training.memory to \"ignore\"", fmt::join(ways, "; ")));
  }
}

namespace {

/// The schedules of groups; those that are alike, of whichever stage, are made and proved once.
class GroupSchedules {
 public:
  GroupSchedules(const Scenario& scenario, const PredictOptions& options) : scenario_(scenario), options_(options) {}

  CheckedSchedule in_groups(const std::vector<const PlacedCollective*>& groups) {
    std::vector<CheckedSchedule> made;
    const PlacedCollective* last = nullptr;
    for (const PlacedCollective* group : groups) {
      if (last == nullptr || !are_alike(*group, *last))
        made.push_back(of(*group));
      else
        made.push_back(made.back());
      last = group;
    }
    return ringsim::in_groups(made);
  }

 private:
  static bool are_alike(const PlacedCollective& one, const PlacedCollective& other) {
    const CollectiveRequest &a = one.job.request, &b = other.job.request;
    return one.job.algorithm == other.job.algorithm && one.job.arguments.numbers == other.job.arguments.numbers &&
           one.job.arguments.texts == other.job.arguments.texts && a.op == b.op && a.bytes == b.bytes &&
           a.ranks == b.ranks && a.channels == b.channels && a.orders == b.orders && a.tree == b.tree;
  }
  CheckedSchedule of(const PlacedCollective& group) {
    for (const auto& each : known_)
      if (are_alike(group, *each.first)) return each.second;
    known_.emplace_back(&group, schedule_of(scenario_, group, options_.stop, options_.element));
    return known_.back().second;
  }

  const Scenario& scenario_;
  const PredictOptions& options_;
  std::vector<std::pair<const PlacedCollective*, CheckedSchedule>> known_;
};

}  // namespace

Program TrainingRun::plan_program_of(const Scenario& scenario, const PredictOptions& options, WatchedWork* work) {
  std::map<PlanExchange, std::vector<const PlacedCollective*>> placed;  // by group
  for (const PlacedCollective& one : placed_.exchanges) placed[one.exchange].push_back(&one);
  GroupSchedules schedules(scenario, options);
  const auto call = [&](const PlanExchange& exchange) {
    PlanCall made{.schedule = schedules.in_groups(placed.at(exchange)), .plan = 0, .launch = step_.launch};
    if (scenario.library) {
      const LibraryCall& by = scenario.library->exchanges.at(exchange);
      made.plan = by.number;
      made.launch = by.launch + by.own_pass + (scenario.calibration ? scenario.calibration->launch : Picoseconds{0});
    }
    return made;
  };
  PlanProgram plan = spec_.trace ? spec_.trace->program(call, work) : plan_program(spec_.plan->program, call, work);
  plan_streams_ = {.tensor = plan.tensor,
                   .data = plan.data,
                   .replica = plan.replica,
                   .context = plan.context,
                   .expert = plan.expert};
  for (const PlanHelper& helper : plan.helpers) {
    std::optional<NodeId> node;
    for (const auto& [exchange, groups] : placed) {
      if (exchange.use != helper.use || exchange.stage != helper.stage) continue;
      const std::vector<NodeId>& helpers = groups[static_cast<std::size_t>(helper.group)]->helpers;
      if (static_cast<std::size_t>(helper.number) < helpers.size())
        node = helpers[static_cast<std::size_t>(helper.number)];
    }
    ensure(node.has_value(), "every helper of a plan has a place");
    plan_helpers_.push_back(*node);
  }
  return std::move(plan.program);
}

void TrainingRun::describe_plan(TrainingReport& report) const {
  const PlanTraining& plan = *spec_.plan;
  const PlanGrid& grid = plan.program.grid;
  PlanReport out{.tensor = grid.tensor(),
                 .pipeline = grid.pipeline(),
                 .virtual_pipeline = plan.program.chunks,
                 .context = grid.context(),
                 .expert = grid.expert(),
                 .data = grid.data() / grid.context(),
                 .micro_batches = plan.program.micro_batches,
                 .schedule = std::string(to_string(plan.program.schedule)),
                 .shard = std::string(to_string(plan.program.shard)),
                 .split = {},
                 .memory = plan.memory};
  const std::vector<RankAccount> ranks = run_->accounts().ranks();
  const auto last = std::max_element(ranks.begin(), ranks.end(),
                                     [](const RankAccount& a, const RankAccount& b) { return a.end < b.end; });
  const PlanSplit& all = plan_account_->of(static_cast<Actor>(last - ranks.begin()));
  ensure(all.total() == last->split.total(), "the parts of a plan's step add up to its time");
  const int steps = step_.steps - spec_.warmup;
  for (Picoseconds PlanSplit::*part :
       {&PlanSplit::passes, &PlanSplit::recompute, &PlanSplit::optimizer, &PlanSplit::tensor, &PlanSplit::context,
        &PlanSplit::expert, &PlanSplit::data, &PlanSplit::pipeline})
    out.split.*part = all.*part / steps;
  out.split.bubble = report.step - out.split.total();  // and what rounding leaves
  report.plan = std::move(out);
}

}  // namespace ringsim
