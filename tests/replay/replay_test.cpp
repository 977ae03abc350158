// Schedules carried out on real memories: the second reader of schedules, whose verdict is a number right or wrong.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/ring.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/naive/shuffled_exchange.hpp"
#include "tests/support/written_schedule.hpp"
#include "validate/replay/actor_run.hpp"
#include "validate/replay/memory.hpp"
#include "validate/replay/replay.hpp"
#include "validate/results/result.hpp"

namespace replay_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace std::chrono_literals;
using ringsim::test::replay_shuffled;
using ringsim::test::Replayed;

namespace {

/// "right", or what is not.
std::string outcome(const Schedule& schedule, std::uint64_t seed) {
  const Replayed replayed = replay_shuffled(schedule, seed);
  if (!replayed.finished) return "stuck: " + replayed.open;
  for (const replay::Verdict& verdict : replayed.verdicts)
    if (verdict.first) return fmt::format("{} wrong, first {}", verdict.wrong, to_string(*verdict.first));
  return "right";
}

const char* star_of_three = R"({
  "version": 1, "name": "three",
  "topology": {"kind": "star", "ranks": 3, "link": {"bandwidth": "1 GB/s", "latency": "0 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 B"}
})";

/// An exchange that has nothing to wait for: runs of one actor alone, each of which takes a given time.
class Alone : public Exchange {
 public:
  explicit Alone(std::vector<std::chrono::nanoseconds> takes) : takes_(std::move(takes)) {}
  void start_send(const Connection&, std::span<const float>, Ticket) override { FAIL("nobody to send to"); }
  void start_receive(const Connection&, std::span<float>, Ticket) override { FAIL("nobody to receive from"); }
  void start_compute(std::chrono::nanoseconds, Ticket ticket) override { started_.push_back(ticket); }
  void wait_some(std::vector<Ticket>& done) override {
    if (started_.empty() || run_ > takes_.size()) throw EnvironmentError("nothing came in time");
    now_ += takes_[run_ - 1];
    done.swap(started_);
  }
  Moment barrier() override {
    ++run_;
    return now_ += 1h;  // what lies between runs does not count
  }
  Moment now() const override { return now_; }

 private:
  std::vector<std::chrono::nanoseconds> takes_;
  std::vector<Ticket> started_;
  std::size_t run_ = 0;
  Moment now_{};
};

/// One rank, which computes.
Schedule computing() {
  WrittenSchedule t(all_reduce(1, 4_B), 1, 1, 1);
  t.step(0).compute(Picoseconds{1});
  return t.schedule();
}

}  // namespace

TEST_CASE("every algorithm comes out right to the bit at 2 to 8 ranks, in random orders, with and without buffers") {
  std::set<std::string> names;
  for (int ranks = 2; ranks <= 8; ++ranks) {
    // Chunks of two sizes; and fewer elements than ranks, so that some chunks are empty.
    for (const Bytes elements : {Bytes{5 * ranks + 3}, Bytes{ranks - 1}}) {
      for (const Schedule& made : every_algorithm(ranks, elements)) {
        const Schedule schedule = stretched(made, element_bytes);
        names.insert(schedule.algorithm);
        for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
          CAPTURE(ranks);
          CAPTURE(elements.count);
          CAPTURE(schedule.algorithm);
          CAPTURE(to_string(schedule.collective.op));
          CAPTURE(seed);
          CHECK(outcome(schedule, seed) == "right");
        }
      }
    }
  }
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == "file") continue;  // whatever a file says
    const auto is_it = [&](const std::string& name) {
      return name == algorithm.name || name.starts_with(algorithm.name + ' ');
    };
    CHECK_MESSAGE(std::any_of(names.begin(), names.end(), is_it), algorithm.name);
  }
}

TEST_CASE("a wrong number is named by rank, buffer, chunk, element, expected and found") {
  // Two ranks exchange their one chunk of three elements, but rank 1 overwrites where it should add.
  WrittenSchedule t(all_reduce(2, 12_B), 2, 1, 1);
  t.like.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::of_sizes({12_B});
  const Region scratch{Buffer::scratch, 0, 1};
  for (const Actor rank : {0, 1}) {
    Step& exchange = t.step(rank);
    exchange.send(1 - rank, chunk(0));
    exchange.receive(1 - rank, scratch);
    if (rank == 0)
      t.step(rank).add(scratch, chunk(0));
    else
      t.step(rank).copy(scratch, chunk(0));
  }
  const float mine = contribution(2, 0, 0, 0), sum = mine + contribution(2, 1, 0, 0);
  for (const std::uint64_t seed : {0U, 1U})
    CHECK(outcome(t.schedule(), seed) ==
          fmt::format("3 wrong, first rank 1: data[0], element 0: expected {}, found {}", sum, mine));
}

