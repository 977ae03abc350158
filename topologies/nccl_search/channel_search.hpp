// The channels that fit on a node at one speed, as NCCL finds them: rings, trees, and the heads of NVLS.
//
// Source, described in our own words: NVIDIA/nccl 5067397c2676 (2.30.7) src/graph/search.cc, ncclTopoSearchRec and
// the functions that it calls.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/topology/path_type.hpp"
#include "topologies/nccl_search/seen_node.hpp"

namespace ringsim::nccl {

/// Numbers are those of NCCL's graph XML.
enum class Pattern { balanced_tree = 1, split_tree = 2, tree = 3, ring = 4, nvls = 5 };

struct FoundChannel {
  std::vector<std::uint32_t> gpus;       ///< numbers of SeenKind::gpu in order; of NVLS the head only
  std::uint32_t enters = 0, leaves = 0;  ///< numbers of SeenKind::net; on one node without meaning
  bool operator==(const FoundChannel&) const = default;
};

/// Channels that run at once, each with these speeds (GB/s, 10^9).
struct FoundGraph {
  Pattern pattern = Pattern::ring;
  int cross_nic = 0;
  float inside = 0, between = 0;
  PathType type_inside = PathType::loc, type_between = PathType::pix;  ///< the farthest that were allowed
  bool same_channels = true;                                           ///< all in one order
  int times = 1;  ///< that each channel is there, with so much less speed
  std::vector<FoundChannel> channels;
};

/// The aim of a search (speeds, how far apart devices may be, whether all channels are alike), and its best channels so
/// far.
struct Trial : FoundGraph {
  int least = 1, most = 32;  ///< channels
  int hops = 0;              ///< links of all channels; of equals fewer are better
};

/// Instead of the number of steps that are left: no better channels are possible.
inline constexpr int no_better = -1;

/// Searches depth first over the GPUs, with the bandwidth that earlier channels left on each link. `best` is replaced
/// whenever channels with more bandwidth fit. NCCL ends a search after a number of steps; this one ends at the same
/// step. Returns how many of `steps` are left, or no_better.
int search_channels(const SeenNode& node, const Trial& trial, int steps, Trial& best);

}  // namespace ringsim::nccl
