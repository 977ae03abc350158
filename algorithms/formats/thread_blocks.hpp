// A schedule in the form of MSCCL's thread blocks: one operation a step, one peer to send to and one to receive from a
// lane.
#pragma once

#include <functional>
#include <string>

#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// Rewrites a schedule so that its lanes are thread blocks. Operations, regions and messages stay the same and in the
/// same order, and everything that steps and waits ordered stays ordered. Operations that start together in a step of
/// the original start one after the other if they belong to one thread block, sends before receives: so the result may
/// need slots though the original needs none.
///
///  - A lane is cut by its peers: each connection belongs to one thread block; the first that lacks a peer to send to
///    (or to receive from) takes the next one on the same channel.
///  - A step's operations become steps; what followed it waits for them, unless it knows already that they are done.
///  - Additions to one chunk that a step may make in any order are made one after the other: a thread block's are not
///    atomic. (Those of several lanes that nothing orders stay so: export_msccl() refuses them.)
///  - Of waits for one lane the latest stays. A step that only waits is dropped if the next one can wait for it.
///  - Blocks of an all-to-all are numbered as MPI does, chunk by chunk. No symmetry is claimed any more.
///  - If `input` or `output` has room for all blocks though a rank brings or gets one (Placement::input_kept), the
///    others lie in scratch, chunk by chunk. MSCCL does not promise that the input stays as it was.
///
/// A schedule that is in this form already stays what it is.
StoredSchedule as_thread_blocks(const StoredSchedule& stored);

/// Rewrites a schedule for the buffers of MSCCL and MSCCL++ (the last two points above): input and output as MPI
/// numbers them, or one in place.
StoredSchedule in_plain_buffers(StoredSchedule stored);

/// Which additions to one chunk nothing orders, as the checker says it; empty if there are none. For the checker they
/// are no race, but thread blocks add without atomic operations. Requires that check() accepts the schedule.
std::string unordered_adds(const StoredSchedule& stored);

/// Says that a format cannot hold a schedule, why, and what to do; throws.
using Refusal = std::function<void(const std::string& what, const std::string& hint)>;

/// Refuses what neither MSCCL nor MSCCL++ has: schedules without regions, helpers, compute.
void require_ranks_that_only_move(const StoredSchedule& stored, const Refusal& refuse);

/// In how many chunks the message is cut. Refuses chunks with sizes of their own, and buffers that are cut differently.
int common_chunks(const StoredSchedule& stored, const Refusal& refuse);

}  // namespace ringsim
