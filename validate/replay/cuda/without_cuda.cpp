// What a build without CUDA has in place of it.
#include "sim/base/error.hpp"
#include "validate/replay/cuda/cuda_device.hpp"

namespace ringsim::replay::gpu {

std::unique_ptr<Device> open_cuda(std::optional<int>) {
  throw EnvironmentError(
      "this ringsim was built without CUDA\n  hint: install nvcc (CUDA 12 or later) and rebuild; with "
      "-DRINGSIM_CUDA=ON, the build shows why CUDA is not found");
}

}  // namespace ringsim::replay::gpu
