// Links that change while a collective runs: every time worked out by hand in the comment above it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "algorithms/all_to_all.hpp"
#include "algorithms/direct.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/tiny.hpp"

namespace disturbance_links_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

using To = LinkChange::To;

LinkChange quarter(Picoseconds when, LinkId link) {
  return {.to = To::share, .at = at(when), .links = {link}, .millionths = 250'000};
}
LinkChange down(Picoseconds when, LinkId link) { return {.to = To::down, .at = at(when), .links = {link}}; }
LinkChange restored(Picoseconds when, LinkId link) { return {.to = To::restored, .at = at(when), .links = {link}}; }

Timeline run_with(const Topology& net, const Schedule& schedule, std::vector<LinkChange> changes,
                  NetworkModel model = NetworkModel::fair) {
  return run(net, check(schedule), {.model = model, .disturbance = {.links = std::move(changes)}});
}

std::string complaint(const Topology& net, const Schedule& schedule, std::vector<LinkChange> changes,
                      NetworkModel model = NetworkModel::fair) {
  return ringsim::test::complaint([&] { run_with(net, schedule, std::move(changes), model); });
}

/// gpu0 and gpu1, joined by two switches: by `s0` with 1 us per link, by `s1` with 5 us and another bandwidth.
Topology two_ways(Bandwidth other) {
  TopologyBuilder builder;
  builder.add_gpu("gpu0");
  builder.add_gpu("gpu1");
  for (const auto& [name, spec] : {std::pair{"s0", LinkSpec{.bandwidth = 10_GBps, .latency = 1us}},
                                   std::pair{"s1", LinkSpec{.bandwidth = other, .latency = 5us}}}) {
    const NodeId hub = builder.add_node(name, NodeKind::network_switch);
    builder.add_cable(NodeId{0}, hub, spec);
    builder.add_cable(NodeId{1}, hub, spec);
  }
  return builder.build();
}

/// gpu0 and gpu3, with gpu1 and gpu2 as relays: gpu1 is the nearer one. `nearest`: from gpu1 to gpu3; 0: `near`.
Topology two_relays(Picoseconds near, Picoseconds far, Picoseconds nearest = 0us) {
  TopologyBuilder builder;
  for (int g = 0; g < 4; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (const std::uint32_t end : {0U, 3U}) {
    const Picoseconds latency = end == 3 && nearest.count() > 0 ? nearest : near;
    builder.add_cable(NodeId{end}, NodeId{1}, {.bandwidth = 10_GBps, .latency = latency});
    builder.add_cable(NodeId{end}, NodeId{2}, {.bandwidth = 10_GBps, .latency = far});
  }
  return builder.build();
}

/// One message of 10 MB from the first rank to the second, on the gpus given.
Timeline one_message(const Topology& net, NodeId from, NodeId to, std::vector<LinkChange> changes,
                     NetworkModel model = NetworkModel::fair) {
  RunOptions options{.model = model, .disturbance = {.links = std::move(changes)}, .placement = {from, to}};
  options.plans.front().transport.staging = {.size = 1'000'000_B, .depth = 8};
  return run(net, check(direct_pairs(2, 10'000'000_B, false)), options);
}

}  // namespace

// Ring all-reduce of 40 MB over 4 ranks, links of 10 GB/s and 1 us, so that a step is 1000 us + 1 us; six of them. The
// link gpu0 -> gpu1 falls to 2.5 GB/s at t: from then on a step over it takes 4000 us + 1 us. Rank 0 begins a step when
// its own message to rank 1 is done, and rank 1 when that has arrived; both are never waited for by anything later, as
// all other messages are faster. So the ring takes the sum of the steps of gpu0 -> gpu1.
TEST_CASE(
    "a link that falls to a quarter in the middle of a step of a ring slows the rest of it, and all steps after") {
  // At 2402 us two steps (2002 us) and 400 us are over: 4 MB of the third step have left, 6 MB take 2400 us, 1 us
  // latency; then three slow steps: 2402 + 2401 + 3 * 4001 = 16806 us.
  const Topology net = build(Ring{.ranks = 4, .link = {.bandwidth = 10_GBps, .latency = 1us}});
  const LinkId link = link_between(net, "gpu0", "gpu1");
  for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair}) {
    CAPTURE(to_string(model));
    const Timeline slowed = run_with(net, ring_all_reduce(4, 40'000'000_B), {quarter(2402us, link)}, model);
    CHECK(slowed.duration() == 16806us);
    CHECK(slowed.bytes_sent == 240'000'000_B);
    REQUIRE(slowed.bottleneck);
    CHECK(net.resource_name(slowed.bottleneck->resource) == "gpu0 -> gpu1");
  }
  // The very same in packets of 1000 B, which divide everything: each step is exact to the packet.
  RunOptions packets{.model = NetworkModel::packet, .packet = {.mtu = 1000_B}};
  packets.disturbance.links = {quarter(2402us, link)};
  CHECK(run(net, check(ring_all_reduce(4, 40'000'000_B)), packets).duration() == 16806us);
}

