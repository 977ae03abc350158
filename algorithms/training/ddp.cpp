#include "algorithms/training/ddp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// visit(layer, tensor, bytes) in the order in which gradients become ready.
template <class Visit>
void each_tensor_backward(const std::vector<LayerCost>& layers, int bytes_per_element, Visit visit) {
  for (int l = static_cast<int>(layers.size()) - 1; l >= 0; --l) {
    const std::vector<std::int64_t>& tensors = layers[static_cast<std::size_t>(l)].tensors;
    for (int t = static_cast<int>(tensors.size()) - 1; t >= 0; --t)
      visit(l, t, Bytes{tensors[static_cast<std::size_t>(t)]} * bytes_per_element);
  }
}

void put_into(Bucket& bucket, int layer, int tensor, Bytes bytes) {
  bucket.tensors.push_back({layer, tensor});
  bucket.bytes += bytes;
  bucket.ready = layer;  // layers come in falling order
}

/// [layer] when its backward pass ends, if nothing holds it up; with `launch`, when the host has launched it.
std::vector<Picoseconds> backward_ends(const std::vector<LayerCost>& layers, std::optional<Picoseconds> launch) {
  Picoseconds now{0};
  for (const LayerCost& layer : layers) now = add(now, launch.value_or(layer.forward));
  std::vector<Picoseconds> ends(layers.size());
  for (std::size_t l = layers.size(); l-- > 0;) ends[l] = now = add(now, launch.value_or(layers[l].backward));
  return ends;
}

}  // namespace

std::vector<Bucket> pytorch_buckets(const std::vector<LayerCost>& layers, int bytes_per_element, Bytes first,
                                    Bytes size) {
  std::vector<Bucket> buckets;
  bool is_open = false;
  each_tensor_backward(layers, bytes_per_element, [&](int layer, int tensor, Bytes bytes) {
    if (!is_open) buckets.emplace_back();
    put_into(buckets.back(), layer, tensor, bytes);
    is_open = buckets.back().bytes < (buckets.size() == 1 ? first : size);
  });
  return buckets;
}

std::vector<Bucket> horovod_buckets(const std::vector<LayerCost>& layers, int bytes_per_element, Bytes size,
                                    Picoseconds cycle, std::optional<Picoseconds> launch) {
  ensure(cycle.count() > 0, "a cycle takes time");
  const std::vector<Picoseconds> requests = backward_ends(layers, launch);
  std::vector<Bucket> buckets;
  each_tensor_backward(layers, bytes_per_element, [&](int layer, int tensor, Bytes bytes) {
    const std::int64_t requested = requests[static_cast<std::size_t>(layer)].count();
    const std::int64_t goes = std::max<std::int64_t>(1, (requested + cycle.count() - 1) / cycle.count());
    if (buckets.empty() || buckets.back().cycle != goes || buckets.back().bytes + bytes > size) {
      buckets.emplace_back();
      buckets.back().cycle = goes;
    }
    put_into(buckets.back(), layer, tensor, bytes);
  });
  return buckets;
}

namespace {

/// Writes a training step down as a program.
class DdpWriter : StepWriter {
 public:
  DdpWriter(const TrainingStep& step, WatchedWork* work) : StepWriter(step, work) {
    if (!step.buckets.empty()) {
      communication_ = add_stream(Program::StreamKind::communication);
      if (step.cycle.count() > 0) cycles_ = add_stream(Program::StreamKind::host);
    }
    add_host();
  }

  Program write() {
    out_.calls.reserve(step_.buckets.size());
    write_forward_pass();
    for (std::size_t l = n_layers(); l-- > 0;) {
      write_backward(l);
      note_ready(l);
    }
    for (std::size_t b = 0; b < step_.buckets.size(); ++b) write_bucket(b);
    Task& update = write_update();
    if (communication_ >= 0) update.after.push_back({communication_, static_cast<int>(step_.buckets.size()), 0});
    out_.ranks = out_.actors = 1;
    if (!step_.schedules.empty()) {
      const Schedule& one = step_.schedules.front().schedule();
      out_.ranks = one.collective.ranks;
      for (const CheckedSchedule& each : step_.schedules) out_.actors = std::max(out_.actors, each.schedule().actors);
    }
    out_.roles.push_back(take_role());
    add_helpers();
    return std::move(out_);
  }

 private:
  // After how many tasks of the compute stream the buckets go that this layer completes.
  void note_ready(std::size_t l) {
    for (std::size_t b = ready_.size(); b < step_.buckets.size() && step_.buckets[b].ready == static_cast<int>(l);
         ++b) {
      if (step_.hook.count() > 0)
        stream(0).push_back({.name = "hook", .time = step_.hook, .call = -1, .after = {}, .touches = {}});
      ready_.push_back(n_tasks(0));
    }
  }

