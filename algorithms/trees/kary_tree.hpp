// Trees of a fixed arity, through which segments are passed on one after the other; with arity 1 a chain.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Ranks counted from the root, level by level: the children of v are arity*v + 1 ... arity*v + arity.
struct KaryTree {
  int n = 0;
  Actor root = 0;
  int arity = 2;

  Actor parent(Actor r) const {
    const int v = wrap(r - root, n);
    return v == 0 ? -1 : wrap((v - 1) / arity + root, n);
  }
  bool has_child(Actor r) const { return first_child(r) < n; }
  template <class Visit>
  void for_each_child(Actor r, Visit visit) const {
    const std::int64_t first = first_child(r);
    for (std::int64_t c = first; c < n && c < first + arity; ++c) visit(wrap(static_cast<int>(c) + root, n));
  }
  /// Edges from the root to the farthest rank.
  int depth() const {
    int levels = 0;
    for (int v = n - 1; v > 0; v = (v - 1) / arity) ++levels;
    return levels;
  }

 private:
  std::int64_t first_child(Actor r) const { return std::int64_t{arity} * wrap(r - root, n) + 1; }
};

// Below: d is the tree's depth (n-1 for a chain), s the number of segments, x = size/(s b). Every rank has at most one
// parent and `arity` children. Source of the chain: van de Geijn & Watts, Concurrency 9 (1997); of pipelined trees:
// Sanders, Speck & Traff, Parallel Computing 35 (2009), section 2.

/// Pipelined broadcast: a rank receives a segment while it passes on the one before to all its children.
///
/// Steps: s + 1 a rank (root and leaves: s).  Sent per rank: its children's number times size.
/// Closed form, if every cable is its own: (d-1+s)(a + x). On a star a rank's children share its port: with k the
/// most children of a rank and c those of the last rank that has any, (d-2+s)(a + k x) + a + c x (c = k if others
/// on that level have children too).
Schedule kary_broadcast(int ranks, Bytes bytes, Actor root, int arity, int segments);

/// Pipelined reduce, the broadcast run backwards.
///
/// Steps: as above.  Sent per rank: size (the root: 0).
/// Closed form, if every cable is its own: (d-1+s)(a + x); on a star (d-1+s)(a + k x), if the tree is full: else
/// leaves that lie higher send before the others, and their parent's port is free for those.
Schedule kary_reduce(int ranks, Bytes bytes, Actor root, int arity, int segments);

/// Pipelined reduce to the root and broadcast from it, each on its own lane: a segment comes down as soon as it is
/// complete.
///
/// Steps: s + 1 a rank and lane.  Sent per rank: (1 + its children) size, by the root without the 1.
/// Closed form, if every cable is its own: (2d-1+s)(a + x). On a star what goes up and what comes down share ports.
Schedule kary_all_reduce(int ranks, Bytes bytes, Actor root, int arity, int segments);

}  // namespace ringsim
