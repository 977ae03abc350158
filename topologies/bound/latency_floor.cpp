#include "topologies/bound/latency_floor.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

Picoseconds latency_floor(const Topology& topology, std::span<const NodeId> from, std::span<const NodeId> to,
                          const std::vector<bool>& used) {
  using Graph = boost::compressed_sparse_row_graph<boost::directedS, boost::no_property, std::int64_t>;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  std::vector<std::int64_t> latencies;
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    if (!used.empty() && !used[l]) continue;
    const Link& link = topology.link({l});
    ends.emplace_back(link.from.value, link.to.value);
    latencies.push_back(link.latency.count());
  }
  const Graph graph(boost::edges_are_unsorted_multi_pass, ends.begin(), ends.end(), latencies.begin(),
                    topology.n_nodes());
  std::vector<std::int64_t> distance(topology.n_nodes());
  constexpr auto never = Picoseconds::max().count();
  Picoseconds longest{0};
  for (const NodeId source : from) {
    boost::dijkstra_shortest_paths(
        graph, vertex(source.value, graph),
        boost::distance_map(boost::make_iterator_property_map(distance.begin(), get(boost::vertex_index, graph)))
            .weight_map(get(boost::edge_bundle, graph))
            .distance_inf(never));
    for (const NodeId target : to) {
      if (distance[target.value] == never)
        throw InputError("", "no path leads from " + topology.node(source).name + " to " + topology.node(target).name,
                         "every rank must be able to reach all others");
      longest = std::max(longest, Picoseconds{distance[target.value]});
    }
  }
  return longest;
}

}  // namespace ringsim
