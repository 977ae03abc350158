// What the canonical form of faults and disturbance means.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

/// Puts what is empty away: a scenario without faults is the same question as one with none listed.
void drop_empty_disturbance(nlohmann::json& canonical);

/// Takes faults and disturbance up; comes when collective, jobs and model are known.
void take_disturbance(const nlohmann::json& canonical, const Blame& blame, Scenario& scenario);

}  // namespace ringsim::scenarios
