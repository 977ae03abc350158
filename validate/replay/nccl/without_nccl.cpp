// What a build without nccl.h has in place of it.
#include "sim/base/error.hpp"
#include "validate/replay/nccl/nccl.hpp"

namespace ringsim::replay::gpu {

std::unique_ptr<Communicators> open_nccl(Device&, std::chrono::milliseconds) {
  throw EnvironmentError(
      "this ringsim was built without NCCL\n"
      "  hint: build it where nccl.h is found next to CUDA (libnccl-dev of NVIDIA's packages), or with "
      "-DRINGSIM_NCCL_INCLUDE=FOLDER; CMake says \"Replay through NCCL\" then");
}

}  // namespace ringsim::replay::gpu
