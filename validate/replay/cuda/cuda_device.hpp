// The GPUs of this host through CUDA. This header, and all that include it, know nothing of CUDA itself.
#pragma once

#include <memory>

#include "validate/replay/gpu/device.hpp"

namespace ringsim::replay::gpu {

/// Throws EnvironmentError where there is no driver or no GPU, and in a build without CUDA (RINGSIM_CUDA).
std::unique_ptr<Device> open_cuda();

}  // namespace ringsim::replay::gpu
