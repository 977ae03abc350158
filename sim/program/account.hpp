// Accounts for the time of a program's iterations, rank by rank, from what its tasks do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/fifo.hpp"
#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"

namespace ringsim {

/// The time of one rank, taken apart. The first five add up to the time exactly: at each moment the first that is true
/// counts.
struct TimeSplit {
  Picoseconds compute{0};                ///< a task of a compute stream runs
  Picoseconds waiting_for_others{0};     ///< a call is open that some member has not launched yet
  Picoseconds exposed_communication{0};  ///< a call is open that all members have launched
  Picoseconds waiting_for_host{0};       ///< a task of a host stream of the process runs
  Picoseconds idle{0};                   ///< nothing runs
  Picoseconds overlapped{0};             ///< of `compute`: a call is open meanwhile

  bool operator==(const TimeSplit&) const = default;

  TimeSplit& operator+=(const TimeSplit& other);
  /// Each part by itself, rounded down to a picosecond. Requires n > 0.
  TimeSplit operator/(std::int64_t n) const;

  Picoseconds total() const { return compute + waiting_for_others + exposed_communication + waiting_for_host + idle; }
  /// While any call is open: from the start of its launch to its end at this rank.
  Picoseconds communication() const { return waiting_for_others + exposed_communication + overlapped; }
};

/// The iterations after the warm-up, of one rank. An iteration lasts from the end of the one before it (of all its
/// tasks at that rank, or of those of stream 0: ends_iteration()) to its own end.
struct RankAccount {
  TimeSplit split;  ///< of all of them together
  Picoseconds shortest{0}, longest{0};
  Picoseconds before_last{0}, last{0};  ///< of the last two; before_last 0 if there is but one
  SimTime end{};                        ///< of the last
  SimTime first_end{};                  ///< of the very first, warm-up or not
};

/// True if an iteration lasts until the tasks of this stream have ended. In a program with overlaps_next, this is true
/// of stream 0 only: the other streams finish while stream 0 runs the next iteration, so their work is hidden. The last
/// iteration has no next one; waiting for its other streams would count as exposed what is hidden everywhere else.
/// Without a warm-up, all streams count, because then no earlier iteration leaves work to be hidden in the first one.
bool ends_iteration(const Program& program, int warmup, Stream stream);
/// How many tasks of an actor end an iteration.
int n_ending_tasks(const Program& program, int warmup, Actor actor);

/// A task that ran, for pictures.
struct TaskSpan {
  Actor actor = 0;
  StepPlace place;
  SimTime begin{}, end{};
};

/// Listens to a run of a lowered program. Memory: O(actors * (streams + open iterations)), not the iterations.
class Accounts {
 public:
  /// The program must outlive it. `warmup`: how many iterations are left out; less than the program has. `start`: when
  /// the first one begins. Actors that others stand for have the accounts of those, and no events.
  Accounts(const LoweredProgram& lowered, int warmup, SimTime start = {});

  /// Give it to RunOptions::on_compute.
  void on_compute(const ComputeEvent& event);
  /// Told of each task that has ended, if set.
  std::function<void(const TaskSpan&)> on_task;

  /// [rank], when the run is over.
  std::vector<RankAccount> ranks() const;
  /// The account of any actor that has tasks; a server, for example.
  const RankAccount& of(Actor actor) const;

 private:
  struct Open {  // a call that a rank has begun
    int call = 0, iteration = 0;
  };
  struct Of {  // one actor
    SimTime since{};
    int computing = 0, hosting = 0;
    std::vector<Open> open;
    std::vector<SimTime> begun;  // [stream] its current task
    Fifo<int> left;              // [iteration from `iteration` on] tasks that end it and have not ended
    int iteration = 0;           // the first that has not ended
    TimeSplit split;             // of the current iteration, so far
    SimTime ended{};             // when the one before it did
    RankAccount account;
  };
  struct Launches {  // one call in one iteration
    int launched = 0, ended = 0;
    SimTime all{};  // when the last member had launched
  };

  void pass(Of& it, SimTime now);
  void begin_task(Of& it, const StepPlace& place, const Program::Task& task, SimTime now);
  void end_task(Of& it, const StepPlace& place, const Program::Task& task, Actor actor, SimTime now);
  void count_host(Actor actor, int change, SimTime now);
  Launches& launches_of(int call, int iteration);

  const LoweredProgram& lowered_;
  int warmup_;
  std::vector<Of> actors_;
  std::vector<int> stands_for_;           // [actor] so many actors, itself among them; 0: another stands for it
  std::vector<Fifo<Launches>> launches_;  // [call][iteration from first_[call] on]
  std::vector<int> first_;                // [call]
};

}  // namespace ringsim
