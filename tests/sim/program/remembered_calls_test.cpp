// Calls that repeat each other are simulated once: the run tells what the whole run tells.
#include "sim/program/remembered_calls.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/check/in_groups.hpp"
#include "sim/program/account.hpp"
#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/random_programs.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/written_schedule.hpp"
#include "topologies/catalog.hpp"

namespace remembered_calls_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using ringsim::test::Draw;
using ringsim::test::draw_options;
using ringsim::test::placed;
using ringsim::test::random_alike_program;
using ringsim::test::random_call;
using ringsim::test::random_net;

namespace {

/// Members of a group, and what they call.
struct Group {
  std::vector<Actor> members;  // ranks, then helpers
  CheckedSchedule schedule;
  Stream stream = 0;
  std::vector<Picoseconds> launches = {};  // [member] if it takes time
};

/// What a run tells of a program.
struct Told {
  Timeline timeline;
  std::vector<RankAccount> accounts;
  std::vector<Bytes> sent_by, received_by;  // [actor]
};

void listen(const LoweredProgram& lowered, RunOptions& options, std::unique_ptr<Accounts>& accounts, Told& told) {
  accounts = std::make_unique<Accounts>(lowered, 0);
  told.sent_by.assign(static_cast<std::size_t>(lowered.program().actors), {});
  told.received_by = told.sent_by;
  options.messages_may_fold = true;
  options.on_message = [&told](const Span& message) {
    told.sent_by[static_cast<std::size_t>(message.from)] += message.bytes;
    told.received_by[static_cast<std::size_t>(message.to)] += message.bytes;
  };
  options.on_compute = [&accounts](const ComputeEvent& event) { accounts->on_compute(event); };
}

Told whole(const Topology& net, const CheckedProgram& program, RunOptions options) {
  Told told;
  std::unique_ptr<Accounts> accounts;
  const LoweredProgram lowered(program);
  listen(lowered, options, accounts, told);
  options.fold = false;
  told.timeline = run(net, lowered.schedule(), options);
  told.accounts = accounts->ranks();
  return told;
}

/// Nothing if no call was remembered.
std::optional<Told> remembered(const Topology& net, const CheckedProgram& program, RunOptions options,
                               RememberedCalls::Counts& counts) {
  Told told;
  std::unique_ptr<Accounts> accounts;
  std::shared_ptr<const LoweredProgram> last;
  options.fold_from = 0;
  listen(LoweredProgram(program), options, accounts, told);
  std::optional<RememberedRun> found =
      run_remembering(net, program, all_channels, options, [&](const std::shared_ptr<const LoweredProgram>& lowered) {
        last = lowered;
        RunOptions unused;
        listen(*lowered, unused, accounts, told);
      });
  if (!found) return std::nullopt;
  counts = found->calls;
  for (std::size_t actor = 0; actor < told.sent_by.size(); ++actor) {
    told.sent_by[actor] += found->sent_by[actor];
    told.received_by[actor] += found->received_by[actor];
  }
  told.timeline = std::move(found->timeline);
  told.accounts = accounts->ranks();
  return told;
}

/// Like links: of one kind, between devices of the same kinds, of equal bandwidth.
std::string class_of(const Topology& net, ResourceId resource) {
  if (resource == no_resource) return "none";
  const Link& link = net.link(net.resource(resource).link);
  return fmt::format("{} {} {} {}", static_cast<int>(link.kind), static_cast<int>(net.node(link.from).kind),
                     static_cast<int>(net.node(link.to).kind), link.bandwidth.bytes_per_second);
}

/// How long the path is in each task, by cause and like links.
std::map<std::string, Picoseconds> sums_of(const Topology& net, const LoweredProgram& whole,
                                           const std::vector<PathElement>& path) {
  std::map<std::string, Picoseconds> sums;
  for (const PathElement& element : path) {
    const StepPlace place = whole.place_of(element.by, element.lane, element.step);
    const Program::Task& task = whole.task_of(element.by, place);
    sums[fmt::format("{} {} iteration {} stream {} {}", static_cast<int>(element.cause),
                     class_of(net, element.resource), place.iteration, place.stream, whole.program().name_of(task))] +=
        element.time();
  }
  return sums;
}

/// Empty if both tell the same; else what differs first.
std::string difference(const Topology& net, const LoweredProgram& whole, const Told& some, const Told& all) {
  const Timeline &one = some.timeline, &other = all.timeline;
  CHECK_FALSE(one.fingerprint);
  CHECK(one.transfers == other.transfers);
  CHECK(one.bytes_sent == other.bytes_sent);
  CHECK(one.link_bytes == other.link_bytes);
  CHECK(one.has_choice == other.has_choice);
  CHECK(some.sent_by == all.sent_by);
  CHECK(some.received_by == all.received_by);
  if (one.finish != other.finish || one.actor_finish != other.actor_finish) return "times";
  for (std::size_t rank = 0; rank < all.accounts.size(); ++rank) {
    const RankAccount &its = some.accounts.at(rank), &same = all.accounts.at(rank);
    if (its.split != same.split || its.end != same.end || its.longest != same.longest) return "accounts";
  }
  CHECK(one.bottleneck.has_value() == other.bottleneck.has_value());
  if (!one.bottleneck || !other.bottleneck) return "";
  const Bottleneck &its = *one.bottleneck, &same = *other.bottleneck;
  CHECK(its.busy + its.others + its.latency + its.compute + its.delay == one.duration());
  const bool is_alike = its.busy == same.busy && its.others == same.others && its.latency == same.latency &&
                        its.compute == same.compute && class_of(net, its.resource) == class_of(net, same.resource);
  if (!is_alike) return "what held it back";
  // Which of equal messages of a call ends last may differ; not the time in each call and iteration, by cause.
  return sums_of(net, whole, one.path) == sums_of(net, whole, other.path) ? "" : "path";
}

/// Ranks in one group or in several of equal size, side by side or interleaved, whose members call now on one stream,
/// now on another, with kernels between. Helpers of a group come after all ranks. `apart`: no two ranks launch at one
/// instant, so that nothing depends on the order of what happens then.
Program random_program(Draw& draw, int ranks, std::size_t n_plans, bool apart, bool has_jitter) {
  Program program{.name = "random"};
  std::vector<int> sizes;
  for (int size = 1; size <= ranks; ++size)
    if (ranks % size == 0 && size > 1) sizes.push_back(size);
  program.ranks = ranks;
  const auto n_streams = static_cast<int>(draw.number(1, 2));
  program.streams = {Program::StreamKind::compute};
  for (int s = 0; s < n_streams; ++s) program.streams.push_back(Program::StreamKind::communication);
  program.iterations = static_cast<int>(draw.number(1, 3));
  const bool all_alike = draw.once_in(2);
  for (Actor rank = 0; rank < ranks; ++rank) {
    program.roles.emplace_back().streams.resize(program.streams.size());
    program.role_of.push_back(rank);
  }
  Actor actors = ranks;
  const auto kernel = [&](Picoseconds time) {
    for (Actor rank = 0; rank < ranks; ++rank) {
      Picoseconds its = time;
      if (!all_alike && draw.once_in(4)) its += Picoseconds{draw.number(0, 20'000'000)};
      program.roles[static_cast<std::size_t>(rank)].streams[0].push_back({.name = "kernel", .time = its});
    }
  };
  struct Kind {
    int size = 0;
    bool interleaved = false;
    CheckedSchedule schedule;
    Stream stream = 1;
    int plan = 0;
    std::vector<std::vector<Actor>> helpers;  // [group]
  };
  std::vector<Kind> kinds;
  for (std::int64_t k = draw.number(1, 3); k > 0; --k) {
    const int size = draw.one_of(sizes);
    kinds.push_back({.size = size,
                     .interleaved = draw.once_in(2),
                     .schedule = random_call(draw, size),
                     .stream = static_cast<Stream>(draw.number(1, n_streams)),
                     .plan = static_cast<int>(draw.number(1, static_cast<std::int64_t>(n_plans))) - 1,
                     .helpers = {}});
    const int n_helpers = kinds.back().schedule.schedule().actors - size;
    for (int group = 0; group < ranks / size; ++group) {
      kinds.back().helpers.emplace_back();
      for (int h = 0; h < n_helpers; ++h) {
        kinds.back().helpers.back().push_back(actors++);
        program.roles.emplace_back().streams.resize(program.streams.size());
        program.role_of.push_back(static_cast<int>(program.roles.size()) - 1);
      }
    }
  }
  program.actors = actors;
  std::vector<Picoseconds> launches(static_cast<std::size_t>(ranks),
                                    Picoseconds{draw.number(0, 3) * draw.number(0, 3'000'000)});
  for (Picoseconds& launch : launches)
    if (apart) launch = Picoseconds{draw.number(0, 6'000'000)};
  for (std::int64_t use = draw.number(2, 8); use > 0; --use) {
    kernel(Picoseconds{draw.number(0, 2) * draw.number(0, 200'000'000)});
    const Kind& kind = kinds[static_cast<std::size_t>(draw.number(0, static_cast<std::int64_t>(kinds.size()) - 1))];
    const Stream stream = draw.once_in(3) ? static_cast<Stream>(draw.number(1, n_streams)) : kind.stream;
    const int plan = draw.once_in(3) ? 0 : kind.plan;
    const int n_groups = ranks / kind.size;
    for (int group = 0; group < n_groups; ++group) {
      Program::Call call{.name = fmt::format("call {}", program.calls.size()),
                         .schedule = kind.schedule,
                         .members = {},
                         .plan = plan,
                         .variables = {}};
      for (int i = 0; i < kind.size; ++i)
        call.members.push_back(kind.interleaved ? i * n_groups + group : group * kind.size + i);
      for (const Actor helper : kind.helpers[static_cast<std::size_t>(group)]) call.members.push_back(helper);
      const auto number = static_cast<int>(program.calls.size());
      for (const Actor member : call.members) {
        Program::Task task{.time = member < ranks ? launches[static_cast<std::size_t>(member)] : Picoseconds{0},
                           .call = number};
        auto& streams = program.roles[static_cast<std::size_t>(member)].streams;
        if (member < ranks) {
          task.after.push_back({0, static_cast<int>(streams[0].size()), 0});
        }
        streams[static_cast<std::size_t>(stream)].push_back(std::move(task));
      }
      program.calls.push_back(std::move(call));
    }
    if (draw.once_in(3))  // the next kernel waits for what was called
      for (Actor rank = 0; rank < ranks; ++rank) {
        auto& streams = program.roles[static_cast<std::size_t>(rank)].streams;
        streams[0].push_back({.name = "update", .time = Picoseconds{5'000'000}});
        const auto s = static_cast<std::size_t>(stream);
        streams[0].back().after.push_back({stream, static_cast<int>(streams[s].size()), 0});
      }
  }
  if (has_jitter)
    program.time = [seed = draw.number(1, 1 << 30)](Actor actor, Stream stream, int task, int iteration) {
      return stream == 0 ? Picoseconds{(seed * (actor + 3) * (task + 7) * (iteration + 11)) % 90'000'000}
                         : Picoseconds{0};
    };
  return program;
}

#ifdef RINGSIM_SANITIZED
constexpr std::uint64_t programs = 100;
#else
constexpr std::uint64_t programs = 1500;
#endif

}  // namespace

