#include "scenarios/predict/expected_work.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// More than any run can do; sums of a few of these fit into 64 bits.
constexpr std::int64_t most = std::int64_t{1} << 56;
std::int64_t product(std::int64_t a, std::int64_t b) { return a > 0 && b > most / a ? most : a * b; }

/// Operations per step of an actor, over its first steps. At least 1.
std::int64_t operations_per_step(const Schedule& schedule, Actor actor) {
  constexpr int enough = 16;
  std::int64_t operations = 0, steps = 0;
  Step step;
  for (Lane lane = 0; lane < std::min(schedule.lanes, enough); ++lane)
    for (int i = 0; i < std::min(schedule.n_steps(actor, lane), enough); ++i) {
      step.clear();
      schedule.step(actor, lane, i, step);
      operations += static_cast<std::int64_t>(step.ops.size());
      ++steps;
    }
  return steps == 0 ? 1 : std::max<std::int64_t>(1, operations / steps);
}

/// Half of the operations, as each message is sent and received. A root or a server has more per step than others:
/// the median of three actors is that of a rank.
std::int64_t messages_of(const Schedule& schedule) {
  if (schedule.actors == 0) return 1;
  std::int64_t steps = 0;
  for (Actor actor = 0; actor < schedule.actors; ++actor)
    for (Lane lane = 0; lane < schedule.lanes; ++lane) steps += schedule.n_steps(actor, lane);
  std::array<std::int64_t, 3> each{operations_per_step(schedule, 0), operations_per_step(schedule, schedule.actors / 2),
                                   operations_per_step(schedule, schedule.actors - 1)};
  std::sort(each.begin(), each.end());
  return std::max<std::int64_t>(1, product(steps, each[1]) / 2);
}

/// The messages of one group of a job.
std::int64_t messages_of_group(const Job& job) {
  // The tree of switches needs the topology: every rank sends each piece up and gets it back.
  if (job.uses_fabric()) {
    const std::vector<Parameter>& parameters = job.algorithm->parameters;
    const bool has_segments = std::any_of(parameters.begin(), parameters.end(),
                                          [](const Parameter& each) { return each.name == "segments"; });
    const std::int64_t pieces = has_segments ? number(*job.algorithm, job.arguments, "segments") : 1;
    return product(2 * std::int64_t{job.request.ranks}, std::max<std::int64_t>(1, pieces));
  }
  try {
    return messages_of(make_schedule(*job.algorithm, job.request, job.arguments));
  } catch (const InputError&) {
    return 1;  // the point fails at once
  }
}

/// The messages of one rank and step, if all collectives were rings.
std::int64_t messages_of_plan(const PlanTraining& plan) {
  const PlanSpec& spec = plan.program;
  std::int64_t layers = 0, chunks = 0;
  for (const auto& stage : spec.layers)
    for (const auto& chunk : stage) {
      ++chunks;
      layers += static_cast<std::int64_t>(chunk.size());
    }
  const auto stages = static_cast<std::int64_t>(std::max<std::size_t>(1, spec.layers.size()));
  const std::int64_t passes = spec.forward_only ? 1 : 2;
  const auto around = [](int ranks) { return std::int64_t{ranks} - 1; };
  const bool gathers = spec.shard == PlanShard::full;
  // Two all-reduces per layer and pass within tensor groups, two exchanges within context and expert groups.
  std::int64_t per_layer =
      passes * (4 * around(spec.grid.tensor()) + 2 * around(spec.grid.context()) + 2 * around(spec.grid.expert()));
  if (gathers) per_layer += 3 * around(spec.grid.data());  // weights twice, gradients once
  std::int64_t messages = product(layers * spec.micro_batches, per_layer) / stages;
  if (!gathers && !spec.forward_only) messages += chunks * 2 * around(spec.grid.data()) / stages;
  if (spec.grid.pipeline() > 1) messages += 2 * std::int64_t{spec.micro_batches} * spec.chunks;
  return std::max<std::int64_t>(1, messages);
}

std::int64_t messages_of(const Scenario& scenario, std::size_t j) {
  const Job& job = scenario.jobs[j];
  const TrainingSpec* training = scenario.training_of(j);
  if (training == nullptr) return product(messages_of_group(job), job.n_groups());
  if (training->trace) return job.request.ranks;
  if (training->plan)
    return product(product(messages_of_plan(*training->plan), job.request.ranks), std::max(1, training->step.steps));
  const auto buckets = static_cast<std::int64_t>(training->step.buckets.size());
  return product(product(messages_of_group(job), std::max<std::int64_t>(1, buckets)),
                 std::max(1, training->step.steps));
}

}  // namespace

std::int64_t expected_work(const Scenario& scenario) {
  std::int64_t work = 0;
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    work += messages_of(scenario, j);
    if (scenario.model != NetworkModel::packet) continue;
    const Job& job = scenario.jobs[j];
    work += product(2 * std::int64_t{job.members()}, job.request.bytes.count / scenario.packet.mtu.count);
  }
  return std::max<std::int64_t>(1, std::min(work, most));
}

}  // namespace ringsim
