// The critical path itself, element by element, if RunOptions::record_path asks for it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/ids.hpp"
#include "sim/base/setting_error.hpp"
#include "sim/base/units.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/run/timeline.hpp"

namespace ringsim {

/// A message, or a part of one, or a stretch without one, as it may be on many paths: what the record keeps of it.
/// Lanes by their numbers in LaneRunner, as dividing those into actor and lane takes as long as all the rest.
struct PassedElement {
  Picoseconds busy{0};                 ///< `resource` set its speed for so long; or all of the stretch
  Picoseconds staging{0}, latency{0};  ///< of a message, after that
  Bytes bytes;                         ///< of a message
  ResourceId resource = no_resource;   ///< of a message
  std::uint32_t from = 0, to = 0;      ///< sender and receiver; of a stretch: both the one that it is about
  PathCause cause = PathCause::link;
  bool by_receiver = false;  ///< the receiver's step let it start, not the sender's
  [[gnu::always_inline]] bool operator==(const PassedElement& other) const {  // without a branch per member
    const auto unlike = [](auto a, auto b) { return static_cast<std::uint64_t>(a) ^ static_cast<std::uint64_t>(b); };
    return (unlike(busy.count(), other.busy.count()) | unlike(staging.count(), other.staging.count()) |
            unlike(latency.count(), other.latency.count()) | unlike(bytes.count, other.bytes.count) |
            unlike(resource.value, other.resource.value) | unlike(from, other.from) | unlike(to, other.to) |
            unlike(cause, other.cause) | unlike(by_receiver, other.by_receiver)) == 0;
  }
};

/// The chains that lead to the lanes' present moments, as nodes that name their forerunner; a Trail has the PathEnd of
/// its own. Trails are copied from lane to lane, so chains share what they have in common. If a lane does the same
/// in step after step, as in a ring, its chain stays at one node, and nothing is written.
///
/// Memory: 64 bytes per node, a cache line. Nodes that no chain needs any more are dropped whenever their number has
/// doubled, so it is at most twice that of the live chains; `most` of those are recorded, and a run that needs more is
/// refused.
class PathRecord {
 public:
  PathRecord() { make_room(); }

  static constexpr std::size_t least = std::size_t{1} << 14;  ///< nodes before anything is dropped: 1 MiB
  static constexpr std::size_t most = std::size_t{1} << 23;

  /// What is after `before`: an element that begins where that one ends. `step`: of the lane that let it start.
  PathEnd add(PathEnd before, const PassedElement& element, int step) {
    if (goes_on(before, element, step)) return before.once_more();
    return add_node(before, element, step);
  }
  /// True if what is after `before` is its element once more, in the next step: then nothing is written.
  [[gnu::always_inline]] bool goes_on(PathEnd before, const PassedElement& element, int step) const {
    ensure(before.node() <= nodes_.size(), "an element of the critical path follows one that is there");
    if (before.node() == 0) return false;
    const Node& last = nodes_[before.node() - 1];
    return last.step + static_cast<int>(before.times()) == step && last.element == element;
  }
  /// What is after `before`, of which it is not known that it goes on.
  [[gnu::noinline]] PathEnd add_node(PathEnd before, const PassedElement& element, int step) {
    if (element.busy.count() == 0 && element.staging.count() == 0 && element.latency.count() == 0) return before;
    nodes_.push_back({.element = element, .before = before, .step = step});
    return {static_cast<std::uint32_t>(nodes_.size()), 1};
  }

  bool is_full() const { return nodes_.size() >= next_; }

  /// Drops nodes that lead to none of the `ends`, and renumbers those. Throws SettingError if more than `most` are
  /// left.
  void collect(const std::vector<PathEnd*>& ends) {
    // A node's forerunner is older, so one look at each is enough, the latest first.
    std::vector<std::uint32_t> number(nodes_.size() + 1, 0);  // [node] 0 if it is not live, then its new number
    for (const PathEnd* end : ends) number[end->node()] = 1;
    for (std::size_t i = nodes_.size(); i > 0; --i)
      if (number[i] != 0) number[nodes_[i - 1].before.node()] = 1;
    number[0] = 0;
    const auto renumbered = [&](PathEnd end) { return PathEnd(number[end.node()], end.times()); };
    std::size_t kept = 0;
    for (std::size_t i = 1; i < number.size(); ++i) {
      if (number[i] == 0) continue;
      nodes_[kept] = nodes_[i - 1];
      nodes_[kept].before = renumbered(nodes_[kept].before);
      number[i] = static_cast<std::uint32_t>(++kept);
    }
    nodes_.resize(kept);
    for (PathEnd* end : ends) *end = renumbered(*end);
    if (kept > most) refuse();
    next_ = std::max(least, 2 * kept);
    make_room();
  }

  /// The chain that leads to `end`, first element first, from time 0 on. `name(element, named)` sets who an
  /// element is about, in that step: `from`, `to`, `by`, `lane`.
  template <class Name>
  std::vector<PathElement> chain(PathEnd end, Name name) const {
    std::vector<PathEnd> ends;
    std::size_t n_elements = 0;
    for (PathEnd at = end; at.node() != 0; at = nodes_[at.node() - 1].before) {
      ends.push_back(at);
      n_elements += at.times();
      ensure(nodes_[at.node() - 1].before.node() < at.node(), "an element of the critical path follows an older one");
    }
    if (n_elements > most) refuse();
    std::vector<PathElement> path;
    SimTime now{};
    for (auto at = ends.rbegin(); at != ends.rend(); ++at) {
      const Node& node = nodes_[at->node() - 1];
      for (std::uint32_t i = 0; i < at->times(); ++i) {
        PathElement named{.step = node.step + static_cast<int>(i), .bytes = node.element.bytes};
        name(node.element, named);
        const auto stretch = [&](PathCause cause, Picoseconds time) {
          if (time.count() == 0) return;
          named.begin = now;
          named.end = now += time;
          named.cause = cause;
          named.resource = cause == PathCause::link ? node.element.resource : no_resource;
          path.push_back(named);
        };
        stretch(node.element.cause, node.element.busy);
        stretch(PathCause::staging, node.element.staging);
        stretch(PathCause::latency, node.element.latency);
      }
    }
    return path;
  }

 private:
  struct alignas(64) Node {
    PassedElement element;
    PathEnd before;
    std::int32_t step = 0;  // in which the element is passed first
  };
  static_assert(sizeof(Node) == 64 && sizeof(PassedElement) == 48);

  // No more: a vector that grows by itself would take twice as much. A run looks only now and then whether it is full.
  void make_room() { nodes_.reserve(next_ + 4096); }

  [[noreturn]] static void refuse() {
    throw SettingError(
        SettingError::Setting::scale,
        fmt::format("the critical paths of this run have more than {} elements, the maximum that is recorded", most),
        "use fewer ranks or messages; `ringsim run --explain` without --phases records no elements");
  }

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
