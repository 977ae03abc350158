#include "algorithms/training/data_parallel.hpp"

#include <array>
#include <string>
#include <utility>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

class DataParallelWriter : StepWriter {
 public:
  DataParallelWriter(const TrainingStep& step, int ranks, Picoseconds loss,
                     const std::optional<MasterExchange>& exchange)
      : StepWriter(step), loss_(loss), exchange_(exchange) {
    out_.ranks = out_.actors = ranks;
    batch_ = add_variable("the batch");
    outputs_ = add_variable("the outputs");
    loss_gradient_ = add_variable("the gradient of the loss");
    if (exchange_) communication_ = add_stream(Program::StreamKind::communication);
  }

  Program write() {
    for (Program::Learns& learns : out_.learns) learns.keeper = exchange_ ? exchange_->master : 0;
    if (exchange_) {
      write_calls();
      out_.role_of.assign(static_cast<std::size_t>(out_.actors), 1);
      out_.role_of[static_cast<std::size_t>(exchange_->master)] = 0;
    }
    write_gpu(true);
    if (exchange_) write_gpu(false);
    return std::move(out_);
  }

 private:
  void write_calls() {
    const auto add_call = [&](std::string name, const CheckedSchedule& schedule, std::vector<int> variables) {
      out_.calls.push_back({.name = std::move(name),
                            .schedule = schedule,
                            .members = {},
                            .variables = std::move(variables),
                            .divisor = 1});
    };
    std::vector<int> weights, gradients;
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
    const auto call = static_cast<std::size_t>(n_tasks(communication_));
    Task& task = write_call(communication_, out_.calls[call].name, static_cast<int>(call));
    if (n_tasks(0) > 0) task.after.push_back({0, n_tasks(0), 0});
    return task;
  }
  void after_exchange(Task& task) const {
    if (exchange_) task.after.push_back({communication_, exchanged_, 0});
  }

  void write_gpu(bool is_master) {
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
    out_.roles.push_back(take_role());
  }

  Picoseconds loss_;
  const std::optional<MasterExchange>& exchange_;
  Stream communication_ = -1;
  int batch_ = 0, outputs_ = 0, loss_gradient_ = 0;
  int exchanged_ = 0;  // how many exchanges come before what is written now
};

}  // namespace

Program data_parallel_program(const TrainingStep& step, int ranks, Picoseconds loss,
                              const std::optional<MasterExchange>& exchange) {
  ensure(step.buckets.empty() && step.host_launch.count() == 0, "DataParallel has neither buckets nor launches here");
  ensure(exchange.has_value() || ranks == 1, "several ranks exchange gradients");
  return DataParallelWriter(step, ranks, loss, exchange).write();
}

Picoseconds data_parallel_step_time(const TrainingStep& step, Picoseconds loss, Picoseconds calls) {
  GpuClock clock{step};
  clock.forward();
  clock.run(loss);
  clock.backward();
  clock.run(step.update);
  return add(clock.gpu, calls);
}

}  // namespace ringsim
