// What 64 nodes on leaves and spines come to in time, against sums done by hand from the load of each cable.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/run/run.hpp"
#include "topologies/catalog.hpp"

namespace leaf_spine_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

// 64 nodes of one GPU and one NIC, 8 on a leaf. Every cable has 10 GB/s: a byte takes 100 ps. Leaf l holds ranks 8l to
// 8l + 7 and has 8, 4 or 2 cables up (1:1, 2:1, 4:1), one to each spine; tables send what is for NIC d over spine
// d mod (number of spines), D-mod-k.
//
//   a = 0.3 + 0.1 + 0.1 + 0.3 us     GPU - NIC - leaf - NIC - GPU
//   A = a + 2 * 0.15 us              GPU - NIC - leaf - spine - leaf - NIC - GPU
constexpr int n = 64;
const LinkSpec pcie{.bandwidth = 20_GBps, .latency = Picoseconds{300'000}, .kind = LinkKind::pcie};
const LinkSpec port{.bandwidth = 10_GBps, .latency = Picoseconds{0}, .kind = LinkKind::infiniband};
const LinkSpec cable{.bandwidth = 10_GBps, .latency = Picoseconds{100'000}, .kind = LinkKind::infiniband};
const LinkSpec uplink{.bandwidth = 10_GBps, .latency = Picoseconds{150'000}, .kind = LinkKind::infiniband};
constexpr Picoseconds a{800'000}, A{1'100'000};
constexpr Bytes chunk_size{100'000};
constexpr Picoseconds c{chunk_size.count * 100};  // a chunk on one cable: 10 us

Topology built(const Fabric& fabric) {
  Machine machine;
  machine.devices.push_back({"gpu0", NodeKind::gpu, {}, {}});
  machine.devices.push_back({"nic0", NodeKind::nic, port, {}});
  machine.cables.push_back({0, 1, pcie});
  return build(Cluster{{{std::make_shared<const Machine>(std::move(machine)), n}}, fabric, {}});
}

Topology leaves(int oversubscription, const LinkSpec& up = uplink) {
  return built(LeafSpine{.nodes_per_leaf = 8, .oversubscription = oversubscription, .link = cable, .uplink = up});
}

/// A buffer of 64 chunks.
Timeline timed(const Topology& topology, const char* algorithm, CollectiveOp op) {
  const CollectiveRequest request{.op = op, .ranks = n, .bytes = {n * chunk_size.count}};
  return run(topology, check(find_algorithm(algorithm)->make(request, {})));
}
Picoseconds ring(const Topology& t) { return timed(t, "ring", CollectiveOp::all_reduce).duration(); }
Picoseconds halving_doubling(const Topology& t) {
  return timed(t, "halving_doubling", CollectiveOp::all_reduce).duration();
}
Picoseconds all_to_all(const Topology& t) { return timed(t, "direct", CollectiveOp::all_to_all).duration(); }

}  // namespace

// Each step rank r sends a chunk to r + 1. Of a leaf's 8 ranks only the last sends to another leaf, and only the first
// receives from one: one flow on one cable up (that to spine 0, as 8(l + 1) is even) and on one down, however few there
// are. Nothing is shared; ranks 8l + 7 are never ahead, as their own sends take A + c: 2(n - 1) steps of that.
TEST_CASE("64 nodes: a ring in the order of ranks does not notice that leaves are oversubscribed") {
  for (const int oversubscription : {1, 2, 4}) {
    CAPTURE(oversubscription);
    CHECK(ring(leaves(oversubscription)) == 2 * (n - 1) * (A + c));
  }
}

// Partners are 32, 16, 8, 4, 2, 1 ranks away and exchange 32, 16, 8, 4, 2, 1 chunks; then the same way back. Up to 4
// away they share a leaf: a + chunks c. From 8 on all 8 ranks of a leaf send to the 8 of one other leaf, whose numbers
// are consecutive: 8 flows on k cables up, 8/k on each, and as many on each cable down. A flow has k/8 of a cable:
//   2 (3a + (4 + 2 + 1) c + 3A + (32 + 16 + 8) c 8/k)      8/k = 1, 2, 4 for 1:1, 2:1, 4:1
TEST_CASE("64 nodes: halving-doubling pays for oversubscription in three of its six distances") {
  for (const int oversubscription : {1, 2, 4}) {
    CAPTURE(oversubscription);
    CHECK(halving_doubling(leaves(oversubscription)) == 2 * (3 * a + 7 * c + 3 * A + 56 * oversubscription * c));
  }
}

// All at once, every rank sends a chunk to each of the 63 others, 56 of them on other leaves. A leaf's 8 x 56 chunks
// for others are spread over its k cables up, 448/k on each, and 448/k come down each: 56, 112, 224. A NIC sends and
// receives 63. At 1:1 the NICs bind: all flows have 1/63 of one and end together, the longer way last: A + 63 c. Else
// the cables to the spines bind all flows between leaves alike: A + 112 c, A + 224 c; flows within a leaf, which have
// what these leave of the NICs, end before.
TEST_CASE("64 nodes: an all-to-all at once takes what its busiest cable carries") {
  CHECK(all_to_all(leaves(1)) == A + 63 * c);
  CHECK(all_to_all(leaves(2)) == A + 112 * c);
  CHECK(all_to_all(leaves(4)) == A + 224 * c);
  // The cable that binds, and what it carried, are those of the sum.
  const Topology t = leaves(4);
  const Timeline line = timed(t, "direct", CollectiveOp::all_to_all);
  REQUIRE(line.bottleneck.has_value());
  const LinkId binding = t.resource(line.bottleneck->resource).link;
  const std::string name = t.link_name(binding);
  CAPTURE(name);
  CHECK(name.find("leaf") != std::string::npos);
  CHECK(name.find("spine") != std::string::npos);
  CHECK(line.link_bytes[binding.value].count == 224 * chunk_size.count);
}

// Cables to the spines of no length leave the leaves as good as one switch, to the picosecond.
TEST_CASE("64 nodes: a leaf-spine at 1:1 is as fast as a star") {
  LinkSpec no_length = uplink;
  no_length.latency = Picoseconds{0};
  const Topology flat = leaves(1, no_length), star = built(StarFabric{cable});
  CHECK(ring(flat) == ring(star));
  CHECK(halving_doubling(flat) == halving_doubling(star));
  CHECK(all_to_all(flat) == all_to_all(star));
  // Nor is the star's time out of the blue: the textbook's form of the ring.
  CHECK(ring(star) == 2 * (n - 1) * (a + c));
}

}  // namespace leaf_spine_test
