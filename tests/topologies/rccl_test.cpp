// RCCL's choice, rings and costs, held against its formula by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/rccl/rccl_library.hpp"
#include "topologies/rccl/rccl_machine.hpp"

namespace rccl_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using nccl::TunerAlgorithm;
using nccl::TunerProtocol;

namespace {

const std::vector<std::string> eight{"gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"};

Machine mi300x() { return *cluster_of("mi300x").parts.front().machine; }

rccl::KnownMachine known(int nodes, const Machine& machine = mi300x()) {
  return rccl::known_machine(machine, eight, nodes, 400_Gbps);
}

nccl::LibraryPlan plan(CollectiveOp op, Bytes bytes, int nodes = 1, const rccl::Settings& settings = {}) {
  const rccl::KnownMachine machine = known(nodes);
  return rccl::library_plan(op, bytes, machine.tuner, settings, static_cast<int>(machine.rings.channels.size()))
      .value();
}

std::string choice(CollectiveOp op, Bytes bytes, int nodes = 1, const rccl::Settings& settings = {}) {
  const nccl::LibraryPlan found = plan(op, bytes, nodes, settings);
  return std::string(to_string(found.algorithm)) + ' ' + std::string(to_string(found.protocol));
}

double tuner_us(TunerAlgorithm algorithm, TunerProtocol protocol, Bytes bytes, int nodes) {
  const nccl::TunerMachine machine = known(nodes).tuner;
  for (const nccl::TunerChoice& each : rccl::tuner_choices(CollectiveOp::all_reduce, machine))
    if (each.algorithm == algorithm && each.protocol == protocol) return rccl::tuner_time_us(each, bytes, machine);
  return -1;
}

/// How often each ring's way goes from one GPU to another; a ring also goes from its last to its first.
std::map<std::pair<std::string, std::string>, int> uses_of(const nccl::SearchGraph& rings, bool closed) {
  std::map<std::pair<std::string, std::string>, int> uses;
  for (const nccl::SearchGraph::Channel& ring : rings.channels)
    for (std::size_t i = 0; i + (closed ? 0 : 1) < ring.gpus.size(); ++i)
      ++uses[{ring.gpus[i], ring.gpus[(i + 1) % ring.gpus.size()]}];
  return uses;
}

const rccl::Settings no_msccl{.algorithms = {}, .protocols = {}, .msccl = false};

}  // namespace

TEST_CASE("on one node 14 rings take each of the 56 ways of the mesh twice") {
  const rccl::KnownMachine machine = known(1);
  CHECK(machine.rings.channels.size() == 14);
  const auto uses = uses_of(machine.rings, true);
  CHECK(uses.size() == 56);  // 8 * 7: all of them
  for (const auto& each : uses) {
    CAPTURE(each.first.first);
    CAPTURE(each.first.second);
    CHECK(each.second == 2);  // 14 rings of 8 steps are 112, over 56 ways
  }
  CHECK(machine.tuner.ring.count == 56);  // four blocks for each ring
  CHECK(machine.tuner.ring.count * machine.tuner.ring.inside == doctest::Approx(7 * 48));
  CHECK_FALSE(machine.rings.turned);
}

TEST_CASE("between nodes 8 rings take each way of the mesh once, and enter and leave by each NIC once") {
  const rccl::KnownMachine machine = known(2);
  CHECK(machine.rings.channels.size() == 8);
  const auto uses = uses_of(machine.rings, false);  // from the last GPU it goes to another node
  CHECK(uses.size() == 56);
  for (const auto& [way, n] : uses) CHECK(n == 1);
  std::map<std::string, int> enter, leave;
  for (const nccl::SearchGraph::Channel& ring : machine.rings.channels) {
    ++enter[ring.enters.value()];
    ++leave[ring.leaves.value()];
    CHECK(ring.enters->substr(3) == ring.gpus.front().substr(3));  // nicN is at gpuN
    CHECK(ring.leaves->substr(3) == ring.gpus.back().substr(3));
  }
  CHECK(enter.size() == 8);
  CHECK(leave.size() == 8);
  CHECK(machine.tuner.ring.count == 64);
  CHECK(machine.rings.turned);        // every second node backwards
  CHECK_FALSE(machine.trees.turned);  // trees are parsed without
}

