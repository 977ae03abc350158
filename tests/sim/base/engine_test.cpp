#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/engine.hpp"

namespace engine_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
// An event that is a number.
class Numbered {
 public:
  Numbered() = default;
  Numbered(int number) : number_(number) {}  // NOLINT(google-explicit-constructor)
  operator int() const { return number_; }   // NOLINT(google-explicit-constructor)
  std::uint64_t turn() const { return turn_; }
  void set_turn(std::uint64_t turn) { turn_ = turn; }

 private:
  int number_ = 0;
  std::uint64_t turn_ = 0;
};

SimTime at(std::int64_t ps) { return SimTime{Picoseconds{ps}}; }
}  // namespace

TEST_CASE("events due at one instant come in the order in which they were scheduled") {
  Engine<Numbered> engine;
  // Instants come and go between the pushes, so that buckets are looked up again.
  for (int i = 0; i < 300; ++i) engine.at(at(i % 3 * 10), i);
  CHECK(engine.n_waiting() == 300);
  std::vector<int> seen;
  Numbered event;
  do {
    while (engine.next_now(event)) seen.push_back(event);
  } while (engine.advance());
  REQUIRE(seen.size() == 300);
  for (int i = 0; i < 300; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i % 100 * 3 + i / 100);
  CHECK(engine.n_waiting() == 0);
}

TEST_CASE("time never goes back") {
  Engine<Numbered> engine;
  engine.at(at(5), 1);
  REQUIRE(engine.advance());
  CHECK(engine.now() == at(5));
  CHECK_THROWS_WITH_AS(engine.at(at(4), 2),
                       "invariant broken: time never goes back: an event was scheduled in the past", InvariantError);
  CHECK_THROWS_AS(engine.after(Picoseconds{-1}, 2), InvariantError);
  engine.at(at(5), 3);  // now is not the past
}

TEST_CASE("what is scheduled at now() while an event is handled still comes at this instant, last") {
  Engine<Numbered> engine;
  engine.at(at(0), 1);
  engine.at(at(0), 2);
  std::vector<int> seen;
  Numbered event;
  while (engine.next_now(event)) {
    seen.push_back(event);
    if (event == 1) engine.after(0_ps, 3);
    if (event == 3) engine.after(0_ps, 4);
  }
  CHECK(seen == std::vector<int>{1, 2, 3, 4});
  CHECK_FALSE(engine.has_now());
  engine.at(engine.now(), 5);  // the instant was used up, but is not over
  CHECK(engine.has_now());
  CHECK(engine.next_now(event));
  CHECK(event == 5);
  CHECK_FALSE(engine.advance());
}

TEST_CASE("an engine takes events in the order of a multimap, pushed at random while it runs") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Engine<Numbered> engine;
    std::multimap<SimTime, int> reference;  // keeps the order of equal keys
    int next = 0;
    const auto push = [&] {
      // Few different delays: many events share an instant; 0 is now.
      const SimTime when = engine.now() + Picoseconds{static_cast<std::int64_t>(random() % (seed % 2 == 0 ? 5 : 5000))};
      engine.at(when, next);
      reference.emplace(when, next++);
    };
    for (int i = 0; i < 100; ++i) push();
    bool same = true;
    Numbered event;
    int taken = 0;
    do {
      while (engine.next_now(event)) {
        same = same && !reference.empty() && reference.begin()->first == engine.now() &&
               reference.begin()->second == event;
        if (!reference.empty()) reference.erase(reference.begin());
        ++taken;
        if (taken < 5000 && random() % 100 < 98) push();
        same = same && engine.n_waiting() == reference.size();
      }
    } while (engine.advance());
    CHECK(same);
    CHECK(reference.empty());
    CHECK(taken == next);
  }
}

// Each event is scheduled at once in one engine. In the other it takes its turn, and is scheduled some time later.
TEST_CASE("an event that took its turn comes as if it had been scheduled then") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    Engine<Numbered> at_once, late;
    struct Kept {
      SimTime when{};
      Numbered event;
      std::uint64_t turn = 0;
    };
    std::vector<Kept> kept;
    int next = 0;
    const auto push = [&] {
      const SimTime when = at_once.now() + Picoseconds{1 + static_cast<std::int64_t>(random() % 4)};
      at_once.at(when, next);
      if (random() % 2 == 0)
        late.at(when, next);
      else
        kept.push_back({when, next, late.take_turn()});
      ++next;
    };
    for (int i = 0; i < 50; ++i) push();
    bool same = true;
    Numbered event, other;
    do {
      while (at_once.next_now(event)) {
        same = same && late.next_now(other) && event == other;
        if (next < 3000) push();
        if (random() % 3 == 0 && next < 3000) push();
      }
      same = same && !late.has_now();
      // What is due next must be there before its instant begins; some of the rest comes as well.
      std::erase_if(kept, [&](const Kept& one) {
        const bool comes = one.when <= at_once.now() + Picoseconds{4} || random() % 2 == 0;
        if (comes) late.at(one.when, one.event, one.turn);
        return comes;
      });
    } while (at_once.advance() && late.advance());
    CHECK(same);
    CHECK(kept.empty());
    CHECK(late.n_waiting() == 0);
  }
}

// 4000 instants are more than the engine remembers as used lately: most of them are in its queue several times.
TEST_CASE("an instant that was forgotten between its events is one when it comes") {
  std::mt19937_64 random(1);
  Engine<Numbered> engine;
  struct Kept {
    SimTime when{};
    Numbered event;
    std::uint64_t turn = 0;
  };
  std::vector<Kept> kept;
  std::set<std::pair<SimTime, int>> reference;  // events are numbered in the order of their turns
  for (int event = 0; event < 20'000; ++event) {
    const SimTime when = at(1 + static_cast<std::int64_t>(random() % 4000));
    reference.emplace(when, event);
    if (event % 3 == 0)
      kept.push_back({when, event, engine.take_turn()});
    else
      engine.at(when, event);
  }
  std::shuffle(kept.begin(), kept.end(), random);
  for (const Kept& one : kept) engine.at(one.when, one.event, one.turn);
  CHECK(engine.n_waiting() == 20'000);
  bool same = true;
  auto expected = reference.begin();
  Numbered event;
  while (engine.advance())
    for (; engine.next_now(event); ++expected) same = same && *expected == std::pair<SimTime, int>(engine.now(), event);
  CHECK(same);
  CHECK(expected == reference.end());
}

TEST_CASE("an event whose turn has passed is refused") {
  Engine<Numbered> engine;
  const std::uint64_t turn = engine.take_turn();
  engine.at(at(1), 1);
  REQUIRE(engine.advance());
  Numbered event;
  REQUIRE(engine.next_now(event));
  CHECK_THROWS_WITH_AS(engine.at(at(1), 2, turn), "invariant broken: no event is passed over", InvariantError);
}

TEST_CASE("a room that served one instant serves a later one") {
  // 100000 instants, at most two of them known at once: what a room held must not come up again.
  Engine<Numbered> engine;
  engine.at(at(0), 0);
  Numbered event;
  std::int64_t n = 0, sum = 0;
  do {
    while (engine.next_now(event)) {
      ++n;
      sum += event;
      if (event < 100'000) engine.after(Picoseconds{1 + event % 2}, event + 1);
    }
  } while (engine.advance());
  CHECK(n == 100'001);
  CHECK(sum == 100'000LL * 100'001 / 2);
  CHECK(engine.now() == at(150'000));  // delays 1, 2, 1, 2, ...
}

}  // namespace engine_test
