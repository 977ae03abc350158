// Calls that use one thing at the same time are found, without a run.
#include "sim/program/call_meetings.hpp"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "tests/support/tiny.hpp"

namespace call_meetings_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

SimTime at(Picoseconds time) { return SimTime{time}; }

CallUses::Use use(std::int64_t of, Picoseconds first, Picoseconds last) { return {of, first, last}; }

/// Two devices and a cable: links 0 and 1.
Topology cable() {
  TopologyBuilder builder;
  for (const char* name : {"gpu0", "gpu1"}) builder.add_gpu(name);
  builder.add_cable(NodeId{0}, NodeId{1}, {.bandwidth = 10_GBps});
  return builder.build();
}

/// Calls of kinds of their own, and which of them have met.
struct Calls {
  Topology net = cable();
  std::set<int> met;
  SimTime horizon{};
  std::vector<CallUses> uses = std::vector<CallUses>(8);  // [call]
  CallMeetings meetings{net, [this](int call) { met.insert(call); }, [this] { return horizon; }};

  explicit Calls(Picoseconds slack = Picoseconds{0}) { meetings.begin(4, slack); }
  void know(int call, SimTime base) {
    CallUses& its = uses[static_cast<std::size_t>(call)];
    its.kind = call;
    its.set_bounds();
    meetings.known(its, call, base);
  }
};

using Numbers = std::set<int>;

}  // namespace

TEST_CASE("two calls meet if they use one link, connection or poster at the same time, and at no other") {
  for (std::vector<CallUses::Use> CallUses::*thing : {&CallUses::links, &CallUses::connections, &CallUses::posters}) {
    Calls calls;
    calls.uses[0].*thing = {use(0, 0us, 10us), use(3, 0us, 90us)};
    calls.uses[1].*thing = {use(0, 0us, 10us)};
    calls.uses[2].*thing = {use(1, 0us, 90us)};
    calls.uses[3].*thing = {use(0, 0us, 10us)};
    calls.know(0, at(0us));
    calls.know(1, at(10us));  // begins when the other has ended
    calls.know(2, at(0us));   // uses something else
    CHECK(calls.met == Numbers{});
    calls.know(3, at(19us));  // the last microsecond of call 1
    CHECK(calls.met == Numbers{1, 3});
  }
}

TEST_CASE("a link, a connection and a poster of one number are different things") {
  Calls calls;
  calls.uses[0].links = {use(1, 0us, 10us)};
  calls.uses[1].connections = {use(1, 0us, 10us)};
  calls.uses[2].posters = {use(1, 0us, 10us)};
  for (int call = 0; call < 3; ++call) calls.know(call, at(0us));
  CHECK(calls.met == Numbers{});
}

TEST_CASE("uses that overlap by the slack do not meet") {
  for (const Picoseconds overlap : {Picoseconds{2}, Picoseconds{3}}) {
    Calls calls(Picoseconds{2});
    calls.uses[0].links = calls.uses[1].links = {use(0, 0us, 10us)};
    calls.know(0, at(0us));
    calls.know(1, at(10us - overlap));
    CHECK(calls.met == (overlap == Picoseconds{2} ? Numbers{} : Numbers{0, 1}));
  }
}

TEST_CASE("a known call meets a simulated one that began before or begins after it") {
  const Traffic crossing{.link = LinkId{0}, .begin = at(5us), .end = at(6us), .bytes = 1};
  SUBCASE("traffic after the call") {
    Calls calls;
    calls.uses[0].links = {use(0, 0us, 10us)};
    calls.know(0, at(0us));
    calls.meetings.crossed(crossing);
    CHECK(calls.met == Numbers{0});
  }
  SUBCASE("traffic on another link, or at another time") {
    Calls calls;
    calls.uses[0].links = {use(1, 0us, 10us)};
    calls.uses[1].links = {use(0, 0us, 5us)};
    calls.uses[2].links = {use(0, 6us, 9us)};
    for (int call = 0; call < 3; ++call) calls.know(call, at(0us));
    calls.meetings.crossed(crossing);
    CHECK(calls.met == Numbers{});
  }
  SUBCASE("traffic before the call") {
    Calls calls;
    calls.uses[0].links = {use(0, 0us, 1us)};
    calls.uses[1].links = {use(0, 1us, 2us)};
    calls.meetings.crossed(crossing);
    calls.know(1, at(5us));
    CHECK(calls.met == Numbers{});
    calls.know(0, at(5us));
    CHECK(calls.met == Numbers{0});
  }
}

