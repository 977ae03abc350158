#include "validate/analysis/plan_bound.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/training/plan_gathers.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

Picoseconds pass_time(const std::vector<PlanKernel>& pass, const AloneTime& alone) {
  Picoseconds time{0};
  for (const PlanKernel& item : pass)
    time = add(time, item.is_call() ? alone(item.use, item.op, item.bytes) : item.time);
  return time;
}

PassTimes times_of(const PlanSpec& program, const AloneTime& alone) {
  PassTimes times;
  for (const std::vector<std::vector<PlanLayer>>& stage : program.layers) {
    auto& forward = times.forward.emplace_back();
    auto& backward = times.backward.emplace_back();
    for (const std::vector<PlanLayer>& chunk : stage) {
      forward.emplace_back(0);
      backward.emplace_back(0);
      for (const PlanLayer& layer : chunk) {
        forward.back() = add(forward.back(), pass_time(layer.forward, alone));
        backward.back() =
            add(backward.back(), add(pass_time(layer.recompute, alone), pass_time(layer.backward, alone)));
      }
    }
  }
  return times;
}

/// The collectives of stage 0's data groups in a step, those of one kind in one.
struct DataTimes {
  Picoseconds reduce{0}, gather{0};
};

DataTimes merged(const PlanSpec& program, const AloneTime& alone) {
  std::map<std::pair<PlanUse, CollectiveOp>, Bytes> bytes;
  for (const auto& [exchange, uses] : plan_data_uses(program, 0))
    if (program.shard != PlanShard::full || exchange.use != PlanUse::replica)  // whose sums have a stream of their own
      bytes[{exchange.use, exchange.op}] += exchange.bytes * uses;
  DataTimes times;
  for (const auto& [kind, all] : bytes) {
    Picoseconds& part = kind.second == CollectiveOp::all_gather ? times.gather : times.reduce;
    part = add(part, alone(kind.first, kind.second, all));
  }
  return times;
}

}  // namespace

Picoseconds plan_bound(const PlanTraining& plan, const AloneTime& alone, bool data) {
  const PlanSpec& program = plan.program;
  const PassTimes times = times_of(program, alone);
  const PipelineShape shape = program.shape();
  const Picoseconds hop =
      shape.stages > 1 ? alone(PlanUse::forward, CollectiveOp::send_recv, program.activations) : Picoseconds{0};
  const Picoseconds update = program.update.front(), pipeline = pipeline_time(shape, times, hop);
  if (!data || program.grid.data() == 1) return add(pipeline, update);
  const DataTimes parts = merged(program, alone);
  if (program.shard == PlanShard::full) return add(std::max(pipeline, add(parts.gather, parts.reduce)), update);

  const Picoseconds forward = times.forward.front().front(), backward = times.backward.front().front();
  const auto exposed = [&](bool overlaps, Picoseconds time, Picoseconds pass) {
    return overlaps ? std::max(Picoseconds{0}, time / shape.chunks - pass) : time;
  };
  if (program.shard == PlanShard::optimizer_gradients) {
    const Picoseconds each = parts.reduce / shape.micro_batches;
    const Picoseconds reduced = exposed(program.overlaps_reduce, each, backward) * shape.micro_batches;
    return add(add(pipeline, reduced), add(exposed(program.overlaps_gather, parts.gather, forward), update));
  }
  return add(add(pipeline, exposed(program.overlaps_reduce, parts.reduce, backward)),
             add(exposed(program.overlaps_gather, parts.gather, forward), update));
}

}  // namespace ringsim
