// What the data paths of machines come to in time: small cases worked out by hand.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/run/run.hpp"
#include "tests/support/names.hpp"
#include "tests/support/sketch.hpp"

namespace paths_run_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
const LinkSpec pcie{.bandwidth = 15_GBps, .kind = LinkKind::pcie};
const LinkSpec cable{.bandwidth = 10_GBps, .kind = LinkKind::infiniband};

/// What `pairs` takes: rank r sends `bytes` to rank r + n/2, all at once.
Timeline pairs(const Topology& topology, int ranks, Bytes bytes, RunOptions options, bool both_ways = false) {
  const Algorithm* direct = find_algorithm("direct");
  REQUIRE(direct != nullptr);
  const CollectiveRequest request{.op = CollectiveOp::pairs, .ranks = ranks, .bytes = bytes, .both_ways = both_ways};
  return run(topology, check(direct->make(request, {})), options);
}

Picoseconds ms(double count) { return Picoseconds{static_cast<std::int64_t>(count * 1e9)}; }

/// Two hosts, each with gpus and NICs below one PCIe switch; all NICs on one switch.
Topology two_hosts(int gpus, const std::vector<LinkSpec>& nics) {
  Sketch s;
  s.node("s");
  for (const std::uint32_t host : {0U, 1U}) {
    const std::string h = host == 0 ? "" : "'";
    s.node("p" + h, host);
    for (int g = 0; g < gpus; ++g) {
      s.node("g" + std::to_string(g) + h, host);
      s.cable("g" + std::to_string(g) + h, "p" + h, pcie);
    }
    for (std::size_t n = 0; n < nics.size(); ++n) {
      s.node("n" + std::to_string(n) + h, host);
      s.cable("n" + std::to_string(n) + h, "p" + h, pcie);
      s.cable("n" + std::to_string(n) + h, "s", nics[n]);
    }
  }
  return s.builder.build();
}
}  // namespace

TEST_CASE("one GPU with four NICs moves at the rate of its own PCIe link") {
  // One NIC: 10 GB/s. Four at once: 15 GB/s, of the GPU's link. 150 MB: 15 ms, 10 ms.
  const Topology t = two_hosts(1, {cable, cable, cable, cable});
  const Timeline one = pairs(t, 2, {150'000'000}, {});
  CHECK(one.duration() == ms(15));
  const Timeline four = pairs(t, 2, {150'000'000}, {.plans = {{.transport = {.nics = Transport::Nics::all}}}});
  CHECK(four.duration() == ms(10));
  CHECK(four.transfers == 1);
  CHECK(t.link_name(t.resource(four.bottleneck->resource).link).starts_with("g0 -> p"));
  // 37.5 MB by each NIC; every byte crosses the GPU's link once.
  for (std::uint32_t l = 0; l < t.n_links(); ++l) {
    const std::string name = t.link_name({l});
    if (name == "n2 -> s" || name == "s -> n3'") CHECK(four.link_bytes[l] == Bytes{37'500'000});
    if (name == "g0 -> p" || name == "p' -> g0'") CHECK(four.link_bytes[l] == Bytes{150'000'000});
  }
}

TEST_CASE("a message cut over unequal NICs waits for its slowest part") {
  // 10 GB/s and 2 GB/s: halves of 60 MB. The slow half takes 30 ms; one fast NIC alone takes 12 ms.
  const Topology t = two_hosts(1, {cable, {.bandwidth = 2_GBps}});
  CHECK(pairs(t, 2, {120'000'000}, {.plans = {{.transport = {.nics = Transport::Nics::all}}}}).duration() == ms(30));
  CHECK(pairs(t, 2, {120'000'000}, {}).duration() == ms(12));
}

