// Fabrics: what joins the machines of a cluster. One file a kind: fabric_star.cpp, fabric_leaf_spine.cpp...
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/topology/topology.hpp"

namespace ringsim {

/// Every NIC on one non-blocking switch. Nodes: leaf0.
struct StarFabric {
  LinkSpec link;  ///< the cable from a NIC to the switch; the slower of NIC and cable binds
};

/// Two levels of switches: the nodes of a rack on a leaf, every leaf on every spine. Nodes: leaf0.., spine0...
struct LeafSpine {
  int nodes_per_leaf = 0;
  int oversubscription = 1;        ///< n: the cables down to full racks have n times the rate of those up
  int spines = 0;                  ///< 0: one for each cable up from a leaf
  LinkSpec link;                   ///< NIC - leaf
  std::optional<LinkSpec> uplink;  ///< leaf - spine; default: as link
};

/// The three-level k-ary fat tree: pods of edge and aggregation switches, joined by cores. Nodes: edge0.., agg0..,
/// core0...
struct FatTree {
  int k = 0;                 ///< ports of a switch, even
  int oversubscription = 1;  ///< n: n times as many NICs on an edge switch as it has cables up
  LinkSpec link;             ///< every cable
};

/// A switch a rail: NIC i of every node of a group on the group's switch i; spines join the switches of all groups and
/// rails. Nodes: group0.rail0.., spine0...
struct RailFabric {
  int nodes_per_group = 0;
  int spines = 0;                  ///< 0: rails are not joined ("rail-only"); then there may be one group only
  int oversubscription = 1;        ///< as LeafSpine's
  LinkSpec link;                   ///< NIC - rail switch
  std::optional<LinkSpec> uplink;  ///< rail switch - spine; default: as link
};

/// A switch a node, the switches in a grid closed in each dimension. Nodes of the graph: switch0...
struct TorusFabric {
  std::vector<int> dimensions;  ///< their product is at least the number of nodes
  LinkSpec link;                ///< NIC - switch
  std::optional<LinkSpec> hop;  ///< switch - switch; default: as link
};

/// Groups of routers, a full mesh within a group, global cables between every two groups. Nodes: group0.router0...
struct Dragonfly {
  int groups = 0;                  ///< g of the paper
  int routers = 0;                 ///< of a group: a
  int nodes_per_router = 0;        ///< p
  int global_links = 0;            ///< ports of a router to other groups: h; 0: as few as join all groups
  LinkSpec link;                   ///< NIC - router
  std::optional<LinkSpec> local;   ///< router - router of one group; default: as link
  std::optional<LinkSpec> global;  ///< between groups; default: as link
};

using Fabric = std::variant<StarFabric, LeafSpine, FatTree, RailFabric, TorusFabric, Dragonfly>;

/// A NIC that a fabric has to cable.
struct NicPort {
  NodeId nic;
  std::uint32_t host = 0;   ///< which machine, from 0
  std::uint32_t index = 0;  ///< which NIC of its machine, from 0: its rail
  LinkSpec port;            ///< what the NIC offers
};

/// NIC and cable in series, as one link: the slower rate binds, the times add up.
LinkSpec through_port(const LinkSpec& port, const LinkSpec& cable);

/// Adds the fabric's switches and cables to machines that stand already. `ports` are in the order of hosts, then of
/// their NICs; there is at least one. Throws InputError at a pointer within the fabric ("/link/bandwidth").
void add_fabric(const Fabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);

/// The fabric's kind, as scenarios write it: "star", "leaf_spine", "fat_tree", "rail", "torus", "dragonfly".
std::string_view kind_of(const Fabric& fabric);

}  // namespace ringsim
