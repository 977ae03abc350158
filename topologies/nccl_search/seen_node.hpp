// A node as NCCL's topology search sees it: devices, links with the rates that NCCL takes them to have, and the ways
// between them.
//
// Source, described in our own words: NVIDIA/nccl 5067397c2676 (2.30.7) src/graph/topo.cc (ncclTopoGetSystemFromXml),
// src/graph/paths.cc (ncclTopoComputePaths, ncclTopoTrimSystem).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/topology/path_type.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim::nccl {

/// A GPU is two devices to NCCL: a `board`, which has the links, and the `gpu` on it, which has a rank (NCCL: DEV and
/// GPU). So is a NIC: `nic` is on PCIe, `net` is what data goes out by.
enum class SeenKind : std::uint8_t { gpu, pci, nvswitch, cpu, nic, net, board };
inline constexpr std::size_t n_seen_kinds = 7;

/// Rates are in GB/s (10^9), in single precision as in NCCL: rounding affects how much of a link several channels
/// leave, and so whether another one fits.
struct SeenLink {
  std::uint32_t from = 0, to = 0;  ///< index into SeenNode::devices
  PathType type = PathType::loc;   ///< loc, nvl, c2c, pix (PCIe), sys (between CPUs), net (a NIC's port)
  float rate = 0;
  bool operator==(const SeenLink&) const = default;
};

struct SeenDevice {
  SeenKind kind{};
  std::uint32_t number = 0;          ///< its place among those of its kind
  std::vector<std::uint32_t> links;  ///< index into SeenNode::links, in the order in which NCCL tries them
  std::string name;                  ///< of a GPU or net: the machine's device
  std::uint32_t board = 0;           ///< of a gpu
  int dev = 0;                       ///< of gpu and board: NVML's number
  int sm = 0;                        ///< of gpu and board
  bool gpudirect = true;             ///< of gpu and net
  float rate = 0;                    ///< of a net, GB/s; the search counts down from it
  std::uint64_t adapter = 0;         ///< of a net: its guid, which ports of one adapter share
  int port = 1;                      ///< of a net
  std::uint64_t pci_id = 0;          ///< of a pci: vendor, device, and the subsystem's
  bool intel = false, amd = false, power = false;  ///< of a cpu
  std::uint32_t host = 0;                          ///< of a cpu: CPUs that cables join are of one host
  std::uint32_t nearest_gpu = 0;                   ///< of a net: number of the gpu that NCCL prefers for it, or no_gpu
  bool operator==(const SeenDevice&) const = default;
};
inline constexpr std::uint32_t no_gpu = 0xFFFFFFFF;
inline constexpr float unbounded_rate = 5000;   ///< within a device: NCCL's LOC_BW
inline constexpr int most_channels_asked = 64;  ///< of which NICs are asked for: MAXCHANNELS

/// From a device to another: the links on the way, the rate of the slowest, and the farthest of their types.
struct SeenWay {
  std::vector<std::uint32_t> links;
  float rate = 0;
  PathType type = PathType::dir;  ///< dir: there is none
};

/// Settings of users, and defaults of releases.
struct SeenOptions {
  PathType p2p_level = PathType::pxb;  ///< how far apart GPUs may be to write into each other's memory
  /// How far apart the machine's GPUs may be to do so: Host::peer_access. Over NVLink they always may.
  PathType peer_access = PathType::sys;
  PathType gdr_level = PathType::p2c;  ///< how far apart GPU and NIC may be to exchange data directly
  bool pxn = true;                     ///< NICs of other GPUs may be reached over NVLink to these
  double nvlink = 0;                   ///< what a release takes one NVLink to have, GB/s; 0: as nvlink_bandwidth()
  bool operator==(const SeenOptions&) const = default;
};

/// A NIC as NCCL has it: a device of the machine and the rate of its port, GB/s.
struct SeenNic {
  std::uint32_t device = 0;
  double rate = 0;
  int adapters = 1;  ///< that a plugin has made one of, this the first: PCIe below it is as many times as wide
};

class SeenNode {
 public:
  /// `gpus`: those that take part, names of the machine; `nics`: those that NCCL uses. `nodes`: how many such nodes
  /// there are. Throws InputError (`where` empty) for a GPU without "sm".
  SeenNode(const Machine& machine, const std::vector<std::string>& gpus, const std::vector<SeenNic>& nics, int nodes,
           const SeenOptions& options);

  std::vector<SeenDevice> devices;
  std::vector<SeenLink> links;
  bool several_nodes = false;  ///< channels begin and end at NICs
  /// NCCL would also send between some of the GPUs by NICs, and take what these join for nodes. The ways here do not
  /// lead over NICs, as with NCCL_NET_DISABLE_INTRA=1.
  bool nics_join_gpus = false;
  int hosts = 1;

  std::size_t count(SeenKind kind) const { return of_kind(kind).size(); }
  const std::vector<std::uint32_t>& of_kind(SeenKind kind) const { return by_kind_[static_cast<std::size_t>(kind)]; }
  std::uint32_t device_of(SeenKind kind, std::size_t number) const { return of_kind(kind)[number]; }
  SeenDevice& at(SeenKind kind, std::size_t number) { return devices[device_of(kind, number)]; }
  const SeenDevice& at(SeenKind kind, std::size_t number) const { return devices[device_of(kind, number)]; }
  const SeenWay& way(std::uint32_t from, std::uint32_t to) const { return ways_[from * devices.size() + to]; }
  const SeenWay& way(SeenKind from, std::size_t i, SeenKind to, std::size_t j) const {
    return way(device_of(from, i), device_of(to, j));
  }
  /// The devices of a kind (their numbers) that `from` reaches fastest, of equals the nearest.
  std::vector<std::uint32_t> nearest(SeenKind from, std::size_t number, SeenKind to) const;
  /// The net (its number) that a gpu takes for a channel. Requires that it reaches one.
  std::uint32_t net_of(std::size_t gpu, int channel) const;
  std::uint32_t cpu_of(std::size_t gpu) const;  ///< number of the CPU that the gpu is at
  int least_sm() const;

 private:
  class Builder;
  void find_ways();
  void find_ways_to(std::uint32_t base);
  void go_over(SeenKind over, std::size_t o, SeenKind from, std::size_t f, SeenKind to, std::size_t t);
  bool peers(std::size_t from, std::size_t to, bool* relayed = nullptr) const;
  bool nics_are_faster(std::size_t one, std::size_t other) const;
  bool reaches_directly(std::size_t gpu, std::size_t net, bool reads) const;
  std::uint32_t relay(std::size_t gpu, std::size_t net) const;
  std::uint32_t gpu_of(std::size_t net) const;
  void relabel_chip_to_chip();
  void route_nets();
  SeenWay& way_(std::uint32_t from, std::uint32_t to) { return ways_[from * devices.size() + to]; }
  SeenWay& way_(SeenKind from, std::size_t i, SeenKind to, std::size_t j) {
    return way_(device_of(from, i), device_of(to, j));
  }

  SeenOptions options_;
  std::array<std::vector<std::uint32_t>, n_seen_kinds> by_kind_;
  std::vector<SeenWay> ways_;  // [from][to]
};

}  // namespace ringsim::nccl
