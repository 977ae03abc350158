// One rank with all of its lanes for all ranks: over channels a folded run reports what the whole run reports, and if
// ranks might differ, it is not folded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "algorithms/composed/buffers.hpp"
#include "algorithms/composed/channels.hpp"
#include "sim/run/fold.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/peers.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/timeline_text.hpp"
#include "tests/support/tiny.hpp"

namespace fold_lanes_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// Runs it both ways. Returns why it was not folded; "" if it was.
std::string both_ways(const Topology& net, const CheckedSchedule& checked, RunOptions options = {}) {
  options.fold_from = 0;
  Timeline some = run(net, checked, options);
  options.fold = false;
  const Timeline all = run(net, checked, options);
  CHECK(all.fingerprint.has_value());
  // Where one channel stands for all, the whole run has events that are overtaken.
  if (some.folded.value_or("").find(" channels represents all") != std::string::npos) some.events = all.events;
  CHECK(report_of(net, some) == report_of(net, all));
  CHECK(some.folded.has_value() == some.not_folded.empty());
  if (some.folded)
    CHECK_FALSE(some.fingerprint);
  else
    CHECK(some.fingerprint == all.fingerprint);
  return some.not_folded;
}

/// Those that claim a symmetry, of one message per step and one chunk per message: over channels none is taken apart.
std::vector<Schedule> symmetric_ones(int n, Bytes bytes) {
  std::vector<Schedule> found;
  for (Schedule& schedule : every_algorithm(n, bytes))
    if (const Peers peers = peers_of(schedule); schedule.symmetry.claimed() && peers.one_a_step && !peers.to.empty())
      found.push_back(std::move(schedule));
  return found;
}

bool is_equal_cut(const Schedule& schedule) { return schedule.layout[0].uniform(); }

const LinkSpec odd{.bandwidth = {24'999'999'937}, .latency = Picoseconds{333'331}};

