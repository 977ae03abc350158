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
      throw lack("a replay on GPUs needs an NVIDIA GPU and its driver; check both with `nvidia-smi`");
    case Fault::memory:
      throw lack("use smaller messages or fewer ranks, or stop other processes on the GPU; `nvidia-smi` lists them");
    case Fault::lost:
      throw lack("this process can no longer use the GPU; `dmesg | grep -i xid` shows what the driver reported");
    case Fault::other:
      throw lack("this is the message of the driver or NCCL; nothing was measured");
    case Fault::misuse:
      throw InvariantError(fmt::format("{}: {}", doing, result.said));
  }
}

}  // namespace ringsim::replay::gpu