TEST_CASE("a link that falls to a quarter between two steps slows only the steps after") {
  // The second step's bytes have left at 2001 us and are there at 2002 us, when the third begins: whenever in between,
  // both ends included, it is 2 * 1001 + 4 * 4001 = 18006 us.
  const Topology net = build(Ring{.ranks = 4, .link = {.bandwidth = 10_GBps, .latency = 1us}});
  const LinkId link = link_between(net, "gpu0", "gpu1");
  for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair})
    for (const Picoseconds when :
         {Picoseconds{2001us}, Picoseconds{2001us} + 1_ps, Picoseconds{2001us} + 500ns, Picoseconds{2002us}})
      CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), {quarter(when, link)}, model).duration() == 18006us);
  // A picosecond before, a hundredth of a byte is left: its rest takes four times as long, 1 ps becomes 4.
  CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), {quarter(Picoseconds{2001us} - 1_ps, link)}).duration() ==
        18006us + 3_ps);
  // At the very beginning: six slow steps. After the end: none.
  CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), {quarter(0us, link)}).duration() == 6 * 4001us);
  CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), {quarter(6006us, link)}).duration() == 6006us);
}

TEST_CASE("a link that is restored after 1 ms at a quarter has cost 750 us, and no more") {
  // In the third step 400 us at 10 GB/s, 1000 us at 2.5, 3.5 MB left: 350 us. 2402 + 1000 + 350 + 1, then 3 * 1001.
  const Topology net = build(Ring{.ranks = 4, .link = {.bandwidth = 10_GBps, .latency = 1us}});
  const LinkId link = link_between(net, "gpu0", "gpu1");
  const auto changes = {quarter(2402us, link), restored(3402us, link)};
  CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), changes).duration() == 3753us + 3 * 1001us);
  // The order in which the changes are listed does not matter; of two at one instant the later in the list does.
  CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), {restored(3402us, link), quarter(2402us, link)}).duration() ==
        6756us);
  CHECK(run_with(net, ring_all_reduce(4, 40'000'000_B), {quarter(0us, link), restored(0us, link)}).duration() ==
        6006us);
}

TEST_CASE("a trunk at a quarter: shared in the fair model, a cap of each flow in the ideal one") {
  // Two flows of 3 MB over a trunk of 6 GB/s that falls to 1.5 GB/s at 250 us. Fair: 0.75 MB each at 3 GB/s, then 2.25
  // MB at 0.75 GB/s, 3 ms. Ideal: 1.5 MB each at 6 GB/s, then 1.5 MB at 1.5 GB/s, 1 ms.
  const Topology net = dumbbell({.bandwidth = 10_GBps}, {.bandwidth = 6_GBps});
  const LinkId trunk = link_between(net, "s0", "s1");
  const Schedule pairs = direct_pairs(4, 3'000'000_B, false);
  CHECK(run_with(net, pairs, {quarter(250us, trunk)}).duration() == 3250us);
  CHECK(run_with(net, pairs, {quarter(250us, trunk)}, NetworkModel::ideal).duration() == 1250us);
  // Another bandwidth by its rate, at the same time.
  CHECK(run_with(net, pairs, {{.to = To::bandwidth, .at = at(250us), .links = {trunk}, .bandwidth = 3_GBps}})
            .duration() == 1750us);
}

