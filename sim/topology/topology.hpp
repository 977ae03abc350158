// The cluster as a graph: devices, and the directed, timed links between them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/topology/path_type.hpp"
#include "sim/topology/routing_policy.hpp"

namespace ringsim {

enum class NodeKind : std::uint8_t {
  gpu,
  cpu,          ///< a socket, or a NUMA domain of one
  host_bridge,  ///< a PCIe root complex; if none is listed, the CPU itself is it
  memory,
  pcie_switch,
  pcie_slot,  ///< where the functions of one PCI device meet: they share its link, which is no step of NCCL's paths
  nvswitch,
  nic,
  network_switch,
};
enum class LinkKind : std::uint8_t {
  generic,
  nvlink,
  xgmi,
  c2c,
  pcie,
  socket,
  memory,
  infiniband,
  ethernet,
  // Links of a device to itself (Topology::with_rates):
  copy,
  reduce,
  channel,
};
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
  std::uint16_t joined = 1;  ///< how many parallel links it stands for (NV12: 12); `bandwidth` is of all of them
  std::string source;        ///< where the numbers come from: a page, a file, "scenario"
  /// For a NIC's port: how the switches of its network choose among equally short ways. Nothing: the default of its
  /// kind.
  std::optional<RoutingPolicy> routing;
  /// Between sockets: what NCCL takes it to have when it decides, if that is not its bandwidth.
  std::optional<Bandwidth> nccl_bandwidth;
};
/// How the network of such a NIC's port routes: `port.routing`; else static tables for InfiniBand, whose subnet manager
/// fills a forwarding table by destination in every switch (InfiniBand Architecture Specification, linear forwarding
/// tables), ecmp for Ethernet, whose switches hash the fields of a flow (RFC 2992), and static for all else.
RoutingPolicy routing_of_port(const LinkSpec& port);

struct Node {
  std::string name;  ///< unique: "gpu0", "node1.nic0"
  NodeKind kind = NodeKind::gpu;
  /// Which machine it sits in; none for what belongs to the fabric. Data between hosts crosses a NIC.
  std::optional<std::uint32_t> host;
  bool idle = false;  ///< a NIC that is cabled, and by which no message leaves or enters its host
  /// A GPU or a NIC whose driver supports GPUDirect RDMA; a pair exchanges data directly only if both do.
  bool gpudirect = true;
  Bytes memory{};  ///< of a gpu; 0: not stated
};

/// A device's name within its host: "nic0" of "node1.nic0"; all of "switch0", which is in none (npos + 1 is 0).
constexpr std::string_view local_name(std::string_view name) { return name.substr(name.find('.') + 1); }

/// What a machine is, beyond its devices.
struct Host {
  /// The farthest at which its GPUs reach each other's memory over PCIe: `sys` everywhere, `loc` or `nvl` never (then
  /// what NVLink does not join goes through host memory).
  PathType peer_access = PathType::sys;
  /// What a byte from GPU to GPU takes on PCIe if a CPU is on its way: 1.2 on Intel, whose root complex forwards 64
  /// bytes at a time (NVIDIA/nccl 5067397c2676 src/graph/topo.h, INTEL_P2P_OVERHEAD).
  double peer_cost = 1;
  /// What a byte that a NIC reads from a GPU's memory (GPUDirect RDMA, what is sent) takes on the NIC's own PCIe link.
  /// A read waits for its answer, and a NIC has only so many under way: the longer the way to the GPU's memory, the
  /// less it reads. Writes need no answer.
  double gpudirect_cost = 1;
  int domains = 1;  ///< NUMA domains of a socket, each a CPU here
  /// nvidia-smi's word for devices on two host bridges of one CPU is NODE; SYS on machines with a PCI domain a bridge.
  bool bridges_apart = false;
};

/// The rule by which a switch of the topology chooses among equally good ways (sim/topology/routes.hpp).
enum class Ties : std::uint8_t {
  first,  ///< the lower latency, then the higher bandwidth, then the link that was added first
  /// The (d mod n)th of n, where d counts the NICs in the order of their cables to the fabric (D-mod-k: Zahavi, CCIT
  /// report 776, Technion, 2010).
  by_destination,
};

