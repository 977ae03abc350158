// Which settings of a scenario changed nothing in its run: a fault on a link that carries no message, and the like.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// What a setting did in a run.
struct SettingEffect {
  std::string
      setting;       ///< its place and what it says: "s.json: /faults/0: node0.nic8", equal at all points that have it
  std::string idle;  ///< why it changed nothing; empty if it changed something, or if that is not known

  bool operator==(const SettingEffect&) const = default;
};

/// The settings of a scenario that may change nothing:
///  - faults that begin when the run is over, restore what nothing changed, leave a link the bandwidth that it has, or
///    are on links that no message takes, and none would take without the fault;
///  - background messages that begin when the run is over, or share no link with a message of the run;
///  - cables of the fabric with figures of their own that no message crosses, unless the figure itself may be why;
///  - oversubscription and figures of the cables between switches, if no message crosses any;
///  - routing that chooses, and its seed, if every message has one way;
///  - PXN switched off, if no message would go by it; the depth of staging, if no message is staged;
///  - GPUDirect switched on or off, if GPUs are too far from their NICs for it either way.
///
/// A setting that had an effect is never called idle, nor one that would take long to look into: a schedule without a
/// proved symmetry is followed for 2^20 steps, and 2^16 pairs of ranks.
/// `options`, `schedule`: what was run, with all jobs.
std::vector<SettingEffect> effects_of_settings(const Scenario& scenario, const Topology& topology,
                                               const RunOptions& options, const CheckedSchedule& schedule,
                                               const Timeline& timeline);

/// True if data between hosts rests in host memory, which links of memory show first. The parameters and limits are
/// those of effects_of_settings().
bool stages_between_hosts(const Scenario& scenario, const Topology& topology, const RunOptions& options,
                          const CheckedSchedule& schedule, const Timeline& timeline);

/// How far GPUs are from their NICs, if data between them rests in host memory because that is beyond
/// Transport::gdr_level: "PHB", "PHB to SYS" for the nearest and the farthest. Empty if there are none. The parameters
/// are those of effects_of_settings().
std::string beyond_gpudirect(const Scenario& scenario, const Topology& topology, const RunOptions& options,
                             const CheckedSchedule& schedule, const Timeline& timeline);

}  // namespace ringsim
