// Rings for channels: that they fit onto the links together, that no more do, and what they are worth.
#include "topologies/search/channel_rings.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/names.hpp"
#include "tests/support/sketch.hpp"
#include "tests/support/tiny.hpp"
#include "topologies/catalog.hpp"

namespace channel_rings_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

const Transport by_channel{.nics = Transport::Nics::per_channel};
/// Cables that are wider than any NIC.
const StarFabric wide{{.bandwidth = 1600_Gbps, .latency = 1'000'000_ps}};

Topology nodes_of(const std::string& preset, int nodes) { return build(cluster_of(preset, nodes, wide)); }

ChannelRings rings_of(const Topology& topology) { return channel_rings(topology, topology.ranks(), by_channel); }

/// What is wrong with the rings: empty if each visits all ranks once and together they take no more of any resource
/// than it has. Adds up over paths by itself, link by link.
/// As NCCL counts, which does not know what NICs' reads of GPUs cost.
std::string complaint(const Topology& topology, const ChannelRings& rings, Transport transport = by_channel) {
  transport.gpudirect_costs = false;
  Routes routes(topology, transport);
  std::map<std::uint32_t, double> used;
  for (std::size_t k = 0; k < rings.orders.size(); ++k) {
    const std::vector<Actor>& order = rings.orders[k];
    std::vector<Actor> sorted = order, all(topology.ranks().size());
    std::sort(sorted.begin(), sorted.end());
    std::iota(all.begin(), all.end(), 0);
    if (sorted != all) return fmt::format("ring {} does not visit every rank once", k);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const auto node = [&](std::size_t at) {
        return topology.ranks()[static_cast<std::size_t>(order[at % order.size()])];
      };
      const Path path = routes.find(node(i), node(i + 1), static_cast<std::uint32_t>(k));
      for (const Leg& leg : path.legs)
        for (std::size_t l = 0; l < leg.links.size(); ++l)
          used[topology.link(leg.links[l]).resource.value] +=
              leg.share(l) * static_cast<double>(rings.each.bytes_per_second);
    }
  }
  for (const auto& [resource, bytes] : used)
    if (bytes > static_cast<double>(topology.resource({resource}).bandwidth.bytes_per_second) * (1 + 1e-6))
      return "overbooked: " + topology.resource_name({resource});
  return rings.orders.empty() ? "no ring" : "";
}

