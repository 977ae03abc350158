#include "topologies/catalog.hpp"

#include <string>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"

namespace ringsim {

namespace {
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;
}  // namespace

Topology build(const TopologySpec& spec) {
  return std::visit(Overloaded{
                        [](const Star& s) { return build_star(s); },
                        [](const Ring& s) { return build_ring(s); },
                        [](const FullMesh& s) { return build_full_mesh(s); },
                        [](const Torus& s) { return build_torus(s); },
                        [](const Graph& s) { return build_graph(s); },
                        [](const Cluster& s) { return build_cluster(s); },
                    },
                    spec);
}

std::vector<CatalogEntry> topology_catalog() {
  return {
      {"star", "every rank on a full-duplex port of one non-blocking switch"},
      {"ring", "ranks in a closed ring, each connected to the next"},
      {"full_mesh", "a cable between every two ranks"},
      {"torus", "a torus with any number of dimensions"},
      {"graph", "any nodes and links; the nodes of kind gpu are the ranks"},
      {"cluster", "machines, identical or not, connected by a fabric"},
      {"nccl_xml", "machines described by an NCCL topology XML file, connected by a fabric"},
      {"nvidia_smi", "machines described by the matrix of nvidia-smi topo -m, connected by a fabric"},
  };
}

std::vector<CatalogEntry> fabric_catalog() {
  return {
      {"star", "every NIC on one non-blocking switch"},
      {"leaf_spine", "the nodes of a rack on one leaf, every leaf on every spine; optionally n:1 oversubscribed"},
      {"fat_tree", "the three-level k-ary fat tree of edge, aggregation and core switches with k ports"},
      {"rail", "NIC i of every node on rail switch i; the rails are connected by spines or not at all"},
      {"torus", "one switch per node; the switches form a torus"},
      {"dragonfly", "groups of routers: a full mesh within each group, global cables between every two groups"},
  };
}

std::size_t n_ranks(const TopologySpec& spec) {
  const auto counted = [](int ranks) {
    require_positive(ranks, "/ranks");
    return static_cast<std::size_t>(ranks);
  };
  return std::visit(Overloaded{
                        [&](const Star& s) { return counted(s.ranks); },
                        [&](const Ring& s) { return counted(s.ranks); },
                        [&](const FullMesh& s) { return counted(s.ranks); },
                        [](const Torus& s) { return n_ranks_of(s); },
                        [](const Graph& s) { return n_ranks_of(s); },
                        [](const Cluster& s) { return n_ranks_of(s); },
                    },
                    spec);
}

void require_positive(std::int64_t count, const std::string& pointer) {
  if (count < 1) throw InputError(pointer, "expected a count of at least 1, found " + std::to_string(count));
}

void require_usable(const LinkSpec& link, const std::string& pointer) {
  if (link.bandwidth.bytes_per_second <= 0) {
    throw InputError(pointer + "/bandwidth", "expected a rate of at least 1 B/s, found " +
                                                 std::to_string(link.bandwidth.bytes_per_second) + " B/s");
  }
  if (link.latency.count() < 0) {
    throw InputError(pointer + "/latency",
                     "expected a time of 0 or more, found " + std::to_string(link.latency.count()) + " ps");
  }
}

void require_size(double n_nodes, double n_cables) {
  // A link takes about 60 bytes with its place in both indices, so this is some 12 GB: beyond it nothing would run.
  constexpr double most = 1e8;
  if (n_nodes <= most && n_cables <= most) return;
  throw InputError("", "the topology is too large: at most 100 million nodes and as many cables can be built",
                   "use fewer ranks, or a topology with fewer cables");
}

}  // namespace ringsim
