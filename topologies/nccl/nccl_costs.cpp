#include "topologies/nccl/nccl_costs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

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

/// What is passed on of a collective is cut in multiples of this: the last round of a ring's chunks and of NVLSTree's
/// parts (NVIDIA/nccl 5067397c2676 src/device/all_reduce.h: alignUp(divUp(remCount, nranks), 16 / sizeof(T))), the
/// chunks of all rounds before (src/include/device.h, ncclProtoGrainSize: 16, 1920 and 512 B in LL, LL128 and Simple)
/// and the channels' parts (src/enqueue.cc, cellSize). So is a rank's part of all_gather and reduce_scatter.
///
/// Assumption: here buffers are cut near-equally and every message is rounded up to it. That is the largest chunk that
/// NCCL has, on all ranks; there the last ranks' are shorter, or empty. Not modeled: releases before 2.22 round
/// further up, to what the threads of a block take at once (8c6c5951854a src/device/all_reduce.h, 2.19.3: 3840 B in
/// Simple with 512 threads), as do 16 KiB of NVLS on one node.
constexpr Bytes cut_in{16};

/// The rate as a share of what rings over PCIe have.
double share_of(double rate, const TunerMachine& machine) { return std::min(1.0, rate / machine.pcie_GBps); }

/// Chunks of a channel that sends by Simple over NVLink, and over PCIe and between nodes, as send_plan() has them.
constexpr double nvlink_chunk = 524'288, pcie_chunk = 131'072;

/// GB/s that a block sends over PCIe. It copies a chunk and then takes a step, as over NVLink, where
/// KernelCosts::a_block was measured; chunks over PCIe are a quarter as large, so steps weigh more.
double block_over_pcie(const KernelCosts& own, const CostConstants& costs) {
  constexpr auto simple = static_cast<std::size_t>(TunerProtocol::simple);
  const auto full = [](const StepCost& step) { return step.fixed + step.full; };
  const double copy_us = std::max(0.0, nvlink_chunk / (1000 * own.a_block) - full(own.step[simple]));
  const double chunk_us = copy_us * pcie_chunk / nvlink_chunk + full(costs.pcie[simple]) + costs.pcie_sends_simple;
  return pcie_chunk / (1000 * std::max(chunk_us, 1e-3));
}

/// True if data flows from or to a root, so that links carry it one way at a time.
bool is_one_way(CollectiveOp op) {
  return op == CollectiveOp::broadcast || op == CollectiveOp::reduce || op == CollectiveOp::gather ||
         op == CollectiveOp::scatter;
}

/// The share of PCIe that Simple reaches. Through host memory a GPU's link carries as much up as down, but where all
/// flows one way.
double simple_over_pcie(CollectiveOp op, const TunerMachine& machine, const CostConstants& costs) {
  if (!machine.through_host) return 1;
  return std::min(is_one_way(op) ? 1 : costs.both_ways, share_of(costs.through_host, machine));
}

/// GB/s that a block sends to another node.
///
/// Assumption: it copies into the network's buffer as fast as over NVLink, where KernelCosts::a_block was measured, and
/// hands each chunk over to the proxy, which takes as long as a step of sends takes at least. From 2.14 on chunks are a
/// quarter as large (NCCL_P2P_NET_CHUNKSIZE), so that weighs more. NVIDIA/nccl issue 1272 has 18.3 GB/s of a single
/// block on GH200, where this gives 18.1.
double block_between_nodes(const KernelCosts& own, double chunk) {
  const double copy_us = std::max(0.0, nvlink_chunk / (1000 * own.a_block) - own.sends.fixed);
  return chunk / (1000 * (copy_us * chunk / nvlink_chunk + own.sends.fixed));
}

/// Microseconds that a GPU's proxy thread takes to post a message to another node: a call of the net plugin, and a look
/// at all the others that are under way (src/proxy.cc, progressOps; src/transport/net.cc, sendProxyProgress).
double post_of(const TunerMachine& machine, const CostConstants& costs) {
  constexpr double from_400 = 45;  // GB/s: 400 Gb/s, less what headers take
  switch (machine.provider) {
    case NicProvider::cxi:
      return costs.post_cxi;
    case NicProvider::efa:
      return costs.post_efa;
    case NicProvider::verbs:
      return machine.nic_GBps >= from_400 ? costs.post_400 : costs.post;
  }
  fail_invariant("a NIC's provider is one of three");
}

/// What a thread block sends by Simple over NVLink in rings and trees, GB/s.
///
/// Assumption: its time goes into loads and stores. In sends, from which KernelCosts::a_block is, it loads and stores a
/// byte that it sends, and one that it receives: four for each byte sent. In a ring it has three: it loads two and
/// stores their sum, or loads one and stores it here and there. No table of rings says how many blocks ran.
double block_in_rings(const KernelCosts& own) { return own.a_block * 4 / 3; }

