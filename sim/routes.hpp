// Which way data takes from one device to another: legs of links, chosen by fixed rules and found with Boost.Graph.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sim/ids.hpp"
#include "sim/path_type.hpp"
#include "sim/topology.hpp"
#include "sim/units.hpp"

namespace ringsim {

/// The rooms in which data rests between two legs (a host bounce buffer, a relaying GPU): `depth` slots of `size`.
/// Default: NCCL's Simple protocol, a buffer of 4 MiB a connection in 8 steps (src/init.cc DEFAULT_BUFFSIZE,
/// src/include/device.h NCCL_STEPS).
struct Staging {
  Bytes size{512L * 1024};
  int depth = 8;
};

/// The rules by which paths are chosen.
struct Transport {
  /// GPUDirect RDMA: NIC and GPU exchange data through the PCIe switch between them, in one leg. Where it is off, or
  /// the two are farther apart than PXB (NCCL's default GDR level), data rests in host memory on its way.
  bool gpudirect = true;
  Staging staging;
};

/// A stretch within which bytes flow cut-through: all of its links are used at once.
struct Leg {
  std::vector<LinkId> links;  ///< in order, from the source on
  Picoseconds latency{0};     ///< the sum of its links'
};

struct Path {
  std::vector<Leg> legs;  ///< empty where source and destination are one device
  PathType type = PathType::loc;
};

/// Finds paths as they are asked for. Rules, in order:
///  1. Another host: by the NIC nearest to each GPU (PathType, then hops, then the lower number), over the fabric.
///     Between GPU and NIC as Transport says; host memory, where data is staged, is the nearest to the GPU by hops.
///  2. The same host: NVLink directly, through an NVSwitch, or relayed by one GPU (NVB, two legs; of several relays the
///     one whose narrower link is widest, then the lowest number); else the shortest way over PCIe and sockets.
///  3. Free topologies: the fewest hops; a GPU on the way is a relay (a leg ends there) and is used only where no way
///     without one exists.
/// Among equals the lower latency, then the higher bandwidth, then the link added first: one path a pair, always the
/// same. NICs, memories and, within a host, GPUs are never crossed.
/// Keeps a reference to the topology, which must outlive it. Not for use by several threads at once.
class Routes {
 public:
  Routes(const Topology& topology, Transport transport);
  ~Routes();
  Routes(Routes&&) noexcept;
  Routes& operator=(Routes&&) = delete;

  /// The path from one device to another. Throws InputError naming both where there is none.
  Path find(NodeId from, NodeId to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The smallest bandwidth on the path (its narrowest link), and the sum of its links' latencies.
Bandwidth narrowest(const Topology& topology, const Path& path);
Picoseconds latency(const Path& path);

}  // namespace ringsim
