#include <doctest/doctest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/names.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/machine.hpp"

namespace topologies_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1_ps, .source = "test"};
using Cables = std::vector<std::string>;

Graph pair_graph() { return {{{"g0", NodeKind::gpu}, {"g1", NodeKind::gpu}}, {{"g0", "g1", cable}}}; }
}  // namespace

TEST_CASE("a star has a port a rank, then the extra ports, then the switch") {
  const Topology t = build(Star{3, cable, 2});
  CHECK(cables_of(t) ==
        Cables{"gpu0 - switch0", "gpu1 - switch0", "gpu2 - switch0", "server0 - switch0", "server1 - switch0"});
  CHECK(t.ranks().size() == 3);
  REQUIRE(t.helpers().size() == 2);
  CHECK(t.node(t.helpers()[1]).name == "server1");
  CHECK(t.node(t.helpers()[1]).kind == NodeKind::cpu);
  CHECK(t.link(LinkId{0}).bandwidth == 10_GBps);
  CHECK(t.source(t.link(LinkId{0})) == "test");
}

TEST_CASE("a ring is closed by one cable, of two ranks is one cable, of one is none") {
  CHECK(cables_of(build(Ring{4, cable})) == Cables{"gpu0 - gpu1", "gpu1 - gpu2", "gpu2 - gpu3", "gpu3 - gpu0"});
  CHECK(cables_of(build(Ring{2, cable})) == Cables{"gpu0 - gpu1"});
  CHECK(cables_of(build(Ring{1, cable})).empty());
}

TEST_CASE("a full mesh has a cable between every two ranks") {
  CHECK(cables_of(build(FullMesh{4, cable})) ==
        Cables{"gpu0 - gpu1", "gpu0 - gpu2", "gpu0 - gpu3", "gpu1 - gpu2", "gpu1 - gpu3", "gpu2 - gpu3"});
  CHECK(cables_of(build(FullMesh{1, cable})).empty());
}

TEST_CASE("a torus is closed in each dimension and counts fastest in the last") {
  // {2,3,1}: rank = 3 x + y. The rows y = 0, 1, 2 are rings of 3; the pairs x = 0, 1 have one cable each; the last
  // dimension has none.
  //     0 - 1 - 2 - (0)
  //     |   |   |
  //     3 - 4 - 5 - (3)
  const Topology t = build(Torus{{2, 3, 1}, cable});
  CHECK(cables_of(t) == Cables{"gpu0 - gpu3", "gpu0 - gpu1", "gpu1 - gpu4", "gpu1 - gpu2", "gpu2 - gpu5", "gpu2 - gpu0",
                               "gpu3 - gpu4", "gpu4 - gpu5", "gpu5 - gpu3"});
  CHECK(cables_of(build(Torus{{4}, cable})) == cables_of(build(Ring{4, cable})));
  // Every rank of a 3 x 4 x 5 torus has two neighbors a dimension.
  const Topology deep = build(Torus{{3, 4, 5}, cable});
  CHECK(deep.n_links() == 2 * 3 * 60);
  for (const NodeId rank : deep.ranks()) CHECK(deep.links_from(rank).size() == 6);
}

TEST_CASE("a graph is built as listed; its gpus are the ranks") {
  const LinkSpec bus{.bandwidth = 2_GBps, .duplex = Duplex::half};
  const Topology t =
      build(Graph{{{"s", NodeKind::network_switch}, {"g1", NodeKind::gpu}, {"g0", NodeKind::gpu}},
                  {{"g1", "s", cable}, {"g1", "s", cable}, {"s", "g0", bus}, {"g0", "g1", cable, true}}});
  CHECK(names_of(t, t.links_from(at(t, "g1"))) == Cables{"g1 -> s", "g1 -> s"});
  CHECK(names_of(t, t.links_to(at(t, "g1"))) == Cables{"s -> g1", "s -> g1", "g0 -> g1"});
  CHECK(t.node(t.ranks()[0]).name == "g1");
  CHECK(t.node(t.ranks()[1]).name == "g0");
  CHECK(t.n_resources() == 6);  // 2 + 2 + 1 (half duplex) + 1 (one way)
}

