// The channels that NCCL finds on a node: rings, trees, and the heads of NVLS.
//
// Source, described in our own words: NVIDIA/nccl 5067397c2676 (2.30.7) src/graph/search.cc, ncclTopoCompute and what
// it calls.
#pragma once

#include <span>
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

/// Speeds that the search tries, GB/s, the highest first.
struct SearchSpeeds {
  std::span<const double> inside, between;  ///< of one node; of several
};

/// When channels may leave a node by another NIC than they enter it by.
enum class CrossNic {
  never,                ///< NCCL_CROSS_NIC=0
  always,               ///< NCCL_CROSS_NIC=1: any NIC
  if_needed,            ///< the default: two and two channels, of which the second goes the way of the first back
  if_needed_by_any_nic  ///< the default before 2.20
};

struct SearchAsked {
  Pattern pattern = Pattern::ring;
  int least_channels = 1, most_channels = 32;
  CrossNic cross_nic = CrossNic::if_needed;
  bool doubles_any = false;  ///< fast channels are doubled also if there are many, as up to 2.8
};

/// What NCCL's search finds. It lowers the speed step by step until as many channels as possible have room, depth first
/// over the GPUs with what earlier channels left of every link; then it raises the speed again as far as they keep it.
/// It counts its steps, so that it ends within a second also where it could go on; so does this one, and ends at the
/// same step.
///
/// No channels: NVLS cannot be had. Rings and trees always have some: if none is found, one through the GPUs in order,
/// at 0.1 GB/s.
FoundGraph search_channels(const SeenNode& node, const SearchSpeeds& speeds, const SearchAsked& asked);

}  // namespace ringsim::nccl
