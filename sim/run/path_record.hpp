// The critical path itself, element by element, where RunOptions::record_path asks for it.
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
#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A message, or a part of one, or a stretch without one, as it may be on many paths: what the record keeps of it.
struct PassedElement {
  Picoseconds busy{0};                 ///< `resource` set its speed for so long; or all of the stretch
  Picoseconds staging{0}, latency{0};  ///< of a message, after that
  Bytes bytes;                         ///< of a message
  ResourceId resource = no_resource;   ///< of a message
  Actor from = 0, to = 0;              ///< of a stretch: both the one that it is about
  std::uint16_t lane = 0;              ///< whose step let it start
  PathCause cause = PathCause::link;
  bool by_receiver = false;                            ///< the receiver's step let it start, not the sender's
  bool operator==(const PassedElement& other) const {  // without a branch per member
    using Words = std::array<std::uint64_t, 6>;
    const auto mine = std::bit_cast<Words>(*this), its = std::bit_cast<Words>(other);
    return ((mine[0] ^ its[0]) | (mine[1] ^ its[1]) | (mine[2] ^ its[2]) | (mine[3] ^ its[3]) | (mine[4] ^ its[4]) |
            (mine[5] ^ its[5])) == 0;
  }
};

/// The chains that lead to the lanes' present moments, as nodes that name their forerunner; a Trail has the number of
/// its last one. Trails are copied from lane to lane, so chains share what they have in common.
///
/// Memory: 12 bytes per node, and 48 per element that differs from those before it; ranks mostly do the same in step
/// after step. Nodes that no chain needs any more are dropped whenever the number of nodes has doubled, so it is at
/// most twice that of the live chains; `most` of those are recorded, and a run that needs more is refused.
class PathRecord {
 public:
  /// Number of the node before the first one.
  static constexpr std::uint32_t begin_of_run = 0;
  static constexpr std::size_t least = std::size_t{1} << 18;  ///< nodes before anything is dropped: 3 to 15 MiB
  static constexpr std::size_t most = std::size_t{1} << 23;

  /// What is after node `before`: an element that begins where that one ends. `step`: of the lane that let it start.
  std::uint32_t add(std::uint32_t before, const PassedElement& element, int step) {
    if (element.busy.count() == 0 && element.staging.count() == 0 && element.latency.count() == 0) return before;
    ensure(before <= nodes_.size(), "an element of the critical path follows one that is there");
    nodes_.push_back({.before = before, .element = number_of(element), .step = step});
    return static_cast<std::uint32_t>(nodes_.size());
  }

  bool is_full() const { return nodes_.size() >= next_; }

  /// Drops nodes that lead to none of the `ends`, and renumbers those. Throws SettingError if more than `most` are
  /// left.
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
    collect_elements();
    if (kept > most)
      throw SettingError(
          SettingError::Setting::scale,
          fmt::format("the critical paths of this run have more than {} elements, as many as are recorded", most),
          "choose a run of fewer ranks or messages; `ringsim run --explain` without --phases records no elements");
    next_ = std::max(least, 2 * kept);
    nodes_.reserve(next_ + 4096);  // no more: a vector that grows by itself would take twice as much
  }

  /// The chain that leads to `end`, first element first, from time 0 on.
  std::vector<PathElement> chain(std::uint32_t end) const {
    std::vector<Node> nodes;
    for (std::uint32_t at = end; at != begin_of_run; at = nodes_[at - 1].before) {
      nodes.push_back(nodes_[at - 1]);
      ensure(nodes.back().before < at, "an element of the critical path follows an older one");
    }
    std::vector<PathElement> path;
    SimTime now{};
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const PassedElement& each = elements_[node->element];
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
                        .step = node->step,
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
    std::uint32_t before = begin_of_run;
    std::uint32_t element = 0;  // in elements_
    std::int32_t step = 0;
  };
  static_assert(sizeof(Node) == 12 && sizeof(PassedElement) == 48);

  // The number of an equal element that is remembered, or of a new one.
  std::uint32_t number_of(const PassedElement& element) {
    const auto bits = static_cast<std::uint64_t>(element.busy.count() + element.bytes.count) ^
                      (static_cast<std::uint64_t>(element.from) << 32) ^ static_cast<std::uint64_t>(element.to);
    std::uint32_t& remembered = remembered_[(bits * 0x9E3779B97F4A7C15U) >> (64 - remembered_bits)];
    if (remembered >= elements_.size() || !(elements_[remembered] == element)) {
      remembered = static_cast<std::uint32_t>(elements_.size());
      elements_.push_back(element);
    }
    return remembered;
  }

  // Drops elements that no node has. The others get new numbers, which what is remembered follows.
  void collect_elements() {
    constexpr std::uint32_t none = UINT32_MAX;
    std::vector<std::uint32_t> number(elements_.size(), none);
    for (const Node& node : nodes_) number[node.element] = 0;
    std::uint32_t kept = 0;
    for (std::size_t i = 0; i < elements_.size(); ++i) {
      if (number[i] == none) continue;
      elements_[kept] = elements_[i];
      number[i] = kept++;
    }
    elements_.resize(kept);
    for (Node& node : nodes_) node.element = number[node.element];
    for (std::uint32_t& remembered : remembered_) remembered = remembered < number.size() ? number[remembered] : none;
  }

  static constexpr int remembered_bits = 14;

  std::vector<Node> nodes_;  // number n is nodes_[n - 1]
  std::vector<PassedElement> elements_;
  // [hash] the number of the latest element with it, in case the next is alike
  std::vector<std::uint32_t> remembered_ = std::vector<std::uint32_t>(std::size_t{1} << remembered_bits, UINT32_MAX);
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
