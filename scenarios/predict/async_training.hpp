// An asynchronous parameter server of a scenario: when its workers start, and what its run says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/training/async_account.hpp"
#include "scenarios/setup/setup.hpp"

namespace ringsim {

/// Figures of a server that waits for nobody, over the updates that count.
struct AsyncReport {
  double updates_per_s = 0;  ///< of the whole model, by all workers
  std::int64_t updates = 0;
  double staleness = 0;  ///< mean: updates by others between reading the weights and one's own update
  std::int64_t stalest = 0;
  std::string start;  ///< the offsets between workers, as the scenario spells them
  std::vector<std::pair<std::int64_t, std::int64_t>> histogram;  ///< staleness, how many updates (of a shard)
  struct Worker {
    std::int64_t updates = 0;
    double staleness = 0;
    std::int64_t stalest = 0;
  };
  std::vector<Worker> workers;  ///< [worker]
};

/// The numbers of workers and servers, and when each of them starts.
AsyncServer async_server_of(const TrainingSpec& spec, const PlacedCollective& placed);

AsyncReport async_report(const TrainingSpec& spec, const AsyncResult& result);

/// The time of all workers together, per step; an update has `every` steps. So a step is the number of workers divided
/// by the steps per time.
TimeSplit async_split(const AsyncResult& result, int every);

}  // namespace ringsim
