// Messages that run ahead of their receives, under protocols with slots. A run under a protocol without has none of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/run/lane_trails.hpp"
#include "sim/run/transfers.hpp"
#include "sim/schedule/lanes.hpp"

namespace ringsim {

/// Under such a protocol the ends of a message need not wait for each other: a send ends when all has left, a receive
/// when all has arrived. What has slots leaves before the receive begins, as parts of the message if that is not all of
/// it. Each part starts at a moment of its own, so it has a trail of its own.
///
/// Run is the class of that name in simulate.cpp, whose friend this is: it starts transfers and ends operations as Run
/// does.
template <class Run>
class MessagesAhead {
 public:
  explicit MessagesAhead(Run& run)
      : run_(run), transfers_(run.transfers_), trails_(run.trails_), largest_(run.options_.plans.size()) {}

  /// A message starts, both of whose ends have begun; the step of lane `cause` began last.
  void met(std::uint32_t index, LaneNumber cause) {
    Start& start = watch(index, cause);
    start.is_met = true;
    const LaneNumber sender = transfers_[index].sender, receiver = transfers_[index].receiver;
    if (freed_slots_now(receiver) && trails_.begin_unlike(sender, receiver, now())) start.trail.is_unsure = true;
  }

  /// A send begins whose receive has not; as LaneRunner has it. What gets room() goes to slots.
  void left(std::uint32_t slot, OpPlace place, Bytes size, LaneNumber by, std::uint32_t& kept) {
    const Actor self = run_.lanes_.actor(place.lane);
    step_.clear();
    run_.schedule_.step(self, run_.lanes_.lane_of(place.lane), place.step, step_);
    const Op& op = step_.ops[static_cast<std::size_t>(place.op)];
    const std::uint32_t index = transfers_.make();
    Transfer& transfer = transfers_[index];
    transfer.sender = place.lane;
    transfer.receiver = run_.expected_receiver(place.lane, op.peer);
    transfer.channel = op.channel;
    transfer.step = place.step;
    transfer.size = size;
    transfer.start = now();
    transfer.whole = no_transfer;
    transfer.marks = {.sender_was_last = true};  // adds: see caught_up()
    transfer.route = run_.route_from(place.lane, op.peer, op.channel, kept);
    transfer.parts_under_way = 0;
    Bytes& largest = largest_[run_.options_.plan_number(op.channel)];
    largest = std::max(largest, size);
    Start& start = watch(index, by);
    start.rest = size;
    start.slot = slot;
    if (in_slot_.size() <= slot) in_slot_.resize(slot + 1);
    in_slot_[slot] = index;
  }
  /// Lane `by` freed n slots for more of the message.
  void room(std::uint32_t slot, int n, LaneNumber by) {
    const std::uint32_t index = in_slot_[slot];
    give_room(index, run_.protocol(transfers_[index].channel).slot * n, by);
  }

  /// The receive of a message that has run ahead begins.
  void caught_up(const Message<Bytes>& message) {
    const LaneNumber receiver = message.receiver.lane;
    const std::uint32_t index = in_slot_[message.slot];
    if (run_.by_channels_ != nullptr) freed_slots(receiver);
    transfers_[index].receiver = receiver;
    transfers_[index].marks.adds = message.add && run_.adds_take_time(receiver);
    starts_[index].is_met = true;
    starts_[index].slot = no_slot;
    if (starts_[index].rest.count > 0) give_room(index, starts_[index].rest, receiver);
    if (!starts_[index].has_arrived) return;
    if (transfers_[index].marks.adds) {
      run_.add(index, trails_[receiver]);
    } else {
      if (trails_.weighs_ties()) trails_.weigh(receiver, trails_[receiver], now());  // it may have arrived now
      run_.end_own_op(receiver, {.node = trails_.path_end(receiver)});
    }
    transfers_.give_back(index);
  }

