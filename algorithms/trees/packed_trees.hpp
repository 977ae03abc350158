// Collectives over many spanning trees at once: all-gather from their roots, reduce-scatter back, all-reduce both.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A spanning tree of the ranks.
struct SpanningTree {
  Actor root = 0;
  std::vector<Actor> parents;  ///< [rank]; -1: the root

  Actor parent(Actor rank) const { return parents[static_cast<std::size_t>(rank)]; }
};

/// How the part of the data that a tree carries is cut.
struct TreeSlices {
  int count = 1;    ///< messages that follow one another on a lane
  int streams = 1;  ///< lanes side by side, each with an equal share
  auto operator<=>(const TreeSlices&) const = default;
};

/// A reduce_scatter or reduce goes up the trees, an all_gather or broadcast comes down, an all_reduce does both. Each
/// tree carries an equal part of its root's block (reduce, broadcast: of the message), in slices that follow one
/// another: an inner rank passes one on while the next comes in.
///
/// Streams hide latency: while the message of one is on its way, that of another has the link. They keep out of step
/// because stream s of n begins with s/n of a slice, and ends with the rest of one; without that all trees would wait
/// at the same time.
///
/// Lanes: one for each stream of each tree, and in an all_reduce two, as in pipelined.hpp. Steps: one more of an inner
/// rank than there are slices, and one more of a stream but the first. Bytes sent per rank: its children over all
/// trees, times bytes / trees. Channels: the streams that have the same two ranks as neighbors in the same direction
/// are numbered from 0.
///
/// Why lanes for each tree: if links are shared fairly, every message then gets at least the rate for which its
/// tree was planned, so that the trees of a plan (topologies/synthesis) that carries U trees over capacity 1 need at
/// most (count + height) steps of bytes / (trees * count) * U, and latencies.
///
/// `down`, `up`: the trees of the part that goes down or up, in the order of their roots, as many from each; only those
/// that the op needs are looked at, and of an all_reduce those of one place have the same root. Requires trees.
Schedule packed_trees(CollectiveOp op, Bytes bytes, const std::vector<SpanningTree>& down,
                      const std::vector<SpanningTree>& up, const TreeSlices& slices);

}  // namespace ringsim
