// Parts of a run whose ends and critical paths another simulation knows.
#pragma once

#include <vector>

#include "sim/base/ids.hpp"
#include "sim/run/critical_path.hpp"

namespace ringsim {

/// Told of each compute of time until_told; see RunOptions::courses.
class Courses {
 public:
  struct End {
    Actor actor = 0;  ///< whose compute ends
    Lane lane = 0;
    SimTime when{};  ///< not before now
    /// The actor the start of whose compute, on the lane of the same number, lies on the critical path to this end, and
    /// the path from there on. It outlives the call.
    Actor since = 0;
    const Trail* way = nullptr;
  };

  Courses() = default;
  Courses(const Courses&) = delete;
  Courses& operator=(const Courses&) = delete;
  virtual ~Courses() = default;

  /// The compute of that step begins now. Returns what is known by it: ends of computes that have begun, perhaps its
  /// own, each once. Valid until the next call.
  virtual const std::vector<End>& begins(Actor actor, Lane lane, int step, SimTime now) = 0;
};

}  // namespace ringsim
