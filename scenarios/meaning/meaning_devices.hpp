// What rates of devices mean.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/scenario.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::scenarios {

/// The rates of all GPUs and CPUs. Refuses those that cannot be used, also at the nodes of a graph. Requires
/// scenario.topology and scenario.routing.
DeviceSpec devices_of(const nlohmann::json& canonical, const Blame& blame, const Scenario& scenario);

}  // namespace ringsim::scenarios
