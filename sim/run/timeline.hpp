// What a run gives back: when everybody finished, what the links carried, and what held it all back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"

namespace ringsim {

/// One message, from the moment at which both ends had begun until its last byte had arrived.
struct Span {
  Actor from = 0, to = 0;
  std::uint16_t channel = 0;
  std::uint16_t lane = 0;  ///< of the sender
  std::int32_t step = 0;   ///< of that lane
  std::int32_t count = 1;  ///< with those of actors that are not simulated, for whom the sender stands
  Bytes bytes;             ///< of one of them
  SimTime start{}, finish{};
};

/// Why a stretch of the critical path took time.
enum class PathCause : std::uint8_t {
  link,     ///< a link set the speed of a message
  staging,  ///< a staged message filled the rooms on its way, or waited for one
  latency,  ///< of links, and what a protocol adds per message
  compute,  ///< `compute` of the schedule
  late,     ///< a rank had not begun
  slow,     ///< a slow rank's delay of a step
  jitter,   ///< the same, drawn
  known,    ///< what another simulation knows of (RunOptions::courses), from the start of `to` to the end of `from`
};

/// A stretch of the critical path. Of a message (link, staging, latency): if data is staged, which part comes first
/// is an attribution; the lengths are not.
struct PathElement {
  SimTime begin{}, end{};
  PathCause cause = PathCause::link;
  ResourceId resource = no_resource;  ///< that set the speed; of `link` only
  Actor from = 0, to = 0;             ///< of the message; else both the actor that computed or waited
  Actor by = 0;                       ///< of the message: the one whose step let it start; else the same as the others
  Lane lane = 0;                      ///< of `by`
  int step = 0;                       ///< of that lane
  Bytes bytes;                        ///< of the message

  Picoseconds time() const { return end - begin; }
};

/// What held the run back: on the critical path (the chain of messages, each of which could not start before the one
/// before it was done, that ends with the run) the links that set the speed for the longest time. Like links count
/// together: of one kind, between devices of the same kinds, of equal bandwidth. Else a ring in which one chunk is a
/// byte longer would be held back by each of its links a little, and by none.
///
/// No part is below 0, and they sum to the time of the run (of a job: from 0 to its end); every run is held to both.
struct Bottleneck {
  ResourceId resource;  ///< the one of them that did so longest
  /// How long they set the speed of the critical path's messages. Exact if there are at most 8 kinds of links on it;
  /// else a lower bound.
  Picoseconds busy{0};
  /// How long links of other kinds did.
  Picoseconds others{0};
  /// How long the critical path waited for latencies, and for staged pieces to fill the rooms on their way.
  Picoseconds latency{0};
  Picoseconds compute{0};  ///< time of the critical path spent in `compute`
  /// How long it waited because ranks are late, slow or unsteady (sim/run/disturbance.hpp).
  Picoseconds delay{0};
};

/// One of several jobs whose steps lie on lanes of their own: RunOptions::jobs.
struct JobTimeline {
  SimTime finish{};
  std::int64_t transfers = 0;
  Bytes bytes_sent;
  std::optional<Bottleneck> bottleneck;
  std::vector<PathElement> path;  ///< as Timeline::path, up to its own end
};

struct Timeline {
  SimTime finish{};                      ///< when the last actor was done; the run starts at 0
  std::vector<SimTime> actor_finish;     ///< [actor]
  std::int64_t transfers = 0;            ///< messages delivered, empty ones too
  Bytes bytes_sent;                      ///< of all messages
  std::vector<Bytes> link_bytes;         ///< [link] what crossed it
  std::vector<double> link_rests;        ///< [link] what was rounded off; empty: nothing
  std::optional<Bottleneck> bottleneck;  ///< nothing if nothing moved
  std::int64_t events = 0;
  /// A digest of all messages in order of arrival (who, how much, from when to when): equal runs, equal digests.
  /// Nothing if the run was folded: it has no such order.
  std::optional<std::uint64_t> fingerprint = 0;
  bool has_choice = false;        ///< the fabric had several equally short ways for some message (Path::has_choice)
  std::vector<JobTimeline> jobs;  ///< [job] as RunOptions::jobs; then `bottleneck` is that of the job that ends last
  std::vector<Span> spans;        ///< in order of arrival; only if RunOptions::record_spans asks for them
  /// The critical path, first element first, without a gap from 0 to `finish`; only if RunOptions::record_path asks
  /// for it. Of a folded run: rank 0's, whose messages stand for those of all.
  std::vector<PathElement> path;
  /// As RunOptions::paths_of: each path up to the last step of that actor's first lane.
  std::vector<std::vector<PathElement>> paths_of;

  /// Why one rank could represent all (sim/run/fold.hpp), or some ranks (sim/run/fold_turns.hpp), or one channel
  /// (sim/run/fold_channels.hpp), if they did. The timeline is then that of the whole run, except for the fingerprint;
  /// if several links held the run back equally, `bottleneck` names one of those that were simulated.
  std::optional<std::string> folded;
  std::string not_folded;  ///< why it could not, if that was looked into

  Picoseconds duration() const { return finish.time_since_epoch(); }
};

}  // namespace ringsim
