// What NCCL's kernels cost beyond links and the tuner's choice, by generation of GPU and protocol.
#pragma once

#include "sim/run/protocol.hpp"
#include "topologies/nccl/cost_constants.hpp"
#include "topologies/nccl/nccl_library.hpp"

namespace ringsim::nccl {

/// What a library's plan moves.
struct LibraryWork {
  CollectiveOp op{};
  Bytes bytes;  ///< of the whole buffer
  Bytes chunk;  ///< that fills a channel's step
  Bytes piece;  ///< of NVLSTree: what a simulated message carries
  Release release = Release::v2_30_7;
  Bytes net_chunk{131'072};  ///< SendPlan::a_chunk between nodes, by Simple
};

/// What comes with a plan. Links are those of the machine; cost_table() says what each number was fitted to.
struct LibraryCosts {
  Protocol protocol;       ///< LL, LL128 or Simple, with the steps of this generation's kernels
  Picoseconds launch{0};   ///< of the kernel: a property of the machine and the harness, if it is not stated
  Picoseconds once{0};     ///< of the protocol, once a collective
  double nvlink = 1;       ///< what kernels move over NVLink, as a share of the links' rate, which copies reach
  double pcie = 1;         ///< the same over PCIe
  double network = 1;      ///< the same over NICs
  Bandwidth channel;       ///< what a simulated channel of a GPU sends at most, as its thread blocks do; 0: no limit
  Bandwidth copy, reduce;  ///< the first copy, or the last sum, of a rank's own part, off the wire; 0: takes no time
};

LibraryCosts library_costs(const LibraryPlan& plan, const TunerMachine& machine, const LibraryWork& work,
                           const CostConstants& costs = fitted_costs());

/// What a simulated channel sends, by what a thread block of 512 threads does. Assumption: one of fewer threads has
/// fewer bytes on their way, in proportion.
Bandwidth channel_rate(const LibraryPlan& plan, Bandwidth a_block);

/// What the launch takes more if one thread calls so many GPUs in turn.
Picoseconds launch_of_others(int gpus_per_thread, const CostConstants& costs = fitted_costs());

/// Bytes of the buffer that a channel takes at a time if data is passed on in chunks (trees, broadcast, reduce): a
/// slot of the protocol, as payload (src/include/device.h, src/enqueue.cc; protocol.hpp has the slots).
Bytes chunk_of(TunerProtocol protocol);
/// The chunk of trees between nodes, which NCCL makes smaller so that several are on their way: LL128 in all releases,
/// Simple up to 2.19, NVLSTree (src/enqueue.cc, computeColl and calcCollChunking). For NVLSTree: what a block takes of
/// each head's part.
Bytes tree_chunk(const LibraryPlan& plan, Bytes bytes, const TunerMachine& machine, Release release);

}  // namespace ringsim::nccl
