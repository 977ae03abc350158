// All actors of a schedule in one thread, on real memories: whatever may happen next is chosen at random.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/lower.hpp"
#include "sim/schedule/schedule.hpp"
#include "validate/replay/memory.hpp"
#include "validate/replay/program_data.hpp"

namespace ringsim::test {

struct Replayed {
  bool finished = false;                         ///< else some actor never came through
  std::vector<replay::Verdict> verdicts;         ///< [actor] of a collective
  std::vector<replay::ProgramVerdict> programs;  ///< [actor] of a program
  std::string open;                              ///< of the first actor that is not through
};

/// Replays the schedule once. Even seeds: a message moves when both ends have begun, and both are done at once
/// (rendezvous). Odd seeds: it leaves its sender at one random moment and arrives at another, however many are on their
/// way (as through sockets of unlimited buffers). `program`: of which it is the schedule; nullptr: of a collective.
Replayed replay_shuffled(const Schedule& schedule, std::uint64_t seed, const LoweredProgram* program = nullptr);

}  // namespace ringsim::test
