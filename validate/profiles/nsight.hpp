// Reports of Nsight Systems, exported to SQLite.
#pragma once

#include <cstdint>
#include <optional>

#include "validate/profiles/pieces.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// Adds a report that `nsys export --type sqlite` wrote: a source for each GPU of each process that runs kernels of
/// NCCL, and a record for each call or group of calls. A kernel's correlation leads to its launch, and the launch to
/// the NVTX range around it (nsight_ranges.hpp), which has operation, size and communicator. Kernels of one group and
/// stream are one record. Times count from the session's start in UTC; without it each file has a clock of its own.
///
/// Tables and columns differ by version: those that are missing say nothing. Kernels whose columns are not numbers are
/// errors; launches and ranges that are not as they should be are counted and left out, with a warning.
///
/// `rank`: of the first GPU of the file; the others count on by GPU. None: of one GPU the variable RANK (or
/// OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, SLURM_PROCID) in the report, else the number after "rank" in the file's
/// name, else the rank in the largest communicator that it initializes; of several only the latter. Throws InputError
/// that names file, table and row; and if nothing says the ranks.
void read_nsight(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile);

}  // namespace ringsim::profiles
