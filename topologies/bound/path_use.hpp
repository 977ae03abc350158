// Which links data between ranks can cross, by the rules of a scenario's transport.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"
#include "topologies/bound/fraction.hpp"

namespace ringsim {

/// Links of one host that are alike (the same names but for numbers), and how often a byte crosses one of them on its
/// way into the host or out of it. Without GPUDirect a byte crosses the PCIe uplinks once more, to rest in host memory,
/// and host memory itself twice: no single cut shows that.
struct HostLinks {
  std::uint32_t host = 0;
  std::string name;                   ///< "node0.pcie* -> node0.cpu*"
  std::vector<ResourceId> resources;  ///< that are used at all
  Fraction in, out;                   ///< crossings per byte, the least over all pairs of ranks
};

struct PathUse {
  std::vector<bool> links;  ///< [link] whether data between two of the devices can cross it
  /// [link] what a byte takes of it at least, 1 or more (Leg::shares: peers over a CPU, adapters that read GPUs);
  /// empty: not known.
  std::vector<double> cost;
  std::vector<HostLinks> host_links;  ///< of hosts that data must enter or leave; those with no crossings left out
  /// False: there are too many, or a routing policy chooses among ways over GPUs that relay. Then all links count, and
  /// there are no host_links.
  bool all_pairs = true;
};

/// Pairs that are looked at, at most: a path takes about 2 us.
inline constexpr std::size_t most_pairs_of_paths = std::size_t{1} << 20;

/// The union of the paths between all pairs of devices (sim/topology/routes.hpp), over all ways that the routing policy
/// and the channels may take. Pairs without a path are left out. What other devices relay is made of such paths only if
/// those devices are named too. `down`: [link] out of use; empty: none.
PathUse path_use(const Topology& topology, std::span<const NodeId> devices, const Transport& transport,
                 const Routing& routing, const std::vector<bool>& down = {});

}  // namespace ringsim
