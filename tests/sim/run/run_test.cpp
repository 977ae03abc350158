// Whole runs, worked out by hand or by the closed forms of the algorithms.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/written_schedule.hpp"

namespace run_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

Timeline run_on(const Topology& topology, const Schedule& schedule, RunOptions options = {}) {
  options.record_spans = true;
  return run(topology, check(schedule), options);
}

/// One message from each rank 0..n/2-1 to rank + n/2, of sizes of their own: output chunk r is sizes[r] bytes. Rank 1
/// may be held up.
Schedule messages(const std::vector<Bytes>& sizes, Picoseconds rank_1_computes = Picoseconds{0}) {
  const auto n = static_cast<int>(sizes.size());
  std::vector<Move> moves;
  for (Actor r = 0; r < n; ++r) moves.push_back({r, r + n});
  WrittenSchedule t = of_moves(2 * n, sizes, moves);
  for (Actor r = 0; r < n; ++r) {
    if (r == 1 && rank_1_computes.count() > 0) t.step(r).compute(rank_1_computes);
    t.step(r).send(r + n, {Buffer::input, static_cast<std::uint32_t>(r), 1});
    t.step(r + n).receive(r, {Buffer::output, static_cast<std::uint32_t>(r), 1});
  }
  return t.schedule();
}

SimTime finish_of(const Timeline& timeline, Actor from) {
  for (const Span& span : timeline.spans)
    if (span.from == from) return span.finish;
  return SimTime::max();
}

/// Size over rate in whole picoseconds, rounded up: the time on the wire.
Picoseconds wire(std::int64_t bytes, Bandwidth rate) { return transfer_time({bytes}, rate); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool within(Picoseconds found, Picoseconds expected, std::int64_t steps) {
  return std::abs((found - expected).count()) <= steps;
}

}  // namespace

TEST_CASE("two flows over one trunk get half of it each; the ideal model gives it to both") {
  // Ports 10 GB/s, trunk 6 GB/s, 3 MB each: fair 3 MB at 3 GB/s = 1 ms; ideal: capped by the trunk, 3 MB at 6 = 0.5 ms.
  const Topology net = dumbbell({.bandwidth = 10_GBps}, {.bandwidth = 6_GBps});
  const Schedule pairs = direct_pairs(4, 3'000'000_B, false);
  const Timeline fair = run_on(net, pairs);
  CHECK(fair.duration() == 1ms);
  CHECK(run_on(net, pairs, {.model = NetworkModel::ideal}).duration() == 500us);
  REQUIRE(fair.bottleneck);
  CHECK(net.resource_name(fair.bottleneck->resource) == "s0 -> s1");
  CHECK(fair.bottleneck->busy == 1ms);
  CHECK(fair.transfers == 2);
  CHECK(fair.bytes_sent == 6'000'000_B);
  CHECK(fair.link_bytes[link_between(net, "s0", "s1").value] == 6'000'000_B);
  CHECK(fair.link_bytes[link_between(net, "s1", "s0").value] == 0_B);
}

TEST_CASE("both ways through a full-duplex trunk do not slow each other down") {
  const Topology net = dumbbell({.bandwidth = 10_GBps}, {.bandwidth = 6_GBps});
  CHECK(run_on(net, direct_pairs(4, 3'000'000_B, true)).duration() == 1ms);
}

TEST_CASE("a short flow leaves its share of the link to the long one") {
  // Trunk 2 GB/s; 1 MB and 3 MB. Each at 1 GB/s until the short one is through at 1 ms; the long one has 2 MB left and
  // the trunk for itself: 1 ms more. The latency of 3 links of 1 us comes on top.
  const Topology net = dumbbell({.bandwidth = 10_GBps, .latency = 1us}, {.bandwidth = 2_GBps, .latency = 1us});
  const Timeline t = run_on(net, messages({1'000'000_B, 3'000'000_B}));
  CHECK(finish_of(t, 0) == at(1ms + 3us));
  CHECK(finish_of(t, 1) == at(2ms + 3us));
  CHECK(t.duration() == 2ms + 3us);
  REQUIRE(t.spans.size() == 2);
  CHECK(t.spans[0].from == 0);  // in order of arrival
  CHECK(t.spans[1].bytes == 3'000'000_B);
  CHECK(t.spans[1].start == SimTime{});
  CHECK(t.spans[1].to == 3);
}

