// NCCL's own estimate of how long a collective takes, by which it chooses algorithm and protocol: a baseline to beat.
//
// A description of the formula as code, with its constants as facts. Source: NVIDIA/nccl 5067397c2676 (2.30.7) and
// 920dbe5b (2.8.3): src/graph/tuning.cc (formula), src/graph/search.cc (channels), src/graph/topo.h (speeds of links);
// for the releases between, the same files of the tags v2.10.3-1 to v2.29.7-1.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/schedule/collective.hpp"
#include "sim/topology/path_type.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim::nccl {

struct NodeSearch;
struct SearchGraph;

/// Those whose choice differs; each stands for the releases up to the next one, v2_8_3 for all before as well. Not told
/// apart: 2.17, which has constants of its own for Hopper, and GPUs of 8.6 as Ampere's; 2.18.1, with another step of
/// trees; 2.28.7, which has another cap of LL128 on two nodes of Blackwell.
enum class Release {
  v2_8_3,
  v2_10,
  v2_12,
  v2_14,
  v2_18,
  v2_19,
  v2_20,
  v2_21,
  v2_23,
  v2_24,
  v2_27,
  v2_28,
  v2_28_9,
  v2_29,
  v2_29_7,
  v2_30_7
};
/// msccl: a schedule that RCCL brings along (topologies/rccl); NCCL has none.
enum class TunerAlgorithm { tree, ring, nvls, nvls_tree, pat, msccl };
enum class TunerProtocol { ll, ll128, simple };
/// "Tree", "Ring", "NVLS", "NVLSTree", "PAT": as NCCL_ALGO has it; "MSCCL".
std::string_view to_string(TunerAlgorithm algorithm);
std::string_view to_string(TunerProtocol protocol);  ///< "LL", "LL128", "Simple": as NCCL_PROTO has it

/// What NCCL's search for rings or trees found: so many at once, each with that speed (GB/s, 10^9).
struct Channels {
  int count = 0;  ///< 0: NCCL cannot use this algorithm here
  double inside = 0, between = 0;
  bool nvlink = false;  ///< NVLink leads from each GPU to the next
  bool ll128 = false;   ///< GPUs and NICs are near enough for LL128
  bool chains = false;  ///< trees: a node's first GPU alone sends and receives (pattern 3)
};

/// The software that moves data between nodes, as far as costs differ: attribute "provider" of NICs.
enum class NicProvider : std::uint8_t {
  verbs,  ///< InfiniBand and RoCE, and all that is not told apart
  cxi,    ///< Slingshot, by libfabric
  efa     ///< AWS's, by libfabric
};

/// What the formula asks of a machine.
struct TunerMachine {
  int nodes = 1, gpus = 1;    ///< GPUs per node
  int sm = 0;                 ///< compute capability of the GPUs, times 10
  bool nvlink = false;        ///< joins all GPUs of a node; else PCIe does
  bool amd = false;           ///< the CPUs are AMD's
  bool arm = false;           ///< the CPUs are Arm's: NVLink-C2C joins them to the GPUs (Grace)
  bool ll128 = false;         ///< NIC and GPU are no farther apart than PXB, GPUs are joined by NVLink
  bool same_rings = false;    ///< all channels visit the GPUs in one order
  bool through_host = false;  ///< some of a node's GPUs have only host memory between them: no NVLink, no peer access
  int rails = 1;              ///< NICs of each GPU, at least one
  int ports = 1;              ///< adapters behind one of NCCL's NICs; its rate is their sum
  NicProvider provider = NicProvider::verbs;
  double nic_GBps = 0;             ///< of the slowest NIC that is used, and its PCIe links
  double net_latency_us = 0;       ///< that the net plugin declares; of InfiniBand's own none
  int nvlinks = 0;                 ///< from a GPU to each of the others, or to the switches; of the pair that has least
  double nvlinks_GBps = 0;         ///< what these carry, as NCCL has it
  bool switched = false;           ///< they lead to NVSwitches, so that all peers share them
  bool crosses_nics = false;       ///< rings leave each node by another NIC than they enter it by
  bool cross_nic_decides = false;  ///< without users' NCCL_CROSS_NIC the search finds something else
  double pcie_GBps = 0;  ///< without NVLink: what rings in the GPUs' order have, by the speeds that NCCL knows
  Channels ring, tree, nvls;
  std::shared_ptr<const NodeSearch> search;  ///< what these are from; none if a file or another library says them

  int ranks() const { return nodes * gpus; }
};

/// The latency that aws-ofi-nccl declares, us: 150 on p3dn, 35 where adapters have 200 Gb/s and more (p5en, p6), else
/// 75 (aws/aws-ofi-nccl 2daf7d303aa1 src/platform-aws.cpp, platform_data_map; 75 is also its default).
double latency_of_aws_ofi_nccl(const TunerMachine& machine);

