// Protocols: how a message gets from one rank to another, apart from the links that it takes.
#pragma once

#include <span>
#include <string_view>

#include "sim/path_type.hpp"
#include "sim/units.hpp"

namespace ringsim {

/// What NCCL's protocols differ in. All numbers from NVIDIA/nccl 5067397c2676: src/include/device.h (steps, lines,
/// flags), src/init.cc (buffers), src/graph/tuning.cc (latencies, "now"; the rows of Ring).
///
/// Assumptions:
/// - Slots are counted in messages: a send may start when its step has begun and all but the last `slots` messages
/// before
///   it have met their receive. What has met no receive lies in a slot.
/// - A message that is larger than the whole buffer of a connection does not run ahead: it starts when both steps have
///   begun. NCCL cuts it; `chunk`, slices and segments do that here.
/// - A link's own latency is that of a small write with its flag: LL. LL128 and Simple take more, by the difference of
///   the tuner's latencies. On plain links of a free topology (PathType::dir) that is nothing: they are what one says.
/// - A message over several NICs at once is done for its sender when it has arrived, as under `none`.
struct Protocol {
  std::string_view name;
  std::string_view doc;         ///< one line
  int slots = 0;                ///< messages that a connection's sender may be ahead of its receiver; 0: rendezvous
  bool done_when_left = false;  ///< a send is done when its last byte has left; else when it has arrived
  std::int64_t wire = 1, payload = 1;          ///< of `wire` bytes on the links `payload` are data
  Bytes buffer;                                ///< data that a connection's slots hold together
  Picoseconds nvlink{0}, pcie{0}, network{0};  ///< what a message takes beyond its links' latencies
  Picoseconds launch{0};                       ///< before the first step

  Bytes on_wire(Bytes data) const {
    if (wire == payload) return data;
    return data.count / payload * Bytes{wire} + Bytes{(data.count % payload * wire + payload - 1) / payload};
  }
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
