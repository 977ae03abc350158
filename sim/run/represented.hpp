// A part of a run that stands for the whole: the actors, connections and links that are simulated for others.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/run/simulate.hpp"
#include "sim/run/stand_ins.hpp"
#include "sim/schedule/lane_states.hpp"
#include "sim/schedule/lanes.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// The four kinds of parts (rank 0, first ranks, one channel, stand-ins) behind one set of questions; in a whole run
/// each actor is itself. All references must outlive it.
class Represented {
 public:
  /// `stand_ins`: RunOptions::stand_ins.
  Represented(const Part& part, const StandIns* stand_ins)
      : part_(part), stand_ins_(part.alike != nullptr ? part.alike->stand_ins.get() : stand_ins) {}

  /// True if some actors are simulated for others.
  bool folds_actors() const { return part_.folding != nullptr || part_.by_turns != nullptr || stand_ins_ != nullptr; }
  /// True if one channel stands for all.
  bool folds_channels() const { return part_.by_channels != nullptr; }
  int channels() const { return folds_channels() ? part_.by_channels->channels : 1; }
  /// True if no figure may depend on the order in which things happen at one instant.
  bool must_hold_in_any_order() const { return part_.by_turns != nullptr || part_.by_channels != nullptr; }
  /// True if all messages of a connection are to one actor: rank 0 by itself has one connection to all its peers.
  bool keeps_connections() const { return part_.folding == nullptr; }

  const Folding* folding() const { return part_.folding; }
  /// How many actors one stands for, itself included; of a run by turns, which tells of no message, 1.
  int count(Actor actor) const {
    if (stand_ins_ != nullptr) return stand_ins_->counts[static_cast<std::size_t>(actor)];
    return part_.folding != nullptr ? part_.folding->ranks : 1;
  }
  /// nullptr: each actor has its own steps.
  const StandIns* stand_ins() const { return stand_ins_; }

  /// The part of the schedule that is simulated.
  const Schedule& schedule_of(const CheckedSchedule& checked) const {
    if (part_.folding != nullptr) return part_.folding->one;
    if (part_.by_turns != nullptr) return part_.by_turns->first;
    if (part_.alike != nullptr) return part_.alike->some;
    return folds_channels() ? part_.by_channels->one : checked.schedule();
  }

  /// A number that a send and the receives that it may meet share. Requires folds_actors().
  std::uint64_t connection(Actor self, const Op& op) const {
    if (part_.by_turns != nullptr) return part_.by_turns->connection(self, op);
    if (stand_ins_ == nullptr) return 0;  // rank 0 receives in each step what it sends, seen from its peer
    const std::uint64_t key = connection_key(self, op);
    return op.what == Do::send ? key : stand_ins_->sent_for(key);
  }

  /// The receiver of what the operation sends: perhaps one that is not simulated. `room`: for a step. Requires
  /// folds_actors().
  Actor receiver_of(OpPlace send, const LaneStates& lanes, const Schedule& schedule, Step& room) const {
    if (part_.by_turns != nullptr) return part_.by_turns->peers[send.lane];
    if (part_.folding != nullptr) return part_.folding->peer(lanes.lane_of(send.lane), send.step);
    room.clear();
    schedule.step(lanes.actor(send.lane), lanes.lane_of(send.lane), send.step, room);
    return room.ops[static_cast<std::size_t>(send.op)].peer;
  }

  /// The lane that will receive a message: which one is not known before it is received; it is the actor's first until
  /// then. If first ranks stand for all, it is one of the sender's number.
  LaneNumber expected_receiver(const LaneStates& lanes, LaneNumber sender, Actor peer) const {
    if (stand_ins_ != nullptr) return lanes.lane_number(stand_ins_->actor(peer), 0);
    if (part_.by_turns == nullptr) return lanes.lane_number(peer, 0);
    return lanes.lane_number(part_.by_turns->simulated_for(peer), lanes.lane_of(sender));
  }

  /// Puts the links that are simulated in place of those of a message's paths. Throws Unsure if it is cut into parts,
  /// and one channel stands for all.
  void take_links(std::vector<Path>& paths) const {
    if (folds_channels() && paths.size() > 1) throw Unsure{fmt::format("messages are cut into {} parts", paths.size())};
    if (part_.by_turns != nullptr)
      for (Path& path : paths) path = part_.by_turns->turned(std::move(path));
    if (stand_ins_ != nullptr)
      for (Path& path : paths) path = stand_ins_->turned(std::move(path));
  }
  DeviceLinks::Work simulated(DeviceLinks::Work work) const {
    if (stand_ins_ != nullptr && work.link != no_link) work.link = stand_ins_->links[work.link.value];
    return work;
  }

 private:
  Part part_;
  const StandIns* stand_ins_;
};

}  // namespace ringsim
