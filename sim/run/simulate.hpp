// The simulation itself, of a whole run or of the part that stands for it; run() is what others call.
#pragma once

#include <vector>

#include "sim/check/check.hpp"
#include "sim/run/fold.hpp"
#include "sim/run/fold_alike.hpp"
#include "sim/run/fold_channels.hpp"
#include "sim/run/fold_turns.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// What is simulated; of none of them all is.
struct Part {
  const Folding* folding = nullptr;                ///< only rank 0, for all of them
  const FoldingByTurns* by_turns = nullptr;        ///< only the first ranks
  const FoldingByChannels* by_channels = nullptr;  ///< only the first channel
  const FoldingByStandIns* alike = nullptr;        ///< only one actor of each class
};

/// The timeline of the part. `placement`: [actor]. Throws as run(), and Unsure if a part may not stand for the
/// whole.
Timeline simulate(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                  const std::vector<NodeId>& placement, const Part& part = {});

}  // namespace ringsim
