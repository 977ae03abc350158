#include "algorithms/training/data_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// The launches of a step by one thread, in order: [0, n) forward, the loss, n backward, the update; n of all GPUs.
struct Launches {
  LaunchOrder order;
  int ranks, layers;

  int of_pass() const { return ranks * layers; }
  int of_loss() const { return of_pass(); }
  int of_update() const { return 2 * of_pass() + 1; }
  /// The i-th kernel of a pass on a rank.
  int at(Actor rank, int i, bool is_backward) const {
    const int first = is_backward ? of_loss() + 1 : 0;
    return first + (order == LaunchOrder::by_gpu ? rank * layers + i : i * ranks + rank);
  }
};

class DataParallelWriter : StepWriter {
 public:
  DataParallelWriter(const TrainingStep& step, int ranks, Picoseconds loss,
                     const std::optional<MasterExchange>& exchange, LaunchOrder order, WatchedWork* work)
      : StepWriter(step, work),
        loss_(loss),
        exchange_(exchange),
        launches_{order, ranks, static_cast<int>(step.layers.size())} {
    out_.ranks = out_.actors = ranks;
    batch_ = add_variable("the batch");
    outputs_ = add_variable("the outputs");
    loss_gradient_ = add_variable("the gradient of the loss");
    if (exchange_) communication_ = add_stream(Program::StreamKind::communication);
    if (step.host_launch.count() > 0) thread_ = add_stream(Program::StreamKind::host);
  }

  Program write() {
    for (Program::Learns& learns : out_.learns) learns.keeper = master();
    if (exchange_) write_calls();
    if (thread_ >= 0) {  // each GPU waits for launches of its own
      out_.process_of.assign(static_cast<std::size_t>(out_.actors), 0);
      for (Actor rank = 0; rank < out_.ranks; ++rank) {
        out_.role_of.push_back(rank);
        write_gpu(rank);
      }
      return std::move(out_);
    }
    write_gpu(master());
    if (!exchange_) return std::move(out_);
    out_.role_of.assign(static_cast<std::size_t>(out_.actors), 1);
    out_.role_of[static_cast<std::size_t>(master())] = 0;
    write_gpu(master() == 0 ? 1 : 0);
    return std::move(out_);
  }

 private:
  Actor master() const { return exchange_ ? exchange_->master : 0; }

  void write_calls() {
    const auto add_call = [&](std::string name, const CheckedSchedule& schedule, Program::Variables variables) {
      out_.calls.push_back({.name = std::move(name),
                            .schedule = schedule,
                            .members = {},
                            .variables = std::move(variables),
                            .divisor = 1});
    };
    Program::Variables weights, gradients;
    each_piece([&](const Piece& piece) {
      weights.push_back(piece.weights);
      gradients.push_back(piece.gradient);
    });
    add_call("scatter the batch", exchange_->batch, {batch_});
    add_call("broadcast the model", exchange_->model, std::move(weights));
    add_call("gather the outputs", exchange_->outputs, {outputs_});
    add_call("scatter the loss", exchange_->loss, {loss_gradient_});
    add_call("add up the gradients", exchange_->gradients, std::move(gradients));
    out_.calls.back().divisor = out_.ranks;
  }

  // The next exchange, when the GPU has computed all that it has been given so far.
  Task& write_exchange() {
    Task& task = write_call(communication_, n_tasks(communication_));
    if (n_tasks(0) > 0) task.after.push_back({0, n_tasks(0), 0});
    return task;
  }
  void after_exchange(Task& task) const {
    if (exchange_) task.after.push_back({communication_, exchanged_, 0});
  }

  // The master's thread: all launches of a step.
  void write_thread() {
    const int n_layers = launches_.layers;
    std::vector<Task>& tasks = stream(thread_);
    tasks.resize(static_cast<std::size_t>(launches_.of_update()) + 1);
    for (Task& task : tasks) task.time = step_.host_launch;
    const auto name = [&](int at, const std::string& kernel) {
      tasks[static_cast<std::size_t>(at)].name = "launch " + kernel;
    };
    for (Actor rank = 0; rank < out_.ranks; ++rank)
      for (int i = 0; i < n_layers; ++i) {
        name(launches_.at(rank, i, false),
             fmt::format("forward {} of rank {}", layer(static_cast<std::size_t>(i)).name, rank));
        name(launches_.at(rank, i, true),
             fmt::format("backward {} of rank {}", layer(static_cast<std::size_t>(n_layers - 1 - i)).name, rank));
      }
    name(launches_.of_loss(), "loss");
    name(launches_.of_update(), "update");
    if (step_.host_waits) tasks.front().after.push_back(step_before(0));
  }

