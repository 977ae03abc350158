// Replays on the GPUs of this machine.
#pragma once

#include "tools/replay/replay_backend.hpp"

namespace ringsim::tools {

/// Throws EnvironmentError if there is no GPU.
std::unique_ptr<ReplayBackend> make_cuda_backend(const ReplayArguments& arguments);

}  // namespace ringsim::tools
