// Accounts for the time of a plan's step: computation, and the causes of waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"

namespace ringsim {

/// The time of one rank, taken apart. At each moment a kernel runs, or the next kernel waits: for a collective of the
/// tensor, context or expert group, for what a neighbor stage hands on, or for a collective of the data group; the
/// first of these counts. A collective that has not begun because a neighbor's part is missing (scatter_gather) is a
/// wait for the neighbor.
struct PlanSplit {
  Picoseconds passes{0};     ///< forward and backward passes
  Picoseconds recompute{0};  ///< parts of forward passes again
  Picoseconds optimizer{0};  ///< updates
  Picoseconds tensor{0}, context{0}, expert{0}, data{0};
  Picoseconds pipeline{0};  ///< what it waits for is on its way
  Picoseconds bubble{0};    ///< what it waits for has not been sent, or there is nothing more to do

  Picoseconds compute() const { return passes + recompute + optimizer; }
  Picoseconds total() const { return compute() + tensor + context + expert + data + pipeline + bubble; }
  bool operator==(const PlanSplit&) const = default;
};

/// The streams of a plan's program (algorithms/training/plan_program.hpp); others but 0 are those of stages.
struct PlanStreams {
  Stream tensor = -1, data = -1, replica = -1, context = -1, expert = -1;

  bool is_data(Stream stream) const { return stream == data || stream == replica; }
  /// True if its collectives come between kernels, which wait for them.
  bool is_between_kernels(Stream stream) const { return stream == tensor || stream == context || stream == expert; }
};

/// Listens to a run of a lowered plan, as Accounts does. Iterations begin and end as there.
class PlanAccount {
 public:
  PlanAccount(const LoweredProgram& lowered, const PlanStreams& streams, int warmup, SimTime start);

  void on_compute(const ComputeEvent& event);
  /// The sum over the iterations after the warm-up, when the run is over.
  const PlanSplit& of(Actor rank) const;

 private:
  struct Of {
    SimTime since{};
    Picoseconds PlanSplit::*runs = nullptr;   // the kernel that runs; nullptr: none
    std::vector<std::int64_t> done;           // [stream] tasks, over all iterations
    std::vector<std::int64_t> launched;       // [stream] calls on it that have been launched, likewise
    std::vector<std::vector<SimTime>> begun;  // [stream][task] when it was last launched
    std::vector<int> left;                    // [iteration modulo 4] tasks that end it and have not ended
    int iteration = 0;                        // the first that has not ended
    PlanSplit split, all;
  };

  std::int64_t n_tasks(Actor actor, Stream stream) const;
  void pass(Actor actor, SimTime now);
  void wait(Actor actor, SimTime since, SimTime now);
  /// A call of a stream, by its place among all iterations' tasks.
  struct Awaited {
    Stream stream = -1;
    std::int64_t place = 0;
  };
  /// The transfer over a cut without which a collective cannot begin; stream -1: it has begun, or waits for others.
  Awaited cut_before(Actor actor, const Awaited& collective) const;
  /// Adds the time of a wait for what comes over a cut.
  void wait_for_stage(Actor actor, Stream stream, std::int64_t place, SimTime since, SimTime now);
  void end_task(Actor actor, const StepPlace& place);

  const LoweredProgram& lowered_;
  PlanStreams streams_;
  int warmup_;
  std::vector<Of> actors_;                  // of ranks
  std::vector<std::vector<int>> place_of_;  // [role][call] its task; -1: the role does not call it
};

}  // namespace ringsim
