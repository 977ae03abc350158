#include "topologies/nccl/nccl_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/base/error.hpp"

namespace ringsim::nccl {

namespace {

enum Generation : std::uint8_t { volta, ampere, hopper, blackwell };
constexpr std::array<const char*, 4> generation_names{"Volta and before", "Ampere", "Hopper", "Blackwell"};
constexpr std::array<const char*, 3> protocol_names{"ll", "ll128", "simple"};  // [TunerProtocol]

Generation generation_of(int sm) { return sm >= 100 ? blackwell : sm >= 90 ? hopper : sm >= 80 ? ampere : volta; }

/// What a step takes beyond the latencies of its links, in us: `fixed`, and up to `full` more as a channel's chunk
/// grows to `width` bytes (ramp_width). LL and LL128 pass on words, so a block with few of them is done sooner; Simple
/// fences each slice.
struct StepCost {
  double fixed, full;
};

/// Times in us, rates in GB/s (10^9), shares of what copies reach over NVLink, which is the rate of the links.
struct KernelCosts {
  double launch;                             // from the call to the first step, with the harness
  std::array<StepCost, 3> step;              // over NVLink [protocol]
  std::array<double, 3> once;                // of a collective [protocol]
  std::array<double, 3> nvlink;              // share [protocol]; LL: of its bytes with flags
  std::array<std::int64_t, 3> copy, reduce;  // of a rank's own part [protocol]; 0: it takes no time
  StepCost sends;                            // of sends and receives to all peers: of LL; what Simple takes more
  double sends_nvlink;                       // share
  std::int64_t sends_copy;
  double nvls, nvls_once, nvls_fill;  // share through the switch; us once, and us more for large buffers
};

// Fitted on open tables, by protocol and generation, none by table: cost_table() says on which. Read off their floors
// (512 B to 2 KiB), the rows on both sides of a change of protocol, and slopes from 256 to 512 MiB.
constexpr std::array<KernelCosts, 4> costs = {{{.launch = 4.7,
                                                .step = {{{0, 2.4}, {2.4, 3}, {3.1, 6}}},
                                                .once = {0, 12, 3},
                                                .nvlink = {1, 0.94, 0.94},
                                                .copy = {0, 0, 0},
                                                .reduce = {0, 0, 0},
                                                .sends = {2, 5.5},
                                                .sends_nvlink = 0.94,
                                                .sends_copy = 0,
                                                .nvls = 1,
                                                .nvls_once = 0,
                                                .nvls_fill = 0},
                                               {.launch = 8,
                                                .step = {{{0.39, 0.7}, {1.09, 1.4}, {1.3, 8.6}}},
                                                .once = {0, 8, 9.9},
                                                .nvlink = {1.196, 0.85, 0.852},
                                                .copy = {96, 300, 482},
                                                .reduce = {96, 300, 630},
                                                .sends = {2.2, 7},
                                                .sends_nvlink = 0.797,
                                                .sends_copy = 749,
                                                .nvls = 1,
                                                .nvls_once = 0,
                                                .nvls_fill = 0},
                                               {.launch = 4.7,
                                                .step = {{{0.19, 0.3}, {0.79, 0.3}, {1.3, 4.6}}},
                                                .once = {0, 6, 5.9},
                                                .nvlink = {0.98, 0.95, 0.973},
                                                .copy = {214, 600, 1088},
                                                .reduce = {214, 600, 1300},
                                                .sends = {1.1, 5.5},
                                                .sends_nvlink = 0.848,
                                                .sends_copy = 1000,
                                                .nvls = 0.7,
                                                .nvls_once = 17,
                                                .nvls_fill = 59},
                                               {.launch = 7.5,
                                                .step = {{{0.66, 0.15}, {1.3, 0.3}, {1.3, 4.5}}},
                                                .once = {0, 8, 5},
                                                .nvlink = {0.77, 0.945, 0.945},
                                                .copy = {291, 800, 1403},
                                                .reduce = {291, 800, 1210},
                                                .sends = {1.2, 6},
                                                .sends_nvlink = 0.928,
                                                .sends_copy = 708,
                                                .nvls = 0.6,
                                                .nvls_once = 14,
                                                .nvls_fill = 68}}};
// Of all generations.
struct PcieCosts {
  double launch;                            // us
  std::array<std::int64_t, 3> copy;         // of a rank's own part, or added up, GB/s [protocol]
  std::int64_t through_host, sends_to_all;  // most that a GPU moves of Simple through host memory, and of sends, GB/s
  double host_read;                         // us of a step more where the receiver reads host memory
};
constexpr PcieCosts over_pcie{
    .launch = 4.7, .copy = {60, 100, 100}, .through_host = 27, .sends_to_all = 26, .host_read = 0.5};
constexpr std::array<StepCost, 3> pcie = {{{0, 0.4}, {1.5, 0.4}, {1.3, 3.4}}};  // [protocol]
// Posting, polling, flushing. LL goes through host memory on both sides (src/transport/net.cc, sendProxyConnect: `p !=
// NCCL_PROTO_LL`), where a proxy looks at every flag and a thread reads 8 bytes at a time: so it grows to a whole
// chunk.
constexpr std::array<StepCost, 3> network = {{{0.5, 20}, {2, 13}, {11.3, 30}}};  // [protocol]
constexpr std::array<double, 3> network_width = {32'768, 65'536, 196'608};       // bytes [protocol]
// Where libfabric's cxi drives the adapter: us of a step of Simple more, full at ramp_width. Its larger messages begin
// with a handshake (FI_CXI_RDZV_THRESHOLD); whether that is the cause, the tables do not say.
constexpr double cxi_simple = 25;
constexpr double of_tree_network = 2.5;  // more in trees, as the tuner has it: 5.0 us of LL, in rings 2.7
constexpr std::array<double, 3> ramp_width = {8'192, 65'536, 65'536};  // bytes
constexpr double a_gpu_more = 7.4;   // us of launch for each GPU beyond one that a thread calls
constexpr double a_peer = 0.3;       // us more for each peer beyond one, of sends to all
constexpr double nvls_width = 14e6;  // bytes by which most of nvls_fill is there

Picoseconds micros(double value) { return Picoseconds{std::llround(value * 1e3) * 1000}; }
Bandwidth gigabytes_a_second(std::int64_t rate) { return {rate * 1'000'000'000}; }

const Protocol& plain_protocol(TunerProtocol protocol) {
  const Protocol* found = find_protocol(protocol_names[static_cast<std::size_t>(protocol)]);
  ensure(found != nullptr, "NCCL's protocols are those of the simulator");
  return *found;
}

/// Of what rings over PCIe have, the share that a rate is.
double share_of(std::int64_t rate, const TunerMachine& machine) {
  const double all = machine.ring.count * machine.ring.inside;
  return std::min(1.0, static_cast<double>(rate) / all);
}

/// How much of StepCost::full a step takes at the chunk's size, in a node and between nodes.
class Steps {
 public:
  Steps(const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work) {
    const auto p = static_cast<std::size_t>(plan.protocol);
    const auto chunk = static_cast<double>(work.chunk.count);
    // One slice a chunk where others have two (src/include/collectives.h), so one fence.
    const bool one_slice = work.op == CollectiveOp::broadcast || work.op == CollectiveOp::reduce;
    const double fences = plan.protocol == TunerProtocol::simple && one_slice ? 0.5 : 1;
    grown_ = fences * std::min(1.0, chunk / ramp_width[p]);
    between_ = fences * std::min(1.0, chunk / network_width[p]);
    if (plan.protocol != TunerProtocol::ll || machine.nodes == 1) return;
    const bool passes_on = one_slice || sends_to_peers(work.op);
    // Chains, and sends to many at once, pass lines on as they come.
    if (passes_on) between_ = std::min(between_, ramp_width[p] / network_width[p]);
    // A rank of a ring over several nodes reads a chunk in turns, of 8 bytes a thread, and each takes its time. On one
    // node tables show a single turn whatever the chunk is; why is not known.
    if (!passes_on && plan.algorithm == TunerAlgorithm::ring)
      grown_ = std::min(network_width[p], chunk) / ramp_width[p];
  }
  Picoseconds of(const StepCost& cost) const { return micros(cost.fixed + cost.full * grown_); }
  Picoseconds between(const StepCost& cost) const { return micros(cost.fixed + cost.full * between_); }

 private:
  double grown_ = 0, between_ = 0;
};

std::string shares_of(const std::array<double, 3>& of) { return fmt::format("{} / {} / {}", of[0], of[1], of[2]); }
std::string rates_of(const std::array<std::int64_t, 3>& of) { return fmt::format("{} / {} / {}", of[0], of[1], of[2]); }
std::string steps_of(const std::array<StepCost, 3>& of) {
  return fmt::format("{} + {} / {} + {} / {} + {}", of[0].fixed, of[0].full, of[1].fixed, of[1].full, of[2].fixed,
                     of[2].full);
}

}  // namespace

LibraryCosts library_costs(const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work) {
  const auto p = static_cast<std::size_t>(plan.protocol);
  const KernelCosts& own = costs[generation_of(machine.sm)];
  const Steps steps(plan, machine, work);
  const bool nvls = plan.algorithm == TunerAlgorithm::nvls, nvls_tree = plan.algorithm == TunerAlgorithm::nvls_tree;
  const double filled = 1 - std::exp(-static_cast<double>(work.bytes.count) / nvls_width);

  LibraryCosts out{.protocol = plain_protocol(plan.protocol), .launch = micros(own.launch)};
  out.protocol.launch = Picoseconds{0};  // the library's, not the protocol's
  const bool only_pcie = !machine.nvlink && machine.nodes == 1;
  const Picoseconds host_read = micros(machine.through_host ? over_pcie.host_read : 0);
  out.protocol.pcie = steps.of(pcie[p]) + host_read;
  if (only_pcie) out.launch = micros(over_pcie.launch);
  const bool over_cxi = machine.cxi && plan.protocol == TunerProtocol::simple;
  out.protocol.network = steps.between(network[p]) + (over_cxi ? steps.of({0, cxi_simple}) : Picoseconds{0}) +
                         micros(plan.algorithm == TunerAlgorithm::ring ? 0 : of_tree_network);
  if (plan.algorithm == TunerAlgorithm::tree && machine.nodes > 1 && plan.protocol != TunerProtocol::ll)
    out.network = tree_share(plan.protocol, work.op, work.bytes, machine, work.release);
  if (sends_to_peers(work.op)) {
    const bool to_all = work.op != CollectiveOp::send_recv;
    out.protocol.nvlink = micros(own.sends.fixed + (plan.protocol == TunerProtocol::simple ? own.sends.full : 0) +
                                 (to_all ? a_peer * std::max(0, machine.ranks() - 2) : 0));
    if (only_pcie) out.protocol.pcie = out.protocol.nvlink + host_read;
    out.nvlink = to_all ? own.sends_nvlink : own.nvlink[p];
    out.copy = gigabytes_a_second(to_all ? own.sends_copy : 0);
    if (only_pcie) out.pcie = share_of(over_pcie.sends_to_all, machine);
    return out;
  }
  // Through the switches a step is as short as one of LL: they add up, no block does.
  out.protocol.nvlink = steps.of(own.step[nvls || nvls_tree ? 0 : p]);
  if (nvls) {
    out.once = micros(own.nvls_once + own.nvls_fill * filled);
    out.nvlink = own.nvls;
    return out;
  }
  out.once = nvls_tree ? micros(own.nvls_fill * filled * (1 + std::log2(machine.nodes))) : micros(own.once[p]);
  // Up and down through the switches load a GPU's port once, where a chain of GPUs loads it twice.
  // The switches add up, so what reaches them is NVLS's share.
  out.nvlink = nvls_tree ? 2 * own.nvls : own.nvlink[p];
  out.copy = gigabytes_a_second(only_pcie ? over_pcie.copy[p] : own.copy[p]);
  out.reduce = gigabytes_a_second(only_pcie ? over_pcie.copy[p] : own.reduce[p]);
  if (only_pcie && machine.through_host && plan.protocol == TunerProtocol::simple)
    out.pcie = share_of(over_pcie.through_host, machine);
  return out;
}

Picoseconds launch_of_others(int gpus_per_thread) { return micros(a_gpu_more * (gpus_per_thread - 1)); }

Bytes chunk_of(TunerProtocol protocol) {
  const Protocol& found = plain_protocol(protocol);
  return {found.slot.count / found.wire * found.payload};
}

Bytes tree_chunk(const LibraryPlan& plan, Bytes bytes, const TunerMachine& machine, Release release) {
  std::int64_t chunk = chunk_of(plan.protocol).count;
  // As long as each block has fewer than `least` chunks of more than `floor` bytes.
  const auto halve = [&](double least, std::int64_t floor) {
    while (chunk > floor) {
      const std::int64_t chunks = bytes.count / (plan.blocks * chunk);  // whole ones
      if (static_cast<double>(chunks) >= least) break;
      chunk /= 2;
    }
  };
  const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(machine.nodes))) - 1;
  if (plan.protocol == TunerProtocol::ll128) {
    const double steps = 1 + levels + 0.1 * machine.gpus;
    halve(steps * 64 / machine.gpus, 131'072);
    halve(steps * 16 / machine.gpus, 32'768);
  } else if (plan.protocol == TunerProtocol::simple && release == Release::v2_8_3) {
    const int depth = machine.gpus - 1 + levels;  // src/graph/trees: of a rank's place in the tree
    halve(depth * 8, 131'072);
    halve(depth * 4, 65'536);
    halve(depth, 32'768);
  }
  return {chunk};
}

std::vector<CostLine> cost_table() {
  constexpr const char* one_node = "one node, 41 tables aic-* and 9 older ones of validate/measured/tables";
  std::vector<CostLine> out;
  for (std::size_t g = 0; g < costs.size(); ++g) {
    const KernelCosts& own = costs[g];
    const auto add = [&](const char* what, const char* unit, std::string value, const char* fitted_to) {
      out.push_back({generation_names[g], what, unit, std::move(value), fitted_to});
    };
    add("launch", "us", fmt::to_string(own.launch), "floors of LL, 512 B to 2 KiB; a fact of machine and harness");
    add("step over NVLink: fixed + full", "us", steps_of(own.step), one_node);
    add("once", "us", fmt::format("{} / {} / {}", own.once[0], own.once[1], own.once[2]),
        "first rows after a change of protocol");
    add("share of NVLink's copy rate", "", shares_of(own.nvlink),
        "slopes, 256 to 512 MiB; LL: last octave before Simple");
    add("own part, copied", "GB/s", rates_of(own.copy), "slopes of all_gather on 2, 4 and 8 GPUs; 0: not known");
    add("own part, added up", "GB/s", rates_of(own.reduce), "slopes of reduce_scatter and all_reduce; 0: not known");
    add("sends to peers: LL, Simple more", "us", fmt::format("{} / {}", own.sends.fixed, own.sends.full), "alltoall");
    add("share of NVLink for sends to all", "", fmt::to_string(own.sends_nvlink), "alltoall, 256 to 512 MiB");
    add("own part of sends, copied", "GB/s", fmt::to_string(own.sends_copy), "alltoall; 0: not known");
    add("NVLS: share, once, fill", "us", fmt::format("{} / {} / {}", own.nvls, own.nvls_once, own.nvls_fill),
        "all_reduce on 8 GPUs; 1 / 0 / 0: it has none");
  }
  const auto of_all = [&](const char* what, const char* unit, std::string value, const char* fitted_to) {
    out.push_back({"all", what, unit, std::move(value), fitted_to});
  };
  of_all("step over PCIe: fixed + full", "us", steps_of(pcie), "rtx4090-pcie, rtx2080ti-pcie");
  constexpr const char* pcie_tables = "12 tables aic-l40s-* and aic-rtxpro6000-*";
  of_all("launch, GPUs joined by PCIe alone", "us", fmt::to_string(over_pcie.launch),
         "as Hopper's and Volta's; floors of aic-l40s-* and aic-rtxpro6000-* lie on it");
  of_all("step through host memory, more", "us", fmt::to_string(over_pcie.host_read),
         "floors of 4 RTX PRO 6000: a read of host memory is a request and an answer");
  of_all("own part over PCIe, copied or added up", "GB/s", rates_of(over_pcie.copy), pcie_tables);
  of_all("most of Simple through host memory", "GB/s", fmt::to_string(over_pcie.through_host),
         "slopes of 4 RTX PRO 6000");
  of_all("most of sends to all over PCIe", "GB/s", fmt::to_string(over_pcie.sends_to_all), pcie_tables);
  of_all("step over the network: fixed + full", "us", steps_of(network),
         "several nodes: abci-*, polaris-*, sophia-*; LL's full time: abci-v100-*");
  of_all("chunk at which that is full", "B", shares_of(network_width), "rings of abci-v100-*: one to four turns of LL");
  of_all("the same of a step in a node, rings of LL over several nodes", "B",
         fmt::to_string(network_width[static_cast<std::size_t>(TunerProtocol::ll)]),
         "rings of abci-v100-*: such a step takes as many turns as the chunk has");
  of_all("step over Slingshot (cxi) in Simple, more", "us", fmt::to_string(cxi_simple),
         "alps-gh200-* from 1 MiB, polaris-* from 2 MiB");
  of_all("step over the network in trees, more", "us", fmt::to_string(of_tree_network),
         "NCCL's tuner: LL takes 5.0 us in trees, 2.7 in rings");
  of_all("chunk at which a step costs its full time", "B", shares_of(ramp_width), one_node);
  of_all("launch: each GPU beyond one that a thread calls", "us", fmt::to_string(a_gpu_more),
         "floors of a100-1n8g-* (one process of 8 GPUs): 52 us more");
  of_all("sends to all: each peer beyond one", "us", fmt::to_string(a_peer), "floors of alltoall");
  of_all("NVLS: buffer that fills it by 63 %", "B", fmt::to_string(nvls_width), "all_reduce on 8 H100 and 8 B200");
  return out;
}

}  // namespace ringsim::nccl
