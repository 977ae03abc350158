// Reads the key `transport` of a scenario.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "sim/schedule/schedule.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim::scenarios {

/// `op`: of the collective whose messages it moves.
Transport transport_of(const nlohmann::json& transport, CollectiveOp op);

}  // namespace ringsim::scenarios
