// A schedule carried out on GPUs: its plan played, timed and held against what it promises.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <vector>

#include "sim/check/check.hpp"
#include "validate/replay/gpu/communicators.hpp"
#include "validate/replay/gpu/device.hpp"
#include "validate/replay/gpu/plan.hpp"
#include "validate/replay/replay.hpp"

namespace ringsim::replay::gpu {

struct GpuOptions {
  Repeats repeats{.warmups = 3, .timed = 20};
  /// The whole as one graph, launched once a run; else call by call, so that the time holds what the calls take.
  bool graph = true;
  /// Blocks of a copy, as for Device::copy.
  int copy_blocks = 0;
  /// How long a run may take before it is given up.
  std::chrono::milliseconds patience{30000};
  const std::atomic<bool>* stop = nullptr;

  /// Set if several processes replay together. Called before each run and after the last; returns when all have
  /// called it, and throws if one does not come.
  std::function<void()> barrier;
  /// Called once a communicator, in the same order in all processes: one of them makes a meeting point and tells it to
  /// the others. Empty: this process is the only one.
  std::function<MeetingPoint(Communicators&)> meet;
};

/// The place of each actor's memory. Helpers without a GPU of their own (parameter servers) may be in host memory.
using Places = std::vector<Place>;  // [actor]

/// Rank r on GPU r modulo the number of GPUs: with one GPU all ranks are virtual. Helpers likewise, or in host memory.
Places place_actors(const Schedule& schedule, int gpus, bool helpers_on_host);

/// Times by the GPU's own events, from the moment at which the first command may start until the last is done. Throws
/// EnvironmentError if the GPU lacks something, fails or is not done in time, Interrupted, and what
/// require_replayable() throws.
Measured replay_on(Device& device, const CheckedSchedule& checked, const Places& places, const GpuOptions& options);
/// As replay_on(), for a plan that is not the schedule's own, of all actors and without communicators.
Measured replay_plan(Device& device, const Schedule& schedule, const Plan& plan, const Places& places,
                     const GpuOptions& options);

/// This process's part of a plan, from joining its communicators to the last check: the times of its slowest actor, and
/// what its ranks found wrong. `communicators` may be null if the plan has none; each of `plan.mine` needs a GPU of
/// its own if it has some. Throws as replay_on(), and EnvironmentError if a peer does not come or fails; then
/// communicators are aborted, and the device is abandoned if its GPUs did not come back.
ActorRecord replay_part(Device& device, Communicators* communicators, const Schedule& schedule, const Plan& plan,
                        const Places& places, const GpuOptions& options);

/// Polls until all that was issued before `event` is done. Throws EnvironmentError after `patience`, and Interrupted;
/// the device is abandoned then.
void settle(Device& device, Event event, std::chrono::milliseconds patience, const std::atomic<bool>* stop = nullptr);

}  // namespace ringsim::replay::gpu
