// Two levels: within nodes, between nodes, and within nodes again.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// All-reduce of ranks in nodes of `group` consecutive ones: a reduce-scatter within each node, then `group`
/// all-reduces at once, the i-th among the i-th ranks of all nodes on the i-th chunk, then an all-gather within each
/// node.
///
/// `scatter`, `gather`: reduce-scatter and all-gather of `group` ranks. `between`: all-reduce of as many ranks as there
/// are nodes; with a chunk for each of its chunks, and no helpers. Sizes in them do not count.
///
/// Steps: the sum of theirs.  Sent per rank: within the node 2(g-1)/g size, to other nodes what `between` sends of
/// size/g.  Links used: theirs.  Closed form: T_scatter(g, size) + T_between(n/g, size/g) + T_gather(g, size).
/// Source: Mikami et al., arXiv:1811.05233 (2018), 2D-torus all-reduce; Cho et al., BlueConnect, MLSys 2019; NCCL's
/// intra-node and inter-node stages.
Schedule hierarchical_all_reduce(int ranks, Bytes bytes, int group, Schedule scatter, Schedule between,
                                 Schedule gather);

}  // namespace ringsim
