// What the search finds for a scenario's library, as NCCL's graph XML.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"

namespace ringsim {

struct SearchedGraph {
  std::string text;  ///< of the file
  std::vector<std::string> warnings;
};

/// Rings, trees and NVLS heads that the library has on these ranks, for NCCL_GRAPH_FILE to name. `topology`:
/// topology_for_search(); `rings`: rings_for() of the ranks on it. Throws InputError for a scenario without a library,
/// for one whose library reads a file already, for a single rank, for more channels than NCCL has room for, and as
/// nccl::graphs_of().
SearchedGraph searched_graph(const Scenario& scenario, const Topology& topology, const std::vector<NodeId>& ranks,
                             const ChannelRings& rings);
/// As searched_graph() above, for the first collective of the scenario.
SearchedGraph searched_graph(const Scenario& scenario);

}  // namespace ringsim
