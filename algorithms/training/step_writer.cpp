#include "algorithms/training/step_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

StepWriter::StepWriter(const TrainingStep& step, WatchedWork* work, int shards) : step_(step), work_(work) {
  out_.name = step.name;
  out_.iterations = step.steps;
  add_stream(Program::StreamKind::compute);
  Bytes all;
  for (const LayerCost& each : step.layers)
    for (const std::int64_t tensor : each.tensors) all += Bytes{tensor} * step.bytes_per_element;
  const Layout cuts = Layout::near_equal(all, shards);
  int shard = 0;
  Bytes begin, shard_end = cuts.size(0, 1);
  for (const LayerCost& each : step.layers) {
    done(work_);
    pieces_.emplace_back();
    for (std::size_t t = 0; t < each.tensors.size(); ++t) {
      const Bytes end = begin + Bytes{each.tensors[t]} * step.bytes_per_element;
      while (shard + 1 < shards && shard_end <= begin) shard_end += cuts.size(static_cast<std::uint32_t>(++shard), 1);
      const bool is_cut = shard_end < end;
      for (;;) {
        std::string which = each.tensors.size() == 1 ? each.name : fmt::format("{}[{}]", each.name, t);
        if (is_cut) which += fmt::format(" in shard {}", shard);
        const int gradient = add_variable("the gradient of " + which),
                  weights = add_variable("the weights of " + which);
        out_.learns.push_back({weights, gradient});
        pieces_.back().push_back({gradient, weights, shard});
        if (shard_end >= end) break;
        shard_end += cuts.size(static_cast<std::uint32_t>(++shard), 1);
      }
      begin = end;
    }
  }
}

int StepWriter::add_variable(std::string name) {
  done(work_);
  out_.variables.push_back(std::move(name));
  return static_cast<int>(out_.variables.size()) - 1;
}

Stream StepWriter::add_stream(Program::StreamKind kind) {
  out_.streams.push_back(kind);
  role_.streams.emplace_back();
  return static_cast<Stream>(out_.streams.size()) - 1;
}

void StepWriter::add_host() {
  if (step_.host_launch.count() > 0) host_ = add_stream(Program::StreamKind::host);
}

StepWriter::Task& StepWriter::kernel(std::string name, Picoseconds time) {
  done(work_);
  Task task{.name = std::move(name), .time = time, .call = -1, .after = {}, .touches = {}};
  if (host_ >= 0) {
    Task launch{.name = "launch " + task.name, .time = step_.host_launch, .call = -1, .after = {}, .touches = {}};
    if (step_.host_waits && stream(host_).empty())
      for (const Stream end : ends_) launch.after.push_back(step_before(end));
    else if (step_.host_waits && n_tasks(0) == step_begin_)
      launch.after.push_back({0, step_begin_, 0});
    stream(host_).push_back(std::move(launch));
    task.after.push_back({host_, n_tasks(host_), 0});
  }
  stream(0).push_back(std::move(task));
  return stream(0).back();
}

StepWriter::Task& StepWriter::write_forward(std::size_t l) {
  Task& task = kernel("forward " + layer(l).name, layer(l).forward);
  for (const Piece& piece : pieces(l)) task.touches.push_back({As::read, piece.weights, -1});
  return task;
}

StepWriter::Task& StepWriter::write_backward(std::size_t l) {
  Task& task = kernel("backward " + layer(l).name, layer(l).backward);
  for (const Piece& piece : pieces(l)) {
    task.touches.push_back({As::read, piece.weights, -1});
    task.touches.push_back({As::make, piece.gradient, -1});
  }
  return task;
}

StepWriter::Task& StepWriter::write_forward_pass() {
  const int first = n_tasks(0);
  for (std::size_t l = 0; l < n_layers(); ++l) write_forward(l);
  return stream(0)[static_cast<std::size_t>(first)];
}

StepWriter::Task& StepWriter::write_backward_pass() {
  const int first = n_tasks(0);
  for (std::size_t l = n_layers(); l-- > 0;) write_backward(l);
  return stream(0)[static_cast<std::size_t>(first)];
}

StepWriter::Task& StepWriter::write_update() {
  Task& task = kernel("update", step_.update);
  each_piece([&](const Piece& piece) { task.touches.push_back({As::apply, piece.gradient, piece.weights}); });
  done(work_, static_cast<std::int64_t>(task.touches.size()) / 16);
  return task;
}

StepWriter::Task& StepWriter::write_call(Stream number, int call) {
  done(work_);
  stream(number).push_back({.name = {}, .time = step_.launch, .call = call, .after = {}, .touches = {}});
  return stream(number).back();
}

Program::Role StepWriter::take_role() {
  // The end of the step before: how many tasks that is, is known now.
  for (std::vector<Task>& tasks : role_.streams)
    for (Task& each : tasks)
      for (Program::After& after : each.after)
        if (after.tasks < 0) after.tasks = n_tasks(after.stream);
  Program::Role role;
  role.streams.resize(role_.streams.size());
  std::swap(role, role_);
  step_begin_ = 0;
  return role;
}

}  // namespace ringsim