TEST_CASE("traffic finds a long use behind short ones that began later") {
  Calls calls;
  calls.uses[0].links = {use(0, 0us, 90us)};
  calls.uses[1].links = calls.uses[2].links = {use(0, 0us, 1us)};
  calls.know(0, at(0us));
  calls.know(1, at(10us));
  calls.know(2, at(20us));
  calls.met.clear();  // 1 and 2 met 0
  calls.meetings.crossed({.link = LinkId{0}, .begin = at(50us), .end = at(51us), .bytes = 1});
  CHECK(calls.met == Numbers{0});
}

TEST_CASE("traffic meets the calls that use its link at that moment, in whatever order they became known") {
  // 200 calls of 10 us on one of two links, each known at a place of its own in the order of time.
  Calls calls;
  calls.uses.resize(200);
  const auto begin_of = [](int call) { return call * 3us; };
  for (int i = 0; i < 200; ++i) {
    const int call = i * 77 % 200;
    calls.uses[static_cast<std::size_t>(call)].links = {use(call % 2, 0us, call % 50 == 0 ? 100us : 10us)};
    calls.know(call, at(begin_of(call)));
  }
  for (int when = 0; when < 700; when += 7) {
    calls.met.clear();
    calls.meetings.crossed({.link = LinkId{0}, .begin = at(when * 1us), .end = at((when + 2) * 1us), .bytes = 1});
    Numbers expected;
    for (int call = 0; call < 200; call += 2)
      if (begin_of(call) < (when + 2) * 1us && begin_of(call) + (call % 50 == 0 ? 100us : 10us) > when * 1us)
        expected.insert(call);
    CHECK(calls.met == expected);
  }
}

TEST_CASE("a launch meets calls whose messages fill the actor's slots on that stream, or that it posts") {
  Calls calls;
  calls.uses[0].senders = calls.uses[0].connections = {use(1, 0us, 10us)};
  calls.uses[1].posters = {use(2, 0us, 10us)};
  for (int call = 0; call < 2; ++call) calls.know(call, at(0us));
  calls.meetings.launched(1, 1, at(5us));   // another stream
  calls.meetings.launched(0, 3, at(5us));   // another actor
  calls.meetings.launched(0, 1, at(10us));  // later
  CHECK(calls.met == Numbers{});
  calls.meetings.launched(0, 1, at(9us));
  CHECK(calls.met == Numbers{0});
  calls.meetings.launched(1, 2, at(9us));
  CHECK(calls.met == Numbers{0, 1});
}

TEST_CASE("a known call meets a simulated one that its receiver, or its poster, has not ended") {
  Calls calls;
  calls.uses[0].receivers = {{1, 3us}};
  calls.uses[0].connections = {use(7, 3us, 10us)};
  calls.uses[1].posters = {use(2, 0us, 10us)};
  calls.meetings.launched(0, 1, at(0us));
  calls.meetings.ended(0, 1, at(8us));
  calls.know(0, at(5us));  // its message is sent at 8 us
  CHECK(calls.met == Numbers{});
  calls.uses[2] = calls.uses[0];
  calls.know(2, at(4us));
  CHECK(calls.met.contains(2));
  calls.met.clear();
  calls.meetings.launched(1, 2, at(9us));
  calls.know(1, at(20us));  // it is still open
  CHECK(calls.met.contains(1));
}

TEST_CASE("calls that are over before the horizon are forgotten, others are not") {
  Calls calls;
  calls.uses[0].links = {use(0, 0us, 1000us)};
  calls.uses[1].links = {use(1, 0us, 1us)};
  calls.uses[2].links = {use(0, 0us, 1us)};
  calls.know(0, at(0us));
  for (int i = 1; i <= 100; ++i) {  // each is over when the next begins
    calls.horizon = at(i * 2us);
    calls.know(1, at(i * 2us));
  }
  CHECK(calls.met == Numbers{});
  calls.know(2, at(500us));
  CHECK(calls.met == Numbers{0, 2});
  calls.met.clear();
  calls.meetings.crossed({.link = LinkId{0}, .begin = at(600us), .end = at(601us), .bytes = 1});
  CHECK(calls.met == Numbers{0});
}

}  // namespace call_meetings_test
