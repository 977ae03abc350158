// Those of an MPI session's processes that replay together. Nothing of it is there in a build without MPI.
#pragma once

#ifdef RINGSIM_MPI
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <span>
#include <string_view>
#include <vector>

#include "validate/replay/mpi/mpi_session.hpp"
#include "validate/replay/replay.hpp"

namespace ringsim::replay {

/// Throws EnvironmentError in MPI's words if `code` is an error.
void require_mpi(int code, const char* what);

/// From its making on: how long to wait for others, and whether to stop.
class MpiPatience {
 public:
  MpiPatience(std::chrono::nanoseconds timeout, const std::atomic<bool>* stop)
      : timeout_(timeout), stop_(stop), deadline_(std::chrono::steady_clock::now() + timeout) {}
  /// Leaves the core to others: there may be more processes than cores. Throws EnvironmentError "`what` within 30 s"
  /// when the time is over, and Interrupted.
  void stand_by(std::string_view what) const;

 private:
  std::chrono::nanoseconds timeout_;
  const std::atomic<bool>* stop_;
  std::chrono::steady_clock::time_point deadline_;
};

/// The first `n` of a session's processes, while it lives. All of the session's make one, at the same time.
class FirstProcesses {
 public:
  /// Waits for all; a process without a part leaves its core to the others. Throws InputError if there are fewer than
  /// `n`.
  FirstProcesses(const MpiSession& session, int n);
  ~FirstProcesses();
  FirstProcesses(const FirstProcesses&) = delete;
  FirstProcesses& operator=(const FirstProcesses&) = delete;

  /// Null for those that are not among them; they call nothing else.
  MPI_Comm get() const { return processes_; }
  void barrier(const MpiPatience& patience) const;
  /// What process 0 has there, all have then.
  void tell(std::span<char> text, const MpiPatience& patience) const;
  /// At process 0: [process] what each saw; else nothing. Equally many times in all.
  std::vector<ActorRecord> gathered(const ActorRecord& mine) const;

 private:
  MPI_Comm processes_ = MPI_COMM_NULL;
};

}  // namespace ringsim::replay
#endif