TEST_CASE("every second node is crossed backwards by rings, and not by trees") {
  Cluster two = cluster_of("mi300x");
  two.parts.front().nodes = 2;
  two.fabric = StarFabric{{.bandwidth = 400_Gbps}};
  const Topology topology = build(two);
  std::vector<NodeId> ranks;
  for (const char* node : {"node0.", "node1."})
    for (const std::string& gpu : eight) ranks.push_back(topology.find(node + gpu).value());
  const rccl::KnownMachine machine = known(2);
  const auto ring = nccl::rings_of(machine.rings, topology, ranks, "", "2.21.5")[1];
  CHECK(ring == std::vector<Actor>{1, 0, 2, 4, 3, 5, 7, 6, 14, 15, 13, 11, 12, 10, 8, 9});
  const auto tree = nccl::rings_of(machine.trees, topology, ranks, "", "2.21.5")[1];
  CHECK(tree == std::vector<Actor>{1, 0, 2, 4, 3, 5, 7, 6, 9, 8, 10, 12, 11, 13, 15, 14});
}

TEST_CASE("one node: the tuner's times are its constants") {
  // Ring LL: 12 + 14 * 0.8 us, and 336 GB/s * 0.08 * 8/14 = 15.36 GB/s. Tree LL: 12 + 2 * 7 * 0.9, and 336 * 0.06 / 2 =
  // 10.08 GB/s times a correction. Ring Simple: 17 + 14 * 2.1, and 336 * 8/14 = 192 GB/s.
  CHECK(tuner_us(TunerAlgorithm::ring, TunerProtocol::ll, 15360_B, 1) == doctest::Approx(23.2 + 1));
  CHECK(tuner_us(TunerAlgorithm::ring, TunerProtocol::simple, 192'000'000_B, 1) == doctest::Approx(46.4 + 1000));
  // 8 KiB is 64 B * 2^7, whose correction is 1; 512 B, 2^3, has 0.1.
  CHECK(tuner_us(TunerAlgorithm::tree, TunerProtocol::ll, 8192_B, 1) == doctest::Approx(24.6 + 8.192 / 10.08));
  CHECK(tuner_us(TunerAlgorithm::tree, TunerProtocol::ll, 512_B, 1) == doctest::Approx(24.6 + 0.512 / 1.008));
  CHECK(tuner_us(TunerAlgorithm::tree, TunerProtocol::simple, 1_MiB, 1) == -1);  // not on one node of gfx94x
}

TEST_CASE("two nodes: the tuner's times are its constants, rings with a correction by size") {
  // Tree LL: 12 + 2 * (7 * 0.9 + 10.5). Tree Simple: 17 + 2 * (7 * 2.3 + 25), 336 * 0.11 / 2 = 18.48 GB/s.
  CHECK(tuner_us(TunerAlgorithm::tree, TunerProtocol::ll, 4096_B, 2) == doctest::Approx(45.6 + 4.096 / 10.08));
  CHECK(tuner_us(TunerAlgorithm::tree, TunerProtocol::simple, 256_MiB, 2) ==
        doctest::Approx(99.2 + 268435.456 / 18.48));
  // Ring: 30 steps, 4 of them between nodes. LL: 12 + 26 * 2 (posting, AMD's CPUs) + 4 * 9.5, 26.88 * 16/30 = 14.336
  // GB/s, times 1 at 128 KiB (2^11). Simple: 17 + 26 * 6 + 4 * 320, 179.2 GB/s, times 0.8 at 512 MiB (2^23).
  CHECK(tuner_us(TunerAlgorithm::ring, TunerProtocol::ll, 128_KiB, 2) == doctest::Approx(102 + 131.072 / 14.336));
  CHECK(tuner_us(TunerAlgorithm::ring, TunerProtocol::simple, 512_MiB, 2) ==
        doctest::Approx(1453 + 536870.912 / (179.2 * 0.8)));
  Machine intel = mi300x();
  intel.host.peer_access = PathType::pxb;
  const nccl::TunerMachine other = known(2, intel).tuner;  // posting takes half as long
  CHECK(rccl::tuner_choices(CollectiveOp::all_reduce, other)[2].latency_us == doctest::Approx(12 + 26 * 1 + 4 * 9.5));
}

