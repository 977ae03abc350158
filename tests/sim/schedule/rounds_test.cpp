// Rounds of a schedule, against runs in which nothing but latency takes time.
#include "sim/schedule/rounds.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "algorithms/ring.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/written_schedule.hpp"
#include "topologies/catalog.hpp"

namespace rounds_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

using Seen = std::tuple<std::int64_t, Actor, Actor>;  // round, from, to

std::vector<Seen> seen_in(const std::vector<RoundMessage>& messages) {
  std::vector<Seen> seen;
  for (const RoundMessage& message : messages) seen.emplace_back(message.round, message.from, message.to);
  std::sort(seen.begin(), seen.end());
  return seen;
}

/// Empty messages take the latency of a path and nothing else, 2 us on a star with links of 1 us, and share no link for
/// longer than no time: a message that starts after 2 r us is in round r.
std::vector<Seen> simulated(const Schedule& schedule) {
  const int helpers = schedule.actors - schedule.collective.ranks;
  const Topology star = build(Star{schedule.collective.ranks, {.bandwidth = 1_GBps, .latency = 1us}, helpers});
  const Timeline timeline = run(star, check(schedule), {.record_spans = true});
  std::vector<Seen> seen;
  for (const Span& span : timeline.spans) {
    CHECK(span.start.time_since_epoch() % 2us == Picoseconds{0});
    seen.emplace_back(span.start.time_since_epoch() / Picoseconds{2us}, span.from, span.to);
  }
  std::sort(seen.begin(), seen.end());
  return seen;
}

}  // namespace

TEST_CASE("a message's round is the number of latencies after which it starts in a run without bandwidths") {
  for (const int n : {2, 3, 4, 5, 8}) {
    CAPTURE(n);
    for (const Schedule& schedule : every_algorithm(n, Bytes{0})) {
      CAPTURE(schedule.algorithm);
      CHECK(seen_in(rounds_of(schedule)) == simulated(schedule));
    }
  }
}

TEST_CASE("a ring has 2(n-1) rounds of n messages, and adds in the first half") {
  const std::vector<RoundMessage> messages = rounds_of(ring_all_reduce(5, 5_B));
  REQUIRE(messages.size() == 40);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CHECK(messages[i].round == static_cast<int>(i / 5));
    CHECK(messages[i].adds == (i < 20));
    CHECK(messages[i].to == (messages[i].from + 1) % 5);
  }
  CHECK(messages[2].region == chunk(2));  // rank 2 begins with its own chunk
}

TEST_CASE("messages that must leave before they are expected move when they are sent") {
  // Both send, then receive: no one may wait for the receiver to begin.
  Collective c{.op = CollectiveOp::all_to_all, .ranks = 2, .bytes = 2_B};
  c.before = [](Actor r, Buffer b, std::uint32_t i) {
    return b == Buffer::input ? Content{Content::Who::one, r, i} : Content{};
  };
  c.after = [](Actor, Buffer, std::uint32_t) { return Content{}; };
  WrittenSchedule t(c, 2, 1, 0);
  for (const Buffer b : {Buffer::input, Buffer::output})
    t.like.layout[static_cast<std::size_t>(b)] = Layout::near_equal(2_B, 2);
  for (const Actor r : {0, 1}) {
    t.step(r).send(1 - r, {Buffer::input, static_cast<std::uint32_t>(1 - r), 1});
    t.step(r).receive(1 - r, {Buffer::output, static_cast<std::uint32_t>(1 - r), 1});
  }
  CHECK(seen_in(rounds_of(t.schedule())) == std::vector<Seen>{{0, 0, 1}, {0, 1, 0}});
}

}  // namespace rounds_test
