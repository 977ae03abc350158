// The proof that a schedule does what its collective promises. A schedule that was not checked cannot be run.
#pragma once

#include <atomic>
#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// What was proved, and how.
struct Proof {
  /// How many messages a connection's sender must be able to run ahead for the schedule to finish: the fewest of 0, 1,
  /// 2, 8 and any_number that were found to do.
  static constexpr int any_number = INT_MAX;
  int slots_needed = 0;
  enum class By : std::uint8_t {
    all_ranks,         ///< every operation of every actor was followed
    symmetry,          ///< one chunk was followed; that all ranks do the same was checked at every one of their steps
    symmetry_samples,  ///< the same, but the equation was checked at some ranks only, because there are very many
    parts,             ///< a program's: each called schedule was proved by itself, and what lies between them
                       ///< (sim/program/program.hpp)
    matching           ///< sends meet receives of their size and all lanes come through; no region is named, so what
                       ///< data ends where is not known
  };
  By by = By::all_ranks;
  std::int64_t operations = 0;  ///< how many the schedule has, over all actors
  /// By construction: the schedule runs another one, of this name, on `pieces` pieces, or after a copy; `by` says how
  /// that one was proved. Empty: the schedule was proved itself.
  std::string from;
  int pieces = 1;
  bool copies_first = false;
  /// The symmetry that was proved, as far as actors, sizes and steps go; none is claimed if there is none.
  Symmetry symmetry;
  /// The symmetry of the plain schedule's positions, if casts give them to ranks: then `symmetry` is empty.
  Symmetry positions;
  /// Facts about a program (`parts`).
  struct Repeated {
    int iterations = 1;           ///< each lane does the same so many times, waiting for as many steps more each time
    bool at_every_rank = false;   ///< all symmetries of what it calls were proved at every step of every rank
    std::string why_no_symmetry;  ///< a sentence; empty: it has one
  };
  Repeated repeated;

  /// Facts that a proof by construction needs about the schedule it starts from.
  struct Shape {
    int numbers = 1;                  ///< one more than the highest channel number
    std::uint32_t widest = 1;         ///< most chunks of one message
    int longest = 0;                  ///< most steps of one lane
    std::int64_t chunks_touched = 0;  ///< operations if each has one chunk only, over all actors
    bool keeps_chunks = true;         ///< data moves only between chunks of one number
  };
  Shape shape;
};
std::string to_string(const Proof& proof);  ///< one sentence

/// A schedule that check() has proved.
class CheckedSchedule {
 public:
  const Schedule& schedule() const { return *schedule_; }
  const Proof& proof() const { return *proof_; }

 private:
  friend CheckedSchedule check(Schedule schedule, const struct CheckOptions& options);
  friend CheckedSchedule in_groups(const std::vector<CheckedSchedule>& of_group);  // sim/check/in_groups.hpp
  friend class LoweredProgram;                                                     // sim/program/lower.hpp
  friend class ProgramsBeside;                                                     // in sim/program
  CheckedSchedule(Schedule schedule, Proof proof)
      : schedule_(std::make_shared<const Schedule>(std::move(schedule))),
        proof_(std::make_shared<const Proof>(std::move(proof))) {}

  std::shared_ptr<const Schedule> schedule_;
  std::shared_ptr<const Proof> proof_;
};

struct CheckOptions {
  /// Asked now and then; true ends the proof with Interrupted.
  const std::atomic<bool>* stop = nullptr;
  /// How many chunks of actors one pass follows, 8 bytes each; a schedule with more of them takes several passes.
  std::uint64_t cells_a_pass = 1U << 23;
};

/// Proves that the schedule delivers: every chunk of every rank's result holds each expected contribution exactly once,
/// in any legal order.
///
///  1. Every operation names actors, channels and chunks that exist; both ends of a message agree in size; a
///     connection's sends lie in one lane, its receives in one lane.
///  2. Connections are FIFOs and a lane never chooses (a Kahn network), so one order decides what finishes. The
///  schedule
///     is run untimed with 0, 1, 2, 8 and any number of slots; the first that suffices is reported.
///  3. No races: two operations of an actor on overlapping chunks, one of them a write (two adds excepted), are ordered
///     by their lane or by waits of that actor. With 2 and 3 every legal order gives the same data.
///  4. Counted in that one order: contributions are numbers in Z/2^64 (a random number for the rank times one for the
///     chunk), so a sum is right if and only if the right contributions are in the right place, once each (a wrong one
///     passes with probability 2^-63 or so). If a sum is wrong, its chunk is counted by rank, to name the ranks.
///
/// A schedule that names no regions is held to 1 and 2 alone.
///
/// A schedule that runs another one, the plain one, on pieces (sim/schedule/piecewise.hpp) is proved by construction:
/// the plain one is proved, and then check() looks whether the pieces share nothing:
///
///  a. Each chunk of the whole belongs to one chunk of one piece, and there are no others.
///  b. The channel numbers of each channel are its own and fit into 16 bits. Lanes are its own by their numbering.
///  c. Both ends of a message agree in size in every piece, either because data keeps its chunk number and the buffers
///     have equal chunks, or because all chunks are equal.
///  d. No message of several chunks is taken apart, unless the plain schedule needs no slots.
///  g. If a channel has a cast, ranks that play other positions than their own: it is a permutation, and what the
///     promise says of a position it says of the rank that plays it. Then the channel is the plain schedule with its
///     ranks renamed, and keeps the promise because that does not change by the renaming.
///
/// Then 1 to 4 hold for the whole. A channel shares no lane, connection, chunk or wait with another (a, b), so channels
/// run as if alone. The rounds of a channel follow one another in each lane, and a round waits for its own steps only;
/// each round ends with every message received, so on each connection the sends of a round meet the receives of that
/// round (FIFO). So "round by round" is a legal order, in which each round does to its chunks what the plain schedule
/// does to its own; a Kahn network then finishes in every order with the same data. A round with too few slots is stuck
/// whatever follows it, so as many slots are needed. Accesses to a chunk are ordered within its piece as they were.
///
/// A proof for a schedule that runs the plain one in other buffers, after a copy (sim/schedule/relocated.hpp):
///
///  e. The buffers of the plain schedule have places that do not overlap, with chunks of the same sizes.
///  f. Each rank copies the chunks that it has something in, and no others.
///
/// When a rank's copy is done, it has there what the plain schedule begins with, and everything else that the rank does
/// comes later, in the same lane or by a wait.
///
/// If a condition fails, all ranks are followed. Cost: the proof of the plain schedule, and a look at each chunk.
///
/// A declared symmetry is proved at each step of each rank and each chunk's promise (at samples if that would be
/// more than 3*10^8 comparisons), then one chunk stands for all: 2 to 4 are done for actor 0, whose messages to +d are
/// those that it gets from -d. It is used if chunks keep their number on their way; else all ranks are followed.
///
/// Throws ScheduleError naming rank, lane, step, operation and region; Interrupted.
/// Time: O(operations a pass + chunks moved). Memory: O(actors + messages that wait + cells of a pass); with several
/// lanes also O(connections + steps of one actor). Chunks that change their number on the way need one pass for all.
CheckedSchedule check(Schedule schedule, const CheckOptions& options = {});

}  // namespace ringsim
