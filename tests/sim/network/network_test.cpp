// The flow models against the naive solver: rates at every instant, and when each flow ends.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "sim/base/error.hpp"
#include "sim/network/network_flow.hpp"
#include "tests/support/naive/naive_fair.hpp"

namespace network_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// Runs flows through FlowNetwork alone; after every instant the rates are compared with the naive solver's.
struct Driver {
  Driver(const Topology& t, NetworkModel m, const std::vector<naive::Flow>& f, std::vector<naive::Change> c = {})
      : topology(t),
        model(m),
        flows(f),
        changes(std::move(c)),
        network(m, t, engine, {.tells_left = true, .may_change = !changes.empty()}),
        finish(f.size()) {}

  void go() {
    for (std::uint32_t c = 0; c < changes.size(); ++c) engine.at(changes[c].at, {Event::Kind::link_change, c, 0});
    for (std::uint32_t f = 0; f < flows.size(); ++f) {
      legs.push_back(network.add_leg(flows[f].leg, flows[f].first, flows[f].last));
      engine.at(flows[f].start, {Event::Kind::local, f, 0});
    }
    engine.run([this](const Event& event) { handle(event); }, [this] { network.settle(); },
               [this] {
                 compare_rates();
                 return true;
               });
  }

  void handle(const Event& event) {
    if (event.kind() == Event::Kind::local) {
      network.start(legs[event.id], flows[event.id].size, event.id);
      if (flows[event.id].size.count > 0) moving.insert(event.id);
    } else if (event.kind() == Event::Kind::link_change) {
      network.set_bandwidth(changes[event.id].resource, changes[event.id].bandwidth);
    } else if (const auto told = network.due(event); told && told->has_left) {
      finish[told->piece] = engine.now();
      moving.erase(told->piece);
      ++n_ended;
    }
  }

  void compare_rates() {
    std::vector<naive::Flow> together;
    std::vector<double> found;
    for (const std::uint64_t f : moving) {
      together.push_back(flows[f]);
      found.push_back(network.rate_of(f));
    }
    const std::vector<Bandwidth> bandwidths = naive::bandwidths_at(topology, changes, engine.now());
    const std::vector<long double> expected = naive::rates(topology, model, together, bandwidths);
    for (std::size_t i = 0; i < found.size(); ++i)
      worst = std::max(worst, std::abs(found[i] / static_cast<double>(expected[i]) - 1));
    is_max_min = is_max_min && naive::each_has_a_bottleneck(topology, model, together, found, bandwidths);
  }

  const Topology& topology;
  NetworkModel model;
  const std::vector<naive::Flow>& flows;
  const std::vector<naive::Change> changes;
  Engine<Event> engine;
  FlowNetwork network;
  std::vector<std::uint32_t> legs;
  std::set<std::uint64_t> moving;
  std::vector<SimTime> finish;
  std::size_t n_ended = 0;
  double worst = 0;  // largest relative difference of a rate
  bool is_max_min = true;
};

void compare(const Topology& topology, NetworkModel model, const std::vector<naive::Flow>& flows,
             const std::vector<naive::Change>& changes = {}) {
  Driver driver(topology, model, flows, changes);
  driver.go();
  REQUIRE(driver.n_ended == flows.size());
  // Rates within 1e-9 of each other count as equal, and a change leaves what is equal alone: with several, a few times.
  CHECK(driver.worst <= (changes.empty() ? 1e-9 : 5e-9));
  CHECK(driver.is_max_min);
  const naive::Result expected = naive::simulate(topology, model, flows, changes);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    CAPTURE(f);
    const std::int64_t difference = (driver.finish[f] - expected.finish[f]).count();
    CHECK(std::abs(difference) <= 2 * (1 + expected.changes));  // each change may round up once in each of the two
  }
}

struct Case {
  Topology topology;
  std::vector<naive::Flow> flows;
};

