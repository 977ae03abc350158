// Random programs on random networks, whose runs are compared in several ways.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/check/in_groups.hpp"
#include "sim/program/lower.hpp"
#include "sim/program/program.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/topology.hpp"
#include "tests/support/draw.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::test {

using namespace std::chrono_literals;

inline Topology random_net(Draw& draw) {
  const LinkSpec link{.bandwidth = {draw.number(2, 40) * 1'000'000'000},
                      .latency = Picoseconds{draw.number(0, 2'000'000)}};
  const std::int64_t kind = draw.number(0, 3);
  if (kind == 0) return build(cluster_of("dgx-a100", static_cast<int>(draw.number(1, 3)), StarFabric{.link = link}));
  if (kind == 1) return build(cluster_of("dgx-1v", 2, StarFabric{.link = link}));
  TopologyBuilder builder;
  const auto n = static_cast<std::uint32_t>(draw.number(2, 12));
  for (std::uint32_t g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::int64_t s = 0; s < kind - 1; ++s) {
    const NodeId hub = builder.add_node(fmt::format("switch{}", s), NodeKind::network_switch);
    for (std::uint32_t g = 0; g < n; ++g) builder.add_cable(NodeId{g}, hub, link);
  }
  return builder.build();
}

inline CheckedSchedule random_call(Draw& draw, int ranks) {
  const Algorithm* algorithm =
      find_algorithm(draw.one_of(std::array{"ring", "direct", "chain", "halving_doubling", "recursive_doubling",
                                            "double_binary_tree", "binomial_tree", "parameter_server"}));
  CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = ranks, .bytes = {draw.number(1, 2 << 20)}};
  if (draw.once_in(3)) request.op = draw.one_of(std::array{CollectiveOp::broadcast, CollectiveOp::reduce});
  if (!algorithm->supports(request.op)) request.op = CollectiveOp::all_reduce;
  if (draw.once_in(3)) request.channels = static_cast<int>(draw.number(2, 3));
  if (draw.once_in(3)) request.chunk = Bytes{draw.number(1 << 10, 1 << 20)};
  Arguments arguments;
  if (algorithm->name == "parameter_server" && draw.once_in(2)) arguments.numbers["servers"] = draw.number(1, 3);
  return check(make_schedule(*algorithm, request, arguments));
}

/// Ranks in one or two halves, whose ranks have the same tasks: kernels, and calls in groups of equal size, side by
/// side or interleaved, on one of two streams. So one rank of each half may stand for it, or one of each place that
/// differs.
inline Program random_alike_program(Draw& draw, int ranks, std::size_t n_plans) {
  Program program{.name = "alike", .ranks = ranks, .actors = ranks};
  program.streams = {Program::StreamKind::compute, Program::StreamKind::communication,
                     Program::StreamKind::communication};
  program.iterations = static_cast<int>(draw.number(1, 3));
  const int n_halves = ranks % 2 == 0 && draw.once_in(2) ? 2 : 1, n = ranks / n_halves;
  program.roles.resize(static_cast<std::size_t>(n_halves));
  for (Actor rank = 0; rank < ranks; ++rank) program.role_of.push_back(rank / n);
  std::vector<int> sizes;
  for (int size = 2; size <= n; ++size)
    if (n % size == 0) sizes.push_back(size);
  struct Kind {
    CheckedSchedule schedule;  // all groups together
    Program::Members members;
    int half = 0;
    Stream stream = 1;
    int plan = 0;
    std::vector<int> helpers;  // their roles
  };
  std::vector<Kind> kinds;
  for (std::int64_t k = draw.number(1, 3); k > 0 && !sizes.empty(); --k) {
    const int size = draw.one_of(sizes), n_groups = n / size, half = static_cast<int>(draw.number(0, n_halves - 1));
    const CheckedSchedule one = random_call(draw, size);
    const int n_helpers = one.schedule().actors - size;
    const bool interleaved = draw.once_in(2);
    kinds.push_back({.schedule = in_groups(std::vector<CheckedSchedule>(static_cast<std::size_t>(n_groups), one)),
                     .members = {},
                     .half = half,
                     .stream = static_cast<Stream>(draw.number(1, 2)),
                     .plan = static_cast<int>(draw.number(1, static_cast<std::int64_t>(n_plans))) - 1,
                     .helpers = {}});
    Kind& kind = kinds.back();
    for (int h = 0; h < n_helpers; ++h) {
      kind.helpers.push_back(static_cast<int>(program.roles.size()));
      program.roles.emplace_back();
    }
    for (int group = 0; group < n_groups; ++group) {
      for (int i = 0; i < size; ++i)
        kind.members.push_back(half * n + (interleaved ? i * n_groups + group : group * size + i));
      for (const int helper : kind.helpers) {
        kind.members.push_back(program.actors++);
        program.role_of.push_back(helper);
      }
    }
  }
  for (Program::Role& role : program.roles) role.streams.resize(program.streams.size());
  for (int half = 0; half < n_halves; ++half)
    program.roles[static_cast<std::size_t>(half)].streams[0].push_back({.name = "first kernel", .time = 1us});
  for (std::int64_t use = draw.number(2, 8); use > 0 && !kinds.empty(); --use) {
    const Kind& kind = kinds[static_cast<std::size_t>(draw.number(0, static_cast<std::int64_t>(kinds.size()) - 1))];
    const auto call = static_cast<int>(program.calls.size()), s = static_cast<int>(kind.stream);
    program.calls.push_back({.name = fmt::format("call {}", call),
                             .schedule = kind.schedule,
                             .members = kind.members,
                             .plan = kind.plan,
                             .variables = {}});
    auto& streams = program.roles[static_cast<std::size_t>(kind.half)].streams;
    streams[0].push_back({.name = "kernel", .time = Picoseconds{draw.number(0, 2) * draw.number(0, 200'000'000)}});
    streams[static_cast<std::size_t>(s)].push_back({.time = Picoseconds{draw.number(0, 3'000'000)}, .call = call});
    streams[static_cast<std::size_t>(s)].back().after.push_back({0, static_cast<int>(streams[0].size()), 0});
    for (const int helper : kind.helpers)
      program.roles[static_cast<std::size_t>(helper)].streams[static_cast<std::size_t>(s)].push_back({.call = call});
    if (!draw.once_in(3)) continue;  // else the next kernel waits for what was called
    streams[0].push_back({.name = "update", .time = Picoseconds{5'000'000}});
    streams[0].back().after.push_back({s, static_cast<int>(streams[static_cast<std::size_t>(s)].size()), 0});
  }
  return program;
}