TEST_CASE("a message that comes while another is on its way takes half of the link from then on, and not before") {
  const Topology net = dumbbell({.bandwidth = 10_GBps, .latency = 1us}, {.bandwidth = 2_GBps, .latency = 1us});
  // 4 MB alone for 1 ms: 2 MB are left. Then 1 GB/s each: the other's 1 MB takes 1 ms, and 1 MB is left: 0.5 ms alone.
  const Timeline shared = run_on(net, messages({4'000'000_B, 1'000'000_B}, 1ms));
  CHECK(finish_of(shared, 1) == at(2ms + 3us));
  CHECK(finish_of(shared, 0) == at(2500us + 3us));
  // The first has left at 1 ms, and arrives 3 us later; what comes in between has the trunk for itself.
  const Timeline after = run_on(net, messages({2'000'000_B, 1'000'000_B}, 1ms + 1us));
  CHECK(finish_of(after, 0) == at(1ms + 3us));
  CHECK(finish_of(after, 1) == at(1501us + 3us));
  // Where the trunk has room for both, the first does not notice.
  const Topology wide = dumbbell({.bandwidth = 10_GBps, .latency = 1us}, {.bandwidth = 20_GBps, .latency = 1us});
  const Timeline both = run_on(wide, messages({4'000'000_B, 4'000'000_B}, 100us));
  CHECK(finish_of(both, 0) == at(400us + 3us));
  CHECK(finish_of(both, 1) == at(500us + 3us));
}

TEST_CASE("a parameter server with unequal workers waits for each at its own speed") {
  // Server port 4 GB/s; workers at 1 and 5 GB/s, 6 MB each. Up: the slow one takes 1 GB/s, the fast one the other 3.
  // The fast is through at 2 ms, the slow at 6 ms. Down the same: both start at 6 ms; fast done at 8, slow at 12 ms.
  TopologyBuilder builder;
  const NodeId server = builder.add_gpu("gpu0"), slow = builder.add_gpu("gpu1"), fast = builder.add_gpu("gpu2");
  const NodeId hub = builder.add_node("s", NodeKind::network_switch);
  builder.add_cable(server, hub, {.bandwidth = 4_GBps});
  builder.add_cable(slow, hub, {.bandwidth = 1_GBps});
  builder.add_cable(fast, hub, {.bandwidth = 5_GBps});
  const Topology net = builder.build();
  const Timeline t = run_on(net, parameter_server(3, 6'000'000_B, 0));
  REQUIRE(t.spans.size() == 4);
  CHECK(t.spans[0].from == 2);
  CHECK(t.spans[0].finish == at(2ms));
  CHECK(t.spans[1].finish == at(6ms));
  CHECK(t.spans[2].to == 2);
  CHECK(t.spans[2].finish == at(8ms));
  CHECK(t.spans[3].finish == at(12ms));
  REQUIRE(t.bottleneck);
  // 6 ms up and 6 ms down, over the slow worker's two directions: equal, so the lower number.
  CHECK(net.resource_name(t.bottleneck->resource) == "gpu1 -> s");
  CHECK(t.bottleneck->busy == 6ms);
}

TEST_CASE("both directions of a half-duplex cable share it") {
  for (const Duplex duplex : {Duplex::full, Duplex::half}) {
    TopologyBuilder builder;
    const NodeId a = builder.add_gpu("gpu0"), b = builder.add_gpu("gpu1");
    builder.add_cable(a, b, {.bandwidth = 2_GBps, .duplex = duplex});
    const Topology net = builder.build();
    const Schedule both_ways = direct_pairs(2, 2'000'000_B, true);
    for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal})  // a port is shared in both models
      CHECK(run_on(net, both_ways, {.model = model}).duration() == (duplex == Duplex::half ? 2ms : 1ms));
    CHECK(run_on(net, direct_pairs(2, 2'000'000_B, false)).duration() == 1ms);
  }
}

