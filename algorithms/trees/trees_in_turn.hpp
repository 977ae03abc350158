// Collectives over one tree that is turned from rank to rank: the blocks of all roots, one after another.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A spanning tree of displacements, and when each is reached. The tree of root r joins the ranks r + d, where + is
/// that of a Symmetry of K ranks: all roots have the same tree, seen from themselves.
struct TurningTree {
  std::vector<Actor> parent;  ///< [slice * K + d] the displacement from which d receives; -1: d = 0, the root
  std::vector<int> turn;      ///< [slice * K + d] the step, from 0, in which r + d receives from r's block; -1: d = 0
  std::vector<int> port;      ///< [slice * K + d] over which port it is sent, from 0: they take turns on their own
  int ports = 1;
};

/// An all_gather, reduce_scatter or all_reduce over the trees of `group.order()` ranks.
///
/// packed_trees() moves the blocks of all roots at the same time; here a rank takes them in turn: in step i it
/// receives the blocks of the roots at all displacements d with turn[d] = i, and sends on what the ranks below it
/// receive in that step. A rank passes one block on while the next comes in, so a pipeline needs no slices, and K (K-1)
/// messages are enough. A reduce_scatter is an all_gather backwards, with adds; an all_reduce is one after the other.
///
/// Lanes: each port has `lanes` lanes, to which its steps go in turn, so that ports do not wait for each other and
/// latency is hidden: as many steps of a port are under way at once. A step waits for those that brought what it sends.
/// Slices: each block may be cut; each part has turns of its own. Steps: the highest turn and one, over the lanes of a
/// port; all_reduce: those up and those down. Sent per rank: (K-1)/K of the message; all_reduce: twice. The symmetry is
/// claimed if there is one slice.
///
/// `down`, `up`: only that which the op needs is looked at. Requires that a displacement's turn comes after its
/// parent's, and that a displacement from parent to child always takes the same port.
Schedule trees_in_turn(CollectiveOp op, Bytes bytes, const Symmetry& group, const TurningTree& down,
                       const TurningTree& up, int slices, int lanes);

}  // namespace ringsim
