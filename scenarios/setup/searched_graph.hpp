// What the search finds for a scenario's library, as NCCL's graph XML.
#pragma once

#include <string>

#include "scenarios/scenario.hpp"

namespace ringsim {

/// Rings, trees and NVLS heads that the library finds for the scenario's first collective, as NCCL_GRAPH_DUMP_FILE
/// would have them and for NCCL_GRAPH_FILE to name. Throws InputError for a scenario without NCCL, for one whose
/// library reads a file already, and for a single rank.
std::string searched_graph(const Scenario& scenario);

}  // namespace ringsim
