// Which way data takes from one device to another: legs of links, chosen by fixed rules and found with Boost.Graph.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/topology/path_type.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// The rooms of a connection in which data rests between two legs (a host bounce buffer, a relaying GPU): `depth` slots
/// of `size`. Default: NCCL's Simple protocol, a buffer of 4 MiB a connection in 8 steps (src/init.cc DEFAULT_BUFFSIZE,
/// src/include/device.h NCCL_STEPS).
struct Staging {
  Bytes size{512L * 1024};
  int depth = 8;

  bool operator==(const Staging&) const = default;
};

/// The NIC of each GPU by channel, with the names that both have within a host ("gpu0", "nic0"), the same on all hosts.
struct ChannelNics {
  /// Channels of the run; a connection's number modulo this is its channel (the two trees of a channel are two
  /// connections).
  int channels = 1;
  std::vector<std::map<std::string, std::string, std::less<>>> nic_of;  ///< [channel modulo their number] by GPU
  /// nullptr: nothing is said of that GPU.
  const std::string* find(int connection, std::string_view gpu) const;

  bool operator==(const ChannelNics&) const = default;
};

/// The rules by which paths between devices are chosen, NCCL's if it has them.
struct Transport {
  /// NIC and GPU exchange data directly, in one leg (GPUDirect RDMA), up to this distance; beyond it data rests in host
  /// memory. P2C is NCCL's default: PXB, and P2C if the NIC sits behind a chip-to-chip link. LOC: never.
  PathType gdr_level = PathType::p2c;
  /// GPUs and NICs without GPUDirect (Node::gpudirect) are used as if they had it.
  bool assumes_gpudirect = false;
  /// GPUs of a host reach each other's memory up to this distance, as far as the machine lets them
  /// (Host::peer_access); beyond it data rests in host memory. LOC: never, not even over NVLink.
  PathType p2p_level = PathType::sys;
  /// A GPU may send through a NIC that is local to another GPU of its host, over NVLink to that GPU: to reach the
  /// receiver's rail, or for want of a NIC of its own. Needs GPUDirect at that NIC. Sends only, as in NCCL.
  bool pxn = true;
  /// The messages are of NCCL's point-to-point operations (send/receive, all-to-all, scatter, gather), not of a
  /// collective: with PXN they go through the NIC's local GPU even if the sender reaches the NIC itself. Of a
  /// scenario with jobs, its own collective decides for all.
  bool point_to_point = false;
  /// PCIe switches redirect what goes from one of their ports to another (ACS, P2P request redirect): up to the root
  /// complex and down again. NCCL does not account for it, so it changes no choice.
  bool acs = false;
  /// A byte that a NIC reads from a GPU costs Host::gpudirect_cost. Off if a machine is looked at as NCCL does,
  /// which has no such cost.
  bool gpudirect_costs = true;
  /// The bytes between GPUs and NICs take the links of GPUDirect at any gdr_level: Protocol::in_host_memory. Which NIC
  /// is chosen depends on gdr_level all the same.
  bool always_direct = false;
  enum class Nics : std::uint8_t {
    nearest,      ///< a message takes one NIC at each end
    all,          ///< it is cut into equal parts, one for each NIC of the host
    per_channel,  ///< one NIC, and the channels of a GPU that has several local ones take turns, as NCCL's do
  } nics = Nics::nearest;
  /// With per_channel: what is known of GPUs and NICs, instead of NCCL's rule; nullptr: nothing. A NIC that is down is
  /// not taken.
  std::shared_ptr<const ChannelNics> channel_nics;
  Staging staging;
};

/// Transport::gdr_level of a GPU and a NIC: LOC if one of them has no GPUDirect. NVIDIA/nccl 5067397c2676
/// src/graph/paths.cc, ncclTopoCheckGdr: asked first of NIC and GPU, before any distance, so that no
/// NCCL_NET_GDR_LEVEL overrides it.
PathType gdr_level_of(const Transport& transport, const Node& gpu, const Node& nic);

