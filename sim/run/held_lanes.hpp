// Steps that begin later than they could: their ranks are late, slow or unsteady.
#pragma once

#include <utility>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/network/network.hpp"
#include "sim/run/disturbance.hpp"
#include "sim/run/lane_trails.hpp"
#include "sim/schedule/lane_states.hpp"

namespace ringsim {

/// Holds the steps of a run as Disturbance::late, slow and jitter say. All references must outlive it.
class HeldLanes {
 public:
  HeldLanes(const Disturbance& disturbance, const LaneStates& lanes, LaneTrails& trails, Engine<Event>& engine);

  /// True if the lane's next step, which could begin now, does not yet: it is to be asked again at the event `resume`,
  /// whose id is the lane. When it does begin, its trail knows for what it waited.
  bool holds(LaneNumber lane);

 private:
  static constexpr SimTime no_hold = SimTime::min();

  void take_delays();
  std::pair<Picoseconds, Picoseconds> delays_of(LaneNumber lane) const;
  void end_hold(LaneNumber lane, SimTime since);

  const Disturbance& what_;
  const LaneStates& lanes_;
  LaneTrails& trails_;
  Engine<Event>& engine_;
  std::vector<SimTime> late_;      // [lane]
  std::vector<Picoseconds> slow_;  // [lane]
  std::vector<SimTime> held_;      // [lane] since when its next step could begin; empty: nothing is delayed
};

}  // namespace ringsim