TEST_CASE("one node: all_reduce is MSCCL's from 1 KiB to 16 MiB, the tuner's below and above") {
  constexpr CollectiveOp op = CollectiveOp::all_reduce;
  CHECK(choice(op, 8_B) == "Ring LL");
  CHECK(choice(op, 512_B) == "Ring LL");  // 128 elements are no multiple of 256 chunks
  CHECK(choice(op, 1_KiB) == "MSCCL LL");
  CHECK(plan(op, 64_KiB).blocks == 4);
  CHECK(plan(op, 128_KiB).blocks == 8);
  CHECK(choice(op, 511_KiB) ==
        "Ring Simple");  // 130816 elements are no multiple of 512: 46.4 + 2.7 us by Simple, 23.2 + 34.1
  CHECK(choice(op, 510_KiB) == "MSCCL LL");
  CHECK(choice(op, 512_KiB) == "MSCCL Simple");
  CHECK(choice(op, 16_MiB) == "MSCCL Simple");
  CHECK(choice(op, 32_MiB) == "Ring Simple");
  // Without MSCCL: 23.2 + S/15360 = 46.4 + S/192000 at 387 kB.
  CHECK(choice(op, 387'000_B, 1, no_msccl) == "Ring LL");
  CHECK(choice(op, 388'000_B, 1, no_msccl) == "Ring Simple");
}

TEST_CASE("two nodes: trees to 256 MiB, then rings, and no MSCCL") {
  constexpr CollectiveOp op = CollectiveOp::all_reduce;
  CHECK(choice(op, 8_B, 2) == "Tree LL");
  CHECK(choice(op, 2_MiB, 2) == "Tree LL");  // 45.6 + 208.1 us; Tree Simple 99.2 + 113.5 / 0.7
  CHECK(choice(op, 4_MiB, 2) == "Tree Simple");
  CHECK(choice(op, 256_MiB, 2) == "Tree Simple");
  CHECK(choice(op, 512_MiB, 2) == "Ring Simple");
  CHECK(plan(op, 512_MiB, 2).blocks == 64);
  CHECK(plan(op, 512_MiB, 2).channels == 8);  // a ring each
}

TEST_CASE("other operations: rings, and all_to_all by MSCCL or by sends to all") {
  // all_gather: LL 12 + 7 * 0.8 and 26.88 * 8/7, Simple 17 + 7 * 2.1 and 336 * 8/7 GB/s: equal at 471 kB.
  CHECK(choice(CollectiveOp::all_gather, 470'000_B) == "Ring LL");
  CHECK(choice(CollectiveOp::reduce_scatter, 472'000_B) == "Ring Simple");
  // broadcast: 12.8 us and 26.88 * 1.65, 19.1 us and 336 GB/s: equal at 322 kB.
  CHECK(choice(CollectiveOp::broadcast, 321'000_B) == "Ring LL");
  CHECK(choice(CollectiveOp::reduce, 323'000_B) == "Ring Simple");
  CHECK(choice(CollectiveOp::all_to_all, 64_KiB) == "MSCCL LL");
  CHECK(choice(CollectiveOp::all_to_all, 1_MiB) == "MSCCL Simple");
  CHECK(plan(CollectiveOp::all_to_all, 1_MiB).blocks == 32);
  CHECK(choice(CollectiveOp::all_to_all, 64_MiB) == "Ring Simple");  // sends; MSCCL ends at 43 MiB
  CHECK(plan(CollectiveOp::all_to_all, 64_MiB).launched == 8 * 7);
  CHECK(choice(CollectiveOp::all_to_all, 64_KiB, 1, no_msccl) == "Ring LL");
  for (const CollectiveOp op : {CollectiveOp::send_recv, CollectiveOp::gather, CollectiveOp::scatter})
    CHECK_FALSE(rccl::is_modeled(op, 1));
  CHECK_FALSE(rccl::is_modeled(CollectiveOp::all_to_all, 2));
}

TEST_CASE("a block is worth its threads' least share") {
  // 256 threads of 8 B for each of eight ranks in a ring of LL: 16 KiB.
  CHECK(plan(CollectiveOp::all_gather, 16_KiB).blocks == 1);
  CHECK(plan(CollectiveOp::all_gather, 63_KiB).blocks == 3);
  CHECK(plan(CollectiveOp::all_gather, 1_GiB).blocks == 56);
  CHECK(plan(CollectiveOp::all_gather, 1_GiB).channels == 14);
}

TEST_CASE("what users force holds, and rings stay where nothing is left") {
  const auto forced = [](std::vector<TunerAlgorithm> algorithms, std::vector<TunerProtocol> protocols) {
    return rccl::Settings{std::move(algorithms), std::move(protocols), false};
  };
  CHECK(choice(CollectiveOp::all_reduce, 1_GiB, 2, forced({TunerAlgorithm::tree}, {})) == "Tree Simple");
  CHECK(choice(CollectiveOp::all_reduce, 1_GiB, 1, forced({}, {TunerProtocol::ll})) == "Ring LL");
  CHECK(choice(CollectiveOp::all_gather, 1_GiB, 1, forced({TunerAlgorithm::tree}, {})) == "Ring Simple");
  CHECK(choice(CollectiveOp::all_reduce, 1_GiB, 1, forced({}, {TunerProtocol::ll128})) == "Ring Simple");
}

TEST_CASE("costs are the tuner's times without the link's latency, and the slowest link's share") {
  const auto costs = [](CollectiveOp op, Bytes bytes, Bytes chunk = 1_KiB) {
    return rccl::library_costs(plan(op, bytes), op, chunk, 600ns);
  };
  CHECK(costs(CollectiveOp::all_reduce, 512_B).launch == 12us);
  CHECK(costs(CollectiveOp::all_reduce, 512_B).protocol.nvlink == 200ns);  // 0.8 us with the link
  CHECK(costs(CollectiveOp::all_reduce, 512_B).protocol.slot == 32_KiB);   // with flags
  CHECK(costs(CollectiveOp::all_reduce, 1_GiB).launch == 17us);
  CHECK(costs(CollectiveOp::all_reduce, 1_GiB).protocol.nvlink == 1500ns);
  CHECK(costs(CollectiveOp::all_reduce, 1_GiB).nvlink * 48 == doctest::Approx(45.1));
  CHECK(costs(CollectiveOp::all_reduce, 1_GiB).reduce.bytes_per_second == 0);
  CHECK(costs(CollectiveOp::all_reduce, 1_MiB).reduce == 60_GBps);  // MSCCL's
  CHECK(costs(CollectiveOp::all_to_all, 1_MiB).reduce.bytes_per_second == 0);
  // Between nodes NCCL's: 11.3 us, and up to 24 more as chunks grow to 128 KiB.
  CHECK(costs(CollectiveOp::all_reduce, 1_GiB, 64_KiB).protocol.network == 23300ns);
  // 2 nodes of 8: depth 8. 4 MiB in 64 blocks of 64 KiB are halved to 32 KiB.
  CHECK(rccl::tree_chunk(plan(CollectiveOp::all_reduce, 4_MiB, 2), 4_MiB, known(2).tuner) == 32_KiB);
  CHECK(rccl::tree_chunk(plan(CollectiveOp::all_reduce, 1_KiB, 2), 1_KiB, known(2).tuner) == 16_KiB);
}

TEST_CASE("machines whose rings are not known are refused, with what to do") {
  const auto refused = [](const Machine& machine, int nodes = 1, std::vector<std::string> gpus = eight) {
    return test::complaint([&] { rccl::known_machine(machine, gpus, nodes, 400_Gbps); });
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(refused(*cluster_of("hgx-h100").parts.front().machine),
      "expected AMD GPUs for RCCL, found NVIDIA GPUs in hgx-h100");
  has(refused(mi300x(), 1, {"gpu0", "gpu1"}), "expected all 8 GPUs of each node for RCCL, found 2 of mi300x");
  has(refused(mi300x(), 3), "expected one node or an even number of nodes for RCCL, found 3");
  Machine other = mi300x();
  for (Machine::Device& device : other.devices)
    if (device.kind == NodeKind::gpu) device.attributes["gcn"] = "gfx90a:sramecc+:xnack-";
  has(refused(other), "expected gfx942 GPUs (MI300X, MI325X) for RCCL, found gfx90a in mi300x");
  for (Machine::Device& device : other.devices)
    if (device.kind == NodeKind::gpu) device.attributes["gcn"] = "gfx942:sramecc+:xnack-";
  CHECK(refused(other).empty());
  for (Machine::Device& device : other.devices) device.attributes.clear();
  has(refused(other), "expected GPUs with a known architecture, found none in mi300x");
  Machine thin = mi300x();
  const auto link = std::find_if(thin.cables.begin(), thin.cables.end(),
                                 [](const auto& cable) { return cable.link.kind == LinkKind::xgmi; });
  thin.cables.erase(link);
  has(refused(thin), "expected eight GPUs with an xGMI link between every two");
  Machine idle = mi300x();
  for (Machine::Device& device : idle.devices)
    if (device.name == "nic3") device.idle = true;
  has(refused(idle, 2), "expected 8 NICs for RCCL on several nodes, one for each GPU, found 7 in mi300x");
  CHECK(refused(idle).empty());  // one node needs none
  CHECK_NOTHROW(rccl::require_modeled("2.21.5"));
  for (const char* version : {"2.20.5", "2.22.3", "2.30.7", "new"})
    CHECK_THROWS_WITH_AS(rccl::require_modeled(version), doctest::Contains("the only release of RCCL that is modeled"),
                         InputError);
}

}  // namespace rccl_test
