// Takes the switches out of a graph, so that trees can be packed among ranks alone.
#pragma once

#include <vector>

#include "topologies/synthesis/tree_graph.hpp"

namespace ringsim {

/// Ways of edges that messages between ranks take, [way] edges of the wires in order. Edges that follow such a way, or
/// a part of it, are preferred. Without any, all ways are equally good.
using PreferredWays = std::vector<std::vector<int>>;

/// Replaces every pair of edges (u, w), (w, t) at a switch w by edges (u, t), so that each switch is left with none,
/// and all trees still reach every rank. TreeGraph::Edge::way remembers the edges crossed.
///
/// How much of a pair may be replaced, with M trees in all:
///   min(c(u,w), c(w,t),
///       min over ranks v of maxflow(u -> w) with u -> s, u -> t, v -> w unlimited, less M,
///       min over ranks v of maxflow(w -> t) with w -> s, u -> t, v -> t unlimited, less M)
/// where s feeds the roots. That such pairs exist until the switch is gone: Bang-Jensen, Frank & Jackson, SIAM J.
/// Discrete Math. 8 (1995); the construction: Zhao et al., ForestColl, arXiv 2402.06787.
///
/// To save flows, a whole set of pairs is replaced at once and tested with one flow for each rank; if it was too much,
/// its halves are tried, and single pairs by the formula. A switch's capacity is spread evenly over preferred pairs
/// first, those between different hosts before others: many thin edges make low trees, few thick ones chains.
/// Requires a graph that TreesFit accepts, with balanced switches.
void remove_switches(TreeGraph& graph, const PreferredWays& preferred = {}, const Breath& breath = {});

}  // namespace ringsim
