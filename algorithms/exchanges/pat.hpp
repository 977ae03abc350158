// PAT, NCCL's parallel aggregated trees: a binomial tree for each chunk, all of them at once.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// All-gather: chunk c goes down a binomial tree rooted at rank c, to the farthest child first: rank c + x gets it from
/// rank c + x - (lowest set bit of x). All trees take the same distance in the same step, and what a rank has for
/// another goes together. So the far steps, the first, carry one chunk, and the last, to the next rank, half of all:
/// the reverse of Bruck, whose far steps are the large ones.
///
/// The variant here is that of buffers that hold all there is to send (aggregation without limit: log2(n) steps). NCCL
/// limits the aggregation if a chunk is large, and then needs more steps. Chunks of a step lie apart, so each is a
/// message of its own.
///
/// Steps: ceil(log2 n).  Sent per rank: (n-1)/n size.  Links used: rank r -> r + 2^k.
/// Closed form: ceil(log2 n) a + (n-1)/n size/b.  Source: Jeaugey, PAT: a new algorithm for all-gather and
/// reduce-scatter operations at scale, arXiv:2506.20252 (2025); in NCCL since 2.23.
Schedule pat_all_gather(int ranks, Bytes bytes);

/// Reduce-scatter: the same trees backwards, from the leaves to rank c, the nearest distance first.
///
/// Steps, bytes, closed form and source: as above.  Links used: rank r -> r - 2^k.
Schedule pat_reduce_scatter(int ranks, Bytes bytes);

}  // namespace ringsim
