// Rings for channels: several closed ways round all GPUs that use different links at once, as NCCL's channels do.
#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// Rings that run at once, each as fast as the others.
struct ChannelRings {
  std::vector<std::vector<Actor>> orders;  ///< [ring][position] index into the ranks; the last goes on to the first
  Bandwidth each;                          ///< of every channel, all of them at once
  /// How many channels run on them, on each ring as many; 0: one on each. NCCL's search may take a ring several times.
  int channels = 0;
};

/// After NCCL's search (NVIDIA/nccl 5067397c2676 src/graph/search.cc, ncclTopoCompute and ncclTopoSearchRec), in our
/// own words: for one speed after the other, from the highest down, as many rings as find room, depth-first over GPUs,
/// with what earlier rings left of every link on the way; the speed that brings most in all is taken, of equals the
/// highest, and speeds below half of the best are no longer tried. Within a node a ring goes on to the GPUs in the
/// order of their numbers as far as there is room. Nodes are visited in the order of their first rank; a ring enters
/// each at the GPU of one number, which the search varies from ring to ring, and leaves it from the last GPU by the NIC
/// on that GPU's rail (sim/topology/nic_choice.hpp): directly if some order makes that possible, else through
/// another GPU (PXN).
///
/// Differences: a link has its rate of the topology, not NCCL's (sim/topology: `bandwidth` is what payload can reach);
/// speeds are the widths of hops, and a half, a third ... a 16th of them, not NCCL's list; NCCL then runs every ring
/// twice if they are fast (ncclTopoDupChannels), which shares the same links and is left to who sets the channels.
///
/// `transport.nics` should be per_channel: the k-th ring is channel k. At most `most_channel_rings` are looked for.
/// Deterministic. Throws InputError (`where` empty) if no ring joins the ranks; Interrupted when `stop`, which is
/// asked now and then, is set.
ChannelRings channel_rings(const Topology& topology, std::span<const NodeId> ranks, const Transport& transport,
                           const std::atomic<bool>* stop = nullptr);

/// NCCL's most channels (src/include/device.h, MAXCHANNELS).
inline constexpr int most_channel_rings = 64;

}  // namespace ringsim
