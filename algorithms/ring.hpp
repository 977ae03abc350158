// The ring: rank r sends only to rank r+1, and everything goes round.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Ring all-reduce: reduce-scatter, then all-gather, each n-1 steps round the ring.
///
/// Steps: 2(n-1).  Sent per rank: 2(n-1)/n size.  Links used: rank r -> r+1 only.
/// Closed form: 2(n-1)(a + size/(n b)).  Source: Patarasuk & Yuan, JPDC 69 (2009).
Schedule ring_all_reduce(int ranks, Bytes bytes);

/// Ring reduce-scatter: rank r ends with chunk r of the sum.
///
/// Steps: n-1.  Sent per rank: (n-1)/n size.  Closed form: (n-1)(a + size/(n b)).  Source: as above.
Schedule ring_reduce_scatter(int ranks, Bytes bytes);

/// Ring all-gather: rank r starts with chunk r, all end with all.
///
/// Steps: n-1.  Sent per rank: (n-1)/n size.  Closed form: (n-1)(a + size/(n b)).  Source: as above.
Schedule ring_all_gather(int ranks, Bytes bytes);

/// Ring broadcast: the root's buffer goes round in `segments`; a rank receives one while it passes on the one before.
///
/// Steps: segments + 1 a rank (the ends: segments).  Sent per rank: size (the last one: 0).
/// Closed form: (n-2+segments)(a + size/(segments b)).  Source: the pipelined chain of van de Geijn & Watts,
/// Concurrency 9 (1997).
Schedule ring_broadcast(int ranks, Bytes bytes, Actor root, int segments);

/// How a ring's buffer is divided further.
struct RingPieces {
  int rings = 1;   ///< rings at once, each with its share of every block, on lanes of their own
  int slices = 1;  ///< into how many messages a ring's share is cut, one after the other
};

/// Several rings at once, in slices: every block of `ring` (one of the three above) is divided among the rings, and by
/// them into slices. Ring 0 goes r -> r+1, ring 1 the other way round; the further ones r -> r+2, r-2, r+3 ... with the
/// strides that share no factor with n, so that each is another ring. If ranks have a cable to each of these
/// neighbors the rings do not meet. Throws InputError if n has fewer such strides than rings are asked for.
///
/// Steps: slices times those of the plain ring, on each of `rings` lanes.  Sent per rank: as the plain ring.
/// Closed form: with R plain steps, x = size/(n rings slices b): R slices (a + x) if every ring has its own cables;
/// R slices (a + rings x) if they share ports. (A slice waits for the one before to arrive: slices help only a
/// protocol that sends ahead.)
/// Source: NCCL, whose channels are rings of their own orders (src/graph/rings.cc) and whose chunks go in slices
/// (src/device/prims_simple.h); that a stride without common factor makes a ring is Bezout's.
Schedule in_pieces(Schedule ring, RingPieces pieces);

}  // namespace ringsim
