// Schedules from files: which format a text is of, and the algorithm that a scenario names by "file".
#pragma once

#include <string>
#include <string_view>

#include "algorithms/catalog.hpp"
#include "algorithms/formats/goal.hpp"
#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// Reads a schedule; its content tells the format: XML (import_msccl), JSON (import_mscclpp if it has thread blocks,
/// else import_json), GOAL (import_goal).
/// Throws InputError as those do. `goal`: how GOAL is read.
StoredSchedule read_schedule(std::string_view text, const std::string& file, const GoalOptions& goal = {});

/// Is the text GOAL, if it is a schedule?
bool is_goal(std::string_view text);

/// Is the text a schedule, and not a scenario? Comments may stand first.
bool is_schedule(std::string_view text);

/// The algorithm called "file", no part of the catalog: makes the schedule of Arguments::file, which has to be set.
/// Its make() requires that file_serves() has nothing to say.
const Algorithm& file_algorithm();

/// Why the file's schedule is not what is asked for, and the part of the request that says otherwise: "op", "ranks",
/// "root", "both_ways"; empty if it is. A schedule that names no collective serves any.
struct Mismatch {
  std::string part, message;
};
Mismatch file_serves(const StoredSchedule& stored, const CollectiveRequest& request);

/// A warning if the size is not one for which the file is meant; else empty.
std::string outside_of_range(const StoredSchedule& stored, Bytes bytes);

}  // namespace ringsim
