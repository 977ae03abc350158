#include "topologies/nccl/nccl_costs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/base/error.hpp"

namespace ringsim::nccl {

namespace {

constexpr std::array<const char*, 3> protocol_names{"ll", "ll128", "simple"};  // [TunerProtocol]

Picoseconds micros(double value) { return Picoseconds{std::llround(value * 1e3) * 1000}; }
Bandwidth gigabytes_a_second(double rate) { return {std::llround(rate * 1e9)}; }

const Protocol& plain_protocol(TunerProtocol protocol) {
  const Protocol* found = find_protocol(protocol_names[static_cast<std::size_t>(protocol)]);
  ensure(found != nullptr, "NCCL's protocols are those of the simulator");
  return *found;
}

/// Of what rings over PCIe have, the share that a rate is.
double share_of(double rate, const TunerMachine& machine) {
  const double all = machine.ring.count * machine.ring.inside;
  return std::min(1.0, rate / all);
}

/// How much of StepCost::full a step takes at the chunk's size, in a node and between nodes.
class Steps {
 public:
  Steps(const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work, const CostConstants& costs) {
    const auto p = static_cast<std::size_t>(plan.protocol);
    const auto chunk = static_cast<double>(work.chunk.count);
    // One slice a chunk where others have two (src/include/collectives.h), so one fence.
    const bool one_slice = work.op == CollectiveOp::broadcast || work.op == CollectiveOp::reduce;
    const double fences = plan.protocol == TunerProtocol::simple && one_slice ? 0.5 : 1;
    grown_ = fences * std::min(1.0, chunk / costs.ramp_width[p]);
    between_ = fences * std::min(1.0, chunk / costs.network_width[p]);
    if (plan.protocol != TunerProtocol::ll || machine.nodes == 1) return;
    const bool passes_on = one_slice || sends_to_peers(work.op);
    // Chains, and sends to many at once, pass lines on as they come.
    if (passes_on) between_ = std::min(between_, costs.ramp_width[p] / costs.network_width[p]);
    // A rank of a ring over several nodes reads a chunk in turns, of 8 bytes a thread, and each takes its time. On one
    // node tables show a single turn whatever the chunk is; why is not known.
    if (!passes_on && plan.algorithm == TunerAlgorithm::ring)
      grown_ = std::min(costs.network_width[p], chunk) / costs.ramp_width[p];
  }
  Picoseconds of(const StepCost& cost) const { return micros(cost.fixed + cost.full * grown_); }
  Picoseconds between(const StepCost& cost) const { return micros(cost.fixed + cost.full * between_); }

 private:
  double grown_ = 0, between_ = 0;
};

/// Of sends and receives, on top of what is of all plans. `work.chunk`: what a channel carries.
void add_sends(LibraryCosts& out, const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work,
               const CostConstants& costs) {
  const KernelCosts& own = costs.of[generation_of(machine.sm)];
  const bool to_all = work.op != CollectiveOp::send_recv, ll = plan.protocol == TunerProtocol::ll;
  const bool only_pcie = !machine.nvlink && machine.nodes == 1;
  const auto a_channel = static_cast<double>(work.chunk.count);
  const double a_peer = a_channel * plan.blocks;
  double step = own.sends.fixed + (to_all ? costs.a_peer * std::max(0, machine.ranks() - 2) : 0);
  if (only_pcie)
    step += (ll ? 0 : costs.pcie_sends_simple) + (machine.through_host ? costs.host_read : 0);
  else
    step += ll ? own.sends.full * std::min(1.0, a_peer / (4 * costs.ramp_width[0])) : own.sends_simple;
  (only_pcie ? out.protocol.pcie : out.protocol.nvlink) = micros(step);
  out.nvlink = to_all ? own.sends_nvlink : own.nvlink[static_cast<std::size_t>(plan.protocol)];
  out.copy = gigabytes_a_second(to_all ? own.sends_copy : 0);
  if (only_pcie) out.pcie = share_of(costs.pcie_sends, machine);
  if (ll) {
    out.nvlink = own.nvlink[0];
    out.copy = gigabytes_a_second(to_all ? own.copy[0] : 0);
    return;
  }
  if (machine.nodes > 1) return;
  const double a_chunk = only_pcie ? 131'072 : 524'288;  // as send_plan() has it
  out.once = micros((only_pcie ? costs.pcie_fill : own.sends_fill) * std::min(1.0, a_channel / a_chunk));
  const int together = to_all && machine.switched ? machine.ranks() - 1 : 1;
  if (machine.nvlinks_GBps > 0)
    out.nvlink *= std::min(1.0, plan.blocks * together * own.a_block / machine.nvlinks_GBps);
}

}  // namespace

LibraryCosts library_costs(const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work,
                           const CostConstants& costs) {
  const auto p = static_cast<std::size_t>(plan.protocol);
  const KernelCosts& own = costs.of[generation_of(machine.sm)];
  const Steps steps(plan, machine, work, costs);
  const bool nvls = plan.algorithm == TunerAlgorithm::nvls, nvls_tree = plan.algorithm == TunerAlgorithm::nvls_tree;
  const double filled = 1 - std::exp(-static_cast<double>(work.bytes.count) / costs.nvls_width);

  LibraryCosts out{.protocol = plain_protocol(plan.protocol), .launch = micros(own.launch)};
  out.protocol.launch = Picoseconds{0};  // the library's, not the protocol's
  const bool only_pcie = !machine.nvlink && machine.nodes == 1;
  const Picoseconds host_read = micros(machine.through_host ? costs.host_read : 0);
  out.protocol.pcie = steps.of(costs.pcie[p]) + host_read;
  if (only_pcie) out.launch = micros(costs.pcie_launch);
  const bool over_cxi = machine.cxi && plan.protocol == TunerProtocol::simple;
  out.protocol.network = steps.between(costs.network[p]) +
                         (over_cxi ? steps.of({0, costs.cxi_simple}) : Picoseconds{0}) +
                         micros(plan.algorithm == TunerAlgorithm::ring ? 0 : costs.tree_network);
  if (plan.algorithm == TunerAlgorithm::tree && machine.nodes > 1 && plan.protocol != TunerProtocol::ll)
    out.network = tree_share(plan.protocol, work.op, work.bytes, machine, work.release);
  if (sends_to_peers(work.op)) {
    add_sends(out, plan, machine, work, costs);
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
  out.copy = gigabytes_a_second(only_pcie ? costs.pcie_copy[p] : own.copy[p]);
  out.reduce = gigabytes_a_second(only_pcie ? costs.pcie_copy[p] : own.reduce[p]);
  if (only_pcie && machine.through_host && plan.protocol == TunerProtocol::simple)
    out.pcie = share_of(costs.through_host, machine);
  return out;
}

Picoseconds launch_of_others(int gpus_per_thread, const CostConstants& costs) {
  return micros(costs.a_gpu_more * (gpus_per_thread - 1));
}

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

}  // namespace ringsim::nccl
