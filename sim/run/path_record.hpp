// The critical path itself, element by element, where RunOptions::record_path asks for it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A message on the critical path, as far as its path element needs it.
struct PassingMessage {
  Actor from = 0, to = 0;
  Bytes bytes;
  Picoseconds wire = Picoseconds::max();  ///< at most so much of its latency is its links'; the rest is staging
  bool by_receiver = false;               ///< the receiver's step let it start, not the sender's
};

/// The chains that lead to the lanes' present moments, as nodes that name their forerunner; a Trail has the number of
/// its last one. Trails are copied from lane to lane, so chains share what they have in common.
///
/// Memory: 64 bytes per node. Nodes that no chain needs any more are dropped whenever the number of nodes has doubled,
/// so it is at most twice that of the live chains; `most` of those are recorded, and a run that needs more is refused.
class PathRecord {
 public:
  /// Number of the node before the first one.
  static constexpr std::uint32_t begin_of_run = 0;
  static constexpr std::size_t least = std::size_t{1} << 18;  ///< nodes before anything is dropped: 16 MiB
  static constexpr std::size_t most = std::size_t{1} << 23;

  /// A message, or a part of one: `resource` set its speed for `busy`; then `latency` passed.
  std::uint32_t add_message(std::uint32_t before, SimTime begin, Lane lane, int step, const PassingMessage& message,
                            ResourceId resource, Picoseconds busy, Picoseconds latency) {
    if (busy.count() == 0 && latency.count() == 0) return before;
    ensure(before <= nodes_.size(), "an element of the critical path follows one that is there");
    const Picoseconds wire = std::min(latency, message.wire);
    nodes_.push_back({.begin = begin,
                      .busy = busy,
                      .staging = latency - wire,
                      .latency = wire,
                      .bytes = message.bytes,
                      .before = before,
                      .resource = resource,
                      .from = message.from,
                      .to = message.to,
                      .step = step,
                      .lane = static_cast<std::uint16_t>(lane),
                      .cause = PathCause::link,
                      .by_receiver = message.by_receiver});
    return last();
  }

  /// A stretch in which no message was under way.
  std::uint32_t add(std::uint32_t before, SimTime begin, SimTime end, PathCause cause, Actor actor, Lane lane,
                    int step) {
    if (begin >= end) return before;
    ensure(before <= nodes_.size(), "an element of the critical path follows one that is there");
    nodes_.push_back({.begin = begin,
                      .busy = end - begin,
                      .before = before,
                      .from = actor,
                      .to = actor,
                      .step = step,
                      .lane = static_cast<std::uint16_t>(lane),
                      .cause = cause});
    return last();
  }

  bool is_full() const { return nodes_.size() >= next_; }

  /// Drops nodes that lead to none of the `ends`, and renumbers those. Throws InputError if more than `most` are left.
  void collect(const std::vector<std::uint32_t*>& ends) {
    std::vector<bool> live(nodes_.size());
    for (const std::uint32_t* end : ends)
      for (std::uint32_t at = *end; at != begin_of_run && !live[at - 1]; at = nodes_[at - 1].before)
        live[at - 1] = true;
    // A node's forerunner is older, and so has its new number already.
    std::vector<std::uint32_t> number(nodes_.size() + 1, begin_of_run);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!live[i]) continue;
      nodes_[kept] = nodes_[i];
      nodes_[kept].before = number[nodes_[kept].before];
      number[i + 1] = static_cast<std::uint32_t>(++kept);
    }
    nodes_.resize(kept);
    for (std::uint32_t* end : ends) *end = number[*end];
    if (kept > most)
      throw InputError(
          "", fmt::format("the critical paths of this run have more than {} elements, as many as are recorded", most),
          "explain a run of fewer ranks or messages; `ringsim run --explain` records no elements");
    next_ = std::max(least, 2 * kept);
    nodes_.reserve(next_ + 4096);  // no more: a vector that grows by itself would take twice as much
  }

  /// The chain that leads to `end`, first element first.
  std::vector<PathElement> chain(std::uint32_t end) const {
    std::vector<const Node*> nodes;
    for (std::uint32_t at = end; at != begin_of_run; at = nodes_[at - 1].before) {
      nodes.push_back(&nodes_[at - 1]);
      ensure(nodes.back()->before < at, "an element of the critical path follows an older one");
    }
    std::vector<PathElement> path;
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const Node& each = **node;
      SimTime now = each.begin;
      const auto stretch = [&](PathCause cause, Picoseconds time) {
        if (time.count() == 0) return;
        path.push_back({.begin = now,
                        .end = now + time,
                        .cause = cause,
                        .resource = cause == PathCause::link ? each.resource : no_resource,
                        .from = each.from,
                        .to = each.to,
                        .by = each.by_receiver ? each.to : each.from,
                        .lane = each.lane,
                        .step = each.step,
                        .bytes = each.bytes});
        now += time;
      };
      stretch(each.cause, each.busy);
      stretch(PathCause::staging, each.staging);
      stretch(PathCause::latency, each.latency);
    }
    return path;
  }

 private:
  struct Node {
    SimTime begin{};
    Picoseconds busy{0}, staging{0}, latency{0};
    Bytes bytes;
    std::uint32_t before = begin_of_run;
    ResourceId resource = no_resource;
    Actor from = 0, to = 0;
    std::int32_t step = 0;
    std::uint16_t lane = 0;
    PathCause cause = PathCause::link;
    bool by_receiver = false;
  };
  static_assert(sizeof(Node) == 64);

  std::uint32_t last() const { return static_cast<std::uint32_t>(nodes_.size()); }

  std::vector<Node> nodes_;   // number n is nodes_[n - 1]
  std::size_t next_ = least;  // the number of nodes from which on is_full()
};

/// Throws InvariantError unless the elements follow each other without a gap, from 0 to `finish`.
inline void expect_whole_path(std::span<const PathElement> path, SimTime finish) {
  SimTime now{};
  for (const PathElement& element : path) {
    ensure(element.begin == now && element.end > now, "the elements of the critical path follow each other");
    now = element.end;
  }
  ensure(now == finish, "the elements of the critical path sum to the time of the run");
}

}  // namespace ringsim
