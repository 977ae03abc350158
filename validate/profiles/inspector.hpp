// Output of NCCL Inspector, the profiler plugin that comes with NCCL: a JSON object per line.
#pragma once

#include <cstdint>
#include <optional>

#include "validate/profiles/pieces.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// Adds a log: one source for each process in it, and a record for each call. Formats 4.0 to 4.3, with or without
/// NCCL_INSPECTOR_DUMP_VERBOSE, and those of RCCL's plugin, whose header has no id. A header counts for the lines after
/// it that have none (4.3). Sizes of AllGather and ReduceScatter are one rank's share in the file, and the whole in the
/// record (NVIDIA/nccl 5067397c plugins/profiler/inspector/inspector.cc multiplies them by the ranks itself).
///
/// Without the event trace of a verbose log a record has a duration, and no moments.
///
/// `rank`: of the job, if the file is of one process; none: the rank in its largest communicator. A last line that is
/// cut is left out with a warning. Throws InputError that names file and line for any other line that is not as
/// described.
void read_inspector(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile);

}  // namespace ringsim::profiles
