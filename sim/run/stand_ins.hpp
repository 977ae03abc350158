// Actors of a run of which each stands for others that do the same over links that carry the same.
#pragma once

#include <tsl/robin_map.h>

#include <cstdint>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/mixed_hash.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// A run of some of its actors, on some of its links; the others have no steps. Requires a partition of actors and
/// links that is equitable (Godsil & Royle, Algebraic Graph Theory, 2001, 9.3), as find_stand_ins() makes it:
///
///  1. Actors of a class have the same steps: operations of equal sizes, waits, and connections to actors of the same
///     classes; a connection has one number among the sender's and one among the receiver's, equal for like ones.
///  2. The paths of like connections lead, link by link, over links of the same classes, which are alike.
///  3. Like connections cross each link of a class exactly once.
///
/// Then, by induction over the events of a run, all actors of a class do each step at the same moment: shares of links
/// are max-min fair, so unique, and equal on links that carry the same. Rounding makes times differ as with AlikeActors
/// (sim/program/alike_actors.hpp); and if a device posts messages of two calls that are ready within that of each
/// other, it may take them in the other order, so that one is a post later.
struct StandIns {
  std::vector<Actor> actors;  ///< [actor] the one that is simulated for it: the first of its class
  std::vector<int> counts;    ///< [actor] the size of its class
  std::vector<LinkId> links;  ///< [link] the one that is crossed for it; itself if nothing crosses it

  /// By connection_key(), all whose receivers are simulated: the like one whose sender is. Empty if each actor stands
  /// for itself: then connections are met by themselves.
  tsl::robin_map<std::uint64_t, std::uint64_t, MixedHash> received;

  Actor actor(Actor other) const { return actors[static_cast<std::size_t>(other)]; }
  Path turned(Path path) const {
    for (Leg& leg : path.legs)
      for (LinkId& link : leg.links) link = links[link.value];
    return path;
  }
  std::uint64_t sent_for(std::uint64_t received_key) const {
    if (received.empty()) return received_key;
    const auto found = received.find(received_key);
    ensure(found != received.end(), "a receiver that is simulated knows its connections");
    return found->second;
  }
};

}  // namespace ringsim