// Legs are lists of any links, not paths: the models do not care, and more odd cases come up (one resource twice).
Case random_case(std::mt19937_64& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  TopologyBuilder builder;
  std::vector<NodeId> nodes{builder.add_gpu("gpu0")};
  const auto n_nodes = static_cast<std::size_t>(pick(2, 6));
  while (nodes.size() < n_nodes)
    nodes.push_back(builder.add_node(fmt::format("s{}", nodes.size()), NodeKind::network_switch));
  const std::int64_t n_cables = pick(2, 12);
  const bool equal_rates = random() % 3 == 0;
  for (std::int64_t c = 0; c < n_cables; ++c) {
    const auto from = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(n_nodes) - 1));
    const std::size_t to = (from + 1 + random() % (n_nodes - 1)) % n_nodes;
    const std::int64_t rate = equal_rates         ? 1'000'000'000
                              : random() % 2 == 0 ? pick(1, 4) * 1'000'000'000
                                                  : pick(10'000'000, 3'000'000'000);
    const LinkSpec spec{.bandwidth = {rate}, .duplex = random() % 3 == 0 ? Duplex::half : Duplex::full};
    if (random() % 4 == 0)
      builder.add_link(nodes[from], nodes[to], spec);
    else
      builder.add_cable(nodes[from], nodes[to], spec);
  }
  Case made{builder.build(), {}};
  const std::int64_t n_flows = pick(1, 20);
  for (std::int64_t f = 0; f < n_flows; ++f) {
    naive::Flow flow;
    flow.start = SimTime{Picoseconds{random() % 3 == 0 ? 0 : pick(0, 10) * 1'000'000 + (random() % 2 == 0 ? 7 : 0)}};
    flow.size = {random() % 8 == 0 ? 0 : random() % 2 == 0 ? 10'000 : pick(1, 40'000)};
    const std::int64_t n_links = pick(1, 4);
    for (std::int64_t l = 0; l < n_links; ++l)
      flow.leg.links.push_back(
          LinkId{static_cast<std::uint32_t>(pick(0, static_cast<std::int64_t>(made.topology.n_links()) - 1))});
    // Spread over several ways, or dearer than its bytes.
    if (random() % 3 == 0)
      for (std::int64_t l = 0; l < n_links; ++l)
        flow.leg.shares.push_back(std::array{0.25, 1.0 / 3, 0.5, 1.0, 1.2}[static_cast<std::size_t>(pick(0, 4))]);
    flow.first = random() % 4 != 0;
    flow.last = random() % 4 != 0;
    made.flows.push_back(flow);
  }
  return made;
}

/// Gpus on a switch; link 2i leads from gpu i to the switch, 2i + 1 back.
Topology small_star(int ranks) {
  TopologyBuilder builder;
  for (int r = 0; r < ranks; ++r) builder.add_gpu(fmt::format("gpu{}", r));
  const NodeId hub = builder.add_node("switch0", NodeKind::network_switch);
  for (std::uint32_t r = 0; r < hub.value; ++r) builder.add_cable(NodeId{r}, hub, {.bandwidth = 1_GBps});
  return builder.build();
}
Leg between(std::uint32_t from, std::uint32_t to) { return {{LinkId{2 * from}, LinkId{2 * to + 1}}, 0_ps}; }

}  // namespace

TEST_CASE("on 10000 small random networks flows end when the naive solver says, at its rates all the way") {
  for (std::uint64_t seed = 1; seed <= 10000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Case made = random_case(random);
    for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
      CAPTURE(to_string(model));
      compare(made.topology, model, made.flows);
    }
  }
}

TEST_CASE("on 4000 small random networks whose links change flows end when the naive solver says") {
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed + 1'000'000);
    const Case made = random_case(random);
    std::vector<naive::Change> changes;
    SimTime when{};
    for (std::uint64_t c = 0; c < 1 + random() % 6; ++c) {  // often several at one instant, some at the very first
      when += Picoseconds{static_cast<std::int64_t>(random() % 2 * (random() % 6'000'000))};
      const ResourceId resource{static_cast<std::uint32_t>(random() % made.topology.n_resources())};
      const std::int64_t nominal = made.topology.resource(resource).bandwidth.bytes_per_second;
      changes.push_back(
          {when, resource, {random() % 3 == 0 ? nominal : nominal / (1 + static_cast<int>(random() % 9))}});
    }
    for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
      CAPTURE(to_string(model));
      compare(made.topology, model, made.flows, changes);
    }
  }
}

