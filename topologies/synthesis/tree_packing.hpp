// Spanning trees out of every root that share the edges of a graph.
#pragma once

#include <cstdint>
#include <vector>

#include "topologies/synthesis/tree_graph.hpp"

namespace ringsim {

/// A number of equal trees from one root to all ranks.
struct PackedTree {
  int root = 0;
  std::int64_t copies = 1;
  std::vector<int> parent;  ///< [rank] from which rank it receives; -1: the root
};
/// How many messages follow one another from the root to the farthest rank.
int height(const PackedTree& tree);

/// Packs TreeGraph::wanted trees from each rank, every edge in as many as its capacity. In the order of their roots.
///
/// A batch of m trees begins at its root and grows by an edge (x, y), x in it and y not, of which so many trees may
/// take it:
///   min(m, c(x,y), maxflow(x -> y) - sum of m_j), where x feeds each other batch j with m_j, and j all ranks in it;
/// the others of the batch go on as one of their own. Edges near the roots are taken first, so that trees are low.
/// Source: Edmonds' branchings; Berczi & Frank, "Packing arborescences" (2010); Zhao et al., arXiv 2402.06787.
///
/// To save flows, the edges of many batches are taken at once and tested with one flow for each rank; if it was too
/// much, halves are tried, and few edges by the formula. Edges that lead to nothing but ranks in the batch need none.
/// Requires a graph without switches that TreesFit accepts.
std::vector<PackedTree> pack_trees(const TreeGraph& graph, const Breath& breath = {});

}  // namespace ringsim