/// GPUs without hosts, and cables of so many GB/s between i and j > i; 0: none.
Topology meshed(const std::vector<std::vector<int>>& widths) {
  TopologyBuilder builder;
  for (std::size_t g = 0; g < widths.size(); ++g) builder.add_gpu(fmt::format("gpu{}", g));
  for (std::uint32_t i = 0; i < widths.size(); ++i)
    for (std::uint32_t j = i + 1; j < widths.size(); ++j)
      if (widths[i][j] > 0) builder.add_cable(NodeId{i}, NodeId{j}, {.bandwidth = {widths[i][j] * 1'000'000'000LL}});
  return builder.build();
}

/// The most rings of 1 GB/s that fit onto a mesh of direct cables at once, by trying every set of tours.
int most_rings(std::vector<std::vector<int>>& left, const std::vector<std::vector<std::size_t>>& tours,
               std::size_t from) {
  int best = 0;
  for (std::size_t t = from; t < tours.size(); ++t) {
    const std::vector<std::size_t>& tour = tours[t];
    const auto hop = [&](std::size_t i) -> int& { return left[tour[i]][tour[(i + 1) % tour.size()]]; };
    bool fits = true;
    for (std::size_t i = 0; i < tour.size(); ++i) fits = fits && hop(i) > 0;
    if (!fits) continue;
    for (std::size_t i = 0; i < tour.size(); ++i) --hop(i);
    best = std::max(best, 1 + most_rings(left, tours, t));
    for (std::size_t i = 0; i < tour.size(); ++i) ++hop(i);
  }
  return best;
}

}  // namespace

TEST_CASE("known machines have the rings that NCCL finds on them, and one node's NICs a ring each") {
  struct Row {
    std::string preset;
    int nodes;
    std::size_t rings;
    double each;  // GB/s
  };
  // dgx-1v: six directions round the mesh of single NVLinks. Between nodes a ring a NIC, at the NIC's rate, but on
  // hgx-h100, where NVLink limits it: each ring crosses each GPU's NVLink once, in the node or to the GPU at the NIC.
  const Row rows[] = {{"dgx-1v", 1, 6, 24.24},  {"dgx-a100", 2, 8, 24},      {"dgx-1v", 2, 4, 12},
                      {"aws-p5", 2, 32, 11.75}, {"hgx-h100", 2, 8, 47.0025}, {"hgx-h100", 16, 8, 47.0025}};
  for (const Row& row : rows) {
    CAPTURE(row.preset);
    CAPTURE(row.nodes);
    const Topology topology = nodes_of(row.preset, row.nodes);
    const ChannelRings rings = rings_of(topology);
    CHECK(rings.orders.size() == row.rings);
    CHECK(static_cast<double>(rings.each.bytes_per_second) / 1e9 == doctest::Approx(row.each).epsilon(1e-4));
    CHECK(complaint(topology, rings) == "");
  }
}

TEST_CASE("on all presets, one node and three, rings visit every GPU once and overbook nothing") {
  int n = 0;
  for (const PresetFile& file : preset_files()) {
    const std::string preset(file.name);
    const Machine machine = node_preset(preset);
    const bool has_nics = std::any_of(machine.devices.begin(), machine.devices.end(),
                                      [](const Machine::Device& device) { return device.port.has_value(); });
    for (const int nodes : {1, 3}) {
      if (nodes > 1 && !has_nics) continue;
      CAPTURE(preset);
      CAPTURE(nodes);
      const Topology topology = nodes_of(preset, nodes);
      if (topology.ranks().size() < 2) continue;
      CHECK(complaint(topology, rings_of(topology)) == "");
      ++n;
    }
  }
  CHECK(n > 45);  // 26 presets with NICs, twice but for those of one GPU, and two without
}

TEST_CASE("on a DGX A100 a ring leaves by its NIC directly from the GPU at the same switch, without PXN") {
  const Topology topology = nodes_of("dgx-a100", 2);
  Routes routes(topology, by_channel);
  const ChannelRings rings = rings_of(topology);
  for (std::size_t k = 0; k < rings.orders.size(); ++k) {
    const std::vector<Actor>& order = rings.orders[k];
    const Path path = routes.find(topology.ranks()[static_cast<std::size_t>(order[7])],
                                  topology.ranks()[static_cast<std::size_t>(order[8])], static_cast<std::uint32_t>(k));
    CHECK(path.out == PathType::pxb);
    CHECK(path.legs.size() == 1);
  }
}

TEST_CASE("on random meshes of 5 to 8 GPUs rings fit, and reach 98 % of the most by brute force") {
  // Greedy, as NCCL: an early ring may take the room of two later ones. The brute force has direct cables only; what
  // rings bring beyond that, by ways through other GPUs, does not count.
  for (const std::size_t n : {5U, 6U, 7U, 8U}) {
    CAPTURE(n);
    std::vector<std::vector<std::size_t>> tours;
    std::vector<std::size_t> tour(n);
    std::iota(tour.begin(), tour.end(), 0);
    do tours.push_back(tour);
    while (std::next_permutation(tour.begin() + 1, tour.end()));
    int found = 0, possible = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
      CAPTURE(seed);
      std::mt19937_64 random(seed);
      // Of 5 GPUs two thirds of the pairs have one cable or two; of more a pair in two has one, so that few tours fit
      // and all sets of them can be tried.
      std::vector<std::vector<int>> widths(n, std::vector<int>(n));
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i + 1; j < n; ++j)
          widths[i][j] = widths[j][i] = static_cast<int>(random() % (n == 5 ? 3 : 2));
      const Topology net = meshed(widths);
      std::vector<std::vector<std::size_t>> there;  // tours whose cables are there
      std::copy_if(tours.begin(), tours.end(), std::back_inserter(there), [&](const auto& each) {
        for (std::size_t i = 0; i < n; ++i)
          if (widths[each[i]][each[(i + 1) % n]] == 0) return false;
        return true;
      });
      const int most = most_rings(widths, there, 0);
      if (most == 0) continue;  // ways through other GPUs then count
      const ChannelRings rings = channel_rings(net, net.ranks(), {});
      CHECK(complaint(net, rings, {}) == "");
      const double sum =
          static_cast<double>(rings.each.bytes_per_second) * 1e-9 * static_cast<double>(rings.orders.size());
      found += std::min(most, static_cast<int>(sum + 0.5));
      possible += most;
    }
    CHECK(possible > 100);
    CHECK(found * 100 >= possible * 98);  // 300 of 302, then all
  }
}

