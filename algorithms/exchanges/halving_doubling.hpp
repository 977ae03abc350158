// Recursive halving and doubling: log2(n) exchanges of ever smaller blocks, and the same back.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

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
  /// No rank is folded: the ranks are divided into blocks of powers of two, as the binary digits of n say, and each
  /// block halves for itself. Then the smallest hands its sums to the next larger one, chunk by chunk to those who keep
  /// them, and so on up; the result comes down the same way, and each block doubles. Good if the blocks are of similar
  /// size; if n is odd the last block is one rank, which sends all it has. Source: Rabenseifner & Traeff, EuroPVM/MPI
  /// 2004, LNCS 3241, and Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005), 4.5.
  binary_blocks,
};

/// All-reduce by recursive halving (reduce-scatter) and recursive doubling (all-gather) among K' = 2^m ranks.
///
/// Steps: 2m; with a fold 2(m+1) (naive) or 2m+3 (rabenseifner).  Sent per rank: 2(K'-1)/K' size; a folded rank sends
/// size instead, its partner size (naive) or 3/2 size (rabenseifner) more.  Links used: core rank v <-> v xor 2^k, and
/// folded rank <-> partner.  Closed form: 2m a + 2(K'-1)/K' size/b; folds add 2a or 3a, and 2 size/b.
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005); Rabenseifner, ICCS 2004.
///
/// With binary blocks B_0 > B_1 > ... a rank of block j takes 2 log2(B_j) steps, and two more for each neighbor that
/// its block has; sent: 2(B_j-1)/B_j size, to the larger block size/B_j, to the smaller one size/B_j. Links used:
/// within blocks as above, and v of B_j <-> v B_j-1/B_j ... of B_j-1.  Closed form, with t_j when block j has its sums
/// and all from below it: t_last = its halving; t_j-1 = max(halving of j-1, t_j) + a + size/(B_j b); down again a +
/// size/(B_j b) a block, and its doubling: the latest of all blocks. halving, doubling: log2(B) a + (B-1)/B size/b.
Schedule halving_doubling(int ranks, Bytes bytes, Fold fold);

/// Reduce-scatter by recursive halving: its first half. Ranks: a power of two; throws InputError otherwise.
///
/// Steps: m = log2(n).  Sent per rank: (n-1)/n size.  Links used: v <-> v xor 2^k, the far ones first, with the large
/// blocks.  Closed form: m a + (n-1)/n size/b.  Source: as above.
Schedule halving_reduce_scatter(int ranks, Bytes bytes);

/// All-gather by recursive doubling of blocks: its second half, the near ones first. All else as above.
Schedule doubling_all_gather(int ranks, Bytes bytes);

/// The blocks of n ranks, largest first: the powers of two that n is the sum of.
std::vector<int> binary_blocks(int n);

}  // namespace ringsim
