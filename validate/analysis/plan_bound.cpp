#include "validate/analysis/plan_bound.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/training/plan_exchanges.hpp"
#include "algorithms/training/plan_gathers.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// Kernels and collectives one after the other, but for those of rings: a forward step waits for the hop before the
/// last one that was begun, and hops for each other; backward, a hop begins with its step, and the sum waits for both.
Picoseconds pass_time(const std::vector<PlanKernel>& pass, const AloneTime& alone) {
  Picoseconds now{0};
  std::optional<Picoseconds> hop, hop_before;  // the ends of the last two of a ring
  for (std::size_t i = 0; i < pass.size(); ++i) {
    const PlanKernel& item = pass[i];
    if (!item.is_of_ring()) {
      hop.reset();
      hop_before.reset();
      now = add(now, item.is_call() ? alone(item.use, item.op, item.bytes) : item.time);
      continue;
    }
    const bool is_backward = item.use == PlanUse::ring_back;
    if (item.is_call()) {
      hop_before = hop;
      hop = add(is_backward ? now : hop.value_or(now), alone(item.use, item.op, item.bytes));
      continue;
    }
    const bool follows_hop = pass[i - 1].is_call();  // which may be under way
    const std::optional<Picoseconds>& wanted = follows_hop ? (is_backward ? std::nullopt : hop_before) : hop;
    now = add(std::max(now, wanted.value_or(now)), item.time);
  }
  return now;
}

PassTimes times_of(const PlanSpec& program, const AloneTime& alone) {
  PassTimes times;
  Picoseconds gather{0};
  if (program.scatters) {
    const PlanExchange one = plan_detail::gather_of_cut(program, 0);
    gather = alone(one.use, one.op, one.bytes);
  }
  for (const std::vector<std::vector<PlanLayer>>& stage : program.layers) {
    auto& forward = times.forward.emplace_back();
    auto& backward = times.backward.emplace_back();
    auto& weights = times.weights.emplace_back();
    for (const std::vector<PlanLayer>& chunk : stage) {
      const bool is_first = times.forward.size() == 1 && forward.empty();
      const bool is_last = times.forward.size() == program.layers.size() && forward.size() + 1 == stage.size();
      forward.emplace_back(is_first ? Picoseconds{0} : gather);
      backward.emplace_back(is_last ? Picoseconds{0} : gather);
      weights.emplace_back(0);
      for (const PlanLayer& layer : chunk) {
        forward.back() = add(forward.back(), pass_time(layer.forward, alone));
        backward.back() =
            add(backward.back(), add(pass_time(layer.recompute, alone), pass_time(layer.backward, alone)));
        weights.back() = add(weights.back(), pass_time(layer.weights, alone));
      }
    }
  }
  return times;
}

/// Bytes of the data groups' collectives, by kind.
using KindBytes = std::map<std::pair<PlanUse, CollectiveOp>, Bytes>;

/// Times of stage 0's data groups' collectives, those of one kind in one.
struct DataTimes {
  Picoseconds reduce{0}, gather{0};
};

DataTimes times_of(const KindBytes& bytes, const AloneTime& alone) {
  DataTimes times;
  for (const auto& [kind, all] : bytes) {
    Picoseconds& part = kind.second == CollectiveOp::all_gather ? times.gather : times.reduce;
    part = add(part, alone(kind.first, kind.second, all));
  }
  return times;
}

/// Those of a step. Sums of full over replicas have a stream of their own.
DataTimes of_step(const PlanSpec& program, const AloneTime& alone) {
  KindBytes bytes;
  for (const auto& [exchange, uses] : plan_data_uses(program, 0))
    if (program.shard != PlanShard::full || exchange.use != PlanUse::replica)
      bytes[{exchange.use, exchange.op}] += exchange.bytes * uses;
  return times_of(bytes, alone);
}

/// Those of the first chunk's weights: its backward pass is the last, its forward pass the first.
DataTimes of_first_chunk(const PlanSpec& program, const AloneTime& alone) {
  KindBytes bytes;
  for (const PlanBucket& bucket : plan_buckets(program, 0, 0)) {
    const std::int64_t parameters = plan_detail::parameters_of(program, 0, 0, bucket);
    const auto take = [&](const PlanExchange& exchange) { bytes[{exchange.use, exchange.op}] += exchange.bytes; };
    if (plan_detail::is_reduced(program, bucket))
      take(plan_detail::reduce_of(program, 0, parameters, bucket.has_experts));
    if (plan_detail::updates_parts(program, bucket))
      take(plan_detail::gather_of(program, 0, parameters, bucket.has_experts));
  }
  return times_of(bytes, alone);
}

}  // namespace

Picoseconds plan_bound(const PlanTraining& plan, const AloneTime& alone, bool data) {
  const PlanSpec& program = plan.program;
  const PassTimes times = times_of(program, alone);
  const PipelineShape shape = program.shape();
  const Picoseconds hop =
      shape.stages > 1 ? alone(PlanUse::forward, CollectiveOp::send_recv, program.activations) : Picoseconds{0};
  const Picoseconds update = program.update.front(), pipeline = pipeline_period(shape, times, hop);
  if (!data) return add(pipeline, update);
  const DataTimes step = of_step(program, alone);
  if (program.shard == PlanShard::full) return add(std::max(pipeline, add(step.gather, step.reduce)), update);

  const DataTimes first = of_first_chunk(program, alone);
  const auto exposed = [](Picoseconds time, Picoseconds pass) { return std::max(Picoseconds{0}, time - pass); };
  Picoseconds reduced = step.reduce, gathered = step.gather;
  if (program.overlaps_reduce) {
    const Picoseconds last_pass = (shape.splits_backward() ? times.weights : times.backward).front().front();
    reduced = exposed(first.reduce, last_pass);
    if (program.shard == PlanShard::optimizer_gradients) reduced *= shape.micro_batches;
  }
  if (program.overlaps_gather) gathered = exposed(first.gather, times.forward.front().front());
  return add(add(pipeline, reduced), add(gathered, update));
}

}  // namespace ringsim
