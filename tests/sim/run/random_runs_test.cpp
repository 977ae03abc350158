// Random runs of any kind, held to what is true of every run: above all, that the critical path explains all of it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/run/link_use.hpp"
#include "sim/run/phase_account.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/naive/naive_phases.hpp"
#include "tests/support/tiny.hpp"
#include "topologies/catalog.hpp"

namespace random_runs_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using ringsim::test::Draw;

namespace {

/// A star, two switches that join all (so that a cable can be lost), a ring of cables (GPUs relay), or two machines of
/// several GPUs and NICs (host memory relays without GPUDirect).
Topology random_topology(Draw& draw) {
  const auto n = static_cast<std::uint32_t>(draw.number(2, 6));
  const auto spec = [&] {
    return LinkSpec{.bandwidth = {draw.number(1, 20) * 1'000'000'000}, .latency = draw.number(0, 4) * 500ns};
  };
  const std::int64_t kind = draw.number(0, 3);
  if (kind == 3) return build(cluster_of(draw.one_of(std::array{"dgx-1v", "dgx-a100"}), 2, StarFabric{.link = spec()}));
  TopologyBuilder builder;
  for (std::uint32_t g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::int64_t s = 0; s < kind; ++s) {
    const NodeId hub = builder.add_node(fmt::format("switch{}", s), NodeKind::network_switch);
    for (std::uint32_t g = 0; g < n; ++g) builder.add_cable(NodeId{g}, hub, spec());
  }
  for (std::uint32_t g = 0; kind == 0 && g < n; ++g)
    if (n > 2 || g == 0) builder.add_cable(NodeId{g}, NodeId{(g + 1) % n}, spec());
  return builder.build();
}

Schedule random_schedule(Draw& draw, int ranks) {
  const Algorithm* algorithm =
      find_algorithm(draw.one_of(std::array{"ring", "direct", "chain", "halving_doubling", "recursive_doubling",
                                            "double_binary_tree", "binomial_tree", "parameter_server"}));
  CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = ranks, .bytes = {draw.number(1, 8 << 20)}};
  if (draw.once_in(3)) request.channels = static_cast<int>(draw.number(2, 3));
  if (draw.once_in(3)) request.chunk = Bytes{draw.number(1, 2 << 20)};
  return make_schedule(*algorithm, request, {});
}

void disturb(Draw& draw, const Topology& net, std::size_t ranks, Disturbance& disturbance, bool may_go_down) {
  const auto actor = [&] { return static_cast<Actor>(draw.number(0, static_cast<std::int64_t>(ranks) - 1)); };
  SimTime at{};
  for (std::int64_t i = draw.number(0, 4); may_go_down && i > 0; --i) {
    const LinkId link{static_cast<std::uint32_t>(draw.number(0, static_cast<std::int64_t>(net.n_links()) - 1))};
    at += draw.number(0, 400) * 1us;
    disturbance.links.push_back({.to = LinkChange::To::down, .at = at, .links = {link}});
    disturbance.links.push_back(
        {.to = LinkChange::To::restored, .at = at + draw.number(1, 600) * 1us, .links = {link}});
  }
  if (draw.once_in(3)) disturbance.late.push_back({actor(), SimTime{draw.number(0, 900) * 1us}});
  if (draw.once_in(3)) disturbance.slow.push_back({actor(), draw.number(0, 9) * 1us});
  if (draw.once_in(3)) disturbance.jitter = {draw.number(1, 20) * 1us, draw.random()};
  if (draw.once_in(4))
    disturbance.background.push_back(
        {.from = net.ranks()[0], .to = net.ranks()[1], .bytes = {draw.number(1, 4'000'000)}});
}

/// Some ranks add, some copy, some move at the pace of their channels, post messages, or draw on any link as they add.
Topology with_random_rates(Draw& draw, const Topology& net, const Schedule& schedule, const RunOptions& options) {
  const auto maybe_rate = [&] {
    return draw.once_in(2) ? std::nullopt : std::optional(Bandwidth{draw.number(1, 40) * 1'000'000'000});
  };
  const bool may_have_channels = options.routing.policy != Routing::Policy::flow_spray;
  const auto rates = [&](NodeId id) -> std::optional<DeviceRates> {
    if (net.node(id).kind != NodeKind::gpu || draw.once_in(4)) return std::nullopt;
    DeviceRates found{.copy = maybe_rate(), .reduce = maybe_rate(), .start = draw.number(0, 3) * 1us};
    if (may_have_channels) found.channel = maybe_rate();
    if (draw.once_in(2)) found.post = draw.number(1, 30) * 1us;
    if (draw.once_in(3))
      found.over = LinkId{static_cast<std::uint32_t>(draw.number(0, static_cast<std::int64_t>(net.n_links()) - 1))};
    return found;
  };
  return net.with_rates(rates, std::max(1, schedule.collective.ranks));
}

struct Drawn {
  Topology net;
  Schedule schedule;
  RunOptions options;
};

/// Every other channel moves by another protocol with slots, and links cost it more.
void add_plan(Draw& draw, const Topology& net, RunOptions& options) {
  if (options.plans.front().protocol->slots == 0) return;
  if (options.routing.policy == Routing::Policy::flow_spray) return;
  CallPlan other = options.plans.front();
  other.protocol = find_protocol(draw.one_of(std::array{"simple", "ll", "ll128"}));
  for (std::size_t l = 0; l < net.n_links(); ++l) other.costs.push_back(1 + static_cast<double>(draw.number(0, 8)) / 8);
  options.plans.push_back(std::move(other));
  options.plan_of_channel.resize(std::size_t{1} << 16);
  for (std::size_t channel = 1; channel < options.plan_of_channel.size(); channel += 2)
    options.plan_of_channel[channel] = 1;
}

Drawn draw_run(std::uint64_t seed, bool disturbed) {
  Draw draw(seed);
  Topology net = random_topology(draw);
  const auto ranks = static_cast<std::size_t>(
      draw.number(2, std::min<std::int64_t>(6, static_cast<std::int64_t>(net.ranks().size()))));
  RunOptions options;
  options.plans.front().protocol = find_protocol(draw.one_of(std::array{"none", "simple", "ll", "ll128"}));
  options.model = draw.one_of(std::array{NetworkModel::fair, NetworkModel::ideal});
  if (draw.once_in(12)) options.model = NetworkModel::packet;
  if (draw.once_in(2))
    options.plans.front().transport.staging = {.size = {draw.number(16, 512) * 1024},
                                               .depth = static_cast<int>(draw.number(1, 4))};
  if (draw.once_in(2)) options.plans.front().transport.gdr_level = PathType::loc;
  if (draw.once_in(3)) options.plans.front().transport.nics = Transport::Nics::all;
  options.routing.policy = static_cast<Routing::Policy>(draw.number(0, 3));
  if (draw.once_in(4)) add_plan(draw, net, options);
  std::vector<NodeId> distinct(net.ranks().begin(), net.ranks().end());
  std::shuffle(distinct.begin(), distinct.end(), draw.random);
  options.placement.assign(distinct.begin(), distinct.begin() + static_cast<std::ptrdiff_t>(ranks));
  Schedule schedule = random_schedule(draw, static_cast<int>(ranks));
  if (disturbed) disturb(draw, net, ranks, options.disturbance, options.model != NetworkModel::packet);
  if (draw.once_in(3)) net = with_random_rates(draw, net, schedule, options);
  return {std::move(net), std::move(schedule), std::move(options)};
}

#ifdef RINGSIM_SANITIZED  // which makes runs 15 times slower
constexpr int thousands = 1;
constexpr std::uint64_t runs = 500;
#else
constexpr int thousands = 4;
constexpr std::uint64_t runs = 1000;
#endif

/// How often each kind of thing happened: what never did was not tested.
struct Counts {
  int runs = 0, refused = 0, with_latency = 0, with_others = 0, with_delay = 0;
};

void check_parts(std::uint64_t seed, bool disturbed, Counts& counts) {
  CAPTURE(seed);
  const Drawn drawn = draw_run(seed, disturbed);
  Timeline line;
  try {
    line = run(drawn.net, check(drawn.schedule), drawn.options);
  } catch (const InputError&) {  // faults that leave no way, messages larger than the slots that they need
    ++counts.refused;
    return;
  }
  ++counts.runs;
  if (!line.bottleneck) return;
  const Bottleneck& found = *line.bottleneck;
  for (const Picoseconds part : {found.busy, found.others, found.latency, found.compute, found.delay})
    REQUIRE(part >= 0_ps);
  REQUIRE(found.busy + found.others + found.latency + found.compute + found.delay == line.duration());
  counts.with_latency += found.latency > 0_ps ? 1 : 0;
  counts.with_others += found.others > 0_ps ? 1 : 0;
  counts.with_delay += found.delay > 0_ps ? 1 : 0;
}

/// A message's element lies within a message of the timeline between the same two ranks.
bool is_in_timeline(const PathElement& element, const Timeline& line) {
  return std::any_of(line.spans.begin(), line.spans.end(), [&](const Span& span) {
    return span.from == element.from && span.to == element.to && span.start <= element.begin &&
           element.end <= span.finish;
  });
}

/// The account of phases is that of the whole timeline, and its parts sum to the time.
void check_phases(const Schedule& schedule, const Timeline& line, PhaseAccount& account) {
  const std::vector<PhaseTime> phases = account.finish(line);
  Picoseconds sum{0};
  for (const PhaseTime& phase : phases) sum += phase.whole.critical;
  REQUIRE(sum == line.duration());
  const auto found = as_map(phases), naive = naive_phases(schedule, line);
  REQUIRE(found.size() == naive.size());
  for (const auto& [key, use] : naive) {
    const PhaseUse& other = found.at(key);
    REQUIRE(use.first_start == other.first_start);
    REQUIRE(use.last_end == other.last_end);
    REQUIRE(use.critical == other.critical);
    REQUIRE(use.bytes == other.bytes);
    REQUIRE(use.messages == other.messages);
  }
}

/// How often each cause was on a path: what never was is not tested.
using Causes = std::map<PathCause, int>;

void check_path(std::uint64_t seed, bool disturbed, Causes& causes) {
  CAPTURE(seed);
  Drawn drawn = draw_run(seed, disturbed);
  PhaseAccount account(drawn.schedule);
  Timeline plain, line;
  try {
    plain = run(drawn.net, check(drawn.schedule), drawn.options);
    drawn.options.record_path = drawn.options.record_spans = true;
    drawn.options.on_message = [&](const Span& message) { account.on_message(message); };
    line = run(drawn.net, check(drawn.schedule), drawn.options);
  } catch (const InputError&) {
    return;
  }
  REQUIRE(plain.path.empty());
  REQUIRE(line.fingerprint == plain.fingerprint);  // to look does not change the run
  REQUIRE(line.finish == plain.finish);
  check_phases(drawn.schedule, line, account);
  SimTime now{};
  std::map<PathCause, Picoseconds> sums;
  for (const PathElement& element : line.path) {
    REQUIRE(element.begin == now);
    REQUIRE(element.end > element.begin);
    now = element.end;
    sums[element.cause] += element.time();
    const bool is_message =
        element.cause == PathCause::link || element.cause == PathCause::staging || element.cause == PathCause::latency;
    if (is_message && element.from != element.to) REQUIRE(is_in_timeline(element, line));  // the rest: devices
    if (element.cause == PathCause::link) REQUIRE(element.resource != no_resource);
    ++causes[element.cause];
  }
  REQUIRE(now == line.finish);
  if (!line.bottleneck) return;
  // The sums that every run keeps are those of the elements.
  REQUIRE(sums[PathCause::link] == line.bottleneck->busy + line.bottleneck->others);
  REQUIRE(sums[PathCause::latency] + sums[PathCause::staging] == line.bottleneck->latency);
  REQUIRE(sums[PathCause::compute] == line.bottleneck->compute);
  REQUIRE(sums[PathCause::late] + sums[PathCause::slow] + sums[PathCause::jitter] == line.bottleneck->delay);
}

/// Over time each link carries what it carries in all, and never more than its bandwidth; with `ideal`, which has room
/// for all between the ports, it may.
void check_use(std::uint64_t seed, bool disturbed, int& uses) {
  CAPTURE(seed);
  Drawn drawn = draw_run(seed, disturbed);
  Timeline plain, line;
  LinkUse use;
  try {
    plain = run(drawn.net, check(drawn.schedule), drawn.options);
    drawn.options.on_traffic = [&](const Traffic& traffic) { use.add(traffic); };
    line = run(drawn.net, check(drawn.schedule), drawn.options);
  } catch (const InputError&) {
    return;
  }
  REQUIRE(line.fingerprint == plain.fingerprint);  // to listen does not change the run
  const bool spread =
      drawn.options.model == NetworkModel::packet && drawn.options.routing.policy == Routing::Policy::packet_spray;
  std::vector<std::int64_t> carried(drawn.net.n_links());
  for (const LinkUse::Series& series : use.finish(line, spread)) {
    const bool has_room = drawn.options.model == NetworkModel::ideal;
    const double most = static_cast<double>(drawn.net.link(series.link).bandwidth.bytes_per_second) *
                        static_cast<double>(use.step().count()) / 1e12;
    for (const std::int64_t bytes : series.bytes) {
      REQUIRE(bytes >= 0);
      REQUIRE((has_room ||
               static_cast<double>(bytes) <= most * (1 + 1e-9) + 2));  // rounded to bytes, and times to picoseconds
      carried[series.link.value] += bytes;
    }
    ++uses;
  }
  if (spread) return;  // whole packets, where link_bytes has shares
  for (std::size_t l = 0; l < carried.size(); ++l) REQUIRE(carried[l] == line.link_bytes[l].count);
}

}  // namespace

TEST_CASE(
    "the parts of the critical path are not below 0 and sum to the time of the run, in each of many random runs") {
  Counts counts;
  for (std::uint64_t seed = 1; seed <= thousands * 1000; ++seed) check_parts(seed, seed % 3 == 0, counts);
  CHECK(counts.runs > 700 * thousands);
  CHECK(counts.with_latency > 500 * thousands);
  CHECK(counts.with_others > 100 * thousands);
  CHECK(counts.with_delay > 30 * thousands);
}

TEST_CASE("the recorded critical path has no gap, lies within the timeline's messages and has the sums of the run") {
  Causes causes;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) check_path(seed, seed % 2 == 0, causes);
  for (const PathCause cause :
       {PathCause::link, PathCause::staging, PathCause::latency, PathCause::late, PathCause::slow, PathCause::jitter})
    CHECK(causes[cause] > static_cast<int>(runs / 80));
}

TEST_CASE("what links carry over time sums to what they carry, below their bandwidth, in each of many random runs") {
  int uses = 0;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) check_use(seed, seed % 2 == 0, uses);
  CHECK(uses > static_cast<int>(5 * runs));
}

}  // namespace random_runs_test
