// GOAL, the text format of LogGOPSim and ATLAHS: sends, receives and calculations of each rank, and what requires what.
// It names neither a collective nor any data, only sizes.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// Every actor becomes a rank, helpers too; channels become tags; copies and additions `calc 0`. What follows a step
/// requires its operations, through a `calc 0` where they are several. Throws InputError (empty `where`) for a
/// compute of other than whole nanoseconds. Source of the grammar: LogGOPSim, README and src/LogGOPSim/*.goal.
std::string export_goal(const Schedule& schedule);

struct GoalOptions {
  /// A rank's sends leave one after another, in the order of `requires`, else of the file: in LogGOPSim a rank has one
  /// processor and one NIC, which a message occupies until it has left.
  bool sends_in_turn = false;
};

/// Reads it. Messages of one rank to one peer with one tag are one connection: they meet in the order of `requires`,
/// else of the file, and what may start together is a step if the same waits for both; else the second starts when
/// the first is done. A calc has a lane of its own, or follows one that it requires. `a irequires b`: a waits until b
/// starts. `calc 0` is nothing but its `requires`. Not taken over: `cpu` and `nic` (calcs of one rank may overlap),
/// with a warning if they are not 0. Sends of a rank that nothing orders start at once and share its port, with a
/// warning, unless `options` orders them. `file` stands for the text in errors. Throws InputError (FILE:LINE).
StoredSchedule import_goal(std::string_view text, const std::string& file, const GoalOptions& options = {});

}  // namespace ringsim
