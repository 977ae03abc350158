// The binomial tree: each rank with the data passes it on, so that the number of ranks with the data doubles every
// step.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

// Rank v (counted from the root) has the children v + 1, v + 2, v + 4, ... below its own lowest bit; their subtrees are
// {v + 1}, {v + 2, v + 3}, {v + 4 ... v + 7}, ... m = ceil(log2 n). The forms are those of protocol none, where a send
// is done when it has arrived. Source of all: Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005), sections 4.3 to 4.5; the
// same trees as in MPICH.

/// Binomial broadcast: farthest child first, so that the largest subtrees begin earliest.
///
/// Steps: at most m per rank (the root: m).  Sent by the root: m size, per rank: its number of children times size.
/// Links used: v -> v + 2^k.  Closed form: m(a + size/b). (If a send were done when it has left, the latencies of
/// the root's sends would overlap: floor(log2 n) a + m size/b.)
Schedule binomial_broadcast(int ranks, Bytes bytes, Actor root);

/// Binomial reduce, the broadcast run backwards: nearest child first.
///
/// Steps: at most m + 1 a rank (the root: m).  Sent per rank: size (the root: 0).  Closed form: m(a + size/b).
Schedule binomial_reduce(int ranks, Bytes bytes, Actor root);

/// Reduce to the root, then broadcast from it.
///
/// Steps of the root: 2m.  Sent per rank: (1 + its children) size (the root: m size).
/// Closed form: 2m(a + size/b).
Schedule binomial_all_reduce(int ranks, Bytes bytes, Actor root);

/// Binomial scatter: a child gets the blocks of its subtree, the farthest child (with the most blocks) first.
///
/// Steps of the root: m.  Sent by the root: (n-1)/n size.  Closed form: m a + (n-1)/n size/b.
Schedule binomial_scatter(int ranks, Bytes bytes, Actor root);

/// Binomial gather, the scatter run backwards.
///
/// Steps of the root: m.  Sent per rank: the blocks of its subtree, its own included.
/// Closed form: m a + (n-1)/n size/b.
Schedule binomial_gather(int ranks, Bytes bytes, Actor root);

/// A reduce and a broadcast of empty messages: going up, each says that its subtree has entered; going down, that all
/// ranks have.
///
/// Steps of the root: 2m.  Sent: nothing, in 2(n-1) messages.  Closed form: 2m a.
Schedule binomial_barrier(int ranks, Actor root);

}  // namespace ringsim
