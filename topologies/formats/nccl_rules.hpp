// What NCCL takes links to be, and what it does not say (latencies, memories) as ringsim takes it: one place for the
// importers and the exporter of NCCL's topology XML. NCCL: NVIDIA/nccl 5067397c2676 src/graph/topo.h and topo.cc.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim::nccl {

/// A PCIe generation: how NCCL writes it, and NCCL's bandwidth of a lane in units of 12.5 MB/s (GB/s = lanes * k / 80).
struct PcieRate {
  std::string_view text;
  double gigatransfers;
  int k;
};
inline constexpr std::array<PcieRate, 6> pcie_rates{{{"2.5 GT/s PCIe", 2.5, 15},
                                                     {"5.0 GT/s PCIe", 5, 30},
                                                     {"8.0 GT/s PCIe", 8, 60},
                                                     {"16.0 GT/s PCIe", 16, 120},
                                                     {"32.0 GT/s PCIe", 32, 240},
                                                     {"64.0 GT/s PCIe", 64, 480}}};
inline constexpr std::array<int, 5> pcie_widths{16, 8, 4, 2, 1};

Bandwidth pcie_bandwidth(const PcieRate& rate, int width);

struct PcieLink {
  const PcieRate* rate;
  int width;
};
/// The link whose bandwidth by NCCL is nearest (by ratio); of equals the widest.
PcieLink nearest_pcie(Bandwidth bandwidth);

/// One NVLink, one direction, by compute capability ("sm": 70, 80, 86, 90, 100, 103, 110, 120; topo.h,
/// ncclTopoNVLinkBw, takes all from 100 on alike). Rubin, sm 107, came with NCCL 2.31 and 2.32 (NVIDIA/nccl#2419),
/// whose sources were not at hand: its topology gives a GPU 1368 GB/s, twice 684 if it is split in two, over 36
/// links.
Bandwidth nvlink_bandwidth(int sm);
/// The type of link_types.json that a GPU of that capability has, whose rate is what copies reach, 23 GB/s of an A100
/// where NCCL takes 20; empty: no measured copies are known.
std::string_view nvlink_type(int sm);
/// How many times as long a PCIe link is busy when a NIC reads such a GPU's memory directly (Host::gpudirect_cost), by
/// compute capability. 1.173 for V100: 10.23 of the 12 GB/s of gen3 x16 (aistabci/abci2.0benchmark f0aa27f2fbbb pt2pt,
/// node V), assumed of all machines with V100, as in their presets; 1 for all others.
double gpudirect_cost(int sm);
/// How many NVLinks a GPU of that capability has at most: P100 4, V100 6, A100 12, H100 and B200 18 (NVIDIA's data
/// sheets and architecture white papers; NCCL's own limits, src/graph/xml.cc, ncclTopoGetXmlFromGpu), Rubin 36
/// (stas00/ml-engineering network/README.md: NVLink 6, 36 links of 50 GB/s).
int most_nvlinks_of(int sm);
/// One xGMI link by RCCL's constants: gcn "910" or "gfx90a..." 36 GB/s, gfx94, gfx95 and "940" 48, others 24.
/// ROCm/rccl src/graph/topo.h: VEGA_XGMI_WIDTH, MI200_XGMI_WIDTH, GFX94X_XGMI_WIDTH.
Bandwidth xgmi_bandwidth(std::string_view gcn);

/// What decides the bandwidth between two CPUs, as the XML has it. `family` and `model` are 0 if they are not known.
struct CpuModel {
  std::string_view arch = "x86_64", vendor;
  int family = 0, model = 0;
};
struct InterSocket {
  Bandwidth bandwidth;
  std::string rule;  ///< the constant's name, for sources
};
InterSocket inter_socket(const CpuModel& cpu);
/// The CPU of `vendor` whose inter-socket bandwidth by NCCL is nearest.
CpuModel nearest_cpu(Bandwidth bandwidth, bool intel);

/// Compute capability of a GPU model ("V100": 70); nothing if it is not known.
std::optional<int> sm_of(std::string_view model);
/// The models that sm_of() knows.
std::vector<std::string> gpu_models();

/// How users say what a file lacks: `--like NODE ("like" in a scenario's topology)`.
std::string how_to_say(std::string_view name, std::string_view example);

/// Links by kind with what NCCL does not say: latency and its reason. `bandwidth_source` says where the bandwidth is
/// from.
LinkSpec link(LinkKind kind, Bandwidth bandwidth, const std::string& bandwidth_source);
/// An NVLink to an NVSwitch: half the latency of one between GPUs, for a pair takes two of them.
LinkSpec switched(LinkSpec nvlink);
/// The memory of one of `n_domains` NUMA domains: half duplex, assumed by the CPU's model.
LinkSpec memory(const CpuModel& cpu, std::size_t n_domains);
}  // namespace ringsim::nccl
