// Several programs in one run, on actors of their own and on shared ones; kernels that collectives slow.
#include <doctest/doctest.h>

#include <deque>
#include <set>
#include <string>
#include <vector>

#include "algorithms/direct.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/program/account.hpp"
#include "sim/program/beside_programs.hpp"
#include "sim/program/slowdown.hpp"
#include "tests/support/tiny.hpp"

namespace beside_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec port{.bandwidth = 10_GBps, .latency = 1us};

std::vector<NodeId> all_of(const Topology& net) { return {net.ranks().begin(), net.ranks().end()}; }

/// One call of a schedule.
Program call_of(const CheckedSchedule& schedule) {
  Program program{.name = schedule.schedule().algorithm,
                  .ranks = schedule.schedule().collective.ranks,
                  .actors = schedule.schedule().actors,
                  .streams = {Program::StreamKind::communication}};
  program.roles.push_back({.streams = {{{.name = "call", .call = 0}}}});
  program.calls.push_back({.name = "call", .schedule = schedule, .members = {}, .variables = {}});
  return program;
}

/// Calls of schedules, each on these actors of a run.
struct Calls {
  std::deque<LoweredProgram> programs;  // whose addresses hold
  std::vector<ProgramsBeside::Part> parts;

  void add(const CheckedSchedule& schedule, std::vector<Actor> actors, Picoseconds start = 0us) {
    programs.emplace_back(check(call_of(schedule)), ProgramsBeside::room_of(4));
    parts.push_back({.program = &programs.back(), .actors = std::move(actors), .start = at(start)});
  }
  ProgramsBeside on(int actors) const { return {parts, actors}; }
};

}  // namespace

TEST_CASE("two programs on ranks of their own take exactly what each takes alone") {
  const Topology net = star(8, port);
  const CheckedSchedule ring = check(ring_all_reduce(4, 40'000'001_B)),
                        pairs = check(direct_pairs(4, 3'000'003_B, true));
  const std::vector<NodeId> low{NodeId{0}, NodeId{1}, NodeId{2}, NodeId{3}},
      high{NodeId{7}, NodeId{6}, NodeId{5}, NodeId{4}};
  Calls calls;
  calls.add(ring, {0, 1, 2, 3});
  calls.add(pairs, {7, 6, 5, 4});
  const ProgramsBeside both = calls.on(8);
  const Timeline found = run(net, both.schedule(), {.placement = all_of(net), .jobs = both.jobs()});
  REQUIRE(found.jobs.size() == 2);
  for (const auto& [job, alone] : {std::pair{found.jobs[0], run(net, ring, {.placement = low})},
                                   std::pair{found.jobs[1], run(net, pairs, {.placement = high})}}) {
    CHECK(job.finish == alone.finish);
    CHECK(job.transfers == alone.transfers);
    CHECK(job.bytes_sent == alone.bytes_sent);
    REQUIRE(job.bottleneck);
    CHECK(job.bottleneck->busy == alone.bottleneck->busy);
    CHECK(job.bottleneck->latency == alone.bottleneck->latency);
  }
  CHECK(found.finish == found.jobs[0].finish);
  CHECK(found.transfers == found.jobs[0].transfers + found.jobs[1].transfers);
}

TEST_CASE("programs that share ports share them by the model, each from its own start") {
  // gpu0 -> gpu1, 10 MB and 5 MB at once: half of 10 GB/s each until 1000 us; then the rest of the first, 5 MB, alone.
  const Topology net = star(2, port);
  const auto message = [](std::int64_t bytes) { return check(direct_pairs(2, {bytes}, false)); };
  const auto run_from = [&](Picoseconds start) {
    Calls calls;
    calls.add(message(10'000'000), {0, 1});
    calls.add(message(5'000'000), {0, 1}, start);
    const ProgramsBeside both = calls.on(2);
    return run(net, both.schedule(), {.placement = all_of(net), .jobs = both.jobs()});
  };
  Timeline found = run_from(0us);
  CHECK(found.jobs[0].finish == at(1502us));
  CHECK(found.jobs[1].finish == at(1002us));
  CHECK(found.jobs[1].bytes_sent == 5'000'000_B);
  // The second from 500 us on: both have 5 MB left and half a port, until 1500 us.
  found = run_from(500us);
  CHECK(found.jobs[0].finish == at(1502us));
  CHECK(found.jobs[1].finish == at(1502us));
  REQUIRE(found.jobs[1].bottleneck);
  CHECK(found.jobs[1].bottleneck->compute == 500us);  // until its start
}

TEST_CASE("programs next to each other keep their steps: actors, chunks, lanes and channels are moved, sizes are not") {
  const std::vector<CheckedSchedule> checked{check(sharded_parameter_server(3, 1001_B, 2)),
                                             check(ring_all_reduce(4, 77_B)), check(direct_pairs(2, 5_B, true))};
  // They share actors, in other orders.
  const std::vector<std::vector<Actor>> actors{{0, 1, 2, 5, 6}, {3, 2, 1, 0}, {4, 3}};
  Calls calls;
  for (std::size_t p = 0; p < checked.size(); ++p) calls.add(checked[p], actors[p], p == 2 ? 7us : 0us);
  const ProgramsBeside whole = calls.on(7);
  const Schedule& all = whole.schedule().schedule();
  std::int64_t operations = 0;
  std::set<int> channels;
  for (std::size_t p = 0; p < checked.size(); ++p) {
    const Schedule& one = calls.programs[p].schedule().schedule();
    operations += checked[p].proof().operations;
    std::set<int> own;
    for (std::size_t a = 0; a < actors[p].size(); ++a) {
      for (Lane lane = 0; lane < one.lanes; ++lane) {
        const auto actor = static_cast<Actor>(a);
        REQUIRE(all.n_steps(actors[p][a], whole.lane(p, lane)) == one.n_steps(actor, lane));
        for (int i = 0; i < one.n_steps(actor, lane); ++i) {
          Step is, was;
          all.step(actors[p][a], whole.lane(p, lane), i, is);
          one.step(actor, lane, i, was);
          REQUIRE(is.ops.size() == was.ops.size());
          CHECK(is.waits.size() == was.waits.size() + (p == 2 && i == 0 ? 1U : 0U));
          for (std::size_t o = 0; o < was.ops.size(); ++o) {
            CHECK(is.ops[o].what == was.ops[o].what);
            if (was.ops[o].peer < 0) continue;
            CHECK(is.ops[o].peer == actors[p][static_cast<std::size_t>(was.ops[o].peer)]);
            CHECK(all.size(is.ops[o].region) == one.size(was.ops[o].region));
            own.insert(is.ops[o].channel);
          }
        }
      }
    }
    for (const int channel : own) CHECK(channels.insert(channel).second);  // none is another part's
  }
  CHECK(whole.schedule().proof().operations == operations);
}

