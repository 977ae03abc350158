// Lanes that wait for each other: when they begin, in which order, and how often step() is called for them; and the
// numbers that a handler keeps with connections.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sim/base/splitmix.hpp"
#include "sim/schedule/collective.hpp"
#include "sim/schedule/lanes.hpp"
#include "tests/support/naive/naive_lanes.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"
#include "tests/support/written_schedule.hpp"

namespace lanes_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// Counts the calls of step().
Schedule counted(Schedule schedule, std::shared_ptr<std::int64_t> calls) {
  schedule.step = [plain = schedule.step, calls = std::move(calls)](Actor actor, Lane lane, int i, Step& out) {
    ++*calls;
    plain(actor, lane, i, out);
  };
  return schedule;
}

std::int64_t steps_of(const Schedule& schedule) {
  std::int64_t steps = 0;
  for (Actor actor = 0; actor < schedule.actors; ++actor)
    for (Lane lane = 0; lane < schedule.lanes; ++lane) steps += schedule.n_steps(actor, lane);
  return steps;
}

enum class Direction : std::uint8_t { up, down, both };

/// Two actors that compute; with `messages` they exchange one in every fourth step. Step i of a lane waits for step i
/// of the lane before it (up), or of the lane after it (down), or for step i of the one and step i - 1 of the other
/// (both).
Schedule neighbors(int lanes, int steps, Direction direction, bool messages) {
  Schedule s{.algorithm = "neighbors", .collective = barrier(2), .actors = 2, .lanes = lanes};
  s.names_regions = !messages;
  s.collective.before = s.collective.after = [](Actor, Buffer, std::uint32_t) { return Content{}; };
  s.layout[0] = Layout::near_equal(1000_B, 1);
  s.n_steps = [steps](Actor, Lane) { return steps; };
  s.step = [=](Actor actor, Lane lane, int i, Step& out) {
    if (direction != Direction::down && lane > 0) out.wait(lane - 1, i + 1);
    if (direction == Direction::down && lane + 1 < lanes) out.wait(lane + 1, i + 1);
    if (direction == Direction::both && lane + 1 < lanes) out.wait(lane + 1, i);
    out.compute(Picoseconds{1000 * (1 + lane % 3)});
    if (messages && i % 4 == 0) {
      out.send(1 - actor, chunk(0), lane);
      out.receive(1 - actor, chunk(0), lane);
    }
  };
  return s;
}

// --- random schedules ------------------------------------------------------------------------------------------------

struct Draw {
  explicit Draw(std::uint64_t seed) : random(seed) {}
  int number(int low, int high) {
    return low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(int n) { return number(1, n) == 1; }
  std::mt19937_64 random;
};

/// Each step waits only for steps drawn before it, so that lanes can finish. They may still be stuck: with `may_stick`
/// a few steps wait for any step, and lanes that share a connection may meet the wrong message.
Schedule random_schedule(Draw& draw, bool may_stick) {
  constexpr std::array<int, 6> some_lanes{1, 2, 5, 64, 65, 150};
  const int actors = draw.number(2, 3), lanes = some_lanes[static_cast<std::size_t>(draw.number(0, 5))];
  WrittenSchedule made(barrier(actors), actors, lanes, 1);
  made.like.names_regions = false;
  made.like.layout[0] = Layout::near_equal(1000_B, 1);
  const int busy = draw.once_in(2) ? lanes : std::min(lanes, 8);   // the lanes that have steps
  const int n_channels = draw.once_in(3) ? 0 : draw.number(1, 4);  // 0: one for each pair of lanes
  const auto done = [&](Actor actor, Lane lane) {
    return static_cast<int>(made.steps[static_cast<std::size_t>(actor)][static_cast<std::size_t>(lane)].size());
  };
  const auto waits = [&](Step& step, Actor actor) {
    for (int i = draw.once_in(2) ? 0 : draw.number(1, 3); i > 0; --i) {
      const Lane other = draw.number(0, busy - 1);
      const int before = done(actor, other);
      step.wait(other, draw.once_in(4) ? draw.number(0, before) : before);
    }
    if (may_stick && draw.once_in(60)) step.wait(draw.number(0, lanes - 1), draw.number(1, 5));
  };
  for (int i = draw.number(1, 300); i > 0; --i) {
    const Actor actor = draw.number(0, actors - 1);
    const Lane lane = draw.number(0, busy - 1);
    Step mine;
    waits(mine, actor);
    const int kind = draw.number(0, 5);
    if (kind <= 1) mine.compute(Picoseconds{draw.number(0, 2)});
    if (kind == 1) mine.compute(Picoseconds{0});
    if (kind >= 3) {
      const Actor peer = wrap(actor + draw.number(1, actors - 1), actors);
      const Lane there = draw.number(0, busy - 1);
      const int channel = n_channels == 0 ? lane * lanes + there : draw.number(0, n_channels - 1);
      Step theirs;
      waits(theirs, peer);
      mine.send(peer, chunk(0), channel);
      theirs.receive(actor, chunk(0), channel);
      made.step(peer, there) = theirs;
    }
    made.step(actor, lane) = mine;
  }
  return made.schedule();
}

/// A step began, or a send met its receive.
struct Happened {
  enum class What : std::uint8_t { begins, meets } what = What::begins;
  OpPlace place, other;
  std::int64_t when = 0;
  std::uint64_t trail = 0;

