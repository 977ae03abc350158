// What GPUDirect RDMA saves on the links of real machines: each byte counted, worked out by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/run/run.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "topologies/catalog.hpp"

namespace gpudirect_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
/// Two nodes on a star whose cables are faster than any adapter, as in scenarios/examples/machines/gpudirect-all.json.
/// NICs read GPUs as fast as their links allow (Host::gpudirect_cost is in tests/sim/topology/paths_test.cpp), so that
/// what a link carries is what is sent.
Topology two_nodes(const std::string& preset) {
  Cluster cluster;
  Machine machine = node_preset(preset);
  machine.host.gpudirect_cost = 1;
  cluster.parts.push_back({std::make_shared<const Machine>(std::move(machine)), 2});
  cluster.fabric = StarFabric{{.bandwidth = 1600_Gbps, .latency = 150'000_ps}};
  return build(cluster);
}

/// Every GPU of node0 sends `bytes` to its peer on node1, or each pair exchanges them.
Timeline all_pairs(const Topology& topology, Bytes bytes, bool both_ways, bool gpudirect) {
  const Algorithm* direct = find_algorithm("direct");
  REQUIRE(direct != nullptr);
  const int n = static_cast<int>(topology.ranks().size());
  const CollectiveRequest request{.op = CollectiveOp::pairs, .ranks = n, .bytes = bytes, .both_ways = both_ways};
  Transport transport;
  if (!gpudirect) transport.gdr_level = PathType::loc;
  return run(topology, check(direct->make(request, {})), {.plans = {{.transport = transport}}});
}

/// What each of the links "nodeN.FROM* -> nodeN.TO*" carried, in their order, in units of p: "4p 4p 0p 0p".
std::string carried(const Topology& topology, const Timeline& line, Bytes p, const std::string& ends) {
  const std::size_t arrow = ends.find(" > ");
  std::string text;
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link({l});
    if (!topology.node(link.from).name.starts_with(ends.substr(0, arrow)) ||
        !topology.node(link.to).name.starts_with(ends.substr(arrow + 3)))
      continue;
    CHECK(line.link_bytes[l].count % p.count == 0);
    text += (text.empty() ? "" : " ") + std::to_string(line.link_bytes[l].count / p.count) + "p";
  }
  return text;
}
}  // namespace

// A switch of DGX-1V has two GPUs, a NIC and one uplink of 12 GB/s each way; every GPU sends p and receives p.
//
//   with GPUDirect     GPU -> switch -> NIC; NIC -> switch -> GPU          uplink: nothing
//   without, sending   GPU -> switch -> CPU -> memory                      uplink: p up for each GPU
//                      memory -> CPU -> switch -> NIC                      uplink: p down for each GPU
//   without, receiving NIC -> switch -> CPU -> memory                      uplink: p up for each GPU
//                      memory -> CPU -> switch -> GPU                      uplink: p down for each GPU
//
// One way, an uplink carries 2p up and 2p down at either end, as much as the NIC: it costs nothing but the filling.
// Both ways at once 4p up and 4p down, twice what the NIC carries each way at the same 12 GB/s: half the speed.
TEST_CASE("on DGX-1V the double copy puts four messages on each uplink where GPUDirect puts none") {
  const Topology t = two_nodes("dgx-1v");
  const Bytes p = 64_MiB;
  for (const bool both_ways : {false, true}) {
    CAPTURE(both_ways);
    const Timeline direct = all_pairs(t, p, both_ways, true), staged = all_pairs(t, p, both_ways, false);
    for (const std::string n : {"node0.", "node1."}) {
      CAPTURE(n);
      const char* const all_uplinks = both_ways ? "4p 4p 4p 4p" : "2p 2p 2p 2p";
      for (const std::string& ends : {n + "pcie > " + n + "cpu", n + "cpu > " + n + "pcie"}) {
        CAPTURE(ends);
        CHECK(carried(t, direct, p, ends) == "0p 0p 0p 0p");
        CHECK(carried(t, staged, p, ends) == all_uplinks);
      }
      // The adapters carry the same: two messages out, and in.
      for (const Timeline* line : {&direct, &staged}) {
        const auto if_so = [&](bool sends) { return both_ways || sends ? "2p 2p 2p 2p" : "0p 0p 0p 0p"; };
        CHECK(carried(t, *line, p, n + "pcie > " + n + "nic") == if_so(n == "node0."));
        CHECK(carried(t, *line, p, n + "nic > " + n + "pcie") == if_so(n == "node1."));
      }
      // Each memory serves the four GPUs of its socket: a write and a read for each message that passes.
      CHECK(carried(t, staged, p, n + "mem > " + n + "cpu") == (both_ways ? "8p 8p" : "4p 4p"));
      CHECK(carried(t, staged, p, n + "cpu > " + n + "mem") == (both_ways ? "8p 8p" : "4p 4p"));
      CHECK(carried(t, direct, p, n + "cpu > " + n + "mem") == "0p 0p");
    }
  }
}

