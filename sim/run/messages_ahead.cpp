#include "sim/run/messages_ahead.hpp"

#include <algorithm>
#include <utility>

namespace ringsim {

MessagesAhead::MessagesAhead(const Schedule& schedule, const RunOptions& options, const Represented& represented,
                             const Engine<Event>& engine, const LaneStates& lanes, LaneTrails& trails,
                             Transfers& transfers, DeviceWork* work, OperationEnds& ends)
    : schedule_(schedule),
      options_(options),
      represented_(represented),
      engine_(engine),
      lanes_(lanes),
      trails_(trails),
      transfers_(transfers),
      work_(work),
      ends_(ends),
      largest_(options.plans.size()) {
  transfers.watch(*this);
}

void MessagesAhead::met(std::uint32_t index, LaneNumber cause) {
  Start& start = watch(index, cause);
  start.is_met = true;
  const LaneNumber sender = transfers_[index].sender, receiver = transfers_[index].receiver;
  if (freed_slots_now(receiver) && trails_.begin_unlike(sender, receiver, now())) start.trail.is_unsure = true;
}

void MessagesAhead::left(std::uint32_t slot, OpPlace place, Bytes size, LaneNumber by, std::uint32_t& kept) {
  const Actor self = lanes_.actor(place.lane);
  step_.clear();
  schedule_.step(self, lanes_.lane_of(place.lane), place.step, step_);
  const Op& op = step_.ops[static_cast<std::size_t>(place.op)];
  const std::uint32_t index = transfers_.table().make();
  Transfer& transfer = transfers_[index];
  transfer.sender = place.lane;
  transfer.receiver = represented_.expected_receiver(lanes_, place.lane, op.peer);
  transfer.channel = op.channel;
  transfer.step = place.step;
  transfer.size = size;
  transfer.start = now();
  transfer.whole = no_transfer;
  transfer.marks = {.sender_was_last = true};  // adds: see caught_up()
  transfer.route = transfers_.route(self, op.peer, op.channel, kept);
  transfer.parts_under_way = 0;
  Bytes& largest = largest_[options_.plan_number(op.channel)];
  largest = std::max(largest, size);
  Start& start = watch(index, by);
  start.rest = size;
  start.slot = slot;
  if (in_slot_.size() <= slot) in_slot_.resize(slot + 1);
  in_slot_[slot] = index;
}

void MessagesAhead::room(std::uint32_t slot, int n, LaneNumber by) {
  const std::uint32_t index = in_slot_[slot];
  give_room(index, protocol(index).slot * n, by);
}

void MessagesAhead::caught_up(const Message<Bytes>& message) {
  const LaneNumber receiver = message.receiver.lane;
  const std::uint32_t index = in_slot_[message.slot];
  if (represented_.folds_channels()) freed_slots(receiver);
  transfers_[index].receiver = receiver;
  transfers_[index].marks.adds = message.add && adds_take_time(receiver);
  starts_[index].is_met = true;
  starts_[index].slot = no_slot;
  if (starts_[index].rest.count > 0) give_room(index, starts_[index].rest, receiver);
  if (!starts_[index].has_arrived) return;
  if (transfers_[index].marks.adds) {
    add(index, trails_[receiver]);
  } else {
    if (trails_.weighs_ties()) trails_.weigh(receiver, trails_[receiver], now());  // it may have arrived now
    trails_.end_own(receiver, {.node = trails_.path_end(receiver)}, now());
    ends_.op_ends(receiver);
  }
  transfers_.table().give_back(index);
}

void MessagesAhead::has_left(std::uint32_t index, ResourceId limiter, Picoseconds busy) {
  if (transfers_[index].marks.has_left) return;
  transfers_[index].marks.has_left = true;
  const std::uint32_t whole = transfers_[index].whole;
  if (whole == no_transfer)
    return end_op(transfers_[index].sender, index, time_since(index, limiter, busy), Picoseconds{0});
  if (whole >= first_background) return;
  Transfer& message = transfers_[whole];
  if (message.parts_to_leave == 0 || --message.parts_to_leave > 0) return;
  if (message.whole != no_transfer || starts_[whole].rest.count == 0) return has_left(whole, limiter, busy);
  Start& start = starts_[whole];
  if (start.room.count == 0) return;
  trails_.go_on(start.trail, message.sender, message, Picoseconds{0}, time_since(whole, limiter, busy));
  start_part(whole);
}

void MessagesAhead::arrived(const Arrived& arrived) {
  const std::uint32_t index = arrived.transfer;
  has_left(index, arrived.time.limiter, arrived.time.busy);  // within one device nothing has told of it
  Start& start = starts_[index];
  const MessageTime time = time_since(index, arrived.time.limiter, arrived.time.busy);
  start.has_arrived = true;
  if (!start.is_met) {
    if (!trails_.weighs_ties()) return;
    // Its receive may begin now as well, on whichever lane it will be.
    const LaneNumber first = transfers_[index].receiver,
                     n = represented_.folds_channels() ? lanes_.n_lanes_of_actor() : 1;
    for (LaneNumber lane = first; lane < first + n; ++lane) trails_.weigh(lane, start.trail, time, now());
    return;
  }
  if (transfers_[index].marks.adds) {
    Trail trail = start.trail;
    trails_.go_on(trail, transfers_[index].receiver, transfers_[index], arrived.wire, time);
    add(index, trail);
  } else {
    end_op(transfers_[index].receiver, index, time, arrived.wire);
  }
  transfers_.table().give_back(index);
}

void MessagesAhead::last_part_arrived(std::uint32_t part) {
  const std::uint32_t whole = transfers_[part].whole;
  while (!transfers_[part].marks.starts_apart && transfers_[part].whole < first_background)
    part = transfers_[part].whole;
  if (part == whole || !transfers_[part].marks.starts_apart || !transfers_[whole].marks.starts_apart) return;
  starts_[whole].since = starts_[part].since;
  starts_[whole].trail = starts_[part].trail;
}

void MessagesAhead::goes_on_as(std::uint32_t before, std::uint32_t after) {
  if (before >= starts_.size()) return;
  reach(after);
  starts_[after] = starts_[before];
  if (const std::uint32_t slot = starts_[after].slot; slot != no_slot) in_slot_[slot] = after;
}

/// `cause`: the lane whose step's start let the message start.
MessagesAhead::Start& MessagesAhead::watch(std::uint32_t index, LaneNumber cause) {
  reach(index);
  starts_[index] = {.since = now(), .trail = trails_[cause]};
  transfers_[index].marks.starts_apart = true;
  transfers_[index].marks.has_left = false;
  transfers_[index].parts_to_leave = 0;
  return starts_[index];
}

void MessagesAhead::give_room(std::uint32_t index, Bytes more, LaneNumber by) {
  Start& start = starts_[index];
  start.room = std::min(start.rest, start.room + more);
  if (transfers_[index].parts_to_leave > 0) return;  // it starts after the part that is leaving
  start.trail = trails_[by];
  if (trails_.weighs_ties() && may_start_by_other(index, by)) start.trail.is_unsure = true;
  start_part(index);
}

/// The lane began a receive now whose message had slots. Kept only if one channel stands for all.
void MessagesAhead::freed_slots(LaneNumber lane) {
  if (freed_.size() <= lane) freed_.resize(lane + 1, SimTime::min());
  freed_[lane] = now();
}

/// If a send begins in the instant in which its receiver frees the slots that it needs, the later of the two events
/// lets it start. Folded by turns, each step has one message. If one channel stands for all, the receiver may be any
/// lane of its actor.
bool MessagesAhead::may_start_by_other(std::uint32_t index, LaneNumber by) const {
  const LaneNumber sender = transfers_[index].sender, receiver = transfers_[index].receiver;
  if (represented_.folds_channels()) {
    if (by != sender) return trails_.begin_unlike(sender, by, now());
    for (LaneNumber lane = receiver; lane < receiver + lanes_.n_lanes_of_actor(); ++lane)
      if (freed_slots_now(lane) && trails_.begin_unlike(sender, lane, now())) return true;
    return false;
  }
  const int ahead = lanes_.step(sender) - lanes_.step(receiver);
  const bool needed_them =
      by != sender || ahead >= protocol(index).slots / protocol(index).slots_of(transfers_[index].size);
  return needed_them && trails_.begin_unlike(sender, receiver, now());
}

/// What of a message has room starts, if that is all of it as itself.
void MessagesAhead::start_part(std::uint32_t index) {
  Start& start = starts_[index];  // of which a new part has a copy
  const Bytes size = std::exchange(start.room, Bytes{});
  const bool is_first = start.rest == transfers_[index].size;
  start.since = now();
  start.rest = start.rest - size;
  const bool is_last = start.rest.count == 0;
  if (is_first && is_last) return transfers_.set_out(index);
  const std::uint32_t part = transfers_.table().make();  // may move the others
  reach(part);                                           // likewise
  starts_[part].since = starts_[index].since;
  starts_[part].trail = starts_[index].trail;
  Transfer& message = transfers_[index];
  if (!options_.disturbance.empty())  // its links may be down by now
    message.route = transfers_.route(lanes_.actor(message.sender), lanes_.actor(message.receiver), message.channel);
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
  transfers_.set_out(part);
}

MessageTime MessagesAhead::time_since(std::uint32_t index, ResourceId limiter, Picoseconds busy) const {
  return {.busy = busy,
          .latency = now() - starts_[index].since - busy,
          .limiter = limiter,
          .is_unsure = transfers_[index].marks.limiter_is_unsure};
}

/// A lane's operation ends with a message, by whose last part its trail goes on; see LaneTrails. `wire`: as
/// LaneTrails::record()'s.
void MessagesAhead::end_op(LaneNumber lane, std::uint32_t index, const MessageTime& time, Picoseconds wire) {
  if (trails_.weighs_ties()) {
    trails_.weigh(lane, starts_[index].trail, time, now());
    // A receive that begins now may as well have begun after all had arrived.
    if (trails_.began(lane) == now()) trails_.weigh(lane, trails_[lane], now());
  }
  if (lanes_.is_last(lane) && !trails_.go_on_by_own(lane, now())) {
    trails_.take(lane, starts_[index].trail);
    trails_.go_on(lane, transfers_[index], wire, time);
  }
  ends_.op_ends(lane);
}

/// A message that is there is added up by its receiver; `trail` leads to this moment.
void MessagesAhead::add(std::uint32_t index, const Trail& trail) {
  work_->begin(transfers_[index].receiver, LinkKind::reduce, protocol(index).data_of(transfers_[index].size), trail);
}

}  // namespace ringsim
