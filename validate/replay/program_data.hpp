// Numbers of a training program that is replayed: gradients, made in each iteration, and weights.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/program/lower.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay {

/// A schedule that is a program.
struct ReplayProgram {
  const LoweredProgram* lowered = nullptr;  ///< must outlive the replay
  int warmup = 0;                           ///< iterations that do not count; fewer than the program has
};

/// Throws InputError if the program does more with its data than a replay checks: gradients that all ranks make, sums
/// of them (all_reduce or reduce, in place), and weights to which the sums are added, which stay where they are or are
/// broadcast.
void require_replayable(const Program& program);

struct ProgramVerdict {
  std::int64_t checked = 0;  ///< elements that were compared
  std::int64_t wrong = 0;    ///< of them
  std::string first;         ///< "rank 2: bucket 1 of iteration 0, element 17: expected 1234, found nan"; empty: none
};

/// One actor's numbers. Its tasks do to them what they say (Program::Touch).
///
/// The gradient of iteration t is base(rank, call, element) + shift(rank, call, t). Both are whole and as good as
/// random, so a number of another rank, bucket or element is mostly another number; of another iteration all of a
/// bucket's are, or by chance (1 in 31 to 1 in 4096, the more iterations the likelier) none is. Sums are not divided by
/// the number of ranks, because what is left might be no whole number. All numbers stay below 2^24 up to the last
/// iteration, so float32 holds every sum exactly, and results are compared to the bit.
///
/// The variables of a call are written together, when the last of them is made: as gradients are copied into a bucket.
/// What a call may not read is overwritten before it starts: with poison (not a number) at ranks; with 0 in scratch and
/// at helpers, which add to it. Compared are each sum when its call is done, the weights when an iteration first reads
/// them or they have come in, and all weights at the end. The numbers expected are worked out from all contributions.
class ProgramData {
 public:
  /// Requires require_replayable(). `memory`: the actor's, of the lowered schedule. Both must outlive it.
  ProgramData(const LoweredProgram& lowered, Actor actor, ActorMemory& memory);

  /// As before a run.
  void fill();
  /// A step of the actor: before its operations begin, and when all of them are done.
  void begins(Lane lane, int step);
  void ends(Lane lane, int step);
  /// The verdict of a run that is over.
  ProgramVerdict check();
  /// Called when the actor has done all tasks of an iteration; may be empty.
  std::function<void(int iteration)> on_iteration;

 private:
  /// The gradients that a call sums, and the weights that they are added to.
  struct Numbers {
    int call = -1, weights_call = -1;  // weights_call: that broadcasts the weights; -1: every rank has its own
    std::size_t variables = 0;
    bool makes = false;                 // the actor is a rank, whose tasks make gradients
    bool gets_sum = false;              // of the gradients
    bool has_weights = false;           // its own, or of weights_call
    Region gradients, weights;          // in memory_; weights only of weights_call
    std::vector<float> base, base_sum;  // [element] of this actor; of all ranks
    std::vector<float> begin;           // [element] the weights before the first iteration
    std::vector<float> kept;            // [element] the weights, if no call has them
    std::vector<float> shift, shift_sum,
        shift_past;  // [iteration] own; of all ranks; of all ranks and iterations before
    // In a run:
    std::size_t made = 0, applied = 0;  // variables of the iteration
    int read = -1;                      // the last iteration that read the weights
  };
  struct Blank {
    Region region;
    float value = 0;
  };

  const Program& program() const { return lowered_.program(); }
  int member_of(int call) const;  // which actor of its schedule; -1: none
  Region region_of(int call, Buffer buffer) const;
  void add_numbers(int call, int weights_call);
  void draw(Numbers& numbers) const;
  void add_blanks(int call);
  std::span<float> weights_of(Numbers& numbers);
  void touch(const Program::Touch& touch, int iteration);
  void read(Numbers& numbers, int iteration);
  void check_call(int call, int iteration);
  void check_weights(Numbers& numbers, int iterations);
  /// Expects begin + n * step + shift of each element.
  void compare(std::span<const float> found, std::span<const float> begin, int n, std::span<const float> step,
               float shift, const std::string& what);

  const LoweredProgram& lowered_;
  const Actor actor_;
  ActorMemory& memory_;
  std::vector<Numbers> numbers_;
  std::vector<int> of_variable_;            // which of numbers_ has it; -1: none
  std::vector<int> of_call_;                // the same
  std::vector<std::vector<Blank>> blanks_;  // [call]
  int n_tasks_ = 0;                         // of an iteration
  std::vector<int> left_;                   // [iteration] tasks that are not done
  ProgramVerdict verdict_;
};

}  // namespace ringsim::replay
