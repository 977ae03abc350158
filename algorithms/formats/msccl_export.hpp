// Writes schedules as MSCCL XML, for msccl-executor-nccl, RCCL and other simulators.
#pragma once

#include <string>

#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// The schedule as thread blocks (as_thread_blocks()), as XML: a receive and the send of what came are one step again
/// (rcs, rrcs; rrs if it rests in scratch that nothing else touches), waits are depid and deps, the second and
/// further ones of a step those of nops before it. Read again by import_msccl() it is the same schedule, but for the
/// numbers of such scratch.
///
/// Throws InputError (empty `where`) for what the format, or its runtime, cannot hold, by its name: helpers, compute, a
/// collective without a name or with a root, chunks of listed sizes, additions to one chunk that nothing orders (its
/// are not atomic), 72 chunks or more in one step, more than 256 steps in a thread block, and if one operation after
/// the other needs more than the 8 slots of NCCL's connections. Limits: RCCL, src/include/msccl/msccl_struct.h; slots:
/// NCCL_STEPS, src/include/device.h.
std::string export_msccl(const StoredSchedule& stored);

}  // namespace ringsim
