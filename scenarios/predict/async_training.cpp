#include "scenarios/predict/async_training.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

std::string start_of(const AsyncSpec& spec) {
  switch (spec.start) {
    case AsyncSpec::Start::staggered:
      return "staggered";
    case AsyncSpec::Start::together:
      return "together";
    case AsyncSpec::Start::random:
      return fmt::format("random {}", spec.seed);
  }
  fail_invariant("workers start in one of three ways");
}

}  // namespace

AsyncServer async_server_of(const TrainingSpec& spec, const PlacedCollective& placed) {
  AsyncServer given{.workers = placed.job.request.ranks,
                    .servers = std::max(1, spec.servers),
                    .updates = spec.async->updates,
                    .model = spec.gradients(),
                    .offsets = {},
                    .every = spec.every,
                    .master = spec.servers == 0 ? spec.master : -1};
  const Picoseconds passes = async_passes(spec.step, spec.every, {}, 0);
  // Not one of the draws of `jitter`, which may have the same seed.
  const Draws random{.distribution = Distribution::uniform, .spread = passes, .seed = spec.async->seed};
  for (Actor worker = 0; worker < given.workers; ++worker) {
    Picoseconds offset{0};
    if (spec.async->start == AsyncSpec::Start::staggered) offset = times(worker, passes / given.workers);
    if (spec.async->start == AsyncSpec::Start::random) offset = random.of(worker, -1);
    given.offsets.push_back(offset);
  }
  return given;
}

AsyncReport async_report(const TrainingSpec& spec, const AsyncResult& result) {
  AsyncReport report{.updates = result.updates, .staleness = result.mean_staleness(), .start = start_of(*spec.async)};
  const double seconds = static_cast<double>(result.window.count()) / static_cast<double>(picoseconds_per_second);
  if (seconds > 0) report.updates_per_s = static_cast<double>(result.updates) / seconds;
  report.histogram.assign(result.histogram.begin(), result.histogram.end());
  for (const AsyncWorker& worker : result.workers) {
    report.stalest = std::max(report.stalest, worker.stalest);
    const auto n = static_cast<double>(worker.shard_updates);
    report.workers.push_back({.updates = worker.updates,
                              .staleness = n > 0 ? static_cast<double>(worker.staleness) / n : 0,
                              .stalest = worker.stalest});
  }
  return report;
}

TimeSplit async_split(const AsyncResult& result, int every) {
  ensure(result.updates > 0, "some updates count");
  TimeSplit split;
  for (const AsyncWorker& worker : result.workers) split += worker.split;
  return split / (result.updates * every);
}

}  // namespace ringsim