TEST_CASE("of a ring with one operation changed, replay sees what the checker would refuse") {
  const auto broken = [](auto change) {
    WrittenSchedule t(stretched(ring_all_reduce(4, 16_B), element_bytes));
    change(t.steps);
    return outcome(t.schedule(), 1);
  };
  CHECK(broken([](auto&) {}) == "right");
  // Rank 2 adds its own in twice: what it should pass on in the second half comes to it once more.
  const std::string twice = broken([](auto& steps) { steps[2][0][3].ops[1].what = Do::receive_add; });
  CHECK(twice.find("wrong, first rank") != std::string::npos);
  // What rank 1 sends last is another chunk, which it does not have to give.
  const std::string other = broken([](auto& steps) { steps[1][0][5].ops[0].region.first ^= 2U; });
  CHECK(other.find("wrong, first rank 2: data[") != std::string::npos);
  // Nobody sends the last message of rank 3 to rank 0.
  const std::string silent = broken([](auto& steps) { steps[3][0][5].ops.erase(steps[3][0][5].ops.begin()); });
  CHECK(silent == "stuck: lane 0, step 5: receive data[2] from rank 3, channel 0");
}

TEST_CASE("what was never written is poison: passed on, it shows as not a number") {
  // A broadcast in which rank 0, the root, hears from rank 1 instead.
  WrittenSchedule t(broadcast(2, 8_B, 0), 2, 1, 1);
  t.step(1).send(0, chunk(0));
  t.step(0).receive(1, chunk(0));
  CHECK(outcome(t.schedule(), 0) ==
        fmt::format("2 wrong, first rank 0: data[0], element 0: expected {}, found nan", contribution(2, 0, 0, 0)));
}

TEST_CASE("an operand elsewhere is read, not written, and two may add to one chunk at a time") {
  // Rank 0 keeps its data and puts the sum with rank 1's into the output; then both others add to that.
  WrittenSchedule t(reduce(3, 4_B, 0), 3, 1, 1);
  const Region output{Buffer::output, 0, 1};
  t.like.layout[static_cast<std::size_t>(Buffer::output)] = Layout::of_sizes({4_B});
  t.like.collective.after = [](Actor rank, Buffer buffer, std::uint32_t) {
    if (rank != 0) return Content{};
    if (buffer == Buffer::data) return Content{Content::Who::one, 0, 0};
    return buffer == Buffer::output ? Content{Content::Who::all, -1, 0} : Content{};
  };
  t.step(0).receive_add(1, chunk(0), output, 0);
  t.step(0).receive_add(2, output);
  t.step(1).send(0, chunk(0));
  t.step(2).send(0, chunk(0));
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) CHECK(outcome(t.schedule(), seed) == "right");
}

TEST_CASE("contributions are whole, from 1 on, and their sum stays within what float32 holds exactly") {
  for (const int ranks : {2, 8, 4096, 4097, 1 << 24}) {
    CAPTURE(ranks);
    float most = 0;
    bool whole = true;
    for (std::int64_t element = 0; element < 20000; ++element) {
      const float value = contribution(ranks, 1, 3, element);
      whole = whole && value >= 1 && value == std::floor(value);
      most = std::max(most, value);
    }
    CHECK(whole);
    CHECK(static_cast<double>(most) * ranks <= 16777216.0);  // 2^24
    if (ranks <= 4096) CHECK(most == 4096);
  }
  // Another rank, chunk or element is another number (but by chance, once in 4096).
  CHECK(contribution(8, 1, 3, 5) != contribution(8, 2, 3, 5));
  CHECK(contribution(8, 1, 3, 5) != contribution(8, 1, 4, 5));
  CHECK(contribution(8, 1, 3, 5) != contribution(8, 1, 3, 6));
}

