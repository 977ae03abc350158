// The links of a topology with other figures than published ones: what a calibration finds.
#pragma once

#include "topologies/catalog.hpp"

namespace ringsim {

/// Factors on what links have; 1 is as published.
struct LinkScales {
  double latency = 1;              ///< of every link, and of a NIC's port
  double inside = 1, between = 1;  ///< bandwidth of links within a host; of NICs' ports and of a fabric's cables
};

/// Scales every link. Links of a topology without hosts (star, ring, graph...) count as a fabric's. Bandwidths are
/// rounded to whole bytes per second, latencies to picoseconds. Throws InputError (`where` empty) if a bandwidth would
/// leave the allowed range, 1 B/s to 10^18 B/s.
void scale_links(TopologySpec& topology, const LinkScales& scales);

}  // namespace ringsim
