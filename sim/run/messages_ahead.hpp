// Messages that run ahead of their receives, under protocols with slots. A run under a protocol without has none of it.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/run/device_work.hpp"
#include "sim/run/lane_trails.hpp"
#include "sim/run/represented.hpp"
#include "sim/run/run.hpp"
#include "sim/run/transfers.hpp"
#include "sim/schedule/lane_states.hpp"
#include "sim/schedule/lanes.hpp"

namespace ringsim {

/// Told when an operation of a lane ends; the lane's trail leads to this moment if it is the step's last.
class OperationEnds {
 public:
  virtual void op_ends(LaneNumber lane) = 0;

 protected:
  ~OperationEnds() = default;
};

/// Under such a protocol the ends of a message need not wait for each other: a send ends when all has left, a receive
/// when all has arrived. What has slots leaves before the receive begins, as parts of the message if that is not all of
/// it. Each part starts at a moment of its own, so it has a trail of its own.
class MessagesAhead final : public TransferWatcher {
 public:
  /// `work`: none if devices work in no time. All references must outlive it.
  MessagesAhead(const Schedule& schedule, const RunOptions& options, const Represented& represented,
                const Engine<Event>& engine, const LaneStates& lanes, LaneTrails& trails, Transfers& transfers,
                DeviceWork* work, OperationEnds& ends);

  /// A message starts, both of whose ends have begun; the step of lane `cause` began last.
  void met(std::uint32_t index, LaneNumber cause);

  /// A send begins whose receive has not; as LaneRunner has it. What gets room() goes to slots.
  void left(std::uint32_t slot, OpPlace place, Bytes size, LaneNumber by, std::uint32_t& kept);
  /// Lane `by` freed n slots for more of the message.
  void room(std::uint32_t slot, int n, LaneNumber by);
  /// The receive of a message that has run ahead begins.
  void caught_up(const Message<Bytes>& message);

  /// All of a message has arrived.
  void arrived(const Arrived& arrived);
  /// All of a transfer has left: with the last part its message, or the next part of it goes on.
  void has_left(std::uint32_t index, ResourceId limiter, Picoseconds busy) override;
  /// The last part of a message has arrived: the message waited for what started that part.
  void last_part_arrived(std::uint32_t part) override;
  void goes_on_as(std::uint32_t before, std::uint32_t after) override;

  /// The recorded paths that lead to the starts.
  void add_path_ends(std::vector<PathEnd*>& ends) {
    for (Start& start : starts_) ends.push_back(&start.trail.path_end);
  }

  /// Size of the largest message of calls of that plan that ran ahead.
  Bytes largest(std::size_t plan) const { return largest_[plan]; }

 private:
  // What whichever end of a message comes second must know. Of a part that started when slots were given back: its own
  // start, and the trail up to then.
  struct Start {
    bool is_met = false;  // its receive has begun
    bool has_arrived = false;
    std::uint32_t slot = no_slot;  // in in_slot_, until its receive begins
    Bytes rest;                    // what has not started for want of slots
    Bytes room;                    // of `rest`: what has slots, but follows a part that is still leaving
    SimTime since{};  // when the part that started last did; of a message that has arrived, the part that arrived last
    Trail trail;      // the critical path up to then
  };

  SimTime now() const { return engine_.now(); }
  const Protocol& protocol(std::uint32_t index) const { return *options_.plan(transfers_[index].channel).protocol; }
  void reach(std::uint32_t index) {
    if (starts_.size() <= index) starts_.resize(index + 1);
  }
  bool adds_take_time(LaneNumber lane) const { return work_ != nullptr && work_->takes_time(lane, LinkKind::reduce); }

  Start& watch(std::uint32_t index, LaneNumber cause);
  void give_room(std::uint32_t index, Bytes more, LaneNumber by);
  void start_part(std::uint32_t index);
  void freed_slots(LaneNumber lane);
  bool freed_slots_now(LaneNumber lane) const { return lane < freed_.size() && freed_[lane] == now(); }
  bool may_start_by_other(std::uint32_t index, LaneNumber by) const;
  MessageTime time_since(std::uint32_t index, ResourceId limiter, Picoseconds busy) const;
  void end_op(LaneNumber lane, std::uint32_t index, const MessageTime& time, Picoseconds wire);
  void add(std::uint32_t index, const Trail& trail);

  const Schedule& schedule_;
  const RunOptions& options_;
  const Represented& represented_;
  const Engine<Event>& engine_;
  const LaneStates& lanes_;
  LaneTrails& trails_;
  Transfers& transfers_;
  DeviceWork* work_;
  OperationEnds& ends_;
  std::vector<Start> starts_;           // [transfer]
  std::vector<std::uint32_t> in_slot_;  // [slot] the transfer
  Step step_;                           // room for left()
  std::vector<Bytes> largest_;          // [plan]
  std::vector<SimTime> freed_;          // [lane] when it last freed slots
};

}  // namespace ringsim