/// A star whose ranks send and hear at different speeds.
Topology lopsided_star(int n, Bandwidth up, Bandwidth down) {
  TopologyBuilder builder;
  for (int g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (std::uint32_t g = 0; g < static_cast<std::uint32_t>(n); ++g) {
    builder.add_link(NodeId{g}, hub, {.bandwidth = up, .latency = 700ns});
    builder.add_link(hub, NodeId{g}, {.bandwidth = down, .latency = 700ns});
  }
  return builder.build();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a ring of 1024 ranks over 2 channels is proved by construction, folded, and equal to the picosecond") {
  const CheckedSchedule ring = check(over_channels(ring_all_reduce(1024, 1_GiB), {.channels = 2}));
  CHECK(ring.proof().from == "ring");
  CHECK(ring.proof().by == Proof::By::symmetry);
  CHECK(both_ways(star(1024, odd), ring) == "");
  CHECK(run(star(1024, odd), ring).folded.value() ==
        "one rank represents all 1024: the symmetry {1024} of ring channels=2 rounds=1 was checked at every step of "
        "every "
        "rank, and its chunks are equal, its 2 lanes do the same, and each has an equal port of its own on switch0");
}

TEST_CASE("on a star every symmetric schedule is folded over any number of channels, one or several ways") {
  int n_folded = 0, n_several_ways = 0, n_unequal = 0;
  for (const int n : {2, 3, 5, 8, 16}) {
    if (ringsim::test::sanitized && n == 16) continue;  // as 8, and half of the time of all
    for (int channels = 1; channels <= 8; ++channels) {
      const int rounds = channels % 3 + 1, pieces = channels * rounds;
      for (const std::int64_t bytes :
           {std::int64_t{n} * pieces * 30'011, std::int64_t{n} * pieces * 7 + 1, std::int64_t{0}}) {
        for (const Schedule& plain : symmetric_ones(n, {bytes})) {
          const CheckedSchedule checked = check(over_channels(plain, {.channels = channels, .rounds = rounds}));
          for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
            for (const Picoseconds latency : {Picoseconds{0}, odd.latency}) {
              if (latency.count() == 0 && channels % 2 == 0) continue;
              const Topology net = star(n, {.bandwidth = odd.bandwidth, .latency = latency});
              CAPTURE(n);
              CAPTURE(bytes);
              CAPTURE(checked.schedule().algorithm);
              CAPTURE(to_string(plain.collective.op));
              CAPTURE(latency.count());
              const std::string why_not = both_ways(net, checked, {.model = model});
              if (!is_equal_cut(checked.schedule())) {
                CHECK(has(why_not, "are not equal chunks"));
                ++n_unequal;
              } else if (has(why_not, " is more than one message")) {
                CHECK(check(plain).proof().shape.widest > 1);  // taken apart
              } else {
                CHECK(why_not == "");
                ++(channels > 1 && peers_of(plain).to.size() > 1 ? n_several_ways : n_folded);
              }
            }
          }
        }
      }
    }
  }
  CHECK(n_folded > 1000);
  CHECK(n_several_ways > 200);  // whose paths have two equally narrow links each
  CHECK(n_unequal > 500);
}

TEST_CASE("over several ways it is folded on meshes and on stars of unequal directions as well") {
  int n_folded = 0;
  for (const int n : {4, 8, 9}) {
    for (const int channels : {2, 3, 7}) {
      for (const Schedule& plain : symmetric_ones(n, {std::int64_t{n} * channels * 30'011})) {
        const CheckedSchedule checked = check(over_channels(plain, {.channels = channels}));
        for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
          CAPTURE(n);
          CAPTURE(channels);
          CAPTURE(plain.algorithm);
          for (const Topology& net : {build(FullMesh{.ranks = n, .link = odd}), lopsided_star(n, 7_GBps, 10_GBps),
                                      lopsided_star(n, 10_GBps, 7_GBps)}) {
            const std::string why_not = both_ways(net, checked, {.model = model});
            CAPTURE(why_not);
            CHECK((why_not.empty() || has(why_not, " is more than one message")));
            n_folded += why_not.empty() ? 1 : 0;
          }
        }
      }
    }
  }
  CHECK(n_folded > 100);
}

TEST_CASE("a torus over channels folds on cables of its own shape") {
  for (const std::vector<int>& dimensions : {std::vector{4, 4}, {3, 5}, {2, 3, 4}}) {
    int n = 1;
    for (const int d : dimensions) n *= d;
    const Topology net = build(Torus{.dimensions = dimensions, .link = odd});
    for (const int channels : {2, 5}) {
      const Schedule plain = torus_all_reduce(dimensions, {std::int64_t{n} * channels * 3'011});
      CHECK(both_ways(net, check(over_channels(plain, {.channels = channels, .rounds = 1}))) == "");
    }
  }
}

TEST_CASE("in nodes with NVSwitches a ring folds over 1 to 8 channels as it does over one") {
  int n_folded = 0;
  for (const char* preset : {"dgx-2", "dgx-a100", "hgx-h100", "hgx-h200", "hgx-b200", "hgx-h20"}) {
    const Topology net = build(cluster_of(preset));
    const int n = static_cast<int>(net.ranks().size());
    for (int channels = 1; channels <= 8; ++channels) {
      for (const std::int64_t bytes : {std::int64_t{n} * channels * 65'537, std::int64_t{n} * channels * 64 + 1}) {
        const Schedule plains[] = {ring_all_reduce(n, {bytes}), ring_reduce_scatter(n, {bytes}),
                                   ring_all_gather(n, {bytes}), halving_doubling(n, {bytes}, Fold::naive)};
        for (const Schedule& plain : plains) {
          const CheckedSchedule checked = check(over_channels(plain, {.channels = channels}));
          for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
            CAPTURE(preset);
            CAPTURE(channels);
            CAPTURE(bytes);
            CAPTURE(to_string(plain.collective.op));
            const std::string why_not = both_ways(net, checked, {.model = model});
            CAPTURE(why_not);
            CHECK(why_not.empty() == is_equal_cut(checked.schedule()));
            n_folded += why_not.empty() ? 1 : 0;
          }
          for (const char* protocol : {"ll", "ll128", "simple"}) {
            const std::string why_not = both_ways(net, checked, {.plans = {{.protocol = find_protocol(protocol)}}});
            CHECK(
                (why_not.empty() ||  // folded by turns
                 why_not.starts_with(fmt::format("with protocol {}, ranks can run ahead of each other; ", protocol))));
          }
        }
      }
    }
  }
  CHECK(n_folded > 200);
}

TEST_CASE("channels fold over relays and staged pieces as well") {
  TopologyBuilder builder;  // between two ranks a relay of their own: two legs of different speeds
  for (int g = 0; g < 5; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::uint32_t g = 0; g < 5; ++g) {
    const NodeId relay = builder.add_node(fmt::format("relay{}", g), NodeKind::gpu);
    builder.add_cable(NodeId{g}, relay, {.bandwidth = 10_GBps, .latency = 1us});
    builder.add_cable(relay, NodeId{(g + 1) % 5}, {.bandwidth = 7_GBps, .latency = 2us});
  }
  const Topology net = builder.build();
  for (const int channels : {1, 2, 3})
    CHECK(both_ways(net, check(over_channels(ring_all_reduce(5, 60_MiB), {.channels = channels}))) == "");
}

TEST_CASE("channels that routes send over unlike paths are simulated in full") {
  TopologyBuilder builder;  // four cables each to one switch: ECMP chooses by channel
  for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (std::uint32_t cables = 0; cables < 16; ++cables) builder.add_cable(NodeId{cables / 4}, hub, odd);
  const Topology net = builder.build();
  const CheckedSchedule ring = check(over_channels(ring_all_reduce(4, 64_KiB), {.channels = 4}));
  const RunOptions hashed{.routing = {.policy = Routing::Policy::ecmp, .table = {}}};
  CHECK(both_ways(net, ring, hashed).find(" take different paths") != std::string::npos);
  CHECK(both_ways(net, ring) == "");
  CHECK(both_ways(star(4, odd), ring, hashed) == "");  // there is one way
}

TEST_CASE("lanes that do different things, or wait for each other, are simulated in full") {
  // Three ranks tell each other their chunks, the next one in lane 0 and the one after that in lane 1.
  Schedule s{.algorithm = "by hand", .collective = all_gather(3, 3_KiB), .actors = 3, .lanes = 2};
  s.layout[0] = Layout::near_equal(3_KiB, 3);
  s.symmetry = Symmetry({3});
  s.n_steps = [](Actor, Lane) { return 1; };
  const auto pass_on = [](Actor r, Lane lane, Step& out) {
    out.send(wrap(r + 1, 3), chunk(wrap(r - lane, 3)), lane);
    out.receive(wrap(r - 1, 3), chunk(wrap(r - lane - 1, 3)), lane);
  };
  s.step = [&](Actor r, Lane lane, int, Step& out) {
    pass_on(r, lane, out);
    if (lane == 1) out.wait(0, 1);
  };
  const Topology net = star(3, odd);
  REQUIRE(check(s).proof().symmetry.claimed());
  CHECK(both_ways(net, check(s)) == "a lane of a rank waits for another in step 0");
  s.n_steps = [](Actor, Lane lane) { return lane + 1; };
  s.step = [&](Actor r, Lane lane, int i, Step& out) {
    if (lane == 1 && i == 0) return out.compute(5us);
    pass_on(r, lane, out);
    if (lane == 1) out.wait(0, 1);
  };
  CHECK(both_ways(net, check(s)) == "lanes 0 and 1 of a rank have unequal numbers of steps");
  s.n_steps = [](Actor, Lane) { return 1; };
  s.step = [](Actor r, Lane lane, int, Step& out) {
    out.send(wrap(r + lane + 1, 3), chunk(r));
    out.receive(wrap(r - lane - 1, 3), chunk(wrap(r - lane - 1, 3)));
  };
  CHECK(both_ways(net, check(s)) == "lanes 0 and 1 of a rank do different things in step 0");
  // Each of four ranks passes its own chunk on in lane 0, and the one after the next in lane 1.
  Schedule four{.algorithm = "by hand", .collective = all_gather(4, 4_KiB), .actors = 4, .lanes = 2};
  four.layout[0] = Layout::near_equal(4_KiB, 4);
  four.symmetry = Symmetry({4});
  four.collective.before = all_reduce(4, 4_KiB).before;
  four.collective.after = [](Actor rank, Buffer, std::uint32_t c) {
    const bool is_passed = wrap(static_cast<Actor>(c) - rank, 4) % 2 == 1;
    return is_passed ? Content{Content::Who::one, wrap(rank - 1, 4), c} : Content{};
  };
  four.n_steps = [](Actor, Lane) { return 1; };
  const auto pass_two = [](Actor r, Lane lane, Step& out) {
    out.send(wrap(r + 1, 4), chunk(wrap(r + 2 * lane, 4)), lane);
    out.receive(wrap(r - 1, 4), chunk(wrap(r - 1 + 2 * lane, 4)), lane);
  };
  four.step = [&](Actor r, Lane lane, int, Step& out) { pass_two(r, lane, out); };
  CHECK(both_ways(star(4, odd), check(four)) == "");
  four.step = [&](Actor r, Lane lane, int, Step& out) {
    pass_two(r, lane, out);
    out.compute(lane == 0 ? Picoseconds{2us} : Picoseconds{3us});
  };
  CHECK(both_ways(star(4, odd), check(four)) == "lanes 0 and 1 of a rank do different things in step 0");
  // One lane only computes: whatever it does, all ranks do it.
  Schedule busy = ring_all_gather(3, 3_KiB);
  busy.lanes = 2;
  busy.n_steps = [plain = busy.n_steps](Actor a, Lane) { return plain(a, 0); };
  busy.step = [plain = busy.step](Actor r, Lane lane, int i, Step& out) {
    if (lane == 0) plain(r, 0, i, out);
    out.compute(lane == 0 ? Picoseconds{2us} : Picoseconds{3us});
  };
  CHECK(both_ways(net, check(busy)) == "");
}

TEST_CASE("a lane that skips a step of the first one waits for that lane and for no other") {
  // Twelve ranks have all chunks. In each of three lanes a rank passes two of them on, an even number after its own.
  constexpr int n = 12;
  Schedule s{.algorithm = "by hand", .collective = all_gather(n, 12_KiB), .actors = n, .lanes = 3};
  s.layout[0] = Layout::near_equal(12_KiB, n);
  s.symmetry = Symmetry({n});
  s.collective.before = all_reduce(n, 12_KiB).before;
  s.collective.after = [](Actor rank, Buffer, std::uint32_t c) {
    const bool is_passed = wrap(static_cast<Actor>(c) - rank, n) % 2 == 1;
    return is_passed ? Content{Content::Who::one, wrap(rank - 1, n), c} : Content{};
  };
  const auto pass_on = [](Actor r, Lane lane, int message, Step& out) {
    const int ahead = 2 * (2 * lane + message);
    out.send(wrap(r + 1, n), chunk(wrap(r + ahead, n)), lane);
    out.receive(wrap(r - 1, n), chunk(wrap(r - 1 + ahead, n)), lane);
  };
  // The first lane computes between its two messages, which the others wait for.
  s.n_steps = [](Actor, Lane lane) { return lane == 0 ? 3 : 2; };
  Lane awaited = 0;  // by the last lane
  s.step = [&](Actor r, Lane lane, int i, Step& out) {
    if (lane == 0 && i == 1) return out.compute(5us);
    pass_on(r, lane, i == 0 ? 0 : 1, out);
    if (lane > 0 && i == 1) out.wait(lane == 1 ? 0 : awaited, 2);
  };
  const Topology net = star(n, odd);
  REQUIRE(check(s).proof().symmetry.claimed());
  CHECK(both_ways(net, check(s)) == "");
  awaited = 1;  // which has sent both of its messages then: the last one of the third lane comes later
  CHECK(both_ways(net, check(s)) == "a lane of a rank waits for another in step 2");
}

TEST_CASE("copies take no time: out of place a ring is folded as well") {
  for (const int channels : {1, 3}) {
    const Schedule ring = over_channels(out_of_place(ring_all_reduce(6, {1'800'000})), {.channels = channels});
    CHECK(both_ways(star(6, odd), check(ring)) == "");
    const Schedule gather = over_channels(out_of_place(ring_all_gather(6, {1'800'000})), {.channels = channels});
    CHECK(both_ways(star(6, odd), check(gather)) == "");
  }
}

TEST_CASE("what computes between its messages is folded over channels") {
  Schedule busy = ring_all_reduce(6, 6_MiB);
  busy.step = [quiet = busy.step](Actor r, Lane lane, int i, Step& out) {
    quiet(r, lane, i, out);
    out.compute(i % 3 == 0 ? Picoseconds{100ns} : Picoseconds{200us});  // shorter and longer than a message
  };
  CHECK(both_ways(star(6, odd), check(over_channels(busy, {.channels = 4, .rounds = 2}))) == "");
}

}  // namespace fold_lanes_test
