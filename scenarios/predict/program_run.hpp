// A program that a scenario asks for, proved, lowered, and listened to while it runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/predict/explain.hpp"
#include "sim/program/account.hpp"
#include "sim/program/lower.hpp"
#include "sim/program/slowdown.hpp"

namespace ringsim {

class ProgramRun {
 public:
  /// `warmup`: iterations that do not count. `start`: as Accounts'; `room`: as LoweredProgram's. Throws what check()
  /// throws.
  /// What is proved and lowered is reported to `work`, which may be nullptr.
  ProgramRun(Program program, int warmup, SimTime start = {}, int room = all_channels, WatchedWork* work = nullptr);

  const Program& program() const { return lowered_->program(); }
  const CheckedSchedule& schedule() const { return lowered_->schedule(); }
  const LoweredProgram& lowered() const { return *lowered_; }
  const Accounts& accounts() const { return *accounts_; }

  /// Told of each task when it has ended, also of actors that another stands for. Comes before the run. `begins`:
  /// called when a run begins; tasks told before are void.
  void tell_tasks(
      std::function<void(const TaskSpan&)> on_task, std::function<void()> begins = [] {}) {
    on_task_.push_back(std::move(on_task));
    on_begin_.push_back(std::move(begins));
  }
  /// Hears which program is run, then each event of the run; listen_to() starts this again. Comes before the run.
  void tell_events(std::function<void(const LoweredProgram&)> begins,
                   std::function<void(const ComputeEvent&)> on_event) {
    begins_ = std::move(begins);
    on_event_ = std::move(on_event);
    begins_(*in_run_);
  }
  /// Give it to RunOptions::on_compute.
  void listen(const ComputeEvent& event) {
    accounts_->on_compute(event);
    if (on_event_) on_event_(event);
    if (slowdown_) slowdown_->on_compute(event);
  }
  /// Has kernels take so many millionths of their time while a collective runs on their GPU that is not on one of the
  /// streams `apart`. Comes before the run.
  void slow_down(std::int64_t millionths, std::vector<Stream> apart) {
    slowdown_millionths_ = millionths;
    streams_apart_ = std::move(apart);
    slowdown_.emplace(*in_run_, millionths, streams_apart_);
  }
  /// When the run is over: a kernel was slowed.
  bool has_slowed() const { return slowdown_ && slowdown_->has_slowed(); }
  /// Give it to RunOptions::longer.
  Picoseconds longer(const ComputeEvent& event) { return slowdown_ ? slowdown_->longer(event) : Picoseconds{0}; }

  /// It listens to a run of the program lowered another way, from its start; nullptr: lowered().
  void listen_to(std::shared_ptr<const LoweredProgram> lowered);

  /// When the run is over: of the rank that ended last (of several, the first).
  RankAccount last_to_end() const;
  /// The iterations of that rank after the warm-up. Refers to this object.
  ProgramPath path() const;
  /// The task of a step of the lowered schedule.
  PathTask task_of(Actor actor, Lane lane, int step, PathCause cause) const;

 private:
  int warmup_;
  SimTime start_;
  std::int64_t slowdown_millionths_ = 0;  // 0: kernels take their time
  std::vector<Stream> streams_apart_;
  std::vector<std::function<void(const TaskSpan&)>> on_task_;
  std::vector<std::function<void()>> on_begin_;
  std::function<void(const LoweredProgram&)> begins_;
  std::function<void(const ComputeEvent&)> on_event_;
  std::shared_ptr<const LoweredProgram> lowered_, in_run_;
  std::unique_ptr<Accounts> accounts_;
  std::optional<Slowdown> slowdown_;
};

}  // namespace ringsim