TEST_CASE("warm-ups are checked but not timed; a run takes as long as its slowest actor") {
  const Schedule schedule = computing();
  Alone first({90ms, 1ms, 4ms, 2ms}), second({90ms, 2ms, 3ms, 9ms});
  const Repeats repeats{.warmups = 1, .timed = 3};
  std::vector<ActorRecord> records{replay_actor(schedule, 0, first, repeats),
                                   replay_actor(schedule, 0, second, repeats)};
  CHECK(records[0].times == std::vector<std::chrono::nanoseconds>{1ms, 4ms, 2ms});
  records[1].wrong = 2;
  records[1].first_wrong = "rank 1: ...";
  const Measured measured = combine(records);  // the slowest: 2, 4, 9 ms
  CHECK(measured.min == Picoseconds(2ms));
  CHECK(measured.median == Picoseconds(4ms));
  CHECK(measured.max == Picoseconds(9ms));
  CHECK(measured.wrong == 2);
  CHECK(measured.first_wrong == "rank 1: ...");
  records = {{.times = {1ms, 4ms, 2ms, 8ms}, .wrong = 0, .first_wrong = ""}};
  CHECK(combine(records).median == Picoseconds(3ms));  // between 2 and 4
}

TEST_CASE("what was open when nothing came in time is named") {
  Alone exchange({1ms});
  CHECK_THROWS_WITH_AS(replay_actor(computing(), 0, exchange, {.warmups = 0, .timed = 2}),
                       "nothing came in time (in run 2 of 2; still pending: lane 0, step 0: compute)",
                       EnvironmentError);
}

TEST_CASE("a schedule of elements is the one that is simulated: chunks whole, and the form says so") {
  const Scenario scenario = ScenarioFile::parse(star_of_three, "three.json").point(0);
  const std::vector<PlacedSchedule> schedules = schedules_of_elements(scenario, element_bytes);
  const CheckedSchedule& schedule = schedules.front().schedule;
  CHECK_NOTHROW(require_replayable(schedule));
  CHECK(schedule.schedule().collective.bytes == 40_B);
  // Ten elements on three ranks: 3, 3 and 4; by single bytes it would be 13, 13 and 14.
  CHECK(schedule.schedule().layout[0] == Layout::of_sizes({12_B, 12_B, 16_B}));
  const Result result = results_of(scenario, {.schedules = &schedules}).front();
  CHECK(result.prediction.time ==
        4 * Picoseconds(16ns));  // the longest chunk is on its way in each of the 4 steps, at 1 GB/s
  REQUIRE(result.form);
  CHECK(result.form->because == std::vector<std::string>{"chunks lie on whole elements, not on single bytes"});
  // Where they divide evenly the two schedules are one.
  const Scenario even = ScenarioFile::parse(star_of_three, "three.json", {"collective.bytes=48 B"}).point(0);
  const std::vector<PlacedSchedule> same = schedules_of_elements(even, element_bytes);
  CHECK(results_of(even, {.schedules = &same}).front().form->holds());
}

TEST_CASE("what cannot be replayed is refused, with the reason") {
  const Scenario odd = ScenarioFile::parse(star_of_three, "three.json", {"collective.bytes=41 B"}).point(0);
  CHECK_THROWS_WITH_AS(
      schedules_of_elements(odd, element_bytes),
      "three.json: /collective/bytes: expected a multiple of 4 bytes, found 41 B\n  hint: each element has 4 bytes",
      InputError);
  CHECK_THROWS_WITH_AS(require_replayable(check(ring_all_reduce(4, 6_B))),
                       "expected chunks of whole elements of 4 bytes, found data[0] of 1 bytes", InputError);
  WrittenSchedule sizes(stretched(ring_all_reduce(2, 2_B), element_bytes));
  sizes.like.names_regions = false;
  CHECK_THROWS_WITH_AS(require_replayable(check(sizes.schedule())),
                       "expected a schedule with regions, found one with sizes only\n  hint: GOAL has no regions, so "
                       "results cannot be checked",
                       InputError);
  // Each of two ranks sends before it receives: somebody has to run ahead.
  WrittenSchedule ahead(send_recv(2, 4_B), 2, 1, 0);
  for (const Buffer buffer : {Buffer::input, Buffer::output})
    ahead.like.layout[static_cast<std::size_t>(buffer)] = Layout::of_sizes({4_B});
  for (const Actor rank : {0, 1}) {
    ahead.step(rank).send(1 - rank, {Buffer::input, 0, 1});
    ahead.step(rank).receive(1 - rank, {Buffer::output, 0, 1});
  }
  CHECK_THROWS_WITH_AS(require_replayable(check(ahead.schedule())),
                       "expected a schedule in which no rank sends before the receiver is ready, found one that needs "
                       "1 slots per connection\n  hint: a replay has no slots",
                       InputError);
}

}  // namespace replay_test