TEST_CASE("a share of a link is exact to a millionth, rounded down to a byte per second, and 1 B/s at least") {
  const auto of = [](std::int64_t millionths, std::int64_t nominal) {
    return LinkChange{.to = To::share, .millionths = millionths}.of({nominal}).bytes_per_second;
  };
  CHECK(of(123'456, 25'000'000'000) == 3'086'400'000);  // 12.3456 %
  CHECK(of(333'333, 10'000'000) == 3'333'330);
  CHECK(of(666'667, 7) == 4);  // 4.67
  CHECK(of(1'000'000, INT64_MAX) == INT64_MAX);
  CHECK(of(1, 999'999) == 1);
}

TEST_CASE("a fault adds no bandwidth") {
  const Topology net = dumbbell({.bandwidth = 10_GBps}, {.bandwidth = 6_GBps});
  CHECK(complaint(net, direct_pairs(4, 1_MiB, false),
                  {{.to = To::bandwidth, .links = {link_between(net, "s0", "s1")}, .bandwidth = 7_GBps}}) ==
        "expected at most the bandwidth of s0 -> s1 without faults, 6 GB/s, found 7 GB/s\n  hint: a fault can only "
        "reduce bandwidth; set a higher bandwidth in the topology");
}

TEST_CASE("of a message whose link goes down, what has left arrives, and the rest takes the other way") {
  // 10 MB at 10 GB/s; at 400 us s0 -> gpu1 goes down: 4 MB have left. The rest, 6 MB, takes s1 at 5 GB/s: 1200 us, and
  // its 10 us of latency: 1610 us. (At 10 GB/s: 600 us, 1010 us.)
  for (const auto& [other, expected] : {std::pair{5_GBps, 1610us}, std::pair{10_GBps, 1010us}}) {
    const Topology net = two_ways(other);
    const LinkId broken = link_between(net, "s0", "gpu1");
    for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair}) {
      const Timeline found = one_message(net, NodeId{0}, NodeId{1}, {down(400us, broken)}, model);
      CHECK(found.duration() == expected);
      CHECK(found.transfers == 1);
      CHECK(found.bytes_sent == 10'000'000_B);
      CHECK(found.link_bytes[link_between(net, "gpu0", "s0").value] == 4'000'000_B);
      CHECK(found.link_bytes[broken.value] == 4'000'000_B);
      CHECK(found.link_bytes[link_between(net, "gpu0", "s1").value] == 6'000'000_B);
      CHECK(found.link_bytes[link_between(net, "s1", "gpu1").value] == 6'000'000_B);
    }
  }
  // Not on its way: nothing happens. Down before it starts: all of it goes by s1. Down when all has left (1000 us): it
  // arrives as if nothing had been.
  const Topology net = two_ways(5_GBps);
  const LinkId broken = link_between(net, "s0", "gpu1");
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(400us, link_between(net, "gpu1", "s0"))}).duration() == 1002us);
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(0us, broken)}).duration() == 2010us);
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(1000us, broken)}).duration() == 1002us);
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(1001us, broken)}).duration() == 1002us);
  // Restored while the rest is on the other way: it stays there.
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(400us, broken), restored(500us, broken)}).duration() == 1610us);
}