TEST_CASE("random programs: with calls remembered they take the whole run's times, to the picosecond") {
  std::map<std::string, int> n;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    Topology net = random_net(draw);
    RunOptions options;
    draw_options(draw, net, options);
    const bool apart = draw.once_in(2);
    const Program drawn =
        random_program(draw, static_cast<int>(net.ranks().size()), options.plans.size(), apart, draw.once_in(12));
    const CheckedProgram program = placed(net, drawn, options);
    options.record_path = draw.once_in(2);
    const Told all = whole(net, program, options);
    RememberedCalls::Counts counts;
    const std::optional<Told> some = remembered(net, program, options, counts);
    if (!some) {
      ++n["simulated whole"];
      continue;
    }
    const std::string differs = difference(net, LoweredProgram(program), *some, all);
    if (apart) CHECK(differs != "times");
    if (apart) CHECK(differs != "accounts");
    ++n[differs];
    ++n[apart ? "apart" : "together"];
    n["uses of a known course"] += static_cast<int>(counts.remembered - counts.simulated);
    n["with calls that met"] += counts.met > 0 ? 1 : 0;
    n["with helpers"] += drawn.actors > drawn.ranks ? 1 : 0;
  }
  // The order of what happens at one instant decides which of two equal paths is the critical one, and which of two
  // equally full links limited a message; if ranks come together, the last bit of a rate as well. So it does in the
  // whole run.
  CHECK(n["times"] + n["accounts"] <= n["together"] / 50);
  CHECK(n["what held it back"] + n["path"] <= static_cast<int>(programs) / 50);
  const int tenth = static_cast<int>(programs) / 10;  // each kind of case was drawn often enough
  CHECK(n["apart"] > tenth);
  CHECK(n["together"] > tenth);
  CHECK(n["with calls that met"] > tenth / 2);
  CHECK(n["with helpers"] > tenth / 10);
  CHECK(n["uses of a known course"] > 2 * static_cast<int>(programs));
}

