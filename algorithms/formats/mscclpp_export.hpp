// Writes execution plans of MSCCL++ (JSON), which its executor runs.
#pragma once

#include <string>

#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// The JSON of a plan over memory channels, for the version that import_mscclpp() names. Each message becomes what
/// both its ends do here, a start when both are ready and an end for both:
///
///     receive       the receiver signals that its memory is free; the sender waits for it, puts, signals that it has
///     receive_add   the sender signals that its data is there; the receiver waits for it, adds what it reads (rre) to
///                   its own, signals that it has
///
/// A lane becomes a thread block. What the GPU itself moves in one step lies in several thread blocks, which meet at a
/// barrier after each step; additions to one chunk are one after the other, for they are not atomic. A lane of more
/// operations than a thread block holds goes on in the next one, by semaphores, as waits are. Buffers as
/// in_plain_buffers().
///
/// The text is read again by import_mscclpp() and proved before it is returned.
///
/// Throws InputError (empty `where`) for what a plan, or its executor, cannot hold, by its name: helpers (what switches
/// add among them), compute, a collective without a name or with a root, chunks of listed sizes, additions to one chunk
/// that nothing orders, one step with more than 64 operations of a thread block, more than 16 channels of one, more
/// thread blocks than a GPU has multiprocessors, and schedules that need messages to run ahead.
std::string export_mscclpp(const StoredSchedule& stored);

}  // namespace ringsim
