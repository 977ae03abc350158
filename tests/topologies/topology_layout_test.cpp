// Where the devices and links of a picture lie.
#include "topologies/layout/topology_layout.hpp"
#include "topologies/layout/text_width.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "topologies/catalog.hpp"

namespace topology_layout_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::layout;
using namespace std::chrono_literals;

namespace {

const LinkSpec link{.bandwidth = 25_GBps, .latency = 1us, .source = "test"};

Topology cluster(const std::string& preset, int nodes, const Fabric& fabric = StarFabric{.link = link}) {
  return build(cluster_of(preset, nodes, fabric));
}

/// Of every kind and of many sizes: each machine alone and in fours, and what the shapes are for.
std::vector<std::pair<std::string, Topology>> many() {
  std::vector<std::pair<std::string, Topology>> all;
  for (const int n : {1, 2, 3, 4, 8, 13, 24, 25, 64, 512}) {
    all.emplace_back(fmt::format("ring {}", n), build(Ring{n, link}));
    all.emplace_back(fmt::format("star {}", n), build(Star{n, link}));
    if (n <= 64) all.emplace_back(fmt::format("mesh {}", n), build(FullMesh{n, link}));
  }
  all.emplace_back("servers", build(Star{8, link, 4}));
  for (const std::vector<int>& sizes :
       {std::vector<int>{4, 4}, {3, 5}, {20, 20}, {2, 2, 2}, {4, 4, 4}, {8, 8, 8}, {16}})
    all.emplace_back(fmt::format("torus of {} dimensions", sizes.size()), build(Torus{sizes, link}));
  for (const CatalogEntry& machine : node_catalog()) {
    const Cluster one = cluster_of(machine.name);
    const auto& devices = one.parts.front().machine->devices;
    const bool has_nics = std::any_of(devices.begin(), devices.end(), [](const auto& each) { return each.port; });
    all.emplace_back(machine.name, build(one));
    if (has_nics) all.emplace_back(machine.name, cluster(machine.name, 5));
  }
  const LeafSpine leaves{.nodes_per_leaf = 4, .oversubscription = 2, .link = link};
  all.emplace_back("16 DGX-1V", cluster("dgx-1v", 16, leaves));
  all.emplace_back("64 HGX H100", cluster("hgx-h100", 64, leaves));
  all.emplace_back("fat tree", cluster("p100x4-roce", 16, FatTree{.k = 4, .link = link}));
  return all;
}

const PlacedNode& placed(const TopologyLayout& layout, const Topology& topology, const std::string& name) {
  const auto id = topology.find(name);
  REQUIRE(id);
  const auto found =
      std::find_if(layout.nodes.begin(), layout.nodes.end(), [&](const PlacedNode& each) { return each.node == *id; });
  REQUIRE(found != layout.nodes.end());
  return *found;
}

bool is_drawn(const TopologyLayout& layout, const Topology& topology, const std::string& name) {
  return std::any_of(layout.nodes.begin(), layout.nodes.end(),
                     [&](const PlacedNode& each) { return topology.node(each.node).name == name; });
}

std::size_t n_notes(const TopologyLayout& layout, const std::vector<std::string>& lines) {
  return static_cast<std::size_t>(std::count_if(layout.notes.begin(), layout.notes.end(),
                                                [&](const PlacedNote& note) { return note.lines == lines; }));
}

Box label_box(const PlacedCable& cable) {
  return {
      .x = cable.label->x, .y = cable.label->y, .width = width_of(cable.cable.rate, label_size), .height = label_size};
}

bool lies_in(const Box& inner, const Box& outer) {
  return inner.left() >= outer.left() && inner.right() <= outer.right() && inner.top() >= outer.top() &&
         inner.bottom() <= outer.bottom();
}

}  // namespace

TEST_CASE("nothing overlaps and everything lies on the page, whatever the topology") {
  for (const auto& each_of_many : many()) {
    const auto& name = each_of_many.first;
    const Topology& topology = each_of_many.second;
    CAPTURE(name);
    CAPTURE(topology.ranks().size());
    const TopologyLayout layout = layout_of(topology);
    const Box page{.x = layout.width / 2, .y = layout.height / 2, .width = layout.width, .height = layout.height};
    std::vector<Box> boxes;
    for (const PlacedNode& each : layout.nodes) {
      boxes.push_back(each.box);
      CHECK(width_of(each.label, font_size) <= each.box.width);
    }
    for (const PlacedNote& note : layout.notes) boxes.push_back(note.box);
    for (const PlacedCable& cable : layout.cables)
      if (cable.label) boxes.push_back(label_box(cable));
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      CHECK(lies_in(boxes[i], page));
      for (std::size_t j = 0; j < i; ++j) CHECK(!boxes[i].meets(boxes[j]));
    }
    for (const PlacedFrame& frame : layout.frames) {
      CHECK(lies_in(frame.box, page));
      for (const PlacedFrame& other : layout.frames) CHECK((other.host == frame.host || !frame.box.meets(other.box)));
      for (const PlacedNode& each : layout.nodes) {
        if (topology.node(each.node).host == frame.host)
          CHECK(lies_in(each.box, frame.box));
        else
          CHECK(!each.box.meets(frame.box));
      }
    }
  }
}

