// The calls of a job on one clock, each split into waiting and transfer: for pictures and viewers.
#pragma once

#include <cstdint>
#include <vector>

#include "validate/profiles/record.hpp"
#include "validate/profiles/waiting.hpp"

namespace ringsim::profiles {

/// A call of a rank. Times in ns from the first call of the job, by the clock of host 0.
struct TimedCall {
  std::uint32_t rank = 0;
  std::uint32_t call = 0;  ///< index into Profile::calls
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int64_t transfer_ns = 0;  ///< the moment at which the last rank arrives: waiting ends there
  bool is_split = false;         ///< false: `transfer_ns` is the begin
};

/// By rank, then by begin. Calls without moments, and of hosts whose clock is not known, are left out.
std::vector<TimedCall> timeline_of(const Profile& profile, const Account& account);

}  // namespace ringsim::profiles
