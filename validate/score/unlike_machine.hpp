// Is the machine of a scenario the one that was measured?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace ringsim {

/// Where the machine of a scenario is another than a file of measured rows says: one sentence for the number of nodes,
/// one for the GPUs. `about`: MeasuredTable::about, of which `nodes` and `gpu` count. Empty if nothing differs, or if
/// it is not known: of topologies that are no clusters, of GPUs that no preset has, and of nodes if the scenario
/// names the ranks that take part.
std::vector<std::string> unlike_machine(const std::map<std::string, std::string>& about, const Scenario& scenario);

}  // namespace ringsim
