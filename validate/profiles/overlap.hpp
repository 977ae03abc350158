// Share of a call's time in which other kernels run on its GPU.
#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// A kernel on the GPU of one rank that does not belong to NCCL.
struct ComputeKernel {
  std::int64_t begin = 0;                  ///< ns, by the clock of the calls
  std::uint32_t duration = 0, stream = 0;  ///< ns: up to 4 s
};

/// Sets Call::overlap of the calls of one rank: the share of each call's time in which kernels of other streams ran.
/// Sorts `compute`. NCCL has one stream per process group; with more than 256 streams the shares stay unknown.
void set_overlap(std::deque<ComputeKernel>& compute, std::span<Call> calls);

}  // namespace ringsim::profiles
