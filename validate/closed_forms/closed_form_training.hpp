// The closed form of a training step: what its regime says, of the closed forms of its exchanges.
#pragma once

#include <optional>

#include "scenarios/setup/setup.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {

/// As training_step_time(), server_step_time(), data_parallel_step_time(), local_sgd_round_time() and
/// gossip_round_time() (algorithms/training) have it; nothing if no form of an exchange is known. Requires
/// scenario.training.
std::optional<ClosedForm> training_form(const Scenario& scenario, const Setup& setup);

}  // namespace ringsim
