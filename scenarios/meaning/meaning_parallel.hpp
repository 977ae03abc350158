// The meaning of `training.parallel`: a plan, its kernels and its memory.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

/// As training_of(), of a training with `parallel`.
TrainingSpec plan_training_of(const nlohmann::json& canonical, std::size_t gpus, double speed, const Blame& blame,
                              std::vector<std::string>& warnings);

/// As gradients_of(): an all-reduce of the gradients that a rank of the largest stage has, which names the algorithm of
/// all calls.
nlohmann::json plan_gradients_of(const nlohmann::json& canonical, const TrainingSpec& training);

}  // namespace ringsim::scenarios
