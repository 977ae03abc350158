// What add_fabric() calls: one function a kind of fabric, each in the .cpp of its name; and what several of them share.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/catalog.hpp"
#include "topologies/fabrics/fabric.hpp"

namespace ringsim {

void add(const StarFabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);
void add(const LeafSpine& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);
void add(const FatTree& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);
void add(const RailFabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);
void add(const TorusFabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);
void add(const Dragonfly& fabric, std::span<const NicPort> ports, TopologyBuilder& builder);

/// Changes cables of the fabric, which begin at link `first`. Throws InputError at "/cables/0/from" if there is no such
/// node, no such cable, nothing to change, or a pair is listed twice.
void change_cables(std::span<const CableChange> changes, std::span<const NicPort> ports, std::size_t first,
                   TopologyBuilder& builder);

/// The machines that have ports: one more than the highest number.
std::uint32_t n_hosts(std::span<const NicPort> ports);
/// The most NICs that a machine has: one more than the highest index.
std::uint32_t n_rails(std::span<const NicPort> ports);

/// PREFIX0, PREFIX1...
std::vector<NodeId> add_switches(const std::string& prefix, std::size_t count, TopologyBuilder& builder);

/// A cable between switches: what was said, else as `link`; of the NICs' kind. Throws InputError at `pointer` if it
/// is impossible.
LinkSpec trunk(const std::optional<LinkSpec>& said, const LinkSpec& link, const std::string& pointer,
               std::span<const NicPort> ports);

/// How a switch with NICs below is joined to the spines.
struct Uplinks {
  std::size_t spines = 0;
  std::size_t per_spine = 0;  ///< parallel cables

  /// Cables of one switch to one spine stand together.
  void add(NodeId below, std::span<const NodeId> spine_nodes, const LinkSpec& cable, TopologyBuilder& builder) const;
};

/// What uplinks_of() is asked: the key that says how many nodes share a switch, and what they have.
struct Below {
  std::string key;  ///< "nodes_per_leaf"
  int nodes = 0;
  std::uint32_t nics = 0;  ///< of a node, on this switch
};

/// Whole cables for 1/oversubscription of what comes up from a full switch, spread evenly over the spines (0: one cable
/// each). Throws InputError at "/oversubscription" or "/spines" if that is not possible, with the nearest numbers
/// with which it is.
Uplinks uplinks_of(const Below& below, const LinkSpec& link, const LinkSpec& uplink, int oversubscription, int spines);

}  // namespace ringsim
