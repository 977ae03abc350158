// The parts of the checker that check.cpp puts together.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/base/splitmix.hpp"
#include "sim/check/check.hpp"
#include "sim/schedule/lanes.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim::check_detail {

std::string name_of(const Schedule& schedule);                 ///< "schedule ring all_reduce of 8 ranks"
std::string name_of(const Schedule& schedule, Actor actor);    ///< "rank 3", "helper 0 (actor 8)"
std::string describe(const Schedule& schedule, const Op& op);  ///< "send data[3] to rank 4"
/// "rank 3, lane 0, step 5, operation 1 (receive_add data[2] from rank 2)"
std::string describe(const Schedule& schedule, Actor actor, Lane lane, int step, int op);
std::string describe(const Schedule& schedule, OpPlace place);

[[noreturn]] void refuse(const Schedule& schedule, const std::string& message, const std::string& hint = "");

/// In which lane the sends and the receives of each connection lie.
struct ConnectionLanes {
  tsl::robin_map<std::uint64_t, Lane, MixedHash> sends, receives;
};

/// Throws Interrupted if the options' stop flag is set.
void look_up(const CheckOptions& options);

/// 1. Everything that the actor's operations name exists.
/// 3. If they name regions: no two accesses of the actor to one chunk are unordered, one of them a write (two adds
/// excepted).
/// Both with one reading of its steps. Returns how many operations it has; `shape` takes in those of its steps, but for
/// `keeps_chunks`.
std::int64_t check_actor(const Schedule& schedule, Actor actor, ConnectionLanes& lanes, Proof::Shape& shape);

/// 3, of what check_actor() reads: `look_at` sees each step of the actor once, before it is followed.
void follow_accesses(const Schedule& schedule, Actor actor,
                     const std::function<void(Lane, int i, const Step& step)>& look_at);

/// 4, in full: every contribution to one chunk, by rank. For a chunk whose sum is wrong; throws ScheduleError.
[[noreturn]] void explain_wrong_chunk(const Schedule& schedule, int slots, Actor actor, Buffer buffer,
                                      std::uint32_t chunk, const Content& expected);

/// 2 to 4 by symmetry. False if the claim does not hold in the form needed (one chunk a rank, chunks that keep their
/// place): then all ranks have to be followed. Throws ScheduleError if the claim itself is wrong, or the result is.
bool check_by_symmetry(const Schedule& schedule, const CheckOptions& options, Proof& proof);

/// 1 to 4 by construction, from the proof of the schedule that this one is made of. False if it is not made so, if a
/// condition does not hold, or if the other schedule is refused: then all ranks have to be followed, and the mistake is
/// named where it is.
bool check_by_construction(const Schedule& schedule, const CheckOptions& options, Proof& proof);

}  // namespace ringsim::check_detail