namespace {

/// Links of these bandwidths, one after the other, numbered from the last to the first, and a leg over some of them.
struct Row {
  explicit Row(const std::vector<Bandwidth>& bandwidths) {
    TopologyBuilder builder;
    std::vector<NodeId> nodes = {builder.add_gpu("gpu0")};
    for (std::size_t i = 1; i < bandwidths.size(); ++i)
      nodes.push_back(builder.add_node(fmt::format("switch{}", i), NodeKind::network_switch));
    nodes.push_back(builder.add_gpu("gpu1"));
    for (std::size_t i = bandwidths.size(); i-- > 0;)
      builder.add_link(nodes[i], nodes[i + 1], {.bandwidth = bandwidths[i], .latency = 1us});
    topology = builder.build();
  }
  /// Of the i-th link.
  LinkId link(std::size_t i) const { return {static_cast<std::uint32_t>(topology.n_links() - 1 - i)}; }
  Leg leg(std::size_t first, std::size_t n) const {
    Leg leg;
    for (std::size_t i = first; i < first + n; ++i) leg.links.push_back(link(i));
    return leg;
  }
  Topology topology;
};

/// The limiter of each piece, of legs whose pieces of 1 MiB start at one instant in that order.
std::map<std::uint64_t, ResourceId> limiters(const Row& row, const std::vector<std::pair<std::uint64_t, Leg>>& starts) {
  Engine<Event> engine;
  FlowNetwork network(NetworkModel::fair, row.topology, engine);
  for (const auto& [piece, leg] : starts) network.start(network.add_leg(leg, true, true), 1_MiB, piece);
  std::map<std::uint64_t, ResourceId> found;
  engine.run(
      [&](const Event& event) {
        if (const auto left = network.due(event)) found[left->piece] = left->limiter;
      },
      [&] { network.settle(); }, [] { return true; });
  return found;
}

}  // namespace

TEST_CASE("of links that are equally full the first on a flow's way holds it, whatever their numbers") {
  // Alone, two links of 1 GB/s; then two flows over both, so that each has a half of either.
  const Row row({2_GBps, 1_GBps, 3_GBps, 1_GBps});
  const ResourceId first = row.topology.link(row.link(1)).resource;
  REQUIRE(first.value > row.topology.link(row.link(3)).resource.value);
  CHECK(limiters(row, {{0, row.leg(0, 4)}}).at(0) == first);
  for (const auto& [piece, limiter] : limiters(row, {{0, row.leg(0, 4)}, {1, row.leg(0, 4)}})) CHECK(limiter == first);
  // One is shared, the other is the flow's own: 1 GB/s of 2 for two flows, and a link of 1 GB/s.
  const Row mixed({2_GBps, 1_GBps});
  CHECK(limiters(mixed, {{0, mixed.leg(0, 2)}, {1, mixed.leg(0, 1)}}).at(0) ==
        mixed.topology.link(mixed.link(0)).resource);
}

TEST_CASE("which of two messages starts first at an instant does not decide what holds them") {
  // The first link has room for just the rates that the second and the third allow.
  const Row row({2_GBps, 1_GBps});
  const Leg both = row.leg(0, 2), one = row.leg(0, 1);
  const auto there = limiters(row, {{0, both}, {1, one}}), back = limiters(row, {{1, one}, {0, both}});
  CHECK(there == back);
  CHECK(there.at(0) == row.topology.link(row.link(0)).resource);
}

TEST_CASE("a network that must not depend on an order says, of links that are nearly as full, that it is not sure") {
  // Two flows share 2 TB/s; one of them goes over a second link, by itself. It may mark the flow, or throw.
  const auto marked = [](std::int64_t second) {
    const Row row({{2'000'000'000'000}, {second}});
    Engine<Event> engine;
    FlowNetwork network(NetworkModel::fair, row.topology, engine, {.any_order = true});
    network.start(network.add_leg(row.leg(0, 2), true, true), 2_MiB, 0);  // over a microsecond: no rounding is near
    network.start(network.add_leg(row.leg(0, 1), true, true), 2_MiB, 1);
    network.settle();
    std::optional<bool> of_first;
    Event event;
    while (!of_first && engine.advance())
      while (engine.next_now(event))
        if (const auto left = network.due(event); left && left->piece == 0) of_first = left->is_unsure;
    return of_first.value();
  };
  const auto is_unsure = [&](std::int64_t second) {
    try {
      return marked(second);
    } catch (const Unsure&) {
      return true;
    }
  };
  CHECK_FALSE(is_unsure(1'000'000'000'000));  // alike
  CHECK(is_unsure(1'000'000'000'050));        // by 5e-11
  CHECK_FALSE(is_unsure(1'000'001'000'000));  // by 1e-6, more than rates that count as equal may differ
}

