// What runs on the GPU. Each is issued to a stream and returns what the launch says.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>

#include "validate/replay/gpu/device.hpp"

namespace ringsim::replay::gpu::kernels {

/// Loads all of them onto the current GPU: a capture must not come upon one that is not there yet, and a GPU that this
/// build has no code for is reported at once.
cudaError_t load();

/// to = from. By `blocks` thread blocks, of 512 threads each.
cudaError_t copy(cudaStream_t stream, Memory to, Memory from, int blocks);
/// to = base + what
cudaError_t add(cudaStream_t stream, Memory to, Memory base, Memory what);
cudaError_t set(cudaStream_t stream, Memory to, float value);
cudaError_t put(cudaStream_t stream, Memory to, Numbers numbers);
/// By one thread.
cudaError_t compute(cudaStream_t stream, std::chrono::nanoseconds time);

/// What compare() counts in, in the memory of its GPU: how many elements are wrong, and the first of them.
struct Tally {
  unsigned long long wrong = 0, first = ~0ULL;
};
cudaError_t compare(cudaStream_t stream, Memory memory, Numbers numbers, Tally* tally);

}  // namespace ringsim::replay::gpu::kernels
