#include "validate/replay/gpu/plan.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "sim/error.hpp"
#include "validate/replay/exchange.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::replay::gpu {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

/// Commands to streams. It records an event where a stream stands only once, and leaves out what waits for nothing new.
class Streams {
 public:
  std::uint32_t make(Actor actor) {
    plan_.stream_of.push_back(actor);
    standing_.push_back(none);
    return static_cast<std::uint32_t>(plan_.stream_of.size() - 1);
  }
  std::uint32_t n() const { return static_cast<std::uint32_t>(plan_.stream_of.size()); }

  void issue(Command command) {
    standing_[command.stream] = none;
    plan_.commands.push_back(command);
  }
  /// The event at which all that was issued to the stream so far is done.
  std::uint32_t record(std::uint32_t stream) {
    if (standing_[stream] != none) return standing_[stream];
    const auto event = static_cast<std::uint32_t>(plan_.event_on.size());
    plan_.event_on.push_back(stream);
    plan_.commands.push_back({.what = Command::What::record, .stream = stream, .event = event});
    return standing_[stream] = event;
  }
  void wait(std::uint32_t stream, std::uint32_t event) {
    const std::uint32_t on = plan_.event_on[event];
    if (on == stream) return;
    const auto [seen, is_new] = waited_.try_emplace({stream, on}, event);
    if (!is_new && seen->second >= event) return;  // events of one stream come in the order of their numbers
    seen->second = event;
    issue({.what = Command::What::wait, .stream = stream, .event = event});
  }

  /// Without the events that nobody waits for; the others are numbered anew.
  Plan finish() {
    std::vector<std::uint32_t> number(plan_.event_on.size(), none);
    std::vector<std::uint32_t> event_on;
    for (const Command& command : plan_.commands)
      if (command.what == Command::What::wait) number[command.event] = 0;
    std::erase_if(plan_.commands, [&](const Command& command) {
      return command.what == Command::What::record && number[command.event] == none;
    });
    for (Command& command : plan_.commands) {
      if (command.what == Command::What::record) {
        number[command.event] = static_cast<std::uint32_t>(event_on.size());
        event_on.push_back(command.stream);
      }
      if (command.what == Command::What::record || command.what == Command::What::wait)
        command.event = number[command.event];
    }
    plan_.event_on = std::move(event_on);
    return std::move(plan_);
  }

 private:
  Plan plan_;
  std::vector<std::uint32_t> standing_;  // [stream] the event recorded where it stands; none
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> waited_;  // {stream, of stream} the latest event
};

class Planner {
 public:
  explicit Planner(const Schedule& schedule) : schedule_(schedule) {
    streams_.make(0);
    start_ = streams_.record(0);
    for (Actor actor = 0; actor < schedule.actors; ++actor) {
      adders_.emplace_back();
      lanes_.emplace_back(at(schedule.lanes));
      for (Lane lane = 0; lane < schedule.lanes; ++lane)
        lanes_.back()[at(lane)].n_steps = schedule.n_steps(actor, lane);
      make_rooms(actor);
    }
  }

  Plan go() {
    for (Actor actor = 0; actor < schedule_.actors; ++actor) ready_.push_back(actor);
    while (!ready_.empty()) {
      const Actor actor = ready_.front();
      ready_.pop_front();
      for (Lane lane = 0; lane < schedule_.lanes; ++lane) begin(actor, lane);
    }
    for (const auto& lanes : lanes_)
      for (const LaneState& lane : lanes) ensure(lane.step == lane.n_steps, "a schedule that was proved comes through");
    for (std::uint32_t stream = 1; stream < streams_.n(); ++stream) streams_.wait(0, streams_.record(stream));
    Plan plan = streams_.finish();
    plan.elements = std::move(elements_);
    return plan;
  }

