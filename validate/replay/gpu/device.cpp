#include "validate/replay/gpu/device.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace ringsim::replay::gpu {

void require(const Result& result, std::string_view doing) {
  const auto lack = [&](std::string_view hint) {
    return EnvironmentError(fmt::format("{}: {}\n  hint: {}", doing, result.said, hint));
  };
  switch (result.fault) {
    case Fault::none:
      return;
    case Fault::absent:
      throw lack("a replay on GPUs needs an NVIDIA GPU and its driver; `nvidia-smi` shows whether both are there");
    case Fault::memory:
      throw lack("smaller messages, fewer ranks, or what else occupies the GPU gone: `nvidia-smi` shows it");
    case Fault::lost:
      throw lack("the GPU cannot be used any more by this process; `dmesg | grep -i xid` shows what the driver saw");
    case Fault::other:
      throw lack("this is what the driver, or NCCL, says; nothing was measured");
    case Fault::misuse:
      throw InvariantError(fmt::format("{}: {}", doing, result.said));
  }
}

}  // namespace ringsim::replay::gpu
