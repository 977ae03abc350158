// A topology as a graph for other programs.
#pragma once

#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim {

/// GraphML for NetworkX, Gephi, yEd: one directed edge a link. Nodes: name, kind, node (the machine it sits in; absent
/// for the fabric), rank (absent for what is none). Edges: kind, bandwidth_GBps, latency_us, duplex ("full", "half"),
/// joined; bottleneck (true) on the links that are `marked`, [link].
std::string to_graphml(const Topology& topology, const std::vector<bool>& marked = {});

/// Graphviz: one edge a cable (an arrow if it is one way), machines as clusters, lines as wide as the cable is fast
/// (the logarithm of its bandwidth), colored by kind; dashed and labeled if one of its directions is `marked`,
/// [link].
std::string to_dot(const Topology& topology, const std::vector<bool>& marked = {});

}  // namespace ringsim
