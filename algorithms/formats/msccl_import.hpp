// Reads MSCCL XML, the algorithms of msccl-tools and TACCL: thread blocks become lanes, deps become waits.
#pragma once

#include <string>
#include <string_view>

#include "algorithms/stored_schedule.hpp"

namespace ringsim {

/// Reads <algo> with its <gpu>, <tb> and <step>, as msccl-tools writes and Azure's msccl-executor-nccl and RCCL read
/// them (msccl_parser.cc). A thread block is a lane of the same number. Of its steps
///
///     s: send src                     cpy: dst = src              re: dst = dst + src
///     r: receive dst                  rrc: dst = src + what comes
///     rcs, rrcs: the same two, then a step that sends dst
///     rrs: chunks of scratch of the lane's own = src + what comes, then a step that sends them
///     nop: only waits; the next step waits with it, unless another thread block waits for the nop itself
///
/// `hasdep` says to the executor what `depid` and `deps` say already, and is not looked at. In place (inplace="1") `i`
/// and `o` are one buffer; an all-gather's input then lies within its output, a reduce-scatter's output within its
/// input. `coll` is what the schedule has to prove. A chunk is the message over nchunksperloop.
///
/// `file` stands for the text in errors. Throws InputError (FILE:LINE) if it is no such file, names what it has not,
/// or is a collective whose root MSCCL does not tell.
StoredSchedule import_msccl(std::string_view text, const std::string& file);

}  // namespace ringsim
