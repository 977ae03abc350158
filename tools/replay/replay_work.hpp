// What a replay carries out of a scenario.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "scenarios/predict/training.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "validate/replay/program_data.hpp"

namespace ringsim::tools {

/// Its collectives, which run at the same time; or its training step, a program. Chunks consist of whole elements.
class ReplayWork {
 public:
  /// Throws InputError that names the file and the place in it if the scenario, or its training, cannot be replayed.
  /// `scenario` must outlive it.
  explicit ReplayWork(const Scenario& scenario);

  const std::vector<PlacedSchedule>& jobs() const { return jobs_; }
  /// The program whose schedule is that of the only job; nullptr: jobs are collectives.
  const replay::ReplayProgram* program() const { return program_ ? &*program_ : nullptr; }

 private:
  void take_collectives(const Scenario& scenario);
  void take_training(const Scenario& scenario);

  std::vector<PlacedSchedule> jobs_;
  std::unique_ptr<TrainingRun> training_;
  std::optional<replay::ReplayProgram> program_;
};

}  // namespace ringsim::tools
