// Gossip: every GPU trains by itself, and averages its weights with those of its two neighbors on a ring of ranks.
#pragma once

#include <optional>

#include "algorithms/training/ddp.hpp"
#include "algorithms/training/stragglers.hpp"

namespace ringsim {

/// How weights are averaged.
struct Gossip {
  int every = 1;         ///< steps in a round; one average per round
  bool overlap = false;  ///< weights travel during both passes of a round's first step; else after its last step
};

/// A round: `every` steps of each GPU with weights and batches of its own. Rank r sends its weights to ranks r - 1 and
/// r + 1 (of two ranks to the other one), both at once, and takes the mean of theirs and its own, in no time. With
/// overlap the weights of the round before travel during both passes of the first step, are averaged, and then updated
/// by that step's gradients. One iteration of the program is one round; `step.steps` counts rounds.
///
/// `exchange`: a send_recv of all weights from each rank to the next; the other way it runs with the ranks reversed.
/// Without it: one GPU.
///
/// Sent per rank and round: 2p, two copies of the weights (of two ranks one), however many ranks there are.
/// Closed form of a round of equal ranks: H C + 2 p/b + a, with overlap max(f + B, 2 p/b + a) + u + (H-1) C. A rank
/// never waits for more than its neighbors, but they wait for theirs: after n rounds a slow rank has slowed all within
/// n hops, so one that is slow for good slows all to its pace (max-plus algebra: the mean step tends to the largest
/// mean cycle). Source: Lian et al., Can Decentralized Algorithms Outperform Centralized Algorithms?, NIPS 2017
/// (D-PSGD, Algorithm 1, which overlaps).
Program gossip_program(const TrainingStep& step, const Gossip& gossip, const std::optional<CheckedSchedule>& exchange,
                       WatchedWork* work = nullptr);

/// That form of a round of equal ranks, with the host's launches; `exchange`: with its launch, 0 of one GPU.
Picoseconds gossip_round_time(const TrainingStep& step, const Gossip& gossip, Picoseconds exchange);

/// Limits for the mean step after `warmup` rounds, of the rank that ends last, if ranks compute unequally. A port
/// sends at most two copies at once and receives at most two. So a copy arrives no later than if both ends had begun
/// with the later of them and each copy had half of a port; and no sooner than if it had a port to itself, and the
/// rank's own copies left its port one after the other. No host's launches.
struct StepLimits {
  Picoseconds low{0}, high{0};
};
/// `once`: one copy through a port, p/b; `copies`: how many a port carries at once, 1 or 2; a: latency of a path.
StepLimits gossip_step_limits(const TrainingStep& step, const Gossip& gossip, const Stragglers& stragglers, int ranks,
                              Picoseconds once, int copies, Picoseconds a, int warmup);

}  // namespace ringsim
