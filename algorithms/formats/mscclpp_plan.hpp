// An execution plan of MSCCL++, as its JSON says it: per GPU thread blocks with one-sided operations, their channels,
// buffers and semaphores by name instead of by number. For the importer alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/stored_schedule.hpp"

namespace ringsim::mscclpp {

/// What its executor takes at most (src/core/include/execution_common.hpp: MAX_OPERATION, MAX_CHANNEL,
/// MAX_DEVICE_SYNCERS, MAX_DEVICE_SEMAPHORES; nothing checks the last three there).
inline constexpr std::size_t most_operations = 64;     ///< of a thread block
inline constexpr std::size_t most_channels = 16;       ///< of a thread block; remote buffers too
inline constexpr int most_barriers = 16;               ///< numbers of barriers of a GPU
inline constexpr std::size_t most_semaphores_op = 16;  ///< that one operation acquires or releases

enum class Verb : std::uint8_t {
  nop,             ///< orders the threads of a block; so do all operations here
  flush,           ///< waits until the puts of a port channel have arrived
  barrier,         ///< waits for the other thread blocks that name the same barrier
  signal,          ///< counts one at the peer's end of the channel; also rlxsignal
  wait,            ///< waits for the next signal; also rlxwait
  acquire,         ///< waits until the semaphore is above zero, and takes one
  release,         ///< adds one to it
  copy,            ///< within the GPU
  put,             ///< writes to a peer's memory; also pws and pwsf, which then signal
  get,             ///< reads from a peer's memory
  reduce,          ///< to[0] = the sum of all of `from`, which are local or a peer's; then writes it to the other `to`
  copy_packets,    ///< as copy, into packets; a reader of packets waits for them
  unpack_packets,  ///< as copy, out of packets
  put_packets,     ///< as put, into packets
  read_put_packets,  ///< as put, from packets into packets
  reduce_packets     ///< as reduce: from[1] and so on are packets, and what a peer gets is packets
};

/// Chunks of a GPU's memory.
struct Spot {
  Actor rank = 0;
  Region region;
};

/// One end of a channel: the number-th of its type from the GPU to that peer. Its other end is the number-th of the
/// peer's channels to this GPU.
struct ChannelEnd {
  Actor peer = 0;
  int number = 0;
  bool port = false;
  auto operator<=>(const ChannelEnd&) const = default;
};

struct Operation {
  Verb verb = Verb::nop;
  std::string name = {};     ///< the file's word
  std::string pointer = {};  ///< its place in the file
  std::vector<Spot> from = {}, to = {};
  std::vector<ChannelEnd> channels = {};  ///< signal, wait; a port's put: one for each of `to`
  std::vector<int> ids = {};              ///< semaphores; or one barrier
  int blocks = 0;                         ///< barrier: how many thread blocks meet
  bool port = false;                      ///< its remote memory is reached through port channels
  bool signals = false, flushes = false;  ///< put: pws, pwsf
};

struct Plan {
  StoredSchedule head;                                      ///< all but lanes and steps
  std::vector<std::vector<int>> semaphores;                 ///< [rank][semaphore] its first value
  std::vector<std::vector<std::vector<Operation>>> blocks;  ///< [rank][thread block][operation]
};

/// Reads the JSON. A thread block that is one of a group (tbg_info) does its part of a chunk: all chunks are then cut
/// finer. Throws InputError (`file`: JSON pointer) if it is no such file, names a channel, buffer, semaphore or
/// chunk that is not declared, or uses what ringsim has no schedule for: channels of a switch, pipelines (their rounds
/// depend on the size of the message) and collectives whose result the format does not define.
Plan read_plan(std::string_view text, const std::string& file);

}  // namespace ringsim::mscclpp