  bool operator==(const Happened&) const = default;
  std::string text() const {
    return fmt::format("{} lane {} step {} operation {} with lane {} step {} operation {} at {} after {:x}",
                       what == What::begins ? "begins" : "meets", place.lane, place.step, place.op, other.lane,
                       other.step, other.op, when, trail);
  }
};

/// A handler that records what happens. Trails work as in Run: the history that leads to a lane's present step; an
/// operation that takes no time does not change it.
class Recorder {
 public:
  Recorder(std::size_t n_lanes, std::uint64_t seed, bool at_once) : seed_(seed), at_once_(at_once), trails_(n_lanes) {}

  template <class Runner>
  void go(Runner& runner) {
    op_done_ = [&](LaneNumber lane) { runner.op_done(lane); };
    is_last_ = [&](LaneNumber lane) { return runner.is_last(lane); };
    step_ = [&](LaneNumber lane) { return runner.step(lane); };
    runner.run_ready();
    while (!events_.empty()) {
      const auto next = events_.begin();
      now_ = next->first;
      const std::function<void()> event = next->second;
      events_.erase(next);
      event();
      runner.run_ready();
    }
    for (LaneNumber lane = 0; lane < trails_.size(); ++lane) reached.push_back(runner.step(lane));
  }

  using Note = Bytes;
  Bytes note(const Op&) const { return {}; }
  std::uint64_t connection(Actor self, const Op& op) const { return connection_key(self, op); }
  void begins(LaneNumber lane) {
    all.push_back({Happened::What::begins, {lane, step_(lane), 0}, {}, now_, trails_[lane].past});
  }
  void woken(LaneNumber lane, LaneNumber by) { trails_[lane] = trails_[by]; }
  void left(std::uint32_t, OpPlace, const Bytes&, LaneNumber, std::uint32_t& /*kept*/) {}
  void matched(const Message<Bytes>& message, std::uint32_t& /*kept*/) {
    all.push_back({Happened::What::meets, message.sender, message.receiver, now_, 0});
    const LaneNumber from = message.sender.lane, to = message.receiver.lane;
    if (at_once_) {
      op_done_(from);
      op_done_(to);
      return;
    }
    const auto time =
        static_cast<std::int64_t>(splitmix(seed_ + from * 1000003 + static_cast<unsigned>(message.sender.step)) % 3);
    events_.emplace(now_ + time, [=, this] {
      if (is_last_(to)) trails_[to] = trails_[from];
      end(to);
      end(from);
    });
  }
  void local(OpPlace place, const Op& op) {
    if (op.time.count() == 0) return end(place.lane);
    events_.emplace(now_ + op.time.count(), [=, this] { end(place.lane); });
  }

  std::vector<Happened> all;
  std::vector<int> reached;  ///< [lane] the step

 private:
  struct Trail {
    std::int64_t at = 0;
    std::uint64_t past = 0;
  };

  void end(LaneNumber lane) {
    Trail& trail = trails_[lane];
    if (is_last_(lane) && trail.at < now_) {
      trail.past = splitmix(trail.past + static_cast<std::uint64_t>(now_));
      if (!at_once_) trail.past += lane;
      trail.at = now_;
    }
    op_done_(lane);
  }

