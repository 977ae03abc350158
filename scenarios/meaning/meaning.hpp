// What a point means: from the canonical form to topology, algorithm and request; and what no field can check alone.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// Puts settings of a canonical point, or file, that have two spellings (the environment variables of NCCL, gpudirect)
/// into one, so that equal questions have one hash. Comes before scenario_of().
void use_one_spelling(nlohmann::json& canonical);

/// Warns of settings that the scenario by itself shows to have no effect: a seed that nothing draws from, a delay of 0,
/// a variable that the library does not read here. Comes when `varied` is known. What only a run can show is in
/// scenarios/predict/no_effect.hpp.
void warn_of_idle_settings(const nlohmann::json& canonical, const Json& written, const Blame& blame,
                           Scenario& scenario);

/// Builds the scenario from its canonical form; `written` is the same point as the user wrote it, for what was left
/// out. Leaves name, hash and varied to the caller.
Scenario scenario_of(const nlohmann::json& canonical, const Json& written, const Blame& blame, const Files& files);

}  // namespace ringsim::scenarios
