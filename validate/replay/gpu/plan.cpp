#include "validate/replay/gpu/plan.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/error.hpp"
#include "validate/replay/exchange.hpp"
#include "validate/replay/gpu/draft.hpp"
#include "validate/replay/gpu/walk.hpp"

namespace ringsim::replay::gpu {

namespace {

std::vector<Actor> all_actors(const Schedule& schedule) {
  std::vector<Actor> all(at(schedule.actors));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

class Planner {
 public:
  explicit Planner(const Schedule& schedule) : draft_(schedule, all_actors(schedule)), walk_(schedule) {}

  Plan go() {
    walk_.go([&](Actor actor, Lane lane, LaneState& state) { begin(actor, lane, state); });
    return draft_.finish();
  }

 private:
  struct Arrived {
    std::size_t op;
    std::uint32_t event;
  };
  struct LaneState : LaneProgress {
    std::vector<int> slot;            // [op] which of the streams; of receives nothing
    std::vector<std::int64_t> room;   // [op] of receive_add: where in the incoming room it lands
    int to_start = 0, to_arrive = 0;  // operations of the step that are still open
    std::uint32_t began = none;
    std::vector<std::uint32_t> aside;  // events at which the work on the lane's other streams is done
    std::vector<Arrived> arrived;
  };
  struct End {
    Actor actor;
    Lane lane;
    std::size_t op;
  };
  struct Wire {
    std::deque<End> sends, receives;
  };

  LaneState& lane_of(const End& end) { return walk_.of(end.actor, end.lane); }

  std::uint32_t stream(Actor actor, LaneState& lane, int slot) {
    while (static_cast<int>(lane.streams.size()) <= slot) lane.streams.push_back(draft_.make_stream(actor));
    return lane.streams[at(slot)];
  }

  void begin(Actor actor, Lane lane, LaneState& state) {
    const std::uint32_t own = stream(actor, state, 0);
    walk_.wait(draft_.streams(), actor, state);
    state.began = draft_.streams().record(own);
    number_operations(state, draft_.first_room(actor)[at(lane)]);
    std::vector<Connection> touched;
    for (std::size_t op = 0; op < state.content.ops.size(); ++op) {
      const Op& what = state.content.ops[op];
      if (what.what == Do::send) {
        touched.push_back({actor, what.peer, what.channel});
        wires_[touched.back()].sends.push_back({actor, lane, op});
      } else if (what.what == Do::receive || what.what == Do::receive_add) {
        touched.push_back({what.peer, actor, what.channel});
        wires_[touched.back()].receives.push_back({actor, lane, op});
      } else {
        alone(actor, state, op);
      }
    }
    if (state.content.ops.empty()) proceed(actor, state);
    for (const Connection& connection : touched) match(wires_[connection]);
  }

  /// Which stream each operation goes to, and where what it receives lands.
  void number_operations(LaneState& state, std::int64_t room) {
    const std::size_t n = state.content.ops.size();
    state.slot.assign(n, 0);
    state.room.assign(n, 0);
    state.to_start = state.to_arrive = 0;
    for (std::size_t op = 0; op < n; ++op) {
      const Op& what = state.content.ops[op];
      if (what.what == Do::receive || what.what == Do::receive_add) {
        ++state.to_arrive;
        state.room[op] = room;
        if (what.what == Do::receive_add) room += draft_.elements(what.region);
      } else {
        state.slot[op] = state.to_start++;
      }
    }
  }

  /// The stream of an operation that starts with its step.
  std::uint32_t start(Actor actor, LaneState& state, std::size_t op) {
    const std::uint32_t on = stream(actor, state, state.slot[op]);
    draft_.streams().wait(on, state.began);
    return on;
  }
  void started(Actor actor, LaneState& state, std::size_t op, std::uint32_t on) {
    if (state.slot[op] > 0) state.aside.push_back(draft_.streams().record(on));
    --state.to_start;
    proceed(actor, state);
  }

  // An operation that needs nobody else.
  void alone(Actor actor, LaneState& state, std::size_t op) {
    const std::uint32_t on = start(actor, state, op);
    draft_.alone(on, actor, state.content.ops[op]);
    started(actor, state, op, on);
  }

  // As many messages as have both ends.
  void match(Wire& wire) {
    while (!wire.sends.empty() && !wire.receives.empty()) {
      const End from = wire.sends.front(), to = wire.receives.front();
      wire.sends.pop_front();
      wire.receives.pop_front();
      LaneState &sender = lane_of(from), &receiver = lane_of(to);
      const std::uint32_t on = start(from.actor, sender, from.op);
      draft_.streams().wait(on, receiver.began);
      const Op& arrives = receiver.content.ops[to.op];
      Stretch where = draft_.stretch(to.actor, arrives.region);
      if (arrives.what == Do::receive_add) where = {to.actor, incoming_room, receiver.room[to.op], where.count};
      draft_.copy(on, where, draft_.stretch(from.actor, sender.content.ops[from.op].region));
      receiver.arrived.push_back({to.op, draft_.streams().record(on)});
      started(from.actor, sender, from.op, on);
      proceed(to.actor, receiver);
    }
  }

  // What the lane itself does to end a step: it takes in what has arrived. Only after all that starts with the step: on
  // one stream a copy would otherwise wait for a message that has nothing to do with it.
  void proceed(Actor actor, LaneState& state) {
    if (!state.begun || state.to_start > 0) return;
    const std::uint32_t own = stream(actor, state, 0);
    for (const std::uint32_t event : std::exchange(state.aside, {})) draft_.streams().wait(own, event);
    for (const Arrived& arrived : std::exchange(state.arrived, {})) {
      draft_.streams().wait(own, arrived.event);
      --state.to_arrive;
      const Op& op = state.content.ops[arrived.op];
      if (op.what != Do::receive_add) continue;
      const Stretch base = draft_.stretch(actor, op.operand.count > 0 ? op.operand : op.region);
      draft_.add(own, op.region, base, {actor, incoming_room, state.room[arrived.op], base.count});
    }
    if (state.to_arrive > 0) return;
    walk_.end(actor, state, draft_.streams().record(own));
  }

  Draft draft_;
  Walk<LaneState> walk_;
  std::map<Connection, Wire> wires_;
};

}  // namespace

Plan make_plan(const Schedule& schedule) { return Planner(schedule).go(); }

}  // namespace ringsim::replay::gpu
