// All schedules that the algorithms make for some number of ranks.
#pragma once

#include <vector>

#include "algorithms/all_to_all.hpp"
#include "algorithms/direct.hpp"
#include "algorithms/halving_doubling.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"

namespace ringsim {

inline std::vector<Schedule> every_algorithm(int ranks, Bytes bytes) {
  std::vector<Schedule> all{ring_all_reduce(ranks, bytes), ring_reduce_scatter(ranks, bytes),
                            ring_all_gather(ranks, bytes)};
  for (const int segments : {1, 3, ranks}) {
    all.push_back(ring_broadcast(ranks, bytes, 0, segments));
    all.push_back(ring_broadcast(ranks, bytes, ranks - 1, segments));
  }
  all.push_back(parameter_server(ranks, bytes, 0));
  all.push_back(parameter_server(ranks, bytes, ranks / 2));
  for (const int servers : {1, 2, 3}) all.push_back(sharded_parameter_server(ranks, bytes, servers));
  all.push_back(halving_doubling(ranks, bytes, Fold::naive));
  all.push_back(halving_doubling(ranks, bytes, Fold::rabenseifner));
  all.push_back(pairwise_all_to_all(ranks, bytes));
  all.push_back(direct_all_to_all(ranks, bytes));
  if (ranks % 2 == 0) {
    all.push_back(direct_pairs(ranks, bytes, false));
    all.push_back(direct_pairs(ranks, bytes, true));
  }
  return all;
}

}  // namespace ringsim
