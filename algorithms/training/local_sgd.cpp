#include "algorithms/training/local_sgd.hpp"

#include <utility>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

class LocalSgdWriter : StepWriter {
 public:
  LocalSgdWriter(const TrainingStep& step, int every, const std::optional<CheckedSchedule>& average, WatchedWork* work)
      : StepWriter(step, work), every_(every), average_(average) {
    out_.ranks = average ? average->schedule().collective.ranks : 1;
    out_.actors = average ? average->schedule().actors : 1;
    if (average_) {
      communication_ = add_stream(Program::StreamKind::communication);
      ends_.push_back(communication_);
    }
    add_host();
  }

  Program write() {
    for (Program::Learns& learns : out_.learns) learns.how = Program::Learns::How::weights_averaged;
    for (int i = 0; i < every_; ++i) {
      next_step();
      Task& first = write_forward_pass();
      if (i == 0 && average_) first.after.push_back(step_before(communication_));
      write_backward_pass();
      write_update();
    }
    if (average_) {
      Program::Call call{.name = "average", .schedule = *average_, .members = {}, .plan = step_.plan, .variables = {}};
      call.divisor = out_.ranks;
      each_piece([&](const Piece& piece) { call.variables.push_back(piece.weights); });
      write_call(communication_, 0).after.push_back({0, n_tasks(0), 0});
      out_.calls.push_back(std::move(call));
    }
    out_.roles.push_back(take_role());
    if (out_.actors > out_.ranks) {
      write_call(communication_, 0).time = Picoseconds{0};
      out_.roles.push_back(take_role());
      out_.role_of.assign(static_cast<std::size_t>(out_.actors), 0);
      for (Actor helper = out_.ranks; helper < out_.actors; ++helper)
        out_.role_of[static_cast<std::size_t>(helper)] = 1;
    }
    return std::move(out_);
  }

 private:
  int every_;
  const std::optional<CheckedSchedule>& average_;
  Stream communication_ = -1;
};

}  // namespace

Program local_sgd_program(const TrainingStep& step, int every, const std::optional<CheckedSchedule>& average,
                          WatchedWork* work) {
  ensure(step.buckets.empty() && every >= 1, "local SGD has steps and no buckets");
  return LocalSgdWriter(step, every, average, work).write();
}

Picoseconds local_sgd_round_time(const TrainingStep& step, int every, Picoseconds average) {
  GpuClock clock{step};
  for (int i = 0; i < every; ++i) {
    clock.begin_step();
    clock.forward();
    clock.backward();
    clock.run(step.update);
  }
  return add(clock.gpu, average);
}

}  // namespace ringsim
