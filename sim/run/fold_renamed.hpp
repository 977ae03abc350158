// Folding by renaming: if another naming of the ranks turns each channel into any other, the first one stands for all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/run/fold_alike.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// How one channel of each kind stands for all channels of a schedule.
///
/// Conditions:
///
///  1. The schedule runs a plain one over channels (sim/schedule/piecewise.hpp) whose casts say who plays which
///     position, and that was proved by construction. Then what ranks do in channel k is what they do in channel 0,
///     renamed by s(k): the rank of a position in channel 0 to that of the same position in channel k. Messages are
///     equally large on the wire, and nobody computes.
///  2. The renamings are a group: each turns the cast of any channel into that of some channel. Of channels with one
///     cast, the first becomes the first of another, and so on. The first cast's are simulated.
///  3. Links can be renamed as ranks are: with each path from one rank to another in a simulated channel, the path from
///     the one's name to the other's in that channel's image is equal leg by leg, over links that are alike. A link has
///     one image by each renaming, and images of images are those by the product of the renamings.
///  4. No renaming but the one that changes nothing leaves a link where it is, no leg has two links that are images of
///     each other, and no link shares its resource. Devices of ranks that are images of each other take the same time.
///
/// Then every renaming turns the whole run into itself, if ranks that are images of each other begin together, and by
/// induction over its events (as in StandIns) a message and its images move at the same moments. A link stands for its
/// images: by 3 and 4 it carries, for each message that crosses one of them in a simulated channel, exactly one image.
/// Ranks that are images of each other end together, each in another channel.
///
/// Times equal those of the whole run to rounding: shares of a link are summed in another order.
struct ChannelRenaming {
  std::vector<std::vector<Actor>> names;  ///< [renaming][rank]; the first changes nothing
  std::vector<bool> lanes;                ///< [lane of the schedule] true: it is simulated
  int channels = 0, simulated = 0;        ///< how many there are
  std::shared_ptr<const StandIns> links;  ///< every actor stands for itself, in all channels

  std::size_t size() const { return names.size(); }
};

/// True if channels have orders of ranks of their own, and there are at least so many messages: fewer are simulated in
/// less time than renamings are looked for.
bool may_pay_to_rename(const CheckedSchedule& checked, std::int64_t least_messages);

/// Nothing if there is none; then `why_not` is a part of a sentence that says why. `options`: of the run, with the
/// placement of all its actors. `members`: [rank] the actor that it is there; empty: those of its number.
/// `first_channel`: the number of the schedule's channel 0 there. Requires a schedule with casts. Time: about that of
/// reading the simulated channels once, and a path for each connection of all. Throws Interrupted.
std::optional<ChannelRenaming> find_renaming(const Topology& topology, const CheckedSchedule& checked,
                                             const RunOptions& options, const std::vector<Actor>& members,
                                             int first_channel, std::string& why_not);

/// As fold_alike(), with channels instead of actors: all ranks are simulated, and of the channels those of
/// find_renaming(). The rings, chains and trees of NCCL's eight channels over nodes of eight GPUs and NICs are one,
/// turned and mirrored within each node.
std::optional<FoldingByStandIns> fold_renamed(const Topology& topology, const CheckedSchedule& checked,
                                              const RunOptions& options, const std::vector<NodeId>& placement,
                                              std::string& why_not);

}  // namespace ringsim