TEST_CASE("a wrong graph is refused at the place of the mistake") {
  Graph graph = pair_graph();
  SUBCASE("no gpu") {
    graph.nodes = {{"s", NodeKind::network_switch}};
    CHECK_THROWS_WITH_AS(
        build(graph),
        "/nodes: expected at least one node of kind \"gpu\", found none\n  hint: the ranks are the nodes of kind gpu",
        InputError);
  }
  SUBCASE("an unknown node") {
    graph.nodes[1].name = "gpu_b";
    graph.links[0] = {"g0", "gpub", cable};
    CHECK_THROWS_WITH_AS(build(graph),
                         "/links/0/to: expected the name of a node, found \"gpub\"\n  hint: did you mean \"gpu_b\"?",
                         InputError);
  }
  SUBCASE("two nodes of one name") {
    graph.nodes.push_back({"g0", NodeKind::nic});
    CHECK_THROWS_WITH_AS(build(graph), "/nodes/2/name: two nodes are named \"g0\"; the first is /nodes/0", InputError);
  }
  SUBCASE("a link to itself") {
    graph.links.push_back({"g1", "g1", cable});
    CHECK_THROWS_WITH_AS(build(graph), "/links/1: a link from \"g1\" to itself", InputError);
  }
  SUBCASE("no bandwidth") {
    graph.links[0].link.bandwidth = {};
    CHECK_THROWS_WITH_AS(build(graph), "/links/0/bandwidth: expected a rate of at least 1 B/s, found 0 B/s",
                         InputError);
  }
  SUBCASE("one way and half duplex") {
    graph.links[0].one_way = true;
    graph.links[0].link.duplex = Duplex::half;
    CHECK_THROWS_WITH_AS(build(graph),
                         "/links/0/duplex: a one-way link has no reverse direction to share its bandwidth with\n  "
                         "hint: remove \"duplex\", or set \"one_way\" to false",
                         InputError);
  }
}

TEST_CASE("impossible counts are refused, before anything is built") {
  CHECK_THROWS_WITH_AS(build(Star{0, cable}), "/ranks: expected a count of at least 1, found 0", InputError);
  CHECK_THROWS_WITH_AS(build(Ring{-2, cable}), "/ranks: expected a count of at least 1, found -2", InputError);
  CHECK_THROWS_WITH_AS(build(Torus{{2, 0}, cable}), "/dimensions/1: expected a count of at least 1, found 0",
                       InputError);
  CHECK_THROWS_WITH_AS(build(Torus{{}, cable}), "/dimensions: expected a list of one or more sizes, found an empty one",
                       InputError);
  CHECK_THROWS_WITH_AS(build(Ring{2, {}}), "/link/bandwidth: expected a rate of at least 1 B/s, found 0 B/s",
                       InputError);
  CHECK_THROWS_WITH_AS(build(cluster_of("dgx-1v", 0, StarFabric{cable})),
                       "/nodes: expected a count of at least 1, found 0", InputError);
  CHECK_THROWS_WITH_AS(cluster_of("dgx-1vv"),
                       "expected the name of a node preset, found \"dgx-1vv\"\n  hint: did you mean \"dgx-1v\"?",
                       InputError);
  CHECK_THROWS_AS(build(FullMesh{100000, cable}), InputError);  // 5 * 10^9 cables
}

TEST_CASE("the number of ranks is known without building") {
  const std::vector<TopologySpec> specs = {Star{5, cable, 2},  Ring{3, cable},
                                           FullMesh{4, cable}, Torus{{2, 3, 2}, cable},
                                           pair_graph(),       cluster_of("dgx-1v", 3, StarFabric{cable})};
  for (const TopologySpec& spec : specs) {
    CAPTURE(spec.index());
    CHECK(n_ranks(spec) == build(spec).ranks().size());
  }
  CHECK(topology_catalog().size() == std::variant_size_v<TopologySpec> + 2);  // nccl_xml, nvidia_smi: clusters
}

TEST_CASE("a cluster repeats its preset and cables every NIC to the leaf") {
  const Topology t = build(cluster_of("dgx-1v", 2, StarFabric{cable}));
  CHECK(t.ranks().size() == 16);
  CHECK(t.node(t.ranks()[9]).name == "node1.gpu1");
  CHECK(t.node(t.ranks()[9]).host == 1U);
  CHECK_FALSE(t.node(at(t, "leaf0")).host);
  CHECK(names_of(t, t.links_to(at(t, "leaf0"))) ==
        Cables{"node0.nic0 -> leaf0", "node0.nic1 -> leaf0", "node0.nic2 -> leaf0", "node0.nic3 -> leaf0",
               "node1.nic0 -> leaf0", "node1.nic1 -> leaf0", "node1.nic2 -> leaf0", "node1.nic3 -> leaf0"});
  const Topology one = build(cluster_of("dgx-1v", 1));  // no fabric is needed, so none is asked for
  CHECK_FALSE(one.find("leaf0"));
  CHECK(one.n_nodes() == node_preset("dgx-1v").devices.size());
}

