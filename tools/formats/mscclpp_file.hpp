// A schedule as MSCCL++'s execution plan, for the machine of a scenario.
#pragma once

#include <string>

#include "algorithms/stored_schedule.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::tools {

/// The plan's text, and on stderr how long it takes when it is read again, next to the schedule itself.
///
/// Throws what export_mscclpp() throws; InputError (empty `where`) if a message would cross NICs: memory channels reach
/// GPUs that can map each other's memory.
std::string mscclpp_of(const Scenario& scenario, const StoredSchedule& stored);

}  // namespace ringsim::tools
