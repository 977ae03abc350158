// Reads execution plans of MSCCL++ (JSON), which its DSL writes and its executor runs.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// Reads a plan as microsoft/mscclpp has it at commit 1f5f065 (August 2026, after version 0.9): the keys that
/// python/mscclpp/language/program.py writes (CollectiveProgram.to_json) and src/core/executor/execution_plan.cc loads,
/// with the meaning that src/core/include/execution_kernel.hpp gives to the operations.
///
/// A plan is one-sided: one GPU writes or reads the other's memory, and signals say when. A schedule here has two ends
/// for each message. So the operations of a thread block become the steps of a lane of the same number, and for what a
/// thread block does to another GPU's memory that GPU gets a lane:
///
///     put, ppkt, rppkt, pws, pwsf        a send; a receive in a lane of the target
///     get; rre, rres                     a receive; receive_adds; a send in a lane of the source; then sends
///     copy, cpkt, upkt; re, res, re*pkt  copies; adds in the lane, then sends
///     signal, wait, barrier, sem_*       waits. The plan is followed once, each thread block with a clock of the steps
///     and reading packets                that it knows to be over; a step waits for what its thread block knows then
///
/// So signals take no time of their own, but a message starts only when both GPUs are that far. A plan whose thread
/// blocks wait for each other in a circle is refused; whether it delivers is for check() to decide: what no signal
/// orders is a race. `nop` is taken as given. Puts of one operation follow one another, as the executor does them, or
/// start together on a port channel, which does not hold up its thread block.
///
/// Throws InputError (`file`: JSON pointer) as mscclpp::read_plan() does, and if the order of a plan is not decided:
/// a channel or semaphore that several thread blocks count up (or down), packets that are written twice.
StoredSchedule import_mscclpp(std::string_view text, const std::string& file);

}  // namespace ringsim
