// The topologies in plain sight: what each takes, and the one function that builds any of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/topology/topology.hpp"
#include "topologies/fabrics/fabric.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim {

/// Ranks, each on one full-duplex port of an idle, non-blocking switch. `extra_ports` more endpoints (server0,
/// server1, ...) sit on ports after the ranks: helpers. Nodes: gpu0.., server0.., switch0.
struct Star {
  int ranks = 0;
  LinkSpec link;
  int extra_ports = 0;
};

/// Ranks in a closed ring, each cabled to the next. Two ranks: one cable; one rank: none.
struct Ring {
  int ranks = 0;
  LinkSpec link;
};

/// A cable between every two ranks.
struct FullMesh {
  int ranks = 0;
  LinkSpec link;
};

/// A grid of any dimension, closed in each; rank numbers vary fastest in the last dimension. A dimension of 2 has one
/// cable a pair, a dimension of 1 none.
struct Torus {
  std::vector<int> dimensions;
  LinkSpec link;
};

/// Any graph, as the user lists it; its gpus are the ranks, in the order listed.
struct Graph {
  struct NodeSpec {
    std::string name;
    NodeKind kind = NodeKind::gpu;
    std::optional<DeviceRates> rates;  ///< its own, instead of those of its kind
    std::string over;                  ///< the link of DeviceRates::over, "FROM -> TO"; empty: none
  };
  struct Cable {
    std::string from, to;
    LinkSpec link;         ///< link.duplex: full or half
    bool one_way = false;  ///< only from -> to
  };
  std::vector<NodeSpec> nodes;
  std::vector<Cable> links;
};

/// Other figures for the cables of a fabric between two nodes, by name: "leaf0" and "spine1", or "node3.nic0" and
/// "leaf0", where the NIC's port still counts as for every other cable.
struct CableChange {
  std::string from, to;  ///< in either order
  std::optional<Bandwidth> bandwidth;
  std::optional<Picoseconds> latency;
};

/// Machines, equal or not, joined by a fabric. Node names: node0.gpu0, node0.nic0; switches of the fabric: leaf0. Nodes
/// are numbered through all parts.
struct Cluster {
  struct Part {
    std::shared_ptr<const Machine> machine;
    int nodes = 1;
  };
  std::vector<Part> parts;
  std::optional<Fabric> fabric;      ///< needed if there is more than one node; a single node's NICs are not cabled
  std::vector<CableChange> changes;  ///< of the fabric's cables, each pair once
};

/// Equal nodes of a preset. Throws InputError (`where` empty) naming the nearest preset that exists.
Cluster cluster_of(const std::string& preset, int nodes = 1, std::optional<Fabric> fabric = std::nullopt);

using TopologySpec = std::variant<Star, Ring, FullMesh, Torus, Graph, Cluster>;

/// Builds it. Throws InputError; `where` is a JSON pointer within the topology ("/links/3/from"), or empty.
Topology build(const TopologySpec& spec);

/// How many ranks it will have, without building it.
std::size_t n_ranks(const TopologySpec& spec);

struct CatalogEntry {
  std::string name, summary;
};
/// For `ringsim list topologies` and `ringsim list nodes`.
std::vector<CatalogEntry> topology_catalog();
std::vector<CatalogEntry> fabric_catalog();  ///< in the order of Fabric
std::vector<CatalogEntry> node_catalog();

}  // namespace ringsim
