// Transfers by themselves: no lanes, no schedule, and a network that does what the test says.
#include "sim/run/transfers.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/run/link_faults.hpp"
#include "tests/support/tiny.hpp"

namespace transfers_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// Notes what starts, and tells nothing by itself.
class WrittenNetwork final : public Network {
 public:
  struct Started {
    std::uint32_t leg = 0;
    Bytes size;
    std::uint64_t piece = 0;
  };

  std::uint32_t add_leg(const Leg& leg, bool, bool) override {
    legs.push_back(leg);
    return static_cast<std::uint32_t>(legs.size() - 1);
  }
  Picoseconds latency(std::uint32_t) const override { return 7us; }
  void start(std::uint32_t leg, Bytes size, std::uint64_t piece) override { started.push_back({leg, size, piece}); }
  void settle() override {}
  std::optional<Told> due(Event) override { return std::nullopt; }
  void set_bandwidth(ResourceId, Bandwidth) override {}
  std::vector<Withdrawn> withdraw(const std::vector<std::uint64_t>& pieces) override {
    std::vector<Withdrawn> out;
    for (const Withdrawn& each : to_withdraw)
      if (std::find(pieces.begin(), pieces.end(), each.piece) != pieces.end()) out.push_back(each);
    return out;
  }
  bool any_under_way(const std::function<bool(std::uint64_t)>&) const override { return false; }
  Carried carried(ResourceId) const override { return {}; }

  std::vector<Leg> legs;
  std::vector<Started> started;
  std::vector<Withdrawn> to_withdraw;
};

/// Transfers between devices, at moments that the test says.
struct Moving {
  explicit Moving(Topology net, RunOptions with = {}, std::vector<NodeId> places = {NodeId{0}, NodeId{1}})
      : topology(std::move(net)), options(std::move(with)), represented({}, nullptr) {
    auto made = std::make_unique<WrittenNetwork>();
    network = made.get();
    transfers =
        std::make_unique<Transfers>(topology, options, std::move(places), 2, represented, std::move(made), engine);
  }

  /// A message of actor 0 to actor 1.
  std::uint32_t send(Bytes size, LaneNumber lane = 0, std::uint16_t channel = 0) {
    const std::uint32_t index = transfers->table().make();
    (*transfers)[index] = Transfer{.sender = lane,
                                   .receiver = 1,
                                   .route = transfers->route(0, 1, channel),
                                   .channel = channel,
                                   .size = size,
                                   .start = engine.now()};
    transfers->set_out(index);
    return index;
  }
  /// Goes on to that moment, on the way handing events that are due to `handle`.
  template <class Handle>
  void go_on_to(SimTime when, Handle handle) {
    engine.at(when, {Event::Kind::local, 0, 0});
    bool is_there = false;
    engine.run(
        [&](const Event& event) {
          if (event.kind() == Event::Kind::local)
            is_there = true;
          else
            handle(event);
        },
        [] {}, [&] { return !is_there; });
  }
  void go_on_to(SimTime when) {
    go_on_to(when, [](const Event&) { FAIL("nothing else was to come"); });
  }
  const Arrived* arrives(std::size_t start, Picoseconds latency = Picoseconds{0}) {
    return transfers->told({.piece = network->started[start].piece,
                            .has_left = true,
                            .has_arrived = true,
                            .limiter = ResourceId{0},
                            .latency = latency});
  }

  Topology topology;
  RunOptions options;
  Represented represented;
  Engine<Event> engine;
  WrittenNetwork* network = nullptr;
  std::unique_ptr<Transfers> transfers;
};

/// What a watcher hears, in order.
struct Heard final : TransferWatcher {
  void has_left(std::uint32_t transfer, ResourceId, Picoseconds busy) override { left.emplace_back(transfer, busy); }
  void last_part_arrived(std::uint32_t part) override { last_parts.push_back(part); }
  void goes_on_as(std::uint32_t before, std::uint32_t after) override { moved.emplace_back(before, after); }

  std::vector<std::pair<std::uint32_t, Picoseconds>> left;
  std::vector<std::uint32_t> last_parts;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moved;
};

Topology pair_of_gpus() { return star(2, {.bandwidth = 1_GBps, .latency = 1us}); }

