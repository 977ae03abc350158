// Replays by the fake NCCL: in one process, and in several that are threads here.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/fakes/fake_nccl.hpp"
#include "validate/replay/gpu/gpu_replay.hpp"

namespace ringsim::test {

using replay::gpu::GpuOptions;
using replay::gpu::Plan;

std::vector<Actor> all_actors(const Schedule& schedule);

/// One run that counts and none before. Who is right has much time: machines may be busy.
GpuOptions one_run(bool graph, std::chrono::milliseconds patience = std::chrono::seconds(60));

/// What came of one process's part.
struct Came {
  std::string said;  ///< "right", the first wrong element, or the message of what was thrown
  bool interrupted = false, aborted = false, abandoned = false;
  bool nothing_held = false;  ///< neither memory nor ends, and none was left while it was at work
  int device_calls = 0, nccl_calls = 0, kernels = 0, expected = 0;
};

struct Machine {
  FakeSettings device;
  FakeNcclSettings nccl;
  /// When the first run begins.
  enum class Trouble : std::uint8_t { none, gpu_stalls, nccl_fails } trouble = Trouble::none;
};

/// All actors in this process, a GPU for each.
Came replay_alone(const Schedule& schedule, const Plan& plan, const GpuOptions& options, Machine machine = {});

/// Processes that can wait for each other, as those of a real replay do by MPI.
class Gathering {
 public:
  explicit Gathering(int n) : n_(n) {}
  /// Until all have come. Throws EnvironmentError when `patience` is over, or one has left.
  void wait(std::chrono::milliseconds patience);
  void leave();
  MeetingPoint meet(Communicators& communicators, bool first, std::chrono::milliseconds patience);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int n_, here_ = 0;
  std::uint64_t round_ = 0;
  bool left_ = false;
  MeetingPoint point_{};
};

/// A process for each of `parts`, with a device of its own whose GPUs are its actors'. The machines' GPUs are set here.
using MakePlan = std::function<Plan(const Schedule&, std::span<const Actor>)>;
std::vector<Came> replay_together(const Schedule& schedule, const std::vector<std::vector<Actor>>& parts,
                                  const MakePlan& make, const GpuOptions& options, std::vector<Machine> machines);

}  // namespace ringsim::test
