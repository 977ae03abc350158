// Calls of one run that move by plans of their own: each as if it had the run for itself, but for the links they share.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/tiny.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/scale_links.hpp"

namespace call_plan_test {

using namespace ringsim;
using namespace ringsim::literals;
using ringsim::test::Draw;

namespace {

CheckedSchedule all_reduce(const char* algorithm, int ranks, Bytes bytes, int channels = 1) {
  return check(make_schedule(*find_algorithm(algorithm),
                             {.op = CollectiveOp::all_reduce, .ranks = ranks, .bytes = bytes, .channels = channels},
                             {}));
}

/// Calls one after another on as many streams as `streams` says, [call]. `others`: what ranks of their own, after the
/// calls', do by plan 0, whose channels so come first.
LoweredProgram program_of(const std::vector<CheckedSchedule>& schedules, const std::vector<int>& plans,
                          const std::vector<int>& streams, const CheckedSchedule* others = nullptr) {
  Program program{.name = "calls"};
  program.ranks = program.actors = schedules.front().schedule().actors;
  program.streams.assign(static_cast<std::size_t>(*std::max_element(streams.begin(), streams.end()) + 1),
                         Program::StreamKind::communication);
  program.roles.emplace_back().streams.resize(program.streams.size());
  for (std::size_t c = 0; c < schedules.size(); ++c) {
    program.calls.push_back({.name = fmt::format("call {}", c),
                             .schedule = schedules[c],
                             .members = {},
                             .plan = plans[c],
                             .variables = {}});
    program.roles.front().streams[static_cast<std::size_t>(streams[c])].push_back({.call = static_cast<int>(c)});
  }
  if (others != nullptr) {
    const Actor first = program.ranks;
    program.ranks = program.actors = first + others->schedule().actors;
    Program::Call& call = program.calls.emplace_back(
        Program::Call{.name = "of others", .schedule = *others, .members = {}, .variables = {}});
    for (Actor actor = first; actor < program.actors; ++actor) call.members.push_back(actor);
    Program::Role& other = program.roles.emplace_back();
    other.streams.resize(program.streams.size());
    other.streams.front().push_back({.call = static_cast<int>(program.calls.size()) - 1});
    program.role_of.assign(static_cast<std::size_t>(program.actors), 1);
    std::fill(program.role_of.begin(), program.role_of.begin() + first, 0);
  }
  return LoweredProgram(check(std::move(program)));
}

std::vector<std::uint16_t> every_channel(std::vector<std::uint16_t> plans) {
  plans.resize(std::size_t{1} << 16);
  return plans;
}

Topology three_dgx(Draw& draw) {
  return build(cluster_of("dgx-a100", 3,
                          StarFabric{.link = {.bandwidth = {draw.number(5, 40) * 1'000'000'000},
                                              .latency = Picoseconds{draw.number(0, 4) * 500'000}}}));
}

/// Protocols with slots, NICs and staging that calls may have; every link carries 1 / 1, 1 / 2 or 1 / 4 of its rate.
CallPlan random_plan(Draw& draw, const Topology& net) {
  CallPlan plan{.protocol = find_protocol(draw.one_of(std::array{"simple", "ll", "ll128"}))};
  if (draw.once_in(2)) plan.transport.nics = Transport::Nics::per_channel;
  if (draw.once_in(2)) plan.transport.gdr_level = PathType::loc;
  if (draw.once_in(2)) plan.transport.staging.size = {draw.number(16, 512) * 1024};
  if (draw.once_in(2)) plan.costs.assign(net.n_links(), static_cast<double>(draw.one_of(std::array{1, 2, 4})));
  return plan;
}

/// When the first 16 ranks were done.
std::vector<SimTime> of_two_nodes(const Timeline& line) {
  return {line.actor_finish.begin(), line.actor_finish.begin() + 16};
}

}  // namespace

TEST_CASE("a program whose calls all have one of several plans runs as if that were the run's only one") {
  int n = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const Topology net = three_dgx(draw);
    const char* algorithm = draw.one_of(std::array{"ring", "double_binary_tree", "halving_doubling"});
    const int channels = static_cast<int>(draw.number(1, 3)), own = static_cast<int>(draw.number(1, 2));
    const std::vector<CheckedSchedule> calls{all_reduce(algorithm, 16, {draw.number(1, 4 << 20)}, channels),
                                             all_reduce(algorithm, 16, {draw.number(1, 1 << 20)}, channels)};
    const std::vector<int> streams{0, static_cast<int>(draw.number(0, 1))};
    const std::vector<CallPlan> plans{random_plan(draw, net), random_plan(draw, net), random_plan(draw, net)};
    // Ranks of the third node, whose links nobody else uses, have another plan, and so the first channels.
    const CheckedSchedule others = all_reduce("ring", 8, {draw.number(1, 1 << 20)});
    const LoweredProgram alone = program_of(calls, {0, 0}, streams, &others),
                         chosen = program_of(calls, {own, own}, streams, &others);
    CHECK(alone.plan_of_channel().empty());
    CHECK(chosen.plan_of_channel().front() == 0);
    const Timeline expected = run(net, alone.schedule(), {.plans = {plans[static_cast<std::size_t>(own)]}});
    const Timeline found =
        run(net, chosen.schedule(), {.plans = plans, .plan_of_channel = every_channel(chosen.plan_of_channel())});
    CHECK(of_two_nodes(found) == of_two_nodes(expected));
    n += expected.transfers > 0 ? 1 : 0;
  }
  CHECK(n == 60);
}

TEST_CASE("what a plan makes links cost is a slower link, to the picosecond") {
  // Bandwidths in whole multiples of 4, so that a quarter of them is a whole number.
  for (const double cost : {2.0, 4.0})
    for (const char* protocol : {"none", "simple", "ll"})
      for (const NetworkModel model : {NetworkModel::fair, NetworkModel::packet}) {
        CAPTURE(cost);
        CAPTURE(protocol);
        const Topology net = build(Star{.ranks = 4, .link = {.bandwidth = 8_GBps, .latency = 1'000'000_ps}});
        ClassScales slower;
        slower.bandwidth.fill(1 / cost);
        const CheckedSchedule ring = all_reduce("ring", 4, 4'000'000_B);
        CallPlan plan{.protocol = find_protocol(protocol)};
        const Picoseconds expected = run(scaled(net, slower), ring, {.model = model, .plans = {plan}}).duration();
        plan.costs.assign(net.n_links(), cost);
        CHECK(run(net, ring, {.model = model, .plans = {plan}}).duration() == expected);
      }
}

TEST_CASE("calls that meet on a link share what their bytes cost it") {
  // Two pairs' worth of data on one link: 3 MB that cost one byte each, 3 MB that cost two. Fair shares are equal rates
  // r + 2 r = 9 GB/s: 3 GB/s each. Both are done at 1 ms, as 3 MB / 3 GB/s.
  const Topology net = build(Star{.ranks = 2, .link = {.bandwidth = 9_GBps, .latency = 0_ps}});
  const auto send = [](Bytes bytes) {
    return check(
        make_schedule(*find_algorithm("direct"), {.op = CollectiveOp::broadcast, .ranks = 2, .bytes = bytes}, {}));
  };
  const LoweredProgram both = program_of({send(3'000'000_B), send(3'000'000_B)}, {0, 1}, {0, 1});
  RunOptions options{.plans = {CallPlan{}, CallPlan{.costs = std::vector<double>(net.n_links(), 2)}},
                     .plan_of_channel = every_channel(both.plan_of_channel())};
  CHECK(run(net, both.schedule(), options).duration() == 1'000'000'000_ps);
  // One after the other: 3 MB at 9 GB/s, then 3 MB at 4.5 GB/s.
  const LoweredProgram in_turn = program_of({send(3'000'000_B), send(3'000'000_B)}, {0, 1}, {0, 0});
  options.plan_of_channel = every_channel(in_turn.plan_of_channel());
  CHECK(run(net, in_turn.schedule(), options).duration() == 333'333'334_ps + 666'666'667_ps);
}

TEST_CASE("each plan takes its own of a device's channels, and one without a limit takes none") {
  // Three channels: two of 1 GB/s for the first plan, one of 2 GB/s for the second; the third has none, so the link's
  // 8 GB/s count. Two channels of a call share 2 MB equally: 1 MB each.
  const Topology plain = build(Star{.ranks = 2, .link = {.bandwidth = 8_GBps, .latency = 0_ps}});
  const Topology net = plain.with_rates(
      [&](NodeId id) {
        return plain.node(id).kind == NodeKind::gpu ? std::optional(DeviceRates{.channels = {1_GBps, 1_GBps, 2_GBps}})
                                                    : std::nullopt;
      },
      0);
  const std::vector<CallPlan> plans{{.first_device_channel = 0, .n_device_channels = 2},
                                    {.first_device_channel = 2, .n_device_channels = 1},
                                    {.first_device_channel = 3, .n_device_channels = 0}};
  const CheckedSchedule send = check(make_schedule(
      *find_algorithm("direct"), {.op = CollectiveOp::broadcast, .ranks = 2, .bytes = 2'000'000_B, .channels = 2}, {}));
  const auto time_of = [&](int plan) {
    const LoweredProgram one = program_of({send}, {plan}, {0});
    return run(net, one.schedule(), {.plans = plans, .plan_of_channel = every_channel(one.plan_of_channel())})
        .duration();
  };
  CHECK(time_of(0) == 1'000'000'000_ps);  // 1 MB at 1 GB/s, twice at a time
  CHECK(time_of(1) == 1'000'000'000_ps);  // 2 MB at 2 GB/s
  CHECK(time_of(2) == 250'000'000_ps);    // 2 MB at 8 GB/s
}

TEST_CASE("calls of one stream by different plans have channels of their own, apart as those of streams are") {
  const CheckedSchedule ring = all_reduce("ring", 4, 4'000_B, 2);
  const LoweredProgram program = program_of({ring, ring, ring}, {2, 0, 2}, {0, 0, 1});
  const std::vector<std::uint16_t> plans = program.plan_of_channel();
  const auto apart = static_cast<std::size_t>(channels_apart(3));  // (stream 0, plans 0 and 2), (stream 1, plan 2)
  REQUIRE(plans.size() == 3 * apart);
  for (std::size_t slice = 0; slice < 3; ++slice)
    for (const std::size_t at : {slice * apart, (slice + 1) * apart - 1}) CHECK(plans[at] == (slice == 0 ? 0 : 2));
  // Whatever the call, its messages have channels of its plan.
  const Schedule& whole = program.schedule().schedule();
  Step step;
  for (Lane lane = 0; lane < whole.lanes; ++lane)
    for (int i = 0; i < whole.n_steps(1, lane); ++i) {
      step.clear();
      whole.step(1, lane, i, step);
      const StepPlace place = program.place_of(1, lane, i);
      for (const Op& op : step.ops)
        if (op.peer >= 0) CHECK(plans[op.channel] == (place.stream == 0 && place.task == 1 ? 0 : 2));
    }
}

TEST_CASE("each connection has the slots of its plan's protocol") {
  // 6 MiB to a receiver that begins at 900 us. At 8 GB/s a slot of 512 KiB takes 65.536 us: with 12 slots all is there
  // by then, with 8 the other 4 set out at 900 us. A byte of another call, by the plan with 8, has the first channels.
  const Topology net = build(Star{.ranks = 2, .link = {.bandwidth = 8_GBps, .latency = 0_ps}});
  Protocol wide = *find_protocol("simple");
  wide.slots = 12;
  const std::vector<CallPlan> plans{{.protocol = find_protocol("simple")}, {.protocol = &wide}};
  const auto send = [](Bytes bytes) {
    return check(
        make_schedule(*find_algorithm("direct"), {.op = CollectiveOp::broadcast, .ranks = 2, .bytes = bytes}, {}));
  };
  const auto time_of = [&](int own) {
    const LoweredProgram program = program_of({send(1_B), send({12 * 512 * 1024})}, {0, own}, {0, 1});
    RunOptions options{.plans = plans, .plan_of_channel = every_channel(program.plan_of_channel())};
    options.disturbance.late.push_back({1, SimTime{Picoseconds{900'000'000}}});
    return run(net, program.schedule(), options).duration();
  };
  const Picoseconds more = time_of(0) - time_of(1) - 4 * 65'536'000_ps;
  CHECK(std::abs(more.count()) < 1000);  // the byte's own time
}

TEST_CASE("plans of which some messages run ahead and others do not are no run") {
  const Topology net = build(Star{.ranks = 2, .link = {.bandwidth = 8_GBps, .latency = 0_ps}});
  const CheckedSchedule ring = all_reduce("ring", 2, 4'000_B);
  RunOptions options{.plans = {{.protocol = find_protocol("none")}, {.protocol = find_protocol("simple")}},
                     .plan_of_channel = every_channel({})};
  CHECK_THROWS_AS(run(net, ring, options), InvariantError);
  options.plans.back() = options.plans.front();
  CHECK(run(net, ring, options).duration().count() > 0);
  options.plan_of_channel.clear();  // none of its channels has a plan
  CHECK_THROWS_AS(run(net, ring, options), InvariantError);
}

}  // namespace call_plan_test