  // Each kernel of the GPU after its launch.
  void wait_for_launches(Actor rank) {
    const bool is_master = rank == master();
    const int n_layers = launches_.layers;
    for (int i = 0; i < n_tasks(0); ++i) {
      const int before_backward = n_layers + (is_master ? 1 : 0);
      int at = 0;
      if (i < n_layers)
        at = launches_.at(rank, i, false);
      else if (i < before_backward)
        at = launches_.of_loss();
      else if (i < before_backward + n_layers)
        at = launches_.at(rank, i - before_backward, true);
      else
        at = launches_.of_update();
      stream(0)[static_cast<std::size_t>(i)].after.push_back({thread_, at + 1, 0, is_master ? -1 : master()});
    }
  }

  void write_gpu(Actor rank) {
    const bool is_master = rank == master();
    if (exchange_) {
      Task& scatter = write_exchange();
      scatter.after.push_back(step_before(0));  // the process has ended the step before
      if (is_master) scatter.touches.push_back({As::make, batch_, -1});
      write_exchange();
    }
    exchanged_ = 2;
    Task& forward = write_forward_pass();
    after_exchange(forward);
    if (!exchange_) forward.touches.push_back({As::make, batch_, -1});
    forward.touches.push_back({As::read, batch_, -1});
    stream(0).back().touches.push_back({As::make, outputs_, -1});
    if (exchange_) write_exchange();
    exchanged_ = 3;
    if (is_master) {
      Task& loss = kernel("loss", loss_);
      after_exchange(loss);
      loss.touches.push_back({As::read, outputs_, -1});
      loss.touches.push_back({As::make, loss_gradient_, -1});
    }
    if (exchange_) write_exchange();
    exchanged_ = 4;
    Task& backward = write_backward_pass();
    after_exchange(backward);
    backward.touches.push_back({As::read, loss_gradient_, -1});
    if (exchange_) write_exchange();
    exchanged_ = 5;
    if (is_master) after_exchange(write_update());
    if (thread_ >= 0) {
      if (is_master) write_thread();
      wait_for_launches(rank);
    }
    out_.roles.push_back(take_role());
  }

  Picoseconds loss_;
  const std::optional<MasterExchange>& exchange_;
  Launches launches_;
  Stream communication_ = -1;
  Stream thread_ = -1;  // of the master, if launches take time
  int batch_ = 0, outputs_ = 0, loss_gradient_ = 0;
  int exchanged_ = 0;  // how many exchanges come before what is written now
};

}  // namespace

Program data_parallel_program(const TrainingStep& step, int ranks, Picoseconds loss,
                              const std::optional<MasterExchange>& exchange, LaunchOrder order, WatchedWork* work) {
  ensure(step.buckets.empty(), "DataParallel has no buckets");
  ensure(exchange.has_value() || ranks == 1, "several ranks exchange gradients");
  return DataParallelWriter(step, ranks, loss, exchange, order, work).write();
}

Picoseconds data_parallel_step_time(const TrainingStep& step, Picoseconds loss, Picoseconds calls) {
  GpuClock clock{step};
  clock.forward();
  clock.run(loss);
  clock.backward();
  clock.run(step.update);
  return add(clock.gpu, calls);
}

Picoseconds launched_step_time(const TrainingStep& step, int ranks, Actor master, Picoseconds loss, LaunchOrder order,
                               const MasterTimes& times) {
  const Launches launches{order, ranks, static_cast<int>(step.layers.size())};
  std::vector<Picoseconds> gpu(static_cast<std::size_t>(ranks), times.before);  // [rank] is done then
  const auto launched = [&](int at) { return ringsim::times(at + 1, step.host_launch); };
  const auto pass = [&](bool is_backward) {
    for (Actor rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < launches.layers; ++i) {
        const LayerCost& layer = step.layers[static_cast<std::size_t>(is_backward ? launches.layers - 1 - i : i)];
        Picoseconds& now = gpu[static_cast<std::size_t>(rank)];
        now = add(std::max(now, launched(launches.at(rank, i, is_backward))),
                  is_backward ? layer.backward : layer.forward);
      }
  };
  const auto collected = [&](Picoseconds once) {  // when the master has it all
    Picoseconds now = gpu[static_cast<std::size_t>(master)];
    if (ranks == 1) return now;
    now = add(now, step.launch);
    std::vector<Picoseconds> pushes;
    for (Actor rank = 0; rank < ranks; ++rank)
      if (rank != master) pushes.push_back(add(gpu[static_cast<std::size_t>(rank)], step.launch));
    std::sort(pushes.begin(), pushes.end());
    for (const Picoseconds push : pushes) now = add(std::max(now, push), once);
    return add(now, times.a);
  };
  pass(false);
  const Picoseconds lost = add(std::max(collected(times.outputs), launched(launches.of_loss())), loss);
  std::fill(gpu.begin(), gpu.end(), add(lost, times.loss));
  pass(true);
  return add(std::max(collected(times.gradients), launched(launches.of_update())), step.update);
}

}  // namespace ringsim
