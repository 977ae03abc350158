#include "sim/program/slowdown.hpp"

#include "sim/base/error.hpp"

namespace ringsim {

namespace {
constexpr std::int64_t full_speed = 1'000'000;
}  // namespace

Slowdown::Slowdown(const LoweredProgram& lowered, std::int64_t millionths, const std::vector<Stream>& apart)
    : lowered_(lowered),
      millionths_(millionths),
      slows_(lowered.program().streams.size(), true),
      actors_(static_cast<std::size_t>(lowered.program().actors)) {
  ensure(millionths >= full_speed, "a slowdown makes nothing faster");
  for (const Stream stream : apart) slows_[static_cast<std::size_t>(stream)] = false;
  for (Of& it : actors_) it.kernels.resize(lowered.program().streams.size());
}

bool Slowdown::is_kernel(const StepPlace& place, const Program::Task& task) const {
  return task.call < 0 &&
         lowered_.program().streams[static_cast<std::size_t>(place.stream)] == Program::StreamKind::compute;
}

Picoseconds Slowdown::called_until(const Of& it, SimTime now) {
  return it.open > 0 ? it.called + (now - it.since) : it.called;
}

void Slowdown::count(Of& it, int change, SimTime now) const {
  it.called = called_until(it, now);
  it.since = now;
  it.open += change;
}

void Slowdown::on_compute(const ComputeEvent& event) {
  Of& it = actors_[static_cast<std::size_t>(event.actor)];
  const StepPlace place = lowered_.place_of(event.actor, event.lane, event.step);
  const Program::Task& task = lowered_.task_of(event.actor, place);
  if (task.call >= 0 && !event.begins) {
    if (!slows_[static_cast<std::size_t>(place.stream)]) return;
    if (place.first) count(it, 1, event.when);
    if (place.last) count(it, -1, event.when);
    return;
  }
  if (!event.begins || !is_kernel(place, task)) return;
  const Program& program = lowered_.program();
  const Picoseconds time =
      program.time ? program.time(event.actor, place.stream, place.task, place.iteration) : task.time;
  // One picosecond at full speed does `millionths` of it, with a call open a million.
  it.kernels[static_cast<std::size_t>(place.stream)] = {
      .left = Work{time.count()} * millionths_, .since = event.when, .called = called_until(it, event.when)};
}

Picoseconds Slowdown::longer(const ComputeEvent& event) {
  Of& it = actors_[static_cast<std::size_t>(event.actor)];
  const StepPlace place = lowered_.place_of(event.actor, event.lane, event.step);
  if (!is_kernel(place, lowered_.task_of(event.actor, place))) return Picoseconds{0};
  Kernel& kernel = it.kernels[static_cast<std::size_t>(place.stream)];
  const Picoseconds all = event.when - kernel.since, called_now = called_until(it, event.when),
                    called = called_now - kernel.called;
  kernel.left -= Work{(all - called).count()} * millionths_ + Work{called.count()} * full_speed;
  kernel.since = event.when;
  kernel.called = called_now;
  if (kernel.left <= 0) return Picoseconds{0};
  has_slowed_ = true;
  return Picoseconds{static_cast<std::int64_t>((kernel.left + millionths_ - 1) / millionths_)};
}

}  // namespace ringsim
