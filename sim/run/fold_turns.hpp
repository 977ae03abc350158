// Folding by turns: if ranks that are a number of ranks apart do the same, such as those of every node of a cluster,
// the first of them stand for the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/lanes.hpp"
#include "sim/schedule/schedule.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A run that ranks 0 to m - 1, its first `simulated`, stand for. A turn adds m to each rank, modulo their number K.
/// The rings of NCCL's channels over nodes of 8 GPUs have m = 8: rank r + 8 does what r does, r + 1 does not.
///
/// Conditions, which fold_by_turns() proves:
///
///  1. The schedule turns: step(r + m) is step(r) with m added to its peers, and messages as large on the wire, in
///     each lane. That follows from how it is made: the plain schedule has the symmetry {K} of positions (check), so
///     any shift of positions changes no step but for what it names; each channel has a shift that its cast turns into
///     the turn of ranks; and chunks that the shift moves onto each other are equally large on the wire. Their data may
///     differ by what Protocol::align rounds up. Only devices that add or copy at a rate would see that, and runs that
///     have such are not folded.
///  2. A step is one message sent and one received, each of one chunk, because several are rounded up as one. No step
///     waits for another lane. Each lane has one channel, which no lane of another number has, and sends to one rank.
///  3. The links in use also turn: leg by leg and link by link, the path of r + m to its peer has the images of r's
///     links, which are alike and have the same shares. An image is the same for all paths. K / m turns bring a link
///     back to itself, and fewer do not; no leg has two links that are images of each other. No link shares its
///     resource.
///  4. Under a protocol with slots all messages fill equally many, and that divides the slots of a connection: so none
///     ever has some of its slots and lacks others.
///
/// Then the run itself turns. By induction over the instants at which something happens: let all that has happened be
/// the same at r and r + m. What happens at this instant is then the same at both, and what it leads to does not depend
/// on the order in which it happens: steps begin when the one before is done (2), sends meet receives in the order of
/// their lanes, a message starts at the first instant at which it has met its receive or has its slots (4), a staged
/// piece when the one before has left and there is room, and rates are worked out when all has happened. Rates are
/// max-min fair shares. Those are unique, so they turn as the flows do that are under way, and a flow of r leaves when
/// that of r + m does.
///
/// So it is enough to simulate r < m, with each message to a peer p met by rank p mod m, and each link standing for its
/// images: it carries a flow of r for each flow of some r + j m that the link itself carries, and shares of it are
/// those of any image (an equitable partition: Godsil & Royle, Algebraic Graph Theory, 2001, 9.3). Connections stay
/// apart: they are numbered by how far the receiver is from the sender.
///
/// Two things depend on the order within an instant. The run looks for both and throws Unsure if it finds them; then
/// all ranks are simulated.
///
///  - Rounding. Shares are sums of floating-point numbers, whose order differs from rank to rank, so the last bits of
///    rates may as well. Times are whole picoseconds, rounded up, so they do not, unless one lies so close to a
///    picosecond that the last bits decide (NetworkUse::any_order). The margin is many times what such sums
///    differ by; it is no bound for flows whose shares depend on each other's in long chains.
///  - Critical paths. If a step ends with two messages at once, or a message has waited equally long for two ranks,
///    the one that comes last carries the trail on. If the other's time is divided otherwise the trail is marked
///    (Trail::is_unsure), and no such trail may be the run's. Lanes that end last together must agree in what
///    `bottleneck` reports, but for those that do so by events that were scheduled later. (Of links that are equally
///    full the first on a message's way sets its speed, and of classes with equal times the first in the topology is
///    reported: that turns as well. If it is too near to tell whether a link is full, the trail is marked.)
///
/// Timeline::events may be another number: if a protocol has no slots, which flow has a link for itself at first is
/// up to the order as well. `bottleneck` is that of the whole run, but names the link that stands for it and its
/// images. If the path itself is recorded a run is not folded: it would name ranks.
struct FoldingByTurns {
  int ranks = 0, simulated = 0;
  std::string why;  ///< a sentence for the report
  Schedule first;   ///< that of the ranks that are simulated
  /// [rank * lanes + lane] of the ranks that are simulated: to whom it sends, itself if to nobody.
  std::vector<Actor> peers;
  std::vector<LinkId> stands_for;  ///< [link] the one that stands for it; itself if nothing crosses it

  /// The rank that is simulated for it.
  Actor simulated_for(Actor rank) const { return rank % simulated; }
  /// As connection_key(), turned so that the sender is a rank that is simulated.
  std::uint64_t connection(Actor self, const Op& op) const {
    if (op.what == Do::send) return connection_key(self, op);
    const Actor from = simulated_for(op.peer), to = wrap(self - (op.peer - from), ranks);
    Op turned = op;
    turned.peer = from;
    return connection_key(to, turned);
  }
  Path turned(Path path) const {
    for (Leg& leg : path.legs)
      for (LinkId& link : leg.links) link = stands_for[link.value];
    return path;
  }

  /// The whole run's timeline from that of the ranks that are simulated.
  Timeline unfold(Timeline some_ranks) const;
};

/// Finds the fewest first ranks that can stand for all. Returns nothing if none can; then `why_not` is a sentence that
/// says why. `placement`: [actor]. Time: that of finding all paths that the run uses.
std::optional<FoldingByTurns> fold_by_turns(const Topology& topology, const CheckedSchedule& checked,
                                            const RunOptions& options, const std::vector<NodeId>& placement,
                                            std::string& why_not);

}  // namespace ringsim
