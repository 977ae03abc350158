// What joins two devices, as one line of a picture.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim::layout {

/// All links between two devices, parallel ones and both directions. Work of a device on its own data is no cable.
struct Cable {
  NodeId a, b;                      ///< a has the lower number
  std::vector<LinkId> there, back;  ///< a -> b, b -> a
  LinkKind kind = LinkKind::generic;
  /// "25 GB/s", "6 x 25 GB/s" (rounded to four digits); "... to gpu1 only", "... shared" where both directions draw on
  /// it, "10 GB/s to gpu1, 5 GB/s back" where they differ.
  std::string rate;
};

/// By a, then b.
std::vector<Cable> cables_of(const Topology& topology);

/// Equal numbers for devices that look alike in a picture: of one kind, with equally many links of the same kinds,
/// rates and latencies to the same kinds of devices. [node]
std::vector<std::size_t> likeness_of(const Topology& topology);

}  // namespace ringsim::layout
