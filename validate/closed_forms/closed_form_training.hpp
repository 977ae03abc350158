// The closed form of a training step: all-reduces in sequence, while the backward pass goes on.
#pragma once

#include <optional>

#include "scenarios/predict/setup.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {

/// max(f + B, max_j (ready_j + sum_{i >= j} T_i)) + u, as training_step_time() (algorithms/training/ddp.hpp) has it;
/// nothing if no form of the all-reduce is known. Requires scenario.training.
std::optional<ClosedForm> training_form(const Scenario& scenario, const Setup& setup);

}  // namespace ringsim