namespace {

int most_steps(const Schedule& schedule) {
  int most = 0;
  for (Actor actor = 0; actor < schedule.actors; ++actor)
    for (Lane lane = 0; lane < schedule.lanes; ++lane) most = std::max(most, schedule.n_steps(actor, lane));
  return most;
}

/// The largest difference of a time of any actor.
Picoseconds farthest(const Told& some, const Told& all) {
  Picoseconds most{0};
  const auto look_at = [&most](SimTime one, SimTime other) {
    most = std::max({most, Picoseconds{one - other}, Picoseconds{other - one}});
  };
  look_at(some.timeline.finish, all.timeline.finish);
  for (std::size_t actor = 0; actor < all.timeline.actor_finish.size(); ++actor)
    look_at(some.timeline.actor_finish[actor], all.timeline.actor_finish[actor]);
  for (std::size_t rank = 0; rank < all.accounts.size(); ++rank) {
    const TimeSplit &its = some.accounts.at(rank).split, &same = all.accounts.at(rank).split;
    look_at(some.accounts[rank].end, all.accounts[rank].end);
    for (Picoseconds TimeSplit::*part : {&TimeSplit::compute, &TimeSplit::waiting_for_others,
                                         &TimeSplit::exposed_communication, &TimeSplit::overlapped, &TimeSplit::idle})
      look_at(SimTime{its.*part}, SimTime{same.*part});
  }
  return most;
}

}  // namespace

