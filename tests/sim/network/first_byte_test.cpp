// From when on a message of `fair` holds its links: its convention and another, next to `packet`. docs/guide/models.md
// has what follows from the figures.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "sim/network/network.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"
#include "tests/support/draw.hpp"

namespace first_byte_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

// A message holds its links from its start (that is `fair`), or when a latency has passed (SimGrid's). Either way it
// arrives a latency and a transfer after its start if it meets no other.
enum class Convention { at_once, latency_first };

/// Hosts that exchange messages in rounds, as ranks of a collective do: in each, host h sends to one other, and a
/// message starts as soon as both of its ends are done with the round before.
struct Rounds {
  Topology topology;
  std::vector<std::vector<std::size_t>> to;  // [round][host]
  std::vector<std::vector<Leg>> legs;        // likewise
  Bytes size, packet;
};

/// When the last message has arrived.
Picoseconds duration(const Rounds& rounds, NetworkModel model, Convention convention) {
  Engine<Event> engine;
  const PacketOptions fine{.mtu = rounds.packet, .buffer = 64_MiB};
  const auto network = make_network(model, fine, rounds.topology, engine);
  const auto hosts = static_cast<std::uint32_t>(rounds.to[0].size());
  std::vector<std::uint32_t> leg_of;
  for (std::size_t m = 0; m < rounds.to.size() * hosts; ++m) {
    Leg leg = rounds.legs[m / hosts][m % hosts];
    if (convention == Convention::latency_first) leg.latency = 0_ps;
    leg_of.push_back(network->add_leg(leg, true, true));
  }
  std::vector<int> done(hosts, 0);  // [host] messages that it has sent, and those that it has received
  std::vector<bool> started(leg_of.size());
  const auto start_ready = [&] {
    for (std::uint32_t m = 0; m < leg_of.size(); ++m) {
      const std::size_t round = m / hosts, from = m % hosts, to = rounds.to[round][from];
      const int before = 2 * static_cast<int>(round);
      if (started[m] || done[from] < before || done[to] < before) continue;
      started[m] = true;
      const bool waits = convention == Convention::latency_first;
      engine.after(waits ? rounds.legs[round][from].latency : 0_ps, {Event::Kind::local, m, 0});
    }
  };
  Picoseconds last{0};
  const auto arrived = [&](std::uint64_t m) {
    last = engine.now().time_since_epoch();  // not at any event: one may be void, or not come at all
    ++done[m % hosts];
    ++done[rounds.to[m / hosts][m % hosts]];
    start_ready();
  };
  start_ready();
  engine.run(
      [&](const Event& event) {
        if (event.kind() == Event::Kind::local) {
          network->start(leg_of[event.id], rounds.size, event.id);
        } else if (const auto told = network->due(event)) {
          arrived(told->piece);
        }
      },
      [&] { network->settle(); }, [] { return true; });
  REQUIRE(std::count(done.begin(), done.end(), 2 * static_cast<int>(rounds.to.size())) == hosts);
  return last;
}

/// Leaves below one spine, so that messages share cables up and down. The latency of a message, 1 to 20 us, is as long
/// as it takes alone, 4 to 26 us; it differs between messages within a leaf and across.
Rounds draw_rounds(test::Draw& draw) {
  const auto leaves = draw.number(2, 4), per_leaf = draw.number(2, 4);
  const auto cable = [&] {
    return LinkSpec{.bandwidth = 10_GBps, .latency = Picoseconds{draw.number(5, 50) * 100'000}};
  };
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId spine = builder.add_node("spine", NodeKind::network_switch);
  for (std::int64_t l = 0; l < leaves; ++l) {
    const NodeId leaf = builder.add_node(fmt::format("leaf{}", l), NodeKind::network_switch);
    builder.add_cable(leaf, spine, cable());
    for (std::int64_t h = 0; h < per_leaf; ++h) {
      hosts.push_back(builder.add_gpu(fmt::format("gpu{}", hosts.size())));
      builder.add_cable(hosts.back(), leaf, cable());
    }
  }
  Rounds made{
      .topology = builder.build(), .to = {}, .legs = {}, .size = Bytes{draw.number(40'000, 260'000)}, .packet = 512_B};
  Routes routes(made.topology);
  std::vector<std::size_t> circle;
  for (std::size_t h = 0; h < hosts.size(); ++h) circle.push_back(h);
  for (int r = 0; r < 8; ++r) {
    draw.shuffle(circle);
    auto& to = made.to.emplace_back(hosts.size());
    auto& legs = made.legs.emplace_back(hosts.size());
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const std::size_t from = circle[i];
      to[from] = circle[(i + 1) % circle.size()];
      legs[from] = routes.find(hosts[from], hosts[to[from]]).legs.at(0);
    }
  }
  return made;
}

struct Errors {
  double mean = 0, absolute = 0;  ///< against `packet`, in per cent
};

/// Of both conventions, over 100 cases whose messages take as long as their latency, or `longer` times that.
std::array<Errors, 2> errors(std::int64_t longer) {
  test::Draw draw(16);
  std::array<Errors, 2> sums;
  for (int i = 0; i < 100; ++i) {
    Rounds rounds = draw_rounds(draw);
    rounds.size = rounds.size * longer;
    rounds.packet = rounds.packet * longer;
    const auto exact = static_cast<double>(duration(rounds, NetworkModel::packet, Convention::at_once).count());
    for (const Convention convention : {Convention::at_once, Convention::latency_first}) {
      Errors& sum = sums[static_cast<std::size_t>(convention)];
      const double error = static_cast<double>(duration(rounds, NetworkModel::fair, convention).count()) / exact - 1;
      sum.mean += error;  // of 100 cases: in per cent
      sum.absolute += std::abs(error);
    }
  }
  return sums;
}

}  // namespace

TEST_CASE("`fair` is too long where latencies are as long as transfers, as links are held from a message's start") {
  const auto [at_once, latency_first] = errors(1);
  CHECK(at_once.mean == doctest::Approx(2.603).epsilon(0.001));
  CHECK(at_once.absolute == doctest::Approx(2.626).epsilon(0.001));
  CHECK(latency_first.mean == doctest::Approx(-0.5216).epsilon(0.001));
  CHECK(latency_first.absolute == doctest::Approx(1.257).epsilon(0.001));
}

TEST_CASE("that matters little where transfers take eight times as long") {
  const auto [at_once, latency_first] = errors(8);
  CHECK(at_once.mean == doctest::Approx(0.6076).epsilon(0.001));
  CHECK(at_once.absolute == doctest::Approx(0.8240).epsilon(0.001));
  CHECK(latency_first.absolute == doctest::Approx(0.5872).epsilon(0.001));
}

}  // namespace first_byte_test