/// One direction of a cable. Links with the same resource share its bandwidth.
struct Link {
  NodeId from, to;
  Bandwidth bandwidth;
  Picoseconds latency{0};
  LinkKind kind = LinkKind::generic;
  std::uint16_t joined = 1;  ///< parallel links that it stands for
  ResourceId resource;
  std::uint32_t source = 0;  ///< index into Topology::sources()

  /// A device's own, which only Topology::with_rates() makes.
  bool leads_to_itself() const { return from == to; }
};

/// Something with a bandwidth: a link, or both directions of a half-duplex one.
struct Resource {
  Bandwidth bandwidth;
  LinkId link;          ///< the link it belongs to; of a half-duplex pair, the first
  bool shared = false;  ///< two links (the directions of a half-duplex cable) draw on it
};

/// Work of a device on data takes time if a rate is set. Assumed: rates do not depend on the message's size, and
/// an addition reads what has arrived, so that it begins when the message is there.
struct DeviceRates {
  /// Limits sends over links and local copies together; with `over`, local copies only.
  std::optional<Bandwidth> copy;
  std::optional<Bandwidth> reduce;  ///< of what it adds up
  /// Limits what one of its channels (a thread block) sends, over all receivers. Collectives that share a device share
  /// its channels.
  std::optional<Bandwidth> channel;
  /// Likewise of channels that come after those of with_rates(), each with a rate of its own.
  std::vector<Bandwidth> channels;
  /// What passes before the first byte of an addition, or of a copy within it: a kernel's launch.
  Picoseconds start{0};
  /// What it takes to post a message that leaves its host, one after another: a library's proxy thread.
  Picoseconds post{0};
  /// Additions and copies within it have no rates of their own, but draw on the bandwidth of this link: a memory that
  /// several ranks share. Alone they run at `reduce` and `copy`. They go on if the link is down.
  std::optional<LinkId> over;
};

/// DeviceRates as links that the network shares. Links of a device to itself come after all others in
/// Topology::links(), and are neither in links_from() nor in links_to(): only a run takes them.
struct DeviceLinks {
  struct Work {
    LinkId link = no_link;  ///< no_link: it takes no time
    double weight = 1;      ///< bytes that cross the link for each that is worked on
  };
  Work copy, reduce;  ///< what it sends crosses the link of `copy` first, if that has_own_resource()
  Picoseconds start{0};
  Picoseconds post{0};
  std::vector<LinkId> channels;  ///< [channel modulo their number] the same for one channel; empty: no limit
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
  /// True if the link was made with its resource: neither the second direction of a half-duplex cable, nor work of a
  /// device that draws on another link (DeviceRates::over).
  bool has_own_resource(LinkId id) const { return resource(link(id).resource).link == id; }
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const Link> links() const { return links_; }
  const std::string& source(const Link& link) const { return sources_[link.source]; }

  /// Ranks in order: rank r of a collective over the whole topology runs on ranks()[r].
  std::span<const NodeId> ranks() const { return ranks_; }
  /// Extra endpoints for helpers (parameter servers on ports of their own), in order.
  std::span<const NodeId> helpers() const { return helpers_; }

  /// The machines, by Node::host.
  std::span<const Host> hosts() const { return hosts_; }
  Ties ties() const { return ties_; }

  std::span<const LinkId> links_from(NodeId id) const;  ///< in the order in which they were added
  std::span<const LinkId> links_to(NodeId id) const;

  /// A copy with other bandwidths and latencies: `change` sees each link once, and leaves its ends as they are. The
  /// two directions of a half-duplex cable must agree; bandwidths must stay within what build() takes.
  Topology with_links(const std::function<void(Link&)>& change) const;

  /// A copy in which devices have rates: none if `rates` returns nothing. `channels`: how many each device has. A
  /// topology gets them once, as its last change.
  Topology with_rates(const std::function<std::optional<DeviceRates>(NodeId)>& rates, int channels) const;
  /// True if a device copies or adds at a rate somewhere.
  bool has_work_rates() const { return has_work_rates_; }
  /// True if posting a message takes time somewhere.
  bool has_posts() const { return has_posts_; }
  /// True if what a channel sends has a rate of its own somewhere.
  bool has_channel_rates() const { return has_channel_rates_; }
  /// What the device's work takes; none if it takes no time.
  const DeviceLinks* device(NodeId id) const;