TEST_CASE("a message may change its way again and again") {
  // 4 MB by s0 until 400 us; by s1 at 5 GB/s until 1000 us: 3 MB; s0 is back since 500 us, so that the last 3 MB take
  // it: 300 us and 2 us, 1302 us. What left by s1 until 1000 us is there at 1010 us.
  const Topology net = two_ways(5_GBps);
  const LinkId first = link_between(net, "s0", "gpu1"), second = link_between(net, "gpu0", "s1");
  const Timeline found =
      one_message(net, NodeId{0}, NodeId{1}, {down(400us, first), restored(500us, first), down(1000us, second)});
  CHECK(found.duration() == 1302us);
  CHECK(found.link_bytes[first.value] == 7'000'000_B);
  CHECK(found.link_bytes[second.value] == 3'000'000_B);
  // Down for the last time with 1 MB to go, which is there before what left last on the long way: 7 MB by s0 until 700
  // us, 2.99 MB by s1 until 1298 us (there at 1308 us), the last 10 kB by s0: 1 us and 2 us, 1301 us.
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(700us, first), restored(701us, first), down(1298us, second)})
            .duration() == 1308us);
}

TEST_CASE("of staged data what has left on the last leg arrives; all else is sent again from the source") {
  // 10 MB in slots of 1 MB, 100 us each, over two legs without latency. At 450 us 4.5 MB have left gpu0 and 3.5 MB
  // gpu1, of which 3 slots are whole. gpu1 -> gpu3 goes down; 7 MB go by gpu2, 5 us per link: the first slot is there
  // at 450 + 105 us, the last one has left gpu2 700 us later and arrives at 1260 us.
  const auto bytes = [](const Topology& net, const Timeline& found, const char* from, const char* to) {
    return found.link_bytes[link_between(net, from, to).value];
  };
  Topology net = two_relays(0us, 5us);
  Timeline found = one_message(net, NodeId{0}, NodeId{3}, {down(450us, link_between(net, "gpu1", "gpu3"))});
  CHECK(found.duration() == 1260us);
  CHECK(bytes(net, found, "gpu0", "gpu1") == 4'500'000_B);
  CHECK(bytes(net, found, "gpu1", "gpu3") == 3'500'000_B);
  CHECK(bytes(net, found, "gpu0", "gpu2") == 7'000'000_B);
  CHECK(bytes(net, found, "gpu2", "gpu3") == 7'000'000_B);
  // With 20 us per link by gpu1 and 50 us by gpu2, down at 410 us: the fourth slot is between gpu0 and gpu1, and lost;
  // two have left gpu1 (at 220 and 320 us), the third is 0.9 MB on its way. 8 MB from 410 us on: the first slot is at
  // gpu2 at 560 us, the last leaves it at 1360 us and arrives at 1410 us.
  net = two_relays(20us, 50us);
  found = one_message(net, NodeId{0}, NodeId{3}, {down(410us, link_between(net, "gpu1", "gpu3"))});
  CHECK(found.duration() == 1410us);
  CHECK(bytes(net, found, "gpu0", "gpu1") == 4'100'000_B);
  CHECK(bytes(net, found, "gpu1", "gpu3") == 2'900'000_B);
  CHECK(bytes(net, found, "gpu0", "gpu2") == 8'000'000_B);
  // At 420 us the third slot has just left, and the fourth just arrived: 7 MB again, from 420 us on.
  found = one_message(net, NodeId{0}, NodeId{3}, {down(420us, link_between(net, "gpu1", "gpu3"))});
  CHECK(found.duration() == 420us + 150us + 700us + 50us);
  CHECK(bytes(net, found, "gpu1", "gpu3") == 3'000'000_B);
  // At 100, 300 and 400 us a slot leaves gpu0 at that very instant, and is given up on its way to gpu1: what has left
  // gpu1 by then is none, 1 and 2 slots. The next ones arrive at gpu1 when the slots that count have arrived, or have
  // not.
  for (const auto& [at, kept] : {std::pair{100us, 0}, {300us, 1}, {400us, 2}}) {
    found = one_message(net, NodeId{0}, NodeId{3}, {down(at, link_between(net, "gpu1", "gpu3"))});
    CHECK(found.duration() == at + 150us + (10 - kept) * 100us + 50us);
    CHECK(found.transfers == 1);
  }
  // A first leg of 250 us, a second one of 1 us: at 450.5 us the slot that counts is between gpu1 and gpu3. It arrives
  // at 451 us; the third and the fourth, which do not count any more, reach gpu1 at 550 and 650 us.
  net = two_relays(250us, 300us, 1us);
  found = one_message(net, NodeId{0}, NodeId{3}, {down(450us + 500ns, link_between(net, "gpu1", "gpu3"))});
  CHECK(found.duration() == 450us + 500ns + 400us + 900us + 300us);
  net = two_relays(20us, 50us);
  // All past the first leg (1000 us): that it goes down does not matter. 1000 + 20 + 100 + 20 us.
  CHECK(one_message(net, NodeId{0}, NodeId{3}, {down(1000us, link_between(net, "gpu0", "gpu1"))}).duration() == 1140us);
  // Before anything has left gpu1: everything again.
  CHECK(one_message(net, NodeId{0}, NodeId{3}, {down(50us, link_between(net, "gpu0", "gpu1"))}).duration() ==
        50us + 150us + 1000us + 50us);
}