TEST_CASE("a search that goes back gives the links back: each NIC of two meshes with few cables has its ring") {
  // Four GPUs, each with a NIC of 1 GB/s below a switch of its own. No more than four rings of 1 GB/s can leave a node;
  // the mesh lacks a cable and has little to spare, so that the first ways tried lead nowhere.
  Machine node{.name = "sparse"};
  const auto add = [&](const char* name, NodeKind kind) {
    for (int i = 0; i < 4; ++i) node.devices.push_back({fmt::format("{}{}", name, i), kind, {}, {}});
  };
  add("gpu", NodeKind::gpu);
  add("nic", NodeKind::nic);
  add("pcie", NodeKind::pcie_switch);
  for (std::uint32_t i = 0; i < 4; ++i) {
    node.devices[4 + i].port = LinkSpec{.bandwidth = 1_GBps, .kind = LinkKind::infiniband};
    node.cables.push_back({i, 8 + i, {.bandwidth = 4_GBps, .kind = LinkKind::pcie}});
    node.cables.push_back({4 + i, 8 + i, {.bandwidth = 4_GBps, .kind = LinkKind::pcie}});
  }
  const std::vector<std::array<std::uint32_t, 3>> mesh{{0, 2, 2}, {0, 3, 1}, {1, 2, 1}, {1, 3, 2}, {2, 3, 1}};  // GB/s
  for (const auto& each : mesh)
    node.cables.push_back({each[0], each[1], {.bandwidth = {each[2] * 1'000'000'000LL}, .kind = LinkKind::nvlink}});
  const Topology net =
      build(Cluster{.parts = {{std::make_shared<const Machine>(node), 2}}, .fabric = wide, .changes = {}});
  const ChannelRings rings = rings_of(net);
  CHECK(complaint(net, rings) == "");
  CHECK(rings.orders.size() == 4);
  CHECK(rings.each == 1_GBps);
}

TEST_CASE("k rings over k NICs take 2(N-1)(a + S/(N k b)), to the picosecond") {
  // 4 hosts of one GPU with 3 NICs of 10 GB/s behind a wide PCIe switch; 1 us from GPU to GPU. Channels share nothing.
  Sketch s;
  s.node("fabric");
  for (std::uint32_t h = 0; h < 4; ++h) {
    const std::string own = std::to_string(h);
    s.node("g" + own, h);
    s.node("p" + own, h);
    s.cable("g" + own, "p" + own, {.bandwidth = 100_GBps, .latency = 0_ps, .kind = LinkKind::pcie});
    for (const std::string i : {"a", "b", "c"}) {
      s.node("n" + own + i, h);
      s.cable("p" + own, "n" + own + i, {.bandwidth = 100_GBps, .latency = 0_ps, .kind = LinkKind::pcie});
      s.cable("n" + own + i, "fabric", {.bandwidth = 10_GBps, .latency = 500'000_ps, .kind = LinkKind::infiniband});
    }
  }
  const Topology topology = s.builder.build();
  const ChannelRings rings = rings_of(topology);
  CHECK(rings.orders.size() == 3);
  CollectiveRequest request{.ranks = 4, .bytes = 120'000'000_B, .channels = 3, .orders = rings.orders};
  const auto time = [&](Transport::Nics nics) {
    return run(topology, check(make_schedule(*find_algorithm("ring"), request, {})),
               {.plans = {{.transport = {.nics = nics}}}})
        .duration();
  };
  // 6 steps of 1 us + 120 MB / 4 / (3 x 10 GB/s) = 1 ms.
  CHECK(time(Transport::Nics::per_channel) == times(6, 1'001'000'000_ps));
  // Over one NIC the three share 10 GB/s.
  CHECK(time(Transport::Nics::nearest) == times(6, 3'001'000'000_ps));
}

TEST_CASE("channels of a p5 carry equal bytes over its 32 ports, and the same ring each") {
  const Topology topology = nodes_of("aws-p5", 2);
  const ChannelRings rings = rings_of(topology);
  CollectiveRequest request{.ranks = 16, .bytes = 32_MiB, .channels = 32, .orders = rings.orders};
  const Timeline timeline =
      run(topology, check(make_schedule(*find_algorithm("ring"), request, {})), {.plans = {{.transport = by_channel}}});
  std::map<std::int64_t, int> ports;
  for (std::uint32_t l = 0; l < topology.n_links(); ++l)
    if (topology.node(topology.link({l}).to).kind == NodeKind::network_switch) ++ports[timeline.link_bytes[l].count];
  // Each ring of 32 sends 1/32 of the buffer 2 (16-1)/16 times over each port of its two.
  CHECK(ports == std::map<std::int64_t, int>{{(32LL << 20) / 32 * 30 / 16, 64}});
}

TEST_CASE("rings of two p5 stay on NVLink and below the PCIe switches of their NICs: nothing crosses a socket") {
  const Topology topology = nodes_of("aws-p5", 2);
  const CollectiveRequest request{.ranks = 16, .bytes = 32_MiB, .channels = 32, .orders = rings_of(topology).orders};
  /// Most bytes on a link of the kind.
  const auto over = [&](const Transport& transport, const auto& is_one) {
    const Timeline timeline = run(topology, check(make_schedule(*find_algorithm("ring"), request, {})),
                                  {.plans = {{.transport = transport}}});
    Bytes most;
    for (std::uint32_t l = 0; l < topology.n_links(); ++l)
      if (is_one(topology.link({l}))) most = std::max(most, timeline.link_bytes[l]);
    return most;
  };
  const auto socket = [](const Link& link) { return link.kind == LinkKind::socket; };
  const auto cpu = [&](const Link& link) { return topology.node(link.to).kind == NodeKind::cpu; };
  CHECK(over(by_channel, socket) == 0_B);
  CHECK(over(by_channel, cpu) == 0_B);
  // What each message does that is cut for all NICs of the node.
  CHECK(over({.nics = Transport::Nics::all}, socket) > 0_B);
}

TEST_CASE("ranks that no ring joins are refused; one rank has a ring of itself") {
  const Topology parted = meshed({{0, 1, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0, 0}});
  CHECK_THROWS_WITH_AS(channel_rings(parted, parted.ranks(), {}),
                       "expected rings for the channels, found no closed path through all ranks with enough bandwidth",
                       InputError);
  const Topology one = star(1, {.bandwidth = 1_GBps});
  CHECK(channel_rings(one, one.ranks(), {}).orders == std::vector<std::vector<Actor>>{{0}});
}

}  // namespace channel_rings_test