TEST_CASE("a size that the NICs do not divide is cut into parts that differ by a byte, and none is lost") {
  const Topology t = two_hosts(2, {cable, cable, cable});
  const Timeline line = pairs(t, 4, {1'000'001}, {.plans = {{.transport = {.nics = Transport::Nics::all}}}});
  CHECK(line.bytes_sent == Bytes{2'000'002});
  std::vector<std::int64_t> carried;
  for (std::uint32_t l = 0; l < t.n_links(); ++l)
    if (t.link_name({l}).ends_with(" -> s")) carried.push_back(line.link_bytes[l].count);
  CHECK(carried == std::vector<std::int64_t>{666'668, 666'668, 666'666, 0, 0, 0});
  // Empty messages are delivered as well.
  CHECK(pairs(t, 4, {0}, {.plans = {{.transport = {.nics = Transport::Nics::all}}}}).transfers == 2);
}

TEST_CASE("without peer access both copies of a message share the host's memory, which is half duplex") {
  // g0 - c - g1, memory m at c with 20 GB/s for both directions together; PCIe 15 GB/s. In pieces of 1 MB, data is
  // written and read at 10 GB/s each once both run: 100 MB in 10 ms, and as the first piece is written and the last one
  // read alone, at 15 GB/s, 1 MB more at 15.
  Sketch s;
  for (const char* name : {"g0", "g1", "c", "m"}) s.node(name, 0);
  s.cable("g0", "c", pcie);
  s.cable("g1", "c", pcie);
  s.cable("m", "c", {.bandwidth = 20_GBps, .kind = LinkKind::memory, .duplex = Duplex::half});
  s.builder.describe_host(0, {.peer_access = PathType::nvl});
  const Topology t = s.builder.build();
  const Timeline line = pairs(t, 2, {100'000'000}, {.plans = {{.transport = {.staging = {{1'000'000}, 8}}}}});
  // 99 pieces overlap at 10 GB/s (9.9 ms), one is alone at each end at 15 GB/s (1/15 ms each).
  CHECK(line.duration().count() == doctest::Approx(9.9e9 + 2e9 / 15).epsilon(1e-9));
  CHECK(t.resource_name(line.bottleneck->resource) == "m <-> c");
  const Timeline refused = pairs(t, 2, {100'000'000}, {.plans = {{.transport = {.p2p_level = PathType::loc}}}});
  CHECK(refused.duration() > ms(100.0 / 15));
}

TEST_CASE("four flows over four spines: on one spine by a bad table a quarter of the rate, sprayed the whole") {
  Sketch s = two_leaves(4, pcie, cable);
  s.builder.break_ties(Ties::by_destination);
  const Topology t = s.builder.build();
  const Bytes bytes{100'000'000};  // 10 ms at 10 GB/s
  CHECK(pairs(t, 8, bytes, {}).duration() == ms(10));
  const Routing bad{.table = {{at(t, "leaf0"), no_node, at(t, "spine0")}}};
  CHECK(pairs(t, 8, bytes, {.routing = bad}).duration() == ms(40));
  const Timeline sprayed = pairs(t, 8, bytes, {.routing = {.policy = Routing::Policy::packet_spray}}, true);
  CHECK(sprayed.duration() == ms(10));
  for (std::uint32_t l = 0; l < t.n_links(); ++l)
    if (t.link_name({l}).starts_with("spine")) CHECK(sprayed.link_bytes[l] == bytes);  // 4 flows, a quarter of each
}

TEST_CASE("in turns, the messages of a ring over two leaves use every spine alike") {
  // g0..g3 on leaf0, g4..g7 on leaf1: one flow crosses each way at a time, 14 messages each way over 2 spines: 7 by
  // each.
  const Topology t = two_leaves(2, pcie, cable).builder.build();
  const Algorithm* ring = find_algorithm("ring");
  const CheckedSchedule checked = check(ring->make({.ranks = 8, .bytes = 8_MiB}, {}));
  const Timeline line = run(t, checked, {.routing = {.policy = Routing::Policy::flow_spray}});
  for (std::uint32_t l = 0; l < t.n_links(); ++l)
    if (t.link_name({l}).starts_with("leaf0 -> spine") || t.link_name({l}).starts_with("leaf1 -> spine"))
      CHECK(line.link_bytes[l] == 7_MiB);
}

TEST_CASE("with ideal, packets that leave by two ports of their own draw on both") {
  // g0 has 10 GB/s to s0 and to s1; g1 is beyond both, g2 beyond s1 only. From g0 100 MB to g1, spread, and 100 MB to
  // g2: at rates a and b, s1's port carries a/2 + b, so both move at 20/3 GB/s: 15 ms.
  Sketch s;
  for (const char* name : {"g0", "g1", "g2", "s0", "s1"}) s.node(name);
  for (const char* hub : {"s0", "s1"}) {
    s.cable("g0", hub, {.bandwidth = 10_GBps});
    s.cable("g1", hub, {.bandwidth = 100_GBps});
  }
  s.cable("g2", "s1", {.bandwidth = 100_GBps});
  const Topology t = s.builder.build();
  for (const NetworkModel model : {NetworkModel::fair, NetworkModel::ideal}) {
    CAPTURE(to_string(model));
    const RunOptions options{.model = model,
                             .routing = {.policy = Routing::Policy::packet_spray},
                             .placement = {at(t, "g0"), at(t, "g0"), at(t, "g1"), at(t, "g2")}};
    CHECK(pairs(t, 4, {100'000'000}, options).duration() == ms(15));
  }
}

}  // namespace paths_run_test
