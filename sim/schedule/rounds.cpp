#include "sim/schedule/rounds.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// One pass through a schedule, each lane as far as it gets. `ahead`: sends do not wait for their receivers.
class Rounds {
 public:
  Rounds(const Schedule& schedule, bool ahead) : schedule_(schedule), ahead_(ahead) {
    for (Actor actor = 0; actor < schedule.actors; ++actor)
      for (Lane lane = 0; lane < schedule.lanes; ++lane)
        lanes_.push_back({.actor = actor, .lane = lane, .n_steps = schedule.n_steps(actor, lane)});
  }

  /// True if it gets to the end.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (LaneState& lane : lanes_)
        while (begin(lane) || end(lane)) moved = true;
    }
    return std::all_of(lanes_.begin(), lanes_.end(), [](const LaneState& each) { return each.is_done(); });
  }

  std::vector<RoundMessage> messages() const {
    std::vector<RoundMessage> all;
    for (const auto& [key, connection] : connections_)
      for (std::size_t k = 0; k < connection.sends.size(); ++k) {
        const End &send = connection.sends[k], &receive = connection.receives[k];
        all.push_back({.round = ahead_ ? send.round : std::max(send.round, receive.round),
                       .from = std::get<0>(key),
                       .to = std::get<1>(key),
                       .region = send.region,
                       .adds = receive.adds});
      }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.round < b.round; });
    return all;
  }

 private:
  struct LaneState {
    Actor actor = 0;
    Lane lane = 0;
    int n_steps = 0;
    std::vector<int> done;   // [step] the round after it
    std::optional<int> now;  // the round in which the present step began
    Step step;
    std::vector<std::size_t> places;  // [operation of the present step] in its connection

    bool is_done() const { return static_cast<int>(done.size()) == n_steps; }
  };
  /// One end of a message.
  struct End {
    int round = 0;  // in which its step began
    Region region;
    bool adds = false;
  };
  struct Connection {
    std::vector<End> sends, receives;
  };

  static bool is_send(const Op& op) { return op.what == Do::send; }
  static bool is_message(const Op& op) { return is_send(op) || op.what == Do::receive || op.what == Do::receive_add; }

  Connection& connection(Actor actor, const Op& op) {
    return is_send(op) ? connections_[{actor, op.peer, op.channel}] : connections_[{op.peer, actor, op.channel}];
  }

  /// Begins the next step if what it waits for is done.
  bool begin(LaneState& lane) {
    if (lane.now || lane.is_done()) return false;
    lane.step.clear();
    schedule_.step(lane.actor, lane.lane, static_cast<int>(lane.done.size()), lane.step);
    int round = lane.done.empty() ? 0 : lane.done.back();
    for (const Wait& wait : lane.step.waits) {
      if (wait.steps == 0) continue;
      const LaneState& other =
          lanes_[static_cast<std::size_t>(wait.of(lane.actor)) * static_cast<std::size_t>(schedule_.lanes) +
                 static_cast<std::size_t>(wait.lane)];
      if (static_cast<int>(other.done.size()) < wait.steps) return false;
      round = std::max(round, other.done[static_cast<std::size_t>(wait.steps) - 1]);
    }
    lane.now = round;
    lane.places.assign(lane.step.ops.size(), 0);
    for (std::size_t i = 0; i < lane.step.ops.size(); ++i) {
      const Op& op = lane.step.ops[i];
      if (!is_message(op)) continue;
      Connection& at = connection(lane.actor, op);
      std::vector<End>& own = is_send(op) ? at.sends : at.receives;
      lane.places[i] = own.size();
      own.push_back({round, op.region, op.what == Do::receive_add});
    }
    return true;
  }

  /// Ends the present step if the other ends of its messages have begun.
  bool end(LaneState& lane) {
    if (!lane.now) return false;
    int after = *lane.now;
    for (std::size_t i = 0; i < lane.step.ops.size(); ++i) {
      const Op& op = lane.step.ops[i];
      if (!is_message(op)) continue;
      if (ahead_ && is_send(op)) {
        after = std::max(after, *lane.now + 1);
        continue;
      }
      const Connection& at = connection(lane.actor, op);
      const std::vector<End>& others = is_send(op) ? at.receives : at.sends;
      if (lane.places[i] >= others.size()) return false;
      const int other = others[lane.places[i]].round;
      after = std::max(after, ahead_ ? other + 1 : std::max(*lane.now, other) + 1);
    }
    lane.done.push_back(after);
    lane.now.reset();
    return true;
  }

  const Schedule& schedule_;
  bool ahead_;
  std::vector<LaneState> lanes_;
  std::map<std::tuple<Actor, Actor, int>, Connection> connections_;
};

}  // namespace

std::vector<RoundMessage> rounds_of(const Schedule& schedule) {
  for (const bool ahead : {false, true}) {
    Rounds rounds(schedule, ahead);
    if (rounds.run()) return rounds.messages();
  }
  fail_invariant("a checked schedule has no circle of waits");
}

}  // namespace ringsim
