// Messages of others, which share links with those of a run.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/network/network.hpp"
#include "sim/run/disturbance.hpp"
#include "sim/run/link_faults.hpp"
#include "sim/run/transfers.hpp"

namespace ringsim {

/// Sends Disturbance::background. Each message is from an actor of its own to another, beyond those of the schedule.
/// All references must outlive it.
class BackgroundTraffic {
 public:
  BackgroundTraffic(const std::vector<Disturbance::Background>& messages, Engine<Event>& engine, Transfers& transfers,
                    LinkFaults& faults);

  /// Schedules the first of each: events `background`, whose id is its number.
  void begin();
  /// True if no more of these messages start.
  bool is_over(std::uint32_t number) const;
  /// One starts now.
  void start(std::uint32_t number);

  /// True if nothing else has moved or waits for a moment, though none of the schedule's steps has ended for a while: a
  /// run with background traffic never lacks events. Comes before each start().
  bool is_all_there_is(std::int64_t steps_done);

 private:
  void delivered(std::uint32_t transfer);
  bool schedule_moves() const;

  const std::vector<Disturbance::Background>& messages_;
  Engine<Event>& engine_;
  Transfers& transfers_;
  LinkFaults& faults_;
  std::vector<SimTime> last_start_;  // [message]
  std::int64_t steps_seen_ = 0;      // the schedule's steps that were done when one last started
  std::int64_t started_since_ = 0;
};

}  // namespace ringsim
