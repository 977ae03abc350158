// Protocols: how a message gets from one rank to another, apart from the links that it takes.
#pragma once

#include <span>
#include <string_view>

#include "sim/base/units.hpp"
#include "sim/topology/path_type.hpp"

namespace ringsim {

/// What NCCL's protocols differ in. All numbers from NVIDIA/nccl 5067397c2676: src/include/device.h (steps, lines,
/// flags), src/init.cc (buffers), src/graph/tuning.cc (latencies, "now"; the rows of Ring).
///
/// Slots: a connection (from, to, channel) has `slots` of `slot` bytes. A message fills as many as its bytes need, one
/// at least; they are its own from when they are given to it until its receive has begun, and are given to messages in
/// the order of their sends. What has slots moves, the rest waits: for slots that are given back or for its own
/// receive, from which on it needs none. So a sender is ahead of its receiver by what the slots hold and no more, as in
/// NCCL, where it fills step after step of a buffer until all are full (src/device/prims_simple.h, waitPeer: sent + a
/// slice <= taken + NCCL_STEPS).
///
/// Assumptions:
/// - The receiver takes data out of the slots as it comes, and the slots hold more than what is on the way: 4 MiB
///   (Simple) are 450 GB/s for 9 us, LL's 512 KiB 50 GB/s for 10 us. So a message that has met its receive flows as if
///   it needed no slots. NCCL's sender waits if a link's bandwidth times the way there and back is more.
/// - A message takes whole slots, but not more than its bytes need. NCCL's ring of all_reduce, reduce_scatter and
///   all_gather cuts what it sends into two slices of two steps (src/include/collectives.h), so that small messages
///   take four there: its ranks are ahead of each other by two messages, ours by eight.
/// - Data that runs ahead shares links with data that is waited for; nothing tells the network which is urgent. So a
///   rank that is late by 200 us may cost a recursive doubling 734 us, where under rendezvous it costs 200
///   (tests/sim/run/protocol_test.cpp has the calculation; in packets it is the same).
/// - A link's own latency is that of a small write with its flag: LL. LL128 and Simple take more, by the difference of
///   the tuner's latencies. On plain links of a free topology (PathType::dir) that is nothing: they are what one says.
/// - A message whose way is given up, because a link goes down, is done for its sender when it has arrived.
struct Protocol {
  std::string_view name;
  std::string_view doc;         ///< one line
  int slots = 0;                ///< of a connection; 0: rendezvous
  Bytes slot;                   ///< what one holds, on the wire
  bool done_when_left = false;  ///< a send is done when its last byte has left (over several NICs: the last of all);
                                ///< else when it has arrived
  std::int64_t wire = 1, payload = 1;  ///< of `wire` bytes on the links `payload` are data
  Bytes align{1};  ///< data is cut in multiples of this, so a message is rounded up to it; a power of two
  /// Messages between hosts pass through host memory with and without GPUDirect, so GPUDirect does not change their
  /// times (Transport::always_direct). Assumption: `network` contains the time that this takes, and messages do not use
  /// up the bandwidth of host memory. If they did, the error for abci-v100-8n4g-broadcast (validate/measured) would be
  /// 38 % instead of 15 %.
  bool in_host_memory = false;
  Picoseconds nvlink{0}, pcie{0}, network{0};  ///< what a message takes beyond its links' latencies
  Picoseconds launch{0};                       ///< before the first step
  Picoseconds post{0};  ///< what the sender takes to post a message to another host, one after another; at least
                        ///< DeviceRates::post

  bool operator==(const Protocol&) const = default;

  /// True if on_wire() may be more than the data.
  bool adds_bytes() const { return wire != payload || align.count > 1; }
  /// What a message with so much data is on the links.
  Bytes on_wire(Bytes data) const {
    if (align.count > 1) data = {(data + Bytes{align.count - 1}).count & -align.count};
    if (wire == payload) return data;
    return data.count / payload * Bytes{wire} + Bytes{(data.count % payload * wire + payload - 1) / payload};
  }
  /// The data of a message of so many bytes on the wire: what on_wire() was given, rounded up to `align`.
  Bytes data_of(Bytes on_wire) const {
    if (wire == payload) return on_wire;
    return on_wire.count / wire * Bytes{payload} + Bytes{on_wire.count % wire * payload / wire};
  }
  /// How many slots a message of so many bytes on the wire fills; slots + 1: more than there are.
  int slots_of(Bytes message) const;
  /// What a message on a path of that type takes beyond the latencies of its links.
  Picoseconds latency(PathType type) const;
};

/// none, ll, ll128, simple: in the order in which `ringsim list` shows them.
std::span<const Protocol> protocols();
/// The textbooks': rendezvous, done when delivered, every byte is data.
const Protocol& no_protocol();
/// The one of that name, or nullptr.
const Protocol* find_protocol(std::string_view name);

}  // namespace ringsim