/// How the fabric chooses among ways that are equally short (fewest relays, then fewest hops).
struct Routing {
  using Policy = RoutingPolicy;
  Policy policy = Policy::fixed;
  std::uint64_t seed = 0;
  /// Entries of the tables, for `fixed`: data at `at` for the NIC `to` goes on to `via`; `to` no_node: for all without
  /// an entry of their own that are not neighbors of `at`. Of two for the same the last counts.
  struct Entry {
    NodeId at, to, via;
  };
  std::vector<Entry> table;
};
/// The most ways among which `flow_spray` takes turns.
inline constexpr std::uint32_t max_sprayed = 256;

/// A stretch within which bytes flow cut-through: all of its links are used at once.
struct Leg {
  std::vector<LinkId> links;  ///< in order, from the source on
  Picoseconds latency{0};     ///< the sum of its links'; of several ways the longest
  /// How many bytes cross each link for each byte that is moved, [link]; empty: one. Less if packets are spread over
  /// several ways, more if a byte costs more than one (Host::peer_cost, gpudirect_cost).
  std::vector<double> shares;
  Picoseconds beyond{0};  ///< latency at its end that is not its links': a protocol's

  double share(std::size_t i) const { return shares.empty() ? 1 : shares[i]; }
};

struct Path {
  std::vector<Leg> legs;  ///< empty if source and destination are one device
  PathType type = PathType::loc;
  /// Between hosts: how near GPU and NIC are at the sending and at the receiving end.
  PathType out = PathType::loc, in = PathType::loc;
  /// Labels from here on lead over ways that smaller ones have led over; at most max_sprayed.
  std::uint32_t turns = 1;
  /// True if the fabric has other ways that are as short, whichever the routing takes.
  bool has_choice = false;
};

/// The NIC by which a path leaves its host, and that by which it enters the other; nothing within a host.
std::optional<NodeId> first_nic(const Topology& topology, const Path& path);
std::optional<NodeId> last_nic(const Topology& topology, const Path& path);

/// Finds paths as they are asked for. Rules, in order:
///  1. Another host. Between GPUs, NICs are chosen by NCCL's rule (sim/topology/nic_choice.hpp) if the fabric joins
///     them: the receiver's is the one that is local to it, the sender's the one on the receiver's rail, by PXN if need
///     be; else its own. If the fabric does not join these two: the receiver's best NIC that is joined
///     to any of the sender's, and the sender's best of those. Other devices use their nearest NIC. Data is staged in
///     the host memory nearest to the GPU by hops.
///  2. The same host: NVLink directly, through an NVSwitch, or relayed by one GPU (NVB, two legs; of several relays the
///     one whose narrower link is widest, then the lowest number); else the shortest way over PCIe and sockets, in one
///     leg if GPUs have peer access, else through the host memory nearest to the receiver (NCCL's default for its
///     shared memory: src/transport/shm.cc, NCCL_SHM_LOCALITY).
///  3. Free topologies: the fewest hops; a GPU on the way is a relay (a leg ends there) and is used only if no way
///     without one exists.
/// A switch can also be an end (in-switch reduction): an NVSwitch of its host's GPUs, a switch of the fabric of all.
/// Among equals in 1 and 3 as Routing says; within a host the lower latency, then the higher bandwidth, then the link
/// added first. NICs, memories and, within a host, GPUs are never crossed.
/// Keeps a reference to the topology, which must outlive it. Not for use by several threads at once.
class Routes {
 public:
  /// `down`: links out of use, [link]; empty: none. A NIC whose cable is down is not used; a way over a link that is
  /// down does not exist.
  explicit Routes(const Topology& topology, const Transport& transport = {}, Routing routing = {},
                  std::vector<bool> down = {});
  ~Routes();
  Routes(Routes&&) noexcept;
  Routes& operator=(Routes&&) = delete;

  /// The path from one device to another. `label`: the flow's channel (`ecmp`, Nics::per_channel), or its number among
  /// the pair's messages (`flow_spray`); otherwise it is not looked at. Throws InputError naming both ends if there
  /// is none.
  Path find(NodeId from, NodeId to, std::uint32_t label = 0);
  /// The paths of the equal parts of a message: one, or with Nics::all and between hosts one for each NIC.
  std::vector<Path> find_parts(NodeId from, NodeId to, std::uint32_t label = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The smallest bandwidth on the path (its narrowest link), and the sum of its links' latencies.
Bandwidth narrowest(const Topology& topology, const Path& path);
Picoseconds latency(const Path& path);

}  // namespace ringsim
