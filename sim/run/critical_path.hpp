// The critical path, kept while the simulation goes: which link set the speed for how long.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/splitmix.hpp"
#include "sim/base/units.hpp"
#include "sim/base/watch.hpp"
#include "sim/run/timeline.hpp"

namespace ringsim {

/// A moment in a PathRecord, and so the chain that leads to it: node `node`, its element passed `times` times, in as
/// many steps after each other. Node 0 is before the first one.
class PathEnd {
 public:
  PathEnd() = default;
  PathEnd(std::uint32_t node, std::uint32_t times) : value_(std::uint64_t{times} << 32 | node) {}
  std::uint32_t node() const { return static_cast<std::uint32_t>(value_); }
  std::uint32_t times() const { return static_cast<std::uint32_t>(value_ >> 32); }
  PathEnd once_more() const { return PathEnd(value_ + (std::uint64_t{1} << 32)); }
  bool operator==(const PathEnd&) const = default;

 private:
  explicit PathEnd(std::uint64_t value) : value_(value) {}
  std::uint64_t value_ = 0;  // both, as one word: they are handed on together with every message
};

/// The time of a message, or of a part of one, by cause: `limiter` set its speed for `busy`, the rest is `latency`.
struct MessageTime {
  Picoseconds busy{0}, latency{0};
  PathEnd node;  ///< in the PathRecord, if there is one: the path up to its end
  ResourceId limiter = no_resource;
  bool is_unsure = false;  ///< as Told::is_unsure, of the limiter
};

/// Time of a chain's messages that like links (see Bottleneck) set the speed of.
struct TrailEntry {
  std::uint32_t link_class = UINT32_MAX;
  ResourceId resource = no_resource;  // the class's present majority
  std::int64_t time = 0;              // ps, of the class
  std::int64_t lead = 0;              // ps, by which the majority leads
};

/// `resource`, of that class, held a chain back for `time` more. By the scheme of Misra and Gries (Science of Computer
/// Programming 2, 1982), so that entries are exact if there are as many as classes, and lower bounds if there are more
/// classes. Within a class the link that held the chain back for more than half of the time is known (Boyer and Moore's
/// majority vote); if there is none, one that held it back at all. Requires an entry.
///
/// `lead`: that of a chain of several messages of the class, whose majority `resource` is (Agarwal et al., "Mergeable
/// Summaries", PODS 2012); of one message its time.
inline void hold_back(std::span<TrailEntry> entries, std::uint32_t link_class, ResourceId resource, Picoseconds time,
                      std::int64_t lead) {
  if (resource == no_resource || time.count() <= 0) return;
  TrailEntry* least = entries.data();
  for (TrailEntry& entry : entries) {
    if (entry.link_class == link_class) {
      entry.time += time.count();
      if (entry.resource == resource) {
        entry.lead += lead;
      } else if (entry.lead < lead) {
        entry.resource = resource;
        entry.lead = lead - entry.lead;
      } else {
        entry.lead -= lead;
      }
      return;
    }
    if (entry.time < least->time) least = &entry;
  }
  if (least->time == 0) {
    *least = {link_class, resource, time.count(), lead};
    return;
  }
  // No room: take as much off everybody as there is to take off the newcomer or the least.
  const std::int64_t off = least->time < time.count() ? least->time : time.count();
  for (TrailEntry& entry : entries) entry.time -= off;
  if (time.count() > off) *least = {link_class, resource, time.count() - off, std::min(lead, time.count() - off)};
}
inline void hold_back(std::span<TrailEntry> entries, std::uint32_t link_class, ResourceId resource, Picoseconds time) {
  hold_back(entries, link_class, resource, time, time.count());
}

/// What a Trail knows but for its entries.
struct TrailSums {
  SimTime at{};  // the moment that the trail leads to
  Picoseconds latency{0}, compute{0}, delay{0};
  PathEnd path_end;  // in PathRecord, if a run has one
  /// The lane at whose first step the trail begins. Kept only if LaneTrails::keep_origins().
  std::uint32_t origin = 0;
  /// Another trail is as long, its time is divided otherwise, and only the order within an instant decided between
  /// them. Kept only if LaneTrails::weigh_ties().
  bool is_unsure = false;

  /// A message, or a part of one, that started at the moment so far: a link set its speed for `busy`, the rest of its
  /// time is `latency`.
  void go_on(Picoseconds busy, Picoseconds more_latency) {
    ensure(busy.count() >= 0 && more_latency.count() >= 0, "no part of the critical path is below 0");
    latency += more_latency;
    at += busy + more_latency;
  }
  /// The path only computes, or waits for a rank that is late, up to `now`.
  void compute_until(SimTime now) { pass(compute, now); }
  void delay_until(SimTime now) { pass(delay, now); }

