// The packet model: against formulas worked out by hand, against a simulation too simple to be wrong, and against
// `fair`.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/network/network_packet.hpp"
#include "sim/run/run.hpp"
#include "tests/support/naive/naive_fair.hpp"
#include "tests/support/naive/naive_packet.hpp"
#include "tests/support/tiny.hpp"

namespace network_packet_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

struct Sent {
  Leg leg;
  Bytes size;
  SimTime start{};
};

/// Runs pieces through PacketNetwork alone.
struct Driver {
  Driver(const Topology& topology, const PacketOptions& options, const std::vector<Sent>& sent)
      : network(options, topology, engine, {.tells_left = true}),
        left(sent.size()),
        arrived(sent.size()),
        limiter(sent.size(), no_resource) {
    for (std::uint32_t i = 0; i < sent.size(); ++i) engine.at(sent[i].start, {Event::Kind::local, i, 0});
    std::vector<std::uint32_t> legs;
    for (const Sent& each : sent) legs.push_back(network.add_leg(each.leg, true, true));
    engine.run(
        [&](const Event& event) {
          if (event.kind() == Event::Kind::local)
            network.start(legs[event.id], sent[event.id].size, event.id);
          else if (const auto told = network.due(event))
            note(*told);
        },
        [this] { network.settle(); }, [] { return true; });
  }

  void note(const Told& told) {
    auto& when = told.has_arrived ? arrived[told.piece] : left[told.piece];
    REQUIRE(!when);
    when = engine.now().time_since_epoch();
    if (told.has_arrived) limiter[told.piece] = told.limiter;
  }
  double microseconds_of(std::size_t i) const { return microseconds(arrived[i].value()); }

  Engine<Event> engine;
  PacketNetwork network;
  std::vector<std::optional<Picoseconds>> left, arrived;
  std::vector<ResourceId> limiter;
};

std::int64_t below(std::mt19937_64& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

Topology chain(const std::vector<LinkSpec>& specs) {
  TopologyBuilder builder;
  NodeId last = builder.add_gpu("gpu0");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const NodeId next = builder.add_node(fmt::format("s{}", i), NodeKind::network_switch);
    builder.add_link(last, next, specs[i]);
    last = next;
  }
  return builder.build();
}

Leg whole_chain(const Topology& topology) {
  Leg leg;
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    leg.links.push_back({l});
    leg.latency += topology.link({l}).latency;
  }
  return leg;
}

Leg along(const Topology& topology, const std::vector<std::string>& nodes) {
  Leg leg;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    leg.links.push_back(link_between(topology, nodes[i], nodes[i + 1]));
    REQUIRE(leg.links.back() != no_link);
    leg.latency += topology.link(leg.links.back()).latency;
  }
  return leg;
}

/// When `fair` has each piece at the end of its leg.
std::vector<Picoseconds> fairly(const Topology& topology, const std::vector<Sent>& sent) {
  std::vector<naive::Flow> flows;
  for (const Sent& each : sent) flows.push_back({each.start, each.leg, each.size});
  const naive::Result result = naive::simulate(topology, NetworkModel::fair, flows);
  std::vector<Picoseconds> arrived;
  for (std::size_t i = 0; i < sent.size(); ++i)
    arrived.push_back(result.finish[i].time_since_epoch() + sent[i].leg.latency);
  return arrived;
}

}  // namespace

