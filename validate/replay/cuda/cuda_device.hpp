// The GPUs of this host through CUDA. This header, and all that include it, compile without CUDA.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "validate/replay/gpu/device.hpp"

namespace ringsim::replay::gpu {

/// What NCCL needs of the GPUs beyond Device, and Device's users do not.
class NativeGpus {
 public:
  virtual ~NativeGpus() = default;
  /// A cudaStream_t.
  virtual void* native(Stream stream) const = 0;
  /// What this thread calls next is for that GPU.
  virtual Result choose(int gpu) = 0;
  /// As choose(), in any thread and in any state of the device.
  virtual void use(int gpu) const noexcept = 0;
  /// How many streaming multiprocessors the smallest of the GPUs has.
  virtual int multiprocessors() const = 0;
  /// Takes all graphs from the device, including those that are running; they go when what is returned is called, by
  /// any thread. What is being captured is dropped.
  virtual std::function<void()> take_graphs() = 0;
};

/// It is also a NativeGpus. `number`: this process is that one of several on this machine, each of which uses one GPU,
/// of that number modulo how many there are, and leaves the others alone. Throws EnvironmentError if there is no
/// driver or no GPU, and in a build without CUDA (RINGSIM_CUDA).
std::unique_ptr<Device> open_cuda(std::optional<int> number = std::nullopt);

}  // namespace ringsim::replay::gpu
