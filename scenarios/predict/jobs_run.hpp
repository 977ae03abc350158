// The collectives of a scenario with jobs or groups as calls of one program: an actor per GPU, a stream per job.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/predict/no_effect.hpp"
#include "scenarios/predict/program_run.hpp"
#include "scenarios/setup/setup.hpp"

namespace ringsim {

class JobsRun {
 public:
  /// Jobs that train have a stream without tasks. `schedules`: as PredictOptions::schedules; `room`: as ProgramRun's.
  /// Throws what schedule_of() and check() throw. Both must outlive it.
  JobsRun(const Scenario& scenario, const Setup& setup, const std::vector<PlacedSchedule>* schedules, int room,
          const std::atomic<bool>* stop);
  JobsRun(const JobsRun&) = delete;
  JobsRun& operator=(const JobsRun&) = delete;

  ProgramRun& run() { return *run_; }
  /// [actor] GPUs in the order of the ranks of the first job, those that others add, then the helpers of each
  /// collective.
  const std::vector<NodeId>& placement() const { return placement_; }
  int n_gpus() const { return run_->program().ranks; }
  const std::vector<std::string>& names() const { return names_; }           ///< [actor]
  const std::vector<std::vector<Actor>>& actors() const { return actors_; }  ///< [job][rank]

  struct Done {
    SimTime begin = SimTime::max();  ///< of its launch on the first GPU
    SimTime end{};                   ///< on the last
    std::int64_t messages = 0;
    Proof proof;  ///< of its first group
  };
  /// [job]; when the run is over.
  const std::vector<Done>& jobs() const { return jobs_; }
  /// What each `after` did: nothing, if no GPU takes part in both jobs.
  std::vector<SettingEffect> effects() const;
  /// The time of all jobs together: on the GPU that ends last.
  Picoseconds time() const { return run_->last_to_end().end.time_since_epoch(); }

 private:
  Actor actor_of(NodeId gpu);
  /// Adds the calls of a job, and their ranks.
  void add_calls(std::size_t job, const std::vector<const PlacedCollective*>& groups,
                 const std::vector<PlacedSchedule>* schedules, const std::atomic<bool>* stop);
  Picoseconds before_steps(std::size_t job) const;
  Program::Role role_of(const std::vector<int>& calls, bool is_rank) const;

  const Scenario& scenario_;
  const Setup& setup_;
  Program program_;                      // until run_ has it
  std::vector<std::vector<int>> calls_;  // [actor][job] its call, or -1
  std::map<std::uint32_t, Actor> gpus_;  // by node
  std::vector<NodeId> placement_;
  std::vector<std::string> names_;
  std::vector<std::vector<Actor>> actors_;
  std::vector<Done> jobs_;
  std::optional<ProgramRun> run_;
};

}  // namespace ringsim
