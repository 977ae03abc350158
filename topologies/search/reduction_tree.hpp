// The switches that join some ranks, as a tree: where in-switch reduction adds up.
#pragma once

#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

struct ReductionTree {
  std::vector<NodeId> switches;  ///< its inner nodes
  std::vector<Actor> parents;    ///< [actor] ranks first, then `switches`, in this order; -1: the root
};

/// One switch that every rank has a cable to, both ways (an NVSwitch of one host, the switch of a star): the widest, of
/// equals the first. Else the switches of the fabric: a rank hangs on the one that its data comes to first, by the NIC
/// nearest to it; the root is the one from which the farthest of these is nearest, of equals the first; each goes to
/// its parent by the fewest hops. Switches that would add up nothing (one child) are passed through.
///
/// Throws InputError (`where` empty) if no switches join the ranks.
ReductionTree reduction_tree(const Topology& topology, std::span<const NodeId> ranks);

}  // namespace ringsim