TEST_CASE("data relayed by a gpu goes in slots: the time of the wire, one slot to fill, and both latencies") {
  // A ring of 4: gpu0 -> gpu2 is relayed by gpu1 or gpu3. 8 MiB in slots of 512 KiB over 1 GB/s: the second leg starts
  // when the first slot has arrived: p/b + slot/b + 2 latencies.
  for (const Picoseconds latency : {Picoseconds{0}, Picoseconds{2us}}) {
    const Topology net = build(Ring{.ranks = 4, .link = {.bandwidth = 1_GBps, .latency = latency}});
    const Timeline t = run_on(net, messages({8_MiB, 0_B}));
    CHECK(t.duration() == wire((8_MiB + 512_KiB).count, 1_GBps) + 2 * latency);
    CHECK(t.transfers == 2);
    CHECK(t.bytes_sent == 8_MiB);
  }
}

TEST_CASE("a message that is no multiple of the slot ends with a smaller one") {
  // 1000 B in slots of 300 at 1 B/ns: 300 to fill, then 1000 on the second leg.
  const Topology net = build(Ring{.ranks = 4, .link = {.bandwidth = 1_GBps}});
  RunOptions options;
  options.plans.front().transport.staging = {.size = 300_B, .depth = 8};
  CHECK(run_on(net, messages({1000_B, 0_B}), options).duration() == 1300ns);
}

TEST_CASE("with one room the legs take turns; with two the latency is what stalls them") {
  const Topology net = build(Ring{.ranks = 4, .link = {.bandwidth = 1_GBps}});
  const Topology far = build(Ring{.ranks = 4, .link = {.bandwidth = 1_GBps, .latency = 1us}});
  const Schedule message = messages({4000_B, 0_B});  // 4 slots of 1000 B: 1 us each
  RunOptions options;
  options.plans.front().transport.staging = {.size = 1000_B, .depth = 1};
  CHECK(run_on(net, message, options).duration() == 8us);  // in, out, in, out, ...
  // A room is filled (1 us), the slot arrives (1 us), and leaves (1 us): the next starts 3 us later. The last one
  // starts at 9, leaves its room at 12 and arrives at 13.
  CHECK(run_on(far, message, options).duration() == 13us);
  options.plans.front().transport.staging.depth = 2;
  CHECK(run_on(net, message, options).duration() == 5us);  // 4 and one to fill
  // Slots start at 0, 1, then when a room is free: 3, 4. They arrive a leg later at 2, 3, 5, 6; the last is out at 7.
  CHECK(run_on(far, message, options).duration() == 8us);
}

TEST_CASE("latencies add up exactly along a path, also of empty messages") {
  const Topology net = dumbbell({.bandwidth = 10_GBps, .latency = 3_ps}, {.bandwidth = 6_GBps, .latency = 11_ps});
  CHECK(run_on(net, direct_pairs(4, 0_B, false)).duration() == 17_ps);  // 3 + 11 + 3
  // 1 B at half of 6 GB/s is 333.3 ps, rounded up.
  CHECK(run_on(net, direct_pairs(4, 1_B, false)).duration() == 334_ps + 17_ps);
}

TEST_CASE("fair and ideal agree to the picosecond where nothing between the ports is shared") {
  for (int n = 2; n <= 9; ++n) {
    CAPTURE(n);
    for (const Schedule& schedule : every_algorithm(n, 1000003_B)) {
      CAPTURE(schedule.algorithm);
      const Topology net = star(n, {.bandwidth = 25_GBps, .latency = 700ns}, schedule.actors - n);
      const Timeline fair = run_on(net, schedule);
      const Timeline ideal = run_on(net, schedule, {.model = NetworkModel::ideal});
      CHECK(fair.duration() == ideal.duration());
      CHECK(fair.fingerprint == ideal.fingerprint);
    }
  }
}