  std::uint64_t seed_;
  bool at_once_;  // both ends of a message are done when they meet, as in the proof; trails mean nothing then
  std::vector<Trail> trails_;
  std::multimap<std::int64_t, std::function<void()>> events_;  // those of one instant in the order they were added
  std::int64_t now_ = 0;
  std::function<void(LaneNumber)> op_done_;
  std::function<bool(LaneNumber)> is_last_;
  std::function<int(LaneNumber)> step_;
};

/// A handler that keeps with each connection a number of its own, and checks what it finds there. Messages take no
/// time; what is local ends when the test says so.
class Keeper {
 public:
  explicit Keeper(int lanes) : lanes_(static_cast<unsigned>(lanes)) {}

  template <class Runner>
  void drive(Runner& runner) {
    op_done_ = [&](LaneNumber lane) { runner.op_done(lane); };
  }

  using Note = std::uint32_t;
  std::uint32_t note(const Op& op) const { return op.channel; }
  std::uint64_t connection(Actor self, const Op& op) const { return connection_key(self, op); }
  void begins(LaneNumber) {}
  void woken(LaneNumber, LaneNumber) {}
  void left(std::uint32_t, OpPlace place, std::uint32_t channel, LaneNumber, std::uint32_t& kept) {
    see(place.lane, channel, kept);
  }
  void matched(const Message<Note>& message, std::uint32_t& kept) {
    see(message.sender.lane, message.channel, kept);
    op_done_(message.sender.lane);
    op_done_(message.receiver.lane);
  }
  void local(OpPlace, const Op&) {}

  /// A connection's number; each sender has one receiver only. Channels have 16 bits.
  static std::uint32_t number(std::uint32_t sender, std::uint32_t channel) { return sender << 16 | channel; }

  std::set<std::uint32_t> stored;  ///< the connections with which something was kept
  std::set<std::uint32_t> found;   ///< where it was found later
  std::set<std::uint32_t> lost;    ///< where it was not

 private:
  void see(LaneNumber sender, std::uint32_t channel, std::uint32_t& kept) {
    const std::uint32_t own = number(sender / lanes_, channel);
    CAPTURE(own);
    const bool is_new = stored.insert(own).second;
    if (kept != nothing_kept) {
      CHECK(kept == own);
      CHECK_FALSE(is_new);
      found.insert(own);
    } else if (!is_new) {
      lost.insert(own);
    }
    kept = own;
  }

  unsigned lanes_;
  std::function<void(LaneNumber)> op_done_;
};

}  // namespace

TEST_CASE("a run reads each step once, however many lanes wait for each other") {
  for (const Direction direction : {Direction::up, Direction::down, Direction::both}) {
    for (const int lanes : {1, 8, 64, 1024}) {
      CAPTURE(static_cast<int>(direction));
      CAPTURE(lanes);
      const auto calls = std::make_shared<std::int64_t>(0);
      const Schedule schedule = counted(neighbors(lanes, lanes < 1024 ? 32 : 8, direction, true), calls);
      const CheckedSchedule checked = check(schedule);
      *calls = 0;
      run(star(2, {.bandwidth = 1_GBps, .latency = 1ns}), checked, {});
      CHECK(*calls >= steps_of(schedule));
      CHECK(static_cast<double>(*calls) <= 1.1 * static_cast<double>(steps_of(schedule)));
    }
  }
}

TEST_CASE("the proof reads a step as often with 1024 lanes that wait for each other as with one lane") {
  for (const bool messages : {false, true}) {
    // check() reads steps for what they name and in which order, and in an untimed run that follows the values.
    const double readings = 2;
    for (const Direction direction : {Direction::up, Direction::down, Direction::both}) {
      for (const int lanes : {1, 8, 64, 1024}) {
        CAPTURE(messages);
        CAPTURE(static_cast<int>(direction));
        CAPTURE(lanes);
        const auto calls = std::make_shared<std::int64_t>(0);
        const Schedule schedule = counted(neighbors(lanes, lanes < 1024 ? 32 : 4, direction, messages), calls);
        check(schedule);
        const double steps = readings * static_cast<double>(steps_of(schedule));
        CHECK(static_cast<double>(*calls) >= steps);
        CHECK(static_cast<double>(*calls) <= 1.1 * steps);
      }
    }
  }
}

