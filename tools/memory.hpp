// How much memory a prediction may take.
#pragma once

#include <optional>

#include "sim/base/units.hpp"

namespace ringsim::tools {

/// What --max-memory says; Options::max_memory() sets it.
extern std::optional<Bytes> max_memory;

/// That, or what this machine has, or the limits of its container or shell, if they are less (cgroup, ulimit -v).
Bytes memory_limit();

}  // namespace ringsim::tools
