// Trees for machines whose switches and NICs route by themselves.
#pragma once

#include <vector>

#include "topologies/synthesis/tree_graph.hpp"
#include "topologies/synthesis/tree_packing.hpp"

namespace ringsim {

/// A tree's edge from u to t was planned over some links, but its messages may take others, and a link may then carry
/// more trees than it should. Gives ranks other parents in their trees until no such move lowers the sum of what links
/// carry too much; of several moves that lower it most the one to the lowest place.
///
/// `ways`: [from * ranks + to] the edges of the wires that messages take; none: not known, and no rank is moved there.
/// `rate`: of the plan. Returns the most that an edge carries of what it should, 1 or less if none carries too much:
/// the trees take so many times longer than planned. A greedy search: if it ends above 1, better trees may exist.
double follow_ways(std::vector<PackedTree>& trees, const std::vector<std::vector<int>>& ways, const Wires& wires,
                   const TreeRate& rate);

}  // namespace ringsim
