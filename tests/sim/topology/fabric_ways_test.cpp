// Ways through fabrics as tables choose them (Ties::by_destination): where a fabric has room for all, no two flows of a
// shift pattern meet.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sim/topology/routes.hpp"
#include "tests/support/names.hpp"
#include "topologies/catalog.hpp"

namespace fabric_ways_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

constexpr int n_nics = 4;
const LinkSpec cable{.bandwidth = 10_GBps, .latency = 100_ps, .source = "test"};

Topology built(int nodes, const Fabric& fabric) {
  Machine machine;
  machine.devices.push_back({"gpu0", NodeKind::gpu, {}, {}});
  for (std::uint32_t i = 0; i < n_nics; ++i) {
    machine.devices.push_back({"nic" + std::to_string(i), NodeKind::nic, cable, {}});
    machine.cables.push_back({0, i + 1, cable});
  }
  return build(Cluster{{{std::make_shared<const Machine>(std::move(machine)), nodes}}, fabric, {}});
}

/// The most flows on one link, over all shifts: NIC i of node n sends to NIC i of node n + shift.
int most_on_a_link(int nodes, const Fabric& fabric) {
  const Topology t = built(nodes, fabric);
  Routes routes(t);
  const auto nic = [&](int node, int i) {
    return at(t, "node" + std::to_string(node % nodes) + ".nic" + std::to_string(i));
  };
  int most = 0;
  for (int shift = 1; shift < nodes; ++shift) {
    std::vector<int> load(t.n_links());
    for (int flow = 0; flow < nodes * n_nics; ++flow) {
      const int node = flow / n_nics, i = flow % n_nics;
      for (const Leg& leg : routes.find(nic(node, i), nic(node + shift, i)).legs) {
        for (const LinkId id : leg.links) most = std::max(most, ++load[id.value]);
      }
    }
  }
  return most;
}

}  // namespace

TEST_CASE("a shift of all nodes meets on no link of a fabric with room for all, parallel cables and rails included") {
  CHECK(most_on_a_link(16, LeafSpine{.nodes_per_leaf = 4, .link = cable}) == 1);
  CHECK(most_on_a_link(16, LeafSpine{.nodes_per_leaf = 4, .spines = 4, .link = cable}) == 1);  // 4 cables to each
  CHECK(most_on_a_link(16, LeafSpine{.nodes_per_leaf = 4, .spines = 1, .link = cable}) == 1);  // 16 cables to one
  CHECK(most_on_a_link(32, FatTree{.k = 8, .link = cable}) == 1);
  CHECK(most_on_a_link(32, RailFabric{.nodes_per_group = 8, .spines = 8, .link = cable}) == 1);
  CHECK(most_on_a_link(32, RailFabric{.nodes_per_group = 8, .spines = 2, .link = cable}) == 1);
}

TEST_CASE("where the cables up are n times too few, n flows of a shift meet and not more") {
  CHECK(most_on_a_link(16, LeafSpine{.nodes_per_leaf = 4, .oversubscription = 2, .link = cable}) == 2);
  CHECK(most_on_a_link(16, LeafSpine{.nodes_per_leaf = 4, .oversubscription = 4, .spines = 2, .link = cable}) == 4);
}

}  // namespace fabric_ways_test
