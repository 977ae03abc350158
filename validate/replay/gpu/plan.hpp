// A schedule as commands to streams: who copies and adds what, and which event stands between.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "sim/schedule.hpp"
#include "validate/replay/gpu/device.hpp"

namespace ringsim::replay::gpu {

/// A stretch of an actor's memory: one of its buffers, or the room in which what is to be added lands first.
struct Stretch {
  Actor actor = 0;
  int room = 0;                       ///< a Buffer's number; incoming_room
  std::int64_t first = 0, count = 0;  ///< elements
};
inline constexpr int incoming_room = n_buffers;
inline constexpr int n_rooms = n_buffers + 1;

/// One call of Device. Streams and events are numbered from 0, each event is recorded once.
struct Command {
  enum class What : std::uint8_t { copy, add, compute, record, wait };
  What what = What::copy;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;           ///< of record and wait
  Stretch to, base, from;            ///< copy: to = from; add: to = base + from
  std::chrono::nanoseconds time{0};  ///< of compute
};

/// Commands in an order in which every wait comes after the record that it waits for. So whatever is issued waits only
/// for what was issued before: it cannot deadlock, not even where a GPU has fewer queues than there are streams.
///
/// Stream 0 begins and ends the whole: all others wait for it first, and it waits for all at the end.
struct Plan {
  std::vector<Command> commands;
  std::vector<Actor> stream_of;                             ///< [stream] the actor whose it is
  std::vector<std::uint32_t> event_on;                      ///< [event] the stream that records it
  std::vector<std::array<std::int64_t, n_rooms>> elements;  ///< [actor][room] how large it is
};

/// Maps the schedule, which must need no slots (require_replayable), one stream a lane:
///
///  - a message is a copy on a stream of the sender, once the receiver's step has begun; the receiver's lane waits for
///  it;
///  - what is to be added lands in a room of its own, and the receiver's lane adds it;
///  - operations of a step start together: the first that is no receive goes on the lane's own stream, each other on a
///    stream beside it; the step ends when all have;
///  - adds of several streams to the same elements, which the schedule leaves without an order, get one.
Plan make_plan(const Schedule& schedule);

}  // namespace ringsim::replay::gpu
