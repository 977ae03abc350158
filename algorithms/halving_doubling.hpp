// Recursive halving and doubling: log2(n) exchanges of ever smaller blocks, and the same back.
#pragma once

#include "sim/schedule.hpp"

namespace ringsim {

/// What to do with the ranks beyond the largest power of two K' = 2^m: fold them onto others.
enum class Fold {
  /// Extra rank K'+j sends its whole buffer to rank j, and gets the whole result back. The textbook's case is 13 = 8
  /// + 5.
  naive,
  /// Ranks 2j and 2j+1 add up half a buffer each; 2j+1 hands its half over and gets the whole result back. One step
  /// more
  /// than naive and the same time on the wire (the halves cross both ways at once), half of its reduction work. Source:
  /// Rabenseifner, ICCS 2004, LNCS 3036.
  rabenseifner,
};

/// All-reduce by recursive halving (reduce-scatter) and recursive doubling (all-gather) among K' = 2^m ranks.
///
/// Steps: 2m; with a fold 2(m+1) (naive) or 2m+3 (rabenseifner).  Sent per rank: 2(K'-1)/K' size; a folded rank sends
/// size instead, its partner size (naive) or 3/2 size (rabenseifner) more.  Links used: core rank v <-> v xor 2^k, and
/// folded rank <-> partner.  Closed form: 2m a + 2(K'-1)/K' size/b; folds add 2a or 3a, and 2 size/b.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005); Rabenseifner, ICCS 2004.
Schedule halving_doubling(int ranks, Bytes bytes, Fold fold);

}  // namespace ringsim