TEST_CASE("a lone piece takes size / bandwidth + latency to the picosecond, over one to five links") {
  // Rates fall, then rise: no link is faster than one before it and slower than... one after it waits for nothing.
  const std::vector<std::vector<std::int64_t>> rates{
      {7}, {10, 10}, {9, 7}, {3, 11}, {10, 10, 10}, {12, 7, 9}, {20, 10, 5, 6, 7}, {3, 3, 3, 3, 3}};
  for (const auto& each : rates) {
    std::vector<LinkSpec> specs;
    std::int64_t slowest = each[0];
    for (const std::int64_t rate : each) {
      specs.push_back({.bandwidth = {rate * 1'000'000'007}, .latency = Picoseconds{123'457 * rate}});
      slowest = std::min(slowest, rate);
    }
    const Topology line = chain(specs);
    const Leg leg = whole_chain(line);
    for (const Bytes size : {1_B, 4095_B, 4096_B, 4097_B, 100'003_B, 1_MiB}) {
      for (const auto control : {PacketOptions::FlowControl::credit, PacketOptions::FlowControl::pause}) {
        CAPTURE(each.size());
        CAPTURE(size.count);
        const Driver driver(line, {.flow_control = control}, {{leg, size}});
        CHECK(driver.arrived[0].value() == leg.latency + transfer_time(size, {slowest * 1'000'000'007}));
        CHECK(driver.left[0].value() <= driver.arrived[0].value() - leg.latency);
      }
    }
  }
}

TEST_CASE("where a faster link lies between two slower ones a packet waits to be whole") {
  // 10, 20, 10 GB/s: on the middle link a packet of 4096 B takes 204.8 ns, on the others 409.6. Its tail is in the
  // second switch 409.6 ns after its head set out, so there its head must not be before 204.8 ns.
  const auto spec = [](std::int64_t rate) { return LinkSpec{.bandwidth = {rate * 1'000'000'000}, .latency = 100_ps}; };
  const Topology line = chain({spec(10), spec(20), spec(10)});
  const Leg leg = whole_chain(line);
  const Driver driver(line, {}, {{leg, 1_MiB}});
  CHECK(driver.arrived[0].value() == 300_ps + transfer_time(1_MiB, 10_GBps) + 204'800_ps);
  const Driver short_one(line, {}, {{leg, 1000_B}});
  CHECK(short_one.arrived[0].value() == 300_ps + transfer_time(1000_B, 10_GBps) + 50'000_ps);
}

TEST_CASE("on 200 random chains a lone piece is never before fair, and later by no more than is stated") {
  int equal = 0, later = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    std::vector<LinkSpec> specs;
    for (std::int64_t n = 1 + below(random, 6); n > 0; --n)
      specs.push_back({.bandwidth = {1'000'000'000 + below(random, 20'000'000'000)},
                       .latency = Picoseconds{below(random, 3'000'000)}});
    const Topology line = chain(specs);
    const Sent sent{whole_chain(line), {1 + below(random, 300'000)}};
    Picoseconds steps_up{static_cast<std::int64_t>(specs.size())};  // each link rounds once
    for (std::size_t i = 1; i < specs.size(); ++i)
      if (specs[i].bandwidth > specs[i - 1].bandwidth)
        steps_up += transfer_time(4096_B, specs[i - 1].bandwidth) - transfer_time(4096_B, specs[i].bandwidth);
    const Driver driver(line, {}, {sent});
    const Picoseconds fair = fairly(line, {sent})[0], packet = driver.arrived[0].value();
    CHECK(packet >= fair);
    CHECK(packet <= fair + steps_up);
    (packet == fair ? equal : later) += 1;
  }
  CHECK(equal > 20);
  CHECK(later > 20);
}

TEST_CASE("an empty piece takes the latency, even where the link is busy") {
  const Topology line = chain({{.bandwidth = 1_GBps, .latency = 700_ps}, {.bandwidth = 1_GBps, .latency = 11_ps}});
  const Driver driver(line, {}, {{whole_chain(line), 1_MiB}, {whole_chain(line), 0_B, SimTime{5_ps}}});
  CHECK(driver.arrived[1].value() == 716_ps);
  CHECK(driver.left[1].value() == 5_ps);
  CHECK(driver.limiter[1] == no_resource);
}

TEST_CASE("a byte that costs 1.2 on a link takes 1.2 times as long there") {
  const Topology line = chain({{.bandwidth = 10_GBps}, {.bandwidth = 10_GBps}});
  Leg leg = whole_chain(line);
  leg.shares = {1, 1.2};
  const Driver driver(line, {}, {{leg, 1_MiB}});
  // 1258291.2 B at 10 GB/s; and from the first switch on nothing waits.
  CHECK(driver.arrived[0].value() == transfer_time({1'258'292}, 10_GBps));
  CHECK(driver.network.carried({1}).bytes == doctest::Approx(1'258'291.2).epsilon(1e-12));
  CHECK(driver.limiter[0].value == 1);
}

namespace {

struct RandomCase {
  Topology topology;
  PacketOptions options;
  std::vector<naive::PacketFlow> flows;
};

// Rates and latencies are odd numbers, so that no two inputs of a link become ready at one picosecond by design: which
// of them is first then is arbitrary.
RandomCase random_case(std::mt19937_64& random) {
  TopologyBuilder builder;
  const std::int64_t n_nodes = 3 + below(random, 4);
  std::vector<NodeId> nodes{builder.add_gpu("gpu0")};
  while (static_cast<std::int64_t>(nodes.size()) < n_nodes)
    nodes.push_back(builder.add_node(fmt::format("s{}", nodes.size()), NodeKind::network_switch));
  for (std::int64_t c = n_nodes + below(random, 6); c > 0; --c) {
    const auto from = static_cast<std::size_t>(below(random, n_nodes));
    const std::size_t to = (from + 1 + static_cast<std::size_t>(below(random, n_nodes - 1))) % nodes.size();
    const LinkSpec spec{.bandwidth = {1'000'000'007 + below(random, 9'000'000'000)},
                        .latency = Picoseconds{below(random, 900'001)},
                        .duplex = below(random, 4) == 0 ? Duplex::half : Duplex::full};
    builder.add_cable(nodes[from], nodes[to], spec);
  }
  const bool in_a_circle = below(random, 8) == 0;  // all the same way round: they may get stuck
  const auto first_of_circle = static_cast<std::uint32_t>(builder.links().size());
  for (std::size_t i = 0; in_a_circle && i < nodes.size(); ++i)
    builder.add_link(nodes[i], nodes[(i + 1) % nodes.size()], {.bandwidth = {1'000'000'007 + below(random, 999)}});
  RandomCase made{builder.build(), {}, {}};
  made.options.mtu = {500 + below(random, 600)};
  made.options.lanes = 1;
  if (below(random, 2) == 0) {
    made.options.flow_control = PacketOptions::FlowControl::pause;
    made.options.buffer = Bytes{19'000 + made.options.mtu.count * (5 + below(random, 8))};
  } else {
    made.options.buffer = Bytes{made.options.mtu.count * (1 + below(random, 4)) + below(random, 400)};
  }
  for (std::int64_t f = 1 + below(random, 6); f > 0; --f) {
    naive::PacketFlow flow;
    flow.start = SimTime{Picoseconds{below(random, 3) == 0 ? 0 : below(random, 20'000'003)}};
    flow.size = {1 + below(random, 60'000)};
    std::vector<bool> seen(nodes.size(), false);  // a way without circles
    NodeId at = nodes[static_cast<std::size_t>(below(random, n_nodes))];
    for (std::int64_t hops = 1 + below(random, 4); hops > 0; --hops) {
      seen[at.value] = true;
      const auto out = made.topology.links_from(at);
      if (out.empty()) break;
      const LinkId next = out[static_cast<std::size_t>(below(random, static_cast<std::int64_t>(out.size())))];
      if (seen[made.topology.link(next).to.value]) break;
      flow.links.push_back(next);
      at = made.topology.link(next).to;
    }
    if (!flow.links.empty()) made.flows.push_back(flow);
  }
  const auto n = static_cast<std::uint32_t>(nodes.size());
  for (std::uint32_t i = 0; in_a_circle && i < n; ++i)
    made.flows.push_back({SimTime{Picoseconds{below(random, 997)}},
                          {{first_of_circle + i}, {first_of_circle + (i + 1) % n}},
                          {1 + below(random, 40'000)}});
  return made;
}

}  // namespace

TEST_CASE("on 3000 small random networks every piece arrives when the naive simulation says, or never in both") {
  int blocked = 0, stuck = 0, paused = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const RandomCase made = random_case(random);
    std::vector<Sent> sent;
    for (const naive::PacketFlow& flow : made.flows) sent.push_back({{.links = flow.links}, flow.size, flow.start});
    const Driver driver(made.topology, made.options, sent);
    const naive::PacketResult expected = naive::simulate(made.topology, made.options, made.flows);
    bool is_stuck = false;
    for (std::size_t f = 0; f < sent.size(); ++f) {
      CAPTURE(f);
      const auto finish = expected.finish[f];
      REQUIRE(driver.arrived[f].value_or(-1_ps).count() == (finish ? finish->time_since_epoch().count() : -1));
      is_stuck = is_stuck || !finish;
    }
    for (std::uint32_t l = 0; l < made.topology.n_links(); ++l)
      CHECK(driver.network.most_held({l}) <= driver.network.buffer({l}));
    blocked += expected.blocked > 0;
    stuck += is_stuck;
    paused += expected.blocked > 0 && made.options.flow_control == PacketOptions::FlowControl::pause;
  }
  CHECK(blocked > 500);
  CHECK(stuck > 5);
  CHECK(paused > 100);
}

TEST_CASE("with virtual lanes no route waits for ever, be the buffers as small as they may") {
  int needed = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    RandomCase made = random_case(random);
    std::vector<Sent> sent;
    for (const naive::PacketFlow& flow : made.flows) sent.push_back({{.links = flow.links}, flow.size, flow.start});
    const Driver narrow(made.topology, made.options, sent);
    made.options.lanes = 15;
    const Driver driver(made.topology, made.options, sent);
    bool got_stuck = false;
    for (std::size_t f = 0; f < sent.size(); ++f) {
      REQUIRE(driver.arrived[f]);
      got_stuck = got_stuck || !narrow.arrived[f];
    }
    needed += got_stuck;
  }
  CHECK(needed > 5);
}

TEST_CASE("two, seven or thirty flows into one port share it as fair says, within 2 %") {
  for (const auto control : {PacketOptions::FlowControl::credit, PacketOptions::FlowControl::pause}) {
    for (const int n : {2, 7, 30}) {
      CAPTURE(n);
      const Topology hub = star(n + 1, {.bandwidth = 25_GBps, .latency = 1'000'000_ps});
      std::vector<Sent> sent;
      for (int f = 0; f < n; ++f)  // of other sizes and from other times on
        sent.push_back({along(hub, {fmt::format("gpu{}", f), "switch0", fmt::format("gpu{}", n)}), 2_MiB * (1 + f % 3),
                        SimTime{Picoseconds{f * 3'000'000}}});
      const Driver driver(hub, {.flow_control = control}, sent);
      const std::vector<Picoseconds> fair = fairly(hub, sent);
      for (std::size_t f = 0; f < sent.size(); ++f) {
        CAPTURE(f);
        CHECK(driver.microseconds_of(f) == doctest::Approx(microseconds(fair[f])).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("a port into which many send is never idle: all have arrived when fair says") {
  // They end one after the other, and the last has the port for itself: what waits for it must last until more has
  // come, be its link as long as it may.
  for (const auto control : {PacketOptions::FlowControl::credit, PacketOptions::FlowControl::pause}) {
    for (const Picoseconds latency : {0_ps, 1'000'000_ps, 20'000'000_ps}) {
      CAPTURE(latency.count());
      const Topology hub = star(8, {.bandwidth = 25_GBps, .latency = latency});
      std::vector<Sent> sent;
      for (int f = 0; f < 7; ++f)
        sent.push_back({along(hub, {fmt::format("gpu{}", f), "switch0", "gpu7"}), 1'000'003_B * (f + 1)});
      const Driver driver(hub, {.flow_control = control}, sent);
      Picoseconds last{0};
      for (const auto& arrived : driver.arrived) last = std::max(last, arrived.value());
      CHECK(last == 2 * latency + transfer_time(28 * 1'000'003_B, 25_GBps));
    }
  }
}

TEST_CASE("150 ports all send to each other, in little time and memory") {
  const Topology hub = star(150, {.bandwidth = 25_GBps, .latency = 1000_ps});
  std::vector<Sent> sent;
  for (std::uint32_t to = 0; to < 150; ++to)
    for (std::uint32_t from = 0; from < 150; ++from)
      if (from != to) sent.push_back({{.links = {LinkId{2 * from}, LinkId{2 * to + 1}}, .latency = 2000_ps}, 1000_B});
  REQUIRE(hub.link(sent[0].leg.links[0]).to == hub.link(sent[0].leg.links[1]).from);
  const Driver driver(hub, {}, sent);
  Picoseconds last{0};
  for (const auto& arrived : driver.arrived) last = std::max(last, arrived.value());
  CHECK(last >= 2000_ps + transfer_time(149 * 1000_B, 25_GBps));
  CHECK(last <= 2000_ps + 2 * transfer_time(149 * 1000_B, 25_GBps));  // the last to be served waits for the first
}

TEST_CASE("parking lot: of three flows that merge one after another the nearest gets half, not a third") {
  // gpu0 and gpu1 merge in s1, what comes of them merges with gpu2 in s2. A switch takes turns among its inputs and
  // does not know how many flows an input brings: s2 gives half to gpu2, half to the link from s1, of which s1 gave
  // each of gpu0 and gpu1 half. Fair would give each a third. All three links from s1 on have one port's rate b. So
  // gpu2's S bytes take 2 S/b (fair: 3 S/b); the others have S/2 left then, and the link for themselves: 3 S/b as fair
  // says.
  TopologyBuilder builder;
  for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (int s = 0; s < 3; ++s) builder.add_node(fmt::format("s{}", s), NodeKind::network_switch);
  const LinkSpec spec{.bandwidth = 10_GBps, .latency = 500'000_ps};
  const auto cable = [&](const std::string& a, const std::string& b) {
    builder.add_cable(*builder.find(a), *builder.find(b), spec);
  };
  cable("gpu0", "s0"), cable("gpu1", "s1"), cable("gpu2", "s2"), cable("gpu3", "s2"), cable("s0", "s1"),
      cable("s1", "s2");
  const Topology lot = builder.build();
  const std::vector<Sent> sent{{along(lot, {"gpu0", "s0", "s1", "s2", "gpu3"}), 8_MiB},
                               {along(lot, {"gpu1", "s1", "s2", "gpu3"}), 8_MiB},
                               {along(lot, {"gpu2", "s2", "gpu3"}), 8_MiB}};
  const double alone = microseconds(transfer_time(8_MiB, 10_GBps));
  const std::vector<Picoseconds> fair = fairly(lot, sent);
  for (const auto control : {PacketOptions::FlowControl::credit, PacketOptions::FlowControl::pause}) {
    const Driver driver(lot, {.flow_control = control}, sent);
    CHECK(driver.microseconds_of(2) == doctest::Approx(2 * alone).epsilon(0.01));
    CHECK(driver.microseconds_of(1) == doctest::Approx(3 * alone).epsilon(0.01));
    CHECK(driver.microseconds_of(0) == doctest::Approx(3 * alone).epsilon(0.01));
    CHECK(microseconds(fair[2]) == doctest::Approx(3 * alone).epsilon(0.01));
  }
}

TEST_CASE("head-of-line blocking: a flow to an idle port is as slow as the one to a busy port behind which it stands") {
  // gpu0 sends to gpu4 and to gpu5; gpu1, gpu2 and gpu3 send to gpu4 too, whose port gives each of the four a quarter.
  // Fair: gpu0's flow to gpu5 has what is left of gpu0's port, three quarters. Packet: the buffer behind gpu0's port
  // fills with packets for gpu4; then one comes in for each that leaves, and gpu0 takes turns among its flows: both
  // have a quarter. Only as long as the buffer is not full has each half of the port: a larger buffer than the whole
  // flow hides it.
  const Topology hub = star(6, {.bandwidth = 10_GBps, .latency = 500'000_ps});
  const auto flow = [&](const std::string& from, const std::string& to, Bytes size) {
    return Sent{along(hub, {from, "switch0", to}), size};
  };
  const std::vector<Sent> sent{flow("gpu0", "gpu5", 4_MiB), flow("gpu0", "gpu4", 8_MiB), flow("gpu1", "gpu4", 8_MiB),
                               flow("gpu2", "gpu4", 8_MiB), flow("gpu3", "gpu4", 8_MiB)};
  const double alone = microseconds(transfer_time(4_MiB, 10_GBps));
  CHECK(microseconds(fairly(hub, sent)[0]) == doctest::Approx(4.0 / 3 * alone).epsilon(0.01));
  for (const auto control : {PacketOptions::FlowControl::credit, PacketOptions::FlowControl::pause}) {
    const Driver driver(hub, {.flow_control = control}, sent);
    CHECK(driver.microseconds_of(0) == doctest::Approx(4 * alone).epsilon(0.03));
    CHECK(driver.microseconds_of(0) < 4 * alone);  // the buffer's worth of a head start
    const Driver roomy(hub, {.flow_control = control, .buffer = 64_MiB}, sent);
    CHECK(roomy.microseconds_of(0) == doctest::Approx(2 * alone).epsilon(0.01));
  }
}

TEST_CASE("a buffer that is too small for its link's latency lets as much through as it holds, once a round trip") {
  // Room for two packets; a packet's room is free again 2 latencies and one packet time (0.4096 us) after its start. So
  // two packets start in each 2 L + t, and the last of 100 is t after the 99th.
  const Picoseconds latency = 10'000'000_ps, t = transfer_time(4096_B, 10_GBps);
  const Topology line = chain({{.bandwidth = 10_GBps, .latency = latency}, {.bandwidth = 10_GBps, .latency = latency}});
  const std::vector<Sent> sent{{whole_chain(line), 100 * 4096_B}};
  const Driver driver(line, {.buffer = 8192_B}, sent);
  CHECK(driver.arrived[0].value() == 49 * (2 * latency + t) + t + 2 * latency + t);
  const Driver ample(line, {}, sent);
  CHECK(ample.arrived[0].value() == 100 * t + 2 * latency);
}

TEST_CASE("where a leg goes several ways the packets are dealt out by the shares, and all of them are used at once") {
  // gpu0 - a - two or three spines - b - gpu1, the links of the spines slower than the ports.
  TopologyBuilder builder;
  const NodeId gpu0 = builder.add_gpu("gpu0"), gpu1 = builder.add_gpu("gpu1");
  const NodeId a = builder.add_node("a", NodeKind::network_switch), b = builder.add_node("b", NodeKind::network_switch);
  const LinkSpec port{.bandwidth = 12_GBps, .latency = 300_ps}, trunk{.bandwidth = 4_GBps, .latency = 300_ps};
  Leg leg{.latency = 1200_ps};
  builder.add_link(gpu0, a, port), leg.shares.push_back(1);
  for (int s = 0; s < 3; ++s) {
    const NodeId spine = builder.add_node(fmt::format("spine{}", s), NodeKind::network_switch);
    builder.add_link(a, spine, trunk), leg.shares.push_back(1.0 / 3);
    builder.add_link(spine, b, trunk), leg.shares.push_back(1.0 / 3);
  }
  builder.add_link(b, gpu1, port), leg.shares.push_back(1);
  const Topology spread = builder.build();
  for (std::uint32_t l = 0; l < spread.n_links(); ++l) leg.links.push_back({l});
  const Driver driver(spread, {}, {{leg, 300 * 4096_B}});
  for (const std::uint32_t l : {1U, 2U, 3U, 4U, 5U, 6U}) CHECK(driver.network.carried({l}).pieces == 100);
  CHECK(driver.network.carried({7}).bytes == 300 * 4096);
  // The ports are full all the time, but that the last of three packets waits for the spines: two packets' time of
  // theirs.
  const Picoseconds fair = 1200_ps + transfer_time(300 * 4096_B, 12_GBps);
  CHECK(driver.arrived[0].value() >= fair);
  CHECK(driver.arrived[0].value() <= fair + 2 * transfer_time(4096_B, 4_GBps));

  leg.shares = {1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 1};
  const Driver uneven(spread, {}, {{leg, 300 * 4096_B}});
  CHECK(uneven.network.carried({1}).pieces == 150);
  CHECK(uneven.network.carried({3}).pieces == 75);
  CHECK(uneven.network.carried({5}).pieces == 75);
}

TEST_CASE("buffers that wait for each other in a circle are found out, and their links named") {
  // Four switches in a circle, one way round; each gpu sends to the one opposite, over two links of the circle. With
  // room for one packet each buffer is filled by a packet that needs the next one. Larger buffers are drained in time.
  TopologyBuilder builder;
  for (int i = 0; i < 4; ++i) builder.add_gpu(fmt::format("gpu{}", i));
  for (int i = 0; i < 4; ++i) builder.add_node(fmt::format("s{}", i), NodeKind::network_switch);
  const LinkSpec spec{.bandwidth = 10_GBps, .latency = 1000_ps};
  for (std::uint32_t i = 0; i < 4; ++i) builder.add_cable({i}, {4 + i}, spec);
  for (std::uint32_t i = 0; i < 4; ++i) builder.add_link({4 + i}, {4 + (i + 1) % 4}, spec);
  const Topology circle = builder.build();
  const CollectiveRequest request{.op = CollectiveOp::pairs, .ranks = 4, .bytes = 1_MiB, .both_ways = true};
  const CheckedSchedule pairs = check(find_algorithm("direct")->make(request, {}));
  CHECK_THROWS_WITH_AS(
      run(circle, pairs, {.model = NetworkModel::packet, .packet = {.buffer = 4096_B, .lanes = 1}}),
      "the network is deadlocked at 0.8212 us: the buffers of these links are full, and each link waits for room in "
      "the buffer of the next, the last one for the first: s0 -> s1, s1 -> s2, s2 -> s3, s3 -> s0\n  hint: the routes "
      "need larger buffers, or more virtual lanes than network.packet.lanes",
      InputError);
  CHECK(run(circle, pairs, {.model = NetworkModel::packet, .packet = {.buffer = 4_MiB, .lanes = 1}}).transfers == 4);
  CHECK(run(circle, pairs, {.model = NetworkModel::packet, .packet = {.buffer = 4096_B, .lanes = 2}}).transfers == 4);
}

TEST_CASE("buffers in which a packet has no room are an error") {
  const Topology line = chain({{.bandwidth = 10_GBps, .latency = 1'000'000_ps}});
  const auto network = [&](const PacketOptions& options) {
    Engine<Event> engine;
    PacketNetwork made(options, line, engine);
  };
  CHECK_THROWS_WITH_AS(network({.buffer = 4095_B}),
                       "expected buffers of the network model packet of at least 4096 B (one packet), found 4095 B\n  "
                       "hint: remove the buffer size: it then follows from the latency of each link",
                       InputError);
  // On its way there and back: 2 us at 10 GB/s, 20000 B; and 5 packets.
  CHECK_THROWS_WITH_AS(network({.flow_control = PacketOptions::FlowControl::pause, .buffer = 40'479_B}),
                       "expected buffers of the network model packet of at least 40480 B (the data still in flight on "
                       "gpu0 -> s0 when it is paused, plus 5 packets), found 40479 B\n  hint: remove the buffer size: "
                       "it then follows from the latency of each link",
                       InputError);
  network({.flow_control = PacketOptions::FlowControl::pause, .buffer = 40'480_B});
  CHECK_THROWS_WITH_AS(network({.mtu = 0_B}), "expected packets of 1 B to 536870911 B, found 0 B", InputError);
}

TEST_CASE("the limiter of a piece is the link of its leg that was busiest meanwhile") {
  const Topology bell = dumbbell({.bandwidth = 10_GBps}, {.bandwidth = 5_GBps});
  const Driver driver(
      bell, {}, {{along(bell, {"gpu0", "s0", "s1", "gpu2"}), 1_MiB}, {along(bell, {"gpu1", "s0", "gpu0"}), 1_MiB}});
  CHECK(bell.resource_name(driver.limiter[0]) == "s0 -> s1");
  CHECK(bell.resource_name(driver.limiter[1]) == "gpu1 -> s0");
}

TEST_CASE("what happens while a protocol's latency passes does not change a piece's limiter") {
  // 1 MB takes 1 ms over the first link and 0.1 ms over the second, and has landed at 1.002 ms and some packets. Until
  // it arrives, 10 ms later, another piece keeps the second link busy for 5 ms.
  const Topology net = chain({{.bandwidth = 1_GBps, .latency = 1us}, {.bandwidth = 10_GBps, .latency = 1us}});
  Leg both = whole_chain(net);
  both.beyond = 10ms;
  const Driver driver(net, {}, {{both, 1'000'000_B}, {{{LinkId{1}}, 1us}, 50'000'000_B, SimTime{2ms}}});
  CHECK(driver.arrived[0] == 1ms + 2us + 10ms);
  CHECK(driver.limiter[0].value == 0);
}

TEST_CASE("a run by packets repeats to the last event, and moves the bytes that it should") {
  const Topology hub = star(6, {.bandwidth = 10_GBps, .latency = 500'000_ps});
  const auto request = CollectiveRequest{.op = CollectiveOp::all_to_all, .ranks = 6, .bytes = 1'000'003_B};
  const CheckedSchedule all = check(find_algorithm("direct")->make(request, {}));
  const Timeline once = run(hub, all, {.model = NetworkModel::packet});
  const Timeline again = run(hub, all, {.model = NetworkModel::packet});
  CHECK(once.fingerprint == again.fingerprint);
  CHECK(once.events == again.events);
  CHECK(once.transfers == 30);
  CHECK(once.fingerprint != run(hub, all).fingerprint);  // fair
}

TEST_CASE("a message that rests in a GPU on its way pipelines slot by slot, as under fair") {
  // gpu0 - gpu1 - gpu2: 4 MiB in slots of 512 KiB. While a slot is in flight the next one leaves.
  TopologyBuilder builder;
  for (int g = 0; g < 3; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  builder.add_cable({0}, {1}, {.bandwidth = 10_GBps, .latency = 3'000'000_ps});
  builder.add_cable({1}, {2}, {.bandwidth = 10_GBps, .latency = 3'000'000_ps});
  const Topology line = builder.build();
  const CollectiveRequest request{.op = CollectiveOp::pairs, .ranks = 2, .bytes = 4_MiB};
  const CheckedSchedule pairs = check(find_algorithm("direct")->make(request, {}));
  const auto took = [&](NetworkModel model) {
    return run(line, pairs, {.model = model, .placement = {NodeId{0}, NodeId{2}}}).duration();
  };
  CHECK(took(NetworkModel::packet) == 6'000'000_ps + transfer_time(4_MiB + 512_KiB, 10_GBps));
  CHECK(took(NetworkModel::packet) == took(NetworkModel::fair));
}

}  // namespace network_packet_test