TEST_CASE("the time in which a message has no way is counted to the link that then sets its speed") {
  // 4 MB until 400 us, nothing until 900 us, 6 MB at 10 GB/s; then 2 us of latency.
  const Topology net = star(4, {.bandwidth = 10_GBps, .latency = 1us});
  const LinkId port = link_between(net, "switch0", "gpu1");
  const Timeline waited = one_message(net, NodeId{0}, NodeId{1}, {down(400us, port), restored(900us, port)});
  REQUIRE(waited.bottleneck);
  CHECK(waited.bottleneck->busy == 1500us);
  CHECK(waited.bottleneck->latency == 2us);
  // Down before it starts: the same.
  const Timeline began_without = one_message(net, NodeId{0}, NodeId{1}, {down(0us, port), restored(900us, port)});
  CHECK(began_without.bottleneck->busy == 1900us);
  CHECK(began_without.bottleneck->latency == 2us);
}

TEST_CASE("without another way a message waits for its link to be restored, and what waits for nothing is refused") {
  const Topology net = star(4, {.bandwidth = 10_GBps, .latency = 1us});
  const LinkId port = link_between(net, "switch0", "gpu1");
  // 4 MB until 400 us; 6 MB from 900 us on: 900 + 600 + 2 us.
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(400us, port), restored(900us, port)}).duration() == 1502us);
  // Given a bandwidth it is also up again: 6 MB at 2.5 GB/s.
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(400us, port), quarter(900us, port)}).duration() == 3302us);
  // It starts while its link is down.
  CHECK(one_message(net, NodeId{0}, NodeId{1}, {down(0us, port), restored(900us, port)}).duration() == 1902us);
  // Another link is restored, but not the one it needs: it is refused when that is clear.
  const LinkId other = link_between(net, "switch0", "gpu2");
  CHECK(complaint(net, direct_pairs(4, 10'000'000_B, false),
                  {down(0us, other), down(100us, other), restored(500us, link_between(net, "gpu3", "switch0"))}) ==
        "no path is left at 0 us for rank 0 (gpu0) -> rank 2 (gpu2): permanently down is switch0 -> gpu2\n  hint: "
        "restore the link, so that messages wait for it, or add another path to the topology");
  CHECK(complaint(net, ring_all_reduce(4, 40'000'000_B),
                  {down(2500us, port), restored(2700us, port), down(3000us, port)}) ==
        "no path is left at 3000 us for rank 0 (gpu0) -> rank 1 (gpu1): permanently down is switch0 -> gpu1\n  hint: "
        "restore the link, so that messages wait for it, or add another path to the topology");
  // Restored and down again at one instant: it was never up, and is refused then.
  CHECK(complaint(net, ring_all_reduce(4, 40'000'000_B),
                  {down(2500us, port), restored(2700us, port), down(2700us, port)}) ==
        "no path is left at 2700 us for rank 0 (gpu0) -> rank 1 (gpu1): permanently down is switch0 -> gpu1\n  hint: "
        "restore the link, so that messages wait for it, or add another path to the topology");
  // A switch of which all links are gone.
  std::vector<LinkChange> all;
  for (std::uint32_t l = 0; l < net.n_links(); ++l) all.push_back(down(100us, {l}));
  CHECK(complaint(net, direct_all_to_all(4, 40'000'000_B), all) ==
        "no path is left at 100 us for rank 0 (gpu0) -> rank 1 (gpu1), rank 0 (gpu0) -> rank 2 (gpu2), rank 0 (gpu0) "
        "-> rank 3 (gpu3) and 9 more: permanently down are gpu0 -> switch0, gpu1 -> switch0, gpu2 -> switch0 and 5 "
        "more\n  hint: restore the link, so that messages wait for it, or add another path to the topology");
  // Where nothing led there before, that is what is said.
  TopologyBuilder apart;
  apart.add_gpu("gpu0");
  apart.add_gpu("gpu1");
  apart.add_link(NodeId{0}, NodeId{1}, {.bandwidth = 1_GBps});
  CHECK(complaint(apart.build(), direct_pairs(2, 1_MiB, true), {down(0us, {0})})
            .starts_with("no path from gpu1 to gpu0"));
}

