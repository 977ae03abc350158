// The closed form of a scenario's collective, with what of its assumptions does not hold there.
#pragma once

#include <cstddef>
#include <optional>

#include "scenarios/setup/setup.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {

/// The closed form of scenario.jobs[job]; nothing if none is known. The launch counts: "t + ...".
std::optional<ClosedForm> form_of(const Scenario& scenario, const Setup& setup, std::size_t job = 0);

}  // namespace ringsim
