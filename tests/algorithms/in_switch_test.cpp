// Reduction in switches: the tree of switches that a topology has, and what it gains.
#include "algorithms/trees/in_switch.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "tests/support/tiny.hpp"
#include "topologies/search/reduction_tree.hpp"

namespace in_switch_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

Timeline run_in_switch(const Topology& net, Bytes bytes, int segments) {
  const ReductionTree tree = reduction_tree(net, net.ranks());
  RunOptions options;
  options.placement.assign(net.ranks().begin(), net.ranks().end());
  options.placement.insert(options.placement.end(), tree.switches.begin(), tree.switches.end());
  return run(net, check(in_switch_all_reduce(static_cast<int>(net.ranks().size()), bytes, tree.parents, segments)),
             options);
}

std::vector<std::string> names(const Topology& net, const ReductionTree& tree) {
  std::vector<std::string> found;
  for (const NodeId id : tree.switches) found.push_back(net.node(id).name);
  return found;
}

std::string refusal(const Topology& net) {
  try {
    reduction_tree(net, net.ranks());
    return "found";
  } catch (const InputError& error) {
    return error.message();
  }
}

const LinkSpec cable{.bandwidth = 10_GBps, .latency = 1'000'000_ps};

}  // namespace

TEST_CASE("on a star the switch itself adds: (s+1)(a/2 + p/(s b)), whatever the number of ranks") {
  for (const int n : {2, 5, 64}) {
    const Topology net = build(Star{n, cable});
    for (const int s : {1, 2, 16})
      CHECK(run_in_switch(net, 16'000'000_B, s).duration() ==
            times(s + 1, 1'000'000_ps + transfer_time({16'000'000 / s}, 10_GBps)));
  }
}

TEST_CASE(
    "in many segments and without latency it needs (1 + 1/s) p/b where a ring needs 2(K-1)/K p/b: busbw beyond the "
    "link's") {
  const int n = 16, s = 1000;
  const Bytes p = 16'000'000_B;
  const Topology net = build(Star{n, {.bandwidth = 10_GBps}});
  const Picoseconds one_p = transfer_time(p, 10_GBps);
  const Picoseconds in_switch = run_in_switch(net, p, s).duration();
  const Picoseconds ring = run(net, check(ring_all_reduce(n, p))).duration();
  CHECK(in_switch == one_p + one_p / s);
  CHECK(ring == 2 * (n - 1) * (one_p / n));
  CHECK(in_switch < ring);
  // As nccl-tests would print it: 2(n-1)/n p/t, here 18.73 GB/s over links of 10.
  const double busbw = 2.0 * (n - 1) / n * 16e6 / static_cast<double>(in_switch.count()) * 1e3;
  CHECK(busbw == doctest::Approx(2.0 * 15 / 16 * 10 * 1000 / 1001));
}

TEST_CASE("every port carries the buffer once each way, and nothing else moves") {
  const Topology net = build(Star{5, cable});
  const Timeline t = run_in_switch(net, 1000003_B, 7);
  for (const Bytes bytes : t.link_bytes) CHECK(bytes == 1000003_B);
  CHECK(t.transfers == 5 * 7 * 2);
}

TEST_CASE("an HGX H100 adds up in its NVSwitch, over NVLink alone") {
  const Topology net = build(cluster_of("hgx-h100"));
  const ReductionTree tree = reduction_tree(net, net.ranks());
  CHECK(names(net, tree) == std::vector<std::string>{"node0.nvswitch0"});
  CHECK(tree.parents == std::vector<Actor>{8, 8, 8, 8, 8, 8, 8, 8, -1});
  const Timeline t = run_in_switch(net, 64_MiB, 16);
  const LinkId up = link_between(net, "node0.gpu3", "node0.nvswitch0");
  REQUIRE(up.value != no_link.value);
  CHECK(t.link_bytes[up.value] == 64_MiB);
  CHECK(t.bytes_sent == 64_MiB * 16);
  for (std::uint32_t l = 0; l < net.n_links(); ++l)
    if (net.link({l}).kind != LinkKind::nvlink) CHECK(t.link_bytes[l] == 0_B);
  const Link& link = net.link(up);
  const Picoseconds each = link.latency + transfer_time({(64_MiB).count / 16}, link.bandwidth);
  CHECK(t.duration() == times(17, each));
  CHECK(t.duration() < run(net, check(ring_all_reduce(8, 64_MiB))).duration());
}

