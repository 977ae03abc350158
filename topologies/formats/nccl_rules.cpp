#include "topologies/formats/nccl_rules.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::nccl {

namespace {

constexpr Bandwidth megabytes(std::int64_t n) { return {n * 1'000'000}; }

/// How far two bandwidths are apart, as a ratio of at least 1.
double apart(Bandwidth a, Bandwidth b) {
  const auto x = static_cast<double>(a.bytes_per_second), y = static_cast<double>(b.bytes_per_second);
  return x > y ? x / y : y / x;
}

const std::vector<std::pair<std::string, int>> models{
    {"P100", 60},  {"V100", 70},  {"A100", 80},     {"A800", 80},     {"A30", 80},    {"A10", 86},   {"A40", 86},
    {"L40S", 89},  {"H20", 90},   {"RTX 3090", 86}, {"RTX 4090", 89}, {"H100", 90},   {"H200", 90},  {"H800", 90},
    {"GH200", 90}, {"B200", 100}, {"GB200", 100},   {"B300", 103},    {"GB300", 103}, {"Rubin", 107}};

struct Assumed {
  Picoseconds latency;
  std::string_view reason;
};

/// The latencies of topologies/presets/dgx-1v.json, where each is derived.
Assumed latency_of(LinkKind kind) {
  using namespace std::chrono_literals;
  switch (kind) {
    case LinkKind::nvlink:
    case LinkKind::xgmi:
      return {600ns,
              "assumed: NCCL charges 0.6 us for a ring step of LL over NVLink (NVIDIA/nccl 5067397c2676 "
              "src/graph/tuning.cc); no figure for the link alone is published"};
    case LinkKind::c2c:  // below PCIe's: if a GPU has both, it is C2C that data takes, as NCCL has it
      return {300ns,
              "assumed: half of that of a direct NVLink, because the link stays on the module; no figure is published"};
    case LinkKind::pcie:
      return {350ns,
              "assumed: as on a DGX-1V, (2.38 - 2 * 0.5) / 4: 8 B from GPU to GPU over EDR take 2.38 us "
              "(aistabci/abci2.0benchmark f0aa27f2fbbb pt2pt), of which 0.5 us in each adapter, the rest on "
              "four PCIe links"};
    case LinkKind::socket:
      return {
          100ns,
          "assumed: the usual difference between a load from the memory of the other socket and one from local memory"};
    case LinkKind::infiniband:
    case LinkKind::ethernet:
      return {500ns,
              "assumed: the same as the adapter latency of EDR, stas00/ml-engineering 744d01e18b79 network/README.md"};
    case LinkKind::memory:
      return {100ns, "assumed: about one access to DRAM"};
    case LinkKind::generic:
    case LinkKind::copy:
    case LinkKind::reduce:
    case LinkKind::channel:
      break;
  }
  fail_invariant("an imported link is of a kind with a known latency");
}

struct Memory {
  std::string_view what;
  Bandwidth socket;  ///< peak of a socket
};

Memory memory_of(const CpuModel& cpu) {
  if (cpu.vendor == "GenuineIntel") {
    if (cpu.model >= 0x8F) return {"8 channels of DDR5-4800", megabytes(307'200)};
    if (cpu.model >= 0x55) return {"6 channels of DDR4-2666", megabytes(127'968)};
    return {"4 channels of DDR4-2133", megabytes(68'256)};
  }
  if (cpu.vendor == "AuthenticAMD") {
    // CPUID's family 25 (Zen 3 and 4), model 16 and up: Zen 4. Some files write both nibbles of CPUID: 0xAF is 0xA +
    // 0xF.
    const int family = cpu.family > 0x80 ? (cpu.family >> 4) + (cpu.family & 0xF) : cpu.family;
    if (family >= 26 || (family == 25 && cpu.model >= 16)) return {"12 channels of DDR5-4800", megabytes(460'800)};
    return {"8 channels of DDR4-3200", megabytes(204'800)};
  }
  return {"8 channels of DDR4-3200 (this CPU is unknown)", megabytes(204'800)};
}

}  // namespace

Bandwidth pcie_bandwidth(const PcieRate& rate, int width) { return {std::int64_t{12'500'000} * rate.k * width}; }

PcieLink nearest_pcie(Bandwidth bandwidth) {
  PcieLink best{&pcie_rates[0], 16};
  for (const int width : pcie_widths) {
    for (const PcieRate& rate : pcie_rates) {
      if (apart(pcie_bandwidth(rate, width), bandwidth) <
          apart(pcie_bandwidth(*best.rate, best.width), bandwidth) * (1 - 1e-12)) {
        best = {&rate, width};
      }
    }
  }
  return best;
}

Bandwidth nvlink_bandwidth(int sm) {
  if (sm == 107) return megabytes(38'000);
  if (sm >= 100) return megabytes(40'100);
  if (sm >= 90) return megabytes(20'600);
  if (sm == 86) return megabytes(12'000);
  if (sm >= 70) return megabytes(20'000);
  return megabytes(18'000);
}

std::string_view nvlink_type(int sm) {
  if (sm >= 100) return sm == 107 ? "" : "nvlink5";
  if (sm >= 90) return "nvlink4";
  if (sm >= 80) return sm == 80 ? "nvlink3" : "";
  return sm >= 70 ? "nvlink2" : "nvlink1";
}

double gpudirect_cost(int sm) { return sm == 70 ? 1.173 : 1; }

int most_nvlinks_of(int sm) {
  if (sm == 107) return 36;
  if (sm >= 90) return 18;
  if (sm >= 80) return 12;
  return sm >= 70 ? 6 : 4;
}

Bandwidth xgmi_bandwidth(std::string_view gcn) {
  if (gcn.starts_with("gfx94") || gcn.starts_with("gfx95") || gcn.starts_with("94") || gcn.starts_with("95")) {
    return megabytes(48'000);
  }
  if (gcn.starts_with("gfx90a") || gcn == "910") return megabytes(36'000);
  return megabytes(24'000);
}

InterSocket inter_socket(const CpuModel& cpu) {
  if (cpu.arch == "ppc64") return {megabytes(32'000), "P9_BW"};
  if (cpu.arch == "arm64") return {megabytes(6'000), "ARM_BW"};
  if (cpu.vendor == "AuthenticAMD") return {megabytes(16'000), "AMD_BW"};
  if (cpu.vendor == "GenuineIntel") {
    const bool counts = cpu.family == 6 || cpu.family == 0;  // 0: not known
    if (counts && cpu.model >= 0xCF) return {megabytes(40'000), "ERP_QPI_BW"};
    if (counts && cpu.model >= 0x8F) return {megabytes(22'000), "SRP_QPI_BW"};
    if (counts && cpu.model >= 0x55) return {megabytes(10'000), "SKL_QPI_BW"};
    return {megabytes(6'000), "BDW_QPI_BW"};
  }
  if (cpu.vendor == "  Shanghai  " || cpu.vendor == "CentaurHauls") {
    if (cpu.family == 7 && cpu.model == 0x5B) return {megabytes(9'000), "YONGFENG_ZPI_BW"};
    return {megabytes(6'000), "ZPI_BW"};
  }
  return {megabytes(12'000), "PCI_BW, assumed: NCCL does not know this CPU and would use LOC_BW, 5 TB/s"};
}

CpuModel nearest_cpu(Bandwidth bandwidth, bool intel) {
  const std::vector<CpuModel> known =
      intel ? std::vector<CpuModel>{{"x86_64", "GenuineIntel", 6, 0x4F},
                                    {"x86_64", "GenuineIntel", 6, 0x55},
                                    {"x86_64", "GenuineIntel", 6, 0x8F},
                                    {"x86_64", "GenuineIntel", 6, 0xCF}}
            : std::vector<CpuModel>{{"x86_64", "AuthenticAMD", 23, 49}, {"arm64", "ARM", 0, 0}};
  CpuModel best = known.front();
  for (const CpuModel& cpu : known) {
    if (apart(inter_socket(cpu).bandwidth, bandwidth) < apart(inter_socket(best).bandwidth, bandwidth)) best = cpu;
  }
  return best;
}

std::optional<int> sm_of(std::string_view model) {
  for (const auto& [name, sm] : models) {
    if (name == model) return sm;
  }
  return std::nullopt;
}

std::vector<std::string> gpu_models() {
  std::vector<std::string> names;
  for (const auto& [name, sm] : models) names.push_back(name);
  return names;
}

std::string how_to_say(std::string_view name, std::string_view example) {
  return fmt::format("--{0} {1} (\"{0}\" in a scenario's topology)", name, example);
}

LinkSpec link(LinkKind kind, Bandwidth bandwidth, const std::string& bandwidth_source) {
  const Assumed latency = latency_of(kind);
  return {.bandwidth = bandwidth,
          .latency = latency.latency,
          .kind = kind,
          .source = fmt::format("bandwidth: {}; latency: {}", bandwidth_source, latency.reason)};
}

LinkSpec switched(LinkSpec nvlink) {
  nvlink.latency /= 2;
  const std::size_t at = nvlink.source.rfind("; latency: ");
  nvlink.source.replace(
      at, std::string::npos,
      "; latency: assumed: half of the 0.6 us of a direct link, so that two GPUs over one NVSwitch also take the 0.6 "
      "us that NCCL charges for a ring step of LL over NVLink (NVIDIA/nccl 5067397c2676 src/graph/tuning.cc)");
  return nvlink;
}

LinkSpec memory(const CpuModel& cpu, std::size_t n_domains) {
  const Memory known = memory_of(cpu);
  const auto domains_a_socket = static_cast<std::int64_t>(n_domains > 2 ? n_domains / 2 : 1);
  // Three quarters of the peak: STREAM, as in topologies/presets/dgx-1v.json.
  LinkSpec out =
      link(LinkKind::memory, {known.socket.bytes_per_second / 4 * 3 / domains_a_socket},
           fmt::format("assumed: {} per socket{}, of which three quarters are reached (STREAM triad on two Xeon E5 v3: "
                       "pugetsystems.com/labs/hpc/memory-performance-for-intel-xeon-haswell-ep-ddr4-596); the file "
                       "does not describe the memory",
                       known.what,
                       domains_a_socket > 1 ? fmt::format(" over {} NUMA domains", domains_a_socket) : std::string()));
  out.duplex = Duplex::half;
  return out;
}

}  // namespace ringsim::nccl