  /// True if links differ in nothing but which nodes of the same kinds they join.
  bool are_alike(LinkId a, LinkId b) const;
  /// True if a message from one to the other leaves its host. What is in no host is one by itself.
  bool joins_hosts(NodeId from, NodeId to) const {
    return from != to && (!node(from).host || node(from).host != node(to).host);
  }

  std::optional<NodeId> find(std::string_view name) const;
  /// "FROM -> TO", as users write and read links; "gpu0 (reduce)" of a device to itself.
  std::string link_name(LinkId id) const;
  /// The link's name; "FROM <-> TO" if both directions draw on the resource.
  std::string resource_name(ResourceId id) const;

 private:
  friend class TopologyBuilder;
  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Resource> resources_;
  std::vector<std::string> sources_;
  std::vector<NodeId> ranks_, helpers_;
  std::vector<Host> hosts_;
  Ties ties_ = Ties::first;
  std::vector<DeviceLinks> devices_;
  std::vector<std::uint32_t> device_of_;  // [node] in devices_; UINT32_MAX: none
  bool has_work_rates_ = false, has_channel_rates_ = false, has_posts_ = false;
  // Compressed adjacency: links of node n are [first_out_[n], first_out_[n + 1]).
  std::vector<std::uint32_t> first_out_, first_in_;
  std::vector<LinkId> out_, in_;
  std::vector<NodeId> by_name_;  // in the order of the hashes of their names
};

/// Collects nodes and cables, then checks and freezes them.
class TopologyBuilder {
 public:
  /// Adds a device. Throws InputError if the name is taken.
  NodeId add_node(std::string name, NodeKind kind, std::optional<std::uint32_t> host = std::nullopt);
  /// The next rank runs here. add_gpu() = add_node() + add_rank().
  void add_rank(NodeId node);
  /// No message leaves or enters the NIC's host by it.
  void leave_idle(NodeId nic) { made_.nodes_[nic.value].idle = true; }
  /// The GPU or NIC does not support GPUDirect RDMA.
  void deny_gpudirect(NodeId device) { made_.nodes_[device.value].gpudirect = false; }
  void set_memory(NodeId gpu, Bytes memory) { made_.nodes_[gpu.value].memory = memory; }
  /// The next helper (a parameter server's port) sits here.
  void add_helper(NodeId node);
  NodeId add_gpu(std::string name, std::optional<std::uint32_t> host = std::nullopt);

  /// Says what host `number` is; without it a host is as Host{}.
  void describe_host(std::uint32_t number, const Host& host);
  void break_ties(Ties ties) { made_.ties_ = ties; }

  /// A cable: two links, a -> b and b -> a. Half duplex: both draw on one resource.
  void add_cable(NodeId a, NodeId b, const LinkSpec& spec);
  /// One direction only.
  void add_link(NodeId from, NodeId to, const LinkSpec& spec);

  std::optional<NodeId> find(std::string_view name) const;
  std::span<const Node> nodes() const { return made_.nodes(); }
  std::span<const Link> links() const { return made_.links(); }
  /// Gives every cable between the two nodes that was added as link `first` or later the figures that are there.
  /// Returns how many links changed.
  std::size_t change_cables(NodeId a, NodeId b, std::size_t first, std::optional<Bandwidth> bandwidth,
                            std::optional<Picoseconds> latency, const std::string& source);

  /// Checks the whole and returns it. Throws InputError: no rank; a link from a node to itself; a bandwidth of 0.
  Topology build();

 private:
  LinkId push_link(NodeId from, NodeId to, const LinkSpec& spec, ResourceId resource);
  std::uint32_t source_index(const std::string& text);

  Topology made_;
  std::unordered_map<std::string, NodeId> by_name_;
  std::unordered_map<std::string, std::uint32_t> source_ids_;
};

}  // namespace ringsim
