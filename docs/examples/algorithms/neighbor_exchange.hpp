// Neighbor exchange: all-gather by trading pairs of blocks with the rank on either side in turn.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// All-gather for an even number of ranks. First rank 2q and rank 2q + 1 exchange their blocks; from then on a rank
/// trades the pair that it got last for that of its other neighbor, left and right in turn. Throws InputError for an
/// odd n.
///
/// Steps: n/2.  Sent per rank: (n-1)/n size.  Links used: rank r <-> r + 1.
/// Closed form: n/2 a + (n-1)/n size/b.  Source: Chen, Zhang, Zhang & Yuan, Performance Evaluation of Allgather
/// Algorithms on Terascale Linux Cluster with Fast Ethernet, HPC Asia 2005.
Schedule neighbor_exchange_all_gather(int ranks, Bytes bytes);

}  // namespace ringsim