TEST_CASE("a picture has a few hundred devices at most, and each cable between two that are drawn, once") {
  for (const auto& each_of_many : many()) {
    const auto& name = each_of_many.first;
    const Topology& topology = each_of_many.second;
    CAPTURE(name);
    const TopologyLayout layout = layout_of(topology);
    CHECK(layout.nodes.size() <= 210);  // the most: four DGX A100 of 51 each, and a switch
    std::vector<bool> drawn(topology.n_nodes());
    for (const PlacedNode& each : layout.nodes) {
      CHECK(!drawn[each.node.value]);
      drawn[each.node.value] = true;
    }
    CHECK(layout.is_whole() == std::all_of(drawn.begin(), drawn.end(), [](bool each) { return each; }));
    std::size_t links = 0, expected = 0;
    for (const PlacedCable& each : layout.cables) links += each.cable.there.size() + each.cable.back.size();
    for (std::uint32_t i = 0; i < topology.n_links(); ++i)
      expected += drawn[topology.link({i}).from.value] && drawn[topology.link({i}).to.value] ? 1U : 0U;
    CHECK(links == expected);
  }
}

TEST_CASE("cables of machines go round the devices that they do not join") {
  for (const char* machine : {"dgx-1v", "dgx-a100", "dgx-2", "hgx-h100", "mi300x"}) {
    CAPTURE(machine);
    const Topology topology = cluster(machine, 1);
    const TopologyLayout layout = layout_of(topology);
    for (const PlacedCable& cable : layout.cables)
      for (const PlacedNode& each : layout.nodes) {
        if (each.node == cable.cable.a || each.node == cable.cable.b) continue;
        CAPTURE(topology.link_name(cable.cable.there.front()));
        CAPTURE(each.label);
        CHECK(!meets(cable.curve, each.box, 0));
      }
  }
}

TEST_CASE("a ring is a circle in its order, a star has its switch in the middle") {
  const Topology ring = build(Ring{8, link});
  const TopologyLayout round = layout_of(ring);
  for (std::uint32_t i = 0; i < 8; ++i) {  // an eighth of a turn each: all neighbors are equally far apart
    const Box &a = placed(round, ring, fmt::format("gpu{}", i)).box,
              &b = placed(round, ring, fmt::format("gpu{}", (i + 1) % 8)).box, &first = placed(round, ring, "gpu0").box,
              &second = placed(round, ring, "gpu1").box;
    CHECK(std::hypot(a.x - b.x, a.y - b.y) == doctest::Approx(std::hypot(first.x - second.x, first.y - second.y)));
  }
  const Topology star = build(Star{5, link});
  const TopologyLayout layout = layout_of(star);
  const Box& hub = placed(layout, star, "switch0").box;
  const Box& first = placed(layout, star, "gpu0").box;
  for (int i = 1; i < 5; ++i) {
    const Box& box = placed(layout, star, fmt::format("gpu{}", i)).box;
    CHECK(std::hypot(box.x - hub.x, box.y - hub.y) == doctest::Approx(std::hypot(first.x - hub.x, first.y - hub.y)));
  }
}

TEST_CASE("a torus is a grid, row by row, and a large one shows its corner") {
  const Topology torus = build(Torus{{3, 5}, link});
  const TopologyLayout layout = layout_of(torus);
  const auto box = [&](int i) { return placed(layout, torus, fmt::format("gpu{}", i)).box; };
  for (int i = 0; i < 15; ++i) {
    CHECK(box(i).x == doctest::Approx(box(i % 5).x));
    CHECK(box(i).y == doctest::Approx(box(i / 5 * 5).y));
  }
  CHECK(box(1).x > box(0).x);
  CHECK(box(5).y > box(0).y);
  const TopologyLayout corner = layout_of(build(Torus{{20, 20}, link}));
  CHECK(corner.nodes.size() == 144);  // 12 x 12 of 400
  CHECK(n_notes(corner, {"... 256 more", "like gpu0"}) == 1);
}