TEST_CASE("random programs of alike ranks: one of them stands for all, with the whole run's times") {
  std::map<std::string, int> n;
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    Topology net = random_net(draw);
    RunOptions options;
    draw_options(draw, net, options);
    const Program drawn = random_alike_program(draw, static_cast<int>(net.ranks().size()), options.plans.size());
    const CheckedProgram program = placed(net, drawn, options);
    options.record_path = draw.once_in(2);
    const Told all = whole(net, program, options);
    RememberedCalls::Counts counts;
    const std::optional<Told> some = remembered(net, program, options, counts);
    if (!some) {
      ++n["simulated whole"];
      continue;
    }
    if (counts.stand_ins == 0) {
      ++n["each for itself"];
      continue;
    }
    CHECK(some->timeline.transfers == all.timeline.transfers);
    CHECK(some->timeline.bytes_sent == all.timeline.bytes_sent);
    CHECK(some->timeline.link_bytes == all.timeline.link_bytes);
    CHECK(some->sent_by == all.sent_by);
    CHECK(some->received_by == all.received_by);
    // Rounding, of each step of a path; see AlikeActors.
    std::int64_t steps = 0;
    for (const Program::Call& call : drawn.calls) steps += most_steps(call.schedule.schedule()) * drawn.iterations;
    const Picoseconds apart = farthest(*some, all);
    ++n[apart == Picoseconds{0} ? "equal" : apart <= Picoseconds{2} * steps ? "rounded" : "apart"];
    ++n["stand-ins"];
    n["split"] += counts.stand_ins > static_cast<int>(drawn.roles.size()) ? 1 : 0;
    n["with calls that met"] += counts.met > 0 ? 1 : 0;
    n["with helpers"] += drawn.actors > drawn.ranks ? 1 : 0;
  }
  const int tenth = static_cast<int>(programs) / 10;  // enough cases of each kind were drawn
  CHECK(n["stand-ins"] > 2 * tenth);
  CHECK(n["equal"] > 9 * n["rounded"]);
  // Ranks come together, so that the order of what happens at one instant decides which of two messages a device posts
  // first. So it does with all ranks.
  CHECK(n["apart"] <= n["stand-ins"] / 100);
  CHECK(n["split"] > tenth / 2);
  CHECK(n["with calls that met"] >= tenth / 10);
  CHECK(n["with helpers"] >= tenth / 10);
}