/// What a channel sends by LL and LL128 that has fewer blocks, or threads, than NCCL takes by itself; GB/s on the wire.
///
/// Assumption: in proportion to what it has by itself, if it fills its part of the links at the protocol's share of
/// them. That part is the speed that NCCL's search takes a channel to have, which is near to what Simple reaches.
double channel_of_fewer(const LibraryPlan& plan, const TunerMachine& machine, const KernelCosts& own) {
  const Channels& found = plan.algorithm == TunerAlgorithm::tree ? machine.tree : machine.ring;
  constexpr auto simple = static_cast<std::size_t>(TunerProtocol::simple);
  return std::min(found.inside, found.between) * own.nvlink[static_cast<std::size_t>(plan.protocol)] /
         own.nvlink[simple] * plan.at_work;
}

/// How much of StepCost::full a step takes at the chunk's size, in a node and between nodes.
class Steps {
 public:
  Steps(const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work, const CostConstants& costs) {
    const auto p = static_cast<std::size_t>(plan.protocol);
    const auto chunk = static_cast<double>(work.chunk.count);
    // One slice a chunk if others have two (src/include/collectives.h), so one fence.
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

/// How much of a pipeline that fills as the buffer grows is full: 63 % at `width` bytes.
double filled(Bytes bytes, double width) { return 1 - std::exp(-static_cast<double>(bytes.count) / width); }

/// Adds the costs of NVLSTree. A channel here stands for many of NCCL's: as many blocks send a head's parts through its
/// NICs at the same time. Each chunk is posted when all of it is there, so the chunks of all blocks cross one hop after
/// the other; the simulation has pieces finer than that, and of their crossings only one.
void add_nvls_tree(LibraryCosts& out, const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work,
                   const CostConstants& costs) {
  const KernelCosts& own = costs.of[generation_of(machine.sm)];
  const int hops = 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(machine.nodes - 1)));
  const double a_head = static_cast<double>(work.chunk.count) * plan.blocks;
  out.protocol.network += micros(a_head / (1000 * machine.nvls.between) * (hops - 1) / hops);
  // As many bytes on their way in each of the two trees as the slots of all blocks hold.
  const double held = out.protocol.slots * a_head * machine.nvls.count / (2 * plan.channels);
  if (work.piece.count > 0)
    out.protocol.slots = std::max(out.protocol.slots, static_cast<int>(held / static_cast<double>(work.piece.count)));
  const double once = costs.nvls_tree_fill + costs.nvls_tree_level * (std::log2(machine.nodes) - 1);
  out.once = micros(once * filled(work.bytes, costs.nvls_tree_width));
  // Up and down through the switches load a GPU's port once for each, as in NVLS. In a chain of GPUs one of its links
  // is not there.
  out.nvlink = 2 * own.nvls * (machine.gpus - 1) / machine.gpus;
}

