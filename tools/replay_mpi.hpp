// `mpirun -n N ringsim replay --backend mpi`.
#pragma once

#include "tools/commands.hpp"

namespace ringsim::tools {

/// As replay_command(), in each of the processes. Process 0 writes, and says what is wrong.
int replay_under_mpi(const ReplayArguments& arguments);

}  // namespace ringsim::tools