/// Protocols, routing, costs of links and rates of devices.
inline void draw_options(Draw& draw, Topology& net, RunOptions& options) {
  options.plans.front().protocol = find_protocol(draw.one_of(std::array{"none", "simple", "ll", "ll128"}));
  options.model = draw.once_in(8) ? NetworkModel::ideal : NetworkModel::fair;
  if (draw.once_in(3)) options.plans.front().transport.staging.size = {draw.number(64, 512) * 1024};
  if (draw.once_in(3)) options.plans.front().transport.nics = Transport::Nics::per_channel;
  if (draw.once_in(3)) options.routing.policy = Routing::Policy::ecmp;
  if (options.plans.front().protocol->slots > 0 && draw.once_in(2)) {
    options.plans.push_back(options.plans.front());
    options.plans.back().protocol = find_protocol(draw.one_of(std::array{"simple", "ll", "ll128"}));
  }
  options.routing.seed = static_cast<std::uint64_t>(draw.number(0, 1000));
  if (draw.once_in(3))
    for (std::size_t l = 0; l < net.n_links(); ++l)
      options.plans.front().costs.push_back(1 + static_cast<double>(draw.number(0, 8)) / 7);
  if (!draw.once_in(3)) return;
  const std::int64_t rate = draw.number(1, 40);
  const bool adds = draw.once_in(2), has_channels = draw.once_in(2), posts = draw.once_in(2);
  net = net.with_rates(
      [&](NodeId id) -> std::optional<DeviceRates> {
        if (net.node(id).kind != NodeKind::gpu) return std::nullopt;
        DeviceRates found{.start = 1us};
        if (adds) found.reduce = Bandwidth{rate * 1'000'000'000};
        if (has_channels) found.channel = Bandwidth{rate * 500'000'000};
        if (posts) found.post = 3us;
        return found;
      },
      static_cast<int>(net.ranks().size()));
}

/// The program, proved; helpers sit where ranks do.
inline CheckedProgram placed(const Topology& net, const Program& drawn, RunOptions& options) {
  const auto n_helpers = static_cast<std::size_t>(drawn.actors - drawn.ranks);
  options.placement.assign(net.ranks().begin(), net.ranks().end());
  for (std::size_t h = 0; h < n_helpers; ++h) options.placement.push_back(net.ranks()[h % net.ranks().size()]);
  CheckedProgram program = check(drawn);
  if (options.plans.size() > 1) {
    options.plan_of_channel = LoweredProgram(program).plan_of_channel();
    options.plan_of_channel.resize(std::size_t{1} << 16);
  }
  return program;
}

}  // namespace ringsim::test
