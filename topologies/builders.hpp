// What the catalog calls: one function a kind of topology, each in the .cpp of its name.
#pragma once

#include <cstdint>
#include <string>

#include "topologies/catalog.hpp"

namespace ringsim {

Topology build_star(const Star& spec);
Topology build_ring(const Ring& spec);
Topology build_full_mesh(const FullMesh& spec);
Topology build_torus(const Torus& spec);
Topology build_graph(const Graph& spec);
Topology build_cluster(const Cluster& spec);

std::size_t n_ranks_of(const Graph& spec);
std::size_t n_ranks_of(const Torus& spec);
std::size_t n_ranks_of(const Cluster& spec);

/// Throws InputError at `pointer` if `count` is less than 1.
void require_positive(std::int64_t count, const std::string& pointer);
/// Throws InputError at `pointer`/bandwidth or /latency if the link is impossible.
void require_usable(const LinkSpec& link, const std::string& pointer);
/// Throws InputError if a topology of this many nodes or cables would not fit into memory (and 32-bit ids).
void require_size(double n_nodes, double n_cables);

}  // namespace ringsim
