#include "topologies/fabrics/fabric.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/names.hpp"
#include "topologies/catalog.hpp"

namespace fabrics_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

const LinkSpec cable{.bandwidth = 10_GBps, .latency = 100_ps, .source = "test"};
const LinkSpec fast{.bandwidth = 40_GBps, .latency = 200_ps, .source = "test"};
const LinkSpec port{.bandwidth = 20_GBps, .latency = 5_ps, .kind = LinkKind::infiniband, .source = "port"};
using Texts = std::vector<std::string>;

/// GPU i and NIC i on PCIe switch i, the switches on one CPU: each GPU has a NIC, and a rail, of its own.
Cluster::Part machines(int nodes, std::uint32_t n_nics) {
  Machine machine;
  machine.devices.push_back({"cpu", NodeKind::cpu, {}, {}});
  for (std::uint32_t i = 0; i < n_nics; ++i) {
    const auto first = static_cast<std::uint32_t>(machine.devices.size());
    machine.devices.push_back({"gpu" + std::to_string(i), NodeKind::gpu, {}, {}});
    machine.devices.push_back({"pcie" + std::to_string(i), NodeKind::pcie_switch, {}, {}});
    machine.devices.push_back({"nic" + std::to_string(i), NodeKind::nic, port, {}});
    for (const std::uint32_t other : {0U, first, first + 2}) machine.cables.push_back({first + 1, other, cable});
  }
  return {std::make_shared<const Machine>(std::move(machine)), nodes};
}

Topology built(int nodes, std::uint32_t n_nics, const Fabric& fabric, std::vector<CableChange> changes = {}) {
  return build(Cluster{{machines(nodes, n_nics)}, fabric, std::move(changes)});
}

/// The fabric's cables, in the order in which they were added.
Texts fabric_of(const Topology& t) {
  Texts names;
  for (std::size_t l = 0; l < t.n_links(); l += 2) {
    const Link& link = t.links()[l];
    if (t.node(link.from).host && t.node(link.from).host == t.node(link.to).host) continue;
    names.push_back(t.node(link.from).name + " - " + t.node(link.to).name);
  }
  return names;
}

/// How many switches there are of each name without its numbers.
std::map<std::string, int> switches_of(const Topology& t) {
  std::map<std::string, int> count;
  for (const Node& node : t.nodes()) {
    if (node.kind != NodeKind::network_switch) continue;
    std::string name;
    for (const char c : node.name) name += c >= '0' && c <= '9' ? "" : std::string(1, c);
    ++count[name];
  }
  return count;
}

std::string complaint(int nodes, std::uint32_t n_nics, const Fabric& fabric, std::vector<CableChange> changes = {}) {
  return ringsim::test::complaint([&] { built(nodes, n_nics, fabric, std::move(changes)); });
}

