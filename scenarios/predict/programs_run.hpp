// The programs of one run: those of jobs and of training steps, on the GPUs that they share.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/program_run.hpp"
#include "sim/program/beside_programs.hpp"
#include "sim/run/disturbance.hpp"

namespace ringsim {

class ProgramsRun {
 public:
  struct Part {
    ProgramRun* run = nullptr;         ///< must outlive it
    std::vector<Actor> actors;         ///< [actor of the program] which actor of the run
    std::vector<std::size_t> jobs;     ///< [stream of the program] of which job of the scenario
    std::vector<std::string> streams;  ///< [stream] what traces call it
    SimTime start{};                   ///< as ProgramsBeside::Part's
  };
  /// A task of any of them, for traces.
  struct Task {
    Actor actor = 0;
    Stream stream = 0;  ///< as stream_name() counts them
    int iteration = 0;
    SimTime begin{}, end{};
    std::string name;
  };

  /// What traces call the streams of a training: "compute", its second of that kind "compute 2"; after `before`.
  static std::vector<std::string> stream_names(const Program& program, const std::string& before);

  /// Its actors are those of all parts, numbered from 0 without a gap.
  explicit ProgramsRun(std::vector<Part> parts);
  ProgramsRun(const ProgramsRun&) = delete;
  ProgramsRun& operator=(const ProgramsRun&) = delete;

  const CheckedSchedule& schedule() const;
  /// As RunOptions::plan_of_channel, up to the last channel in use.
  std::vector<std::uint16_t> plan_of_channel() const;
  /// [lane] of which job, as RunOptions::jobs.
  std::vector<std::size_t> jobs() const;
  /// Those of a job of that part, but for the one that waits for its start.
  Disturbance::Lanes lanes_of(std::size_t part, std::size_t job) const;
  /// Which actor of its program does what is on that lane.
  Actor own_actor(Actor actor, Lane lane) const;
  /// The single collectives that are called: a program moves the channels of what it calls.
  std::vector<CheckedSchedule> called() const;

  /// Give it to RunOptions::on_compute.
  void listen(const ComputeEvent& event);
  /// Give it to RunOptions::longer.
  Picoseconds longer(const ComputeEvent& event);
  /// Told of each task when it has ended. Comes before the run.
  void tell_tasks(
      const std::function<void(const Task&)>& on_task, const std::function<void()>& begins = [] {});
  /// The task of a step of the schedule.
  PathTask task_of(Actor actor, Lane lane, int step, PathCause cause) const;
  /// The path of the part's last rank, with steps of the schedule. Refers to this object.
  ProgramPath path_of(std::size_t part) const;
  const std::string& stream_name(Stream stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  /// True if a step belongs to a called schedule: neither a launch nor a task of its own.
  bool is_called(Actor actor, Lane lane, int step) const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  /// The event as one of the part that it belongs to; nothing for a lane that waits for a start.
  std::optional<std::pair<std::size_t, ComputeEvent>> own_event(const ComputeEvent& event) const;

  std::vector<Part> parts_;
  std::vector<std::string> streams_;      // of all parts
  std::optional<ProgramsBeside> beside_;  // none: one part, which is the schedule
};

}  // namespace ringsim