  /// All of a transfer has left: with the last part its message, or the next part of it goes on.
  [[gnu::noinline]] void has_left(std::uint32_t index, ResourceId limiter, Picoseconds busy) {
    if (transfers_[index].marks.has_left) return;
    transfers_[index].marks.has_left = true;
    const std::uint32_t whole = transfers_[index].whole;
    if (whole == no_transfer) return end_op(transfers_[index].sender, index, limiter, busy, Picoseconds{0});
    if (whole >= first_background) return;
    Transfer& message = transfers_[whole];
    if (message.parts_to_leave == 0 || --message.parts_to_leave > 0) return;
    if (message.whole != no_transfer || starts_[whole].rest.count == 0) return has_left(whole, limiter, busy);
    Start& start = starts_[whole];
    if (start.room.count == 0) return;
    trails_.go_on(start.trail, message.sender, message, Picoseconds{0}, time_since(whole, limiter, busy));
    start_part(whole);
  }

  /// All of a message has arrived.
  [[gnu::noinline]] void arrived(std::uint32_t index, ResourceId limiter, Picoseconds busy) {
    has_left(index, limiter, busy);  // within one device nothing has told of it
    Start& start = starts_[index];
    start.has_arrived = true;
    if (!start.is_met) {
      if (trails_.weighs_ties()) {  // its receive may begin now as well
        const LaneNumber first = transfers_[index].receiver, n = run_.by_channels_ == nullptr ? 1 : n_lanes();
        for (LaneNumber lane = first; lane < first + n; ++lane)  // whichever it will be
          trails_.weigh(lane, start.trail, time_since(index, limiter, busy), now());
      }
      run_.take_wire();  // it is not the next message's
      return;
    }
    const Picoseconds wire = run_.take_wire();
    if (transfers_[index].marks.adds) {
      Trail trail = start.trail;
      trails_.go_on(trail, transfers_[index].receiver, transfers_[index], wire, time_since(index, limiter, busy));
      run_.add(index, trail);
    } else {
      end_op(transfers_[index].receiver, index, limiter, busy, wire);
    }
    transfers_.give_back(index);
  }

  /// The last part of a message has arrived: the message waited for what started that part.
  void last_part_arrived(std::uint32_t part) {
    const std::uint32_t whole = transfers_[part].whole;
    while (!transfers_[part].marks.starts_apart && transfers_[part].whole < first_background)
      part = transfers_[part].whole;
    if (part == whole || !transfers_[part].marks.starts_apart || !transfers_[whole].marks.starts_apart) return;
    starts_[whole].since = starts_[part].since;
    starts_[whole].trail = starts_[part].trail;
  }

  /// Transfer `after` takes the place of `before` as the message.
  void goes_on_as(std::uint32_t before, std::uint32_t after) {
    if (before >= starts_.size()) return;
    reach(after);
    starts_[after] = starts_[before];
    if (const std::uint32_t slot = starts_[after].slot; slot != no_slot) in_slot_[slot] = after;
  }

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

  SimTime now() const { return run_.engine_.now(); }
  void reach(std::uint32_t index) {
    if (starts_.size() <= index) starts_.resize(index + 1);
  }

  /// `cause`: the lane whose step's start let the message start.
  Start& watch(std::uint32_t index, LaneNumber cause) {
    reach(index);
    starts_[index] = {.since = now(), .trail = trails_[cause]};
    transfers_[index].marks.starts_apart = true;
    transfers_[index].marks.has_left = false;
    transfers_[index].parts_to_leave = 0;
    return starts_[index];
  }

  void give_room(std::uint32_t index, Bytes more, LaneNumber by) {
    Start& start = starts_[index];
    start.room = std::min(start.rest, start.room + more);
    if (transfers_[index].parts_to_leave > 0) return;  // it starts after the part that is leaving
    start.trail = trails_[by];
    if (trails_.weighs_ties() && may_start_by_other(index, by)) start.trail.is_unsure = true;
    start_part(index);
  }
  LaneNumber n_lanes() const { return static_cast<LaneNumber>(run_.schedule_.lanes); }
  // The lane began a receive now whose message had slots. Kept only if one channel stands for all.
  void freed_slots(LaneNumber lane) {
    if (freed_.size() <= lane) freed_.resize(lane + 1, SimTime::min());
    freed_[lane] = now();
  }
  bool freed_slots_now(LaneNumber lane) const { return lane < freed_.size() && freed_[lane] == now(); }