  void write_bucket(std::size_t b) {
    const Bucket& bucket = step_.buckets[b];
    Task& task = write_call(communication_, static_cast<int>(b));
    task.time = add(task.time, bucket.beyond);
    task.after.push_back({0, step_.overlap ? ready_[b] : n_tasks(0), 0});
    if (cycles_ >= 0) {
      const std::int64_t before = b == 0 ? 0 : step_.buckets[b - 1].cycle;
      stream(cycles_).push_back(
          {.name = "cycle", .time = times(bucket.cycle - before, step_.cycle), .call = -1, .after = {}, .touches = {}});
      if (b == 0) stream(cycles_).back().after.push_back(step_before(0));
      task.after.push_back({cycles_, static_cast<int>(b) + 1, 0});
    }
    Program::Call call{.name = fmt::format("bucket {}", b),
                       .schedule = step_.schedules[b],
                       .members = {},
                       .plan = bucket.plan,
                       .variables = {},
                       .divisor = step_.schedules[b].schedule().collective.ranks};
    for (const Bucket::Tensor& tensor : bucket.tensors)
      call.variables.push_back(
          pieces(static_cast<std::size_t>(tensor.layer))[static_cast<std::size_t>(tensor.tensor)].gradient);
    out_.calls.push_back(std::move(call));
  }

  // Helpers of the all-reduces (servers, switches) take part in the calls alone.
  void add_helpers() {
    if (out_.actors == out_.ranks) return;
    for (std::size_t b = 0; b < step_.buckets.size(); ++b)
      if (step_.schedules[b].schedule().actors > out_.ranks)
        stream(communication_)
            .push_back({.name = {}, .time = {}, .call = static_cast<int>(b), .after = {}, .touches = {}});
    out_.roles.push_back(take_role());
    out_.role_of.assign(static_cast<std::size_t>(out_.actors), 0);
    std::fill(out_.role_of.begin() + out_.ranks, out_.role_of.end(), 1);
  }

  Stream communication_ = -1, cycles_ = -1;
  std::vector<int> ready_;  // [bucket] after how many tasks of the compute stream it may go
};

}  // namespace

Program training_program(const TrainingStep& step, WatchedWork* work) {
  ensure(step.buckets.size() == step.schedules.size(), "every bucket has a schedule");
  return DdpWriter(step, work).write();
}

void GpuClock::begin_step() {
  if (step.host_waits) host = std::max(host, gpu);
}

void GpuClock::run(Picoseconds time) {
  host = add(host, step.host_launch);
  gpu = add(std::max(gpu, host), time);
}

void GpuClock::forward() {
  for (const LayerCost& layer : step.layers) run(layer.forward);
}

void GpuClock::backward() {
  for (std::size_t l = step.layers.size(); l-- > 0;) run(step.layers[l].backward);
}

Picoseconds training_step_time(const TrainingStep& step, const std::vector<Picoseconds>& times) {
  GpuClock clock{step};
  clock.forward();
  std::vector<Picoseconds> ready;
  for (std::size_t l = step.layers.size(); l-- > 0;) {
    clock.run(step.layers[l].backward);
    while (ready.size() < step.buckets.size() && step.buckets[ready.size()].ready == static_cast<int>(l))
      ready.push_back(clock.gpu = add(clock.gpu, step.hook));
  }
  Picoseconds calls{0};
  for (std::size_t b = 0; b < times.size(); ++b) {
    Picoseconds begin = step.overlap ? ready[b] : clock.gpu;
    if (step.cycle.count() > 0) begin = std::max(begin, ringsim::times(step.buckets[b].cycle, step.cycle));
    calls = add(std::max(calls, begin), times[b]);
  }
  clock.gpu = std::max(clock.gpu, calls);
  clock.run(step.update);
  return clock.gpu;
}

Picoseconds alone_step_time(const TrainingStep& step, std::optional<Picoseconds> loss, std::int64_t warmup,
                            std::int64_t steps) {
  const auto one_step = [&](GpuClock clock) {
    clock.forward();
    if (loss) clock.run(*loss);
    clock.backward();
    clock.run(step.update);
    return clock;
  };
  const GpuClock first = one_step({step});
  if (step.host_launch.count() == 0 || step.host_waits) return first.gpu;
  const Picoseconds next = one_step({.step = step, .host = first.host, .gpu = first.gpu}).gpu - first.gpu;
  return warmup > 0 ? next : add(first.gpu, times(steps - 1, next)) / steps;
}

}  // namespace ringsim
