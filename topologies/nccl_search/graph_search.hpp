// NCCL's search for a graph: over speeds, and over how far apart the devices of a channel may be.
//
// Source, described in our own words: NVIDIA/nccl 5067397c2676 (2.30.7) src/graph/search.cc, ncclTopoCompute.
#pragma once

#include <span>

#include "topologies/nccl_search/channel_search.hpp"

namespace ringsim::nccl {

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

/// The graph that NCCL finds. The search lowers the speed until as many channels as possible fit, and then raises it
/// again as long as all of them still do. It stops after as many steps as NCCL's.
///
/// Without channels: NVLS is not possible. Rings and trees always have some: if none is found, one through the GPUs in
/// order, at 0.1 GB/s.
FoundGraph search_graph(const SeenNode& node, const SearchSpeeds& speeds, const SearchAsked& asked);

}  // namespace ringsim::nccl