TEST_CASE("channels of streams lie a multiple of the usual numbers of channels apart") {
  for (int n = 2; n <= 6; ++n)
    for (const int channels : {1, 2, 3, 4, 6, 7, 8, 10, 12, 16, 24, 32}) CHECK(channels_apart(n) % channels == 0);
  for (int n = 1; n <= 300; ++n) {
    CHECK(std::int64_t{channels_apart(n)} * n <= all_channels);
    for (int parts = 1; parts <= 40; ++parts)  // those of a program fit into its share
      CHECK(channels_apart(n, channels_apart(parts)) * n <= channels_apart(parts));
  }
}

TEST_CASE("a kernel takes longer just while a call is open, to the picosecond") {
  // Each of two ranks computes 3000 us; from 500 us on a message of 10 MB goes to the other: 1002 us. At 3/2 of the
  // time those 1002 us do the work of 668, so that the kernel ends at 3334 us. Slower without end: the call ends at
  // 1502 us, until then the kernel has done nothing but 500 us of work and 1002 / 1000 us.
  const Topology net = star(2, port);
  Program program = call_of(check(direct_pairs(2, 10'000'000_B, true)));
  program.streams = {Program::StreamKind::compute, Program::StreamKind::communication};
  program.roles = {{.streams = {{{.name = "kernel", .time = 3000us}}, {{.name = "call", .time = 500us, .call = 0}}}}};
  const LoweredProgram lowered(check(program));
  const auto end_at = [&](std::int64_t millionths) {
    Slowdown slowdown(lowered, millionths);
    Accounts accounts(lowered, 0);
    const Timeline found = run(net, lowered.schedule(),
                               {.on_compute =
                                    [&](const ComputeEvent& event) {
                                      accounts.on_compute(event);
                                      slowdown.on_compute(event);
                                    },
                                .longer = [&](const ComputeEvent& event) { return slowdown.longer(event); }});
    CHECK(accounts.of(1).split.compute == found.finish.time_since_epoch());
    return found.finish.time_since_epoch();
  };
  CHECK(end_at(1'000'000) == 3000us);
  CHECK(end_at(1'500'000) == 3334us);
  CHECK(end_at(1'000'000'000) == Picoseconds{1'502'000'000 + 2'500'000'000 - 1'002'000});
  for (const std::int64_t millionths : {1'000'001, 1'037'219, 1'333'333, 7'654'321}) {
    CAPTURE(millionths);
    // 1002 us of the call do 1002 / factor of work: 3000 us are done 1002 (1 - 1/factor) later, rounded up.
    const std::int64_t called = 1'002'000'000;
    const std::int64_t done = called * 1'000'000 / millionths;  // rounded down
    CHECK(end_at(millionths).count() == 3'000'000'000 + called - done);
  }
}

// As above, with two calls of 10 MB each, launched in 500 and 700 us, which share the ports from 700 us on: the first
// ends at 700 + 8 MB / 5 GB/s + 2 us, the second with the 2 MB that are left 200 us later, at 2502 us. So one call at
// least is open for 2002 us. They do the work of 2002 * 2/3 us, however many are open.
TEST_CASE("a kernel that runs while two calls are open is slowed once") {
  const Topology net = star(2, port);
  Program program = call_of(check(direct_pairs(2, 10'000'000_B, true)));
  program.calls.push_back(program.calls.front());
  program.calls.back().name = "other";
  program.streams = {Program::StreamKind::compute, Program::StreamKind::communication,
                     Program::StreamKind::communication};
  program.roles = {{.streams = {{{.name = "kernel", .time = 3000us}},
                                {{.name = "call", .time = 500us, .call = 0}},
                                {{.name = "other", .time = 700us, .call = 1}}}}};
  const LoweredProgram lowered(check(program));
  Slowdown slowdown(lowered, 1'500'000);
  Accounts accounts(lowered, 0);
  const Timeline found = run(net, lowered.schedule(),
                             {.on_compute =
                                  [&](const ComputeEvent& event) {
                                    accounts.on_compute(event);
                                    slowdown.on_compute(event);
                                  },
                              .longer = [&](const ComputeEvent& event) { return slowdown.longer(event); }});
  const std::int64_t open = 2'002'000'000, done = open * 2 / 3;  // rounded down
  CHECK(found.finish.time_since_epoch().count() == 3'000'000'000 + open - done);
  // Calls overlap with the kernel from the first launch, at 0, to their end; what overlaps with both counts once.
  CHECK(accounts.of(0).split.overlapped == Picoseconds{open} + 500us);
}

}  // namespace beside_test
