// The event engine: simulated time, and what is due when.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/units.hpp"

namespace ringsim {

/// Keeps events in order of simulated time; events due at one instant come in the order in which they were scheduled.
/// Nothing else decides the order. One that may be overtaken before it is due can take its turn first and be scheduled
/// later, if at all: it comes when it would have come.
///
/// Regular schedules make thousands of events fall on one instant, so an instant, not an event, is an element of the
/// heap: scheduling costs O(1) where the instant is already known, O(log instants) where it is new.
///
/// Event: a small value type. An Engine is a local variable: two runs in one process do not meet.
template <class Event>
class Engine {
 public:
  SimTime now() const { return now_; }

  /// Schedules `event`. Requires when >= now(): time never goes back.
  void at(SimTime when, Event event) {
    ensure(when >= now_, "time never goes back: an event was scheduled in the past");
    bucket(when).events.push_back({event, ++turn_});
  }
  /// The place in the order that an event has which is scheduled now.
  std::uint64_t take_turn() { return ++turn_; }
  /// Schedules `event` as if that had been done when the turn was taken. Requires that nothing which was scheduled for
  /// that instant after it has come yet.
  void at(SimTime when, Event event, std::uint64_t turn) {
    ensure(when >= now_, "time never goes back: an event was scheduled in the past");
    Bucket& its = bucket(when);
    const auto later = [turn](const Due& due) { return due.turn > turn; };
    auto place = its.events.end();
    if (!its.events.empty() && later(its.events.back()))
      place = std::partition_point(its.events.begin(), its.events.end(), std::not_fn(later));
    ensure(place - its.events.begin() >= static_cast<std::ptrdiff_t>(its.taken), "no event is passed over");
    its.events.insert(place, {event, turn});
  }
  /// The same, `delay` from now; throws InputError where that is beyond 106 days.
  void after(Picoseconds delay, Event event) { at(SimTime{add(now_.time_since_epoch(), delay)}, event); }

  /// Takes the next event of this instant into `event`; false where none is left at now().
  bool next_now(Event& event) {
    if (!has_now()) return false;
    Bucket& first = buckets_[current_];
    event = first.events[first.taken++].event;
    return true;
  }

  /// True where something is left at now().
  bool has_now() const { return current_ != none && buckets_[current_].taken < buckets_[current_].events.size(); }

  /// Moves on to the next instant that has an event; false where there is none. Requires that next_now() gave false.
  bool advance() {
    ensure(!has_now(), "no event is passed over");
    if (current_ != none) drop_first();
    if (heap_.empty()) return false;
    ensure(heap_.front().when >= now_, "time never goes back");
    now_ = heap_.front().when;
    current_ = heap_.front().bucket;
    return true;
  }

  std::size_t n_waiting() const {
    std::size_t n = 0;
    for (const Instant& instant : heap_) n += buckets_[instant.bucket].events.size() - buckets_[instant.bucket].taken;
    return n;
  }

  /// Whether an event is waiting that `counts(event)`. Looks at all of them: for rare questions.
  template <class Counts>
  bool any_waiting(Counts counts) const {
    return std::any_of(heap_.begin(), heap_.end(), [&](const Instant& instant) {
      const Bucket& bucket = buckets_[instant.bucket];
      return std::any_of(bucket.events.begin() + static_cast<std::ptrdiff_t>(bucket.taken), bucket.events.end(),
                         [&](const Due& due) { return counts(due.event); });
    });
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct Due {
    Event event;
    std::uint64_t turn = 0;
  };
  struct Bucket {
    SimTime when{};
    std::vector<Due> events;  // in order of turns
    std::size_t taken = 0;
  };
  struct Instant {
    SimTime when{};
    std::uint32_t bucket = 0;
  };

  Bucket& bucket(SimTime when) {
    if (last_ >= buckets_.size() || buckets_[last_].when != when) last_ = find_bucket(when);
    return buckets_[last_];
  }

  // Apart, so that what most events need stays small.
  [[gnu::noinline]] std::uint32_t find_bucket(SimTime when) {
    const auto [known, is_new] = by_time_.try_emplace(when.time_since_epoch().count(), 0);
    if (!is_new) return known->second;
    std::uint32_t index = 0;
    if (free_.empty()) {
      index = static_cast<std::uint32_t>(buckets_.size());
      buckets_.emplace_back();
    } else {
      index = free_.back();
      free_.pop_back();
    }
    buckets_[index].when = when;
    if (when == now_) current_ = index;  // nothing was due at this instant until now
    known.value() = index;
    add_instant({when, index});
    return index;
  }

  // The heap has four children per instant: half as many levels as with two, and the four lie side by side in memory.
  void add_instant(Instant instant) {
    std::size_t place = heap_.size();
    heap_.push_back(instant);
    for (; place > 0 && instant.when < heap_[(place - 1) / 4].when; place = (place - 1) / 4)
      heap_[place] = heap_[(place - 1) / 4];
    heap_[place] = instant;
  }
  void drop_first_instant() {
    const Instant last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return;
    std::size_t place = 0;
    for (std::size_t child = 1; child < size; child = 4 * place + 1) {
      std::size_t least = child;
      for (std::size_t other = child + 1; other < std::min(child + 4, size); ++other)
        if (heap_[other].when < heap_[least].when) least = other;
      if (last.when < heap_[least].when) break;
      heap_[place] = heap_[least];
      place = least;
    }
    heap_[place] = last;
  }

  void drop_first() {
    const Instant first = heap_.front();
    drop_first_instant();
    by_time_.erase(first.when.time_since_epoch().count());
    Bucket& done = buckets_[first.bucket];
    done.events.clear();
    done.taken = 0;
    done.when = SimTime::min();
    free_.push_back(first.bucket);
    current_ = none;
  }

  SimTime now_{};
  std::vector<Instant> heap_;  // the children of i are 4 i + 1 to 4 i + 4, none due before it
  std::vector<Bucket> buckets_;
  std::vector<std::uint32_t> free_;  // buckets out of use; they keep their room
  tsl::robin_map<std::int64_t, std::uint32_t> by_time_;
  std::uint64_t turn_ = 0;        // the last that was taken
  std::size_t last_ = 0;          // the bucket scheduled into last: most often the next one too
  std::uint32_t current_ = none;  // the bucket of now(), where it has one: then it is the first of the heap
};

}  // namespace ringsim
