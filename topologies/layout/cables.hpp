// What joins two devices, as one line of a picture.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim::layout {

/// All links between two devices, parallel ones and both directions. Work of a device on its own data is no cable.
struct Cable {
  NodeId a, b;                      ///< a has the lower number
  std::vector<LinkId> there, back;  ///< a -> b, b -> a
  LinkKind kind = LinkKind::generic;
  /// "25 GB/s", "6 x 25 GB/s" (rounded to four digits); "... to gpu1 only", "... shared" if both directions draw on
  /// it, "10 GB/s to gpu1, 5 GB/s back" if they differ.
  std::string rate;
};

/// By a, then b.
std::vector<Cable> cables_of(const Topology& topology);

/// What tells links apart from others of the same figures: "25 %", of a fault. Links that are not in it have nothing.
using LinkMarks = std::map<LinkId, std::string>;

/// Equal numbers for devices that look alike in a picture: of one kind, with equally many links of the same kinds,
/// rates, latencies and marks to the same kinds of devices. [node]
std::vector<std::size_t> likeness_of(const Topology& topology, const LinkMarks& marks = {});

}  // namespace ringsim::layout