TEST_CASE("on a star every algorithm takes the time of its closed form, within a picosecond a step") {
  const Bandwidth b = 25_GBps;
  for (const Picoseconds latency : {Picoseconds{0}, Picoseconds{500ns}}) {
    const Picoseconds a = 2 * latency;
    for (int n = 2; n <= 17; ++n) {
      const std::int64_t k = n;
      for (const std::int64_t p : {k * 1048576, std::int64_t{1000003}, std::int64_t{0}}) {
        int m = 0;
        while ((2 << m) <= n) ++m;
        const std::int64_t core = std::int64_t{1} << m;
        const bool fold = core < k;
        const Bytes bytes{p};
        const std::int64_t chunk = ceil_div(p, k);
        struct Row {
          Schedule schedule;
          Picoseconds expected;
          std::int64_t steps;
        };
        std::vector<Row> rows;
        // The ring waits in every step for the largest chunk, wherever it is.
        rows.push_back({ring_all_reduce(n, bytes), 2 * (k - 1) * (a + wire(chunk, b)), 2 * (k - 1)});
        rows.push_back({ring_reduce_scatter(n, bytes), (k - 1) * (a + wire(chunk, b)), k - 1});
        rows.push_back({ring_all_gather(n, bytes), (k - 1) * (a + wire(chunk, b)), k - 1});
        if (p % 4 == 0) rows.push_back({ring_broadcast(n, bytes, 1, 4), (k + 2) * (a + wire(p / 4, b)), k + 2});
        // The root's port carries n-1 buffers in, then n-1 out.
        rows.push_back({parameter_server(n, bytes, n - 1), 2 * wire((k - 1) * p, b) + 2 * a, 2});
        for (const int s : {1, 2, 3}) {
          // Fewer workers than servers, and shards that differ by a byte: the last bytes of all go to one server, which
          // the form leaves out.
          if (n < s && p % s != 0) continue;
          rows.push_back(
              {sharded_parameter_server(n, bytes, s), 2 * wire(std::max(k * ceil_div(p, s), p), b) + 2 * a, 2});
        }
        if (p % core == 0) {
          Picoseconds rounds{0};
          for (std::int64_t half = p / 2, i = 0; i < m; ++i, half /= 2) rounds += 2 * (a + wire(half, b));
          // Folds: naive two whole buffers; Rabenseifner's two halves and a whole.
          const Picoseconds naive = fold ? 2 * (a + wire(p, b)) : Picoseconds{0};
          const Picoseconds rabenseifner = fold ? 3 * a + 2 * wire(p / 2, b) + wire(p, b) : Picoseconds{0};
          rows.push_back({halving_doubling(n, bytes, Fold::naive), rounds + naive, 2 * m + 2});
          rows.push_back({halving_doubling(n, bytes, Fold::rabenseifner), rounds + rabenseifner, 2 * m + 3});
        }
        if (n % 2 == 0) rows.push_back({direct_pairs(n, bytes, true), a + wire(p, b), 1});
        for (const Row& row : rows) {
          const Topology net = star(n, {.bandwidth = b, .latency = latency}, row.schedule.actors - n);
          for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
            CAPTURE(n);
            CAPTURE(p);
            CAPTURE(row.schedule.algorithm);
            CAPTURE(to_string(row.schedule.collective.op));
            CAPTURE(a.count());
            const Picoseconds found = run(net, check(row.schedule), {.model = model}).duration();
            CAPTURE(found.count());
            CAPTURE(row.expected.count());
            CHECK(within(found, row.expected, row.steps));
          }
        }
      }
    }
  }
}

TEST_CASE("on a full mesh a parameter server gives every worker a link of its own") {
  const Topology net = build(FullMesh{.ranks = 5, .link = {.bandwidth = 2_GBps, .latency = 1us}});
  CHECK(run_on(net, parameter_server(5, 1'000'000_B, 2)).duration() == 2 * (500us + 1us));
}

