#include "algorithms/training/ring_attention.hpp"

#include <set>

#include "sim/base/error.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

std::vector<int> chunks_of_rank(int n, int rank) { return {rank, 2 * n - 1 - rank}; }

std::vector<ChunkPair> ring_step(int n, int rank, int step) {
  ensure(n >= 2 && rank >= 0 && rank < n && step >= 0 && step < n, "a step is one of the ring's");
  std::vector<ChunkPair> pairs;
  for (const int query : chunks_of_rank(n, rank))
    for (const int key : chunks_of_rank(n, wrap(rank - step, n)))
      if (key <= query) pairs.push_back({query, key});
  return pairs;
}

RingStepParts ring_step_parts(int n, int rank, int step) {
  std::set<int> queries, keys;
  for (const ChunkPair& pair : ring_step(n, rank, step)) {
    queries.insert(pair.query);
    keys.insert(pair.key);
  }
  return {static_cast<double>(queries.size()) / 2, static_cast<double>(keys.size()) / 2};
}

}  // namespace ringsim