 private:
  struct Arrived {
    std::size_t op;
    std::uint32_t event;
  };
  struct LaneState {
    int step = 0, n_steps = 0;
    bool begun = false;
    Step content;
    std::vector<std::uint32_t> streams;  // the lane's own, then those beside it
    std::vector<int> slot;               // [op] which of the streams; of receives nothing
    std::vector<std::int64_t> room;      // [op] of receive_add: where in the incoming room it lands
    std::int64_t first_room = 0;         // of the lane
    int to_start = 0, to_arrive = 0;     // operations of the step that are still open
    std::uint32_t began = none;
    std::vector<std::uint32_t> beside;  // events at which what runs beside the lane's stream is done
    std::vector<Arrived> arrived;
    std::vector<std::uint32_t> ended;  // [step] the event after it
  };
  struct End {
    Actor actor;
    Lane lane;
    std::size_t op;
  };
  struct Wire {
    std::deque<End> sends, receives;
  };

  LaneState& lane_of(const End& end) { return lanes_[at(end.actor)][at(end.lane)]; }

  Stretch stretch(Actor actor, const Region& region) const {
    const Bytes before = schedule_.size({region.buffer, 0, region.first});
    return {actor, static_cast<int>(region.buffer), before.count / element_bytes,
            schedule_.size(region).count / element_bytes};
  }

  /// How large the actor's buffers are. Of the room for what comes in each lane has as much as its largest step needs.
  void make_rooms(Actor actor) {
    auto& elements = elements_.emplace_back();
    for (std::size_t b = 0; b < n_buffers; ++b) elements[b] = schedule_.layout[b].total().count / element_bytes;
    std::int64_t end = 0;
    for (Lane lane = 0; lane < schedule_.lanes; ++lane) {
      LaneState& state = lanes_[at(actor)][at(lane)];
      state.first_room = end;
      std::int64_t most = 0;
      for (int i = 0; i < state.n_steps; ++i) {
        state.content.clear();
        schedule_.step(actor, lane, i, state.content);
        std::int64_t room = 0;
        for (const Op& op : state.content.ops)
          if (op.what == Do::receive_add) room += schedule_.size(op.region).count / element_bytes;
        most = std::max(most, room);
      }
      end += most;
    }
    elements[incoming_room] = end;
  }

  std::uint32_t stream(Actor actor, LaneState& lane, int slot) {
    while (static_cast<int>(lane.streams.size()) <= slot) {
      lane.streams.push_back(streams_.make(actor));
      streams_.wait(lane.streams.back(), start_);
    }
    return lane.streams[at(slot)];
  }

