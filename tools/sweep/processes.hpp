// A sweep beyond one machine: the processes that mpirun (or srun) started. Rank 0 hands out points and takes results,
// the others simulate. Nothing here but messages; who starts, places and ends processes is MPI.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/sweep/sweep_point.hpp"

namespace ringsim::tools {

class Processes {
 public:
  /// As MpiSession::join(), but nothing where this process was started alone: it has its threads.
  static std::unique_ptr<Processes> join();
  /// Sends home who still waits for a point, and takes leave of MPI.
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  bool first() const;  ///< rank 0

  /// As MpiSession::agree().
  bool agree(const std::function<std::string()>& read);
  /// Rank 0: as sweep_points(), on all others.
  void hand_out(const std::vector<std::size_t>& points,
                const std::function<bool(std::size_t point, PointOutcome&& outcome)>& take);
  /// The others: takes points until there are no more.
  void work(const std::function<PointOutcome(std::size_t point)>& simulate);

 private:
  struct Impl;
  explicit Processes(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringsim::tools
