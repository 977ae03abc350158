// The cluster as a graph: devices, and the directed, timed links between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/ids.hpp"
#include "sim/units.hpp"

namespace ringsim {

enum class NodeKind : std::uint8_t { gpu, cpu, memory, pcie_switch, nvswitch, nic, network_switch };
enum class LinkKind : std::uint8_t { generic, nvlink, pcie, socket, memory, infiniband, ethernet };
enum class Duplex : std::uint8_t {
  full,  ///< each direction has the bandwidth for itself
  half,  ///< both directions share one bandwidth (a bus, a memory)
};

std::string_view to_string(NodeKind kind);  ///< "gpu", "pcie_switch", ...
std::string_view to_string(LinkKind kind);  ///< "link", "nvlink", "pcie", ...

/// What a cable or a port is. `bandwidth` is what payload can reach, one direction.
struct LinkSpec {
  Bandwidth bandwidth;
  Picoseconds latency{0};
  LinkKind kind = LinkKind::generic;
  Duplex duplex = Duplex::full;
  std::string source;  ///< where the numbers come from: a page, a file, "scenario"
};

struct Node {
  std::string name;  ///< unique: "gpu0", "node1.nic0"
  NodeKind kind = NodeKind::gpu;
  /// Which machine it sits in; none for what belongs to the fabric. Data between hosts crosses a NIC.
  std::optional<std::uint32_t> host;
};

/// One direction of a cable. Links with the same resource share its bandwidth.
struct Link {
  NodeId from, to;
  Bandwidth bandwidth;
  Picoseconds latency{0};
  LinkKind kind = LinkKind::generic;
  ResourceId resource;
  std::uint32_t source = 0;  ///< index into Topology::sources()
};

/// Something with a bandwidth: a link, or both directions of a half-duplex one.
struct Resource {
  Bandwidth bandwidth;
  LinkId link;          ///< the link it belongs to; of a half-duplex pair, the first
  bool shared = false;  ///< two links (the directions of a half-duplex cable) draw on it
};

/// A finished cluster. Made by TopologyBuilder; never changes.
class Topology {
 public:
  std::size_t n_nodes() const { return nodes_.size(); }
  std::size_t n_links() const { return links_.size(); }
  std::size_t n_resources() const { return resources_.size(); }

  const Node& node(NodeId id) const { return nodes_[id.value]; }
  const Link& link(LinkId id) const { return links_[id.value]; }
  const Resource& resource(ResourceId id) const { return resources_[id.value]; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Link> links() const { return links_; }
  const std::string& source(const Link& link) const { return sources_[link.source]; }

  /// Ranks in order: rank r of a collective over the whole topology runs on ranks()[r].
  std::span<const NodeId> ranks() const { return ranks_; }
  /// Extra endpoints for helpers (parameter servers on ports of their own), in order.
  std::span<const NodeId> helpers() const { return helpers_; }

  std::span<const LinkId> links_from(NodeId id) const;  ///< in the order in which they were added
  std::span<const LinkId> links_to(NodeId id) const;

  std::optional<NodeId> find(std::string_view name) const;
  /// "FROM -> TO", as users write and read links.
  std::string link_name(LinkId id) const;
  /// The link's name; "FROM <-> TO" where both directions draw on the resource.
  std::string resource_name(ResourceId id) const;

 private:
  friend class TopologyBuilder;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Resource> resources_;
  std::vector<std::string> sources_;
  std::vector<NodeId> ranks_, helpers_;
  // Compressed adjacency: links of node n stand at [first_out_[n], first_out_[n + 1]).
  std::vector<std::uint32_t> first_out_, first_in_;
  std::vector<LinkId> out_, in_;
  std::unordered_map<std::string, NodeId> by_name_;
};

/// Collects nodes and cables, then checks and freezes them.
class TopologyBuilder {
 public:
  /// Adds a device. Throws InputError if the name is taken.
  NodeId add_node(std::string name, NodeKind kind, std::optional<std::uint32_t> host = std::nullopt);
  /// The next rank runs here. add_gpu() = add_node() + add_rank().
  void add_rank(NodeId node);
  /// The next helper (a parameter server's port) sits here.
  void add_helper(NodeId node);
  NodeId add_gpu(std::string name, std::optional<std::uint32_t> host = std::nullopt);

  /// A cable: two links, a -> b and b -> a. Half duplex: both draw on one resource.
  void add_cable(NodeId a, NodeId b, const LinkSpec& spec);
  /// One direction only.
  void add_link(NodeId from, NodeId to, const LinkSpec& spec);

  /// Checks the whole and returns it. Throws InputError: no rank; a link from a node to itself; a bandwidth of 0.
  Topology build();

 private:
  LinkId push_link(NodeId from, NodeId to, const LinkSpec& spec, ResourceId resource);
  std::uint32_t source_index(const std::string& text);

  Topology made_;
  std::unordered_map<std::string, std::uint32_t> source_ids_;
};

}  // namespace ringsim
