// A topology as bounds see it: a graph with whole capacities.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/topology/topology.hpp"
#include "topologies/bound/flow_graph.hpp"

namespace ringsim {

/// Devices, and what can cross their links at once. A half-duplex cable becomes a medium: a vertex that both ends send
/// to, an edge with the cable's bandwidth, and a vertex from which both ends receive.
struct Wires {
  struct Vertex {
    NodeId node = no_node;              ///< no_node: half a medium
    std::optional<std::uint32_t> host;  ///< Node::host; of a medium that of its first end
    int ranks = 0;                      ///< how many ranks sit here
  };
  struct Edge {
    int from = 0, to = 0;
    std::int64_t capacity = 0;  ///< in units of `unit`
    LinkId link = no_link;      ///< of a medium its first link; no_link: joins a device and a medium
  };
  struct Medium {
    int a = 0, b = 0;     ///< the devices at its ends
    int in = 0, out = 0;  ///< its two vertices
    std::int64_t capacity = 0;
    LinkId link = no_link;
  };
  std::vector<Vertex> vertices;
  std::vector<Edge> edges;
  std::vector<Medium> media;  ///< their edges are among `edges`
  std::vector<int> ranks;     ///< [rank] its vertex
  std::int64_t unit = 1;  ///< bytes per second of one unit of capacity: the greatest that makes all capacities whole

  int n_ranks() const { return static_cast<int>(ranks.size()); }
};

/// The links that count for these ranks. `used`: [link]; empty: all. `rates`: [link] bandwidths other than the
/// topology's; empty: the topology's. Devices that no counted link touches and that hold no rank are left out.
Wires wires_of(const Topology& topology, std::span<const NodeId> ranks, const std::vector<bool>& used = {},
               const std::vector<Bandwidth>& rates = {});

/// Every edge the other way round: a reduce-scatter is an all-gather there.
Wires reversed(const Wires& wires);

/// The edges as a flow graph, capacities times `factor`; edge e of the wires is edge e of the graph. Vertices keep
/// their numbers. Throws InputError if a product does not fit into 64 bits.
FlowGraph flow_graph(const Wires& wires, std::int64_t factor = 1);

/// What can leave disjoint sets of vertices, [set][vertex], together, in units of capacity: from each of them to all
/// else. A medium counts once, in whichever direction, whether or not its own vertices are in a set.
std::int64_t leaving(const Wires& wires, const std::vector<std::vector<bool>>& sets);
/// The links that it counts, in the order of the topology; of a medium the first link.
std::vector<LinkId> links_leaving(const Wires& wires, const std::vector<std::vector<bool>>& sets);

/// True if as much comes in as goes out at each vertex that holds no rank, so that every cut bound of an all-gather is
/// reached by trees (edge splitting: Bang-Jensen, Frank & Jackson, SIAM J. Discrete Math. 8 (1995)).
/// False if there are media: how trees share them is not known beforehand.
bool is_balanced(const Wires& wires);

}  // namespace ringsim
