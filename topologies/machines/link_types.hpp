// Link types as files write them. For sources alone; library_link() of machine.hpp is for everybody.
#pragma once

#include <map>
#include <string>

#include "sim/topology/topology.hpp"
#include "topologies/machines/sourced.hpp"

namespace ringsim {

/// By name: `{"nvlink2": {"kind": "nvlink", "line_rate": ..., "efficiency": ..., "latency": ...}, ...}`.
std::map<std::string, LinkSpec> read_link_types(const Place& types);

/// Those of topologies/machines/link_types.json.
const std::map<std::string, LinkSpec>& library_links();

}  // namespace ringsim
