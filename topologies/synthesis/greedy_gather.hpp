// An all-gather message by message: each goes where it arrives first, with latency and bandwidth counted.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.hpp"
#include "topologies/synthesis/tree_graph.hpp"
#include "topologies/synthesis/turned_tree.hpp"

namespace ringsim {

/// What a message costs on the wires.
struct WireCosts {
  std::vector<Picoseconds> latency;  ///< [edge]
  std::vector<Bandwidth> rate;       ///< [edge]
};

/// One message of a plan.
struct PlannedMessage {
  int from = 0, to = 0;  ///< ranks
  int piece = 0;         ///< owner * pieces + i: the i-th piece of a rank's block
  Picoseconds start{0}, arrival{0};
};

/// An all-gather of `pieces` equal pieces of `size` from each rank, in the order of its messages' starts.
///
/// A message takes all edges of its way at once, each for as long as its rate asks, and arrives when the slowest is
/// done and all latencies have passed. Of all messages that bring a rank what it lacks from one that has it, the one
/// that arrives first is taken; of several the one on the fewest edges, then of the piece that the fewest ranks have,
/// then the one that starts first, then in the order of receiver seen from the owner, sender and piece. Ways through
/// another rank are not taken: that rank could keep what it passes on.
///
/// Source: the greedy matching on a time-expanded network of Won et al., "TACOS: Topology-Aware Collective Algorithm
/// Synthesizer for Distributed Machine Learning", MICRO 2024, here with the times of events in place of equal time
/// steps, with ways over switches, and without chance. Empty if a rank cannot be reached. Time: O(messages * ranks^2 *
/// pieces).
std::vector<PlannedMessage> greedy_gather(const Wires& wires, const WireCosts& costs, const WayBetween& way, int pieces,
                                          Bytes size, const Breath& breath = {});

}  // namespace ringsim
