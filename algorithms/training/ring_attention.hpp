// Causal attention of a sample that n context ranks share, keys and values going round a ring: who computes what.
#pragma once

#include <vector>

namespace ringsim {

/// A sample is 2n equal chunks of tokens. Rank r has chunks r and 2n - 1 - r, which gives all ranks the same work
/// (Megatron-LM, megatron/core/utils.py, get_batch_on_this_cp_rank: "zigzag load balancing").
std::vector<int> chunks_of_rank(int n, int rank);

/// Scores of queries of one chunk and keys of another; of the same chunk the half that a causal mask leaves.
struct ChunkPair {
  int query = 0, key = 0;
  bool operator==(const ChunkPair&) const = default;
};

/// The work of rank r in a step, with the block of rank r - step: its two chunks. Step 0, its own: three pairs, two
/// of them halves. Of a rank before it the first chunk meets all queries; of a rank after it both meet the second half
/// of the queries. So each step is two pairs of work, and n steps are all pairs whose key is not later than the query
/// (Transformer Engine, context_parallel.py, sections "diagonal", "lower-triangle" and "upper-triangle" of
/// AttnFuncWithCPAndKVP2P.forward; the backward pass has the same steps in reverse). Requires n >= 2 and 0 <= rank,
/// step < n.
std::vector<ChunkPair> ring_step(int n, int rank, int step);

/// Parts of a rank's queries, and of a block, that a step reads: 0.5 or 1 each.
struct RingStepParts {
  double queries = 0, keys = 0;
};
RingStepParts ring_step_parts(int n, int rank, int step);

}  // namespace ringsim
