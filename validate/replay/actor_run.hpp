// One actor's part of a schedule, carried out on its memory: which steps may start, and what they do.
#pragma once

#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "validate/replay/exchange.hpp"
#include "validate/replay/memory.hpp"
#include "validate/replay/program_data.hpp"

namespace ringsim::replay {

/// Reads the schedule by its own rules (sim/schedule/schedule.hpp), apart from the simulator's reader: lanes go on
/// independently, the operations of a step start together, the step is done when all of them are. It never waits: it
/// starts what may start, and is notified of what is done.
///
/// What comes in to be added lands in a room of its own first: other operations of the step may still read the region,
/// and two may add to it.
class ActorRun {
 public:
  /// `program`: of a lowered program, what its tasks do with the memory; else nullptr. All must outlive it.
  ActorRun(const Schedule& schedule, Actor actor, ActorMemory& memory, Messages& messages,
           ProgramData* program = nullptr);

  /// Begins a run, the first or another.
  void start();
  /// Something that was started is done.
  void done(Ticket ticket);
  bool finished() const { return lanes_through_ == static_cast<int>(lanes_.size()); }
  /// The first thing that is still open: "lane 0, step 3: receive data[2] from rank 1, channel 0"; if a lane waits
  /// for another, that. Empty when finished.
  std::string open() const;

 private:
  struct LaneState {
    int step = 0, n_steps = 0;
    int open = 0;  // operations of the step that began; 0: it has not begun
  };
  struct Started {
    Lane lane = 0;
    Op op;
    std::vector<float> incoming;  // of a receive_add; keeps its room from run to run
    bool is_open = false;
  };

  void begin_ready();
  bool begin(Lane lane);
  void begin(Lane lane, const Op& op);
  void complete_operation(Lane lane);

  const Schedule& schedule_;
  Actor actor_;
  ActorMemory& memory_;
  Messages& messages_;
  ProgramData* program_;
  std::vector<LaneState> lanes_;
  int lanes_through_ = 0;
  std::vector<Started> started_;  // [ticket]
  std::vector<Ticket> free_;
  Step scratch_;
};

}  // namespace ringsim::replay
