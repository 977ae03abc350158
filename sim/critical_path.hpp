// The critical path, kept while the simulation goes: which link set the speed for how long.
#pragma once

#include <array>
#include <cstdint>

#include "sim/ids.hpp"
#include "sim/timeline.hpp"
#include "sim/units.hpp"

namespace ringsim {

/// The history of the longest chain that leads to a moment of a lane, in 8 entries: storing the chain itself would take
/// memory for every transfer. Entries are the links that held the chain's messages back longest, by the scheme of Misra
/// and Gries (Science of Computer Programming 2, 1982): exact for up to 8 different links, a lower bound for more.
struct Trail {
  static constexpr std::size_t n_entries = 8;
  struct Entry {
    ResourceId resource = no_resource;
    std::int64_t time = 0;  // ps
  };
  Picoseconds latency{0}, compute{0};
  std::array<Entry, n_entries> entries;

  /// `resource` held the chain back for `time` more.
  void add(ResourceId resource, Picoseconds time) {
    if (resource == no_resource || time.count() <= 0) return;
    Entry* least = &entries[0];
    for (Entry& entry : entries) {
      if (entry.resource == resource) {
        entry.time += time.count();
        return;
      }
      if (entry.time < least->time) least = &entry;
    }
    if (least->time == 0) {
      *least = {resource, time.count()};
      return;
    }
    // No room: take as much off everybody as there is to take off the newcomer or the least.
    const std::int64_t off = least->time < time.count() ? least->time : time.count();
    for (Entry& entry : entries) entry.time -= off;
    if (time.count() > off) *least = {resource, time.count() - off};
  }

  /// The longest; among equals the lowest number.
  Bottleneck bottleneck() const {
    Entry longest;
    for (const Entry& entry : entries)
      if (entry.time > longest.time || (entry.time == longest.time && entry.resource < longest.resource))
        longest = entry;
    return {longest.resource, Picoseconds{longest.time}, latency, compute};
  }
};

}  // namespace ringsim
