// Fabrics of the benchmarks.
#pragma once

#include "sim/topology/topology.hpp"

namespace ringsim::bench {

/// Nodes of one GPU and one NIC on leaves; a leaf has `oversubscription` times the rate down that it has up.
Topology leaf_spine(int nodes, int nodes_per_leaf, int oversubscription);

/// The k-ary fat tree with k^3/4 hosts, each a GPU straight on its edge switch: paths between pods have 6 links.
Topology fat_tree(int k);

}  // namespace ringsim::bench
