// Several programs in one run, on the same actors or on others: each has lanes, channels and chunks of its own, and
// starts when it is said to.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "sim/program/lower.hpp"

namespace ringsim {

class ProgramsBeside {
 public:
  struct Part {
    const LoweredProgram* program = nullptr;  ///< outlives what is made of it
    std::vector<Actor> actors;                ///< [actor of the program] which actor of the whole, each once
    SimTime start{};                          ///< no step of it begins before
  };

  /// How many channels each of n programs may use: LoweredProgram's `room`.
  static int room_of(std::size_t n) { return channels_apart(static_cast<int>(n)); }

  /// Requires at least one part, each lowered with room_of() all of them. What shares no lane, channel or chunk cannot
  /// meet: the parts' proofs are that of the whole. The lanes of a part come after those of the parts before it; one
  /// that starts later than 0 has one lane more, whose only step computes until then.
  ProgramsBeside(std::vector<Part> parts, int actors);

  const CheckedSchedule& schedule() const { return schedule_; }
  /// As LoweredProgram's, of all parts; they have the same plans.
  std::vector<std::uint16_t> plan_of_channel() const;
  /// [lane] of which part, as RunOptions::jobs.
  std::vector<std::size_t> jobs() const;
  /// The lane of the whole schedule that is this lane of the part.
  Lane lane(std::size_t part, Lane lane) const;

  /// Whose step it is.
  struct Place {
    std::size_t part = 0;
    Actor actor = 0;  ///< of the part's program
    Lane lane = 0;    ///< of its schedule; the one that waits for the start comes after the last
    bool is_start = false;
  };
  Place place_of(Actor actor, Lane lane) const;

 private:
  struct Table;
  static Schedule make(const std::shared_ptr<const Table>& table, int actors);
  static Proof proof_of(const std::vector<Part>& parts);

  std::shared_ptr<const Table> table_;
  CheckedSchedule schedule_;
};

}  // namespace ringsim
