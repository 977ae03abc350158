#include <algorithm>
#include <deque>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "validate/replay/exchange.hpp"
#include "validate/replay/gpu/draft.hpp"
#include "validate/replay/gpu/plan.hpp"
#include "validate/replay/gpu/walk.hpp"

namespace ringsim::replay::gpu {

namespace {

bool is_message(const Op& op) { return op.what == Do::send || op.what == Do::receive || op.what == Do::receive_add; }
Connection connection_of(Actor actor, const Op& op) {
  if (op.what == Do::send) return {actor, op.peer, op.channel};
  return {op.peer, actor, op.channel};
}

/// Which communicator each connection belongs to: the first of its channel in which neither end is another lane's.
class Assignment {
 public:
  explicit Assignment(const Schedule& schedule) {
    std::map<Connection, std::pair<Lane, Lane>> lanes;  // of the sender and of the receiver
    Step step;
    for (Actor actor = 0; actor < schedule.actors; ++actor) {
      for (Lane lane = 0; lane < schedule.lanes; ++lane) {
        for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
          step.clear();
          schedule.step(actor, lane, i, step);
          for (const Op& op : step.ops) {
            if (!is_message(op)) continue;
            auto& ends = lanes[connection_of(actor, op)];
            (op.what == Do::send ? ends.first : ends.second) = lane;
          }
        }
      }
    }
    // Lane by lane: so a schedule whose messages stay in their lane has a communicator for each, and no more.
    std::vector<std::tuple<Lane, Lane, Connection>> order;
    for (const auto& [connection, ends] : lanes) order.emplace_back(ends.first, ends.second, connection);
    std::sort(order.begin(), order.end());
    for (const auto& [from, to, connection] : order) of_[connection] = fit(schedule.actors, connection, from, to);
  }

  std::uint32_t of(const Connection& connection) const { return of_.at(connection); }
  std::size_t n() const { return communicators_.size(); }

 private:
  struct Owned {
    int channel;
    std::vector<Lane> by;  // [actor] the lane whose end it is; -1: nobody's
  };

  std::uint32_t fit(int actors, const Connection& connection, Lane from, Lane to) {
    const auto free_for = [](Lane owner, Lane lane) { return owner < 0 || owner == lane; };
    auto found = std::find_if(communicators_.begin(), communicators_.end(), [&](const Owned& owned) {
      return owned.channel == connection.channel && free_for(owned.by[at(connection.from)], from) &&
             free_for(owned.by[at(connection.to)], to);
    });
    if (found == communicators_.end())
      found = communicators_.insert(found, {connection.channel, std::vector<Lane>(at(actors), -1)});
    found->by[at(connection.from)] = from;
    found->by[at(connection.to)] = to;
    return static_cast<std::uint32_t>(found - communicators_.begin());
  }

  std::vector<Owned> communicators_;
  std::map<Connection, std::uint32_t> of_;
};

/// Carries the schedule out, message by message, and writes down what the actors of this process do. As the order in
/// which steps begin and end is one in which all can, and is the same in all processes, nobody waits for ever.
class NcclPlanner {
 public:
  NcclPlanner(const Schedule& schedule, std::span<const Actor> mine)
      : schedule_(schedule), draft_(schedule, mine), assignment_(schedule), walk_(schedule) {}

  Plan go() {
    walk_.go([&](Actor actor, Lane lane, LaneState& state) { begin(actor, lane, state); });
    Plan plan = draft_.finish();
    plan.communicators.assign(assignment_.n(), schedule_.actors);
    for (Actor actor = 0; actor < schedule_.actors; ++actor) {
      int kernels = 0;
      for (Lane lane = 0; lane < schedule_.lanes; ++lane) kernels += walk_.of(actor, lane).most_kernels;
      plan.abreast = std::max(plan.abreast, kernels);
    }
    return plan;
  }

 private:
  struct LaneState : LaneProgress {
    std::size_t n_used = 0;  // of its streams, by this step
    int most_kernels = 0;    // of a step
    int to_match = 0;        // messages of the step whose other end has not begun
  };
  using LaneOf = std::pair<Actor, Lane>;
  struct Wire {
    std::deque<LaneOf> sends, receives;
  };

  LaneState& state_of(const LaneOf& lane) { return walk_.of(lane.first, lane.second); }

