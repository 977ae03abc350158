// Folding: if all ranks do the same, at the same time and over paths that are alike, one of them stands for all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A run that rank 0 stands for, with all of its lanes. Exact under four conditions, of which fold() proves all but the
/// first:
///
///  1. The schedule's symmetry is proved (check): step(g + a) = g + step(a), in each lane.
///  2. A step has at most one message: sent to +d, and one of as many bytes received from -d on a channel of that
///     number. No units are shared. Lanes that have messages are in step with the first of them: their steps are steps
///     of it, in order, with the same d, bytes and computing, and what it does in between (a program's launches and
///     joins) has no message. A step of the first that others share waits for no lane; theirs do only if they skip
///     some of its steps, and there they wait for it to have done them.
///  3. Chunks are equal (of a program: of each call), so that all messages of a step are.
///  4. The K paths a -> a + d of a step are alike, link by link, and no two of them, nor two links of one, draw on the
///     same resource. All lanes of a rank take the same path.
///
/// Then all ranks begin each step of each lane at one instant, by induction: what a step waits for is the same at all
/// of them, and what computes takes the same time. All lanes that have messages begin the steps that they share at one
/// instant as well: one that goes on to its next step does so when the first lane does, and one that waits is woken
/// when the first lane has done the step before. The messages of such a step start together: L on each path, one for
/// each lane, and no others on any of its links (4). So each leg of a path is a network by itself, in which L equal
/// messages (or staged pieces of them) cover the same links from the same instant on. A link of capacity C gives each
/// of them C/L, or C if the model does not share it: one division of two numbers that are the same for all ranks. The
/// least of these is the rate of all L, because no message covers only some of the links; no share is ever what others
/// leave of a link, where the order of subtractions would decide on the last bits. So all of them take the same time,
/// the same for all ranks (3, 4) and for rank 0 by itself; local operations take what they take, copies and additions
/// nothing. With one lane nothing is shared at all.
///
/// In the words of graphs: the links are parted into classes (the i-th of the paths of a step) such that each link of a
/// class carries L messages of one rank. That is an equitable partition, whose quotient is one rank and one link a
/// class (Godsil & Royle, Algebraic Graph Theory, 2001, 9.3). Messages of several ranks on a link would be equitable,
/// too, and max-min fair shares equal but for rounding; they are not folded, because results are to be the same to the
/// picosecond.
///
/// If several links of a path are equally narrow, the first of them limits the messages at every rank, so that the time
/// of all of them is divided alike.
struct Folding {
  int ranks = 0;
  std::string why;  ///< a sentence for the report
  Schedule one;     ///< what rank 0 does, the schedule of one actor
  /// [lane][step of an iteration] to whom rank 0 sends; -1: to nobody. Empty if a lane has no messages.
  std::vector<std::vector<Actor>> peers;
  std::vector<Bytes> link_bytes;  ///< [link] what crosses it in the whole run

  /// To whom rank 0 sends in a step that has a message.
  Actor peer(Lane lane, int step) const {
    const std::vector<Actor>& its = peers[static_cast<std::size_t>(lane)];
    return its[static_cast<std::size_t>(step) % its.size()];
  }

  /// The whole run's timeline from rank 0's.
  Timeline unfold(Timeline one_rank) const;
};

/// Returns nothing if rank 0 cannot stand for all; then `why_not` is a sentence that says why. `placement`: [actor].
/// Time: O(ranks) if every rank is joined to one switch by a cable of its own, else that of finding all paths that the
/// run uses.
std::optional<Folding> fold(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                            const std::vector<NodeId>& placement, std::string& why_not);

}  // namespace ringsim
