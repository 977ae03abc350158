// `ringsim replay --backend nccl`: on GPUs, through NCCL.
#pragma once

#include "tools/replay/replay_backend.hpp"

namespace ringsim::tools {

/// As replay_command(): one process with a GPU for each actor, or under mpirun a process for each.
int replay_by_nccl(const ReplayArguments& arguments);

}  // namespace ringsim::tools
