// Which NIC of its host a GPU's messages take, and through which other GPU they reach it: NCCL's rule.
//
// After NCCL 2.30.7 (NVIDIA/nccl 5067397c2676), described in our own words:
//
//  1. Reach (src/graph/paths.cc, ncclTopoComputePaths). A path joins every GPU of a host to every NIC. It has a type
//  and
//     a bandwidth, that of its narrowest link, the NIC's cable included. Three corrections follow in this order. Of
//     the NICs that a GPU reaches over a chip-to-chip link the nearest are P2C, farther ones PHB. PXN: a GPU reaches a
//     NIC through the NIC's local GPU if that has NVLink to it and GPUDirect to the NIC at P2C or nearer, and either a
//     wider path to the NIC or spares the other a way through a CPU. And what is nearer than PHB, but beyond
//     GPUDirect's reach, goes through the GPU's CPU.
//  2. Local NICs of a GPU (src/graph/topo.cc, ncclTopoGetLocal, ncclTopoGetLocalNet): those with the widest path, of
//     these those with the nearest type. If several GPUs have the same ones they are dealt out by the GPU's number,
//     with its bits mirrored if there are 2, 4, 8 ... NICs; if there are more NICs than GPUs each GPU has
//     several, and its channels take turns.
//  3. The local GPU of a NIC (ncclTopoGetLocalGpu): of the GPUs with the best path from the NIC the first for which the
//     NIC is local in the sense of 2.
//  4. A receiver takes its own local NIC. A sender takes the NIC on the receiver's rail: the one that is local to the
//     GPU of the sender's host that has the receiver's number (src/graph/search.cc, ncclTopoGetNetDev). In collectives
//     it goes there by PXN if its own path to that NIC is of that type (src/graph/paths.cc,
//     ncclTopoGetIntermediateRank). In point-to-point operations it goes through the NIC's local GPU even if it
//     could reach the NIC itself, so that messages meet in one place (NCCL_P2P_PXN_LEVEL 2, NCCL's default). If it
//     cannot, or without PXN, it takes its own local NIC, and the fabric has to join the rails.
//
// Left out: NCCL's search for rings and trees gives each channel of a collective its NIC. Here the rule of
// point-to-point operations stands for all of them, unless Transport::channel_nics has what a search found. Also: GPUs
// that take no part in a communicator count, and GPUs older than sm80 without NVLink are taken to have GPUDirect for
// sends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/topology/host_ways.hpp"
#include "sim/topology/path_type.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A NIC by which data leaves or enters a host.
struct Gate {
  NodeId nic = no_node;
  PathType type = PathType::loc;  ///< between the NIC and the device, or the `proxy`
  NodeId proxy = no_node;         ///< PXN: the GPU through which the sender reaches the NIC
  std::uint32_t number = 0;       ///< of the NIC among the cabled ones of its host
  int rank = 0;                   ///< in NicChoice::gates(): 0 for the best and those that equal it
};

/// Keeps references to the topology and its hosts; one table a host, made when it is first asked for.
class NicChoice {
 public:
  NicChoice(const Topology& topology, HostWays& hosts, const Transport& transport);
  ~NicChoice();

  /// NCCL's choice for a message from one host to another: how it leaves, how it enters. No NIC if a device reaches
  /// none, or is not a GPU of a host. Whether the fabric joins the two is for the caller to see.
  ///
  /// `channel`: if a GPU has several local NICs, its channels take turns. Without one, usual_channel() stands for
  /// all of them (Transport::Nics::nearest); a policy by which each channel leaves by its own NIC hands its number in
  /// here.
  Gate exit(NodeId from, NodeId to, std::optional<int> channel = std::nullopt);
  Gate entry(NodeId to, std::optional<int> channel = std::nullopt);
  /// The channel for messages that take one NIC. NCCL's channels spread a GPU without a NIC of its own over all that
  /// are equally good; if there is one channel, such GPUs are dealt out instead: the ith has channel i.
  int usual_channel(NodeId gpu);

  /// All NICs that a device can use, best first: for a GPU widest and nearest by rule 1 (a sender's PXN included), for
  /// other devices those with the fastest cable, of these nearest first; of equals the lower number. `outward`: to
  /// send.
  std::vector<Gate> gates(NodeId device, bool outward);

 private:
  struct Table;
  const Table* table(NodeId gpu, bool outward);
  const std::optional<Way>& way_of(NodeId device, NodeId nic, bool outward);
  std::uint16_t said_nic(const Table& table, std::size_t gpu, std::optional<int> channel) const;
  Gate gate_of(NodeId device, const CabledNic& nic, bool is_proxy, bool outward);
  Gate gate_of(const Table& table, std::size_t gpu, std::size_t nic, std::size_t by, bool outward);

  const Topology& topology_;
  HostWays& hosts_;
  const Transport transport_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Table>> tables_;  // by 2 * host + outward
};

}  // namespace ringsim
