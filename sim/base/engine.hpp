// The event engine: simulated time, and what is due when.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/mixed_hash.hpp"
#include "sim/base/units.hpp"

namespace ringsim {

/// Keeps events in order of simulated time; events due at one instant come in the order in which they were scheduled.
/// Nothing else decides the order. One that may be overtaken before it is due can take its turn first and be scheduled
/// later, if at all: it comes when it would have come.
///
/// Regular schedules make thousands of events fall on one instant, so an instant, not an event, is an element of the
/// queue: scheduling costs O(1) if the instant is one of those used lately. One that was forgotten meanwhile is in the
/// queue more than once; its parts are joined when its time comes. Most instants are scheduled nearly in the order in
/// which they come, as most messages take about as long as the one before: those are in a row, the others in a heap.
///
/// Event: a small value type that has room for its place in the order, a std::uint64_t below 2^56: set_turn() puts it
/// there, turn() tells it. An Engine is a local variable: two runs in one process do not meet.
template <class Event>
class Engine {
 public:
  SimTime now() const { return now_; }

  /// Schedules `event`. Requires when >= now(): time never goes back.
  void at(SimTime when, Event event) {
    ensure(when >= now_, "time never goes back: an event was scheduled in the past");
    event.set_turn(++turn_);
    bucket(when).events.push_back(event);
  }
  /// The place in the order that an event has which is scheduled now.
  std::uint64_t take_turn() { return ++turn_; }
  /// Schedules `event` as if that had been done when the turn was taken. Requires that nothing which was scheduled for
  /// that instant after it has come yet.
  void at(SimTime when, Event event, std::uint64_t turn) {
    ensure(when >= now_, "time never goes back: an event was scheduled in the past");
    Bucket& its = bucket(when);
    const auto later = [turn](const Event& other) { return other.turn() > turn; };
    event.set_turn(turn);
    auto place = its.events.end();
    if (!its.events.empty() && later(its.events.back()))
      place = std::partition_point(its.events.begin(), its.events.end(), std::not_fn(later));
    ensure(place - its.events.begin() >= static_cast<std::ptrdiff_t>(its.taken), "no event is passed over");
    its.events.insert(place, event);
  }
  /// Schedules the event `delay` from now; throws InputError if that is beyond 106 days.
  void after(Picoseconds delay, Event event) { at(SimTime{add(now_.time_since_epoch(), delay)}, event); }

  /// Takes the next event of this instant into `event`; false if none is left at now().
  bool next_now(Event& event) {
    if (!has_now()) return false;
    Bucket& first = buckets_[current_];
    event = first.events[first.taken++];
    return true;
  }

  /// True if something is left at now().
  bool has_now() const { return current_ != none && buckets_[current_].taken < buckets_[current_].events.size(); }

  /// True if something is left at now(), or was scheduled for it before the first event of all.
  bool expects_more_now() const {
    if (has_now()) return true;
    const Instant* first = first_instant();
    return first != nullptr && first->when == now_;
  }

  /// Moves on to the next instant that has an event; false if there is none. Requires that next_now() gave false.
  bool advance() {
    ensure(!has_now(), "no event is passed over");
    if (current_ != none) give_back(std::exchange(current_, none));
    const Instant* first = first_instant();
    if (first == nullptr) return false;
    ensure(first->when >= now_, "time never goes back");
    now_ = first->when;
    current_ = first->bucket;
    drop(first);
    first = first_instant();
    if (first != nullptr && first->when == now_) [[unlikely]]
      join_now();
    return true;
  }

  /// Takes all events in order: handle(event) each; then settle(), as the last at its instant unless it schedules more
  /// for that; then, when no more is there, goes_on() says whether there is to be another instant.
  template <class Handle, class Settle, class GoesOn>
  void run(Handle handle, Settle settle, GoesOn goes_on) {
    do {
      do {
        Event event;
        while (next_now(event)) handle(event);
        settle();
      } while (has_now());
    } while (goes_on() && advance());
  }

  std::size_t n_waiting() const {
    std::size_t n = 0;
    any_waiting([&](const Event&) {
      ++n;
      return false;
    });
    return n;
  }