TEST_CASE("the packet model refuses links that go down") {
  const Topology net = two_ways(5_GBps);
  CHECK(complaint(net, direct_pairs(2, 1_MiB, false), {down(1us, {0})}, NetworkModel::packet) ==
        "links that go down cannot be combined with the network model packet\n  hint: packets cannot be removed from "
        "the buffers that they wait in: use the model fair");
}

TEST_CASE("a NIC whose cable is down is used no more, and messages cut for all NICs are cut for those that are left") {
  Machine machine;  // a GPU and four NICs on one PCIe switch; what is sent over a NIC is seen on its cable
  machine.devices = {{"pcie0", NodeKind::pcie_switch, {}, {}}, {"gpu0", NodeKind::gpu, {}, {}}};
  machine.cables.push_back({0, 1, {.bandwidth = 100_GBps}});
  for (std::uint32_t nic = 0; nic < 4; ++nic) {
    machine.devices.push_back({fmt::format("nic{}", nic), NodeKind::nic, LinkSpec{.bandwidth = 10_GBps}, {}});
    machine.cables.push_back({0, nic + 2, {.bandwidth = 100_GBps}});
  }
  const Topology net = build(
      Cluster{{{std::make_shared<const Machine>(machine), 2}}, StarFabric{{.bandwidth = 10_GBps, .latency = 1us}}, {}});
  const NodeId from = *net.find("node0.gpu0"), to = *net.find("node1.gpu0");
  const auto out_of = [&](int nic) { return link_between(net, fmt::format("node0.nic{}", nic), "leaf0"); };
  const auto used = [&](Transport::Nics nics, std::vector<LinkChange> changes) {
    RunOptions options{.disturbance = {.links = std::move(changes)}, .placement = {from, to}};
    options.plans.front().transport.nics = nics;
    const Timeline found = run(net, check(direct_pairs(2, 8'000'000_B, false)), options);
    std::vector<std::int64_t> kilobytes;
    for (int nic = 0; nic < 4; ++nic) kilobytes.push_back(found.link_bytes[out_of(nic).value].count / 1000);
    return kilobytes;
  };
  using Row = std::vector<std::int64_t>;
  CHECK(used(Transport::Nics::nearest, {}) == Row{8000, 0, 0, 0});
  CHECK(used(Transport::Nics::nearest, {down(0us, out_of(0))}) == Row{0, 8000, 0, 0});
  // A cable that is down toward the NIC does not keep it from sending.
  CHECK(used(Transport::Nics::nearest, {down(0us, link_between(net, "leaf0", "node0.nic0"))}) == Row{8000, 0, 0, 0});
  CHECK(used(Transport::Nics::all, {}) == Row{2000, 2000, 2000, 2000});
  // The receiver still has four, so there are four parts; the sender's three NICs take turns.
  CHECK(used(Transport::Nics::all, {down(0us, out_of(3))}) == Row{4000, 2000, 2000, 0});
  // In mid-run: 2 MB a NIC at 10 GB/s take 200 us. At 100 us 1 MB has left nic3; the other takes turns as well.
  CHECK(used(Transport::Nics::all, {down(100us, out_of(3))}) == Row{2500, 2250, 2250, 1000});
}

