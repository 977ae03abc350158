// One rank for all: a folded run tells what the whole run tells, and where it might not, it is not folded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/run/fold.hpp"
#include "sim/run/fold_turns.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/command.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/peers.hpp"
#include "tests/support/tiny.hpp"

namespace fold_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// Of those two links each may stand for the other: same kind, ends of the same kinds, same bandwidth, same load.
bool are_like(const Topology& net, const Timeline& timeline, ResourceId a, ResourceId b) {
  if (a == no_resource || b == no_resource) return a == b;
  const Link &x = net.link(net.resource(a).link), &y = net.link(net.resource(b).link);
  const auto load = [&](ResourceId r) { return timeline.link_bytes[net.resource(r).link.value]; };
  return x.kind == y.kind && x.bandwidth == y.bandwidth && net.node(x.from).kind == net.node(y.from).kind &&
         net.node(x.to).kind == net.node(y.to).kind && load(a) == load(b);
}

/// Runs it both ways and compares all that a folded run tells. Returns why it was not folded; "" where it was.
std::string both_ways(const Topology& net, const CheckedSchedule& checked, RunOptions options = {}) {
  options.fold_from = 0;
  // It keeps ranks from standing for others to rounding (fold_alike_test.cpp), and stops no exact fold.
  options.on_compute = [](const ComputeEvent&) {};
  const Timeline some = run(net, checked, options);
  CHECK(some.folded.has_value() == some.not_folded.empty());
  CHECK(some.folded.has_value() != some.fingerprint.has_value());
  if (!some.folded) return some.not_folded;  // it was simulated in full
  options.fold = false;
  const Timeline all = run(net, checked, options);
  CHECK_FALSE(all.folded);
  CHECK(all.not_folded == "");
  CHECK(all.fingerprint.has_value());
  CHECK(some.finish == all.finish);
  CHECK(some.actor_finish == all.actor_finish);
  CHECK(some.transfers == all.transfers);
  CHECK(some.bytes_sent == all.bytes_sent);
  CHECK(some.link_bytes == all.link_bytes);
  // Folded by turns, or by channels, a flow may get its link for itself sooner or later within the first instant.
  CHECK((some.events == all.events || some.folded->find(" ranks represent all") != std::string::npos ||
         some.folded->find(" channels represents all") != std::string::npos));
  REQUIRE(some.bottleneck.has_value() == all.bottleneck.has_value());
  if (all.bottleneck) {
    CHECK(some.bottleneck->busy == all.bottleneck->busy);
    CHECK(some.bottleneck->others == all.bottleneck->others);
    CHECK(some.bottleneck->latency == all.bottleneck->latency);
    CHECK(some.bottleneck->compute == all.bottleneck->compute);
    CHECK(are_like(net, all, some.bottleneck->resource, all.bottleneck->resource));
  }
  return "";
}

/// All whose steps are one message each; PAT's are of several.
std::vector<Schedule> symmetric_ones(int n, Bytes bytes) {
  std::vector<Schedule> found;
  for (Schedule& schedule : every_algorithm(n, bytes))
    if (schedule.symmetry.claimed() && peers_of(schedule).one_a_step) found.push_back(std::move(schedule));
  return found;
}

std::vector<int> rank_counts() {
  std::vector<int> counts(16);
  std::iota(counts.begin(), counts.end(), 2);
  counts.insert(counts.end(), {32, 64});
  return counts;
}

/// GPUs of hosts of their own, each with its NIC on one switch.
Topology hosts(int n, int nics = 1) {
  TopologyBuilder builder;
  const NodeId hub = builder.add_node("leaf", NodeKind::network_switch);
  for (int h = 0; h < n; ++h) {
    const auto host = static_cast<std::uint32_t>(h);
    const NodeId gpu = builder.add_gpu(fmt::format("gpu{}", h), host);
    for (int k = 0; k < nics; ++k) {
      const NodeId nic = builder.add_node(fmt::format("nic{}.{}", h, k), NodeKind::nic, host);
      builder.add_cable(gpu, nic, {.bandwidth = 12_GBps, .latency = 300ns, .kind = LinkKind::pcie});
      builder.add_cable(nic, hub, {.bandwidth = 10_GBps, .latency = 1us, .kind = LinkKind::infiniband});
    }
  }
  return builder.build();
}

