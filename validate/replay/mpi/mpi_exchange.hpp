// Schedules carried out over MPI's point-to-point messages, a process an actor.
#pragma once

#include <atomic>
#include <chrono>
#include <vector>

#include "validate/replay/mpi/mpi_session.hpp"
#include "validate/replay/replay.hpp"

namespace ringsim::replay {

struct MpiReplay {
  std::vector<const Schedule*> jobs;       ///< proved; all run at the same time, and begin together
  const ReplayProgram* program = nullptr;  ///< of which the only job is the schedule; nullptr: jobs are collectives
  Repeats repeats;
  std::chrono::nanoseconds timeout;  ///< the most that one run may take
  const std::atomic<bool>* stop;     ///< true ends the replay with Interrupted
};

/// All processes call it, with the same jobs. They are numbered through all jobs: the actors of the first, then those
/// of the second; those left over wait. Process 0 gets [job] what was measured, the others nothing. A run begins for
/// each process when it leaves MPI's barrier, so times are exact only up to how far apart processes leave it.
///
/// Throws InputError if there are fewer processes than actors, EnvironmentError if a run is not done in time or
/// MPI reports an error, Interrupted; the session has been given up then.
std::vector<Measured> replay_by_mpi(MpiSession& session, const MpiReplay& replay);

}  // namespace ringsim::replay