TEST_CASE("lanes that wait begin as if all of them checked their waits again after every step") {
  constexpr int thousands = ringsim::test::sanitized ? 1 : 3;
  int finished = 0, stuck = 0;
  for (std::uint64_t seed = 1; seed <= 1000 * thousands; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const bool at_once = draw.once_in(3);
    const auto calls = std::make_shared<std::int64_t>(0);
    const Schedule schedule = random_schedule(draw, draw.once_in(3));
    const auto n_lanes = static_cast<std::size_t>(schedule.actors) * static_cast<std::size_t>(schedule.lanes);
    const Schedule watched = counted(schedule, calls);

    Recorder expected(n_lanes, seed, at_once), found(n_lanes, seed, at_once);
    naive::Lanes<Recorder> reference(schedule, expected);
    expected.go(reference);
    LaneRunner<Recorder> lanes(watched, 0, found);
    found.go(lanes);

    const std::size_t n = std::min(expected.all.size(), found.all.size());
    for (std::size_t i = 0; i < n; ++i) {
      if (at_once) expected.all[i].trail = found.all[i].trail = 0;
      if (found.all[i] != expected.all[i]) FAIL("found ", found.all[i].text(), ", expected ", expected.all[i].text());
    }
    REQUIRE(found.all.size() == expected.all.size());
    REQUIRE(found.reached == expected.reached);
    REQUIRE(lanes.steps_done() == std::accumulate(found.reached.begin(), found.reached.end(), std::int64_t{0}));
    (lanes.finished() ? finished : stuck) += 1;
    // Each step that a lane reached is read once, also one that waits forever.
    std::int64_t waiting = 0;
    for (LaneNumber lane = 0; lane < lanes.n_lanes(); ++lane) waiting += lanes.is_through(lane) ? 0 : 1;
    REQUIRE(*calls == lanes.steps_done() + waiting);
  }
  CHECK(finished > 333 * thousands);
  CHECK(stuck > 100 * thousands);
}

TEST_CASE("a step waits for several lanes, for none of their steps, and for a lane that has ended") {
  // Lane 0 ends after 1 ps. Lane 1 waits for it though it has ended, lane 2 for 0 steps, lane 3 for all of them.
  WrittenSchedule t(barrier(1), 1, 4, 1);
  t.step(0, 0).compute(1_ps);
  t.step(0, 1).compute(5_ps);
  t.step(0, 1).wait(0, 1);
  Step& starts = t.step(0, 2);
  starts.wait(0, 0);
  starts.wait(2, 0);
  starts.compute(3_ps);
  Step& joins = t.step(0, 3);
  joins.wait(0, 1);
  joins.wait(1, 2);
  joins.wait(2, 1);
  joins.wait(1, 1);
  joins.compute(10_ps);
  t.like.collective.before = t.like.collective.after = [](Actor, Buffer, std::uint32_t) { return Content{}; };
  const Timeline timeline = run(star(1, {.bandwidth = 1_GBps}), check(t.schedule()), {});
  CHECK(timeline.duration() == 15_ps);  // 5 of lane 1, 10 of lane 3
}

TEST_CASE("lanes of one actor that wait for each other in a cycle are reported as a deadlock") {
  WrittenSchedule t(barrier(1), 1, 3, 1);
  t.like.collective.before = t.like.collective.after = [](Actor, Buffer, std::uint32_t) { return Content{}; };
  for (Lane lane = 0; lane < 3; ++lane) t.step(0, lane).wait((lane + 1) % 3, 1);
  CHECK(verdict(t) ==
        "schedule by hand barrier of 1 ranks: rank 0, lane 0, step 0 waits for another lane; rank 0, lane 1, step 0 "
        "waits for another lane; rank 0, lane 2, step 0 waits for another lane; this leads back to rank 0, lane 0: a "
        "cycle of waits\n  hint: the schedule cannot finish with any order of its messages");
}

