// The progress of each lane of a schedule, for those that follow a LaneRunner without driving it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A lane of the whole schedule: actor * lanes + lane.
using LaneNumber = std::uint32_t;

/// The lanes of all actors. Only LaneRunner, which is derived from it, moves them on.
class LaneStates {
 public:
  LaneStates(const LaneStates&) = delete;
  LaneStates& operator=(const LaneStates&) = delete;

  Actor actor(LaneNumber number) const {
    return static_cast<Actor>(n_lanes_ == 1 ? number
                                            : number / n_lanes_);  // a division is slow, and most have one lane
  }
  Lane lane_of(LaneNumber number) const { return static_cast<Lane>(n_lanes_ == 1 ? 0 : number % n_lanes_); }
  LaneNumber lane_number(Actor of, Lane lane) const {
    return static_cast<LaneNumber>(of) * n_lanes_ + static_cast<LaneNumber>(lane);
  }
  LaneNumber n_lanes() const { return static_cast<LaneNumber>(lanes_.size()); }
  LaneNumber n_lanes_of_actor() const { return n_lanes_; }

  /// The step at which a lane stands; equals the lane's number of steps if it is through.
  int step(LaneNumber number) const { return lanes_[number].step; }
  bool is_through(LaneNumber number) const { return lanes_[number].step == lanes_[number].n_steps; }
  /// True if this is the last open operation of the lane's step: its end completes the step.
  bool is_last(LaneNumber number) const { return lanes_[number].open == 1; }

  bool finished() const { return steps_done_ == n_steps_; }
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t n_steps() const { return n_steps_; }

 protected:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct State {
    std::int32_t step = 0;
    std::int32_t n_steps = 0;
    std::int32_t open = 0;        // operations of the current step that are not done; 0: not begun
    std::uint32_t parked = none;  // of the runner: where its step is kept, if it waits for another lane
  };

  explicit LaneStates(const Schedule& schedule) : n_lanes_(static_cast<LaneNumber>(schedule.lanes)) {
    ensure(schedule.actors < (1 << 24), "a schedule has less than 2^24 actors");
    lanes_.resize(static_cast<std::size_t>(schedule.actors) * static_cast<std::size_t>(schedule.lanes));
    for (std::size_t each = 0; each < lanes_.size(); ++each) {
      const auto lane = static_cast<LaneNumber>(each);
      lanes_[each].n_steps = schedule.n_steps(actor(lane), lane_of(lane));
      ensure(lanes_[each].n_steps >= 0, "a lane has no negative number of steps");
      n_steps_ += lanes_[each].n_steps;
    }
  }
  ~LaneStates() = default;

  LaneNumber n_lanes_;  // of each actor
  std::vector<State> lanes_;
  std::int64_t steps_done_ = 0, n_steps_ = 0;
};

}  // namespace ringsim
