// Warnings of settings that the model can simulate and the scenario's machine does not support.
#pragma once

#include <string>
#include <vector>

#include "scenarios/setup/setup.hpp"

namespace ringsim {

/// Warns if an algorithm lets NVSwitches add data that cannot: those of GPUs before H100 (NVIDIA H100 architecture
/// white paper: NVLink SHARP is new in the third-generation NVSwitch). They are simulated as if they could.
std::vector<std::string> beyond_machine(const Scenario& scenario, const Setup& setup);

}  // namespace ringsim