  void begin(Actor actor, Lane lane, LaneState& state) {
    state.n_used = 0;
    state.to_match = 0;
    if (state.streams.empty()) state.streams.push_back(draft_.make_stream(actor));
    walk_.wait(draft_.streams(), actor, state);
    const std::uint32_t began = draft_.streams().record(state.streams[0]);
    issue_group(actor, lane, state, began);
    for (const Op& op : state.content.ops)
      if (!is_message(op)) draft_.alone(next_stream(actor, state, began), actor, op);
    match(actor, lane, state);
  }

  /// The next stream of the step; the first one is the lane's own.
  std::uint32_t next_stream(Actor actor, LaneState& state, std::uint32_t began) {
    if (state.n_used == state.streams.size()) state.streams.push_back(draft_.make_stream(actor));
    const std::uint32_t stream = state.streams[state.n_used++];
    draft_.streams().wait(stream, began);
    return stream;
  }

  void issue_group(Actor actor, Lane lane, LaneState& state, std::uint32_t began) {
    std::map<std::uint32_t, std::uint32_t> stream_of;  // [communicator]
    for (const Op& op : state.content.ops) {
      if (!is_message(op)) continue;
      const std::uint32_t communicator = assignment_.of(connection_of(actor, op));
      if (!stream_of.contains(communicator)) stream_of[communicator] = next_stream(actor, state, began);
    }
    state.most_kernels = std::max(state.most_kernels, static_cast<int>(stream_of.size()));
    if (stream_of.empty() || !draft_.streams().is_mine(actor)) return;
    draft_.streams().bracket(Command::What::begin_group);
    std::int64_t room = draft_.first_room(actor)[at(lane)];
    for (const Op& op : state.content.ops) {
      if (!is_message(op)) continue;
      Command command{.communicator = assignment_.of(connection_of(actor, op)), .peer = op.peer};
      command.stream = stream_of.at(command.communicator);
      command.what = op.what == Do::send ? Command::What::send : Command::What::receive;
      (op.what == Do::send ? command.from : command.to) =
          op.what == Do::receive_add ? incoming(actor, op, room) : draft_.stretch(actor, op.region);
      draft_.streams().issue(command);
    }
    draft_.streams().bracket(Command::What::end_group);
  }

  /// The place at which data to be added arrives; `room` moves on.
  Stretch incoming(Actor actor, const Op& op, std::int64_t& room) const {
    const Stretch where{actor, incoming_room, room, draft_.elements(op.region)};
    room += where.count;
    return where;
  }

  // A message is under way once both its ends have begun. Kernels are done when all of theirs are, and so is the step.
  void match(Actor actor, Lane lane, LaneState& state) {
    std::vector<Connection> touched;
    for (const Op& op : state.content.ops) {
      if (!is_message(op)) continue;
      touched.push_back(connection_of(actor, op));
      Wire& wire = wires_[touched.back()];
      (op.what == Do::send ? wire.sends : wire.receives).emplace_back(actor, lane);
      ++state.to_match;
    }
    if (touched.empty()) end(actor, lane, state);
    for (const Connection& connection : touched) {
      Wire& wire = wires_[connection];
      if (wire.sends.empty() || wire.receives.empty()) continue;
      for (const LaneOf& one : {wire.sends.front(), wire.receives.front()})
        if (LaneState& its = state_of(one); --its.to_match == 0) end(one.first, one.second, its);
      wire.sends.pop_front();
      wire.receives.pop_front();
    }
  }

  void end(Actor actor, Lane lane, LaneState& state) {
    Streams& streams = draft_.streams();
    const std::uint32_t own = state.streams[0];
    for (std::size_t i = 1; i < state.n_used; ++i) streams.wait(own, streams.record(state.streams[i]));
    std::int64_t room = draft_.first_room(actor)[at(lane)];
    for (const Op& op : state.content.ops)
      if (op.what == Do::receive_add)
        draft_.add(own, op.region, draft_.stretch(actor, op.operand.count > 0 ? op.operand : op.region),
                   incoming(actor, op, room));
    walk_.end(actor, state, streams.record(own));
  }

  const Schedule& schedule_;
  Draft draft_;
  Assignment assignment_;
  Walk<LaneState> walk_;
  std::map<Connection, Wire> wires_;
};

}  // namespace

Plan make_nccl_plan(const Schedule& schedule, std::span<const Actor> mine) { return NcclPlanner(schedule, mine).go(); }

}  // namespace ringsim::replay::gpu
