// In place of the GPUs that open_cuda() finds: one that is none, with much memory. FAKE_GPU_FAULT makes it fail.
#include <cstdlib>
#include <string>

#include "sim/error.hpp"
#include "tests/support/fake_device.hpp"
#include "validate/replay/cuda/cuda_device.hpp"

namespace ringsim::replay::gpu {

std::unique_ptr<Device> open_cuda() {
  const char* fault = std::getenv("FAKE_GPU_FAULT");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const std::string told = fault == nullptr ? "" : fault;
  if (told == "absent") require({Fault::absent, "no GPU is faked"}, "looking for GPUs");
  test::FakeSettings settings;
  if (told == "memory") settings.elements = 1 << 10;
  if (told == "lost") {
    settings.fails_at = 300;
    settings.fault = Fault::lost;
  }
  if (told == "stall") settings.stalls_after = 100;
  if (told == "misuse") {
    settings.fails_at = 300;
    settings.fault = Fault::misuse;
  }
  return std::make_unique<test::FakeDevice>(settings);
}

}  // namespace ringsim::replay::gpu
