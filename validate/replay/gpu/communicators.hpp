// What a replay needs of NCCL: ranks that send to each other by kernels on their GPUs. One interface: NCCL implements
// it, and in tests a fake on fake GPUs. Streams and memory are those of the Device that it was opened with.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "validate/replay/gpu/device.hpp"

namespace ringsim::replay::gpu {

/// By what the processes of a communicator find each other: made by one, and told to the others.
using MeetingPoint = std::array<char, 128>;

/// One rank's end of a communicator, by number.
enum class End : std::uint32_t {};

struct Member {
  int rank = 0, gpu = 0;
};

/// A group's sends and receives are one kernel an end, which is done when all of them are. It may carry them out one
/// after the other: NCCL does if there are two to one peer, or peers in different rounds of eight
/// (addWorkBatchToPlan() in NVIDIA/nccl, src/enqueue.cc). On one
/// end a kernel runs after the one before, in the order in which groups ended, whatever their streams. Messages between
/// two ends match in their order, and are of one length; a send is done when it has been received, or before.
///
/// No call waits for another process or for a GPU: join() and end_group() begin what takes time on the host, and
/// query() says whether it is done; before that nothing else is called. One thread calls.
class Communicators {
 public:
  virtual ~Communicators() = default;

  /// "NCCL 2.28.9".
  virtual std::string name() const = 0;

  /// Up to this many communicators will have kernels on one GPU at the same time; called before the first join(). A
  /// kernel that finds no room on its GPU cannot be waited for by those that have it.
  virtual void expect(int /*communicators*/) {}

  virtual Result make_meeting_point(MeetingPoint& out) = 0;
  /// Has `mine` become members of a new communicator of `size` ranks, which all processes enter; out: [mine]. They may
  /// be used once query() says that it is done.
  virtual Result join(int size, std::span<const Member> mine, const MeetingPoint& where, std::vector<End>& out) = 0;

  /// Between them: sends and receives, on any ends of mine, the calls of one end on one stream; or one collective, on
  /// all ends of a communicator that are mine.
  virtual Result begin_group() = 0;
  virtual Result end_group() = 0;
  virtual Result send(End end, Stream stream, Memory from, int to_rank) = 0;
  virtual Result receive(End end, Stream stream, Memory to, int from_rank) = 0;
  /// The library's own: all_reduce, reduce_scatter, all_gather, broadcast or reduce of float32, summed; `from` and `to`
  /// as in its documentation, and may be one place if that allows it. Streams: any.
  virtual Result collective(End end, Stream stream, CollectiveOp op, Memory to, Memory from, int root) = 0;

  /// Has what join() or end_group() began been done on the host? Does not wait. A failure of a peer or of the network
  /// may come from here at any later time, while kernels run, as well: Fault::other.
  virtual Result query(bool& done) = 0;

  /// Leaves all communicators. Kernels that wait for a peer are ended first if abort() was called.
  virtual void clear() noexcept = 0;
  /// What is under way is given up: its kernels end, and what they have written is worth nothing.
  virtual void abort() noexcept = 0;
};

}  // namespace ringsim::replay::gpu
