// What the canonical form of a calibration means.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/calibration.hpp"
#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

/// Of factors in canonical form; those that are missing change nothing.
Calibration calibration_of(const nlohmann::json& factors);

/// `calibration.scale_compute` of a canonical scenario; 1 if there is none.
double compute_scale_of(const nlohmann::json& canonical);

/// Takes a calibration up, its own keys or a file's, and scales the links of the topology.
void take_calibration(const nlohmann::json& canonical, const Blame& blame, const Files& files, Scenario& scenario);

}  // namespace ringsim::scenarios