/// True if GPUs of that compute capability can do LL128 by that release, near enough to each other
/// (src/graph/tuning.cc).
bool knows_ll128(int sm, Release release);

/// How far apart GPUs of a node may be, over PCIe, to write into each other's memory: PXB, no CPU between them, but SYS
/// if the communicator has at most two GPUs per node and the CPUs are AMD's. Source: NVIDIA/nccl
/// src/graph/paths.cc, ncclTopoCheckP2p. Before 2.23 SYS with AMD's CPUs however many GPUs there are; in 2.8.3 as far
/// as the machine lets them (SYS). Users change it by NCCL_P2P_LEVEL and NCCL_P2P_DISABLE.
PathType p2p_level(const Machine& machine, int gpus, Release release);

/// True if NVLink-C2C joins CPUs to GPUs, as in Grace.
bool has_chip_to_chip(const Machine& machine);

/// Settings that affect the search, all of which users can change.
struct SearchSettings {
  std::optional<PathType> p2p_level;  ///< else p2p_level()
  std::optional<PathType> gdr_level;  ///< else that of the release
  int cross_nic = 2;                  ///< NCCL_CROSS_NIC
  bool pxn = true;                    ///< not NCCL_PXN_DISABLE=1
};

/// The first `gpus` GPUs of `nodes` such machines, as NCCL's tuner sees them. `nic`: the payload rate of each cable;
/// the search uses the line rate that belongs to it, which NCCL reads from the system. Ignored on one node.
///
/// Channels are those of NCCL's search (topologies/nccl_search), with these differences. Speeds, and the rates of
/// NVLink, are the release's; all else is as 2.30.7 has it. NICs do not join GPUs of one node, which NCCL would do
/// where they are faster than the CPUs. On Blackwell the search doubles fast channels; here they are as they were
/// before, as the sizes have it at which measured tables change protocol.
///
/// Throws InputError (`where` empty) for a machine that says no "sm" or has too few GPUs or, on several nodes, no NIC
/// to be cabled.
TunerMachine tuner_machine(const Machine& machine, int gpus, int nodes, Bandwidth nic, Release release,
                           const SearchSettings& settings = {});
/// As tuner_machine() above, for the GPUs of those names ("gpu0", "gpu2") of each node.
TunerMachine tuner_machine(const Machine& machine, const std::vector<std::string>& gpus, int nodes, Bandwidth nic,
                           Release release, const SearchSettings& settings = {});

/// A graph's channels as the tuner has them. On Blackwell those of 25 GB/s and more as they were before the search
/// doubled them (src/graph/search.cc, ncclTopoDupChannels): only so the sizes at which protocols change are those of
/// measured tables.
Channels channels_of(const SearchGraph& graph, const TunerMachine& machine, Release release);

/// Channels of the simulation for so many of NCCL's: one for each adapter behind a NIC.
int spread_over_ports(int channels, const TunerMachine& machine);

/// One way to do a collective: time = latency + bytes/bandwidth, before the corrections of tuner_time_us().
struct TunerChoice {
  TunerAlgorithm algorithm{};
  TunerProtocol protocol{};
  double latency_us = 0;
  double bandwidth_GBps = 0;  ///< of the algorithm: bytes over time
};

/// All that NCCL weighs for the op: empty for one that the formula does not cover (all but all_reduce, all_gather,
/// reduce_scatter, broadcast, reduce), or for one rank. Left out: CollNet, which needs a plugin.
std::vector<TunerChoice> tuner_choices(CollectiveOp op, const TunerMachine& machine, Release release);

/// What NCCL takes it to last, in microseconds.
double tuner_time_us(const TunerChoice& choice, CollectiveOp op, Bytes bytes, const TunerMachine& machine,
                     Release release);

/// What PAT moves, as a share of what NICs could: NCCL's own factor since 2.24 (src/graph/tuning.cc).
inline constexpr double pat_share = 0.75;

/// What trees between nodes move, as a share of what NICs could: NCCL's own measured corrections for their size
/// (treeCorrectionFactor of src/graph/tuning.cc; between its sizes, powers of two, evenly), and its cap on what a
/// channel brings (perChMaxTreeBws).
double tree_share(TunerProtocol protocol, CollectiveOp op, Bytes bytes, const TunerMachine& machine, Release release);

/// The share of rings by LL128 between nodes, one channel per NIC: NCCL's cap on a channel's rate
/// (perChMaxRingLL128Bws). Two DGX A100 reach 146 GB/s at 64 MiB; the caps of 8 channels add up to 160, the NICs would
/// carry 180.
double ring_ll128_share(const TunerMachine& machine);

}  // namespace ringsim::nccl
