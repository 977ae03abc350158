#include "algorithms/training/ddp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

/// [layer] when its backward pass ends, if nothing holds it up.
std::vector<Picoseconds> backward_ends(const std::vector<LayerCost>& layers) {
  Picoseconds now{0};
  for (const LayerCost& layer : layers) now = add(now, layer.forward);
  std::vector<Picoseconds> ends(layers.size());
  for (std::size_t l = layers.size(); l-- > 0;) ends[l] = now = add(now, layers[l].backward);
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
                                    Picoseconds cycle) {
  ensure(cycle.count() > 0, "a cycle takes time");
  const std::vector<Picoseconds> ends = backward_ends(layers);
  std::vector<Bucket> buckets;
  each_tensor_backward(layers, bytes_per_element, [&](int layer, int tensor, Bytes bytes) {
    const std::int64_t ready = ends[static_cast<std::size_t>(layer)].count();
    const std::int64_t goes = std::max<std::int64_t>(1, (ready + cycle.count() - 1) / cycle.count());
    if (buckets.empty() || buckets.back().cycle != goes || buckets.back().bytes + bytes > size) {
      buckets.emplace_back();
      buckets.back().cycle = goes;
    }
    put_into(buckets.back(), layer, tensor, bytes);
  });
  return buckets;
}

namespace {

using Task = Program::Task;
using As = Program::Touch::As;

/// Writes a training step down as a program.
class StepWriter {
 public:
  explicit StepWriter(const TrainingStep& step) : step_(step) {
    out_.name = step.name;
    out_.streams = {Program::StreamKind::compute};
    if (!step.buckets.empty()) {
      communication_ = add_stream(Program::StreamKind::communication);
      if (step.cycle.count() > 0) cycles_ = add_stream(Program::StreamKind::host);
    }
    if (step.host_launch.count() > 0) host_ = add_stream(Program::StreamKind::host);
    rank_.streams.resize(out_.streams.size());
  }

  Program write() {
    name_variables();
    for (std::size_t l = 0; l < step_.layers.size(); ++l) write_forward(l);
    for (std::size_t l = step_.layers.size(); l-- > 0;) write_backward(l);
    for (std::size_t b = 0; b < step_.buckets.size(); ++b) write_call(b);
    write_update();
    out_.iterations = step_.steps;
    out_.ranks = out_.actors = 1;
    if (!step_.schedules.empty()) {
      const Schedule& one = step_.schedules.front().schedule();
      out_.ranks = one.collective.ranks;
      for (const CheckedSchedule& each : step_.schedules) out_.actors = std::max(out_.actors, each.schedule().actors);
    }
    add_helpers();
    out_.roles.insert(out_.roles.begin(), std::move(rank_));
    return std::move(out_);
  }

 private:
  Stream add_stream(Program::StreamKind kind) {
    out_.streams.push_back(kind);
    return static_cast<Stream>(out_.streams.size()) - 1;
  }
  std::vector<Task>& stream(Stream number) { return rank_.streams[static_cast<std::size_t>(number)]; }
  const LayerCost& layer(std::size_t l) const { return step_.layers[l]; }
  int gradient(std::size_t layer, std::size_t tensor) const { return first_[layer] + 2 * static_cast<int>(tensor); }
  int weights(std::size_t layer, std::size_t tensor) const { return gradient(layer, tensor) + 1; }

  void name_variables() {
    for (const LayerCost& each : step_.layers) {
      first_.push_back(static_cast<int>(out_.variables.size()));
      for (std::size_t t = 0; t < each.tensors.size(); ++t) {
        const std::string which = each.tensors.size() == 1 ? each.name : fmt::format("{}[{}]", each.name, t);
        out_.learns.push_back({static_cast<int>(out_.variables.size()) + 1, static_cast<int>(out_.variables.size())});
        out_.variables.push_back("the gradient of " + which);
        out_.variables.push_back("the weights of " + which);
      }
    }
  }

  // A kernel: the host launches it first.
  Task& kernel(std::string name, Picoseconds time) {
    Task task{.name = std::move(name), .time = time, .call = -1, .after = {}, .touches = {}};
    if (host_ >= 0) {
      Task launch{.name = "launch " + task.name, .time = step_.host_launch, .call = -1, .after = {}, .touches = {}};
      if (stream(host_).empty() && step_.host_waits) launch.after.push_back({0, -1, 1});  // see write_update()
      stream(host_).push_back(std::move(launch));
      task.after.push_back({host_, static_cast<int>(stream(host_).size()), 0});
    }
    stream(0).push_back(std::move(task));
    return stream(0).back();
  }

  void write_forward(std::size_t l) {
    Task& task = kernel("forward " + layer(l).name, layer(l).forward);
    for (std::size_t t = 0; t < layer(l).tensors.size(); ++t) task.touches.push_back({As::read, weights(l, t), -1});
  }