TEST_CASE("on DGX-1V the double copy halves what passes between nodes both ways, and costs only the filling one way") {
  const Topology t = two_nodes("dgx-1v");
  const Bytes p = 64_MiB;
  // 2p over a NIC's PCIe link of 12 GB/s; 4p over the uplink.
  const Picoseconds nic = transfer_time({2 * p.count}, 12_GBps), uplink = transfer_time({4 * p.count}, 12_GBps);
  // An uplink is busy both ways once a first piece is up, and until the last one is down. At either end its two GPUs
  // have a message each that waits so: four pieces of 512 KiB alone on the uplink. Latencies are less than 10 us.
  const Picoseconds latencies = 10'000'000_ps, filling = transfer_time({4 * 512 * 1024}, 12_GBps) + latencies;
  const auto takes = [&](bool both_ways, bool gpudirect) { return all_pairs(t, p, both_ways, gpudirect).duration(); };
  for (const bool both_ways : {false, true}) {
    CAPTURE(both_ways);
    CHECK(takes(both_ways, true) >= nic);
    CHECK(takes(both_ways, true) <= nic + latencies);
    CHECK(takes(both_ways, false) >= (both_ways ? uplink : nic));
    CHECK(takes(both_ways, false) <= (both_ways ? uplink : nic) + filling);
  }
  const Timeline staged = all_pairs(t, p, true, false);
  REQUIRE(staged.bottleneck);
  // An uplink, in either direction: both carry 4p.
  const Link& link = t.link(t.resource(staged.bottleneck->resource).link);
  CHECK(std::set{t.node(link.from).kind, t.node(link.to).kind} == std::set{NodeKind::pcie_switch, NodeKind::cpu});
}

TEST_CASE("without GPUDirect every byte between nodes passes host memory four times, whatever the preset") {
  // Written and read at the sender's, written and read at the receiver's. With GPUDirect only what is too far for it.
  // And the scenarios ask about every such preset.
  int n_presets = 0;
  const std::string scenarios = test::source_dir() + "/scenarios/examples/machines/";
  const std::string pair = test::read_file(scenarios + "gpudirect-pair.json");
  const std::string everyone = test::read_file(scenarios + "gpudirect-all.json");
  for (const PresetFile& file : preset_files()) {
    CAPTURE(file.name);
    const Machine preset = node_preset(std::string(file.name));
    if (std::none_of(preset.devices.begin(), preset.devices.end(),
                     [](const Machine::Device& device) { return device.port.has_value(); }))
      continue;
    ++n_presets;
    const std::string quoted = '"' + std::string(file.name) + '"';
    CHECK(pair.find(quoted) != std::string::npos);
    CHECK(everyone.find(quoted) != std::string::npos);
    const Topology t = two_nodes(std::string(file.name));
    const Timeline direct = all_pairs(t, 4_MiB, true, true), staged = all_pairs(t, 4_MiB, true, false);
    const auto through_memory = [&](const Timeline& line) {
      std::int64_t sum = 0;
      for (std::uint32_t l = 0; l < t.n_links(); ++l)
        if (t.link({l}).kind == LinkKind::memory) sum += line.link_bytes[l].count;
      return sum;
    };
    CHECK(direct.bytes_sent == staged.bytes_sent);
    CHECK(through_memory(staged) == 4 * staged.bytes_sent.count);
    CHECK(through_memory(direct) <= through_memory(staged));
    if (file.name == "dgx-1v" || file.name == "hgx-h100") CHECK(through_memory(direct) == 0);
  }
  CHECK(n_presets == 40);
}

}  // namespace gpudirect_test
