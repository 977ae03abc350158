// A reader of schedules that does what LaneRunner must do, in the simplest way: after each step of an actor, every
// waiting lane of the actor reads its step and checks its waits again.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "sim/schedule/lanes.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim::naive {

/// Drives the lanes of a schedule, without slots. The handler is one for LaneRunner (begins, woken, matched, local,
/// connection, note); woken() is called each time a waiting lane checks again.
template <class Handler>
class Lanes {
 public:
  Lanes(const Schedule& schedule, Handler& handler) : schedule_(schedule), handler_(handler) {
    lanes_.resize(static_cast<std::size_t>(schedule.actors) * static_cast<std::size_t>(schedule.lanes));
    for (LaneNumber number = 0; number < lanes_.size(); ++number)
      if (n_steps(number) > 0) ready_.push_back(number);
  }

  /// Lanes look at their next step in the order in which they became ready.
  void run_ready() {
    while (!ready_.empty()) {
      const LaneNumber number = ready_.front();
      ready_.pop_front();
      look(number);
    }
  }

  void op_done(LaneNumber number) {
    if (--lanes_[number].open == 0) complete(number);
  }
  bool is_last(LaneNumber number) const { return lanes_[number].open == 1; }
  int step(LaneNumber number) const { return lanes_[number].step; }

 private:
  struct LaneState {
    int step = 0, open = 0;
    bool waits = false;
  };
  struct Half {
    OpPlace place;
    Op op;
  };

  Actor actor(LaneNumber number) const { return static_cast<Actor>(number) / schedule_.lanes; }
  Lane lane_of(LaneNumber number) const { return static_cast<Lane>(number) % schedule_.lanes; }
  int n_steps(LaneNumber number) const { return schedule_.n_steps(actor(number), lane_of(number)); }
  LaneNumber first_of(Actor actor) const { return static_cast<LaneNumber>(actor * schedule_.lanes); }

  // The lane begins its next step, or waits.
  void look(LaneNumber number) {
    LaneState& lane = lanes_[number];
    Step step;
    schedule_.step(actor(number), lane_of(number), lane.step, step);
    for (const Wait& wait : step.waits)
      if (lanes_[first_of(actor(number)) + static_cast<LaneNumber>(wait.lane)].step < wait.steps) {
        lane.waits = true;
        return;
      }
    handler_.begins(number);
    lane.open = static_cast<int>(step.ops.size());
    if (step.ops.empty()) complete(number);
    for (std::size_t i = 0; i < step.ops.size(); ++i) {
      const Half half{{number, lane.step, static_cast<std::int32_t>(i)}, step.ops[i]};
      if (half.op.what == Do::send || half.op.what == Do::receive || half.op.what == Do::receive_add)
        post(half);
      else
        handler_.local(half.place, half.op);
    }
  }

  // The k-th send of a connection meets its k-th receive.
  void post(const Half& half) {
    const bool is_send = half.op.what == Do::send;
    const std::uint64_t connection = handler_.connection(actor(half.place.lane), half.op);
    std::deque<Half>& others = (is_send ? receives_ : sends_)[connection];
    if (others.empty()) {
      (is_send ? sends_ : receives_)[connection].push_back(half);
      return;
    }
    const Half other = others.front();
    others.pop_front();
    const Half &send = is_send ? half : other, &receive = is_send ? other : half;
    std::uint32_t kept = nothing_kept;  // as after forget_kept()
    handler_.matched({.sender = send.place,
                      .receiver = receive.place,
                      .source = handler_.note(send.op),
                      .target = handler_.note(receive.op),
                      .add = receive.op.what == Do::receive_add,
                      .channel = send.op.channel,
                      .slot = no_slot},
                     kept);
  }

  void complete(LaneNumber number) {
    if (++lanes_[number].step < n_steps(number)) ready_.push_back(number);
    const LaneNumber first = first_of(actor(number));
    for (LaneNumber other = first; other < first + static_cast<LaneNumber>(schedule_.lanes); ++other) {
      if (!lanes_[other].waits) continue;
      lanes_[other].waits = false;
      handler_.woken(other, number);
      ready_.push_back(other);
    }
  }

  const Schedule& schedule_;
  Handler& handler_;
  std::vector<LaneState> lanes_;
  std::deque<LaneNumber> ready_;
  std::map<std::uint64_t, std::deque<Half>> sends_, receives_;  // [connection] what has begun and not met
};

}  // namespace ringsim::naive
