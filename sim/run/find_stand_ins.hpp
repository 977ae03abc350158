// Finds the actors of a run of which each can be simulated for others, messages and all.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/run/stand_ins.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// Properties by which the actors of a run differ, apart from their places.
struct ToldApart {
  int ranks = 0;           ///< the first actors; the others are helpers
  std::vector<int> roles;  ///< [actor] equal ones: what they do between their schedules' steps is the same
  /// All that the run consists of; each is asked for once. No actor has a step that is not in one of them.
  std::vector<std::function<CheckedSchedule()>> schedules;
};

/// The coarsest partition of the actors, and of the links that their messages cross, that is as StandIns asks for, for
/// all schedules together. Found by refining colors (Paige & Tarjan, SIAM J. Comput. 16, 1987, without its bound on
/// time): actors begin with those of their roles, links with those of like links, and a color is split while those that
/// have it differ in the colors around them. Senders of one class whose like connections share a link are separated, in
/// order of their numbers.
///
/// Nothing if a class has less than two actors on average; if actors share a unit; if a step waits for another actor's;
/// if two actors share a device that posts messages; if a used link shares its resource with another; if a path crosses
/// two links of one class in a leg. `options`: of the run, with the placement of all actors. Throws Interrupted. Time:
/// about that of reading each schedule once, and of some passes over its connections.
std::shared_ptr<const StandIns> find_stand_ins(const Topology& topology, const RunOptions& options,
                                               const ToldApart& actors);

}  // namespace ringsim
