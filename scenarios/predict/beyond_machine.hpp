// What a scenario asks of a machine that the machine cannot do, though the model can.
#pragma once

#include <string>
#include <vector>

#include "scenarios/setup/setup.hpp"

namespace ringsim {

/// A warning if an algorithm lets NVSwitches add that cannot: those of GPUs before H100 (NVIDIA H100 architecture white
/// paper: NVLink SHARP is new in the third-generation NVSwitch). As if they could, their step takes its time.
std::vector<std::string> beyond_machine(const Scenario& scenario, const Setup& setup);

}  // namespace ringsim
