// The links of a topology with other figures than published ones: what a calibration finds.
#pragma once

#include <array>
#include <string_view>

#include "sim/topology/topology.hpp"
#include "topologies/catalog.hpp"

namespace ringsim {

/// Factors on what links have; 1 is as published.
struct LinkScales {
  double latency = 1;              ///< of every link, and of a NIC's port
  double inside = 1, between = 1;  ///< bandwidth of links within a host; of NICs' ports and of a fabric's cables
};

/// Scales every link. Links of a topology without hosts (star, ring, graph...) count as a fabric's. Bandwidths are
/// rounded to whole bytes per second, latencies to picoseconds. Throws InputError (`where` empty) if a bandwidth would
/// leave the allowed range, 1 B/s to max_bandwidth.
void scale_links(TopologySpec& topology, const LinkScales& scales);

/// What people change together: links of one kind within a machine, the ports of NICs with their cables, the cables
/// between switches. `other`: cables of a topology without NICs (star, ring, graph ...).
enum class LinkClass : std::uint8_t { nvlink, xgmi, c2c, pcie, socket, memory, nic, fabric, other };
inline constexpr std::array link_classes{LinkClass::nvlink, LinkClass::xgmi,   LinkClass::c2c,
                                         LinkClass::pcie,   LinkClass::socket, LinkClass::memory,
                                         LinkClass::nic,    LinkClass::fabric, LinkClass::other};
std::string_view to_string(LinkClass link_class);  ///< "nvlink", "nic", ...; of `other` "link"
LinkClass class_of(const Topology& topology, const Link& link);
/// Its class's name; of what a device does within itself: copy, reduce or channel.
std::string_view class_name(const Topology& topology, const Link& link);

/// Factors on the links of a finished topology; 1 leaves them as they are.
struct ClassScales {
  std::array<double, link_classes.size()> bandwidth{1, 1, 1, 1, 1, 1, 1, 1, 1};  ///< [LinkClass]
  double latency = 1;                                                            ///< of every link

  bool operator==(const ClassScales&) const = default;
};

/// Rounded as by scale_links(); throws the same.
Topology scaled(const Topology& topology, const ClassScales& scales);

}  // namespace ringsim
