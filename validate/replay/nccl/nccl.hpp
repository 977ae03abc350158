// NCCL between the GPUs of one process or of several. This header, and all that include it, compile without NCCL.
#pragma once

#include <chrono>
#include <memory>

#include "validate/replay/gpu/communicators.hpp"

namespace ringsim::replay::gpu {

/// `device`: what open_cuda() gave; it must live longer. Throws EnvironmentError if there is no libnccl.so.2 that
/// will do (RINGSIM_NCCL_LIBRARY names another), and in a build without nccl.h.
///
/// `leave_time`: clear() and abort() wait no longer for NCCL; the device is abandoned then. 10 s are assumed to be
/// plenty: if a GPU still answers, it is a matter of milliseconds.
std::unique_ptr<Communicators> open_nccl(Device& device,
                                         std::chrono::milliseconds leave_time = std::chrono::seconds(10));

}  // namespace ringsim::replay::gpu
