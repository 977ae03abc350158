// How the time of a run divides over the phases of its algorithm, and over their steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// What all actors did of a phase, or of one of its steps.
struct PhaseUse {
  SimTime first_start = SimTime::max();  ///< of its first message, or of its first stretch of the critical path
  SimTime last_end = SimTime::min();     ///< of its last one
  Picoseconds critical{0};               ///< how long the critical path was in it, with what that waited for there
  std::int64_t messages = 0;             ///< empty ones as well
  Bytes bytes;                           ///< of all messages, on the wire

  bool is_used() const { return messages > 0 || critical.count() > 0; }
  bool has_moments() const { return first_start <= last_end; }  ///< false if the phase only waited
  /// All of it `by` later.
  void shift(Picoseconds by) {
    if (!has_moments()) return;
    first_start += by;
    last_end += by;
  }
};

struct PhaseTime {
  std::string name;
  PhaseUse whole;
  std::vector<PhaseUse> steps;  ///< [step]
};

/// Listens to a run and sorts its messages and its critical path by phase and step. A message belongs to the step of
/// its sender; a stretch of the critical path belongs to the step of PathElement::by, so each belongs to one.
///
/// Memory: 40 bytes per step of a phase, however many actors, lanes and rounds have it.
class PhaseAccount {
 public:
  /// The schedule of the whole run, folded or not. It must outlive this.
  explicit PhaseAccount(const Schedule& schedule);

  /// Call it for every message when it arrives; in a folded run, for those that are simulated.
  void on_message(const Span& message);
  /// When the run is over. `timeline` needs its path (RunOptions::record_path). The phases in which anything happened,
  /// in the order of the schedule. Ensures that their critical times sum to the duration, their messages and bytes to
  /// the timeline's.
  std::vector<PhaseTime> finish(const Timeline& timeline);

 private:
  template <class Add>
  void add(Actor actor, Lane lane, int step, Add add);

  const Schedule& schedule_;
  std::vector<PhaseTime> phases_;
};

}  // namespace ringsim