TEST_CASE("a change in one half of a star touches no flow of the other half") {
  const Topology star = small_star(8);
  Engine<Event> engine;
  FlowNetwork network(NetworkModel::fair, star, engine);
  std::uint64_t piece = 0;
  // In each half all of four gpus send to the other three: 12 flows, each at a third of a port.
  for (const std::uint32_t half : {0U, 4U})
    for (std::uint32_t from = 0; from < 4; ++from)
      for (std::uint32_t to = 0; to < 4; ++to)
        if (from != to) network.start(network.add_leg(between(half + from, half + to), true, true), 1_MiB, piece++);
  network.settle();
  REQUIRE(network.flows_solved() == 24);
  network.start(network.add_leg(between(0, 1), true, true), 1_MiB, piece);
  network.settle();
  const std::int64_t touched = network.flows_solved() - 24;
  CHECK(touched >= 6);       // those that leave gpu0 or enter gpu1 get less: 3 + 3 - 1, and the new one
  CHECK(touched <= 4 * 13);  // at most the whole half, in each of the rounds that widen the circle
  CHECK(network.rate_of(piece) == doctest::Approx(0.25e9).epsilon(1e-12));
  for (std::uint64_t other = 12; other < 24; ++other) CHECK(network.rate_of(other) == doctest::Approx(1e9 / 3));
}

TEST_CASE("where only a flow's neighbors are touched, twice as large a network costs no more") {
  // Pairs of gpus, each pair with two flows one way; one more flow in the first pair is the change.
  std::vector<std::int64_t> touched;
  for (const int pairs : {2, 64}) {
    const Topology star = small_star(2 * pairs);
    Engine<Event> engine;
    FlowNetwork network(NetworkModel::fair, star, engine);
    for (std::uint32_t p = 0; p < static_cast<std::uint32_t>(pairs); ++p)
      for (int twice = 0; twice < 2; ++twice)
        network.start(network.add_leg(between(2 * p, 2 * p + 1), true, true), 1_MiB, p);
    network.settle();
    const std::int64_t before = network.flows_solved();
    network.start(network.add_leg(between(0, 1), true, true), 1_MiB, 1000);
    network.settle();
    touched.push_back(network.flows_solved() - before);
  }
  CHECK(touched[0] == 3);
  CHECK(touched[1] == 3);
}

// 300 flows of different sizes into one port. Each departure gives all others another rate; but only what is due first
// is an event.
TEST_CASE("flows over one port wait as one event, not as one each and per change of rate") {
  constexpr std::uint32_t n = 300;
  const Topology star = small_star(n + 1);
  Engine<Event> engine;
  FlowNetwork network(NetworkModel::fair, star, engine);
  for (std::uint32_t i = 0; i < n; ++i)
    network.start(network.add_leg(between(i + 1, 0), true, true), Bytes{1'000'000 + 1000 * std::int64_t{i}}, i);
  std::uint32_t gone = 0;
  std::size_t most = 0;
  engine.run(
      [&](const Event& event) {
        if (const auto left = network.due(event)) CHECK(left->piece == gone++);
      },
      [&] { network.settle(); },
      [&] {
        most = std::max(most, engine.n_waiting());
        return true;
      });
  CHECK(gone == n);
  CHECK(most == 3);  // at first also two of the first flow, void since it shares the port
}