// Mailboxes are cleared when there are 1024 and 4 for each of the 4 lanes, 1040, and one more is needed. 750 channels
// in both directions are 1500 connections. Lane 0 of both actors goes through them upwards, which clears once and
// leaves those of the last channels; on its way back down it finds these, and has lost others. A send and a receive on
// lane 1 wait all the while: where something waits, nothing is cleared, though the mailbox moves.
TEST_CASE("what a handler keeps with a connection is found there or lost, and never found with another one") {
  constexpr int channels = 750, lanes = 2, waiting = 2000;
  WrittenSchedule t(barrier(2), 2, lanes, 1);
  const auto exchange = [&](Lane lane, int channel) {
    for (Actor actor = 0; actor < 2; ++actor) {
      Step& step = t.step(actor, lane);
      step.send(1 - actor, chunk(0), channel);
      step.receive(1 - actor, chunk(0), channel);
    }
  };
  const auto twice = [&](int channel) {  // the second finds what the first has kept
    exchange(0, channel);
    exchange(0, channel);
  };
  for (int channel = 0; channel < channels; ++channel) twice(channel);
  for (int channel = channels; channel-- > 0;) twice(channel);
  const int paused = static_cast<int>(t.steps[0][0].size());
  for (Actor actor = 0; actor < 2; ++actor) t.step(actor).compute(1_ps);
  // The last ones before the pause: they still have mailboxes, so that there is something to forget.
  for (int channel = 0; channel < 100; ++channel) twice(channel);
  exchange(1, waiting);
  exchange(1, waiting);
  t.steps[1][1].back().wait(0, paused);
  const Schedule schedule = t.schedule();

  for (const int slots : {0, 1}) {
    CAPTURE(slots);
    Keeper keeper(lanes);
    LaneRunner<Keeper> runner(schedule, slots, keeper);
    keeper.drive(runner);
    runner.run_ready();
    for (const LaneNumber first : {0U, 2U}) {
      REQUIRE(runner.step(first) == paused);
      REQUIRE(runner.is_through(first + 1));
    }
    CHECK(keeper.stored.size() == 2 * channels + 2);
    CHECK_FALSE(keeper.found.empty());
    CHECK_FALSE(keeper.lost.empty());
    for (const std::uint32_t sender : {0U, 1U}) {
      CHECK(keeper.found.count(Keeper::number(sender, waiting)) == 1);
      CHECK(keeper.lost.count(Keeper::number(sender, waiting)) == 0);
    }

    // Keeper refuses to find something where it has stored nothing since.
    runner.forget_kept();
    keeper.stored.clear();
    keeper.found.clear();
    for (const LaneNumber first : {0U, 2U}) runner.op_done(first);
    runner.run_ready();
    CHECK(runner.finished());
    CHECK(keeper.stored.size() == 2 * 100);
    CHECK(keeper.found == keeper.stored);
  }
}

// Actor 0 ends its steps after 5 and 8 ps. Actor 1 begins one lane after the first of them (to 7), another after the
// second and its own first lane (to 12), a third after all of that (to 13).
TEST_CASE("a step waits for an actor of its own process, and for no other") {
  WrittenSchedule t(barrier(2), 2, 3, 1);
  t.like.collective.before = t.like.collective.after = [](Actor, Buffer, std::uint32_t) { return Content{}; };
  t.step(0, 0).compute(5_ps);
  t.step(0, 0).compute(3_ps);
  Step& first = t.step(1, 0);
  first.wait(0, 1, 0);
  first.compute(2_ps);
  Step& second = t.step(1, 1);
  second.wait(0, 2, 0);
  second.wait(0, 1);
  second.compute(4_ps);
  Step& third = t.step(1, 2);
  third.wait(1, 1, 1);  // itself, by name
  third.compute(1_ps);
  Schedule schedule = t.schedule();
  const auto verdict_of_it = [](const Schedule& it) {
    try {
      check(it);
      return std::string("accepted");
    } catch (const ScheduleError& error) {
      return error.message();
    }
  };
  CHECK(verdict_of_it(schedule) == "rank 1, lane 0, step 0: waits for rank 0, which belongs to another process");
  schedule.process = [](Actor) { return 0; };
  CHECK(run(star(2, {.bandwidth = 1_GBps}), check(schedule), {}).duration() == 13_ps);
  schedule.process = [](Actor actor) { return actor; };
  CHECK(verdict_of_it(schedule) == "rank 1, lane 0, step 0: waits for rank 0, which belongs to another process");
}

}  // namespace lanes_test
