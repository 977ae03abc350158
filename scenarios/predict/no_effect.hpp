// Settings of a scenario that changed nothing in its run: a fault on a link that carries no message, and the like.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// One text per setting, which names its key: "s.json: /faults/0: node0.nic8 carries no message of this run: the fault
/// changes nothing". Looked at are
///  - faults that begin when the run is over, restore what nothing changed, leave a link the bandwidth that it has, or
///    are on links that no message takes and none would take without the fault;
///  - background messages that begin when the run is over, or share no link with a message of the run;
///  - cables of the fabric with figures of their own that no message crosses;
///  - oversubscription and figures of the cables between switches, where no message crosses any;
///  - routing that chooses, and its seed, where every message has one way.
///
/// Never says so of a setting that had an effect. Says nothing of one that would take long to look into: a schedule
/// without a proved symmetry is followed for 2^20 steps, and 2^16 pairs of ranks.
/// `options`, `schedule`: what was run, with all jobs.
std::vector<std::string> settings_without_effect(const Scenario& scenario, const Topology& topology,
                                                 const RunOptions& options, const CheckedSchedule& schedule,
                                                 const Timeline& timeline);

}  // namespace ringsim
