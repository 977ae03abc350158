// Folding: where all ranks do the same, at the same time and over paths that are alike, one of them stands for all.
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

/// A run that rank 0 stands for. Exact under four conditions, of which fold() proves the last three:
///
///  1. The schedule's symmetry is proved (check): step(g + a) = g + step(a).
///  2. An actor is one lane, a step has at most one message: sent to +d, and one of as many bytes received from -d.
///  3. Chunks are equal, so that the K messages of a step are.
///  4. The K paths a -> a + d of a step are alike, link by link, and no two of them, nor two links of one, draw on the
///     same resource.
///
/// Then all ranks begin each step at one instant, by induction: its K messages start together, each alone on its path
/// (4), and so each takes the time that it takes alone, which is the same for all (3, 4) and for the one that is
/// simulated; local operations take what they take. Nothing is ever shared, so that no rounding of shares comes in.
/// In the words of graphs: the links are parted into classes (the i-th of the paths of a step) such that each link of a
/// class carries exactly one of the messages. That is an equitable partition, whose quotient is one rank and one link a
/// class (Godsil & Royle, Algebraic Graph Theory, 2001, 9.3). Several messages on a link would be equitable, too, and
/// max-min fair shares equal but for rounding; they are not folded, because results are to be the same to the
/// picosecond.
struct Folding {
  int ranks = 0;
  std::string why;                ///< a sentence for the report
  Schedule one;                   ///< what rank 0 does, the schedule of one actor
  std::vector<Actor> peer;        ///< [step] to whom rank 0 sends; -1: to nobody
  std::vector<Bytes> link_bytes;  ///< [link] what crosses it in the whole run

  /// The whole run's timeline from rank 0's.
  Timeline unfold(Timeline one_rank) const;
};

/// Whether rank 0 can stand for all; where it cannot, `why_not` is a sentence that says so. `placement`: [actor].
/// Time: O(ranks) where every rank hangs on one switch by a cable of its own, else that of finding all paths that the
/// run uses.
std::optional<Folding> fold(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                            const std::vector<NodeId>& placement, std::string& why_not);

}  // namespace ringsim
