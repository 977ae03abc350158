// The inside of hosts: ways over NVLink and over PCIe, how near devices are, and which NICs they can use. Rules in
// sim/topology/routes.hpp.
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

/// A NIC that a device can use, and the way to it (or from it).
struct Port {
  NodeId nic;
  PathType type = PathType::loc;
  Way way;
  NodeId leaf;               ///< the switch it is cabled to
  std::uint32_t number = 0;  ///< among the cabled NICs of its host
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
  /// Two NVLinks that meet in a GPU, the one whose narrower link is widest; of equals the lowest number.
  std::optional<std::pair<LinkId, LinkId>> relay(NodeId from, NodeId to) const;
  /// How near the ends of a way over PCIe are, in NCCL's words. A CPU at an end counts: GPU to CPU is PHB, or C2C.
  PathType type_of(NodeId from, const Way& way) const;

  /// The host memory nearest to a device by hops, then the lower number, and the way to it (or from it); no_node where
  /// there is none.
  std::pair<NodeId, Way> nearest_memory(NodeId device, bool outward);
  /// The cabled NICs within a device's reach, nearest first. Kept, one list a device and direction: with it a path
  /// between hosts costs little more than its way over the fabric.
  const std::vector<Port>& ports(NodeId device, bool outward);
  /// The GPUs of the same host to which a GPU has NVLink, without a relay.
  std::vector<NodeId> nvlink_peers(NodeId gpu);
  /// Whether it is a NIC with a link that leaves its host.
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
  /// Calls visit(id) for the nodes of a device's host, in order.
  template <class Visit>
  void for_host_of(NodeId device, Visit visit) const;
  std::vector<Port> make_ports(NodeId device, bool outward);
  std::vector<Port> sorted_ports(NodeId device, bool outward);
  std::size_t sharers_before(NodeId device, bool outward, const std::vector<NodeId>& nearest);
  NodeId leaf_of(NodeId nic) const;
  bool is_up(LinkId link) const { return !usable_ || usable_(link); }
  bool has_cable_up(NodeId nic, bool outward) const;

  const Topology& topology_;
  const Usable usable_;
  std::vector<Span> spans_;  // [host]
  std::unique_ptr<Inside> last_inside_;
  std::unordered_map<std::uint64_t, std::optional<Way>> pcie_ways_;                  // by from << 32 | to
  std::unordered_map<std::uint32_t, std::vector<Port>> ports_out_, ports_in_;        // by device
  std::unordered_map<std::uint32_t, std::vector<NodeId>> nearest_out_, nearest_in_;  // by gpu: its nearest NICs
};

}  // namespace ringsim
