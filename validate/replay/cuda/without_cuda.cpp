// What a build without CUDA has in place of it.
#include "sim/base/error.hpp"
#include "validate/replay/cuda/cuda_device.hpp"

namespace ringsim::replay::gpu {

std::unique_ptr<Device> open_cuda(std::optional<int>) {
  throw EnvironmentError(
      "this ringsim was built without CUDA\n"
      "  hint: build it where nvcc (CUDA 12 or later) is found, or with -DRINGSIM_CUDA=ON to see why it is not");
}

}  // namespace ringsim::replay::gpu
