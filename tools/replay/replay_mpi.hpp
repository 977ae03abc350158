// `mpirun -n N ringsim replay --backend mpi`, and what any backend does whose processes MPI has started.
#pragma once

#include <functional>
#include <memory>

#include "tools/replay/replay_backend.hpp"
#include "validate/replay/mpi/mpi_session.hpp"

namespace ringsim::tools {

/// `ringsim replay`, in each of the processes. Process 0 writes, and says what is wrong.
int replay_under_mpi(const ReplayArguments& arguments);

/// As replay_under_mpi(), by the backend that `make` gives. If one process fails, all are ended.
int replay_together(replay::MpiSession& session, const ReplayArguments& arguments,
                    const std::function<std::unique_ptr<ReplayBackend>()>& make);

}  // namespace ringsim::tools
