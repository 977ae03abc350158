// Instead of the GPUs that open_cuda() finds: FAKE_GPUS fake ones (default: one) with much memory; and instead of NCCL
// a fake one between them. FAKE_GPU_FAULT makes them fail.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/base/error.hpp"
#include "tests/support/fakes/fake_device.hpp"
#include "tests/support/fakes/fake_nccl.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/nccl/nccl.hpp"

namespace ringsim::replay::gpu {

namespace {

std::string told(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): nobody sets it
  return value == nullptr ? "" : value;
}

/// Processes share no fake world: a process that is to meet others says where, and waits there alone and in vain.
class OfOneProcess : public test::FakeNccl {
 public:
  using FakeNccl::FakeNccl;
  Result make_meeting_point(MeetingPoint& out) override {
    Result made = FakeNccl::make_meeting_point(out);
    const std::string me = std::to_string(getpid());
    std::copy(me.begin(), me.end(), out.begin() + at);
    return made;
  }
  Result join(int size, std::span<const Member> mine, const MeetingPoint& where, std::vector<End>& out) override {
    MeetingPoint own = where;
    if (static_cast<std::size_t>(size) != mine.size()) {
      std::fprintf(stderr, "fake: rank %d on GPU %d meets at process %s\n", mine[0].rank, mine[0].gpu, &where[at]);
      if (Result made = make_meeting_point(own); !made.good()) return made;
    }
    std::fill(own.begin() + at, own.end(), '\0');
    return FakeNccl::join(size, mine, own, out);
  }

 private:
  static constexpr int at = 64;  // beyond what FakeNccl writes there: a process id
};

}  // namespace

std::unique_ptr<Device> open_cuda(std::optional<int>) {
  const std::string fault = told("FAKE_GPU_FAULT");
  if (fault == "absent") require({Fault::absent, "no GPU is faked"}, "looking for GPUs");
  test::FakeSettings settings;
  if (const std::string gpus = told("FAKE_GPUS"); !gpus.empty()) settings.gpus = std::stoi(gpus);
  if (fault == "memory") settings.elements = 1 << 10;
  if (fault == "lost") {
    settings.fails_at = 300;
    settings.fault = Fault::lost;
  }
  if (fault == "stall") settings.stalls_after = 100;
  if (fault == "misuse") {
    settings.fails_at = 300;
    settings.fault = Fault::misuse;
  }
  return std::make_unique<test::FakeDevice>(settings);
}

std::unique_ptr<Communicators> open_nccl(Device& device, std::chrono::milliseconds) {
  const std::string fault = told("FAKE_GPU_FAULT");
  if (fault == "no library") throw EnvironmentError("loading NCCL: none is faked\n  hint: none");
  test::FakeNcclSettings settings;
  if (fault == "network") settings.fails_at = 100;
  return std::make_unique<OfOneProcess>(dynamic_cast<test::FakeDevice&>(device), test::make_fake_world(), settings);
}

}  // namespace ringsim::replay::gpu
