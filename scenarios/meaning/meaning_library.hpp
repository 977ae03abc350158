// What `library` means: the keys of a scenario that a communication library would decide, decided.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// Takes the variables of `library.env` that `transport` has, too, by the same names, over to it. Refuses those that
/// are said twice.
void share_variables(nlohmann::json& canonical, const Json& written, const Blame& blame);

/// Decides, and writes the decision into the canonical form, as if the user had chosen algorithm, order, channels, NICs
/// and launch. Refuses keys that the library decides (`written` has those that the user gave), and what is not
/// modeled. Requires the key `library`, and that share_variables() was called and spellings are resolved.
/// Reads the file that NCCL_GRAPH_FILE names, whose warnings go to the scenario. Requires scenario.topology.
LibraryRun decide(nlohmann::json& canonical, const Json& written, Scenario& scenario, const Blame& blame,
                  const Files& files);

/// Decides likewise for each of the exchanges of a training step. A step is simulated with one protocol and one
/// algorithm for all of them: those that NCCL would take for most of the bytes; a warning says where it would take
/// others. Requires scenario.topology and scenario.training.
LibraryRun decide_training(nlohmann::json& canonical, const Json& written, Scenario& scenario, const Blame& blame,
                           const Files& files);

/// Settings of the library, its harness and devices that change nothing, and variables whose effect is not modeled.
/// `written`: as in decide(). Comes when scenario.varied is known.
void warn_of_library(const nlohmann::json& canonical, const Json& written, const Blame& blame, Scenario& scenario);

}  // namespace ringsim::scenarios
