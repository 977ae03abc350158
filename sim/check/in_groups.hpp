// A proved schedule in several groups of actors at once.
#pragma once

#include <vector>

#include "sim/check/check.hpp"

namespace ringsim {

/// Actors g n to g n + n - 1 run schedule g of `of_group`, which has n actors. The schedules are of one collective and
/// have equal chunks; they may differ in their channels, as rings of several groups do. Nothing is shared and no
/// message passes between groups, so each keeps its own promise: no further proof is needed. Schedule::groups says how
/// many there are, Schedule::collective is that of one group.
///
/// Requires at least one schedule, in each the same number of actors, none with processes of several actors.
CheckedSchedule in_groups(const std::vector<CheckedSchedule>& of_group);

}  // namespace ringsim
