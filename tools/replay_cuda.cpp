#include "tools/replay_cuda.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/error.hpp"
#include "tools/output.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"

namespace ringsim::tools {

using namespace ringsim::replay;

namespace {

class OnGpus : public ReplayBackend {
 public:
  explicit OnGpus(const ReplayArguments& arguments) : device_(gpu::open_cuda()) {
    options_ = {.repeats = {},
                .graph = !arguments.streams,
                .copy_blocks = arguments.copy_blocks,
                .patience = std::chrono::ceil<std::chrono::milliseconds>(arguments.timeout),
                .stop = &stop_requested};
  }
  std::vector<Measured> replay(const ReplayPoint& point) override {
    if (point.jobs.size() > 1)
      throw InputError("/jobs", fmt::format("expected one collective, found {}", point.jobs.size()),
                       "on GPUs one is replayed at a time; --backend tcp replays several");
    const CheckedSchedule& schedule = point.jobs.front().schedule;
    const gpu::Places places = gpu::place_actors(schedule.schedule(), device_->gpus(), point.scenario.servers_on_cpu);
    say_where(schedule.schedule().collective.ranks);
    options_.repeats = point.repeats;
    return {gpu::replay_on(*device_, schedule, places, options_)};
  }

 private:
  void say_where(int ranks) {
    if (std::exchange(said_, true)) return;
    say(fmt::format("ringsim: measured on {}{}\n", device_->name(),
                    ranks > device_->gpus() ? ": several ranks a GPU" : ""));
  }

  std::unique_ptr<gpu::Device> device_;
  gpu::GpuOptions options_;
  bool said_ = false;
};

}  // namespace

std::unique_ptr<ReplayBackend> make_cuda_backend(const ReplayArguments& arguments) {
  return std::make_unique<OnGpus>(arguments);
}

}  // namespace ringsim::tools
