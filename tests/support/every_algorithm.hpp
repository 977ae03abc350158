// All schedules that the algorithms make for some number of ranks.
#pragma once

#include <vector>

#include <numeric>

#include "algorithms/all_to_all.hpp"
#include "algorithms/composed/hierarchical.hpp"
#include "algorithms/composed/torus.hpp"
#include "algorithms/direct.hpp"
#include "algorithms/exchanges/bruck.hpp"
#include "algorithms/exchanges/dissemination.hpp"
#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/exchanges/pat.hpp"
#include "algorithms/exchanges/recursive_doubling.hpp"
#include "algorithms/exchanges/swing.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "algorithms/trees/binomial_tree.hpp"
#include "algorithms/trees/double_binary_tree.hpp"
#include "algorithms/trees/in_switch.hpp"
#include "algorithms/trees/kary_tree.hpp"

namespace ringsim {

/// Those with trees, and those that need no more than a step or two.
inline void add_trees(int n, Bytes bytes, std::vector<Schedule>& all) {
  for (const Actor root : {0, n - 1}) {
    all.push_back(binomial_broadcast(n, bytes, root));
    all.push_back(binomial_reduce(n, bytes, root));
    all.push_back(binomial_all_reduce(n, bytes, root));
    all.push_back(binomial_scatter(n, bytes, root));
    all.push_back(binomial_gather(n, bytes, root));
    all.push_back(binomial_barrier(n, root));
    for (const auto& [arity, segments] : {std::pair{1, 1}, {1, 4}, {2, 1}, {2, 3}, {3, 2}}) {
      all.push_back(kary_broadcast(n, bytes, root, arity, segments));
      all.push_back(kary_reduce(n, bytes, root, arity, segments));
      all.push_back(kary_all_reduce(n, bytes, root, arity, segments));
    }
    for (const int segments : {1, 3}) {
      all.push_back(double_tree_broadcast(n, bytes, root, segments));
      all.push_back(double_tree_reduce(n, bytes, root, segments));
    }
    all.push_back(direct_broadcast(n, bytes, root));
    all.push_back(direct_reduce(n, bytes, root));
    all.push_back(direct_scatter(n, bytes, root));
    all.push_back(direct_gather(n, bytes, root));
  }
  all.push_back(dissemination_barrier(n));
  for (const int segments : {1, 3}) {
    all.push_back(double_tree_all_reduce(n, bytes, segments));
    for (int group = 2; group <= n; ++group)
      if (n % group == 0) all.push_back(double_tree_all_reduce(n, bytes, segments, group));
  }
  all.push_back(direct_all_gather(n, bytes));
  all.push_back(direct_reduce_scatter(n, bytes));
  all.push_back(one_shot_all_reduce(n, bytes));
  all.push_back(two_shot_all_reduce(n, bytes));
  all.push_back(direct_send_recv(n, bytes));
}

/// The ring in pieces, with as many different rings as n ranks make (four at most).
inline void add_rings(int n, Bytes bytes, std::vector<Schedule>& all) {
  int rings = 0;
  for (int stride = 1; stride < n && rings < 4; ++stride) rings += std::gcd(stride, n) == 1 ? 1 : 0;
  for (const RingPieces pieces : {RingPieces{.slices = 3}, RingPieces{.rings = rings, .slices = 2}}) {
    all.push_back(in_pieces(ring_all_reduce(n, bytes), pieces));
    all.push_back(in_pieces(ring_reduce_scatter(n, bytes), pieces));
    all.push_back(in_pieces(ring_all_gather(n, bytes), pieces));
  }
}

/// What is done by exchanges of log2(ranks) steps.
inline void add_every_exchange(int ranks, Bytes bytes, std::vector<Schedule>& all) {
  const bool is_power = (ranks & (ranks - 1)) == 0;
  all.push_back(halving_doubling(ranks, bytes, Fold::binary_blocks));
  all.push_back(recursive_doubling_all_reduce(ranks, bytes));
  all.push_back(bruck_all_gather(ranks, bytes));
  all.push_back(bruck_all_to_all(ranks, bytes));
  all.push_back(pat_reduce_scatter(ranks, bytes));
  all.push_back(pat_all_gather(ranks, bytes));
  if (!is_power) return;
  all.push_back(halving_reduce_scatter(ranks, bytes));
  all.push_back(doubling_all_gather(ranks, bytes));
  all.push_back(recursive_doubling_all_gather(ranks, bytes));
  all.push_back(swing_all_reduce({ranks}, bytes));
  if (ranks >= 4) all.push_back(swing_all_reduce({ranks / 4, 2, 2}, bytes));
  for (const bool all_ports : {false, true}) {
    all.push_back(swing_all_reduce({ranks}, bytes, {.all_ports = all_ports, .whole = true}));
    if (ranks >= 4) all.push_back(swing_all_reduce({2, ranks / 2}, bytes, {.all_ports = true, .whole = all_ports}));
  }
}

/// What is made of groups: two levels, tori, trees of switches. In all ways to part the ranks in two dimensions.
inline void add_every_composition(int ranks, Bytes bytes, std::vector<Schedule>& all) {
  for (int g = 1; g <= ranks; ++g) {
    if (ranks % g != 0) continue;
    const int nodes = ranks / g;
    all.push_back(hierarchical_all_reduce(ranks, bytes, g, ring_reduce_scatter(g, {}), ring_all_reduce(nodes, {}),
                                          ring_all_gather(g, {})));
    all.push_back(hierarchical_all_reduce(ranks, bytes, g, pat_reduce_scatter(g, {}),
                                          recursive_doubling_all_reduce(nodes, {}), pat_all_gather(g, {})));
    all.push_back(torus_all_reduce({nodes, g}, bytes));
    all.push_back(torus_reduce_scatter({nodes, g}, bytes));
    all.push_back(torus_all_gather({nodes, g}, bytes));
    all.push_back(bucket_all_reduce({nodes, g}, bytes));
    if (g == 1 || nodes == 1) continue;
    std::vector<Actor> tree;  // a switch for each node, and one that joins them
    for (int r = 0; r < ranks; ++r) tree.push_back(ranks + r / g);
    for (int s = 0; s < nodes; ++s) tree.push_back(ranks + nodes);
    tree.push_back(-1);
    all.push_back(in_switch_all_reduce(ranks, bytes, tree, 3));
  }
  if (ranks % 4 == 0 && ranks > 8) {
    all.push_back(torus_all_reduce({2, ranks / 4, 2}, bytes));
    all.push_back(bucket_all_reduce({2, ranks / 4, 2}, bytes));
  }
  std::vector<Actor> one(static_cast<std::size_t>(ranks), ranks);  // one switch
  one.push_back(-1);
  for (const int segments : {1, 4}) all.push_back(in_switch_all_reduce(ranks, bytes, one, segments));
}

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
  add_trees(ranks, bytes, all);
  add_rings(ranks, bytes, all);

  add_every_exchange(ranks, bytes, all);
  add_every_composition(ranks, bytes, all);
  return all;
}

}  // namespace ringsim