  // If a send begins in the instant in which its receiver frees the slots that it needs, the later of the two events
  // lets it start. Folded by turns, each step has one message. If one channel stands for all, the receiver may be any
  // lane of its actor.
  bool may_start_by_other(std::uint32_t index, LaneNumber by) const {
    const LaneNumber sender = transfers_[index].sender, receiver = transfers_[index].receiver;
    if (run_.by_channels_ != nullptr) {
      if (by != sender) return trails_.begin_unlike(sender, by, now());
      for (LaneNumber lane = receiver; lane < receiver + n_lanes(); ++lane)
        if (freed_slots_now(lane) && trails_.begin_unlike(sender, lane, now())) return true;
      return false;
    }
    const int ahead = run_.lanes_.step(sender) - run_.lanes_.step(receiver);
    const Protocol& protocol = run_.protocol(transfers_[index].channel);
    const bool needed_them = by != sender || ahead >= protocol.slots / protocol.slots_of(transfers_[index].size);
    return needed_them && trails_.begin_unlike(sender, receiver, now());
  }

  // What of a message has room starts, if that is all of it as itself.
  void start_part(std::uint32_t index) {
    Start& start = starts_[index];  // of which a new part has a copy
    const Bytes size = std::exchange(start.room, Bytes{});
    const bool is_first = start.rest == transfers_[index].size;
    start.since = now();
    start.rest = start.rest - size;
    const bool is_last = start.rest.count == 0;
    if (is_first && is_last) return run_.set_out(index);
    const std::uint32_t part = transfers_.make();  // may move the others
    reach(part);                                   // likewise
    starts_[part].since = starts_[index].since;
    starts_[part].trail = starts_[index].trail;
    Transfer& message = transfers_[index];
    if (run_.disturber_)  // its links may be down by now
      message.route =
          run_.route(run_.lanes_.actor(message.sender), run_.lanes_.actor(message.receiver), message.channel);
    message.parts_under_way += (is_first ? 1U : 0U) + (is_last ? 0U : 1U);  // with one that is to come
    message.parts_to_leave = 1;
    transfers_[part] = {.sender = message.sender,
                        .receiver = message.receiver,
                        .route = message.route,
                        .channel = message.channel,
                        .marks = {.starts_apart = true},
                        .size = size,
                        .start = now(),
                        .whole = index};
    run_.set_out(part);
  }

  MessageTime time_since(std::uint32_t index, ResourceId limiter, Picoseconds busy) const {
    return {.busy = busy,
            .latency = now() - starts_[index].since - busy,
            .limiter = limiter,
            .is_unsure = transfers_[index].marks.limiter_is_unsure};
  }

  // A lane's operation ends with a message, by whose last part its trail goes on; see Run::end_other_op().
  // `wire`: as LaneTrails::record()'s.
  void end_op(LaneNumber lane, std::uint32_t index, ResourceId limiter, Picoseconds busy, Picoseconds wire) {
    if (trails_.weighs_ties()) {
      trails_.weigh(lane, starts_[index].trail, time_since(index, limiter, busy), now());
      // A receive that begins now may as well have begun after all had arrived.
      if (trails_.began(lane) == now()) trails_.weigh(lane, trails_[lane], now());
    }
    if (run_.lanes_.is_last(lane)) {
      if (!trails_.go_on_by_own(lane, now())) {
        trails_.take(lane, starts_[index].trail);
        trails_.go_on(lane, transfers_[index], wire, time_since(index, limiter, busy));
      }
      run_.end_of_step(lane);
    }
    run_.lanes_.op_done(lane);
  }

  Run& run_;
  Transfers& transfers_;
  typename Run::Trails& trails_;
  std::vector<Start> starts_;           // [transfer]
  std::vector<std::uint32_t> in_slot_;  // [slot] the transfer
  Step step_;                           // room for left()
  std::vector<Bytes> largest_;          // [plan]
  std::vector<SimTime> freed_;          // [lane] when it last freed slots
};

}  // namespace ringsim
