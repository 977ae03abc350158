// What a build without nccl.h has in place of it.
#include "sim/base/error.hpp"
#include "validate/replay/nccl/nccl.hpp"

namespace ringsim::replay::gpu {

std::unique_ptr<Communicators> open_nccl(Device&, std::chrono::milliseconds) {
  throw EnvironmentError(
      "this ringsim was built without NCCL\n  hint: install nccl.h (libnccl-dev from NVIDIA's packages) and CUDA, or "
      "set -DRINGSIM_NCCL_INCLUDE=FOLDER, and rebuild; CMake then prints \"Replay through NCCL\"");
}

}  // namespace ringsim::replay::gpu