 private:
  void pass(Picoseconds& part, SimTime now) {
    ensure(now >= at, "no part of the critical path is below 0");
    part += now - at;
    at = now;
  }
};

/// Two trails of which both are the same number have their time divided alike, but for which link of a class.
inline std::uint64_t division(const TrailSums& sums, std::span<const TrailEntry> entries) {
  const auto mixed = [](std::uint64_t seed, std::int64_t time) {
    return splitmix(splitmix(seed) ^ static_cast<std::uint64_t>(time));
  };
  std::uint64_t sum = mixed(UINT64_MAX, sums.at.time_since_epoch().count()) +
                      mixed(UINT64_MAX - 1, sums.latency.count()) + mixed(UINT64_MAX - 2, sums.compute.count()) +
                      mixed(UINT64_MAX - 3, sums.delay.count());
  for (const TrailEntry& entry : entries)
    if (entry.time > 0) sum += mixed(entry.link_class, entry.time);
  return sum;
}

/// The history of the longest chain that leads to a moment of a lane, in 8 entries at most: storing the chain itself
/// would take memory for every transfer.
struct Trail : TrailSums {
  static constexpr std::size_t n_entries = 8;
  std::array<TrailEntry, n_entries> entries;

  /// As TrailSums has it; `resource`, of that class, set the speed.
  void go_on(std::uint32_t link_class, ResourceId resource, Picoseconds busy, Picoseconds more_latency) {
    TrailSums::go_on(busy, more_latency);
    hold_back(entries, link_class, resource, busy);
  }

  /// Goes on through what another simulation found; `way`: of it, from its start at 0.
  void go_on(const Trail& way) {
    at += way.at.time_since_epoch();
    latency += way.latency;
    compute += way.compute;
    delay += way.delay;
    for (const TrailEntry& entry : way.entries)
      hold_back(entries, entry.link_class, entry.resource, Picoseconds{entry.time}, entry.lead);
  }

  /// The bottleneck of a run or a job that ended at `finish`, where the trail must end: the class with the most time;
  /// among equals the one whose links come first in the topology.
  Bottleneck bottleneck(SimTime finish) const {
    ensure(at == finish, "the parts of the critical path sum to the time of the run");
    TrailEntry longest;
    for (const TrailEntry& entry : entries)
      if (entry.time > longest.time || (entry.time == longest.time && entry.link_class < longest.link_class))
        longest = entry;
    const Picoseconds busy{longest.time};
    const Picoseconds others = at.time_since_epoch() - busy - latency - compute - delay;
    ensure(others.count() >= 0, "no part of the critical path is below 0");
    return {longest.resource, busy, others, latency, compute, delay};
  }
};

/// A trail of each lane. Like links are of few classes, so a lane has only as many entries as there are classes: a
/// cluster's lanes on a star take 96 bytes each.
class TrailTable {
 public:
  static constexpr std::size_t many = 1U << 20;  // lanes, whose rows take a tenth of a second

  /// `stop`: as LaneTrails'.
  TrailTable(std::size_t n_lanes, std::size_t n_classes, const std::atomic<bool>* stop = nullptr)
      : n_entries_(std::clamp(n_classes, std::size_t{1}, Trail::n_entries)) {
    sums_.resize(n_lanes);
    if (n_lanes > many) throw_if_stopped(stop, "the run was being prepared");
    entries_.resize(n_lanes * n_entries_);
    if (n_lanes > many) throw_if_stopped(stop, "the run was being prepared");
  }

  std::size_t size() const { return sums_.size(); }
  TrailSums& sums(std::uint32_t lane) { return sums_[lane]; }
  const TrailSums& sums(std::uint32_t lane) const { return sums_[lane]; }
  std::span<TrailEntry> entries(std::uint32_t lane) { return {&entries_[lane * n_entries_], n_entries_}; }
  std::span<const TrailEntry> entries(std::uint32_t lane) const { return {&entries_[lane * n_entries_], n_entries_}; }

  Trail operator[](std::uint32_t lane) const {
    Trail trail{sums_[lane], {}};
    std::ranges::copy(entries(lane), trail.entries.begin());
    return trail;
  }
  void set(std::uint32_t lane, const Trail& trail) {
    sums_[lane] = static_cast<const TrailSums&>(trail);
    std::copy_n(trail.entries.begin(), n_entries_, entries(lane).begin());
  }
  void copy(std::uint32_t from, std::uint32_t to) {
    sums_[to] = sums_[from];
    std::ranges::copy(entries(from), entries(to).begin());
  }

 private:
  std::size_t n_entries_;
  std::vector<TrailSums> sums_;      // [lane]
  std::vector<TrailEntry> entries_;  // [lane, entry]
};

}  // namespace ringsim
