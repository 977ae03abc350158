// What the streams of a program do in its last iteration: for pictures.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scenarios/predict/programs_run.hpp"
#include "scenarios/predict/trace.hpp"

namespace ringsim {

/// Listens to a run. The programs must outlive it.
///
/// Memory: the tasks of one iteration of each actor, whatever the messages and iterations are.
class StreamRecord {
 public:
  /// Comes before the run. `part`: which of the programs.
  StreamRecord(ProgramsRun& programs, std::size_t part);

  /// When the run is over. `actors`: their names.
  std::vector<Recording::Streams> finish(const std::vector<std::string>& actors) const;

 private:
  struct Kept {
    Stream stream = 0;  // of the part
    Recording::StreamTask task;
    bool operator==(const Kept&) const = default;
  };
  std::vector<Recording::Stream> streams_of(const std::vector<Kept>& tasks, Picoseconds begin) const;

  const ProgramsRun::Part& part_;
  ringsim::Stream first_ = 0, end_ = 0;   // as ProgramsRun::Task counts them
  std::vector<std::vector<Kept>> tasks_;  // [actor] in order of their ends
};

}  // namespace ringsim
