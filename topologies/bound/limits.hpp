// How fast a collective can be on some wires, with any algorithm: cuts, in whole numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "topologies/bound/fraction.hpp"
#include "topologies/bound/wires.hpp"

namespace ringsim {

/// A lower bound on a collective's time, and what sets it.
///
/// `inverse_rate` is the time for one unit of data, if capacities are units of data per second. Each function says what
/// its unit of data is.
struct Limit {
  Fraction inverse_rate;
  /// The sets of vertices whose outgoing edges set the bound, [set][vertex]. One set: a cut. Empty: nothing has to
  /// move. `amount` / leaving(sets) is `inverse_rate`.
  std::vector<std::vector<bool>> sets;
  std::int64_t amount = 0;  ///< how much has to leave the sets together, in units of data
};

/// All-gather: every rank's block must reach all ranks. Unit: one rank's block.
///
///   inverse_rate = max over sets S that do not hold all ranks of |ranks in S| / (what leaves S)
///
/// Exact: trees reach it if is_balanced(). A lower bound on every schedule in any case, with switches that copy,
/// too: the blocks of S are so much information, and it must cross.
///
/// Tested by maximum flows from a source that feeds every rank at the rate sought (Edmonds). An infeasible flow's cut
/// is the next rate tried (Dinkelbach), so that every rate is that of a cut, and exact, and the last cut found is the
/// bottleneck. If there are media, all blocks must also cross every cut one way or the other, over what it carries
/// both ways together. `sinks`: the ranks whose flow is looked at; empty: all. It is enough to name one rank of each
/// orbit of the graph's symmetry. Throws InputError (without a place) if a rank cannot be reached; so do the following
/// functions. Source: Zhao et al., ForestColl, arXiv 2402.06787; Dinkelbach, Management Science 13 (1967).
Limit gather_limit(const Wires& wires, const std::vector<int>& sinks = {});

/// Reduce-scatter: each rank's block is the sum of all. Unit: a block. gather_limit() of reversed(wires); sets are of
/// the wires themselves.
Limit reduce_scatter_limit(const Wires& wires, const std::vector<int>& sinks = {});

/// Broadcast: the root's message must reach all. Unit: the message. Exact if there are only ranks and balanced
/// switches.
Limit broadcast_limit(const Wires& wires, int root);
/// Reduce: the same, backwards.
Limit reduce_limit(const Wires& wires, int root);

/// Scatter: a block of its own for each rank, from the root. Unit: a block. Exact.
Limit scatter_limit(const Wires& wires, int root);
/// Gather: the same, backwards.
Limit gather_to_root_limit(const Wires& wires, int root);

/// Every all-reduce in which only ranks add and copy. Unit: the message. For k disjoint sets that hold all ranks,
///
///   time >= 2 (k - 1) / (the sum of what leaves the sets)
///
/// because the sets must exchange 2 (k - 1) messages (Patarasuk & Yuan, JPDC 69 (2009), theorem 1, with sets as
/// processes). Looked at: single ranks, the nodes of the cluster, all pairs of a rank and the rest, and the smallest
/// tight sets of the all-gather at its `inverse_rate`. A lower bound; twice gather_limit() is what a reduce-scatter and
/// an all-gather reach.
Limit all_reduce_limit(const Wires& wires, const Fraction& gather_inverse_rate);

/// Every all-reduce, also one whose sums are made in switches: what must leave and enter each rank. Unit: the message.
///
///   time >= 1 / (the smallest cut between two ranks)
Limit all_reduce_in_fabric_limit(const Wires& wires);

/// How much of the traffic must cross from the ranks of a set, [rank], to the others. In units of data.
using Crossing = std::function<std::int64_t(const std::vector<bool>& ranks)>;
/// Traffic between given pairs (all-to-all, pairs, send and receive): the worst of the narrowest cuts around single
/// ranks, the nodes of the cluster and runs of ranks 0 to r (of more than 128 ranks, around some of them). A lower
/// bound; the optimum, a concurrent flow, may be higher.
Limit crossing_limit(const Wires& wires, const Crossing& crossing);

}  // namespace ringsim