/// Adds the costs of sends and receives to those of every plan. `work.chunk`: what a channel carries.
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
  if (only_pcie) {  // LL is held to what Simple reaches: its own most is not known
    const double blocks = plan.blocks * (to_all ? machine.ranks() - 1 : 1);
    out.pcie =
        std::min(share_of(blocks * block_over_pcie(own, costs), machine), simple_over_pcie(work.op, machine, costs));
  }
  if (ll) {
    out.nvlink = own.nvlink[0];
    out.copy = gigabytes_a_second(to_all ? own.copy[0] : 0);
    return;
  }
  if (machine.nodes > 1) {
    // One thread posts the chunks to all peers, one after another.
    const double post = post_of(machine, costs), chunk = static_cast<double>(work.net_chunk.count);
    if (to_all && post > 0)
      out.network = std::min(out.network, chunk / (1000 * post) / (machine.nic_GBps * machine.rails));
    // Blocks hold the sends only if they are few for the NICs.
    const double block = block_between_nodes(own, chunk);
    const int others = to_all ? machine.ranks() - machine.gpus : 1;
    if (std::min(plan.running, 1.0 * plan.blocks * others) * block < machine.nic_GBps * machine.rails)
      out.channel = channel_rate(plan, gigabytes_a_second(block));
    return;
  }
  const double a_chunk = only_pcie ? pcie_chunk : nvlink_chunk;
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
  const bool pat = plan.algorithm == TunerAlgorithm::pat;
  const bool nvls = plan.algorithm == TunerAlgorithm::nvls, nvls_tree = plan.algorithm == TunerAlgorithm::nvls_tree;

  LibraryCosts out{.protocol = plain_protocol(plan.protocol), .launch = micros(own.launch)};
  out.protocol.launch = Picoseconds{0};  // the library's, not the protocol's
  const bool only_pcie = !machine.nvlink && machine.nodes == 1;
  const Picoseconds host_read = micros(machine.through_host ? costs.host_read : 0);
  out.protocol.pcie = steps.of(costs.pcie[p]) + host_read;
  if (only_pcie) out.launch = micros(costs.pcie_launch);
  const bool over_cxi = machine.provider == NicProvider::cxi && plan.protocol == TunerProtocol::simple;
  out.protocol.network = steps.between(costs.network[p]) +
                         (over_cxi ? steps.of({0, costs.cxi_simple}) : Picoseconds{0}) +
                         micros(plan.algorithm == TunerAlgorithm::ring || pat ? 0 : costs.tree_network);
  if (pat) out.network = pat_share;
  if (plan.algorithm == TunerAlgorithm::ring && machine.nodes > 1 && plan.protocol == TunerProtocol::ll128 &&
      !sends_to_peers(work.op))
    out.network = ring_ll128_share(machine);
  if (plan.algorithm == TunerAlgorithm::tree && machine.nodes > 1 && plan.protocol != TunerProtocol::ll)
    out.network = tree_share(plan.protocol, work.op, work.bytes, machine, work.release);
  // Assumption: what it takes to post is in the steps of rings, which were fitted on InfiniBand and Slingshot; over EFA
  // it is measured. NVLSTree is simulated in pieces finer than what is posted, and trees have few channels.
  const bool ring_over_efa = plan.algorithm == TunerAlgorithm::ring && machine.provider == NicProvider::efa;
  if (machine.nodes > 1 && (sends_to_peers(work.op) || ring_over_efa)) {
    out.protocol.post = micros(post_of(machine, costs) * plan.blocks / plan.channels);  // once a message of NCCL's
    if (machine.provider == NicProvider::efa && plan.protocol == TunerProtocol::simple) out.network = costs.efa_share;
  }
  if (sends_to_peers(work.op)) {
    add_sends(out, plan, machine, work, costs);
    return out;  // their parts are cut in 4 KiB, and the last has what is left (ncclP2pPartBounds): `align` stays 1
  }
  out.protocol.align = cut_in;
  // Through the switches a step is as short as one of LL: they add up, no block does.
  out.protocol.nvlink = steps.of(own.step[nvls || nvls_tree ? 0 : p]);
  if (nvls) {
    out.once = micros(own.nvls_once + own.nvls_fill * filled(work.bytes, costs.nvls_width));
    out.nvlink = own.nvls;
    return out;
  }
  out.once = micros(own.once[p]);
  out.nvlink = own.nvlink[p];
  if (machine.nvlink && !nvls_tree) {
    if (plan.protocol == TunerProtocol::simple)
      out.channel = channel_rate(plan, gigabytes_a_second(block_in_rings(own)));
    else if (plan.at_work < 1)
      out.channel = gigabytes_a_second(channel_of_fewer(plan, machine, own));
  }
  if (nvls_tree) add_nvls_tree(out, plan, machine, work, costs);
  out.copy = gigabytes_a_second(only_pcie ? costs.pcie_copy[p] : own.copy[p]);
  out.reduce = gigabytes_a_second(only_pcie ? costs.pcie_copy[p] : own.reduce[p]);
  // Between nodes the ring passes through host memory in each of them.
  if (!machine.nvlink && machine.gpus > 1 && plan.protocol == TunerProtocol::simple)
    out.pcie = simple_over_pcie(work.op, machine, costs);
  return out;
}

Bandwidth channel_rate(const LibraryPlan& plan, Bandwidth a_block) {
  const double rate = static_cast<double>(a_block.bytes_per_second) * plan.running / plan.channels;
  return {std::llround(std::min(rate, static_cast<double>(max_bandwidth.bytes_per_second)))};
}

Picoseconds launch_of_others(int gpus_per_thread, const CostConstants& costs) {
  return micros(costs.a_gpu_more * (gpus_per_thread - 1));
}

Bytes chunk_of(TunerProtocol protocol) {
  const Protocol& found = plain_protocol(protocol);
  return {found.slot.count / found.wire * found.payload};
}

namespace {

std::int64_t nvls_tree_chunk(const LibraryPlan& plan, Bytes bytes, const TunerMachine& machine, Release release) {
  std::int64_t chunk = nvls_tree_shape(machine, release).chunk;
  const std::int64_t parts = std::int64_t{plan.blocks} * machine.nvls.count;
  constexpr std::pair<int, std::int64_t> steps[] = {{32, 262'144}, {16, 131'072}, {4, 65'536}, {1, 32'768}};
  for (const auto& [least, most] : steps)
    if (bytes.count < least * parts * chunk) chunk = std::min(chunk, most);
  return std::min(chunk, bytes.count / parts);
}

}  // namespace

Bytes tree_chunk(const LibraryPlan& plan, Bytes bytes, const TunerMachine& machine, Release release) {
  if (plan.algorithm == TunerAlgorithm::nvls_tree) return {nvls_tree_chunk(plan, bytes, machine, release)};
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
  } else if (plan.protocol == TunerProtocol::simple && release < Release::v2_20) {
    const int depth = machine.gpus - 1 + levels;  // src/graph/trees: of a rank's place in the tree
    halve(depth * 8, 131'072);
    halve(depth * 4, 65'536);
    halve(depth, 32'768);
  }
  return {chunk};
}

}  // namespace ringsim::nccl