TEST_CASE("the slower of NIC and cable binds, and their times add up") {
  // The port of dgx-1v: 0.96 * 12.5 GB/s = 12 GB/s and 0.5 us.
  struct Row {
    Bandwidth cable, joined;
  };
  for (const Row row : {Row{10_GBps, 10_GBps}, Row{100_Gbps, 12_GBps}, Row{12_GBps, 12_GBps}}) {
    const Topology t = build(cluster_of("dgx-1v", 2, StarFabric{{.bandwidth = row.cable, .latency = 250'000_ps}}));
    const Link& link = t.link(t.links_to(at(t, "leaf0")).front());
    CHECK(link.bandwidth == row.joined);
    CHECK(link.latency == 750'000_ps);
    CHECK(link.kind == LinkKind::infiniband);
  }
}

TEST_CASE("the mesh of dgx-1v is what nvidia-smi topo -m prints on one") {
  // Row: double links (NV2), single links (NV1), the NIC on its switch (PIX), the other NIC of its socket (PHB).
  struct Row {
    std::set<int> nv2, nv1;
    int pix, phb;
  };
  const std::array<Row, 8> rows = {{{{3, 4}, {1, 2}, 0, 1},
                                    {{2, 5}, {0, 3}, 0, 1},
                                    {{1, 3}, {0, 6}, 1, 0},
                                    {{0, 2}, {1, 7}, 1, 0},
                                    {{0, 7}, {5, 6}, 2, 3},
                                    {{1, 6}, {4, 7}, 2, 3},
                                    {{5, 7}, {2, 4}, 3, 2},
                                    {{4, 6}, {3, 5}, 3, 2}}};
  const Topology t = build(cluster_of("dgx-1v", 1));
  Routes routes(t, {});
  for (int g = 0; g < 8; ++g) {
    CAPTURE(g);
    const NodeId gpu = at(t, "node0.gpu" + std::to_string(g));
    std::set<int> nv1, nv2;
    for (const LinkId id : t.links_from(gpu)) {
      const Link& link = t.link(id);
      if (link.kind != LinkKind::nvlink) continue;
      const int other = t.node(link.to).name.back() - '0';
      (link.bandwidth == Bandwidth{48'480'000'000} ? nv2 : nv1).insert(other);
      CHECK((link.bandwidth == Bandwidth{48'480'000'000} || link.bandwidth == Bandwidth{24'240'000'000}));
    }
    const Row& row = rows[static_cast<std::size_t>(g)];
    CHECK(nv2 == row.nv2);
    CHECK(nv1 == row.nv1);
    for (int n = 0; n < 4; ++n) {
      const PathType expected = n == row.pix ? PathType::pix : n == row.phb ? PathType::phb : PathType::sys;
      CHECK(routes.find(gpu, at(t, "node0.nic" + std::to_string(n))).type == expected);
    }
  }
}

TEST_CASE("the links of dgx-1v have the rates of their sources") {
  const Topology t = build(cluster_of("dgx-1v", 1));
  std::map<LinkKind, std::set<std::int64_t>> rates;
  for (const Link& link : t.links()) rates[link.kind].insert(link.bandwidth.bytes_per_second);
  CHECK(rates[LinkKind::nvlink] == std::set<std::int64_t>{24'240'000'000, 48'480'000'000});  // 0.9696 * 25, * 2
  CHECK(rates[LinkKind::pcie] == std::set<std::int64_t>{12'000'000'000});
  CHECK(rates[LinkKind::socket] == std::set<std::int64_t>{6'000'000'000});
  CHECK(rates[LinkKind::memory] == std::set<std::int64_t>{51'192'000'000});  // 0.75 * 4 * 2133 MT/s * 8 B
  const auto memory = t.links_from(at(t, "node0.mem0"));
  CHECK(t.resource_name(t.link(memory.front()).resource) == "node0.mem0 <-> node0.cpu0");
}

}  // namespace topologies_test
