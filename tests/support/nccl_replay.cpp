#include "tests/support/nccl_replay.hpp"

#include <numeric>
#include <thread>

#include "sim/base/error.hpp"

namespace ringsim::test {

using replay::gpu::place_actors;
using replay::gpu::Places;
using replay::gpu::replay_part;

std::vector<Actor> all_actors(const Schedule& schedule) {
  std::vector<Actor> all(static_cast<std::size_t>(schedule.actors));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

GpuOptions one_run(bool graph, std::chrono::milliseconds patience) {
  return {.repeats = {.warmups = 0, .timed = 1}, .graph = graph, .patience = patience};
}

namespace {

Came replay_in(FakeDevice& device, FakeNccl& nccl, const Schedule& schedule, const Plan& plan, const Places& places,
               const GpuOptions& options) {
  Came came;
  try {
    const replay::ActorRecord record = replay_part(device, &nccl, schedule, plan, places, options);
    came.said = record.wrong == 0 ? "right" : record.first_wrong;
  } catch (const EnvironmentError& error) {
    came.said = error.what();
  } catch (const InvariantError& error) {
    came.said = std::string("our mistake: ") + error.what();
  } catch (const Interrupted& error) {
    came.said = error.what();
    came.interrupted = true;
  }
  came.aborted = nccl.aborted();
  came.abandoned = device.abandoned();
  came.nothing_held = device.held() == 0 && nccl.held() == 0 && !nccl.left_at_work();
  came.device_calls = device.calls();
  came.nccl_calls = nccl.calls();
  came.kernels = nccl.kernels();
  came.expected = nccl.expected();
  return came;
}

}  // namespace

Came replay_alone(const Schedule& schedule, const Plan& plan, const GpuOptions& options, Machine machine) {
  machine.device.gpus = schedule.actors;
  FakeDevice device(machine.device);
  FakeNccl nccl(device, make_fake_world(), machine.nccl);
  return replay_in(device, nccl, schedule, plan, place_actors(schedule, schedule.actors, false), options);
}

void Gathering::wait(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const std::uint64_t round = round_;
  if (++here_ == n_) {
    here_ = 0;
    ++round_;
    changed_.notify_all();
    return;
  }
  changed_.wait_for(lock, patience, [&] { return round_ != round || left_; });
  if (round_ != round) return;
  --here_;
  throw EnvironmentError("a process did not come");
}

void Gathering::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  changed_.notify_all();
}

MeetingPoint Gathering::meet(Communicators& communicators, bool first, std::chrono::milliseconds patience) {
  if (first) {
    MeetingPoint made{};
    require(communicators.make_meeting_point(made), "making a meeting point");
    const std::lock_guard lock(mutex_);
    point_ = made;
  }
  wait(patience);
  const MeetingPoint found = point_;  // nobody writes before all have read
  wait(patience);
  return found;
}

std::vector<Came> replay_together(const Schedule& schedule, const std::vector<std::vector<Actor>>& parts,
                                  const MakePlan& make, const GpuOptions& options, std::vector<Machine> machines) {
  const auto world = make_fake_world();
  Gathering gathering(static_cast<int>(parts.size()));
  std::vector<Came> came(parts.size());
  std::vector<std::thread> processes;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    processes.emplace_back([&, p] {
      Machine machine = machines[p];
      machine.device.gpus = static_cast<int>(parts[p].size());
      FakeDevice device(machine.device);
      FakeNccl nccl(device, world, machine.nccl);
      GpuOptions own = options;
      own.meet = [&, p](Communicators& communicators) {
        return gathering.meet(communicators, p == 0, options.patience);
      };
      own.barrier = [&] {
        gathering.wait(options.patience);
        if (machine.trouble == Machine::Trouble::gpu_stalls) device.stall();
        if (machine.trouble == Machine::Trouble::nccl_fails) nccl.fail();
      };
      Places places(static_cast<std::size_t>(schedule.actors), 0);
      for (std::size_t i = 0; i < parts[p].size(); ++i)
        places[static_cast<std::size_t>(parts[p][i])] = static_cast<int>(i);
      came[p] = replay_in(device, nccl, schedule, make(schedule, parts[p]), places, own);
      if (came[p].said != "right") gathering.leave();
    });
  }
  for (std::thread& process : processes) process.join();
  return came;
}

}  // namespace ringsim::test
