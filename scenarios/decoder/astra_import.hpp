// ASTRA-sim's inputs as a scenario: network.yml of its analytical backend, and system.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace ringsim::scenarios {

struct AstraFile {
  std::string text, name;
};

struct AstraOptions {
  std::string op;                   ///< "all_reduce", "reduce_scatter", "all_gather", "all_to_all"
  Bytes bytes;                      ///< of the collective, as `collective.bytes`
  std::vector<std::string> ignore;  ///< keys that are left out although they have an effect
};

struct ImportedScenario {
  std::string text;  ///< JSON
  std::vector<std::string> warnings;
};

/// A scenario that takes the time which ASTRA-sim's analytical backend without congestion takes, to the ns but for what
/// the warnings say. Without a system the algorithm is `ring`. Source: astra-sim/astra-network-analytical 599a047,
/// astra-sim/astra-sim 518bd51.
///
/// network.yml: topology, npus_count, bandwidth, latency, lists of one value, as there is one dimension.
///   Ring, Switch, FullyConnected are `ring`, `star` and `full_mesh`; a message takes hops * latency + size /
///   bandwidth, 1 GB/s being 2^30 B/s (common/NetworkFunction.cpp).
/// system.json: all-reduce-implementation and the keys of other operations: ring, direct or halvingDoubling;
///   endpoint-delay d: each message waits d before it is sent (system/MemBus.cc), which is part of the path's latency
///   here; local-mem-bw: an addition is a write and two reads (system/PacketBundle.cc), 10^9 bytes being a GB: a third
///   of it is `devices.gpu.reduce`. preferred-dataset-splits: 1.
///
/// Throws InputError that names file and line or key for anything else: what is unknown or not the same here can be
/// left out by `ignore`.
ImportedScenario import_astra(const AstraFile& network, const std::optional<AstraFile>& system,
                              const AstraOptions& options);

}  // namespace ringsim::scenarios
