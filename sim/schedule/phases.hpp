// The phases of an algorithm: where in it each step lies.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/ids.hpp"

namespace ringsim {

/// The place of a step in its algorithm.
struct PhaseStep {
  int phase = 0;  ///< in Phases::names
  int step = 0;   ///< of that phase, from 0 on
  auto operator<=>(const PhaseStep&) const = default;
};

/// The phases of an algorithm, and where each step lies in them: a pure function, so nothing is stored per rank or per
/// step. Steps of several lanes or rounds that do the same have the same number; those of several actors as well, but
/// in trees, if a step is the actor's own: a leaf sends in its step 0 what an inner rank may receive in its step 2.
struct Phases {
  std::vector<std::string> names;  ///< "reduce_scatter", "all_gather"; none: one phase, named after the collective
  std::function<PhaseStep(Actor, Lane, int i)> of;  ///< none: step i of a lane is step i of the first phase

  PhaseStep at(Actor actor, Lane lane, int i) const { return of ? of(actor, lane, i) : PhaseStep{0, i}; }
};

/// Phases of so many steps each that every lane of every actor goes through, one after the other. Phases without steps
/// are left out.
Phases phases_in_turn(const std::vector<std::pair<std::string, int>>& phases);

}  // namespace ringsim
