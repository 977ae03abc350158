// A collective from a list of messages in the order in which they are sent.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A piece of the message of an all-gather, on its way from one rank to another.
struct OrderedMessage {
  Actor from = 0, to = 0;
  int piece = 0;  ///< owner * pieces + i
};

/// An all_gather that sends `down` in this order; a reduce_scatter that sends `up` backwards, with adds, from each
/// message's `to` to its `from`; an all_reduce that does one and then the other. Only the list that the op needs is
/// looked at.
///
/// Lanes: one for each rank that a rank sends to, and one for each that it receives from; in an all_reduce up and down
/// apart. So messages of one connection keep their order, and others wait only for what they send. Steps: one message
/// each. Requires of a list that each rank receives each piece of others once, and before it sends it.
Schedule ordered_messages(CollectiveOp op, int ranks, Bytes bytes, int pieces, const std::vector<OrderedMessage>& down,
                          const std::vector<OrderedMessage>& up);

}  // namespace ringsim
