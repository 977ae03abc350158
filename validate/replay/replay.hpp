// A schedule carried out for real: runs, their times, and whether every number came out right.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/check/check.hpp"
#include "validate/replay/exchange.hpp"
#include "validate/replay/program_data.hpp"

namespace ringsim::replay {

struct Repeats {
  int warmups = 2;  ///< runs whose results are checked, but whose times do not count
  int timed = 5;    ///< at least 1
};

/// What one actor saw.
struct ActorRecord {
  /// [timed run] from its begin until this actor was done; of a program the mean of the iterations that count
  std::vector<std::chrono::nanoseconds> times;
  std::optional<std::int64_t> checked;  ///< elements that were compared, over all runs; nothing: they were not counted
  std::int64_t wrong = 0;               ///< of them
  std::string first_wrong;              ///< to_string(WrongElement) of the first; empty if all is right
};

/// Times of all actors together. A run takes as long as its slowest actor.
struct Measured {
  Picoseconds median{0}, min{0}, max{0};  ///< over the timed runs; of an even number the mean of the middle two
  std::optional<std::int64_t> checked;    ///< elements, over all runs, warm-ups too; nothing: they were not counted
  std::int64_t wrong = 0;                 ///< of them
  std::string first_wrong;                ///< of the lowest rank that has one
};

/// Throws InputError if the schedule cannot be replayed as it is: a chunk that does not lie on whole elements, a
/// schedule that names no regions or that needs slots, more ranks than sums are exact for.
void require_replayable(const CheckedSchedule& checked);

/// One actor's part, from the first warm-up to the last run: fill, barrier, run, check. `program`: if the schedule is a
/// program, which; else nullptr. Throws what `exchange` throws, with what was open at that time.
ActorRecord replay_actor(const Schedule& schedule, Actor actor, Exchange& exchange, const Repeats& repeats,
                         const ReplayProgram* program = nullptr);

/// `records`: [actor], all with equally many times, one at least.
Measured combine(const std::vector<ActorRecord>& records);

}  // namespace ringsim::replay