// Two leaves with four gpus each, three spines: whatever fails between them and comes back, what enters and leaves each
// device is what the schedule says.
TEST_CASE("with links that fail and come back at random no byte is lost and none arrives twice") {
  TopologyBuilder builder;
  for (int g = 0; g < 8; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  std::vector<NodeId> leaves, spines;
  for (int l = 0; l < 2; ++l) leaves.push_back(builder.add_node(fmt::format("leaf{}", l), NodeKind::network_switch));
  for (int s = 0; s < 3; ++s) spines.push_back(builder.add_node(fmt::format("spine{}", s), NodeKind::network_switch));
  for (std::uint32_t g = 0; g < 8; ++g)
    builder.add_cable(NodeId{g}, leaves[g / 4], {.bandwidth = 10_GBps, .latency = 1us});
  const auto first_uplink = static_cast<std::uint32_t>(builder.links().size());
  for (const NodeId leaf : leaves)
    for (const NodeId spine : spines) builder.add_cable(leaf, spine, {.bandwidth = 7_GBps, .latency = 2us});
  const Topology net = builder.build();

  int rerouted = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
    RunOptions options{.model = random() % 2 == 0 ? NetworkModel::fair : NetworkModel::ideal};
    options.routing.policy = std::array{Routing::Policy::fixed, Routing::Policy::ecmp, Routing::Policy::flow_spray,
                                        Routing::Policy::packet_spray}[random() % 4];
    const Bytes size{1 + below(3'000'000)};
    const Schedule schedule = random() % 2 == 0 ? direct_all_to_all(8, size) : ring_all_reduce(8, size);
    const CheckedSchedule checked = check(schedule);
    const Timeline plain = run(net, checked, options);
    for (std::int64_t n = 1 + below(6); n > 0; --n) {
      const LinkId link{first_uplink + static_cast<std::uint32_t>(below(net.n_links() - first_uplink))};
      const Picoseconds when{below(static_cast<std::uint64_t>(plain.duration().count()))};
      options.disturbance.links.push_back(random() % 4 == 0 ? quarter(when, link) : down(when, link));
      options.disturbance.links.push_back(restored(when + Picoseconds{below(300'000'000)}, link));
    }
    const Timeline found = run(net, checked, options);
    CHECK(found.transfers == plain.transfers);
    CHECK(found.bytes_sent == plain.bytes_sent);
    const auto through = [&](std::span<const LinkId> links, const Timeline& timeline) {
      std::int64_t sum = 0;
      for (const LinkId id : links) sum += timeline.link_bytes[id.value].count;
      return sum;
    };
    const bool spread = options.routing.policy == Routing::Policy::packet_spray;  // shares: rounded a link
    for (std::uint32_t n = 0; n < net.n_nodes(); ++n) {
      CAPTURE(net.node({n}).name);
      if (net.node({n}).kind == NodeKind::gpu) {
        CHECK(through(net.links_from({n}), found) == through(net.links_from({n}), plain));
        CHECK(through(net.links_to({n}), found) == through(net.links_to({n}), plain));
      } else {
        CHECK(std::abs(through(net.links_from({n}), found) - through(net.links_to({n}), found)) <= (spread ? 4 : 0));
      }
    }
    for (std::uint32_t l = first_uplink; l < net.n_links(); ++l)
      rerouted += found.link_bytes[l] != plain.link_bytes[l] ? 1 : 0;
    // A second run is the same: nothing depends on chance.
    if (seed % 50 == 0) CHECK(run(net, checked, options).fingerprint == found.fingerprint);
  }
  CHECK(rerouted > 1000);  // most of the cases touched something
}

}  // namespace disturbance_links_test
