// Which kernels each rank runs in the last iteration of a program, and what collective each of them is.
#pragma once

#include <cstddef>
#include <vector>

#include "scenarios/predict/programs_run.hpp"
#include "scenarios/predict/trace.hpp"

namespace ringsim {

/// Listens to a run. The programs must outlive it.
///
/// Memory: the tasks of one iteration of each actor.
class KernelRecord {
 public:
  /// Comes before the run. `part`: which of the programs.
  KernelRecord(ProgramsRun& programs, std::size_t part);

  /// When the run is over: fills Recording::calls and Recording::kernels.
  void finish(Recording& recording);

 private:
  /// Has calls that wait for others begin with their rank's step, if they began before it.
  void cut_early_waits(const std::vector<Recording::Call>& calls);

  const ProgramsRun::Part& part_;
  std::vector<std::vector<Recording::Kernel>> kernels_;  // [actor of the run]
};

}  // namespace ringsim
