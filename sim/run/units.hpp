// Units: processors that several lanes share.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/schedule/lanes.hpp"

namespace ringsim {

/// Each unit runs one job at a time, in the order in which the jobs arrive; of jobs that arrive at the same instant, in
/// the order of the engine's events.
class ComputeUnits {
 public:
  struct Job {
    LaneNumber lane = 0;
    Picoseconds time{0};
  };

  /// True if the job begins now; else it waits for its turn.
  bool take(int unit, const Job& job) {
    Unit& one = at(unit);
    if (one.is_busy) {
      one.waiting.push_back(job);
      return false;
    }
    one.is_busy = true;
    return true;
  }
  /// The unit's job is done: which one begins now, if any waits.
  std::optional<Job> next(int unit) {
    Unit& one = at(unit);
    one.is_busy = !one.waiting.empty();
    if (!one.is_busy) return std::nullopt;
    const Job job = one.waiting.front();
    one.waiting.pop_front();
    return job;
  }

 private:
  struct Unit {
    bool is_busy = false;
    std::deque<Job> waiting;
  };

  Unit& at(int unit) {
    const auto index = static_cast<std::size_t>(unit);
    if (index >= units_.size()) units_.resize(index + 1);
    return units_[index];
  }

  std::vector<Unit> units_;
};

}  // namespace ringsim
