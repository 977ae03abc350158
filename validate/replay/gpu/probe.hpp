// What the links of a host with GPUs do: measured by themselves, before anything is replayed.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "validate/replay/gpu/device.hpp"

namespace ringsim::replay::gpu {

/// What is measured, each after another of its kind.
enum class Asked : std::uint8_t {
  copy,       ///< by a copy engine, or however the driver sees fit
  kernel,     ///< a copy by a kernel of so many thread blocks
  both_ways,  ///< a copy and one back at the same time
  fan_out,    ///< copies from one GPU to all others at the same time
  add,        ///< to = to + from, in one place
  call,       ///< an addition of one element, issued call by call
  node,       ///< the same as a node of a graph
  hop,        ///< the same, each on another stream than the one before, after an event
  issue,      ///< the same, call by call and on four streams in turn: what the host takes for a call
  events,     ///< the same, and after each an event recorded and waited for
  launch,     ///< what a graph takes beyond its nodes, from the event before its launch to the one after it
};
std::string_view to_string(Asked asked);
std::string name_of(Place place);  ///< gpu0, host

/// One size of one question. `time` is what one more operation takes if it follows others of its kind in a graph
/// (but for calls): the time of n + 1 less the time of 1, by n.
struct Sample {
  Asked asked = Asked::copy;
  Place from = 0, to = 0;
  int blocks = 0;  ///< of kernel
  Bytes bytes;     ///< of one copy, or of the result of one addition
  Picoseconds time{0}, min{0}, max{0};
};

/// A latency, and a rate at which bytes follow.
struct Line {
  Picoseconds latency{0};
  Bandwidth rate;
};

struct Probe {
  std::string device;  ///< Device::name()
  int gpus = 0;
  std::vector<Sample> samples;

  /// The rate between the two largest sizes, if a size costs nothing but its bytes; the latency is what the smallest
  /// takes beyond that. Nothing if fewer than two sizes were measured, the larger was no slower, or no link has such
  /// a rate.
  std::optional<Line> line(Asked asked, Place from, Place to, int blocks = 0) const;
  /// At the only, or the smallest, size.
  std::optional<Picoseconds> least(Asked asked, Place from, Place to) const;
};

struct ProbeOptions {
  std::vector<Bytes> sizes;      ///< whole elements, ascending
  std::vector<int> blocks;       ///< thread blocks of copy kernels
  int repeats = 20;              ///< after 3 warm-ups
  int operations = 8;            ///< n of Sample::time
  Bytes most_on_host{64 << 20};  ///< larger additions of the CPU are left out: they take very long
  std::chrono::milliseconds patience{30000};
  const std::atomic<bool>* stop = nullptr;
};
/// 4 KiB to 256 MiB by 4; 1 to 128 blocks by 2.
ProbeOptions usual_probe();

/// Throws EnvironmentError and Interrupted, as replay_on().
Probe probe(Device& device, const ProbeOptions& options);

/// One line a sample: what,from,to,blocks,bytes,time_us,min_us,max_us,GBps.
std::string to_csv(const Probe& probe);

/// A scenario on what was measured, with its provenance in comments: `ranks` virtual ranks of one GPU, whose copies
/// and additions share its memory; or, if there are several GPUs, a rank on each. A CPU joins them through host
/// memory, and adds there. Throws EnvironmentError if a line is missing.
std::string to_scenario(const Probe& probe, int ranks, const std::string& date);

}  // namespace ringsim::replay::gpu