namespace {

/// Ranks 0 to 2 do what `calls` say; ranks 3 to 5 `rings` of small messages, so that most of what moves is remembered.
/// All are joined by cables of their own. Members from 6 on are helpers.
Program with_a_ring(std::vector<Group> calls, int iterations, int rings = 1) {
  Program program{.name = "few", .ranks = 6, .actors = 6, .iterations = iterations};
  std::size_t n_streams = 1;
  for (const Group& each : calls) {
    n_streams = std::max(n_streams, static_cast<std::size_t>(each.stream) + 2);
    program.actors = std::max(program.actors, *std::max_element(each.members.begin(), each.members.end()) + 1);
  }
  const CollectiveRequest small{.op = CollectiveOp::all_reduce, .ranks = 3, .bytes = 3000_B};
  const CheckedSchedule ring = check(make_schedule(*find_algorithm("ring"), small, {}));
  for (int i = 0; i < rings; ++i)
    calls.push_back({.members = {3, 4, 5}, .schedule = ring, .stream = static_cast<Stream>(n_streams) - 1});
  program.streams.assign(n_streams, Program::StreamKind::communication);
  for (Actor actor = 0; actor < program.actors; ++actor) {
    program.role_of.push_back(actor);
    program.roles.emplace_back().streams.resize(n_streams);
  }
  for (const Group& each : calls) {
    Program::Call call{.name = "call", .schedule = each.schedule, .members = {}, .variables = {}};
    for (std::size_t i = 0; i < each.members.size(); ++i) {
      call.members.push_back(each.members[i]);
      program.roles[static_cast<std::size_t>(each.members[i])].streams[static_cast<std::size_t>(each.stream)].push_back(
          {.time = i < each.launches.size() ? each.launches[i] : Picoseconds{0},
           .call = static_cast<int>(program.calls.size())});
    }
    program.calls.push_back(std::move(call));
  }
  return program;
}

Topology joined(std::optional<Picoseconds> post) {
  TopologyBuilder builder;
  for (std::uint32_t g = 0; g < 6; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::uint32_t a = 0; a < 6; ++a)
    for (std::uint32_t b = a + 1; b < 6; ++b) builder.add_cable(NodeId{a}, NodeId{b}, {.bandwidth = 10_GBps});
  const Topology net = builder.build();
  if (!post) return net;
  return net.with_rates([&](NodeId) { return std::optional(DeviceRates{.post = *post}); }, 6);
}

WrittenSchedule unnamed(int actors, int lanes, const std::vector<Bytes>& sizes) {
  WrittenSchedule written({.op = CollectiveOp::pairs, .ranks = actors}, actors, lanes, 1);
  written.like.names_regions = false;
  written.like.layout[0] = Layout::of_sizes(sizes);
  return written;
}

}  // namespace

namespace {

/// Rank 0 ends when its message fills all eight slots and a byte has come; rank 1 takes that message after one of 40 ms
/// from rank 2. So rank 0's next message may wait though its link is free.
CheckedSchedule filling_slots(const Protocol& protocol) {
  WrittenSchedule one = unnamed(3, 2, {protocol.slot * protocol.slots, 1_B, 400'000'000_B});
  one.step(0, 0).send(1, {.first = 0, .count = 1});
  one.steps[0][0].back().receive(1, {.first = 1, .count = 1});
  one.step(1, 0).send(0, {.first = 1, .count = 1});
  one.step(1, 1).receive(2, {.first = 2, .count = 1});
  one.step(1, 1).receive(0, {.first = 0, .count = 1});
  one.step(2, 0).send(1, {.first = 2, .count = 1});
  return check(one.schedule());
}

RunOptions options_of(const Topology& net, const Protocol& protocol) {
  return {.plans = {{.protocol = &protocol}}, .placement = {net.ranks().begin(), net.ranks().end()}};
}

void expect_met(const Topology& net, const Program& drawn, const RunOptions& options, int n_met) {
  const CheckedProgram program = check(drawn);
  RememberedCalls::Counts counts;
  const std::optional<Told> some = remembered(net, program, options, counts);
  REQUIRE(some);
  CHECK(counts.met == n_met);
  CHECK(counts.remembered > 0);
  CHECK(difference(net, LoweredProgram(program), *some, whole(net, program, options)) == "");
}

}  // namespace

TEST_CASE("calls that fill each other's slots, and share nothing else, are simulated together") {
  const Protocol& protocol = *find_protocol("simple");
  const Topology net = joined(std::nullopt);
  const Program program = with_a_ring({{.members = {0, 1, 2}, .schedule = filling_slots(protocol)}}, 3);
  expect_met(net, program, options_of(net, protocol), 3);
}