TEST_CASE("of equal nodes four are drawn, on as many leaves as there are, and a note counts the others") {
  const Topology topology = cluster("dgx-1v", 16, LeafSpine{.nodes_per_leaf = 4, .oversubscription = 2, .link = link});
  const TopologyLayout layout = layout_of(topology);
  REQUIRE(layout.frames.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(layout.frames[i].label == fmt::format("node{}", 4 * i));  // four on a leaf
  CHECK(n_notes(layout, {"... 12 more nodes", "like node0"}) == 1);
  CHECK(layout_of(cluster("dgx-1v", 4)).is_whole());
  CHECK(n_notes(layout_of(cluster("dgx-1v", 5)), {"... 1 more node", "like node0"}) == 1);
}

TEST_CASE("nodes of another kind are drawn next to the equal ones") {
  Cluster mixed = cluster_of("dgx-1v", 6, StarFabric{.link = link});
  mixed.parts.push_back({cluster_of("dgx-a100").parts.front().machine, 1});
  const Topology topology = build(mixed);
  const TopologyLayout layout = layout_of(topology);
  REQUIRE(layout.frames.size() == 5);
  CHECK(layout.frames.back().label == "node6");
  CHECK(n_notes(layout, {"... 2 more nodes", "like node0"}) == 1);
}

TEST_CASE("what a mark makes different is drawn next to equal nodes, devices and ranks") {
  const auto marks = [](const Topology& topology, const std::vector<std::string>& names) {
    LinkMarks found;
    for (std::uint32_t i = 0; i < topology.n_links(); ++i)
      for (const std::string& name : names)
        if (topology.node(topology.link({i}).from).name == name || topology.node(topology.link({i}).to).name == name)
          found[LinkId{i}] = name;
    return found;
  };
  const auto n_marked = [](const TopologyLayout& layout) {
    return std::count_if(layout.cables.begin(), layout.cables.end(),
                         [](const PlacedCable& each) { return each.mark.has_value(); });
  };
  const Topology nodes = cluster("dgx-1v", 16);
  const TopologyLayout one = layout_of(nodes, marks(nodes, {"node9.nic2"}));
  REQUIRE(one.frames.size() == 5);
  CHECK(one.frames.back().label == "node9");
  CHECK(n_notes(one, {"... 11 more nodes", "like node0"}) == 1);
  CHECK(n_marked(one) == 2);  // its cable to the leaf and that to its PCIe switch
  // Each mark is another: the first four have a frame, the others are counted.
  const TopologyLayout six = layout_of(
      nodes, marks(nodes, {"node1.nic0", "node3.nic0", "node5.nic0", "node7.nic0", "node9.nic0", "node11.nic0"}));
  CHECK(six.frames.size() == 8);
  CHECK(n_notes(six, {"... 2 more nodes", "of other kinds"}) == 1);
  // A leaf whose cables have marks, of 16: one of its nodes is drawn as well.
  const Topology leaves =
      cluster("p100x4-roce", 32, LeafSpine{.nodes_per_leaf = 2, .oversubscription = 1, .link = link});
  LinkMarks up;
  for (std::uint32_t i = 0; i < leaves.n_links(); ++i)
    if (leaves.link_name({i}) == "leaf13 -> spine0") up[LinkId{i}] = "slow";
  REQUIRE(up.size() == 1);
  const TopologyLayout below = layout_of(leaves, up);
  CHECK(is_drawn(below, leaves, "leaf13"));
  CHECK(is_drawn(below, leaves, "node26.gpu0"));
  CHECK(n_marked(below) == 1);
  // On a circle, between the first and the last.
  const Topology star = build(Star{64, link});
  const TopologyLayout round = layout_of(star, marks(star, {"gpu40"}));
  CHECK(is_drawn(round, star, "gpu40"));
  CHECK(!is_drawn(round, star, "gpu39"));
  CHECK(n_notes(round, {"... 28 more"}) == 1);  // 12 to 39
  CHECK(n_notes(round, {"... 20 more"}) == 1);  // 41 to 60
  // In a row of a host with 72 GPUs.
  const Topology rack = cluster("gb200-nvl72", 1);
  CHECK(is_drawn(layout_of(rack, marks(rack, {"node0.gpu50"})), rack, "node0.gpu50"));
}

TEST_CASE("of a long chain of switches the ends are drawn, and a note counts the others") {
  Graph graph{{{"a", NodeKind::gpu}, {"b", NodeKind::gpu}}, {}};
  constexpr int n = 1000;
  for (int i = 0; i < n; ++i) graph.nodes.push_back({fmt::format("s{}", i), NodeKind::network_switch});
  for (int i = 0; i + 1 < n; ++i) graph.links.push_back({fmt::format("s{}", i), fmt::format("s{}", i + 1), link});
  graph.links.push_back({"a", "s0", link});
  graph.links.push_back({"b", fmt::format("s{}", n - 1), link});
  const Topology chain = build(graph);
  // Two switches per layer, one from each end: 500 layers, of which 8 are drawn.
  const TopologyLayout layout = layout_of(chain);
  CHECK(layout.height < 1200);
  CHECK(is_drawn(layout, chain, "s7"));
  CHECK(is_drawn(layout, chain, "s992"));
  CHECK(!is_drawn(layout, chain, "s8"));
  CHECK(n_notes(layout, {"... 984 more switches", "in 492 layers"}) == 1);
  CHECK(layout.left_out == "984 switches in 492 layers");
}

TEST_CASE("spines lie above leaves, leaves above nodes, NICs above GPUs, NVSwitches below") {
  const Topology topology = cluster("dgx-a100", 2, LeafSpine{.nodes_per_leaf = 1, .oversubscription = 1, .link = link});
  const TopologyLayout layout = layout_of(topology);
  double above = 0;
  for (const char* name : {"spine0", "leaf0", "node0.nic0", "node0.gpu0", "node0.nvswitch0"}) {
    CAPTURE(name);
    const double y = placed(layout, topology, name).box.y;
    CHECK(y > above);
    above = y;
  }
  CHECK(placed(layout, topology, "node0.nic0").label == "nic0");
}

TEST_CASE("of many GPUs in a node, or on a switch, some are drawn") {
  const Topology rack = cluster("gb200-nvl72", 1);
  const TopologyLayout layout = layout_of(rack);
  CHECK(is_drawn(layout, rack, "node0.gpu11"));
  CHECK(!is_drawn(layout, rack, "node0.gpu12"));
  CHECK(n_notes(layout, {"... 60 more", "like gpu0"}) == 1);
}

TEST_CASE("parallel cables are one line, with their number and rate") {
  const NodeKind gpu = NodeKind::gpu;
  const auto rate = [&](const std::vector<LinkSpec>& cables, bool one_way = false) {
    Graph graph{{{"a", gpu}, {"b", gpu}}, {}};
    for (const LinkSpec& cable : cables) graph.links.push_back({"a", "b", cable, one_way});
    if (one_way) graph.links.push_back({"b", "a", {.bandwidth = 5_GBps, .source = "test"}, true});
    const std::vector<Cable> found = layout::cables_of(build(graph));
    REQUIRE(found.size() == 1);
    return found.front().rate;
  };
  LinkSpec six{.bandwidth = 150_GBps, .joined = 6, .source = "test"}, shared = link;
  shared.duplex = Duplex::half;
  CHECK(rate({link}) == "25 GB/s");
  CHECK(rate({link, link}) == "2 x 25 GB/s");
  CHECK(rate({six}) == "6 x 25 GB/s");
  CHECK(rate({six, link}) == "7 x 25 GB/s");
  CHECK(rate({link, {.bandwidth = 400_MBps, .source = "test"}}) == "400 MB/s + 25 GB/s");
  CHECK(rate({shared}) == "25 GB/s shared");
  CHECK(rate({link}, true) == "25 GB/s to b, 5 GB/s back");
}

TEST_CASE("a line is as wide as DejaVu Sans draws it") {
  // Advances in DejaVuSans.ttf, per 2048: g 1300, p 1300, u 1298, zero 1303. Headless Chromium measures 32.3 px of 13.
  CHECK(width_of("gpu0", 13) == doctest::Approx(13.0 * (1300 + 1300 + 1298 + 1303) / 2048).epsilon(0.002));
  // DejaVuSans-Bold.ttf: 1466, 1466, 1458, 1425.
  CHECK(width_of("gpu0", 13, Weight::bold) >= 13.0 * (1466 + 1466 + 1458 + 1425) / 2048);
  CHECK(width_of("i", 100) < width_of("m", 100) / 3);
  CHECK(width_of("\u00b5", 10) == 10);  // two bytes, one character
  CHECK(width_of("", 10) == 0);
}

TEST_CASE("boxes that are spread keep their order and gap, and move as little as can be") {
  // Naive: the isotonic regression by its minimax formula, max over j <= i of min over k >= i of the mean of j..k.
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const std::size_t n = 1 + random() % 7;
    std::vector<double> wanted, widths, offsets;
    for (std::size_t i = 0; i < n; ++i) {
      wanted.push_back(static_cast<double>(random() % 100));
      widths.push_back(static_cast<double>(10 + random() % 20));
      offsets.push_back(i == 0 ? 0 : offsets.back() + (widths[i - 1] + widths[i]) / 2 + 3);
    }
    const std::vector<double> centers = spread(wanted, widths, 3);
    REQUIRE(centers.size() == n);
    for (std::size_t i = 0; i < n; ++i) {
      double best = -1e9;
      for (std::size_t j = 0; j <= i; ++j) {
        double least = 1e9;
        for (std::size_t k = i; k < n; ++k) {
          double sum = 0;
          for (std::size_t m = j; m <= k; ++m) sum += wanted[m] - offsets[m];
          least = std::min(least, sum / static_cast<double>(k - j + 1));
        }
        best = std::max(best, least);
      }
      CHECK(centers[i] == doctest::Approx(best + offsets[i]));
    }
  }
}

}  // namespace topology_layout_test
