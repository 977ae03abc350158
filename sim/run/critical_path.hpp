// The critical path, kept while the simulation goes: which link set the speed for how long.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/splitmix.hpp"
#include "sim/base/units.hpp"
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

/// The history of the longest chain that leads to a moment of a lane, in 8 entries: storing the chain itself would take
/// memory for every transfer. An entry is a class of like links (see Bottleneck) and the time for which one of them
/// held the chain's messages back; by the scheme of Misra and Gries (Science of Computer Programming 2, 1982), so that
/// it is exact for up to 8 different classes, a lower bound for more. Within a class the link that held it back for
/// more than half of the time is known (Boyer and Moore's majority vote); where there is none, one that held it back at
/// all.
struct Trail {
  static constexpr std::size_t n_entries = 8;
  struct Entry {
    std::uint32_t link_class = UINT32_MAX;
    ResourceId resource = no_resource;  // the class's present majority
    std::int64_t time = 0;              // ps, of the class
    std::int64_t lead = 0;              // ps, by which the majority leads
  };
  SimTime at{};  // the moment that it leads to
  Picoseconds latency{0}, compute{0}, delay{0};
  PathEnd path_end;  // in PathRecord, where a run has one
  std::array<Entry, n_entries> entries;
  /// Another trail is as long, its time is divided otherwise, and only the order within an instant decided between
  /// them. Kept only where LaneTrails::weigh_ties().
  bool is_unsure = false;

  /// A message, or a part of one, that started at the moment so far: `resource` set its speed for `busy`, the rest of
  /// its time is `latency`.
  void go_on(std::uint32_t link_class, ResourceId resource, Picoseconds busy, Picoseconds more_latency) {
    ensure(busy.count() >= 0 && more_latency.count() >= 0, "no part of the critical path is below 0");
    add(link_class, resource, busy);
    latency += more_latency;
    at += busy + more_latency;
  }
  /// Two trails of which both are the same number have their time divided alike, but for which link of a class.
  std::uint64_t division() const {
    const auto mixed = [](std::uint64_t seed, std::int64_t time) {
      return splitmix(splitmix(seed) ^ static_cast<std::uint64_t>(time));
    };
    std::uint64_t sum = mixed(UINT64_MAX, at.time_since_epoch().count()) + mixed(UINT64_MAX - 1, latency.count()) +
                        mixed(UINT64_MAX - 2, compute.count()) + mixed(UINT64_MAX - 3, delay.count());
    for (const Entry& entry : entries)
      if (entry.time > 0) sum += mixed(entry.link_class, entry.time);
    return sum;
  }
  /// Nothing but computing, or waiting for a rank that is late, up to `now`.
  void compute_until(SimTime now) { pass(compute, now); }
  void delay_until(SimTime now) { pass(delay, now); }

  /// `resource`, of that class, held the chain back for `time` more.
  void add(std::uint32_t link_class, ResourceId resource, Picoseconds time) {
    if (resource == no_resource || time.count() <= 0) return;
    Entry* least = &entries[0];
    for (Entry& entry : entries) {
      if (entry.link_class == link_class) {
        entry.time += time.count();
        if (entry.resource == resource) {
          entry.lead += time.count();
        } else if (entry.lead < time.count()) {
          entry.resource = resource;
          entry.lead = time.count() - entry.lead;
        } else {
          entry.lead -= time.count();
        }
        return;
      }
      if (entry.time < least->time) least = &entry;
    }
    if (least->time == 0) {
      *least = {link_class, resource, time.count(), time.count()};
      return;
    }
    // No room: take as much off everybody as there is to take off the newcomer or the least.
    const std::int64_t off = least->time < time.count() ? least->time : time.count();
    for (Entry& entry : entries) entry.time -= off;
    if (time.count() > off) *least = {link_class, resource, time.count() - off, time.count() - off};
  }

  /// Of a run or a job that ended at `finish`, where the trail must lead. The class with the most time;
  /// among equals the one whose links come first in the topology.
  Bottleneck bottleneck(SimTime finish) const {
    ensure(at == finish, "the parts of the critical path sum to the time of the run");
    Entry longest;
    for (const Entry& entry : entries)
      if (entry.time > longest.time || (entry.time == longest.time && entry.link_class < longest.link_class))
        longest = entry;
    const Picoseconds busy{longest.time};
    const Picoseconds others = at.time_since_epoch() - busy - latency - compute - delay;
    ensure(others.count() >= 0, "no part of the critical path is below 0");
    return {longest.resource, busy, others, latency, compute, delay};
  }

 private:
  void pass(Picoseconds& part, SimTime now) {
    ensure(now >= at, "no part of the critical path is below 0");
    part += now - at;
    at = now;
  }
};

}  // namespace ringsim
