// Swing: recursive halving and doubling whose partners lie on alternating sides, and nearer.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// How far the partner of step s is on a ring: 1, -1, 3, -5, 11...: (1 - (-2)^(s+1))/3. Even places count it up, odd
/// ones down.
int swing_distance(int step);

struct SwingOptions {
  /// Divides the buffer among 2D Swings at once (D: dimensions greater than 1), as the paper does: each starts along
  /// another dimension, and half of them go the other way round. So all ports of a torus are busy.
  bool all_ports = false;
  /// The latency-optimal variant: every step exchanges all that a rank has; there is no all-gather.
  bool whole = false;
};

/// All-reduce by Swing, the bandwidth-optimal variant: a reduce-scatter of m = log2(n) steps, and the all-gather the
/// same way back. As in halving-doubling a step halves what is sent; but partners are at distances of about 2^s/3 where
/// those of halving-doubling are at 2^s, so that on a ring or torus fewer messages cross a link. With several
/// dimensions (the last varies fastest) steps take turns among them. Each dimension is a power of two; throws
/// InputError otherwise.
///
/// The paper's blocks of a step lie apart; here chunks are numbered such that they are one run.
///
/// Steps: 2m (an exchange and an addition each, m times, if the whole is exchanged).  Sent per rank: 2(n-1)/n size;
/// m size if the whole is exchanged.  Links used: rank r <-> r +- swing_distance(s) along a dimension.
/// Closed form: 2m a + 2(n-1)/n size/b if partners have links of their own; m (a + size/b) if the whole is
/// exchanged. With all ports size/(2D) replaces size if all dimensions are 4 (all partners are neighbors).
/// Source: De Sensi, Bonato, Saam & Hoefler, Swing: Short-cutting Rings for Higher Bandwidth Allreduce, NSDI 2024.
Schedule swing_all_reduce(const std::vector<int>& dimensions, Bytes bytes, const SwingOptions& options = {});

}  // namespace ringsim
