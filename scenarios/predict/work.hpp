// What a scenario has run: one collective, or programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/predict/jobs_run.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/predict/programs_run.hpp"
#include "scenarios/predict/training.hpp"

namespace ringsim {

/// A single collective is a schedule by itself. Everything else is programs: a training step one, the collectives of
/// jobs and groups another.
class Work {
 public:
  /// Both must outlive it. Throws what schedule_of() and check() throw.
  Work(const Scenario& scenario, const Setup& setup, const PredictOptions& options);
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  const CheckedSchedule& whole() const { return programs_ ? programs_->schedule() : *collective_; }
  /// The schedules of single collectives that are run.
  std::vector<CheckedSchedule> called() const;
  const std::vector<std::vector<Actor>>& actors() const { return actors_; }  ///< [job][rank, perhaps helpers]
  const std::vector<NodeId>& placement() const { return placement_; }        ///< [actor]
  /// As RunOptions::plan_of_channel, if calls differ in their plans.
  std::vector<std::uint16_t> plan_of_channel() const;
  const std::vector<std::string>& names() const { return names_; }  ///< [actor]
  int n_ranks() const { return n_ranks_; }                          ///< the first actors

  ProgramsRun* programs() const { return programs_.get(); }             ///< nullptr: a collective by itself
  const JobsRun* jobs() const { return jobs_.get(); }                   ///< nullptr: no job is a collective
  TrainingRun* training(std::size_t job) const;                         ///< nullptr: the job does not train
  std::size_t part_of(std::size_t job) const { return part_of_[job]; }  ///< which of the programs
  /// Tells the options what they need of it, and listens. Comes before the run, which it must outlive.
  void listen(RunOptions& options, bool is_recorded);
  /// The timeline of the whole run, with most of its calls remembered (sim/program/remembered_calls.hpp), and in
  /// `remembered` how many; nothing if that is impossible or does not pay. `options`: those that listen() has told.
  std::optional<Timeline> run_remembering(const Topology& topology, const RunOptions& options, std::string& remembered);
  /// When the run is over. Of a folded one the messages of all ranks are counted as those of rank 0.
  void finish(const Timeline& timeline);
  /// [job] as disturbance_of() wants them.
  std::vector<Disturbance::Lanes> lanes() const;
  /// The report of a training step, when the run is over.
  TrainingReport report(std::size_t job) const { return training(job)->report(trainings_[job].traffic); }
  /// The effects of settings of jobs; call it when the run is over.
  std::vector<SettingEffect> effects() const;
  const Proof& proof() const;       ///< of the scenario's own collective or training
  std::int64_t n_messages() const;  ///< at most

 private:
  /// A job that trains, as the scenario's own.
  struct TrainingJob {
    std::unique_ptr<const Scenario> alone;  // none: it is the scenario's own
    std::unique_ptr<TrainingRun> run;
    void take(std::unique_ptr<TrainingRun> its);
    TrainingRun::Traffic traffic;
  };
  void take_collective(const PredictOptions& options);
  void take_training_alone(const PredictOptions& options);
  void take_jobs_alone(const PredictOptions& options);
  void take_several(const PredictOptions& options);
  void take_trainings(int room, const PredictOptions& options);
  void expect_own_gpus() const;
  ProgramsRun::Part part_with(ProgramRun& run, const std::vector<NodeId>& nodes, std::size_t ranks);
  /// The streams of the program of the jobs' collectives, one for each job.
  void name_jobs(ProgramsRun::Part& part) const;
  void count_message(const Span& message);

  const Scenario& scenario_;
  const Setup& setup_;
  std::optional<CheckedSchedule> collective_;
  std::unique_ptr<JobsRun> jobs_;
  std::vector<TrainingJob> trainings_;  // [job]
  std::unique_ptr<ProgramsRun> programs_;
  std::vector<std::size_t> part_of_;      // [job]
  std::vector<std::size_t> job_of_lane_;  // if there are several jobs
  std::vector<std::vector<Actor>> actors_;
  std::vector<NodeId> placement_;
  std::vector<std::string> names_;
  std::map<std::uint32_t, Actor> gpus_;  // by node, if there are several programs
  int n_ranks_ = 0;
};

}  // namespace ringsim
