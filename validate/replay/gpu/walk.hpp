// The steps of a schedule in an order in which they can begin: what planners walk along.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/schedule.hpp"
#include "validate/replay/gpu/draft.hpp"

namespace ringsim::replay::gpu {

/// How far a lane is.
struct LaneProgress {
  int step = 0, n_steps = 0;
  bool begun = false;
  Step content;                        ///< of the step that has begun
  std::vector<std::uint32_t> streams;  ///< the lane's own, then its further ones
  std::vector<std::uint32_t> ended;    ///< [step] the event after it
};

/// State: a LaneProgress, and what its planner keeps for a lane.
template <class State>
class Walk {
 public:
  /// `schedule` must outlive it.
  explicit Walk(const Schedule& schedule) : schedule_(schedule) {
    for (Actor actor = 0; actor < schedule.actors; ++actor) {
      lanes_.emplace_back(at(schedule.lanes));
      for (Lane lane = 0; lane < schedule.lanes; ++lane)
        lanes_.back()[at(lane)].n_steps = schedule.n_steps(actor, lane);
    }
  }

  State& of(Actor actor, Lane lane) { return lanes_[at(actor)][at(lane)]; }

  /// Calls begin(actor, lane, state) for every step once it may begin, which leads to end() for each, then or later.
  template <class Begin>
  void go(Begin begin) {
    for (Actor actor = 0; actor < schedule_.actors; ++actor) ready_.push_back(actor);
    while (!ready_.empty()) {
      const Actor actor = ready_.front();
      ready_.pop_front();
      for (Lane lane = 0; lane < schedule_.lanes; ++lane)
        if (may_begin(actor, lane)) begin(actor, lane, of(actor, lane));
    }
    for (const auto& lanes : lanes_)
      for (const State& lane : lanes) ensure(lane.step == lane.n_steps, "a schedule that was proved comes through");
  }

  /// The lane's own stream waits for the steps that the schedule has it wait for.
  void wait(Streams& streams, Actor actor, const State& state) {
    for (const Wait& wait : state.content.waits)
      if (wait.steps > 0) streams.wait(state.streams[0], of(actor, wait.lane).ended[at(wait.steps - 1)]);
  }

  /// The step has ended, with that event.
  void end(Actor actor, State& state, std::uint32_t event) {
    state.ended.push_back(event);
    state.begun = false;
    ++state.step;
    ready_.push_back(actor);
  }

 private:
  bool may_begin(Actor actor, Lane lane) {
    State& state = of(actor, lane);
    if (state.begun || state.step == state.n_steps) return false;
    state.content.clear();
    schedule_.step(actor, lane, state.step, state.content);
    for (const Wait& wait : state.content.waits)
      if (of(actor, wait.lane).step < wait.steps) return false;
    return state.begun = true;
  }

  const Schedule& schedule_;
  std::vector<std::vector<State>> lanes_;  // [actor][lane]
  std::deque<Actor> ready_;                // one of whose lanes may go on
};

}  // namespace ringsim::replay::gpu
