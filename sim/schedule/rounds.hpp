// A schedule in rounds: which messages may be under way at the same time.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A message, and the round in which it moves, from 0.
struct RoundMessage {
  int round = 0;
  Actor from = 0, to = 0;
  Region region;      ///< what the sender reads
  bool adds = false;  ///< the receiver adds it to what is there
};

/// All messages by round, then sender, receiver and channel. A message moves in the first round in which the steps of
/// both ends have begun and takes one round; copies, additions and computing take none. If the schedule cannot run like
/// that, because messages have to leave before their receivers have begun, all of them move when they are sent.
///
/// Memory and time grow with the messages. Throws InvariantError if the steps wait for each other in a circle, which a
/// checked schedule does not.
std::vector<RoundMessage> rounds_of(const Schedule& schedule);

}  // namespace ringsim
