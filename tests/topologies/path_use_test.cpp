// Which links count for a bound, and how often bytes cross those of a host.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/topology/routes.hpp"
#include "topologies/bound/path_use.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/machine.hpp"

namespace path_use_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

Topology two_of(const std::string& preset) {
  return build(Cluster{{{std::make_shared<const Machine>(node_preset(preset)), 2}},
                       StarFabric{{.bandwidth = 25_GBps, .latency = Picoseconds{1000}}},
                       {}});
}

/// [link] whether some path between two ranks crosses it.
std::vector<bool> crossed(const Topology& topology, const Transport& transport) {
  std::vector<bool> links(topology.n_links());
  Routes routes(topology, transport);
  for (const NodeId from : topology.ranks())
    for (const NodeId to : topology.ranks())
      if (from != to)
        for (const Leg& leg : routes.find(from, to).legs)
          for (const LinkId link : leg.links) links[link.value] = true;
  return links;
}

}  // namespace

TEST_CASE("a link counts if a message crosses it, and those of point-to-point operations take other ways") {
  int differ = 0;
  for (const char* preset :
       {"dgx-1v", "abci-v", "dgx-a100", "hgx-h100", "hgx-h100-4nic", "aws-p4d", "azure-ndv2", "polaris"}) {
    CAPTURE(preset);
    const Topology topology = two_of(preset);
    const Transport collective{.point_to_point = false}, pairs{.point_to_point = true};
    CHECK(path_use(topology, topology.ranks(), collective, {}).links == crossed(topology, collective));
    CHECK(path_use(topology, topology.ranks(), pairs, {}).links == crossed(topology, pairs));
    differ += crossed(topology, collective) == crossed(topology, pairs) ? 0 : 1;
  }
  CHECK(differ > 0);
}

TEST_CASE("where a policy chooses among ways over GPUs that relay, all links count") {
  // gpu5 and gpu1 of a ring of six: two hops over gpu0. Tables take these, 2 cables of two directions; ECMP may take
  // others elsewhere, and its ways cannot be listed as those of packets that are spread, which no GPU relays.
  const Topology topology = build(Ring{6, {.bandwidth = 10_GBps, .latency = Picoseconds{1000}}});
  const std::vector<NodeId> two{topology.ranks()[5], topology.ranks()[1]};
  const PathUse fixed = path_use(topology, two, {}, {});
  CHECK(fixed.all_pairs);
  CHECK(std::count(fixed.links.begin(), fixed.links.end(), true) == 4);
  for (const Routing::Policy policy : {Routing::Policy::ecmp, Routing::Policy::flow_spray}) {
    const PathUse use = path_use(topology, two, {}, {.policy = policy});
    CHECK_FALSE(use.all_pairs);
    CHECK(std::count(use.links.begin(), use.links.end(), true) == 12);
  }
}

TEST_CASE("where the channels of a GPU take turns among NICs, the NICs of all channels count") {
  // A GH200 has four NICs for its one GPU: channel k takes NIC k modulo 4. Each message by itself takes one of them.
  const Topology topology = two_of("gh200-one");
  const auto cables = [&](Transport::Nics nics) {
    const PathUse use = path_use(topology, topology.ranks(), {.nics = nics}, {});
    int n = 0;
    for (std::uint32_t l = 0; l < topology.n_links(); ++l)
      if (use.links[l] && topology.node(topology.link({l}).to).kind == NodeKind::network_switch) ++n;
    return n;
  };
  CHECK(cables(Transport::Nics::nearest) == 2);
  CHECK(cables(Transport::Nics::per_channel) == 8);
  CHECK(cables(Transport::Nics::all) == 8);
}

TEST_CASE("links of a host count the crossings of bytes that rest in host memory") {
  // Without GPUDirect a byte that leaves a DGX-1V goes from its GPU over PCIe into host memory, and from there to the
  // NIC: it crosses the links from PCIe switch to CPU once, those back once, and memory once in each direction.
  const Topology topology = two_of("dgx-1v");
  const auto gates = path_use(topology, topology.ranks(), {.gdr_level = PathType::loc}, {}).host_links;
  const auto named = [&](const std::string& name) {
    const auto found =
        std::find_if(gates.begin(), gates.end(), [&](const HostLinks& gate) { return gate.name == name; });
    REQUIRE_MESSAGE(found != gates.end(), name);
    return *found;
  };
  const HostLinks up = named("node0.pcie* -> node0.cpu*"), down = named("node0.cpu* -> node0.pcie*");
  CHECK(up.resources.size() == 4);
  for (const HostLinks& gate : {up, down}) {
    CHECK(gate.in == Fraction{1, 1});
    CHECK(gate.out == Fraction{1, 1});
  }
  // With it, bytes go from GPU to NIC through their PCIe switch, and never to the CPU.
  for (const HostLinks& gate : path_use(topology, topology.ranks(), {}, {}).host_links)
    CHECK(gate.name.find(".cpu") == std::string::npos);
}

}  // namespace path_use_test
