// Some actors of a program stand for others, messages and all: their run tells what the whole run tells.
#include "sim/program/program_stand_ins.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/random_programs.hpp"
#include "tests/support/written_schedule.hpp"
#include "topologies/catalog.hpp"

namespace find_stand_ins_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using ringsim::test::Draw;

namespace {

struct Told {
  Timeline timeline;
  std::vector<Bytes> sent_by, received_by;  // [actor]
  std::map<std::pair<Actor, Actor>, std::int64_t> messages;
};

Told run_of(const Topology& net, const LoweredProgram& lowered, RunOptions options) {
  Told told;
  told.sent_by.resize(static_cast<std::size_t>(lowered.program().actors));
  told.received_by = told.sent_by;
  options.fold = false;
  options.on_message = [&told](const Span& message) {
    told.sent_by[static_cast<std::size_t>(message.from)] += message.bytes;
    told.received_by[static_cast<std::size_t>(message.to)] += message.bytes;
    ++told.messages[{message.from, message.to}];
  };
  told.timeline = run(net, lowered.schedule(), options);
  return told;
}

Told run_by(const StandIns& stand_ins, const Topology& net, const CheckedProgram& program, RunOptions options) {
  const LoweredProgram lowered(program, all_channels, nullptr, {.stand_ins = stand_ins.actors, .have_no_steps = true});
  options.stand_ins = &stand_ins;
  Told told = run_of(net, lowered, options);
  std::vector<SimTime>& ends = told.timeline.actor_finish;
  for (std::size_t actor = 0; actor < ends.size(); ++actor)
    ends[actor] = ends[static_cast<std::size_t>(stand_ins.actors[actor])];
  // Messages of those that are simulated: the others send as much, and like ones receive as much.
  std::vector<Bytes> received(ends.size());
  for (std::size_t actor = 0; actor < ends.size(); ++actor)
    received[static_cast<std::size_t>(stand_ins.actors[actor])] += told.received_by[actor];
  for (std::size_t actor = 0; actor < ends.size(); ++actor) {
    told.sent_by[actor] = told.sent_by[static_cast<std::size_t>(stand_ins.actors[actor])];
    told.received_by[actor] = received[static_cast<std::size_t>(stand_ins.actors[actor])];
  }
  return told;
}

/// Counts are those of all; returns how far a time is from the whole run's at most.
Picoseconds farthest(const Told& some, const Told& all) {
  CHECK(some.timeline.transfers == all.timeline.transfers);
  CHECK(some.timeline.bytes_sent == all.timeline.bytes_sent);
  CHECK(some.timeline.link_bytes == all.timeline.link_bytes);
  CHECK(some.timeline.has_choice == all.timeline.has_choice);
  CHECK(some.sent_by == all.sent_by);
  CHECK(some.received_by == all.received_by);
  for (const auto& sent : some.messages) {  // of those that are simulated, to whoever receives them
    CAPTURE(sent.first.first);
    CAPTURE(sent.first.second);
    const auto same = all.messages.find(sent.first);
    CHECK((same != all.messages.end() && same->second == sent.second));
  }
  CHECK_FALSE(some.timeline.fingerprint);
  Picoseconds most{0};
  for (std::size_t actor = 0; actor < all.timeline.actor_finish.size(); ++actor) {
    const Picoseconds apart{some.timeline.actor_finish[actor] - all.timeline.actor_finish[actor]};
    most = std::max({most, apart, -apart});
  }
  return most;
}

int n_classes(const StandIns& stand_ins) {
  return static_cast<int>(std::set<Actor>(stand_ins.actors.begin(), stand_ins.actors.end()).size());
}

Topology random_cluster(Draw& draw) {
  const LinkSpec link{.bandwidth = {draw.number(2, 40) * 1'000'000'000},
                      .latency = Picoseconds{draw.number(0, 2'000'000)}};
  const auto nodes = static_cast<int>(draw.number(2, 4));
  const std::string node = draw.one_of(std::array{"dgx-a100", "dgx-1v", "hgx-h100"});
  const std::int64_t kind = draw.number(0, 4);
  if (kind == 0) return build(cluster_of(node, nodes, LeafSpine{.nodes_per_leaf = 2, .spines = 2, .link = link}));
  if (kind == 1) return build(cluster_of(node, nodes, TorusFabric{.dimensions = {nodes}, .link = link}));
  if (kind == 2) return build(cluster_of(node, nodes, StarFabric{.link = link}));
  TopologyBuilder builder;
  const auto n = static_cast<std::uint32_t>(draw.number(2, 16));
  for (std::uint32_t g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch", NodeKind::network_switch);
  for (std::uint32_t g = 0; g < n; ++g) builder.add_cable(NodeId{g}, hub, link);
  return builder.build();
}

/// A program of one call of the schedule, by ranks that do the same.
Program of_one_call(const CheckedSchedule& schedule) {
  const int ranks = schedule.schedule().actors;
  Program program{.name = "one call", .ranks = ranks, .actors = ranks};
  program.streams = {Program::StreamKind::communication};
  program.role_of.assign(static_cast<std::size_t>(ranks), 0);
  program.roles.push_back({.streams = {{{.time = 1us, .call = 0}}}});
  program.calls.push_back({.name = "call", .schedule = schedule, .members = {}, .variables = {}});
  return program;
}

CheckedSchedule call_of(const std::string& algorithm, int ranks, Bytes bytes) {
  const CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = ranks, .bytes = bytes};
  return check(make_schedule(*find_algorithm(algorithm), request, {}));
}

/// By [rank] the number of its place, or one rank on each. 0: none stand for others; else the number of those who do,
/// whose run is that of all.
int simulated(const Topology& net, const CheckedSchedule& schedule, RunOptions options = {},
              const std::vector<std::size_t>& places = {}) {
  options.placement.assign(net.ranks().begin(), net.ranks().end());
  if (!places.empty()) options.placement.clear();
  for (const std::size_t place : places) options.placement.push_back(net.ranks()[place]);
  const CheckedProgram program = check(of_one_call(schedule));
  const LoweredProgram whole(program);
  const auto stand_ins = find_stand_ins(net, options, whole);
  if (!stand_ins) return 0;
  CHECK(farthest(run_by(*stand_ins, net, program, options), run_of(net, whole, options)) == Picoseconds{0});
  return n_classes(*stand_ins);
}

Topology star_of(int n, const LinkSpec& link, const LinkSpec& last) {
  TopologyBuilder builder;
  for (int g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch", NodeKind::network_switch);
  for (int g = 0; g < n; ++g) builder.add_cable(NodeId{static_cast<std::uint32_t>(g)}, hub, g + 1 < n ? link : last);
  return builder.build();
}

#ifdef RINGSIM_SANITIZED
constexpr std::uint64_t programs = 200;
#else
constexpr std::uint64_t programs = 800;
#endif

}  // namespace

TEST_CASE("random programs: those that stand for others take the times, and move the bytes, of all") {
  std::map<std::string, int> n;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    Topology net = random_cluster(draw);
    RunOptions options;
    test::draw_options(draw, net, options);
    const Program drawn = test::random_alike_program(draw, static_cast<int>(net.ranks().size()), options.plans.size());
    const CheckedProgram program = test::placed(net, drawn, options);
    const LoweredProgram whole(program);
    const auto stand_ins = find_stand_ins(net, options, whole);
    if (!stand_ins) {
      ++n["none"];
      continue;
    }
    const Picoseconds apart = farthest(run_by(*stand_ins, net, program, options), run_of(net, whole, options));
    ++n["found"];
    // The last bit of a rate, once in each step of a path, as with AlikeActors.
    ++n[apart == Picoseconds{0} ? "equal" : apart <= Picoseconds{200} ? "rounded" : "apart"];
    n["helpers"] += drawn.actors > drawn.ranks ? 1 : 0;
    n["posts"] += options.may_post(net) ? 1 : 0;
    n["ahead"] += options.plans.front().protocol->slots > 0 ? 1 : 0;
  }
  const int tenth = static_cast<int>(programs) / 10;  // each kind of case was drawn often enough
  // The order of what happens at one instant decides which of two calls' messages a device posts first.
  CHECK(n["apart"] <= n["found"] / 100);
  CHECK(n["found"] > tenth);
  CHECK(n["equal"] > 9 * n["rounded"]);
  CHECK(n["helpers"] >= tenth / 20);
  CHECK(n["posts"] >= tenth / 10);
  CHECK(n["ahead"] > tenth);
}

TEST_CASE("a ring on equal cables is one rank; on a cable of another rate, or of unequal chunks, none stands for all") {
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 1us};
  CHECK(simulated(star_of(6, link, link), call_of("ring", 6, 6000_B)) == 1);
  CHECK(simulated(star_of(6, link, {.bandwidth = 9_GBps, .latency = 1us}), call_of("ring", 6, 6000_B)) == 0);
  CHECK(simulated(star_of(6, link, link), call_of("ring", 6, 6001_B)) == 0);
  CHECK(simulated(star_of(6, link, {.bandwidth = 10_GBps, .latency = 2us}), call_of("ring", 6, 6000_B)) == 0);
  // Both directions of the last cable draw on one bandwidth.
  CHECK(simulated(star_of(6, link, {.bandwidth = 10_GBps, .latency = 1us, .duplex = Duplex::half}),
                  call_of("ring", 6, 6000_B)) == 0);
}