  void begin(Actor actor, Lane lane) {
    LaneState& state = lanes_[at(actor)][at(lane)];
    if (state.begun || state.step == state.n_steps) return;
    state.content.clear();
    schedule_.step(actor, lane, state.step, state.content);
    const auto& lanes = lanes_[at(actor)];
    for (const Wait& wait : state.content.waits)
      if (lanes[at(wait.lane)].step < wait.steps) return;
    state.begun = true;
    const std::uint32_t own = stream(actor, state, 0);
    for (const Wait& wait : state.content.waits)
      if (wait.steps > 0) streams_.wait(own, lanes[at(wait.lane)].ended[at(wait.steps - 1)]);
    state.began = streams_.record(own);
    number_operations(state);
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
  void number_operations(LaneState& state) {
    const std::size_t n = state.content.ops.size();
    state.slot.assign(n, 0);
    state.room.assign(n, 0);
    state.to_start = state.to_arrive = 0;
    std::int64_t room = state.first_room;
    for (std::size_t op = 0; op < n; ++op) {
      const Op& what = state.content.ops[op];
      if (what.what == Do::receive || what.what == Do::receive_add) {
        ++state.to_arrive;
        state.room[op] = room;
        if (what.what == Do::receive_add) room += schedule_.size(what.region).count / element_bytes;
      } else {
        state.slot[op] = state.to_start++;
      }
    }
  }

  /// The stream of an operation that starts with its step.
  std::uint32_t start(Actor actor, LaneState& state, std::size_t op) {
    const std::uint32_t on = stream(actor, state, state.slot[op]);
    streams_.wait(on, state.began);
    return on;
  }
  void started(Actor actor, LaneState& state, std::size_t op, std::uint32_t on) {
    if (state.slot[op] > 0) state.beside.push_back(streams_.record(on));
    --state.to_start;
    proceed(actor, state);
  }

  // An operation that needs nobody else.
  void alone(Actor actor, LaneState& state, std::size_t op) {
    const Op& what = state.content.ops[op];
    const std::uint32_t on = start(actor, state, op);
    if (what.what == Do::compute) {
      streams_.issue({.what = Command::What::compute,
                      .stream = on,
                      .time = std::chrono::ceil<std::chrono::nanoseconds>(what.time)});
    } else if (what.what == Do::add) {
      add(on, what.region, stretch(actor, what.region), stretch(actor, what.operand));
    } else {
      copy(on, stretch(actor, what.region), stretch(actor, what.operand));
    }
    started(actor, state, op, on);
  }

  void copy(std::uint32_t on, const Stretch& to, const Stretch& from) {
    ensure(to.count == from.count, "regions that are copied are of one size");
    if (to.count > 0) streams_.issue({.what = Command::What::copy, .stream = on, .to = to, .from = from});
  }

  /// region = base + from. Another stream that adds to the same chunks comes before or after, never at the same time.
  void add(std::uint32_t on, const Region& region, const Stretch& base, const Stretch& from) {
    const Stretch to = stretch(base.actor, region);
    ensure(to.count == from.count && to.count == base.count, "regions that are added are of one size");
    if (to.count == 0) return;
    auto& adders = adders_[at(to.actor)];
    const auto chunk = [&](std::uint32_t c) { return std::pair{region.buffer, region.first + c}; };
    for (std::uint32_t c = 0; c < region.count; ++c)
      if (const auto last = adders.find(chunk(c)); last != adders.end()) streams_.wait(on, last->second);
    streams_.issue({.what = Command::What::add, .stream = on, .to = to, .base = base, .from = from});
    const std::uint32_t done = streams_.record(on);
    for (std::uint32_t c = 0; c < region.count; ++c) adders[chunk(c)] = done;
  }

  // As many messages as have both ends.
  void match(Wire& wire) {
    while (!wire.sends.empty() && !wire.receives.empty()) {
      const End from = wire.sends.front(), to = wire.receives.front();
      wire.sends.pop_front();
      wire.receives.pop_front();
      LaneState &sender = lane_of(from), &receiver = lane_of(to);
      const std::uint32_t on = start(from.actor, sender, from.op);
      streams_.wait(on, receiver.began);
      const Op& arrives = receiver.content.ops[to.op];
      Stretch where = stretch(to.actor, arrives.region);
      if (arrives.what == Do::receive_add) where = {to.actor, incoming_room, receiver.room[to.op], where.count};
      copy(on, where, stretch(from.actor, sender.content.ops[from.op].region));
      receiver.arrived.push_back({to.op, streams_.record(on)});
      started(from.actor, sender, from.op, on);
      proceed(to.actor, receiver);
    }
  }

  // What the lane itself does to end a step: it takes in what has arrived. Only after all that starts with the step: on
  // one stream a copy would otherwise wait for a message that has nothing to do with it.
  void proceed(Actor actor, LaneState& state) {
    if (!state.begun || state.to_start > 0) return;
    const std::uint32_t own = stream(actor, state, 0);
    for (const std::uint32_t event : std::exchange(state.beside, {})) streams_.wait(own, event);
    for (const Arrived& arrived : std::exchange(state.arrived, {})) {
      streams_.wait(own, arrived.event);
      --state.to_arrive;
      const Op& op = state.content.ops[arrived.op];
      if (op.what != Do::receive_add) continue;
      const Stretch base = stretch(actor, op.operand.count > 0 ? op.operand : op.region);
      add(own, op.region, base, {actor, incoming_room, state.room[arrived.op], base.count});
    }
    if (state.to_arrive > 0) return;
    state.ended.push_back(streams_.record(own));
    state.begun = false;
    ++state.step;
    ready_.push_back(actor);
  }

  const Schedule& schedule_;
  Streams streams_;
  std::uint32_t start_ = none;
  std::vector<std::vector<LaneState>> lanes_;  // [actor][lane]
  std::vector<std::array<std::int64_t, n_rooms>> elements_;
  std::map<Connection, Wire> wires_;
  std::vector<std::map<std::pair<Buffer, std::uint32_t>, std::uint32_t>>
      adders_;  // [actor][chunk] the last add's event
  std::deque<Actor> ready_;
};

}  // namespace

Plan make_plan(const Schedule& schedule) { return Planner(schedule).go(); }

}  // namespace ringsim::replay::gpu
