// Folding channels: if all channels of a run do the same, one of them stands for all.
#pragma once

#include <optional>
#include <string>

#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/piecewise.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A run that its channel 0 stands for, on all ranks. Each of its flows counts as one of each channel on every link
/// that flows share.
///
/// Conditions, which fold_channels() proves:
///
///  1. The schedule runs a plain one over channels (sim/schedule/piecewise.hpp), and that was proved by construction:
///     so channels share no lane, connection, chunk or wait (check), and meet only in the network.
///  2. They do the same: each rank plays the same position in all of them, and each message is as large on the wire in
///     all of them. Steps compute nothing (channels would share units), and devices work in no time.
///  3. They take the same way: it does not depend on the number of the channel. Messages are not cut into parts, one
///  for
///     each NIC; the run throws Unsure when it finds one.
///  4. Under a protocol with slots all messages of a connection fill equally many, and that divides its slots: so none
///     ever has some of its slots and lacks others.
///
/// Then any permutation of channels turns the run into itself. By induction over the instants at which something
/// happens, as with FoldingByTurns (sim/run/fold_turns.hpp): what has happened is the same in all channels; what
/// happens at this instant is so as well, and what it leads to does not depend on the order in which it happens: a step
/// begins when all that it waits for is done, a message when both of its ends have begun or it has its slots (4), a
/// staged piece when the one before has left and there is room. Rates are max-min fair shares, which are unique; so
/// flows of different channels that are alike have the same. A link that flows share gives channel 0's what it would
/// give it next to the copies of it in all others; a link that the model does not share (`ideal`) gives each flow all
/// of it.
///
/// As there, two things depend on the order within an instant, and the run throws Unsure if it finds them: rounding,
/// with sums of as many shares as the whole run has, and which of several critical paths that are equally long is
/// reported if their time is divided otherwise. If a step waited for several lanes, or ends with several messages at
/// one instant, all of them are compared.
///
/// Timeline::events may be another number than that of the whole run, which has events that are overtaken: of the first
/// flows on a leg, before those of the other channels start.
struct FoldingByChannels {
  int channels = 1;
  std::string why;  ///< a sentence for the report
  Schedule one;     ///< channel 0, on all ranks

  /// The whole run's timeline from that of channel 0, whose `link_bytes` are those of all.
  Timeline unfold(Timeline one_channel) const;
};

/// Refuses (sim/run/refusal.hpp) a schedule whose proof is not that of the plain one, once for each of its pieces.
void expect_proved_from_one_channel(const Proof& proof, const Piecewise& made);

/// Returns nothing if channel 0 cannot stand for all; then `why_not` is a sentence that says why, empty if there is
/// only one channel. Time: O(operations of channel 0).
std::optional<FoldingByChannels> fold_channels(const Topology& topology, const CheckedSchedule& checked,
                                               const RunOptions& options, std::string& why_not);

}  // namespace ringsim