TEST_CASE("GPUs whose like messages meet on a NIC stand for those of other nodes, not for each other") {
  // Two GPUs of a DGX-1V share each of its four NICs. In a ring over all ranks by node, one GPU of each node sends to
  // the next; so eight stand for all. Halving and doubling ends with all of a node's GPUs sending to those of another.
  const Topology net = build(cluster_of("dgx-1v", 4, StarFabric{.link = {.bandwidth = 10_GBps, .latency = 1us}}));
  CHECK(simulated(net, call_of("ring", 32, 32'000_B)) == 8);
  const int n = simulated(net, call_of("halving_doubling", 32, 32'000_B));
  CHECK(n > 1);
  CHECK(n <= 8);
}

TEST_CASE("ranks of a tree stand for those of the same place in it") {
  // A binomial tree of 16: the ranks that have the same peers, seen from below, are those of equal order; no two of
  // order 3 or 4 exist, and leaves differ by their parents.
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 1us};
  CHECK(simulated(star_of(16, link, link), call_of("binomial_tree", 16, 1600_B)) == 0);
  // Each sends to each at once: all are alike.
  CHECK(simulated(star_of(8, link, link), call_of("direct", 8, 8000_B)) == 1);
}

namespace {

/// A step per rank: it sends chunk 0 to the first of its two peers and chunk 1 to the second.
CheckedSchedule to_two_peers(const std::vector<std::array<Actor, 2>>& peers) {
  const auto ranks = static_cast<int>(peers.size());
  WrittenSchedule written({.op = CollectiveOp::pairs, .ranks = ranks}, ranks, 1, 1);
  written.like.names_regions = false;
  written.like.layout[0] = Layout::of_sizes({1000_B, 3000_B});
  for (Actor rank = 0; rank < ranks; ++rank) {
    Step& step = written.step(rank, 0);
    for (std::size_t i = 0; i < 2; ++i) step.send(peers[static_cast<std::size_t>(rank)][i], chunk(static_cast<int>(i)));
    for (std::size_t i = 0; i < 2; ++i)
      for (Actor other = 0; other < ranks; ++other)
        if (peers[static_cast<std::size_t>(other)][i] == rank) step.receive(other, chunk(static_cast<int>(i)));
  }
  return check(written.schedule());
}

Topology with_posts(const Topology& net) {
  return net.with_rates([](NodeId) { return std::optional(DeviceRates{.post = 3us}); },
                        static_cast<int>(net.ranks().size()));
}

}  // namespace

TEST_CASE("a step's messages are posted by distance: ranks that differ in the order do not stand for each other") {
  // Two circles of three ranks. In the first each sends to the next and the one after; in the second, to the one before
  // and the one before that, so that the second peer is nearer, around all six.
  const CheckedSchedule circles = to_two_peers({{{1, 2}, {2, 0}, {0, 1}, {5, 4}, {3, 5}, {4, 3}}});
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 1us};
  const Topology net = star_of(6, link, link);
  CHECK(simulated(net, circles) == 1);
  CHECK(simulated(with_posts(net), circles) == 2);
}

TEST_CASE("if two ranks share a device that posts messages, no rank stands for others") {
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 1us};
  const Topology net = star_of(2, link, link), posting = with_posts(net);
  const CheckedSchedule ring = call_of("ring", 4, 4000_B);
  CHECK(simulated(net, ring, {}, {0, 1, 1, 0}) == 2);
  CHECK(simulated(posting, ring, {}, {0, 1, 1, 0}) == 0);
}

TEST_CASE("what stands for the link of a device need not be that of the actor which stands for others") {
  // Rank 0 is on the last GPU, and the first link of a class is the first GPU's.
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 1us};
  const Topology net =
      star_of(4, link, link).with_rates([](NodeId) { return std::optional(DeviceRates{.reduce = 20_GBps}); }, 4);
  CHECK(simulated(net, call_of("ring", 4, 4000_B), {}, {3, 2, 1, 0}) == 1);
}

TEST_CASE("where a message crosses two links that stand for each other, no rank stands for others") {
  // Five switches in a circle, a GPU at each, which sends to the one two switches on: each hop carries two messages.
  const LinkSpec link{.bandwidth = 10_GBps, .latency = 1us};
  TopologyBuilder builder;
  for (std::uint32_t g = 0; g < 5; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::uint32_t s = 0; s < 5; ++s) builder.add_node(fmt::format("switch{}", s), NodeKind::network_switch);
  for (std::uint32_t s = 0; s < 5; ++s) {
    builder.add_cable(NodeId{s}, NodeId{5 + s}, link);
    builder.add_cable(NodeId{5 + s}, NodeId{5 + (s + 1) % 5}, link);
  }
  const Topology net = builder.build();
  WrittenSchedule written({.op = CollectiveOp::pairs, .ranks = 5}, 5, 1, 1);
  written.like.names_regions = false;
  written.like.layout[0] = Layout::of_sizes({1000_B});
  for (Actor rank = 0; rank < 5; ++rank) {
    Step& step = written.step(rank, 0);
    step.send((rank + 2) % 5, chunk(0));
    step.receive((rank + 3) % 5, chunk(0));
  }
  CHECK(simulated(net, check(written.schedule())) == 0);
}

}  // namespace find_stand_ins_test