/// A star whose ports are as `port` says, [rank].
template <class Port>
Topology star_of(int n, Port port) {
  TopologyBuilder builder;
  for (int g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (int g = 0; g < n; ++g) builder.add_cable(NodeId{static_cast<std::uint32_t>(g)}, hub, port(g));
  return builder.build();
}

const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1us};

std::string ring_on(const Topology& net, const RunOptions& options = {}) {
  return both_ways(net, check(ring_all_reduce(static_cast<int>(net.ranks().size()), 840_KiB)), options);
}

}  // namespace

TEST_CASE("on a star what is folded is the same to the picosecond, and folded is what has equal chunks") {
  int n_folded = 0, n_whole = 0;
  for (const int n : rank_counts()) {
    for (const std::int64_t bytes :
         {std::int64_t{n} * 1048576, std::int64_t{n} * 1009, std::int64_t{1000003}, std::int64_t{1}, std::int64_t{0}}) {
      for (const Schedule& schedule : symmetric_ones(n, {bytes})) {
        const CheckedSchedule checked = check(schedule);
        for (const Picoseconds latency : {Picoseconds{0}, Picoseconds{333'331}, Picoseconds{500ns}}) {
          const Topology net = star(n, {.bandwidth = {24'999'999'937}, .latency = latency});
          for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
            CAPTURE(n);
            CAPTURE(bytes);
            CAPTURE(schedule.algorithm);
            CAPTURE(to_string(schedule.collective.op));
            CAPTURE(latency.count());
            const bool equal = bytes % n == 0;
            const std::string why_not = both_ways(net, checked, {.model = model});
            CHECK(why_not == (equal ? "" : fmt::format("{} bytes in {} chunks are not equal chunks", bytes, n)));
            ++(equal ? n_folded : n_whole);
          }
        }
      }
    }
  }
  CHECK(n_folded > 500);
  CHECK(n_whole > 200);
}

TEST_CASE("on a full mesh all that is symmetric folds; on a ring of cables what goes round does") {
  for (int n = 2; n <= 17; ++n) {
    for (const Schedule& schedule : symmetric_ones(n, {n * 30'011})) {
      const CheckedSchedule checked = check(schedule);
      const std::set<Actor> to = peers_of(schedule).to;
      const bool goes_round = std::all_of(to.begin(), to.end(), [&](Actor a) { return a == 1 || a == n - 1; });
      for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
        CAPTURE(n);
        CAPTURE(schedule.algorithm);
        const LinkSpec link{.bandwidth = {24'999'999'937}, .latency = Picoseconds{333'331}};
        CHECK(both_ways(build(FullMesh{.ranks = n, .link = link}), checked, {.model = model}) == "");
        const std::string round = both_ways(build(Ring{.ranks = n, .link = link}), checked, {.model = model});
        CHECK(round.empty() == goes_round);
      }
    }
  }
}

TEST_CASE("a torus folds on cables of its own shape, and PAT, with several messages per step, nowhere") {
  for (const std::vector<int>& dimensions : {std::vector{4, 4}, {3, 5}, {2, 3, 4}, {6, 2}}) {
    int n = 1;
    for (const int d : dimensions) n *= d;
    const Topology net = build(Torus{.dimensions = dimensions, .link = cable});
    CHECK(both_ways(net, check(torus_all_reduce(dimensions, {n * 30'011}))) == "");
  }
  CHECK(both_ways(star(8, cable), check(pat_all_gather(8, 8_MiB))) == "step 1 is more than one message");
}

TEST_CASE("the rank that stands for all computes, passes adapters, and stages in a relay as all do") {
  Schedule busy = ring_all_reduce(6, 6_MiB);
  busy.step = [quiet = busy.step](Actor r, Lane lane, int i, Step& out) {
    quiet(r, lane, i, out);
    out.compute(i % 3 == 0 ? Picoseconds{100ns} : Picoseconds{200us});  // shorter and longer than a message
  };
  CHECK(both_ways(star(6, cable), check(busy)) == "");

  CHECK(ring_on(hosts(7)) == "");
  CHECK(both_ways(hosts(8), check(halving_doubling(8, 8_MiB, Fold::naive))) == "");

  // Between two ranks a relay of their own: two legs of different speeds, 3 slots a message.
  TopologyBuilder builder;
  for (int g = 0; g < 5; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::uint32_t g = 0; g < 5; ++g) {
    const NodeId relay = builder.add_node(fmt::format("relay{}", g), NodeKind::gpu);
    builder.add_cable(NodeId{g}, relay, cable);
    builder.add_cable(relay, NodeId{(g + 1) % 5}, {.bandwidth = 7_GBps, .latency = 2us});
  }
  const Topology relayed = builder.build();
  CHECK(both_ways(relayed, check(ring_all_reduce(5, 5_MiB + 1310720_B))) == "");
}

TEST_CASE("messages of one step are alike, those of another may be unlike them") {
  TopologyBuilder builder;  // a square with two fast sides
  for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (const auto& [a, b] : {std::pair{0U, 1U}, {2U, 3U}}) builder.add_cable(NodeId{a}, NodeId{b}, cable);
  for (const auto& [a, b] : {std::pair{0U, 2U}, {1U, 3U}})
    builder.add_cable(NodeId{a}, NodeId{b}, {.bandwidth = 3_GBps, .latency = 3us});
  const Topology square = builder.build();
  CHECK(both_ways(square, check(halving_doubling(4, 4_MiB, Fold::naive))) == "");
}

TEST_CASE("the example scenarios come out the same, folded where that is possible") {
  int n_folded = 0, n_whole = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_dir() + "/scenarios/examples")) {
    if (entry.path().extension() != ".json") continue;
    CAPTURE(entry.path().string());
    const ScenarioFile file = ScenarioFile::load(entry.path().string(), {});
    for (std::size_t i = 0; i < file.size(); ++i) {
      CAPTURE(i);
      const Scenario scenario = file.point(i);
      if (scenario.training || scenario.by_program()) continue;  // a program does not fold
      const Topology net = topology_of(scenario);
      if (!scenario.main().ranks.empty() || scenario.main().shuffle || scenario.main().best_ring ||
          scenario.main().servers_on_cpu || scenario.main().algorithm->in_fabric || scenario.main().request.ranks < 2)
        continue;  // placed otherwise
      const std::string why_not = both_ways(net, schedule_of(scenario),
                                            {.model = scenario.model,
                                             .plans = {{.transport = scenario.transport}},
                                             .routing = routing_of(net, scenario)});
      ++(why_not.empty() ? n_folded : n_whole);
    }
  }
  CHECK(n_folded > 10);
  CHECK(n_whole > 10);
}

TEST_CASE("ranks may sit anywhere on the star, and ports that nobody uses may be unlike the others") {
  std::vector<NodeId> placement;
  for (const std::uint32_t g : {6U, 2U, 0U, 5U, 1U, 4U}) placement.push_back(NodeId{g});
  const Topology net =
      star_of(8, [](int g) { return g == 3 || g == 7 ? LinkSpec{.bandwidth = 1_GBps, .latency = 5us} : cable; });
  CHECK(both_ways(net, check(ring_all_reduce(6, 840_KiB)), {.placement = placement}) == "");
  placement[4] = NodeId{3};
  CHECK(both_ways(net, check(ring_all_reduce(6, 840_KiB)), {.placement = placement}) ==
        "the port of gpu3 is not like that of gpu6");
  placement[4] = placement[1];
  CHECK(both_ways(net, check(ring_all_reduce(6, 840_KiB)), {.placement = placement}) == "two ranks sit on gpu2");
}

TEST_CASE("where ports or paths differ, or messages meet, all ranks are simulated, and it is said why") {
  CHECK(ring_on(star(8, cable)) == "");
  for (const LinkSpec& odd : {LinkSpec{.bandwidth = 9_GBps, .latency = 1us}, LinkSpec{.bandwidth = 10_GBps},
                              LinkSpec{.bandwidth = 10_GBps, .latency = 1us, .kind = LinkKind::nvlink}})
    CHECK(ring_on(star_of(8, [&](int g) { return g == 5 ? odd : cable; })) ==
          "the port of gpu5 is not like that of gpu0");
  TopologyBuilder builder;  // gpu2 sends as all do, and hears less well
  for (int g = 0; g < 3; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (std::uint32_t g = 0; g < 3; ++g) {
    builder.add_link(NodeId{g}, hub, cable);
    builder.add_link(hub, NodeId{g}, g == 2 ? LinkSpec{.bandwidth = 9_GBps, .latency = 1us} : cable);
  }
  CHECK(ring_on(builder.build()) == "the port of gpu2 is not like that of gpu0");
  const LinkSpec half{.bandwidth = 10_GBps, .latency = 1us, .duplex = Duplex::half};
  CHECK(ring_on(star(8, half)) == "gpu0 sends and receives over one half-duplex cable");
  CHECK(ring_on(star_of(8, [&](int g) { return g == 5 ? half : cable; })) ==
        "gpu5 sends and receives over one half-duplex cable");
  CHECK(ring_on(build(Ring{.ranks = 5, .link = half})) == "");  // each cable is used in one direction only
  CHECK(ring_on(build(Ring{.ranks = 2, .link = half})) == "gpu0 to gpu1 and gpu1 to gpu0 meet on gpu0 <-> gpu1");
  CHECK(ring_on(dumbbell(cable, cable)) == "");  // by turns of two ranks
  // Both messages of rank +2 relay over the cables between.
  CHECK(both_ways(build(Ring{.ranks = 4, .link = cable}), check(halving_doubling(4, 4_KiB, Fold::naive)))
            .find(" meet on ") != std::string::npos);
  // A rail of two: the trunk carries two messages each way.
  CHECK(both_ways(dumbbell(cable, cable), check(halving_doubling(4, 4_KiB, Fold::naive))) ==
        "gpu0 to gpu2 and gpu1 to gpu3 meet on s0 -> s1");
}

TEST_CASE("messages that are cut, spread or sent several ways in turn are simulated in full") {
  CHECK(ring_on(hosts(7, 2)) == "");
  Transport all_nics;
  all_nics.nics = Transport::Nics::all;
  CHECK(ring_on(hosts(7, 2), {.plans = {{.transport = all_nics}}}) == "messages are cut into 2 parts");

  TopologyBuilder builder;
  for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (std::uint32_t cables = 0; cables < 8; ++cables) builder.add_cable(NodeId{cables / 2}, hub, cable);
  const Topology twice = builder.build();
  CHECK(ring_on(twice) == "");
  CHECK(ring_on(twice, {.routing = {.policy = Routing::Policy::packet_spray, .table = {}}}) ==
        "bytes of gpu0 to gpu1 cross links in shares");
  CHECK(ring_on(twice, {.routing = {.policy = Routing::Policy::flow_spray, .table = {}}}) ==
        "messages of a pair take several ways in turn");
  // With one cable each there is only one way.
  CHECK(ring_on(star(4, cable), {.routing = {.policy = Routing::Policy::flow_spray, .table = {}}}) == "");
  CHECK(ring_on(star(4, cable), {.routing = {.policy = Routing::Policy::packet_spray, .table = {}}}) == "");
}

// gpu0 to gpu3 on switches s0 to s3 in a circle: gpu r, s r, gpu r + 1. Each has the same port to its own switch; the
// cable from s2 to gpu3 is narrower, which only a path's second link shows.
TEST_CASE("paths that differ past their first link are not alike: all ranks are simulated") {
  for (const bool narrow : {false, true}) {
    CAPTURE(narrow);
    TopologyBuilder builder;
    for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
    std::vector<NodeId> switches;
    for (int s = 0; s < 4; ++s) switches.push_back(builder.add_node(fmt::format("s{}", s), NodeKind::network_switch));
    for (std::uint32_t g = 0; g < 4; ++g) {
      builder.add_cable(NodeId{g}, switches[g], cable);
      LinkSpec on = cable;
      if (narrow && g == 2) on.bandwidth.bytes_per_second /= 5;
      builder.add_cable(switches[g], NodeId{(g + 1) % 4}, on);
    }
    const Topology net = builder.build();
    CHECK(both_ways(net, check(ring_all_reduce(4, 4'000'000_B))) ==
          (narrow ? "the path of gpu2 to gpu3 is not like that of gpu0 to gpu1" : ""));
  }
}

// Two switches whose tables send data for gpu1 to each other.
TEST_CASE("a run that is not folded because of its paths says what is wrong with them") {
  TopologyBuilder builder;
  for (int g = 0; g < 2; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId a = builder.add_node("a", NodeKind::network_switch), b = builder.add_node("b", NodeKind::network_switch);
  builder.add_cable(NodeId{0}, a, cable);
  builder.add_cable(NodeId{1}, b, cable);
  builder.add_cable(a, b, cable);
  const Topology net = builder.build();
  const RunOptions circle{.routing = {.table = {{a, NodeId{1}, b}, {b, NodeId{1}, a}}}};
  const CheckedSchedule ring = check(ring_all_reduce(2, 2_KiB));
  const std::vector<NodeId> placement{NodeId{0}, NodeId{1}};
  const char* expected = "the tables send data from gpu0 to gpu1 round in circles, through ";
  for (const auto& folds : {std::function<bool(std::string&)>(
                                [&](std::string& why) { return fold(net, ring, circle, placement, why).has_value(); }),
                            std::function<bool(std::string&)>([&](std::string& why) {
                              return fold_by_turns(net, ring, circle, placement, why).has_value();
                            })}) {
    std::string why;
    CHECK_FALSE(folds(why));
    CHECK(why.starts_with(expected));
  }
  CHECK_THROWS_WITH_AS(run(net, ring, circle), doctest::Contains(expected), InputError);
}

TEST_CASE("schedules without a proved symmetry, with several lanes or messages per step, are simulated in full") {
  const Topology net = star(8, cable);
  CHECK(both_ways(net, check(parameter_server(8, 8_KiB, 0))) == "the schedule claims no symmetry");
  CHECK(
      both_ways(net, check(pairwise_all_to_all(8, 8_KiB))) ==
      "the schedule claims no symmetry; some ranks do not represent all ranks either: every message is being recorded");
  Schedule copies = ring_all_gather(8, 8_KiB);  // true, but the proof follows no copies by symmetry
  copies.step = [plain = copies.step](Actor r, Lane lane, int i, Step& out) {
    plain(r, lane, i, out);
    if (i == 0) out.copy(chunk(r), chunk(wrap(r + 3, 8)));
  };
  CHECK_NOTHROW(check(copies));
  CHECK(both_ways(net, check(copies)) == "the schedule's symmetry was not proved");

  // Three ranks tell each other their chunk: in one step, or in two lanes.
  const auto tell = [](Actor r, int to, Step& out) {
    out.send(wrap(r + to, 3), chunk(r));
    out.receive(wrap(r - to, 3), chunk(wrap(r - to, 3)));
  };
  Schedule at_once{.algorithm = "by hand", .collective = all_gather(3, 3_KiB), .actors = 3};
  at_once.layout[0] = Layout::near_equal(3_KiB, 3);
  at_once.symmetry = Symmetry({3});
  at_once.n_steps = [](Actor, Lane) { return 1; };
  at_once.step = [&](Actor r, Lane, int, Step& out) {
    tell(r, 1, out);
    tell(r, 2, out);
  };
  CHECK(both_ways(star(3, cable), check(at_once)) == "step 0 is more than one message");
  Schedule in_lanes = at_once;
  in_lanes.lanes = 2;
  in_lanes.step = [&](Actor r, Lane lane, int, Step& out) { tell(r, lane + 1, out); };
  CHECK(both_ways(star(3, cable), check(in_lanes)) == "lanes 0 and 1 of a rank do different things in step 0");
  // One after the other they fold.
  at_once.n_steps = [](Actor, Lane) { return 2; };
  at_once.step = [&](Actor r, Lane, int i, Step& out) { tell(r, i + 1, out); };
  CHECK(both_ways(star(3, cable), check(at_once)) == "");
}

TEST_CASE("small runs, and those whose messages are recorded, are simulated in full") {
  const Topology net = star(8, cable);
  const CheckedSchedule ring = check(ring_all_reduce(8, 8_KiB));  // 112 messages
  CHECK_FALSE(run(net, ring).folded);
  CHECK(run(net, ring).not_folded == "");
  CHECK_FALSE(run(net, ring, {.fold_from = 113}).folded);
  CHECK(run(net, ring, {.fold_from = 112}).folded);
  CHECK_FALSE(run(net, ring, {.fold = false, .fold_from = 112}).folded);
  const Timeline recorded = run(net, ring, {.record_spans = true, .fold_from = 0});
  CHECK(recorded.not_folded == "every message is being recorded");
  CHECK(recorded.spans.size() == 112);
  TopologyBuilder builder;  // what is wrong is said as without folding
  builder.add_gpu("gpu0");
  builder.add_gpu("gpu1");
  CHECK_THROWS_WITH_AS(run(builder.build(), check(ring_all_reduce(2, 1_KiB)), {.fold_from = 0}),
                       "no path from gpu1 to gpu0: no chain of links leads there\n  hint: add a link on the path; a "
                       "one-way link is not used backwards, and data never passes through memory",
                       InputError);
}

TEST_CASE("more bytes than can be counted are refused by a folded run as well") {
  // Each of 1024 ranks sends 2046/1024 of 16 PiB, all of them 32 EiB; 63 bits count 8 EiB.
  const Topology net = star(1024, {.bandwidth = {100'000'000'000'000'000}, .latency = 1us});
  const CheckedSchedule ring = check(ring_all_reduce(1024, {1LL << 54}));
  for (const bool fold : {true, false})
    CHECK_THROWS_WITH_AS(run(net, ring, {.fold = fold, .fold_from = 0}),
                         doctest::Contains("more bytes than the supported maximum (9,223,372 TB)"), InputError);
  CHECK(run(net, check(ring_all_reduce(1024, {1LL << 51})), {.fold_from = 0}).bytes_sent == 2046 * Bytes{1LL << 51});
}

TEST_CASE("why it folded is said in a sentence") {
  const Timeline star_run = run(star(8, cable), check(ring_all_reduce(8, 8_KiB)), {.fold_from = 0});
  REQUIRE(star_run.folded);
  CHECK(
      *star_run.folded ==
      "one rank represents all 8: the symmetry {8} of ring was checked at every step of every rank, and its chunks are "
      "equal, and each has an equal port of its own on switch0");
  const Timeline mesh_run =
      run(build(FullMesh{.ranks = 8, .link = cable}), check(halving_doubling(8, 8_KiB, Fold::naive)), {.fold_from = 0});
  REQUIRE(mesh_run.folded);
  CHECK(
      *mesh_run.folded ==
      "one rank represents all 8: the symmetry {2^3} of halving_doubling was checked at every step of every rank, and "
      "its chunks are equal, and the paths of their messages are identical in kind and share no link");
}

TEST_CASE("65536 ranks take the time of the closed forms") {
  constexpr int n = 65536;
  const Topology net = star(n, cable);
  // 2(K-1) steps of 16 KiB at 10 GB/s, 1638.4 ns, and 2 us of latency.
  const Timeline ring = run(net, check(ring_all_reduce(n, 1_GiB)));
  CHECK(ring.folded);
  CHECK(ring.duration() == 2 * (n - 1) * (2us + Picoseconds{1'638'400}));
  CHECK(ring.transfers == 2L * (n - 1) * n);
  // 2 log2(K) steps, and 2 (K-1)/K GiB through each port: 16 us of latency each way, 2 x 107.372544 ms less a chunk.
  const Timeline halves = run(net, check(halving_doubling(n, 1_GiB, Fold::naive)));
  CHECK(halves.folded);
  CHECK(halves.duration() == 32 * 2us + 2 * (n - 1) * Picoseconds{1'638'400});
  CHECK(halves.transfers == 32L * n);
  CHECK(halves.link_bytes.front().count == 2L * (n - 1) * 16384);
  CHECK(halves.link_bytes.back() == halves.link_bytes.front());
}

TEST_CASE("the command folds large runs and says so; --no-fold gives the same but for the fingerprint") {
  const std::string scenario = test::temporary_file("large.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 1024, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 GiB"}})");
  const auto without = [](const std::string& text, const std::vector<std::string>& keys) {
    std::string rest;
    std::size_t left_out = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::string line = text.substr(at, text.find('\n', at) - at);
      at += line.size() + 1;
      const auto has = [&](const std::string& key) { return line.find('"' + key + '"') != std::string::npos; };
      if (std::any_of(keys.begin(), keys.end(), has))
        ++left_out;
      else
        rest += line + '\n';
    }
    CHECK(left_out == keys.size());
    return rest;
  };
  const auto some = test::run_command({"run", scenario, "--format", "json", "--explain"});
  const auto all = test::run_command({"run", scenario, "--format", "json", "--explain", "--no-fold"});
  CHECK(some.code == 0);
  CHECK(some.out.find(R"("fingerprint": null)") != std::string::npos);
  CHECK(some.out.find(R"("folded": "one rank represents all 1024: )") != std::string::npos);
  CHECK(without(some.out, {"fingerprint", "folded"}) == without(all.out, {"fingerprint"}));
  CHECK(test::run_command({"run", scenario, "--format", "csv"}).out.find(",proof,fingerprint,folded\n") !=
        std::string::npos);
  CHECK(test::run_command({"run", scenario}).out.find("\nfolded: one rank represents all 1024: ") != std::string::npos);

  const auto uneven = test::run_command({"run", scenario, "--timing", "--set", R"(collective.bytes="1000003 B")"});
  CHECK(uneven.out.find("folded") == std::string::npos);
  CHECK(uneven.err.ends_with("not folded: 1000003 bytes in 1024 chunks are not equal chunks\n"));
}

}  // namespace fold_test
