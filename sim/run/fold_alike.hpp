// Folding by likeness: if some ranks do the same as others over links that carry the same, each is simulated once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/run/stand_ins.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A run of one actor of each class of StandIns. In an all-to-all of nodes of 8 GPUs each GPU of the first node stands
/// for those of its number, however many nodes there are.
///
/// Times equal those of the whole run as StandIns says: to rounding, and to a post where messages are ready within
/// rounding of each other. To hold such a run to the same as FoldingByTurns would void most of them: in an all-to-all
/// messages of all ranks share links, and the last bits of some rate decide on some picosecond. `bottleneck` names a
/// link that is simulated, and `events` are those of the actors that are simulated.
struct FoldingByStandIns {
  std::shared_ptr<const StandIns> stand_ins;
  Schedule some;    ///< the schedule; actors, or channels, that are stood for have no steps
  std::string why;  ///< a sentence for the report
  /// Actors of which each does in some channel what the others do in others (sim/run/fold_renamed.hpp).
  std::vector<std::vector<Actor>> end_together;

  /// The whole run's timeline from that of the actors that are simulated.
  Timeline unfold(Timeline some_actors) const;
};

/// Refuses (sim/run/refusal.hpp) what makes stand-ins impossible whatever the schedule: a model that does not share all
/// links by max-min fairness, messages over several ways at once, and callers who ask for each message.
void expect_no_more_than_times(const RunOptions& options);

/// True if looking for stand-ins is likely to pay: the collective consists of sends and receives, and about as much
/// is to be done as in a run that is worth folding. Many messages under way at once cost more than as many in turn,
/// because each that begins or ends changes the shares of others.
bool may_pay_to_fold_alike(const CheckedSchedule& checked, const RunOptions& options);

/// Returns nothing if no actor can stand for another; then `why_not` is a part of a sentence that says why.
/// `placement`: [actor]. Throws Interrupted.
std::optional<FoldingByStandIns> fold_alike(const Topology& topology, const CheckedSchedule& checked,
                                            const RunOptions& options, const std::vector<NodeId>& placement,
                                            std::string& why_not);

}  // namespace ringsim
