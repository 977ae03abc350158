// The workloads of scenarios/workloads, as they are embedded.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ringsim::scenarios {

/// Name and text of each, by name.
const std::vector<std::pair<std::string, std::string>>& workload_files();

}  // namespace ringsim::scenarios