/// gpu0 - relay - gpu1: a path of two legs, with host memory between them.
Topology chain_of_three() {
  TopologyBuilder builder;
  for (int g = 0; g < 3; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  builder.add_cable(NodeId{0}, NodeId{1}, {.bandwidth = 1_GBps, .latency = 1us});
  builder.add_cable(NodeId{1}, NodeId{2}, {.bandwidth = 1_GBps, .latency = 1us});
  return builder.build();
}

/// Two ways from gpu0 to gpu1, over s0 and over s1.
Topology two_ways() {
  TopologyBuilder builder;
  for (int g = 0; g < 2; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (int s = 0; s < 2; ++s) {
    const NodeId by = builder.add_node(fmt::format("s{}", s), NodeKind::network_switch);
    for (std::uint32_t g = 0; g < 2; ++g)
      builder.add_cable(NodeId{g}, by, {.bandwidth = 1_GBps, .latency = s == 0 ? 1us : 2us});
  }
  return builder.build();
}

}  // namespace

TEST_CASE("a message crosses one leg, and the time that is not latency is its limiter's") {
  Moving m(pair_of_gpus());
  const std::uint32_t message = m.send(1000_B);
  REQUIRE(m.network->started.size() == 1);
  CHECK(m.network->started[0].size == 1000_B);
  CHECK(m.network->legs[m.network->started[0].leg].links.size() == 2);
  m.go_on_to(at(5us));
  const Arrived* arrived = m.arrives(0, 2us);
  REQUIRE(arrived != nullptr);
  CHECK(arrived->transfer == message);
  CHECK(arrived->time.busy == 3us);  // of 5
  CHECK(arrived->time.latency == 2us);
  CHECK(arrived->time.limiter == ResourceId{0});
  m.transfers->table().give_back(message);
  CHECK(m.transfers->table().in_use() == 0);
  CHECK(m.transfers->ways()[(*m.transfers)[message].route].carried == 1000_B);
}

TEST_CASE("a message within one device crosses nothing, and arrives as an event of the same instant") {
  Moving m(pair_of_gpus(), {}, {NodeId{0}, NodeId{0}});
  const std::uint32_t message = m.send(10_B);
  CHECK(m.network->started.empty());
  const Arrived* arrived = nullptr;
  m.go_on_to(at(0us), [&](const Event& event) {
    CHECK(event.kind() == Event::Kind::within);
    arrived = m.transfers->within(event.id);
  });
  REQUIRE(arrived != nullptr);
  CHECK(arrived->transfer == message);
  CHECK(arrived->time.busy + arrived->time.latency == 0us);
}

TEST_CASE("a message of two legs goes in pieces, each of which starts on the second when it has arrived on the first") {
  RunOptions options;
  options.record_path = true;  // so that it tells how much of the latency is the wire's
  options.plans.front().transport.staging = {.size = 1000_B, .depth = 8};
  Moving m(chain_of_three(), options, {NodeId{0}, NodeId{2}});
  const std::uint32_t message = m.send(1500_B);
  REQUIRE(m.network->started.size() == 1);  // the first leg has one piece at a time
  CHECK(m.network->started[0].size == 1000_B);
  m.go_on_to(at(1us));
  CHECK_FALSE(m.arrives(0));
  REQUIRE(m.network->started.size() == 3);  // the second piece there, and the first on the second leg
  CHECK(m.network->started[1].size == 500_B);
  CHECK(m.network->started[2].size == 1000_B);
  m.go_on_to(at(2us));
  CHECK_FALSE(m.arrives(1));
  CHECK(m.network->started.size() == 3);  // the first piece is still on the second leg
  CHECK_FALSE(m.arrives(2));
  REQUIRE(m.network->started.size() == 4);
  m.go_on_to(at(4us));
  const Arrived* arrived = m.arrives(3);
  REQUIRE(arrived != nullptr);
  CHECK(arrived->transfer == message);
  CHECK(arrived->time.busy == 3us);  // the second leg was busy from 1 to 4 us, the first from 0 to 2
  CHECK(arrived->wire == 14us);      // two legs of 7, as the network says
}

TEST_CASE("posts of one device come one after another, and only then does a message move") {
  // Two hosts, so that messages have to be posted: 3 us each.
  TopologyBuilder builder;
  for (int h = 0; h < 2; ++h) builder.add_gpu(fmt::format("node{}.gpu", h));
  const NodeId fabric = builder.add_node("fabric", NodeKind::network_switch);
  for (std::uint32_t g = 0; g < 2; ++g) builder.add_cable(NodeId{g}, fabric, {.bandwidth = 1_GBps, .latency = 1us});
  Moving m(builder.build().with_rates([](NodeId) { return DeviceRates{.post = 3us}; }, 1));
  REQUIRE(m.topology.joins_hosts(NodeId{0}, NodeId{1}));
  const std::uint32_t second = m.send(10_B, 1), first = m.send(20_B, 0);  // of two lanes: the lower one's goes first
  CHECK(m.network->started.empty());
  m.transfers->take_turns();
  std::vector<std::pair<std::uint32_t, Picoseconds>> posted;
  m.go_on_to(at(10us), [&](const Event& event) {
    REQUIRE(event.kind() == Event::Kind::posted);
    posted.emplace_back(event.id, m.engine.now().time_since_epoch());
    m.transfers->go_posted(event.id);
  });
  CHECK(posted == std::vector<std::pair<std::uint32_t, Picoseconds>>{{first, 3us}, {second, 6us}});
  REQUIRE(m.network->started.size() == 2);
  const Arrived* arrived = m.arrives(0);
  REQUIRE(arrived != nullptr);
  CHECK(arrived->time.busy == 7us);     // since its post was over
  CHECK(arrived->time.latency == 3us);  // its post
}

TEST_CASE("a watcher hears when a message has left, and which of its parts came last") {
  Moving m(pair_of_gpus());
  Heard heard;
  m.transfers->watch(heard);
  const std::uint32_t message = m.send(1000_B);
  // A part of it, as slots make them: the message arrives with it.
  const std::uint32_t part = m.transfers->table().make();
  (*m.transfers)[message].parts_under_way = 2;
  (*m.transfers)[part] =
      Transfer{.route = (*m.transfers)[message].route, .size = 400_B, .start = m.engine.now(), .whole = message};
  m.transfers->set_out(part);
  m.go_on_to(at(2us));
  CHECK_FALSE(m.arrives(1));
  CHECK((*m.transfers)[message].parts_under_way == 1);
  CHECK(heard.last_parts.empty());
  REQUIRE(!heard.left.empty());
  CHECK(heard.left.front() == std::pair<std::uint32_t, Picoseconds>{part, 2us});
  CHECK(m.transfers->table().in_use() == 1);  // the part is given back
}

TEST_CASE("what has not left a link that goes down goes on over another way, and the message arrives with both parts") {
  RunOptions options;
  const Topology net = two_ways();
  options.disturbance.links = {{.to = LinkChange::To::down, .at = at(4us), .links = {link_between(net, "gpu0", "s0")}}};
  Moving m(net, options);
  LinkFaults faults(m.topology, m.options, 2, m.engine, *m.transfers);
  Heard heard;
  m.transfers->watch(heard);
  faults.begin();
  const std::uint32_t message = m.send(1000_B);
  REQUIRE(m.network->started.size() == 1);
  m.network->to_withdraw = {{.piece = m.network->started[0].piece, .rest = 600_B, .limiter = ResourceId{0}}};
  m.go_on_to(at(4us), [&](const Event& event) {
    REQUIRE(event.kind() == Event::Kind::link_change);
    CHECK(faults.change_links());
  });
  REQUIRE(m.network->started.size() == 2);
  CHECK(m.network->started[1].size == 600_B);
  CHECK(m.network->legs[m.network->started[1].leg].links.front() == link_between(m.topology, "gpu0", "s1"));
  REQUIRE(heard.moved.size() == 1);
  CHECK(heard.moved[0].first == message);
  CHECK_FALSE(m.arrives(0));  // the 400 bytes that had left
  m.go_on_to(at(9us));
  const Arrived* arrived = m.arrives(1);
  REQUIRE(arrived != nullptr);
  CHECK(arrived->transfer == heard.moved[0].second);  // the number that stands for the message now
  CHECK((*m.transfers)[arrived->transfer].size == 1000_B);
  CHECK(arrived->time.busy + arrived->time.latency == 9us);
  m.transfers->table().give_back(arrived->transfer);
  CHECK(m.transfers->table().in_use() == faults.n_given_up());
}

TEST_CASE("a message without a way waits for a link that comes back, and an error names the link if none does") {
  const Topology net = pair_of_gpus();
  const LinkId cable = link_between(net, "gpu0", "switch0");
  REQUIRE(cable != no_link);
  RunOptions options;
  options.disturbance.links = {{.to = LinkChange::To::down, .at = at(0us), .links = {cable}},
                               {.to = LinkChange::To::restored, .at = at(5us), .links = {cable}}};
  Moving m(net, options);
  LinkFaults faults(m.topology, m.options, 2, m.engine, *m.transfers);
  faults.begin();
  m.send(1000_B);
  CHECK(m.network->started.empty());
  m.go_on_to(at(5us), [&](const Event&) { faults.change_links(); });
  CHECK(m.network->started.size() == 1);

  options.disturbance.links.pop_back();
  Moving never(net, options);
  LinkFaults for_good(never.topology, never.options, 2, never.engine, *never.transfers);
  for_good.begin();
  CHECK_THROWS_WITH_AS(
      never.send(1000_B),
      doctest::Contains("no path is left at 0 us for rank 0 (gpu0) -> rank 1 (gpu1): permanently down is"),
      StrandedError);
}

}  // namespace transfers_test
