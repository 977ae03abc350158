// A training step of a scenario: its program, run and accounted for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "scenarios/predict/setup.hpp"
#include "scenarios/predict/why.hpp"
#include "sim/program/account.hpp"

namespace ringsim {

/// What a training step took, and where its time went. Means over the steps that count, of the rank that ended last
/// (of several, the first).
struct TrainingReport {
  std::string regime, workload, compute, optimizer;
  std::int64_t batch = 0;  ///< samples of all GPUs
  std::int64_t parameters = 0;
  std::size_t buckets = 0;
  Picoseconds step{0};  ///< the sum of the parts below, each rounded down to a picosecond
  Picoseconds shortest{0}, longest{0};
  bool steady = false;  ///< the last two steps took equally long
  TimeSplit split;
  double samples_per_s = 0;
  double efficiency = 0;                           ///< of one GPU's step without any communication, over this one
  Bytes sent;                                      ///< by all ranks and helpers, a step
  Bytes gradients, weights, state, bucket_copies;  ///< memory of a GPU, without activations
};

/// The step without the schedules of its buckets: with the launch of a collective.
TrainingStep training_step_of(const Scenario& scenario);

/// Makes the program of a scenario's training, proves it, and listens to its run.
class TrainingRun {
 public:
  /// Throws what schedule_of() and check() throw.
  TrainingRun(const Scenario& scenario, const PlacedCollective& placed, const std::atomic<bool>* stop);

  const CheckedSchedule& schedule() const { return lowered_->schedule(); }
  void listen(const ComputeEvent& event) { accounts_->on_compute(event); }
  TrainingReport report(const Timeline& timeline) const;
  /// When the run is over: the steps after the warm-up, of the rank that ended last (of several, the first). Refers to
  /// this object.
  ProgramPath path() const;

  const Program& program() const { return lowered_->program(); }
  /// Told of each task when it has ended, if set. Comes before the run.
  void tell_tasks(std::function<void(const TaskSpan&)> on_task) { accounts_->on_task = std::move(on_task); }
  /// Of a step of the lowered schedule.
  PathTask task_of(Actor actor, Lane lane, int step, PathCause cause) const;

 private:
  RankAccount last_to_end() const;

  const TrainingSpec& spec_;
  TrainingStep step_;
  std::unique_ptr<LoweredProgram> lowered_;
  std::unique_ptr<Accounts> accounts_;
};

}  // namespace ringsim