  void write_backward(std::size_t l) {
    Task& task = kernel("backward " + layer(l).name, layer(l).backward);
    for (std::size_t t = 0; t < layer(l).tensors.size(); ++t) {
      task.touches.push_back({As::read, weights(l, t), -1});
      task.touches.push_back({As::make, gradient(l, t), -1});
    }
    for (const Bucket& bucket : step_.buckets) {
      if (bucket.ready != static_cast<int>(l)) continue;
      if (step_.hook.count() > 0)
        stream(0).push_back({.name = "hook", .time = step_.hook, .call = -1, .after = {}, .touches = {}});
      ready_.push_back(static_cast<int>(stream(0).size()));
    }
  }

  void write_call(std::size_t b) {
    const Bucket& bucket = step_.buckets[b];
    Task task{.name = fmt::format("bucket {}", b),
              .time = step_.launch,
              .call = static_cast<int>(b),
              .after = {},
              .touches = {}};
    task.after.push_back({0, step_.overlap ? ready_[b] : static_cast<int>(stream(0).size()), 0});
    if (cycles_ >= 0) {
      const std::int64_t before = b == 0 ? 0 : step_.buckets[b - 1].cycle;
      stream(cycles_).push_back(
          {.name = "cycle", .time = times(bucket.cycle - before, step_.cycle), .call = -1, .after = {}, .touches = {}});
      if (b == 0) stream(cycles_).back().after.push_back({0, -1, 1});
      task.after.push_back({cycles_, static_cast<int>(b) + 1, 0});
    }
    stream(communication_).push_back(std::move(task));
    Program::Call call{.name = fmt::format("bucket {}", b),
                       .schedule = step_.schedules[b],
                       .members = {},
                       .variables = {},
                       .divisor = step_.schedules[b].schedule().collective.ranks};
    for (const Bucket::Tensor& tensor : bucket.tensors)
      call.variables.push_back(
          gradient(static_cast<std::size_t>(tensor.layer), static_cast<std::size_t>(tensor.tensor)));
    out_.calls.push_back(std::move(call));
  }

  void write_update() {
    Task& task = kernel("update", step_.update);
    if (communication_ >= 0) task.after.push_back({communication_, static_cast<int>(step_.buckets.size()), 0});
    for (std::size_t l = 0; l < step_.layers.size(); ++l)
      for (std::size_t t = 0; t < layer(l).tensors.size(); ++t)
        task.touches.push_back({As::apply, gradient(l, t), weights(l, t)});
    // The end of the step before: how many tasks that is, is known now.
    for (std::vector<Task>& tasks : rank_.streams)
      for (Task& each : tasks)
        for (Program::After& after : each.after)
          if (after.tasks < 0) after.tasks = static_cast<int>(stream(0).size());
  }

  // Helpers of the all-reduces (servers, switches) take part in the calls alone.
  void add_helpers() {
    if (out_.actors == out_.ranks) return;
    Program::Role helper;
    helper.streams.resize(out_.streams.size());
    for (std::size_t b = 0; b < step_.buckets.size(); ++b)
      helper.streams[static_cast<std::size_t>(communication_)].push_back(
          {.name = fmt::format("bucket {}", b), .time = {}, .call = static_cast<int>(b), .after = {}, .touches = {}});
    out_.roles.push_back(std::move(helper));
    out_.role_of.assign(static_cast<std::size_t>(out_.actors), 0);
    std::fill(out_.role_of.begin() + out_.ranks, out_.role_of.end(), 1);
  }

  const TrainingStep& step_;
  Program out_;
  Program::Role rank_;
  Stream communication_ = -1, cycles_ = -1, host_ = -1;
  std::vector<int> first_;  // [layer] its first variable
  std::vector<int> ready_;  // [bucket] after how many tasks of the compute stream it may go
};

}  // namespace

Program training_program(const TrainingStep& step) {
  ensure(step.buckets.size() == step.schedules.size(), "every bucket has a schedule");
  return StepWriter(step).write();
}

Picoseconds training_step_time(const TrainingStep& step, const std::vector<Picoseconds>& times) {
  Picoseconds host{0}, gpu{0};
  const auto run = [&](Picoseconds time) {
    host = add(host, step.host_launch);
    gpu = add(std::max(gpu, host), time);
  };
  for (const LayerCost& layer : step.layers) run(layer.forward);
  std::vector<Picoseconds> ready;
  for (std::size_t l = step.layers.size(); l-- > 0;) {
    run(step.layers[l].backward);
    for (const Bucket& bucket : step.buckets)
      if (bucket.ready == static_cast<int>(l)) ready.push_back(gpu = add(gpu, step.hook));
  }
  Picoseconds calls{0};
  for (std::size_t b = 0; b < times.size(); ++b) {
    Picoseconds begin = step.overlap ? ready[b] : gpu;
    if (step.cycle.count() > 0) begin = std::max(begin, ringsim::times(step.buckets[b].cycle, step.cycle));
    calls = add(std::max(calls, begin), times[b]);
  }
  gpu = std::max(gpu, calls);
  run(step.update);
  return gpu;
}

}  // namespace ringsim
