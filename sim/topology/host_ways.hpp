// The inside of hosts: ways over NVLink and over PCIe, how near devices are, and the NICs. Rules in
// sim/topology/routes.hpp; which NIC a device uses is NicChoice's matter.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/topology/cheapest_way.hpp"
#include "sim/topology/path_type.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A NIC with a cable to the fabric.
struct CabledNic {
  NodeId id;
  std::uint32_t number = 0;  ///< among the cabled NICs of its host, those included whose cable is down
};

/// Keeps a reference to the topology. Both ends of a way are of one host. Searches of one host are kept at a time.
class HostWays {
 public:
  /// `usable`: the links that are not down; a NIC with no such cable in a direction is no port in it.
  explicit HostWays(const Topology& topology, Usable usable = {});

  /// Over NVLink (or xGMI), directly or through NVSwitches.
  std::optional<Way> nvlink(NodeId from, NodeId to);
  /// Over PCIe, sockets and chip-to-chip links. Kept: staged data asks for the same few ways again and again.
  const std::optional<Way>& pcie(NodeId from, NodeId to);
  /// As pcie(), but not kept.
  std::optional<Way> search_pcie(NodeId from, NodeId to);
  /// The way that data takes over PCIe if ACS redirects it: if `way` would turn round in a PCIe switch, on up to the
  /// first host bridge or CPU, and down again. Other ways, and those below a switch that leads to neither, stay.
  Way redirected(const Way& way);
  /// Two NVLinks that meet in a GPU, the one whose narrower link is widest; of equals the lowest number.
  std::optional<std::pair<LinkId, LinkId>> relay(NodeId from, NodeId to) const;
  /// How near the ends of a way over PCIe are, in NCCL's words. A CPU at an end counts: GPU to CPU is PHB, or C2C.
  PathType type_of(NodeId from, const Way& way) const;

  /// The host memory nearest to a device by hops, then the lower number, and the way to it (or from it); no_node if
  /// there is none.
  std::pair<NodeId, Way> nearest_memory(NodeId device, bool outward);
  /// The devices of that kind in a device's host, in the order of their ids.
  std::vector<NodeId> nodes_of(NodeId device, NodeKind kind) const;
  /// The NICs of a device's host whose cable is not down, in the order of their ids. `outward`: to send.
  std::vector<CabledNic> cabled_nics(NodeId device, bool outward) const;
  /// The widest cable of a NIC; 0 if all are down. `outward`: from it, else to it.
  Bandwidth cable_of(NodeId nic, bool outward) const;
  /// The first switch to which a NIC is cabled; no_node if there is none.
  NodeId leaf_of(NodeId nic) const;
  /// True if no link is down.
  bool all_up() const { return !usable_; }
  /// True if it is a NIC with a link that leaves its host.
  bool is_cabled_nic(NodeId id) const;

 private:
  /// The ids of a host's nodes lie in [first, last).
  struct Span {
    std::uint32_t first = UINT32_MAX, last = 0;
  };
  /// Both ways of looking at one host's inside.
  struct Inside {
    std::uint32_t host;
    CheapestWay nvlink, pcie;
  };

  Inside& inside(NodeId device);
  /// From a PCIe switch to the nearest host bridge or CPU; empty if no CPU is reached.
  Way way_to_root(NodeId pcie_switch);
  /// Calls visit(id) for the nodes of a device's host, in order.
  template <class Visit>
  void for_host_of(NodeId device, Visit visit) const;
  bool is_up(LinkId link) const { return !usable_ || usable_(link); }

  const Topology& topology_;
  const Usable usable_;
  std::vector<Span> spans_;  // [host]
  std::unique_ptr<Inside> last_inside_;
  std::unordered_map<std::uint64_t, std::optional<Way>> pcie_ways_;  // by from << 32 | to
};

}  // namespace ringsim
