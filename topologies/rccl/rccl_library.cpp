#include "topologies/rccl/rccl_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"

namespace ringsim::rccl {

using nccl::LibraryCosts;
using nccl::LibraryPlan;
using nccl::TunerAlgorithm;
using nccl::TunerChoice;
using nccl::TunerMachine;
using nccl::TunerProtocol;

namespace {

constexpr int threads = 256;       // NCCL_MAX_NTHREADS
constexpr int most_simulated = 8;  // channels of sends to a peer: more would only share one link
constexpr int element = 4;         // bytes
constexpr std::int64_t kib = 1024, mib = 1024 * kib;

Picoseconds micros(double value) { return Picoseconds{std::llround(value * 1e3) * 1000}; }

/// Sends to `peers` at once, each by so many blocks.
LibraryPlan sends_by(TunerAlgorithm algorithm, TunerProtocol protocol, int blocks, int peers) {
  return {.algorithm = algorithm,
          .protocol = protocol,
          .channels = std::min(blocks, most_simulated),
          .blocks = blocks,
          .running = static_cast<double>(blocks) * peers,
          .launched = blocks * peers};
}

/// all_to_all without MSCCL, on one node. Eight blocks for each peer (four of gfx94x, doubled on one node; src/graph/
/// paths.cc, ncclTopoGetNchannels and ncclTopoComputeP2pChannels), fewer while one would have less than an eighth of a
/// chunk of 512 KiB; LL for up to 16 KiB in each (src/enqueue.cc).
LibraryPlan sends_to_all(Bytes bytes, const TunerMachine& machine) {
  constexpr std::int64_t most = 8, least_part = 64 * kib, most_by_ll = 16 * kib;
  const std::int64_t a_peer = bytes.count / machine.ranks();
  const auto blocks = static_cast<int>(std::clamp<std::int64_t>((a_peer + least_part - 1) / least_part, 1, most));
  return sends_by(TunerAlgorithm::ring, a_peer <= blocks * most_by_ll ? TunerProtocol::ll : TunerProtocol::simple,
                  blocks, machine.ranks() - 1);
}

/// Thread blocks of rings and trees.
int blocks_of(const TunerChoice& choice, Bytes bytes, const TunerMachine& machine) {
  const bool ring = choice.algorithm == TunerAlgorithm::ring;
  const std::int64_t least =
      choice.protocol == TunerProtocol::simple ? 64 : std::int64_t{8} * (ring ? machine.ranks() : 1);
  return static_cast<int>(std::clamp<std::int64_t>(bytes.count / (threads * least), 1, machine.ring.count));
}

const Protocol& plain(TunerProtocol protocol) {
  const Protocol* found = find_protocol(protocol == TunerProtocol::ll ? "ll" : "simple");
  ensure(found != nullptr, "RCCL's protocols are those of the simulator");
  return *found;
}

}  // namespace

const std::vector<MscclSchedule>& msccl_schedules() {
  using enum TunerProtocol;
  constexpr CollectiveOp sum = CollectiveOp::all_reduce, all = CollectiveOp::all_to_all;
  static const std::vector<MscclSchedule> schedules{
      {sum, ll, 4, 256, 0, 64 * kib},
      {sum, ll, 8, 512, 64 * kib + 1, 512 * kib - 1},
      {sum, simple, 8, 512, 512 * kib, 16 * mib},
      {all, ll, 1, 8, 0, 9 * kib},
      {all, ll, 2, 16, 9 * kib + 1, 190 * kib},
      {all, ll, 4, 32, 190 * kib + 1, 512 * kib},
      {all, simple, 32, 32, 512 * kib + 1, 7 * mib},
      {all, simple, 8, 64, 7 * mib + 1, 43 * mib},
  };
  return schedules;
}

const MscclSchedule* msccl_schedule(CollectiveOp op, Bytes bytes, const TunerMachine& machine,
                                    const Settings& settings) {
  if (!settings.msccl || machine.nodes > 1 || bytes.count % element != 0 || bytes.count == 0) return nullptr;
  for (const MscclSchedule& each : msccl_schedules())
    if (each.op == op && bytes.count >= each.least && bytes.count <= each.most &&
        bytes.count / element % each.chunks == 0)
      return &each;
  return nullptr;
}

bool is_modeled(CollectiveOp op, int nodes) {
  switch (op) {
    case CollectiveOp::all_reduce:
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
      return true;
    case CollectiveOp::all_to_all:
      return nodes == 1;
    default:
      return false;
  }
}

std::optional<LibraryPlan> library_plan(CollectiveOp op, Bytes bytes, const TunerMachine& machine,
                                        const Settings& settings, int rings) {
  if (const MscclSchedule* schedule = msccl_schedule(op, bytes, machine, settings)) {
    LibraryPlan plan = sends_by(TunerAlgorithm::msccl, schedule->protocol, schedule->channels, machine.ranks() - 1);
    if (op == CollectiveOp::all_reduce) plan.launched += schedule->channels;  // others add up
    return plan;
  }
  if (!is_modeled(op, machine.nodes)) return std::nullopt;
  if (op == CollectiveOp::all_to_all) return sends_to_all(bytes, machine);
  std::optional<TunerChoice> best;
  double least = 0;
  for (const TunerChoice& choice : tuner_choices(op, machine, settings)) {
    const double us = tuner_time_us(choice, bytes, machine);
    if (!best || us < least) best = choice, least = us;
  }
  if (!best) return std::nullopt;
  LibraryPlan plan{.algorithm = best->algorithm, .protocol = best->protocol, .tuner_us = least};
  plan.blocks = plan.launched = blocks_of(*best, bytes, machine);
  plan.running = plan.blocks;
  // A simulated channel of trees has both of them, which are two of RCCL's.
  plan.channels = std::min(best->algorithm == TunerAlgorithm::tree ? (plan.blocks + 1) / 2 : plan.blocks, rings);
  return plan;
}

LibraryCosts library_costs(const LibraryPlan& plan, CollectiveOp op, Bytes chunk, Picoseconds link) {
  const bool msccl = plan.algorithm == TunerAlgorithm::msccl, ll = plan.protocol == TunerProtocol::ll;
  LibraryCosts out{.protocol = plain(plan.protocol), .launch = micros(base_us(plan.protocol))};
  out.protocol.launch = Picoseconds{0};  // the library's, not the protocol's
  if (ll) out.protocol.slot = {2 * rccl::chunk_of(TunerProtocol::ll).count};
  if (!nccl::sends_to_peers(op)) out.protocol.align = Bytes{16};  // as in nccl::library_costs()
  // Assumption: MSCCL's blocks take as long for a step as those of a ring.
  const TunerAlgorithm algorithm = msccl ? TunerAlgorithm::ring : plan.algorithm;
  out.protocol.nvlink = std::max(Picoseconds{0}, micros(step_us(algorithm, plan.protocol)) - link);
  const nccl::CostConstants& of_nccl = nccl::fitted_costs();
  const std::size_t p = ll ? 0 : 2;
  const double grown = std::min(1.0, static_cast<double>(chunk.count) / of_nccl.network_width[p]);
  out.protocol.network = micros(of_nccl.network[p].fixed + of_nccl.network[p].full * grown +
                                (algorithm == TunerAlgorithm::tree ? of_nccl.tree_network : 0));
  out.nvlink = xgmi_share;
  if (msccl && op == CollectiveOp::all_reduce) out.reduce = {std::llround(msccl_reduce * 1e9)};
  return out;
}

Bytes chunk_of(TunerProtocol protocol) { return {protocol == TunerProtocol::ll ? 16 * kib : 512 * kib}; }

Bytes tree_chunk(const LibraryPlan& plan, Bytes bytes, const TunerMachine& machine) {
  if (plan.protocol == TunerProtocol::ll) return rccl::chunk_of(plan.protocol);
  return nccl::tree_chunk(plan, bytes, machine, nccl::Release::v2_19);
}

const std::vector<CostLine>& cost_lines() {
  using enum TunerProtocol;
  const auto steps = [](TunerAlgorithm algorithm) {
    return fmt::format("{} / {}", step_us(algorithm, ll), step_us(algorithm, simple));
  };
  static const std::vector<CostLine> lines{
      {"startup before the first step, LL / Simple, us", fmt::format("{} / {}", base_us(ll), base_us(simple)),
       "RCCL's tuner: baseLat"},
      {"a step including its link, in rings, LL / Simple, us", steps(TunerAlgorithm::ring),
       "RCCL's tuner: hwLat of model 5, NVLINK; also used for MSCCL"},
      {"a step including its link, in trees, LL / Simple, us", steps(TunerAlgorithm::tree),
       "RCCL's tuner: hwLat of model 5, NVLINK"},
      {"a step between nodes", "NCCL's", "network.step and network.tree of `ringsim list costs`, not fitted to RCCL"},
      {"share of the 48 GB/s of an xGMI link", fmt::format("{:.2f}", xgmi_share),
       "the slowest link when all GPUs copy to all others, 45.1 GB/s (TransferBench, AMD)"},
      {"local reduction by MSCCL, GB/s", fmt::format("{}", msccl_reduce),
       "fitted to mi300x-1n8g-all_reduce, 2 to 16 MiB"},
  };
  return lines;
}

}  // namespace ringsim::rccl
