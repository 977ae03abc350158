#include "tools/replay/replay_cuda.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "scenarios/decoder/files.hpp"

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/output/output.hpp"
#include "tools/stop.hpp"
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
  std::optional<Result::Modeled> modeled(const ReplayPoint& point) const override {
    if (!samples_) return std::nullopt;
    const Schedule& schedule = only(point).schedule();
    const gpu::Plan plan = gpu::make_plan(schedule);
    const auto us = [&](gpu::Serving serving) {
      return microseconds(
          gpu::predict_plan(plan, places(point), *samples_, {serving, options_.graph, options_.copy_blocks}));
    };
    return Result::Modeled{us(gpu::Serving::in_turn), us(gpu::Serving::shared)};
  }
  std::vector<Measured> replay(const ReplayPoint& point) override {
    const CheckedSchedule& schedule = only(point);
    say_where(schedule.schedule().collective.ranks);
    options_.repeats = point.repeats;
    return {gpu::replay_on(*device_, schedule, places(point), options_)};
  }

 private:
  gpu::Places places(const ReplayPoint& point) const {
    return gpu::place_actors(only(point).schedule(), device_->gpus(), point.scenario.main().servers_on_cpu);
  }
  void say_where(int ranks) {
    if (std::exchange(said_, true)) return;
    say(fmt::format("ringsim: measured on {}{}\n", device_->name(),
                    ranks > device_->gpus() ? ": several ranks per GPU" : ""));
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