TEST_CASE("a call that fills slots only since another one met a third is simulated with its neighbors") {
  // Two or three such calls follow each other; other messages from rank 2 to rank 1 slow down the first, and the last
  // of three. Alone, rank 1 ends the first at 40 ms; slowed down, at 80 ms. Then the message of the second, sent at 60
  // ms, lacks the slots of the first; or, sent at 90 ms, it fills those of the third, because its call begins later.
  const Protocol& protocol = *find_protocol("simple");
  WrittenSchedule big = unnamed(2, 1, {400'000'000_B});
  big.step(0, 0).send(1, {.first = 0, .count = 1});
  big.step(1, 0).receive(0, {.first = 0, .count = 1});
  const CheckedSchedule fills = filling_slots(protocol), from_2_to_1 = check(big.schedule());
  const auto call = [&](Picoseconds launch) {
    return Group{.members = {0, 1, 2}, .schedule = fills, .stream = 0, .launches = {launch}};
  };
  const auto other = [&](Picoseconds launch) {
    return Group{.members = {2, 1}, .schedule = from_2_to_1, .stream = 1, .launches = {launch, launch}};
  };
  const Topology net = joined(std::nullopt);
  expect_met(net, with_a_ring({call(30ms), call(30ms), other(0ms)}, 1), options_of(net, protocol), 3);
  expect_met(net, with_a_ring({call(30ms), call(60ms), call(10ms), other(0ms), other(30ms)}, 1),
             options_of(net, protocol), 5);
}

TEST_CASE("a helper that sends before any rank has come is not taken to come later") {
  // Its 4 MB take 0.4 ms, and are there when ranks come after 1 ms.
  const Protocol& protocol = *find_protocol("simple");
  WrittenSchedule one = unnamed(4, 1, {4'000'000_B});
  one.like.collective.ranks = 3;
  one.step(3, 0);
  for (Actor rank = 0; rank < 3; ++rank) {
    one.steps[3][0].back().send(rank, {.first = 0, .count = 1});
    one.step(rank, 0).receive(3, {.first = 0, .count = 1});
  }
  const Topology net = joined(std::nullopt);
  const Program program =
      with_a_ring({{.members = {0, 1, 2, 6}, .schedule = check(one.schedule()), .launches = {1ms, 1ms, 1ms}}}, 2);
  RunOptions options = options_of(net, protocol);
  options.placement.push_back(net.ranks()[5]);
  expect_met(net, program, options, 2);
}

TEST_CASE("calls that one device posts, and that share nothing else, are simulated together") {
  WrittenSchedule pair = unnamed(2, 1, {1000_B});
  pair.step(0, 0).send(1, {.first = 0, .count = 1});
  pair.step(1, 0).receive(0, {.first = 0, .count = 1});
  const CheckedSchedule sends = check(pair.schedule());
  const Topology net = joined(30us);
  expect_met(net,
             with_a_ring({{.members = {0, 1}, .schedule = sends, .stream = 0},
                          {.members = {0, 2}, .schedule = sends, .stream = 1}},
                         2),
             options_of(net, no_protocol()), 4);
}

TEST_CASE("once a call has met another, those of its kind are simulated as well, if they are few messages") {
  // The first of three like sends meets one of another kind, the later two do not. A ring is 12 messages; 13 of them
  // and five sends are 161, of which two are less than a 32nd, and 2 of 17 are more than that.
  WrittenSchedule pair = unnamed(2, 1, {1000_B});
  pair.step(0, 0).send(1, {.first = 0, .count = 1});
  pair.step(1, 0).receive(0, {.first = 0, .count = 1});
  const CheckedSchedule sends = check(pair.schedule()), other = check(pair.schedule()), third = check(pair.schedule());
  const Topology net = joined(std::nullopt);
  const auto send = [](const CheckedSchedule& schedule, Actor from, Stream stream) {
    return Group{.members = {from, 1}, .schedule = schedule, .stream = stream};
  };
  const std::vector<Group> calls{send(sends, 0, 0), send(sends, 0, 0), send(sends, 0, 0), send(other, 0, 1),
                                 send(third, 2, 2)};
  expect_met(net, with_a_ring(calls, 1, 13), options_of(net, no_protocol()), 4);
  expect_met(net, with_a_ring(calls, 1, 1), options_of(net, no_protocol()), 2);
}

}  // namespace remembered_calls_test
