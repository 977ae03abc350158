// NCCL's search on a node of a machine: rings, trees and NVLS, by the names of the machine's devices.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "topologies/formats/nccl_graph.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/nccl_search/graph_search.hpp"

namespace ringsim::nccl {

struct NodeSearch {
  SearchGraph ring, tree, nvls;  ///< of NVLS no channels where it cannot be had
  bool nics_join_gpus = false;   ///< as of SeenNode
};

struct NodeAsked {
  std::vector<std::string> gpus;  ///< that take part, names of the machine
  std::vector<SeenNic> nics;
  int nodes = 1;
  SeenOptions options;
  SearchSpeeds speeds;
  CrossNic cross_nic = CrossNic::if_needed;
  bool doubles_any = false;
};

/// As ncclTopoCompute for rings, then trees with as many channels, then NVLS (src/init.cc, initTransportsRank). Both
/// rings and trees then have as many as the fewer of both. What was found is kept as long as the process runs, for as
/// many machines as are asked for. Throws InputError as SeenNode.
std::shared_ptr<const NodeSearch> search_node(const Machine& machine, const NodeAsked& asked);

}  // namespace ringsim::nccl
