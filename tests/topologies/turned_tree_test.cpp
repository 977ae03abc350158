// One tree rotated to all roots: its loads, its parents and its steps, each next to a naive count.
#include "topologies/synthesis/turned_tree.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/bound_graphs.hpp"
#include "topologies/bound/limits.hpp"

namespace turned_tree_test {

using namespace ringsim;

namespace {

std::size_t nth_of(int i) { return static_cast<std::size_t>(i); }

Wires wires_of_graph(const test::BareGraph& graph) {
  const Topology topology = graph.build();
  return wires_of(topology, topology.ranks());
}

/// The shortest way over switches and ranks; of several the one whose edges come first.
std::vector<int> shortest_way(const Wires& wires, int from, int to) {
  std::vector<int> came_by(wires.vertices.size(), -1), reached{wires.ranks[nth_of(from)]};
  for (std::size_t next = 0; next < reached.size(); ++next)
    for (std::size_t e = 0; e < wires.edges.size(); ++e) {
      const int there = wires.edges[e].to;
      if (wires.edges[e].from != reached[next] || there == reached.front() || came_by[nth_of(there)] >= 0) continue;
      came_by[nth_of(there)] = static_cast<int>(e);
      reached.push_back(there);
    }
  std::vector<int> way;
  for (int at = wires.ranks[nth_of(to)]; at != reached.front(); at = wires.edges[nth_of(way.back())].from)
    way.push_back(came_by[nth_of(at)]);
  std::reverse(way.begin(), way.end());
  return way;
}

/// Along a ring without switches, upwards where both ways are equally long: as all ranks see it.
std::vector<int> way_round(const Wires& wires, int from, int to) {
  const int n = wires.n_ranks(), up = (to - from + n) % n, by = up <= n / 2 ? 1 : n - 1;
  std::vector<int> way;
  for (int at = from; at != to; at = (at + by) % n) way.push_back(shortest_way(wires, at, (at + by) % n).front());
  return way;
}

/// A machine whose ranks see the same, with the ways that messages take there.
struct Symmetric {
  std::string name;
  Wires wires;
  Symmetry group;
  /// [from * ranks + to]
  std::vector<std::vector<int>> ways = {};

