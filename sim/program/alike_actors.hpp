// Actors of a program that do the same at the same moments: one of them stands for all.
#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace ringsim {

/// True if nothing but its role tells what an actor of the program does: not a time of its own for each task, a unit
/// that it shares, a process, or another actor that it waits for.
bool roles_say_all(const Program& program);

/// A partition of a program's actors, taken as true until a run shows that it is not. Actors of one class have one
/// role, so all of them are members of what it calls. If each call that all members of a class begin at one moment ends
/// at one moment at all of them, then, by induction over the events of a run, all do each task at the same moments, and
/// one of them stands for the class. If some call ends at different moments, the class is split and the run is void.
///
/// Moments that are_one() are the same: rates are doubles and moments whole picoseconds, so that the order in which
/// like messages change the rates of a link decides their last bit. So a run with stand-ins equals the whole run to
/// rounding: 2 ps for each step of what is called on the longest path.
class AlikeActors {
 public:
  /// Actors of a role are one class, if roles_say_all(); else each is one.
  explicit AlikeActors(const Program& program);
  /// Those that are known to be alike (StandIns::actors).
  explicit AlikeActors(std::vector<Actor> stand_ins);

  /// [actor] the first of its class; empty: each stands for itself.
  const std::vector<Actor>& stand_ins() const { return stand_ins_; }
  Actor stand_in(Actor actor) const { return stand_ins_.empty() ? actor : stand_ins_[static_cast<std::size_t>(actor)]; }
  /// The number of classes of all actors; 0 if each stands for itself.
  int n_classes() const;
  /// Each stands for itself from now on.
  void stand_alone() { stand_ins_.clear(); }
  /// Splits classes by the moment at which a call of theirs ends: [number of a member]. After so many splits that they
  /// hardly pay, each stands for itself.
  void split(const std::vector<Actor>& members, const std::vector<SimTime>& ends);
  static constexpr Picoseconds rounding{2};
  /// No farther apart than that.
  static bool are_one(SimTime moment, SimTime other);

 private:
  void expect_few();

  std::vector<Actor> stand_ins_;
  int splits_left_;
};

}  // namespace ringsim
