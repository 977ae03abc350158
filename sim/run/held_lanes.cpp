#include "sim/run/held_lanes.hpp"

#include <algorithm>
#include <utility>

namespace ringsim {

HeldLanes::HeldLanes(const Disturbance& disturbance, const LaneStates& lanes, LaneTrails& trails, Engine<Event>& engine)
    : what_(disturbance), lanes_(lanes), trails_(trails), engine_(engine) {
  if (!what_.late.empty() || !what_.slow.empty() || what_.jitter.most.count() > 0) take_delays();
}

void HeldLanes::take_delays() {
  held_.resize(lanes_.n_lanes(), no_hold);
  late_.resize(lanes_.n_lanes());
  slow_.resize(lanes_.n_lanes(), Picoseconds{0});
  const auto on_lanes = [&](Actor actor, const Disturbance::Lanes& lanes, const auto& change) {
    const Lane end = lanes.count < 0 ? static_cast<Lane>(lanes_.n_lanes_of_actor()) : lanes.first + lanes.count;
    for (Lane lane = lanes.first; lane < end; ++lane) change(lanes_.lane_number(actor, lane));
  };
  for (const Disturbance::Late& each : what_.late)
    on_lanes(each.actor, each.lanes, [&](LaneNumber lane) { late_.at(lane) = std::max(late_.at(lane), each.by); });
  for (const Disturbance::Slow& each : what_.slow)
    on_lanes(each.actor, each.lanes, [&](LaneNumber lane) { slow_.at(lane) = add(slow_.at(lane), each.step_delay); });
}

/// The delays of a step of the lane: because its rank is slow, and by jitter.
std::pair<Picoseconds, Picoseconds> HeldLanes::delays_of(LaneNumber lane) const {
  const Actor actor = lanes_.actor(lane);
  const Lane own = lanes_.lane_of(lane);
  const int step = lanes_.step(lane);
  if (what_.delays && !what_.delays(actor, own, step)) return {};
  return {slow_[lane], jitter_of(what_.jitter, actor, own, step)};
}

bool HeldLanes::holds(LaneNumber lane) {
  if (held_.empty()) return false;
  SimTime& since = held_[lane];
  const SimTime now = engine_.now();
  if (since != no_hold) {
    end_hold(lane, since);
    since = no_hold;
    return false;
  }
  const SimTime free = std::max(now, late_[lane]);
  const auto [slow, jitter] = delays_of(lane);
  const SimTime begins{add(free.time_since_epoch(), add(slow, jitter))};
  if (begins == now) return false;
  since = now;
  engine_.at(begins, {Event::Kind::resume, lane, 0});
  return true;
}

/// The critical path waited until now because the lane's actor is late, then because it is slow, then for the jitter.
void HeldLanes::end_hold(LaneNumber lane, SimTime since) {
  const SimTime free = std::max(since, late_[lane]);
  trails_.delay_until(lane, free, PathCause::late);
  trails_.delay_until(lane, free + delays_of(lane).first, PathCause::slow);
  trails_.delay_until(lane, engine_.now(), PathCause::jitter);
}

}  // namespace ringsim
