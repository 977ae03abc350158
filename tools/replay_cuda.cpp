#include "tools/replay_cuda.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "scenarios/files.hpp"

#include "sim/error.hpp"
#include "sim/quantity.hpp"
#include "tools/output.hpp"
#include "tools/report.hpp"
#include "validate/replay/cuda/cuda_device.hpp"
#include "validate/replay/gpu/gpu_model.hpp"
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
    if (!arguments.samples.empty())
      samples_ = gpu::read_probe(scenarios::read_text(arguments.samples, "a probe's table"), arguments.samples);
  }
  std::vector<Measured> replay(const ReplayPoint& point) override {
    if (point.jobs.size() > 1)
      throw InputError("/jobs", fmt::format("expected one collective, found {}", point.jobs.size()),
                       "on GPUs one is replayed at a time; --backend tcp replays several");
    const CheckedSchedule& schedule = point.jobs.front().schedule;
    const gpu::Places places = gpu::place_actors(schedule.schedule(), device_->gpus(), point.scenario.servers_on_cpu);
    say_where(schedule.schedule().collective.ranks);
    options_.repeats = point.repeats;
    const Measured measured = gpu::replay_on(*device_, schedule, places, options_);
    if (samples_) say_modelled(schedule.schedule(), places, measured);
    return {measured};
  }

 private:
  void say_where(int ranks) {
    if (std::exchange(said_, true)) return;
    say(fmt::format("ringsim: measured on {}{}\n", device_->name(),
                    ranks > device_->gpus() ? ": several ranks a GPU" : ""));
  }

  void say_modelled(const Schedule& schedule, const gpu::Places& places, const Measured& measured) const {
    const gpu::Plan plan = gpu::make_plan(schedule);
    const auto us = [&](gpu::Serving serving) {
      return microseconds(gpu::predict_plan(plan, places, *samples_, {serving, options_.graph, options_.copy_blocks}));
    };
    say(fmt::format("ringsim: {}, {} ranks, {}: served in turn {:.3f} us, sharing {:.3f} us, measured {:.3f} us\n",
                    schedule.algorithm, schedule.collective.ranks, format(schedule.collective.bytes),
                    us(gpu::Serving::in_turn), us(gpu::Serving::shared), microseconds(measured.median)));
  }

  std::unique_ptr<gpu::Device> device_;
  std::optional<gpu::Probe> samples_;
  gpu::GpuOptions options_;
  bool said_ = false;
};

}  // namespace

std::unique_ptr<ReplayBackend> make_cuda_backend(const ReplayArguments& arguments) {
  return std::make_unique<OnGpus>(arguments);
}

}  // namespace ringsim::tools
