#include "tools/replay/replay_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/memory.hpp"
#include "tools/stop.hpp"
#include "validate/replay/memory.hpp"
#include "validate/replay/replay.hpp"

namespace ringsim::tools {

namespace {

void refuse_training(const Scenario& scenario) {
  const TrainingSpec& training = *scenario.training;
  const auto refuse = [&](const char* where, const std::string& message, const char* hint) {
    throw InputError(scenario.file + ": " + where, message, hint);
  };
  if (scenario.jobs.size() > 1)
    refuse("/jobs", "expected only a training step, found other jobs", "a replay executes one program at a time");
  if (scenario.library)
    refuse("/library", fmt::format("expected catalog algorithms, found {}", scenario.library->name),
           "a replay executes ringsim's schedules and has no library kernels");
  if (training.async)
    refuse("/training/regime/mode", "expected sync, found async",
           "a replay checks the sums of each step, and workers that do not wait have no common sums");
  if (training.regime->kind != Regime::Kind::ddp && training.regime->kind != Regime::Kind::parameter_server)
    refuse("/training/regime", fmt::format("expected ddp or parameter_server, found {}", training.regime->name),
           "a replay checks gradients, which must be summed over all ranks in each step");
  if (training.regime->kind == Regime::Kind::parameter_server && training.sample.count > 0)
    refuse("/training/workload/sample_bytes", "expected no samples distributed by a server, found some",
           "a replay checks only gradients and weights; remove the key");
  if (!exchanges(scenario))
    refuse("/training", "expected several ranks or a server, found one rank", "there is no data to send");
  if (training.gradients().count == 0)
    refuse("/training/workload", "expected layers with parameters, found none", "there is no data to send");
  for (const Bucket& bucket : training.step.buckets)
    if (bucket.bytes.count % replay::element_bytes != 0)
      refuse("/training/workload",
             fmt::format("expected buckets of whole elements of {} bytes, found one of {}", replay::element_bytes,
                         format(bucket.bytes)),
             "to change this, set bytes_per_parameter or the parameters of the layers");
  const Layout shards = Layout::near_equal(training.gradients(), std::max(1, training.servers));
  for (int shard = 0; shard < shards.n_chunks(); ++shard)
    if (const Bytes bytes = shards.size(static_cast<std::uint32_t>(shard), 1); bytes.count % replay::element_bytes != 0)
      refuse("/training/regime",
             fmt::format("expected servers with whole elements of {} bytes, found one with {}", replay::element_bytes,
                         format(bytes)),
             "use fewer servers, so that each has a multiple of the element size");
  if (training.slowdown > 1'000'000)
    refuse("/training/slowdown", "expected 1, found more",
           "a replay uses timers instead of kernels, and a collective does not slow them down");
}

}  // namespace

ReplayWork::ReplayWork(const Scenario& scenario) {
  if (scenario.training)
    take_training(scenario);
  else
    take_collectives(scenario);
}

void ReplayWork::take_collectives(const Scenario& scenario) {
  jobs_ = schedules_of_elements(scenario, replay::element_bytes, &stop_requested);
  for (const PlacedSchedule& job : jobs_) {
    try {
      replay::require_replayable(job.schedule);
    } catch (const InputError& error) {
      throw InputError(scenario.file + (job.job.empty() ? "" : ": job " + job.job), error.message(), error.hint());
    }
  }
}

void ReplayWork::take_training(const Scenario& scenario) {
  refuse_training(scenario);
  const auto placed = collectives_of(scenario, topology_of(scenario), &stop_requested);
  training_ = std::make_unique<TrainingRun>(
      scenario, placed.front().front(),
      PredictOptions{.stop = &stop_requested, .max_memory = memory_limit(), .element = replay::element_bytes});
  const LoweredProgram& lowered = training_->run().lowered();
  try {
    replay::require_replayable(lowered.program());
    replay::require_replayable(lowered.schedule());
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": /training", error.message(), error.hint());
  }
  jobs_.push_back({"", lowered.schedule(), training_->placement()});
  program_ = {.lowered = &lowered, .warmup = scenario.training->warmup};
}

}  // namespace ringsim::tools
