// Work for the processes that mpirun (or srun) started: rank 0 hands out numbered items and takes results, the others
// do the work. Only messages are sent here; MPI starts, places and ends the processes.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ringsim::replay {

class MpiPool {
 public:
  /// Joins as MpiSession::join() does; returns nothing if this process was started alone: it has its threads.
  static std::unique_ptr<MpiPool> join();
  /// Sends home the workers that still wait for an item, and leaves MPI.
  ~MpiPool();
  MpiPool(const MpiPool&) = delete;
  MpiPool& operator=(const MpiPool&) = delete;

  bool first() const;  ///< rank 0

  /// As MpiSession::agree().
  bool agree(const std::function<std::string()>& read);
  /// Rank 0: hands out `items`, one at a time to each worker, and calls `take` with each result as it comes. No further
  /// items are handed out after `take` returned false or `stop` was set. Throws what `take` throws.
  void hand_out(const std::vector<std::size_t>& items,
                const std::function<bool(std::size_t item, std::string&& result)>& take, const std::atomic<bool>& stop);
  /// The others: calls `f` for each item received, until there are no more. A result must not be empty.
  void work(const std::function<std::string(std::size_t item)>& f);

 private:
  struct Impl;
  explicit MpiPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringsim::replay