TEST_CASE("on leaves and spines the tree is that of the switches: leaves add up their racks, one spine the leaves") {
  //        spine0    spine1       the tree uses the first: equal from all leaves
  //       /  |  \   ...
  //   leaf0 leaf1 leaf2           2 nodes each; node5 hangs alone with node4 below leaf2
  const Topology net = build(cluster_of("hgx-h100", 6, LeafSpine{.nodes_per_leaf = 2, .spines = 2, .link = cable}));
  const ReductionTree tree = reduction_tree(net, net.ranks());
  CHECK(names(net, tree).size() == 4);
  const auto n = static_cast<Actor>(net.ranks().size());
  REQUIRE(tree.parents.size() == static_cast<std::size_t>(n) + 4);
  int roots = 0;
  std::vector<int> children(4);
  for (const Actor parent : tree.parents) {
    roots += parent < 0 ? 1 : 0;
    if (parent >= n) ++children[static_cast<std::size_t>(parent - n)];
  }
  CHECK(roots == 1);
  CHECK(std::count(children.begin(), children.end(), 16) == 3);  // the GPUs of two nodes
  CHECK(std::count(children.begin(), children.end(), 3) == 1);   // the leaves
  const Timeline t = run_in_switch(net, 1_MiB, 4);
  CHECK(t.transfers == (48 + 3) * 4 * 2);
  CHECK(t.bytes_sent == 1_MiB * ((48 + 3) * 2));
}

TEST_CASE("a switch of one child is passed through, not asked to add") {
  // gpu0, gpu1 - s0 - s1 - s2 - gpu2, gpu3: s1 joins two switches, and is the root, in the middle.
  Graph chain;
  for (const char* name : {"gpu0", "gpu1", "gpu2", "gpu3"}) chain.nodes.push_back({name, NodeKind::gpu});
  for (const char* name : {"s0", "s1", "s2", "s3"}) chain.nodes.push_back({name, NodeKind::network_switch});
  const auto join = [&](const char* a, const char* b) { chain.links.push_back({.from = a, .to = b, .link = cable}); };
  join("gpu0", "s0");
  join("gpu1", "s0");
  join("s0", "s1");
  join("s1", "s2");
  join("s2", "s3");
  join("gpu2", "s3");
  join("gpu3", "s3");
  const Topology net = build(chain);
  const ReductionTree tree = reduction_tree(net, net.ranks());
  // From s1 the farthest is 2 hops away, from s2 as well: the first. s2 on the way to s3 adds nothing.
  CHECK(names(net, tree) == std::vector<std::string>{"s0", "s1", "s3"});
  CHECK(tree.parents == std::vector<Actor>{4, 4, 6, 6, 5, -1, 5});
  CHECK(run_in_switch(net, 1000_B, 1).duration() == 2 * (cable.latency + transfer_time(1000_B, 10_GBps)) +
                                                        2 * (2 * cable.latency + transfer_time(1000_B, 10_GBps)));
}

TEST_CASE("where no switches join the ranks in_switch is refused") {
  CHECK(refusal(build(Ring{4, cable})) ==
        "in_switch: expected switches that connect all ranks, found none between gpu0 and gpu1");
  CHECK(refusal(build(cluster_of("dgx-1v"))) ==
        "in_switch: expected switches that connect all ranks, found none between node0.gpu0 and node0.gpu1");
  // A switch a rail: with spines they are joined, without them no switch sees all.
  const auto rails = [](int spines) {
    return build(cluster_of("hgx-h100", 2, RailFabric{.nodes_per_group = 2, .spines = spines, .link = cable}));
  };
  CHECK(refusal(rails(0)) ==
        "in_switch: expected switches that connect all ranks, found none between node0.gpu0 and node1.gpu7");
  CHECK(refusal(rails(1)) == "found");
  CHECK(reduction_tree(rails(1), rails(1).ranks()).switches.size() == 9);
  CHECK(refusal(build(Star{3, cable})) == "found");
}

}  // namespace in_switch_test
