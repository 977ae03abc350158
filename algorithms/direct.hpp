// Direct: every message goes straight from its sender to its receiver, all at once.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// The messages of `pairs`, all at once: what rates a fabric gives when many pairs talk.
///
/// Steps: 1.  Sent per rank: size (the second half: only both ways).  Closed form: a + size/b if no pair shares a
/// link with another.  Source: the pairs of OSU's osu_mbw_mr.
Schedule direct_pairs(int ranks, Bytes bytes, bool both_ways);

// Below: the forms of a star, in which what leaves or reaches a rank shares its port; if every two ranks have a cable
// of their own, n-1 messages take the time of one. Source of all: the linear algorithms of Open MPI (coll/basic), with
// all messages posted at once.

/// The root sends its buffer to everybody.
///
/// Steps: 1.  Sent by the root: (n-1) size.  Closed form: a + (n-1) size/b.
Schedule direct_broadcast(int ranks, Bytes bytes, Actor root);

/// Everybody sends its buffer to the root, which adds them up.
///
/// Steps: 1.  Sent per rank: size (the root: 0).  Closed form: a + (n-1) size/b.
Schedule direct_reduce(int ranks, Bytes bytes, Actor root);

/// The root sends each rank its block.
///
/// Steps: 1.  Sent by the root: (n-1)/n size.  Closed form: a + (n-1)/n size/b.
Schedule direct_scatter(int ranks, Bytes bytes, Actor root);

/// Everybody sends its block to the root.
///
/// Steps: 1.  Sent per rank: size/n (the root: 0).  Closed form: a + (n-1)/n size/b.
Schedule direct_gather(int ranks, Bytes bytes, Actor root);

/// Everybody sends its block to everybody.
///
/// Steps: 1.  Sent per rank: (n-1)/n size.  Closed form: a + (n-1)/n size/b.
Schedule direct_all_gather(int ranks, Bytes bytes);

/// Everybody sends everybody its block of the own buffer, and adds up what comes in.
///
/// Steps: 1.  Sent per rank: (n-1)/n size.  Closed form: a + (n-1)/n size/b.
Schedule direct_reduce_scatter(int ranks, Bytes bytes);

/// All-reduce in one shot: everybody sends a copy of its whole buffer to everybody, and adds up what comes in.
///
/// Steps: 2, the first of them the copy.  Sent per rank: (n-1) size.  Closed form: a + (n-1) size/b.
/// Source: the one-shot kernel of NVIDIA's TensorRT-LLM (customAllReduceKernels).
Schedule one_shot_all_reduce(int ranks, Bytes bytes);

/// All-reduce in two shots: the reduce-scatter, then the all-gather above.
///
/// Steps: 2.  Sent per rank: 2(n-1)/n size.  Closed form: 2a + 2(n-1)/n size/b.  Source: as above, two-shot.
Schedule two_shot_all_reduce(int ranks, Bytes bytes);

/// Rank r sends to r+1 and receives from r-1.
///
/// Steps: 1.  Sent per rank: size.  Closed form: a + size/b.  Source: nccl-tests, sendrecv.
Schedule direct_send_recv(int ranks, Bytes bytes);

}  // namespace ringsim
