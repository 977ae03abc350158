#include "tools/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

namespace ringsim::tools {

std::optional<Bytes> max_memory;

Bytes memory_limit() {
  if (max_memory) return *max_memory;
  std::int64_t least = INT64_MAX;
  if (const long pages = sysconf(_SC_PHYS_PAGES); pages > 0)
    least = std::int64_t{pages} * std::int64_t{sysconf(_SC_PAGESIZE)};
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(least))
    least = static_cast<std::int64_t>(limit.rlim_cur);
  // Version 2 and 1 of control groups; "max" is no number.
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (std::int64_t most = 0; std::ifstream(path) >> most && most > 0) least = std::min(least, most);
  return {least};
}

}  // namespace ringsim::tools