  /// True if an event is waiting that `counts(event)`. Looks at all of them: for rare questions.
  template <class Counts>
  bool any_waiting(Counts counts) const {
    const auto any_in = [&](std::uint32_t index) {
      const Bucket& bucket = buckets_[index];
      return std::any_of(bucket.events.begin() + static_cast<std::ptrdiff_t>(bucket.taken), bucket.events.end(),
                         counts);
    };
    if (current_ != none && any_in(current_)) return true;
    const auto any = [&](const Instant& instant) { return any_in(instant.bucket); };
    return std::any_of(row_.begin() + static_cast<std::ptrdiff_t>(first_), row_.end(), any) ||
           std::any_of(heap_.begin(), heap_.end(), any);
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::size_t n_recent = 1024;  // remembered instants: 4 KiB
  static constexpr std::size_t most_moved = 16;  // in the row, to let one in: 256 bytes

  struct Bucket {
    SimTime when = SimTime::min();
    std::vector<Event> events;  // in order of turns
    std::size_t taken = 0;
  };
  struct Instant {
    SimTime when{};
    std::uint32_t bucket = 0;
  };

  Bucket& bucket(SimTime when) {
    if (buckets_[last_].when != when) last_ = find_bucket(when);
    return buckets_[last_];
  }

  // Apart, so that what most events need stays small.
  [[gnu::noinline]] std::uint32_t find_bucket(SimTime when) {
    if (when == now_) {
      if (current_ == none) current_ = take_bucket(when);
      return current_;
    }
    std::uint32_t& recent =
        recent_[MixedHash{}(static_cast<std::uint64_t>(when.time_since_epoch().count())) % n_recent];
    if (buckets_[recent].when != when) {
      recent = take_bucket(when);
      add_instant({when, recent});
    }
    return recent;
  }
  std::uint32_t take_bucket(SimTime when) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(buckets_.size()));
      buckets_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    buckets_[index].when = when;
    return index;
  }
  void give_back(std::uint32_t index) {
    Bucket& done = buckets_[index];
    done.events.clear();
    done.taken = 0;
    done.when = SimTime::min();
    free_.push_back(index);
  }

  // What else is in the queue for this instant joins its first bucket.
  [[gnu::noinline]] void join_now() {
    std::vector<Event>& events = buckets_[current_].events;
    for (const Instant* next = first_instant(); next != nullptr && next->when == now_; next = first_instant()) {
      const std::uint32_t other = next->bucket;
      drop(next);
      events.insert(events.end(), buckets_[other].events.begin(), buckets_[other].events.end());
      give_back(other);
    }
    std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.turn() < b.turn(); });
  }

  // nullptr if there is none.
  const Instant* first_instant() const {
    const bool has_row = first_ < row_.size();
    if (heap_.empty()) return has_row ? &row_[first_] : nullptr;
    return has_row && row_[first_].when <= heap_.front().when ? &row_[first_] : &heap_.front();
  }
  void drop(const Instant* first) {
    if (!heap_.empty() && first == &heap_.front()) return drop_first_of_heap();
    if (++first_ == row_.size()) {
      row_.clear();
      first_ = 0;
    }
  }
  void add_instant(Instant instant) {
    std::size_t place = row_.size();
    const std::size_t least = place - std::min(place - first_, most_moved);
    while (place > least && instant.when < row_[place - 1].when) --place;
    if (place > first_ && instant.when < row_[place - 1].when) {
      heap_.push_back(instant);
      return raise(heap_.size() - 1, instant);
    }
    if (first_ > row_.size() / 2 && row_.size() == row_.capacity()) {  // room in front, for all that are left
      row_.erase(row_.begin(), row_.begin() + static_cast<std::ptrdiff_t>(first_));
      place -= std::exchange(first_, 0);
    }
    row_.insert(row_.begin() + static_cast<std::ptrdiff_t>(place), instant);
  }

  // The heap has four children per instant: half as many levels as with two, and the four lie side by side in memory.
  void raise(std::size_t place, Instant instant) {
    for (; place > 0 && instant.when < heap_[(place - 1) / 4].when; place = (place - 1) / 4)
      heap_[place] = heap_[(place - 1) / 4];
    heap_[place] = instant;
  }
  // The hole that the first leaves goes down to the lowest level, always to the least child, and the last one into it:
  // it belongs near there. Which of four is least cannot be foreseen, so they are compared without branches.
  void drop_first_of_heap() {
    const Instant last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return;
    std::size_t hole = 0;
    while (4 * hole + 4 < size) {
      const Instant* child = &heap_[4 * hole + 1];
      const std::size_t low = child[1].when < child[0].when ? 1 : 0, high = child[3].when < child[2].when ? 3 : 2;
      const std::size_t least = child[high].when < child[low].when ? high : low;
      heap_[hole] = child[least];
      hole = 4 * hole + 1 + least;
    }
    for (std::size_t least = 4 * hole + 1; least < size; least = 4 * hole + 1) {  // once at most
      for (std::size_t other = least + 1; other < size; ++other)
        if (heap_[other].when < heap_[least].when) least = other;
      heap_[hole] = heap_[least];
      hole = least;
    }
    raise(hole, last);
  }

  SimTime now_{};
  std::vector<Instant> row_;  // in order, from first_ on
  std::size_t first_ = 0;
  std::vector<Instant> heap_;  // the children of i are 4 i + 1 to 4 i + 4, none due before it
  std::vector<Bucket> buckets_ = std::vector<Bucket>(1);  // the first serves none: last_ and recent_ begin with it
  std::vector<std::uint32_t> free_;                       // buckets out of use; they keep their room
  std::array<std::uint32_t, n_recent> recent_{};          // buckets of instants used lately
  std::uint64_t turn_ = 0;                                // the last that was taken
  std::uint32_t last_ = 0;                                // the bucket scheduled into last: most often the next one too
  std::uint32_t current_ = none;                          // the bucket of now(), if it has one; it is not in the queue
};

}  // namespace ringsim