  Symmetric(std::string of, const test::BareGraph& graph, Symmetry symmetry)
      : name(std::move(of)), wires(wires_of_graph(graph)), group(std::move(symmetry)) {
    for (int a = 0; a < wires.n_ranks(); ++a)
      for (int b = 0; b < wires.n_ranks(); ++b) ways.push_back(a == b ? std::vector<int>{} : shortest_way(wires, a, b));
  }
  static Symmetric ring(int ranks) {
    Symmetric made(fmt::format("ring of {}", ranks), test::bare_ring(ranks, 1, false), Symmetry({ranks}));
    for (int a = 0; a < ranks; ++a)
      for (int b = 0; b < ranks; ++b) made.ways[nth_of(a * ranks + b)] = way_round(made.wires, a, b);
    return made;
  }
  WayBetween way() const {
    return [this](int a, int b) { return ways[nth_of(a * wires.n_ranks() + b)]; };
  }
  TurnedLoads loads() const {
    auto found = TurnedLoads::of(wires, group, way());
    REQUIRE(found.has_value());
    return *found;
  }
};

std::vector<Symmetric> machines() {
  return {Symmetric::ring(4),
          {"ring of 5, one way", test::bare_ring(5, 1, true), Symmetry({5})},
          {"star of 8", test::bare_star(8, 1), Symmetry({8})},
          {"hypercube of 8", test::bare_hypercube(3), Symmetry({2, 2, 2})},
          {"2 x 8 GPUs", test::bare_boxes(2, 300, 25, 1), Symmetry({2, 8})},
          {"4 x 8 GPUs", test::bare_boxes(4, 450, 50, 1), Symmetry({4, 8})},
          {"two leaves of 8", test::bare_leaf_spine(2, 8, 100, 200), Symmetry({2, 8})},
          {"two leaves of 8 between which all is free", test::bare_leaf_spine(2, 8, 1, 1000), Symmetry({2, 8})}};
}

/// The most messages over an edge by its capacity: every tree of every root, message by message.
double naive_inverse_rate(const Symmetric& machine, const std::vector<int>& parent) {
  std::vector<std::int64_t> carried(machine.wires.edges.size());
  for (int root = 0; root < machine.group.order(); ++root)
    for (int d = 1; d < machine.group.order(); ++d)
      for (const int e : machine.way()(machine.group.add(root, parent[nth_of(d)]), machine.group.add(root, d)))
        ++carried[nth_of(e)];
  double most = 0;
  for (std::size_t e = 0; e < carried.size(); ++e)
    most = std::max(most, static_cast<double>(carried[e]) / static_cast<double>(machine.wires.edges[e].capacity));
  return most;
}

/// Of all trees in which a displacement's parent has a lower number.
double best_of_all_trees(const Symmetric& machine) {
  std::vector<int> parent(nth_of(machine.group.order()), 0);
  parent[0] = -1;
  double best = std::numeric_limits<double>::max();
  for (;;) {
    best = std::min(best, naive_inverse_rate(machine, parent));
    std::size_t d = 1;
    while (d < parent.size() && ++parent[d] == static_cast<int>(d)) parent[d++] = 0;
    if (d == parent.size()) return best;
  }
}

/// What an edge carries: its capacity, and [displacement - 1] how many messages of that displacement.
using Signature = std::pair<std::int64_t, std::vector<int>>;

std::vector<Signature> naive_signatures(const Symmetric& machine) {
  std::vector<Signature> of;
  for (const Wires::Edge& edge : machine.wires.edges)
    of.push_back({edge.capacity, std::vector<int>(nth_of(machine.group.order() - 1))});
  for (int d = 1; d < machine.group.order(); ++d)
    for (int a = 0; a < machine.group.order(); ++a)
      for (const int e : machine.way()(a, machine.group.add(a, d))) ++of[nth_of(e)].second[nth_of(d - 1)];
  return of;
}

/// A step's load on a class is at most so many messages by capacity.
double room_of_a_step(const TurnedTree& tree, const TurnedLoads& loads, const Symmetry& group) {
  double longest = 0;
  for (int d = 1; d < group.order(); ++d)
    for (const TurnedLoads::Load& each : loads.of(group.subtract(d, tree.parent[nth_of(d)])))
      longest = std::max(longest, each.messages / static_cast<double>(loads.capacities()[nth_of(each.edge_class)]));
  return 1.15 * longest;
}

/// Empty if each slice reaches each displacement, `lanes` steps or more after its parent, and no step is overfull.
std::string complaint_of_turns(const std::vector<int>& turn, const TurnedTree& tree, const TurnedLoads& loads,
                               const Symmetry& group, int slices, int lanes) {
  const int n = group.order();
  if (turn.size() != nth_of(n * slices)) return "not one turn for each slice and displacement";
  std::map<std::pair<int, int>, std::int64_t> carried;  // step, class
  for (int place = 0; place < n * slices; ++place) {
    const int d = place % n;
    if (d == 0 && turn[nth_of(place)] != -1) return "a turn of a root";
    if (d == 0) continue;
    if (turn[nth_of(place)] < 0) return "a displacement that is not reached";
    const int parent = tree.parent[nth_of(d)];
    if (parent != 0 && turn[nth_of(place)] < turn[nth_of(place - d + parent)] + lanes) return "a child too early";
    for (const TurnedLoads::Load& each : loads.of(group.subtract(d, parent)))
      carried[{turn[nth_of(place)], each.edge_class}] += each.messages;
  }
  const double room = room_of_a_step(tree, loads, group);
  for (const auto& [where, messages] : carried)
    if (static_cast<double>(messages) / static_cast<double>(loads.capacities()[nth_of(where.second)]) > room)
      return fmt::format("step {} is overfull", where.first);
  return "";
}

int steps_of(const std::vector<int>& turn) { return 1 + *std::max_element(turn.begin(), turn.end()); }

}  // namespace

TEST_CASE("edges that carry equally many messages of every displacement are one class, with what a count says") {
  for (const Symmetric& machine : machines()) {
    CAPTURE(machine.name);
    const TurnedLoads loads = machine.loads();
    const std::vector<Signature> naive = naive_signatures(machine);
    std::vector<Signature> made;  // [class]
    for (const std::int64_t capacity : loads.capacities())
      made.push_back({capacity, std::vector<int>(nth_of(machine.group.order() - 1))});
    for (int d = 1; d < machine.group.order(); ++d)
      for (const TurnedLoads::Load& each : loads.of(d))
        made[nth_of(each.edge_class)].second[nth_of(d - 1)] += each.messages;
    // As many classes as there are different edges, and each one of theirs: the same classes.
    const std::set<Signature> different(naive.begin(), naive.end());
    CHECK(made.size() == different.size());
    CHECK(std::set<Signature>(made.begin(), made.end()) == different);
    for (int d = 1; d < machine.group.order(); ++d) {
      CHECK(made[nth_of(loads.port(d))] == naive[nth_of(machine.way()(0, d).front())]);
      for (const TurnedLoads::Load& each : loads.of(d)) CHECK(each.messages > 0);
    }
  }
  CHECK(machines()[0].loads().capacities().size() == 2);  // a ring has edges each way round
  // NVLinks and NICs: what leaves a GPU and what comes in is equal. A NIC has a twelfth of 300 GB/s.
  CHECK(machines()[4].loads().capacities() == std::vector<std::int64_t>{12, 1});
}

TEST_CASE("a machine with more than 64 classes of edges is given up, and so is one with an unknown way") {
  // Each cable of a ring with a bandwidth of its own is two classes, one each way: 32 cables have 64, 33 have 66.
  for (const int ranks : {32, 33}) {
    test::BareGraph graph;
    graph.gpus(ranks);
    for (int r = 0; r < ranks; ++r) graph.cable(fmt::format("gpu{}", r), fmt::format("gpu{}", (r + 1) % ranks), 1 + r);
    const Symmetric machine("uneven ring", graph, Symmetry({ranks}));
    CHECK(TurnedLoads::of(machine.wires, machine.group, machine.way()).has_value() == (ranks == 32));
  }
  const Symmetric star("star", test::bare_star(4, 1), Symmetry({4}));
  const WayBetween lacks_one = [&](int a, int b) { return a == 2 && b == 1 ? std::vector<int>{} : star.way()(a, b); };
  CHECK_FALSE(TurnedLoads::of(star.wires, star.group, lacks_one).has_value());
}

TEST_CASE("the rate of a turned tree is what a count of every message of every root says, on uneven machines too") {
  std::mt19937 random(5);
  std::vector<Symmetric> all = machines();
  for (int i = 0; i < 20; ++i) {  // rings and stars with bandwidths of 1 to 4: ranks do not see the same
    const int ranks = 2 + i % 7;
    test::BareGraph graph;
    graph.gpus(ranks).add_switch("switch0");
    for (int r = 0; r < ranks; ++r) {
      graph.cable(fmt::format("gpu{}", r), "switch0", 1 + static_cast<double>(random() % 4));
      if (i % 2 == 0 && ranks > 2)
        graph.cable(fmt::format("gpu{}", r), fmt::format("gpu{}", (r + 1) % ranks),
                    1 + static_cast<double>(random() % 4));
    }
    all.emplace_back(fmt::format("random {}", i), graph, Symmetry({ranks}));
  }
  for (const Symmetric& machine : all) {
    CAPTURE(machine.name);
    const TurnedTree tree = turned_tree(machine.wires, machine.group, machine.loads(), machine.way());
    REQUIRE(tree.parent.size() == nth_of(machine.group.order()));
    CHECK(tree.inverse_rate == naive_inverse_rate(machine, tree.parent));
    CHECK(tree.inverse_rate >= as_double(gather_limit(machine.wires).inverse_rate) * (1 - 1e-12));
    int height = 0;
    for (int d = 0; d < machine.group.order(); ++d) {
      int depth = 0;
      for (int here = d; here != 0; here = tree.parent[nth_of(here)], ++depth)
        REQUIRE(tree.parent[nth_of(here)] < here);
      height = std::max(height, depth);
    }
    CHECK(tree.parent[0] == -1);
    CHECK(tree.height == height);
  }
}

TEST_CASE("on a ring of 4, a star of 8 and 2 x 8 GPUs no single tree is better than the turned one") {
  const std::vector<Symmetric> all = machines();
  const auto made = [](const Symmetric& machine) {
    return turned_tree(machine.wires, machine.group, machine.loads(), machine.way());
  };
  // Three messages of a root go two ways round: two of them one way. (Several trees could share them evenly: 3/2.)
  const TurnedTree ring = made(all[0]);
  CHECK(ring.inverse_rate == 2);
  CHECK(best_of_all_trees(all[0]) == 2);
  CHECK(as_double(gather_limit(all[0].wires).inverse_rate) == 1.5);
  CHECK(ring.height == 2);
  // Seven messages leave each port whatever the tree, so the lowest is taken: all from the root.
  const TurnedTree star = made(all[2]);
  CHECK(star.inverse_rate == 7);
  CHECK(best_of_all_trees(all[2]) == 7);
  CHECK(star.parent == std::vector<int>{-1, 0, 0, 0, 0, 0, 0, 0});
  // 15 messages come to each GPU, over NVLink with the rate of 12 NICs, and over one NIC. One of them over the NIC
  // takes 1, the other 14 take 14/12; two over the NIC would take 2, none 15/12.
  const TurnedTree boxes = made(all[4]);
  CHECK(boxes.inverse_rate == doctest::Approx(14.0 / 12));
  int across = 0;
  for (int d = 1; d < 16; ++d) across += boxes.parent[nth_of(d)] / 8 != d / 8 ? 1 : 0;
  CHECK(across == 1);
}

TEST_CASE("of parents that fill the machine equally, one that crosses fewer links is taken, then one near the root") {
  // The links between the leaves are so fast that only ports count, and every message takes one of each. The other
  // leaf's first rank has to be reached across, the others there need not.
  const Symmetric leaves = machines()[7];
  const TurnedTree tree = turned_tree(leaves.wires, leaves.group, leaves.loads(), leaves.way());
  CHECK(tree.parent == std::vector<int>{-1, 0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8});
  CHECK(tree.height == 2);
}

TEST_CASE("turns reach every displacement of every slice after its parent, and no step has more than its room") {
  for (const Symmetric& machine : machines()) {
    const TurnedLoads loads = machine.loads();
    const TurnedTree tree = turned_tree(machine.wires, machine.group, loads, machine.way());
    for (const int slices : {1, 2, 5, 16})
      for (const int lanes : {1, 2, 3}) {
        CAPTURE(machine.name);
        CAPTURE(slices);
        CAPTURE(lanes);
        const std::vector<int> turn = turns_of(tree, loads, machine.group, slices, lanes);
        CHECK(complaint_of_turns(turn, tree, loads, machine.group, slices, lanes) == "");
      }
  }
}

TEST_CASE("turns take as few steps as ports allow") {
  const std::vector<Symmetric> all = machines();
  const auto steps = [](const Symmetric& machine, int slices, int lanes) {
    const TurnedLoads loads = machine.loads();
    return steps_of(
        turns_of(turned_tree(machine.wires, machine.group, loads, machine.way()), loads, machine.group, slices, lanes));
  };
  for (const int slices : {1, 2, 3, 8}) {
    // One message per port and step, which all come from the root: 7 for each slice.
    for (const int lanes : {1, 2, 3}) CHECK(steps(all[2], slices, lanes) == 7 * slices);
    // Two messages of each slice go one way round, one of them after the other; the third goes the other way.
    CHECK(steps(all[0], slices, 1) == 2 * slices);
    // With lanes the second follows that many steps later: one more step for one slice, in which nothing else is
    // there to do, and with two lanes none for an even number of slices.
    CHECK(steps(all[0], slices, 2) == 2 * slices + slices % 2);
  }
  // 14 messages of each slice over NVLink, 1/12 of a step each, one over the NIC. 15 % more than a step has room for
  // 13 (12 without): 12 slices are 168, so 13 steps and at most two more in which they follow the NIC's.
  CHECK(steps(all[4], 12, 1) >= 13);
  CHECK(steps(all[4], 12, 1) <= 15);
  // 24 slices are 336: 26 steps of 13, but 28 of 12.
  CHECK(steps(all[4], 24, 1) <= 27);
}

}  // namespace turned_tree_test
