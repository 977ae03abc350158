// From wires to broadcast trees that together use them as well as any schedule can.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/synthesis/edge_splitting.hpp"
#include "topologies/synthesis/tree_graph.hpp"
#include "topologies/synthesis/tree_packing.hpp"

namespace ringsim {

/// At most so many trees from each root are looked at, if the optimum needs more.
inline constexpr std::int64_t most_trees_tried = 16;

struct TreeOptions {
  std::vector<int> roots;         ///< ranks at which trees start; empty: all (all-gather)
  std::optional<std::int64_t> k;  ///< trees from each root; none: as choose_rate()
  PreferredWays preferred;        ///< by edges of tree_wires() of the wires
  Breath breath;
};

/// Trees for wires, by these steps: the optimum, the number of trees, switches out, trees in.
struct TreePlan {
  TreeRate rate;
  Fraction optimum;  ///< inverse rate of any number of trees, in the units of `rate`
  /// Edges between ranks, and the edges of `wires` that each stands for.
  TreeGraph graph;
  std::vector<PackedTree> trees;
  TreeWires wires;  ///< what the trees were made for: TreeRate is in its units of capacity

  double share_of_optimum() const { return as_double(optimum) / as_double(rate.inverse_rate); }
};

/// The optimum's rate, if it needs at most most_trees_tried trees from each root. Else the fewest trees, up to that
/// number, that reach 99.5 % of it; if none do, the best of them.
TreeRate choose_rate(const Wires& wires, const std::vector<int>& roots, const Fraction& optimum, TreesFit& fit);

/// Throws InputError (without a place) if ranks cannot be reached or share a device.
TreePlan plan_trees(const Wires& wires, const TreeOptions& options = {});

}  // namespace ringsim
