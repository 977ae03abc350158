#include "scenarios/predict/training.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

TimeSplit over(const TimeSplit& split, int steps) {
  TimeSplit mean;
  for (Picoseconds TimeSplit::*part :
       {&TimeSplit::compute, &TimeSplit::waiting_for_others, &TimeSplit::exposed_communication,
        &TimeSplit::waiting_for_host, &TimeSplit::idle, &TimeSplit::overlapped})
    mean.*part = split.*part / steps;
  return mean;
}

/// What an optimizer keeps per parameter, in fp32: SGD nothing, with momentum one number, Adam two (Rajbhandari et al.,
/// ZeRO, SC 2020, section 3.1, without the fp32 copy of the weights that mixed precision adds).
std::int64_t state_per_parameter(const std::string& optimizer) {
  return optimizer == "adam" ? 8 : optimizer == "momentum" ? 4 : 0;
}

}  // namespace

TrainingStep training_step_of(const Scenario& scenario) {
  TrainingStep step = scenario.training->step;
  if (scenario.main().request.ranks > 1)
    step.launch = launch_of(scenario);
  else
    step.buckets.clear();  // nobody to exchange gradients with
  return step;
}

TrainingRun::TrainingRun(const Scenario& scenario, const PlacedCollective& placed, const std::atomic<bool>* stop)
    : spec_(*scenario.training), step_(training_step_of(scenario)) {
  std::map<Bytes, CheckedSchedule> known;  // buckets of one size have one schedule
  for (const Bucket& bucket : step_.buckets) {
    auto found = known.find(bucket.bytes);
    if (found == known.end()) {
      PlacedCollective one = placed;
      one.job.request.bytes = bucket.bytes;
      found = known.emplace(bucket.bytes, schedule_of(scenario, one, stop)).first;
    }
    step_.schedules.push_back(found->second);
  }
  lowered_ = std::make_unique<LoweredProgram>(check(training_program(step_)));
  accounts_ = std::make_unique<Accounts>(*lowered_, spec_.warmup);
}

RankAccount TrainingRun::last_to_end() const {
  const std::vector<RankAccount> ranks = accounts_->ranks();
  return *std::max_element(ranks.begin(), ranks.end(),
                           [](const RankAccount& a, const RankAccount& b) { return a.end < b.end; });
}

ProgramPath TrainingRun::path() const {
  const RankAccount last = last_to_end();
  return {.begin = last.end - last.split.total(),
          .end = last.end,
          .last_begin = last.end - last.last,
          .task_of = [this](const PathElement& element) {
            return task_of(element.by, element.lane, element.step, element.cause);
          }};
}

PathTask TrainingRun::task_of(Actor actor, Lane lane, int step, PathCause cause) const {
  const StepPlace place = lowered_->place_of(actor, lane, step);
  const auto stream = static_cast<std::size_t>(place.stream);
  const Program::Task& task = program().role(actor).streams[stream][static_cast<std::size_t>(place.task)];
  PathTask found{.kind = task.name.substr(0, task.name.find(' ')),
                 .name = task.name,
                 .cause = std::string(to_string(cause)),
                 .step = place.step};
  if (task.call >= 0) {
    found.kind = found.name = program().calls[static_cast<std::size_t>(task.call)].name;
    if (cause == PathCause::compute && place.step < 0) found.cause = "launch";
  } else if (program().streams[stream] == Program::StreamKind::host) {
    found.cause = "host";
  }
  return found;
}

TrainingReport TrainingRun::report(const Timeline& timeline) const {
  const RankAccount last = last_to_end();
  const int steps = step_.steps - spec_.warmup;
  TrainingReport report;
  report.regime = spec_.regime;
  report.workload = spec_.workload;
  report.compute = spec_.compute;
  report.optimizer = spec_.optimizer;
  report.batch = spec_.batch * program().ranks;
  report.parameters = spec_.parameters;
  report.buckets = step_.buckets.size();
  report.split = over(last.split, steps);
  report.step = report.split.total();
  report.shortest = last.shortest;
  report.longest = last.longest;
  report.steady = steps > 1 && last.last == last.before_last;
  const double seconds = static_cast<double>(report.step.count()) / static_cast<double>(picoseconds_per_second);
  if (seconds > 0) {
    report.samples_per_s = static_cast<double>(report.batch) / seconds;
    TrainingStep alone = step_;
    alone.buckets.clear();
    report.efficiency =
        static_cast<double>(training_step_time(alone, {}).count()) / static_cast<double>(report.step.count());
  }
  report.sent = Bytes{timeline.bytes_sent.count / step_.steps};
  report.weights = report.gradients = Bytes{spec_.parameters} * spec_.bytes_per_parameter;
  report.state = Bytes{spec_.parameters} * state_per_parameter(spec_.optimizer);
  for (const Bucket& bucket : step_.buckets) report.bucket_copies += bucket.bytes;
  return report;
}

}  // namespace ringsim