TEST_CASE("the bottleneck is the one slow port, and most of a tiny message's time is latency") {
  TopologyBuilder builder;
  for (int g = 0; g < 6; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("s", NodeKind::network_switch);
  for (std::uint32_t g = 0; g < 6; ++g)
    builder.add_cable(NodeId{g}, hub, {.bandwidth = g == 3 ? 1_GBps : 10_GBps, .latency = 1us});
  const Topology net = builder.build();
  const Timeline large = run_on(net, ring_all_reduce(6, 60'000'000_B));
  REQUIRE(large.bottleneck);
  const std::string slow = net.resource_name(large.bottleneck->resource);
  CHECK((slow == "gpu3 -> s" || slow == "s -> gpu3"));
  // 10 steps of 10 MB through the slow port, in or out: 10 ms each; at most one step a chain is not held back by it.
  CHECK(large.duration() == 10 * (10ms + 2us));
  CHECK(large.bottleneck->latency <= 20us);
  const Timeline tiny = run_on(net, ring_all_reduce(6, 6_B));
  REQUIRE(tiny.bottleneck);
  CHECK(tiny.bottleneck->latency == 10 * 2us);
  CHECK(tiny.bottleneck->latency.count() > tiny.duration().count() * 99 / 100);
  CHECK_FALSE(run_on(star(1, {.bandwidth = 1_GBps}), ring_all_reduce(1, 6_B)).bottleneck);
}

TEST_CASE("computing takes its time, and lanes overlap it with messages") {
  // Rank 0 computes 5 us on lane 1 while lane 0 sends 1000 B in 1 us and then waits for the result.
  WrittenSchedule t(broadcast(2, 2000_B, 0), 2, 2, 2);
  t.step(0, 1).compute(5us);
  t.step(0, 0).send(1, chunk(0));
  Step& last = t.step(0, 0);
  last.send(1, chunk(1));
  last.wait(1, 1);
  t.step(1, 0).receive(0, chunk(0));
  t.step(1, 0).receive(0, chunk(1));
  const Timeline timeline = run_on(star(2, {.bandwidth = 1_GBps}), t.schedule());
  REQUIRE(timeline.spans.size() == 2);
  CHECK(timeline.spans[0].finish == at(1us));
  CHECK(timeline.spans[1].start == at(5us));
  CHECK(timeline.duration() == 6us);
  REQUIRE(timeline.bottleneck);
  CHECK(timeline.bottleneck->compute == 5us);
  CHECK(timeline.bottleneck->busy == 1us);
  CHECK(timeline.actor_finish[0] == at(6us));
}

TEST_CASE("where both ends of a message begin at one instant, the critical path leads through its sender") {
  // Rank 0 computes for 5 us, rank 1 is late by as much; then 1000 B in 1 us.
  WrittenSchedule t(broadcast(2, 1000_B, 0), 2, 1, 1);
  t.step(0).compute(5us);
  t.step(0).send(1, chunk(0));
  t.step(1).receive(0, chunk(0));
  RunOptions options;
  options.disturbance.late = {{1, at(5us)}};
  const Timeline timeline = run_on(star(2, {.bandwidth = 1_GBps}), t.schedule(), options);
  REQUIRE(timeline.bottleneck);
  CHECK(timeline.bottleneck->compute == 5us);
  CHECK(timeline.bottleneck->delay == 0us);
  CHECK(timeline.bottleneck->busy == 1us);
}

TEST_CASE("a held step without operations, the last of a lane, belongs neither to the run nor to its critical path") {
  // Rank 0 sends 1000 B in 1 us, then has a step of nothing, which is held for 5 us.
  WrittenSchedule t(broadcast(2, 1000_B, 0), 2, 1, 1);
  t.step(0).send(1, chunk(0));
  t.step(1).receive(0, chunk(0));
  t.steps[0][0].emplace_back();
  RunOptions options;
  options.disturbance.slow = {{0, 5us}};
  const Timeline timeline = run(star(2, {.bandwidth = 1_GBps}), check(t.schedule()), options);
  CHECK(timeline.duration() == 6us);  // its first step is held as well
  REQUIRE(timeline.bottleneck);
  CHECK(timeline.bottleneck->delay == 5us);
  CHECK(timeline.bottleneck->busy == 1us);
}

TEST_CASE("links of unlike bandwidth are not like links: the critical path counts them apart") {
  // gpu0 -> gpu1 over 1 GB/s, then gpu1 -> gpu2 over 2 GB/s: 1 ms and 0.5 ms.
  TopologyBuilder builder;
  for (int g = 0; g < 3; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  builder.add_cable(NodeId{0}, NodeId{1}, {.bandwidth = 1_GBps});
  builder.add_cable(NodeId{1}, NodeId{2}, {.bandwidth = 2_GBps});
  const Topology net = builder.build();
  const Timeline timeline = run_on(net, kary_broadcast(3, 1'000'000_B, 0, 1, 1));
  CHECK(timeline.duration() == 1500us);
  REQUIRE(timeline.bottleneck);
  CHECK(net.resource_name(timeline.bottleneck->resource) == "gpu0 -> gpu1");
  CHECK(timeline.bottleneck->busy == 1ms);
  CHECK(timeline.bottleneck->others == 500us);
  CHECK(timeline.bottleneck->latency == 0us);
}

TEST_CASE(
    "on a star the critical path of every algorithm has latencies, and a link's time but where nothing is moved") {
  for (int n = 2; n <= 8; ++n) {
    CAPTURE(n);
    for (const Schedule& schedule : every_algorithm(n, {n * 60'000})) {
      CAPTURE(schedule.algorithm);
      const Topology net = star(n, {.bandwidth = 25_GBps, .latency = 700ns}, schedule.actors - n);
      const Timeline t = run_on(net, schedule);
      if (t.transfers == 0) continue;
      REQUIRE(t.bottleneck);
      CHECK(t.bottleneck->latency > 0_ps);
      CHECK((t.bottleneck->busy > 0_ps) == (schedule.collective.op != CollectiveOp::barrier));  // which moves nothing
    }
  }
}

TEST_CASE("equal runs have equal fingerprints, and a byte more has another") {
  const Topology net = star(8, {.bandwidth = 25_GBps, .latency = 1us});
  const Timeline one = run_on(net, ring_all_reduce(8, 1_MiB)), two = run_on(net, ring_all_reduce(8, 1_MiB));
  CHECK(one.fingerprint == two.fingerprint);
  CHECK(one.finish == two.finish);
  CHECK(one.events == two.events);
  CHECK(one.fingerprint != run_on(net, ring_all_reduce(8, 1_MiB + 1_B)).fingerprint);
  CHECK(one.fingerprint !=
        run_on(star(8, {.bandwidth = 25_GBps, .latency = 999ns}), ring_all_reduce(8, 1_MiB)).fingerprint);
}

// Doubles have 53 bits: 2^54 + 1 bytes are not one of them.
TEST_CASE("links carry what was sent over them to the byte, beyond 2^53 as well") {
  const Bytes sent{(std::int64_t{1} << 54) + 1};
  CollectiveRequest request{.op = CollectiveOp::broadcast, .ranks = 2};
  request.bytes = sent;
  const Topology net = star(2, {.bandwidth = {100'000'000'000'000'000}, .latency = 1us});
  const Timeline t = run(net, check(make_schedule(*find_algorithm("chain"), request, {})));
  CHECK(t.bytes_sent == sent);
  CHECK(t.link_bytes[link_between(net, "gpu0", "switch0").value] == sent);
  CHECK(t.link_bytes[link_between(net, "switch0", "gpu1").value] == sent);
  CHECK(t.link_bytes[link_between(net, "switch0", "gpu0").value] == 0_B);
}

TEST_CASE("a run can be stopped, and says how far it came") {
  const Topology net = star(256, {.bandwidth = 1_GBps});
  const CheckedSchedule ring = check(ring_all_reduce(256, 256_KiB));
  std::atomic<bool> stop{true};
  // 130560 messages; it looks up every 65536 events.
  try {
    run(net, ring, {.stop = &stop});
    FAIL("it was not stopped");
  } catch (const Interrupted& error) {
    const std::string text = error.what();
    CHECK(text.rfind("stopped at ", 0) == 0);
    CHECK(text.find(" us of simulated time, ") != std::string::npos);
    CHECK(text.find(" of 130560 steps done") != std::string::npos);
  }
  stop = false;
  CHECK(run(net, ring, {.stop = &stop}).transfers == 130560);
}

TEST_CASE("progress is reported, grows, and stays within 0 and 1") {
  std::vector<double> told;
  run(star(256, {.bandwidth = 1_GBps}), check(ring_all_reduce(256, 256_KiB)),
      {.progress = [&](double share) { told.push_back(share); }});
  REQUIRE_FALSE(told.empty());
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.front() > 0);
  CHECK(told.back() <= 1);
}

TEST_CASE("what a run lacks is said: ranks, helpers, a path, slots") {
  const Topology three = star(3, {.bandwidth = 1_GBps});
  CHECK_THROWS_WITH_AS(run(three, check(ring_all_reduce(4, 1_KiB))),
                       "the schedule ring needs 4 ranks and 0 helpers, the topology has 3 and 0", InputError);
  CHECK_THROWS_WITH_AS(run(three, check(sharded_parameter_server(3, 1_KiB, 2))),
                       "the schedule parameter_server needs 3 ranks and 2 helpers, the topology has 3 and 0",
                       InputError);

  TopologyBuilder builder;
  builder.add_gpu("gpu0");
  builder.add_gpu("gpu1");
  const Topology apart = builder.build();
  CHECK_THROWS_WITH_AS(run(apart, check(ring_all_reduce(2, 1_KiB))),
                       "no path from gpu1 to gpu0: no chain of links leads there\n  hint: add a link on the path; a "
                       "one-way link is not used backwards, and data never passes through memory",
                       InputError);

  WrittenSchedule t(all_gather(2, 12_B), 2, 1, 2);
  for (Actor r = 0; r < 2; ++r) {
    t.step(r).send(1 - r, chunk(r));
    t.step(r).receive(1 - r, chunk(1 - r));
  }
  CHECK_THROWS_WITH_AS(run(three, check(t.schedule())),
                       "the schedule by hand needs messages that are sent ahead of their receiver, but protocol none "
                       "has no slots for them (4 operations, 1 slots needed: every operation of every actor was "
                       "checked)\n  hint: the schedule is correct, but written for a protocol that sends ahead, such "
                       "as those of NCCL: set transport.protocol to simple, and for large messages also "
                       "transport.chunk, such as \"512 KiB\"",
                       InputError);
}

TEST_CASE("actors sit where they are placed, and two on one device exchange in no time") {
  const Topology net = dumbbell({.bandwidth = 10_GBps}, {.bandwidth = 1_GBps});
  const Schedule pair = direct_pairs(2, 1'000'000_B, false);
  CHECK(run_on(net, pair, {.placement = {NodeId{0}, NodeId{2}}}).duration() == 1ms);    // over the trunk
  CHECK(run_on(net, pair, {.placement = {NodeId{0}, NodeId{1}}}).duration() == 100us);  // not over it
  CHECK(run_on(net, pair, {.placement = {NodeId{1}, NodeId{1}}}).duration() == 0_ps);
}

TEST_CASE("what the ports of a star carried is what each rank sent and received") {
  for (const Schedule& schedule : every_algorithm(6, 1000003_B)) {
    CAPTURE(schedule.algorithm);
    const Topology net = star(6, {.bandwidth = 25_GBps, .latency = 1us}, schedule.actors - 6);
    const Timeline t = run_on(net, schedule);
    Bytes total;
    for (Actor a = 0; a < schedule.actors; ++a) {
      Bytes sent, received;
      for (Lane lane = 0; lane < schedule.lanes; ++lane) {
        for (int i = 0; i < schedule.n_steps(a, lane); ++i) {
          Step step;
          schedule.step(a, lane, i, step);
          for (const Op& op : step.ops)
            if (op.peer >= 0) (op.what == Do::send ? sent : received) += schedule.size(op.region);
        }
      }
      const std::string name = net.node(NodeId{static_cast<std::uint32_t>(a)}).name;
      CHECK(t.link_bytes[link_between(net, name, "switch0").value] == sent);
      CHECK(t.link_bytes[link_between(net, "switch0", name).value] == received);
      total += sent;
    }
    CHECK(t.bytes_sent == total);
    Bytes spans;
    for (const Span& span : t.spans) spans += span.bytes;
    CHECK(spans == total);
  }
}

}  // namespace run_test
