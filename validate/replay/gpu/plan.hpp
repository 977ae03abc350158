// A schedule as commands to streams: who copies, sends and adds what, and which event stands between.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "validate/replay/gpu/device.hpp"

namespace ringsim::replay::gpu {

/// A stretch of an actor's memory: one of its buffers, or the room in which what is to be added lands first.
struct Stretch {
  Actor actor = 0;
  int room = 0;                       ///< a Buffer's number; incoming_room
  std::int64_t first = 0, count = 0;  ///< elements
};
/// As an index of a vector: actors, lanes and steps are signed.
inline std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

inline constexpr int incoming_room = n_buffers;
inline constexpr int n_rooms = n_buffers + 1;

/// One call of Device or Communicators. Streams, events and communicators are numbered from 0; each event is recorded
/// once. The actor is that of the stream, also within a communicator: a rank there is an actor.
struct Command {
  enum class What : std::uint8_t {
    copy,
    add,
    compute,
    record,
    wait,
    begin_group,  ///< of those that follow, until end_group; neither has a stream
    end_group,
    send,
    receive,
    collective,  ///< the library's own: what the schedule's collective is
  };
  What what = What::copy;
  std::uint32_t stream = 0;
  std::uint32_t event = 0;           ///< of record and wait
  Stretch to, base, from;            ///< copy, collective: to = from; add: to = base + from; send: from; receive: to
  std::chrono::nanoseconds time{0};  ///< of compute
  std::uint32_t communicator = 0;    ///< of send, receive and collective
  Actor peer = -1;                   ///< send: to whom; receive: from whom; collective: the root
};

/// Commands in an order in which every wait comes after the record that it waits for. So whatever is issued waits only
/// for what was issued before: it cannot deadlock, not even if a GPU has fewer queues than there are streams. A send
/// or a receive waits for its peer's as well: make_nccl_plan() says why that cannot deadlock either, and what it takes.
///
/// Stream 0 begins and ends the whole: all others wait for it first, and it waits for all at the end.
struct Plan {
  std::vector<Actor> mine;  ///< whose commands these are, ascending: all actors, or those of one process of several
  std::vector<Command> commands;
  std::vector<Actor> stream_of;                             ///< [stream] the actor whose it is
  std::vector<std::uint32_t> event_on;                      ///< [event] the stream that records it
  std::vector<std::array<std::int64_t, n_rooms>> elements;  ///< [actor][room] how large it is; 0 of actors not mine
  /// [communicator] how many actors it has, from actor 0 on; the same in all processes.
  std::vector<int> communicators;
  /// How many kernels of communicators can be at work on one GPU at a time, at most; the same in all processes.
  int abreast = 0;
};

/// Maps the schedule, which must need no slots (require_replayable), one stream per lane:
///
///  - a message is a copy on a stream of the sender, once the receiver's step has begun, and the receiver's lane waits;
///  - what is to be added lands in a room of its own, and the receiver's lane adds it;
///  - operations of a step start together: the first that is no receive goes on the lane's own stream, each other on a
///    further stream; the step ends when all have;
///  - adds of several streams to the same elements, which the schedule leaves without an order, get one.
Plan make_plan(const Schedule& schedule);

/// Maps the schedule, which must need no slots, to sends and receives of `mine` (ascending, one at least):
///
///  - the sends and receives of a step are one group: one kernel per communicator, the first on the lane's own stream,
///    each other on a further stream;
///  - what is to be added lands in a room of its own, and the lane's stream adds it when the kernels are done;
///  - each connection belongs to a communicator, in which the ends of both its actors are of one lane each, so that no
///    lane queues behind another's kernel. Connections of different channels do not mix: messages between two ends
///    match in their order.
///
/// So what is ordered is what the schedule orders, and it cannot deadlock, as long as the kernels of all lanes of an
/// actor find room on its GPU at a time, each stream has a hardware queue (CUDA has 32), and no step relies on its
/// messages being independent, which NCCL's are not quite (Communicators). Else it is given up in time.
Plan make_nccl_plan(const Schedule& schedule, std::span<const Actor> mine);

/// The library's own collective in place of the schedule, on the same buffers: one communicator of the ranks, one group
/// of all that are mine. Throws InputError if the library has no such operation, or not on buffers laid out like
/// that.
Plan make_library_plan(const Schedule& schedule, std::span<const Actor> mine);

}  // namespace ringsim::replay::gpu
