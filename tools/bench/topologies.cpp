#include "tools/bench/topologies.hpp"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "topologies/catalog.hpp"

namespace ringsim::bench {

using namespace ringsim::literals;

// Rates and times assumed, of the size that 400 Gb/s InfiniBand and PCIe 5.0 have: only who shares what matters here.
Topology leaf_spine(int nodes, int nodes_per_leaf, int oversubscription) {
  const LinkSpec cable{.bandwidth = 50_GBps, .latency = Picoseconds{500'000}, .kind = LinkKind::infiniband};
  Machine machine;
  machine.devices.push_back({"gpu0", NodeKind::gpu, {}, {}});
  machine.devices.push_back({"nic0", NodeKind::nic, cable, {}});
  machine.cables.push_back({0, 1, {.bandwidth = 64_GBps, .latency = Picoseconds{300'000}, .kind = LinkKind::pcie}});
  const LeafSpine fabric{.nodes_per_leaf = nodes_per_leaf, .oversubscription = oversubscription, .link = cable};
  return build(Cluster{{{std::make_shared<const Machine>(std::move(machine)), nodes}}, fabric, {}});
}

Topology fat_tree(int k) {
  const LinkSpec cable{.bandwidth = 50_GBps, .latency = Picoseconds{500'000}, .kind = LinkKind::infiniband};
  const auto m = static_cast<std::uint32_t>(k) / 2;
  TopologyBuilder builder;
  const auto add_many = [&](const char* name, NodeKind kind, std::uint32_t count) {
    std::vector<NodeId> made;
    for (std::uint32_t i = 0; i < count; ++i)
      made.push_back(kind == NodeKind::gpu ? builder.add_gpu(fmt::format("{}{}", name, i))
                                           : builder.add_node(fmt::format("{}{}", name, i), kind));
    return made;
  };
  const std::vector<NodeId> hosts = add_many("gpu", NodeKind::gpu, 2 * m * m * m);
  const std::vector<NodeId> edges = add_many("edge", NodeKind::network_switch, 2 * m * m);
  const std::vector<NodeId> aggs = add_many("agg", NodeKind::network_switch, 2 * m * m);
  const std::vector<NodeId> cores = add_many("core", NodeKind::network_switch, m * m);
  for (std::uint32_t h = 0; h < hosts.size(); ++h) builder.add_cable(hosts[h], edges[h / m], cable);
  for (std::uint32_t e = 0; e < edges.size(); ++e)
    for (std::uint32_t a = 0; a < m; ++a) builder.add_cable(edges[e], aggs[e / m * m + a], cable);
  for (std::uint32_t a = 0; a < aggs.size(); ++a)
    for (std::uint32_t c = 0; c < m; ++c) builder.add_cable(aggs[a], cores[a % m * m + c], cable);
  return builder.build();
}

}  // namespace ringsim::bench
