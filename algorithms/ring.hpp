// The ring: rank r sends only to rank r+1, and everything goes round.
#pragma once

#include "sim/schedule.hpp"

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

}  // namespace ringsim