TEST_CASE("a change at one end of a parking lot goes through to the other end") {
  // Flow i crosses links i and i+1. With link 0 at 10 and link i at 8 + 4i GB/s, and one more flow on link 0 alone,
  // flow i moves at 5 + 2i: each is held back by link i, on which its predecessor is slower. When the flow on link 0
  // ends, flow 0 wants more, so flow 1 gets less, so flow 2 gets more, ... to the end of the chain.
  constexpr std::uint32_t n = 40;
  TopologyBuilder builder;
  std::vector<NodeId> nodes{builder.add_gpu("gpu0")};
  for (std::uint32_t i = 0; i <= n; ++i) {
    nodes.push_back(builder.add_node(fmt::format("s{}", i), NodeKind::network_switch));
    builder.add_link(nodes[i], nodes[i + 1], {.bandwidth = {(i == 0 ? 10 : 8 + 4 * std::int64_t{i}) * 1'000'000'000}});
  }
  const Topology chain = builder.build();
  std::vector<naive::Flow> flows;
  for (std::uint32_t i = 0; i < n; ++i) flows.push_back({SimTime{}, {{LinkId{i}, LinkId{i + 1}}, 0_ps}, 1_GiB});
  flows.push_back({SimTime{}, {{LinkId{0}}, 0_ps}, 1_MiB});

  Engine<Event> engine;
  FlowNetwork network(NetworkModel::fair, chain, engine);
  for (std::size_t f = 0; f < flows.size(); ++f)
    network.start(network.add_leg(flows[f].leg, true, true), flows[f].size, f);
  network.settle();
  for (std::uint32_t i = 0; i < n; ++i) CHECK(network.rate_of(i) == doctest::Approx((5.0 + 2.0 * i) * 1e9));
  const std::int64_t before = network.flows_solved();
  Event event;
  while (network.rate_of(n) > 0) {
    REQUIRE(engine.advance());
    while (engine.next_now(event)) network.due(event);
  }
  network.settle();
  CHECK(network.flows_solved() - before >= n);
  const std::vector<naive::Flow> rest(flows.begin(), flows.end() - 1);
  const std::vector<long double> expected = naive::rates(chain, NetworkModel::fair, rest);
  for (std::uint32_t i = 0; i < n; ++i) {
    CAPTURE(i);
    CHECK(network.rate_of(i) == doctest::Approx(static_cast<double>(expected[i])).epsilon(1e-9));
    CHECK(std::abs(network.rate_of(i) / ((5.0 + 2.0 * i) * 1e9) - 1) > 1e-3);  // not one kept its rate
  }
  compare(chain, NetworkModel::fair, flows);
}

TEST_CASE("a lone flow takes exactly the size over the narrowest link, however many links it crosses") {
  // 1 MiB at 3 GB/s: 349525.33.. ns, rounded up once.
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), s = builder.add_node("s", NodeKind::network_switch);
  const NodeId b = builder.add_gpu("gpu1");
  builder.add_link(a, s, {.bandwidth = 7_GBps});
  builder.add_link(s, b, {.bandwidth = 3_GBps});
  const Topology line = builder.build();
  for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
    const std::vector<naive::Flow> flows{{SimTime{}, {{LinkId{0}, LinkId{1}}, 0_ps}, 1_MiB}};
    Driver driver(line, model, flows);
    driver.go();
    CHECK(driver.finish[0].time_since_epoch() == 349'525'334_ps);
  }
}

TEST_CASE("a leg that crosses a link of 1 B/s three times moves at a third of a byte per second") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), b = builder.add_gpu("gpu1");
  builder.add_link(a, b, {.bandwidth = 1_Bps});
  const Topology line = builder.build();
  const std::vector<naive::Flow> flows{{SimTime{}, {{LinkId{0}, LinkId{0}, LinkId{0}}, 0_ps}, 2_B}};
  Driver driver(line, NetworkModel::fair, flows);
  driver.go();
  CHECK(driver.finish[0].time_since_epoch() == 6 * std::chrono::seconds{1});
}

TEST_CASE("what a link has carried so far leaves out what is to come, of a piece that has it for itself as well") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), b = builder.add_gpu("gpu1");
  builder.add_link(a, b, {.bandwidth = 1_GBps});
  const Topology line = builder.build();
  Engine<Event> engine;
  FlowNetwork network(NetworkModel::fair, line, engine);
  network.start(network.add_leg({{LinkId{0}}, 0_ps}, true, true), 1000_B, 7);
  engine.after(400'000_ps, {Event::Kind::local, 0, 0});
  engine.advance();
  CHECK(network.carried({0}).bytes == doctest::Approx(400).epsilon(1e-9));
  CHECK(network.carried({0}).busy == 400'000_ps);
}

TEST_CASE(
    "pieces that have a link for themselves are counted once, whatever their sizes, and so are those after them") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), b = builder.add_gpu("gpu1");
  builder.add_link(a, b, {.bandwidth = 1_GBps});
  const Topology line = builder.build();
  Engine<Event> engine;
  FlowNetwork network(NetworkModel::fair, line, engine);
  const auto move = [&](std::uint32_t leg, Bytes size) {
    network.start(leg, size, 7);
    engine.run([&](const Event& event) { network.due(event); }, [&] { network.settle(); }, [] { return true; });
  };
  const auto expect = [&](std::int64_t pieces, double bytes, Picoseconds busy) {
    const Carried carried = network.carried({0});
    CHECK(carried.pieces == pieces);
    CHECK(carried.bytes == bytes);
    CHECK(carried.busy == busy);
  };
  const std::uint32_t first = network.add_leg({{LinkId{0}}, 0_ps}, true, true);
  for (const Bytes size : {1000_B, 1000_B, 500_B, 1000_B}) move(first, size);
  expect(4, 3500, 3'500'000_ps);
  const std::uint32_t second = network.add_leg({{LinkId{0}}, 0_ps}, true, true);  // no longer for itself
  expect(4, 3500, 3'500'000_ps);
  move(second, 500_B);
  expect(5, 4000, 4'000'000_ps);
}

