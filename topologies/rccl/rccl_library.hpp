// What RCCL does for a collective on a known machine, and what its kernels cost.
//
// Source: ROCm/rccl 0cbce2a7571c (2.21.5): src/graph/tuning.cc and src/enqueue.cc (choice, channels, chunks),
// src/misc/msccl/msccl_lifecycle.cc and tools/msccl-algorithms (MSCCL schedules), src/graph/paths.cc (sends).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/nccl/nccl_costs.hpp"
#include "topologies/nccl/nccl_library.hpp"
#include "topologies/rccl/rccl_tuner.hpp"

namespace ringsim::rccl {

/// A schedule of MSCCL that RCCL brings along, and the sizes that it is for.
struct MscclSchedule {
  CollectiveOp op{};
  nccl::TunerProtocol protocol{};
  int channels = 1;          ///< thread blocks for each peer
  std::int64_t chunks = 1;   ///< the number of elements must be a multiple of it
  std::int64_t least, most;  ///< bytes of the whole buffer
};
/// Those for eight ranks, out of place: all_reduce to 16 MiB, each rank adding up a part and sending it to all, and
/// all_to_all to 43 MiB (tools/msccl-algorithms/allreduce-allpairs-8n-*-op.xml, alltoall-8n-*.xml).
const std::vector<MscclSchedule>& msccl_schedules();

/// The one for the op, or nullptr: on several nodes, where known machines switch MSCCL off, with RCCL_MSCCL_ENABLE=0,
/// and for sizes that no schedule divides. Comes before the tuner, whatever NCCL_ALGO and NCCL_PROTO say.
///
/// Assumptions: elements of 4 bytes; buffers out of place, as rccl-tests' first columns. In place all_reduce from 11 to
/// 14 MiB has no schedule. MSCCL++, which takes all_reduce and all_gather to 1 MiB in captured graphs only, is left
/// out.
const MscclSchedule* msccl_schedule(CollectiveOp op, Bytes bytes, const nccl::TunerMachine& machine,
                                    const Settings& settings);

/// True for all_reduce, all_gather, reduce_scatter, broadcast and reduce, and on one node all_to_all.
bool is_modeled(CollectiveOp op, int nodes);

/// What is done: by MSCCL, by the tuner's choice, or, for all_to_all, by sends to all peers. Nothing for what is not
/// modeled.
///
/// Channels as NCCL: fewer while one would have less than its 256 threads' least share (8 B for LL, in rings times the
/// ranks, and 64 B for Simple; src/enqueue.cc). A channel of the simulation is a ring of its
/// own, and stands for those that repeat it.
std::optional<nccl::LibraryPlan> library_plan(CollectiveOp op, Bytes bytes, const nccl::TunerMachine& machine,
                                              const Settings& settings, int rings);

/// What comes with a plan. `link`: the latency of an xGMI link. `chunk`: as nccl::LibraryWork's.
///
/// Times are RCCL's own (base_us, step_us): before the first step, and of a step with its link. Steps between nodes
/// cost what NCCL's were fitted to (nccl::fitted_costs), as both post by the same proxies (src/proxy.cc,
/// src/transport/net.cc). Links carry xgmi_share; nothing was fitted for rings and trees. cost_lines() has all.
nccl::LibraryCosts library_costs(const nccl::LibraryPlan& plan, CollectiveOp op, Bytes chunk, Picoseconds link);

/// Bytes of the buffer that a channel takes at a time if data is passed on in chunks: a slot of the protocol, as
/// payload. LL's is half of NCCL's, with half of its threads (src/include/device.h, NCCL_LL_MAX_NTHREADS).
Bytes chunk_of(nccl::TunerProtocol protocol);
/// The chunk of trees, which is smaller for less data, as in NCCL up to 2.19 (src/enqueue.cc, computeCollChunkInfo).
Bytes tree_chunk(const nccl::LibraryPlan& plan, Bytes bytes, const nccl::TunerMachine& machine);

/// What kernels move over xGMI, as a share of the 48 GB/s of a link: the slowest link of a copy from each GPU to each
/// other at once, 45.1 GB/s (ROCm/rocm-blogs, "Understanding RCCL Bandwidth and xGMI Performance on AMD Instinct
/// MI300X", TransferBench a2a: 45.095 to 47.182). A ring is as fast as its slowest link.
inline constexpr double xgmi_share = 45.1 / 48;

/// GB/s of a rank's own part that the blocks of MSCCL's all_reduce add up, with the seven parts of the others. Fitted:
/// the only constant here that is. To mi300x-1n8g-all_reduce, 2 to 16 MiB.
inline constexpr double msccl_reduce = 60;

/// The constants as text: what each is, and where it is from.
struct CostLine {
  std::string_view what;
  std::string value;
  std::string_view from;
};
const std::vector<CostLine>& cost_lines();

}  // namespace ringsim::rccl
