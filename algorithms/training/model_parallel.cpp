#include "algorithms/training/model_parallel.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "algorithms/training/plan_program.hpp"
#include "sim/base/error.hpp"
#include "sim/check/in_groups.hpp"

namespace ringsim {

namespace {

/// `part` of `of` parts of a time, rounded up. Requires 0 <= part, 0 < of.
Picoseconds share_of(Picoseconds time, std::int64_t part, std::int64_t of) {
  __extension__ using Wide = __int128;
  const Wide share = (Wide{time.count()} * part + of - 1) / of;
  if (share > Wide{INT64_MAX}) fail_too_long();
  return Picoseconds{static_cast<std::int64_t>(share)};
}

Picoseconds of_microbatch(Picoseconds time, const Pipeline& pipeline) {
  return share_of(time, pipeline.ranks, pipeline.microbatches);
}

std::int64_t elements_of(const LayerCost& layer) {
  return std::accumulate(layer.tensors.begin(), layer.tensors.end(), std::int64_t{0});
}

/// [rank] its share of the update, by parameters; of a model without any by layers.
std::vector<Picoseconds> updates_of(const TrainingStep& step, const std::vector<Stage>& stages) {
  std::int64_t all = 0;
  for (const Stage& stage : stages) all += stage.parameters;
  std::vector<Picoseconds> updates;
  for (const Stage& stage : stages)
    updates.push_back(all > 0 ? share_of(step.update, stage.parameters, all)
                              : share_of(step.update, static_cast<std::int64_t>(stage.end - stage.first),
                                         static_cast<std::int64_t>(step.layers.size())));
  return updates;
}

/// A stage for each rank, with the kernels of one microbatch.
PlanSpec plan_of(const TrainingStep& step, const Pipeline& pipeline) {
  const std::vector<Stage> stages = stages_of(step.layers, pipeline.ranks);
  PlanSpec plan{.name = step.name,
                .iterations = step.steps,
                .grid = PlanGrid(1, pipeline.ranks, 1, "tp-cp-ep-dp-pp"),
                .schedule = PipelineSchedule::gpipe};
  plan.micro_batches = pipeline.microbatches;
  plan.shares_cut_streams = true;
  plan.update = updates_of(step, stages);
  for (const Stage& stage : stages) {
    std::vector<PlanLayer>& layers = plan.layers.emplace_back().emplace_back();
    for (std::size_t l = stage.first; l < stage.end; ++l) {
      const LayerCost& layer = step.layers[l];
      const auto kernel = [&](Picoseconds time) {
        return PlanKernel{.name = {}, .time = of_microbatch(time, pipeline)};
      };
      layers.push_back({.name = layer.name,
                        .parameters = elements_of(layer),
                        .forward = {kernel(layer.forward)},
                        .recompute = {},
                        .backward = {kernel(layer.backward)}});
    }
  }
  return plan;
}

/// A host thread for each rank, which launches its kernels one after the other; if it waits, those of a step when the
/// step before is done.
void add_hosts(Program& program, const TrainingStep& step) {
  const auto host = static_cast<Stream>(program.streams.size());
  program.streams.push_back(Program::StreamKind::host);
  for (Program::Role& role : program.roles) {
    std::vector<Program::Task> launches;
    std::vector<Program::Task>& kernels = role.streams[0];
    for (Program::Task& kernel : kernels) {
      launches.push_back({.name = "launch " + program.name_of(kernel),
                          .time = step.host_launch,
                          .call = -1,
                          .after = {},
                          .touches = {}});
      if (step.host_waits && launches.size() == 1)
        launches.back().after.push_back({0, static_cast<int>(kernels.size()), 1});
      kernel.after.push_back({host, static_cast<int>(launches.size()), 0});
    }
    role.streams.push_back(std::move(launches));
  }
}

}  // namespace

std::vector<Stage> stages_of(const std::vector<LayerCost>& layers, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  ensure(1 <= ranks && n <= layers.size(), "every rank has a layer");
  // As many layers as fit into `limit`, rank by rank, but one at least for each rank that comes.
  const auto cut = [&](Picoseconds limit) {
    std::vector<Stage> stages{{}};
    Picoseconds time{0};
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Picoseconds more = add(layers[l].forward, layers[l].backward);
      const bool is_full = add(time, more) > limit || layers.size() - l < n + 1 - stages.size();
      if (l > stages.back().first && is_full) {
        stages.push_back({.first = l});
        time = Picoseconds{0};
      }
      time = add(time, more);
      stages.back().end = l + 1;
      stages.back().parameters += elements_of(layers[l]);
    }
    return stages;
  };
  Picoseconds low{0}, high{0};  // enough is more than `low` and at most `high`
  for (const LayerCost& layer : layers) {
    const Picoseconds time = add(layer.forward, layer.backward);
    low = std::max(low, time);
    high = add(high, time);
  }
  low -= Picoseconds{1};
  while (high - low > Picoseconds{1}) {
    const Picoseconds middle = low + (high - low) / 2;
    (cut(middle).size() <= n ? high : low) = middle;
  }
  return cut(high);
}

Program model_parallel_program(const TrainingStep& step, const Pipeline& pipeline, WatchedWork* work) {
  ensure(step.buckets.empty() && pipeline.microbatches >= 1, "model parallelism has microbatches and no buckets");
  ensure(pipeline.transfer.has_value() || pipeline.ranks == 1, "several ranks exchange activations");
  const auto transfer = [&](const PlanExchange&) {
    return PlanCall{.schedule = in_groups({*pipeline.transfer}), .plan = 0, .launch = step.launch};
  };
  Program program = plan_program(plan_of(step, pipeline), transfer, work).program;
  if (step.host_launch.count() > 0) add_hosts(program, step);
  return program;
}

std::vector<Picoseconds> pipeline_step_ends(const TrainingStep& step, const Pipeline& pipeline, Picoseconds transfer) {
  const std::vector<Stage> stages = stages_of(step.layers, pipeline.ranks);
  const auto n = stages.size();
  // [rank] when it has computed what it was given so far; [cut] when the transfer before has come in.
  std::vector<Picoseconds> gpu(n, Picoseconds{0}), cut_free(n, Picoseconds{0});
  const auto pass = [&](std::size_t rank, Picoseconds LayerCost::*part) {
    for (std::size_t l = stages[rank].first; l < stages[rank].end; ++l)
      gpu[rank] = add(gpu[rank], of_microbatch(step.layers[l].*part, pipeline));
  };
  const auto send = [&](std::size_t from, std::size_t to, std::size_t cut) {
    cut_free[cut] = add(std::max(cut_free[cut], gpu[from]), add(step.launch, transfer));
    gpu[to] = std::max(gpu[to], cut_free[cut]);
  };
  for (int m = 0; m < pipeline.microbatches; ++m)
    for (std::size_t rank = 0; rank < n; ++rank) {
      pass(rank, &LayerCost::forward);
      if (rank + 1 < n) send(rank, rank + 1, rank);
    }
  for (int m = 0; m < pipeline.microbatches; ++m)
    for (std::size_t rank = n; rank-- > 0;) {
      pass(rank, &LayerCost::backward);
      if (rank > 0) send(rank, rank - 1, rank - 1);
    }
  const std::vector<Picoseconds> updates = updates_of(step, stages);
  for (std::size_t rank = 0; rank < n; ++rank) gpu[rank] = add(gpu[rank], updates[rank]);
  return gpu;
}

}  // namespace ringsim