TEST_CASE("time in which a link carries a piece is counted once if another comes while that is under way") {
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), b = builder.add_gpu("gpu1");
  builder.add_link(a, b, {.bandwidth = 1_GBps});
  const Topology line = builder.build();
  // 1000 B at 1 GB/s take 1 us; 500 B more come when 0.4 us have passed, on the same leg or on another: 1.5 us in all.
  for (const bool same_leg : {true, false}) {
    CAPTURE(same_leg);
    Engine<Event> engine;
    FlowNetwork network(NetworkModel::fair, line, engine);
    const std::uint32_t first = network.add_leg({{LinkId{0}}, 0_ps}, true, true);
    network.start(first, 1000_B, 0);
    engine.at(SimTime{400'000_ps}, {Event::Kind::local, 0, 0});
    engine.run(
        [&](const Event& event) {
          if (event.kind() == Event::Kind::local)
            network.start(same_leg ? first : network.add_leg({{LinkId{0}}, 0_ps}, true, true), 500_B, 1);
          else
            network.due(event);
        },
        [&] { network.settle(); }, [] { return true; });
    CHECK(network.carried({0}).pieces == 2);
    CHECK(network.carried({0}).bytes == doctest::Approx(1500).epsilon(1e-9));
    CHECK(network.carried({0}).busy == 1'500'000_ps);
  }
}

TEST_CASE("what is taken off a link has not crossed it, at the weight that its bytes have there") {
  // A byte costs two on the link of 1 GB/s, a half on the one of 10 GB/s: 500 B in 1 us, of 1000.
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), s = builder.add_node("s", NodeKind::network_switch);
  const NodeId b = builder.add_gpu("gpu1");
  builder.add_link(a, s, {.bandwidth = 1_GBps});
  builder.add_link(s, b, {.bandwidth = 10_GBps});
  const Topology line = builder.build();
  Engine<Event> engine;
  FlowNetwork network(NetworkModel::fair, line, engine, {.may_change = true});
  network.start(network.add_leg({{LinkId{0}, LinkId{1}}, 0_ps, {2, 0.5}}, true, true), 1000_B, 7);
  network.settle();
  engine.after(1'000'000_ps, {Event::Kind::local, 0, 0});
  engine.advance();
  const std::vector<Network::Withdrawn> taken = network.withdraw({7});
  REQUIRE(taken.size() == 1);
  CHECK(taken[0].rest == 500_B);
  CHECK(network.carried({0}).bytes == doctest::Approx(1000).epsilon(1e-12));
  CHECK(network.carried({1}).bytes == doctest::Approx(250).epsilon(1e-12));
}

TEST_CASE("what a link carried is counted once a crossing, and its busy time once however many share it") {
  // Two flows of 1000 B on a 1 GB/s link, which one of them crosses twice: 3000 B in all.
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), b = builder.add_gpu("gpu1");
  builder.add_link(a, b, {.bandwidth = 1_GBps});
  const Topology line = builder.build();
  const std::vector<naive::Flow> flows{{SimTime{}, {{LinkId{0}}, 0_ps}, 1000_B},
                                       {SimTime{}, {{LinkId{0}, LinkId{0}}, 0_ps}, 1000_B}};
  Driver driver(line, NetworkModel::fair, flows);
  driver.go();
  // Both at 1/3 GB/s until both end at 3 us.
  CHECK(driver.finish[0].time_since_epoch() == std::chrono::microseconds{3});
  CHECK(driver.finish[1].time_since_epoch() == std::chrono::microseconds{3});
  const Carried carried = driver.network.carried({0});
  CHECK(carried.bytes == 3000);
  CHECK(carried.pieces == 2);
  CHECK(carried.busy == std::chrono::microseconds{3});
}

}  // namespace network_test