/// True if every GPU reaches every GPU of other hosts.
bool joins_all(const Topology& t) {
  Routes routes(t, {});
  for (const NodeId from : t.ranks()) {
    for (const NodeId to : t.ranks()) {
      if (t.node(from).host == t.node(to).host) continue;
      if (routes.find(from, to).type != PathType::net) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("leaf-spine: racks on leaves, every leaf on every spine") {
  //   spine0   spine1       4 NICs a leaf, 2:1: 2 cables up
  //     |   X    |
  //   leaf0    leaf1
  //   0   1    2   3        nodes of 2 NICs
  const LeafSpine fabric{.nodes_per_leaf = 2, .oversubscription = 2, .link = cable};
  CHECK(fabric_of(built(4, 2, fabric)) == Texts{"node0.nic0 - leaf0", "node0.nic1 - leaf0", "node1.nic0 - leaf0",
                                                "node1.nic1 - leaf0", "node2.nic0 - leaf1", "node2.nic1 - leaf1",
                                                "node3.nic0 - leaf1", "node3.nic1 - leaf1", "leaf0 - spine0",
                                                "leaf0 - spine1", "leaf1 - spine0", "leaf1 - spine1"});
  // A last rack with one node of two has the same cables up.
  const Topology odd = built(5, 2, fabric);
  CHECK(switches_of(odd) == std::map<std::string, int>{{"leaf", 3}, {"spine", 2}});
  CHECK(names_of(odd, odd.links_from(at(odd, "leaf2"))) ==
        Texts{"leaf2 -> node4.nic0", "leaf2 -> node4.nic1", "leaf2 -> spine0", "leaf2 -> spine1"});
}

TEST_CASE("leaf-spine: cables up carry the oversubscribed share of the cables below, spread evenly over the spines") {
  struct Row {
    int nodes_per_leaf, oversubscription, asked;
    LinkSpec uplink;
    int spines;
    std::size_t per_spine;
  };
  // 4 NICs of 10 GB/s per node.
  for (const Row& row : {Row{2, 1, 0, cable, 8, 1},    // 80 GB/s by 10
                         Row{2, 2, 0, cable, 4, 1},    // 40 by 10
                         Row{2, 4, 0, cable, 2, 1},    // 20 by 10
                         Row{2, 2, 2, cable, 2, 2},    // 4 cables over 2 spines
                         Row{4, 1, 2, cable, 2, 8},    // 16 over 2
                         Row{4, 1, 0, fast, 4, 1},     // 160 by 40
                         Row{4, 2, 1, fast, 1, 2}}) {  // 80 by 40 over 1
    CAPTURE(row.nodes_per_leaf);
    CAPTURE(row.oversubscription);
    const Topology t = built(8, 4, LeafSpine{row.nodes_per_leaf, row.oversubscription, row.asked, cable, row.uplink});
    CHECK(switches_of(t) == std::map<std::string, int>{{"leaf", 8 / row.nodes_per_leaf}, {"spine", row.spines}});
    CHECK(t.links_from(at(t, "spine0")).size() == row.per_spine * static_cast<std::size_t>(8 / row.nodes_per_leaf));
    for (const LinkId id : t.links_from(at(t, "spine0"))) {
      CHECK(t.link(id).bandwidth == row.uplink.bandwidth);
      CHECK(t.link(id).latency == row.uplink.latency);
      CHECK(t.link(id).kind == LinkKind::infiniband);  // as the NICs' ports
    }
  }
}

TEST_CASE("leaf-spine: parallel cables to one spine stand together") {
  const Topology t = built(4, 2, LeafSpine{.nodes_per_leaf = 2, .spines = 2, .link = cable});
  CHECK(names_of(t, t.links_from(at(t, "leaf1")).subspan(4)) ==
        Texts{"leaf1 -> spine0", "leaf1 -> spine0", "leaf1 -> spine1", "leaf1 -> spine1"});
  CHECK(t.ties() == Ties::by_destination);
}

TEST_CASE("leaf-spine: what is not whole or not even is refused with what would be") {
  CHECK(complaint(8, 4, LeafSpine{.nodes_per_leaf = 4, .oversubscription = 3, .link = cable}) ==
        "/fabric/oversubscription: expected a whole number of uplinks per switch, found 16 NICs * 10 GB/s / (3 * 10 "
        "GB/s) = 5.33333\n  hint: possible: oversubscription 2 or 4; or nodes_per_leaf 3 or 6");
  CHECK(complaint(8, 4, LeafSpine{.nodes_per_leaf = 4, .oversubscription = 2, .spines = 3, .link = cable}) ==
        "/fabric/spines: expected a number of spines that divides the uplinks of a switch evenly, found 3 spines and "
        "16 NICs * 10 GB/s / (2 * 10 GB/s) = 8\n  hint: possible: spines 2 or 4; or nodes_per_leaf 3 or 6");
  // No ratio helps where one cable up is faster than all below.
  CHECK(complaint(8, 1, LeafSpine{.nodes_per_leaf = 2, .link = cable, .uplink = fast}) ==
        "/fabric/oversubscription: expected a whole number of uplinks per switch, found 2 NICs * 10 GB/s / (1 * 40 "
        "GB/s) = 0.5\n  hint: possible: nodes_per_leaf 4");
  CHECK(complaint(8, 1, LeafSpine{.link = cable}) == "/fabric/nodes_per_leaf: expected a count of at least 1, found 0");
  CHECK(complaint(8, 1, LeafSpine{.nodes_per_leaf = 1, .oversubscription = 0, .link = cable}) ==
        "/fabric/oversubscription: expected a count of at least 1, found 0");
  CHECK(complaint(8, 1, LeafSpine{.nodes_per_leaf = 1, .spines = -1, .link = cable}) ==
        "/fabric/spines: expected a count of 0 or more, found -1");
  CHECK(complaint(8, 1, LeafSpine{.nodes_per_leaf = 1, .link = cable, .uplink = LinkSpec{}}) ==
        "/fabric/uplink/bandwidth: expected a rate of at least 1 B/s, found 0 B/s");
}

TEST_CASE("fat tree: pods of edge and aggregation switches, joined by cores") {
  //   core0  core1  core2  core3      k = 4, m = 2; 5 NICs need two of the four pods
  //   agg0   agg1 | agg2   agg3       agg0 and agg2 on core0 and core1, agg1 and agg3 on core2 and core3
  //   edge0 edge1 | edge2 edge3
  //   0  1  2  3  | 4
  const Topology t = built(5, 1, FatTree{.k = 4, .link = cable});
  CHECK(fabric_of(t) == Texts{"node0.nic0 - edge0", "node1.nic0 - edge0", "node2.nic0 - edge1", "node3.nic0 - edge1",
                              "node4.nic0 - edge2", "edge0 - agg0",       "edge0 - agg1",       "edge1 - agg0",
                              "edge1 - agg1",       "edge2 - agg2",       "edge2 - agg3",       "edge3 - agg2",
                              "edge3 - agg3",       "agg0 - core0",       "agg0 - core1",       "agg1 - core2",
                              "agg1 - core3",       "agg2 - core0",       "agg2 - core1",       "agg3 - core2",
                              "agg3 - core3"});
  CHECK(t.ties() == Ties::by_destination);
  // The whole tree of the paper: k^3/4 = 16 NICs, every switch with k = 4 cables.
  const Topology whole = built(8, 2, FatTree{.k = 4, .link = cable});
  CHECK(switches_of(whole) == std::map<std::string, int>{{"edge", 8}, {"agg", 8}, {"core", 4}});
  for (std::uint32_t n = 0; n < whole.n_nodes(); ++n) {
    if (whole.node(NodeId{n}).kind == NodeKind::network_switch) CHECK(whole.links_from(NodeId{n}).size() == 4);
  }
}

TEST_CASE("fat tree: oversubscribed n:1, an edge switch has n times the NICs and the same cables up") {
  const Topology t = built(8, 3, FatTree{.k = 4, .oversubscription = 3, .link = cable});  // 6 NICs an edge switch
  CHECK(switches_of(t) == std::map<std::string, int>{{"edge", 4}, {"agg", 4}, {"core", 4}});
  CHECK(t.links_from(at(t, "edge0")).size() == 6 + 2);
  CHECK(t.links_from(at(t, "agg0")).size() == 4);
}

TEST_CASE("fat tree: what does not fit is refused with what does") {
  CHECK(complaint(9, 2, FatTree{.k = 4, .link = cable}) ==
        "/fabric/k: expected at most 16 NICs, k^3/4 = 16 for each of 1:1, found 18\n  hint: k = 6 holds 54");
  CHECK(complaint(9, 4, FatTree{.k = 4, .oversubscription = 2, .link = cable}) ==
        "/fabric/k: expected at most 32 NICs, k^3/4 = 16 for each of 2:1, found 36\n  hint: k = 6 holds 108");
  CHECK(complaint(2, 1, FatTree{.k = 5, .link = cable}) ==
        "/fabric/k: expected an even number of ports from 2 to 1024, found 5");
  CHECK(complaint(2, 1, FatTree{.k = 0, .link = cable}) ==
        "/fabric/k: expected an even number of ports from 2 to 1024, found 0");
}

TEST_CASE("rail: NIC i of a group's nodes on the group's rail switch i, spines over all") {
  //          spine0          spine1
  //   g0.rail0  g0.rail1   g1.rail0  g1.rail1     2 nodes a group, 1:1: 2 cables up, one to each spine
  //    0   1     0   1      2   3     2   3
  const Topology t = built(4, 2, RailFabric{.nodes_per_group = 2, .spines = 2, .link = cable});
  CHECK(fabric_of(t) == Texts{"node0.nic0 - group0.rail0", "node1.nic0 - group0.rail0", "node2.nic0 - group1.rail0",
                              "node3.nic0 - group1.rail0", "node0.nic1 - group0.rail1", "node1.nic1 - group0.rail1",
                              "node2.nic1 - group1.rail1", "node3.nic1 - group1.rail1", "group0.rail0 - spine0",
                              "group0.rail0 - spine1", "group0.rail1 - spine0", "group0.rail1 - spine1",
                              "group1.rail0 - spine0", "group1.rail0 - spine1", "group1.rail1 - spine0",
                              "group1.rail1 - spine1"});
  CHECK(t.ties() == Ties::by_destination);
}

TEST_CASE("rail: a scalable unit of DGX SuperPOD has 8 rail switches with 8 cables to each of 4 spines") {
  // 32 nodes of 8 NICs, 1:1 (RA-11333-001): 32 cables up from a rail switch.
  const Topology t = built(32, 8, RailFabric{.nodes_per_group = 32, .spines = 4, .link = cable});
  CHECK(switches_of(t) == std::map<std::string, int>{{"group.rail", 8}, {"spine", 4}});
  CHECK(t.links_from(at(t, "group0.rail7")).size() == 32 + 32);
  CHECK(t.links_from(at(t, "spine3")).size() == 64);  // all ports of a QM9700
}

TEST_CASE("rail: without spines GPUs reach those of their own rail only") {
  const Topology t = built(3, 2, RailFabric{.nodes_per_group = 4, .link = cable});
  CHECK(switches_of(t) == std::map<std::string, int>{{"group.rail", 2}});
  Routes routes(t, {});
  CHECK(text_of(t, routes.find(at(t, "node0.gpu1"), at(t, "node2.gpu1"))) ==
        "NET: node0.gpu1 > node0.pcie1 > node0.nic1 > group0.rail1 > node2.nic1 > node2.pcie1 > node2.gpu1");
  CHECK_THROWS_WITH_AS(routes.find(at(t, "node0.gpu0"), at(t, "node2.gpu1")),
                       doctest::Contains("data must be staged in host memory"), InputError);  // nic1 is not near gpu0
}

TEST_CASE("rail: a rail exists only where a group has a NIC of that number") {
  const Topology t = build(
      Cluster{{machines(2, 3), machines(2, 1)}, RailFabric{.nodes_per_group = 2, .spines = 1, .link = cable}, {}});
  CHECK(t.find("group0.rail2"));
  CHECK(t.find("group1.rail0"));
  CHECK_FALSE(t.find("group1.rail1"));
  CHECK(joins_all(t));
}

TEST_CASE("rail: spines and what depends on them are given together") {
  CHECK(complaint(4, 1, RailFabric{.nodes_per_group = 2, .link = cable}) ==
        "/fabric/spines: expected at least 1 spine to join 2 groups of nodes, found 0\n  hint: with "
        "\"nodes_per_group\" 4, all nodes are in one group");
  CHECK(complaint(4, 1, RailFabric{.nodes_per_group = 4, .link = cable, .uplink = fast}) ==
        "/fabric/uplink: expected no uplink where no spine joins the rails, found one\n  hint: add \"spines\"");
  CHECK(complaint(4, 1, RailFabric{.nodes_per_group = 4, .oversubscription = 2, .link = cable}) ==
        "/fabric/oversubscription: expected no oversubscription where no spine joins the rails, found 2\n"
        "  hint: add \"spines\"");
  CHECK(complaint(4, 8, RailFabric{.nodes_per_group = 4, .spines = 3, .link = cable}) ==
        "/fabric/spines: expected a number of spines that divides the uplinks of a switch evenly, found 3 spines and 4 "
        "NICs * 10 GB/s / (1 * 10 GB/s) = 4\n  hint: possible: spines 2 or 4; or nodes_per_group 3 or 6");
}

TEST_CASE("torus: a switch a node, cabled dimension by dimension, even places first") {
  //   0 - 1 - 2 - (0)      {2, 3}: three columns of 2 (one cable each), two rings of 3
  //   3 - 4 - 5 - (3)
  const Topology t = built(5, 1, TorusFabric{{2, 3}, cable, fast});
  CHECK(fabric_of(t) == Texts{"node0.nic0 - switch0", "node1.nic0 - switch1", "node2.nic0 - switch2",
                              "node3.nic0 - switch3", "node4.nic0 - switch4", "switch0 - switch3", "switch1 - switch4",
                              "switch2 - switch5", "switch0 - switch1", "switch2 - switch0", "switch3 - switch4",
                              "switch5 - switch3", "switch1 - switch2", "switch4 - switch5"});
  CHECK(t.link(t.links_from(at(t, "switch0")).back()).bandwidth == fast.bandwidth);
  CHECK(t.ties() == Ties::first);
  CHECK(complaint(5, 1, TorusFabric{{2, 2}, cable, {}}) ==
        "/fabric/dimensions: expected dimensions that multiply to at least 5 nodes, found 2 x 2 = 4");
  CHECK(complaint(5, 1, TorusFabric{{2, 0}, cable, {}}) ==
        "/fabric/dimensions/1: expected a count of at least 1, found 0");
}

TEST_CASE("torus: ways go dimension by dimension and load every cable alike") {
  const Topology t = built(16, 1, TorusFabric{{4, 4}, cable, {}});
  const std::uint32_t first = at(t, "switch0").value;
  Routes routes(t, {});
  std::map<std::string, int> ways;  // by cable and direction
  for (const NodeId from : t.ranks()) {
    for (const NodeId to : t.ranks()) {
      if (from == to) continue;
      const Path path = routes.find(from, to);
      REQUIRE(path.legs.size() == 1);
      bool in_last = false, in_order = true;  // whether it moved along the last dimension; whether the first came first
      for (const LinkId id : path.legs[0].links) {
        const Link& link = t.link(id);
        if (link.from.value < first || link.to.value < first) continue;
        const bool along_last = (link.from.value - first) / 4 == (link.to.value - first) / 4;
        if (in_last && !along_last) in_order = false;
        in_last = along_last;
        ++ways[t.link_name(id)];
      }
      CHECK_MESSAGE(in_order, text_of(t, path));
    }
  }
  // A ring of 4: each switch goes 1, 1 and 2 hops, 4 in all; 4 switches over 8 directed cables: 2 each. Sources (or
  // destinations) in the other dimension: 4 times as many.
  CHECK(ways.size() == 64);
  for (const auto& each : ways) CHECK_MESSAGE(each.second == 8, each.first);
}

TEST_CASE("dragonfly: groups of routers in a full mesh, global cables in the palmtree arrangement") {
  //   g0.r0 - g0.r1     g = 3, a = 2, h = 1: router r of group i leads r + 1 groups on
  //     |       |
  //   g1.r1   g2.r0
  //   g1.r0 - g2.r1
  const Topology t = built(5, 1, Dragonfly{.groups = 3, .routers = 2, .nodes_per_router = 1, .link = cable});
  CHECK(fabric_of(t) ==
        Texts{"node0.nic0 - group0.router0", "node1.nic0 - group0.router1", "node2.nic0 - group1.router0",
              "node3.nic0 - group1.router1", "node4.nic0 - group2.router0", "group0.router0 - group0.router1",
              "group1.router0 - group1.router1", "group2.router0 - group2.router1", "group0.router0 - group1.router1",
              "group0.router1 - group2.router0", "group1.router0 - group2.router1"});
  CHECK(t.ties() == Ties::by_destination);
  CHECK(fabric_of(built(2, 1, Dragonfly{.groups = 1, .routers = 2, .nodes_per_router = 1, .link = cable})) ==
        Texts{"node0.nic0 - group0.router0", "node1.nic0 - group0.router1", "group0.router0 - group0.router1"});
}

TEST_CASE("dragonfly: every two groups have as many cables as the ports allow, and no router more than its ports") {
  struct Row {
    int g, a, said;
    std::size_t h, copies;
  };
  for (const Row& row : {Row{9, 4, 2, 2, 1},    // the paper's figure 5: g = a h + 1
                         Row{5, 4, 2, 2, 2},    // 8 ports for 4 groups
                         Row{6, 4, 2, 2, 1},    // 8 ports for 5 groups: 3 stay empty
                         Row{6, 4, 0, 2, 1},    // at least 2 ports
                         Row{2, 3, 4, 4, 12}})  // all 12 to the one other group
  {
    CAPTURE(row.g);
    CAPTURE(row.said);
    const LinkSpec slow{.bandwidth = 1_GBps, .source = "test"};
    const Topology t = built(2, 1, Dragonfly{row.g, row.a, 1, row.said, cable, fast, slow});
    std::map<std::pair<std::string, std::string>, std::size_t> between;
    for (std::uint32_t n = 0; n < t.n_nodes(); ++n) {
      if (t.node(NodeId{n}).kind != NodeKind::network_switch) continue;
      std::size_t globals = 0, locals = 0;
      for (const LinkId id : t.links_from(NodeId{n})) {
        const std::string here = t.node(t.link(id).from).name.substr(0, 6),
                          there = t.node(t.link(id).to).name.substr(0, 6);
        if (here == there) {
          ++locals;
          CHECK(t.link(id).bandwidth == fast.bandwidth);
          continue;
        }
        if (there.substr(0, 5) != "group") continue;
        ++globals;
        ++between[{here, there}];
        CHECK(t.link(id).bandwidth == slow.bandwidth);
      }
      CHECK(globals <= row.h);
      CHECK(locals == static_cast<std::size_t>(row.a) - 1);
    }
    CHECK(between.size() == static_cast<std::size_t>(row.g * (row.g - 1)));
    for (const auto& each : between) CHECK(each.second == row.copies);
  }
}

TEST_CASE("dragonfly: too few ports or routers are refused") {
  CHECK(
      complaint(4, 1, Dragonfly{.groups = 10, .routers = 4, .nodes_per_router = 1, .global_links = 2, .link = cable}) ==
      "/fabric/global_links: expected at least 3 per router, so that the 4 routers of a group reach 9 other groups, "
      "found 2");
  CHECK(complaint(13, 1, Dragonfly{.groups = 3, .routers = 2, .nodes_per_router = 2, .link = cable}) ==
        "/fabric/groups: expected room for 13 nodes, found 3 groups * 2 routers * 2 nodes = 12");
}

TEST_CASE("every fabric joins every two nodes, and is called as scenarios call it") {
  const std::vector<Fabric> fabrics = {StarFabric{cable},
                                       LeafSpine{.nodes_per_leaf = 2, .oversubscription = 2, .link = cable},
                                       FatTree{.k = 4, .link = cable},
                                       RailFabric{.nodes_per_group = 2, .spines = 2, .link = cable},
                                       TorusFabric{{2, 2, 2}, cable, {}},
                                       Dragonfly{.groups = 4, .routers = 2, .nodes_per_router = 1, .link = cable}};
  const std::vector<CatalogEntry> catalog = fabric_catalog();
  REQUIRE(catalog.size() == std::variant_size_v<Fabric>);
  for (std::size_t f = 0; f < fabrics.size(); ++f) {
    CAPTURE(kind_of(fabrics[f]));
    CHECK(fabrics[f].index() == f);
    CHECK(kind_of(fabrics[f]) == catalog[f].name);
    const Topology t = built(7, 2, fabrics[f]);
    CHECK(joins_all(t));
    CHECK(t.ties() == (catalog[f].name == "torus" ? Ties::first : Ties::by_destination));
  }
}

TEST_CASE("machines without a NIC cannot be joined") {
  Machine lonely;
  lonely.devices.push_back({"gpu0", NodeKind::gpu, {}, {}});
  CHECK_THROWS_WITH_AS(build(Cluster{{{std::make_shared<const Machine>(lonely), 2}}, StarFabric{cable}, {}}),
                       "/fabric: expected machines with at least one NIC that can be cabled, found none\n  hint: use "
                       "machines whose NICs have a \"port\"",
                       InputError);
}

TEST_CASE("512 nodes of 8 NICs: leaf-spine and fat tree") {
  // 64 leaves of 8 nodes, 64 cables up each, one to each of 64 spines.
  const Topology two = built(512, 8, LeafSpine{.nodes_per_leaf = 8, .link = cable});
  CHECK(switches_of(two) == std::map<std::string, int>{{"leaf", 64}, {"spine", 64}});
  CHECK(fabric_of(two).size() == 4096 + 64 * 64);
  // k = 32: 256 NICs a pod, so 16 of 32 pods; 16 * 16 * 16 cables from edge to aggregation, as many on to the cores.
  const Topology three = built(512, 8, FatTree{.k = 32, .link = cable});
  CHECK(switches_of(three) == std::map<std::string, int>{{"edge", 256}, {"agg", 256}, {"core", 256}});
  CHECK(fabric_of(three).size() == 4096 + 2 * 4096);
  Routes routes(three, {});
  CHECK(routes.find(three.ranks().front(), three.ranks().back()).legs.front().links.size() == 10);
}

TEST_CASE("cables that are not as the others have the figures that are said of them") {
  const LeafSpine fabric{.nodes_per_leaf = 2, .spines = 1, .link = cable};  // 2 parallel cables up
  const Topology t = built(4, 1, fabric,
                           {{"spine0", "leaf0", 1_GBps, {}},
                            {"leaf1", "spine0", {}, 7_ps},
                            {"node3.nic0", "leaf1", 100_GBps, 3_ps},
                            {"node2.nic0", "leaf1", {}, 3_ps}});
  const auto check = [&](const char* from, const char* to, std::size_t count, Bandwidth bandwidth,
                         Picoseconds latency) {
    CAPTURE(from);
    std::size_t found = 0;
    for (const LinkId id : t.links_from(at(t, from))) {
      const Link& link = t.link(id);
      if (link.to != at(t, to)) continue;
      ++found;
      CHECK(link.bandwidth == bandwidth);
      CHECK(t.resource(link.resource).bandwidth == bandwidth);
      CHECK(link.latency == latency);
    }
    CHECK(found == count);
  };
  check("spine0", "leaf0", 2, 1_GBps, 100_ps);
  check("leaf0", "spine0", 2, 1_GBps, 100_ps);
  check("leaf1", "spine0", 2, 10_GBps, 7_ps);
  check("leaf1", "node3.nic0", 1, 20_GBps, 8_ps);  // the port binds, and takes its 5 ps
  check("node2.nic0", "leaf1", 1, 10_GBps, 8_ps);
  check("node1.nic0", "leaf0", 1, 10_GBps, 105_ps);
  CHECK(t.source(t.link(t.links_from(at(t, "spine0")).front())) == "/fabric/cables/0, in place of: test");
}

TEST_CASE("changes to cables that are not there are refused with those that are") {
  const LeafSpine fabric{.nodes_per_leaf = 2, .link = cable};
  struct Row {
    std::vector<CableChange> changes;
  };
  const std::vector<Row> rows = {
      {{{"leaf0", "spin1", 1_GBps, {}}}},
      {{{"leaf0", "spine1", 1_GBps, {}}, {"left", "spine1", 1_GBps, {}}}},
      {{{"leaf0", "leaf1", 1_GBps, {}}}},
      {{{"node3.nic0", "leaf0", 1_GBps, {}}}},
      {{{"node0.nic0", "node0.pcie0", 1_GBps, {}}}},
      {{{"leaf0", "spine1", {}, {}}}},
      {{{"leaf0", "spine1", 0_Bps, {}}}},
      {{{"leaf0", "spine1", 1_GBps, {}}, {"spine1", "leaf0", {}, 1_ps}}},
  };
  ringsim::test::MessagePage page("cables");
  for (const Row& row : rows) {
    const CableChange& last = row.changes.back();
    page.add(last.from + " - " + last.to, complaint(4, 1, fabric, row.changes));
  }
  page.check();
}

}  // namespace fabrics_test
