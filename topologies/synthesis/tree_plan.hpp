// From wires to broadcast trees that together use them as well as any schedule can.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "topologies/synthesis/edge_splitting.hpp"
#include "topologies/synthesis/tree_graph.hpp"
#include "topologies/synthesis/tree_packing.hpp"

namespace ringsim {

/// At most so many trees from each root are looked at.
inline constexpr std::int64_t most_trees_tried = 16;

struct TreeOptions {
  std::vector<int> roots;         ///< ranks at which trees start; empty: all (all-gather)
  std::optional<std::int64_t> k;  ///< trees from each root; none: as choose_rate()
  Fraction enough{199, 200};      ///< as choose_rate()
  /// [from * ranks + to] the ways that messages take, by edges of tree_wires() of the wires; empty: any that is
  /// planned.
  PreferredWays ways;
  Breath breath;
};

/// Trees for wires, by these steps: the optimum, the number of trees, switches out, trees in.
struct TreePlan {
  TreeRate rate;
  Fraction optimum;  ///< inverse rate of any number of trees, in the units of `rate`
  /// Edges between ranks, and the edges of `wires` that each stands for.
  TreeGraph graph;
  std::vector<PackedTree> trees;
  /// The most that an edge carries of what it should, if messages take TreeOptions::ways: above 1 the trees take so
  /// many times longer than `rate` says.
  double crowding = 1;
  TreeWires wires;  ///< what the trees were made for: TreeRate is in its units of capacity

  double share_of_optimum() const { return as_double(optimum) / as_double(rate.inverse_rate); }
};

/// The fewest trees from each root that reach a share `enough` of the optimum's rate; if no number up to
/// most_trees_tried does, the best of them.
TreeRate choose_rate(const Wires& wires, const std::vector<int>& roots, const Fraction& optimum, const Fraction& enough,
                     TreesFit& fit);

/// Throws InputError (without a place) if ranks cannot be reached or share a device.
TreePlan plan_trees(const Wires& wires, const TreeOptions& options = {});

}  // namespace ringsim
