// The meaning of `inference`: a forward pass of a transformer on tensor parallel ranks, as a plan's program.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

/// The GPUs that serve, as `ranks` of the canonical `inference`: unless it names some, the first tensor times expert of
/// `gpus`, the names of all. Throws InputError if there are fewer, or if it names another number.
void name_serving_ranks(nlohmann::json& canonical, const std::vector<std::string>& gpus, const Blame& blame);

/// Reads the canonical `inference`, whose `ranks` are named. GPUs compute `speed` times as fast as it says. Throws
/// InputError; settings without effect become warnings.
TrainingSpec inference_of(const nlohmann::json& canonical, double speed, const Blame& blame,
                          std::vector<std::string>& warnings);

/// The all-reduce of a layer, or the all_to_all of its experts, as the canonical form of a `collective`; its algorithm
/// is that of all of them.
nlohmann::json layer_collective_of(const nlohmann::json& canonical, const TrainingSpec& spec);

}  // namespace ringsim::scenarios
