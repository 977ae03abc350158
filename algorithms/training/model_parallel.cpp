#include "algorithms/training/model_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// `part` of `of` parts of a time, rounded up. Requires 0 <= part, 0 < of.
Picoseconds share_of(Picoseconds time, std::int64_t part, std::int64_t of) {
  __extension__ using Wide = __int128;
  const Wide share = (Wide{time.count()} * part + of - 1) / of;
  if (share > Wide{INT64_MAX}) fail_too_long();
  return Picoseconds{static_cast<std::int64_t>(share)};
}

Picoseconds of_microbatch(Picoseconds time, const Pipeline& pipeline) {
  return share_of(time, pipeline.ranks, pipeline.microbatches);
}

/// [rank] its share of the update, by parameters; of a model without any by layers.
std::vector<Picoseconds> updates_of(const TrainingStep& step, const std::vector<Stage>& stages) {
  std::int64_t all = 0;
  for (const Stage& stage : stages) all += stage.parameters;
  std::vector<Picoseconds> updates;
  for (const Stage& stage : stages)
    updates.push_back(all > 0 ? share_of(step.update, stage.parameters, all)
                              : share_of(step.update, static_cast<std::int64_t>(stage.end - stage.first),
                                         static_cast<std::int64_t>(step.layers.size())));
  return updates;
}

class ModelParallelWriter : StepWriter {
 public:
  ModelParallelWriter(const TrainingStep& step, const Pipeline& pipeline, WatchedWork* work)
      : StepWriter(step, work),
        pipeline_(pipeline),
        stages_(stages_of(step.layers, pipeline.ranks)),
        updates_(updates_of(step, stages_)) {
    out_.ranks = out_.actors = pipeline.ranks;
    // A rank's cuts before and after its layers have a stream each.
    for (int parity = 0; parity < std::min(2, n_cuts()); ++parity) add_stream(Program::StreamKind::communication);
    add_host();
    first_ = static_cast<int>(out_.variables.size());
    for (const char* what : {"activations", "gradients of activations"})
      for (int parity = 0; parity < std::min(2, n_cuts()); ++parity)
        for (int m = 0; m < pipeline.microbatches; ++m)
          add_variable(fmt::format("the {}{} at an {} cut", what, of(m), parity == 0 ? "even" : "odd"));
  }

  Program write() {
    keep_weights();
    write_calls();
    for (Actor rank = 0; rank < pipeline_.ranks; ++rank) {
      out_.role_of.push_back(rank);
      write_rank(rank);
    }
    return std::move(out_);
  }

 private:
  enum class Pass : std::uint8_t { forward, backward };

  int n_cuts() const { return pipeline_.ranks - 1; }
  std::string of(int m) const { return pipeline_.microbatches == 1 ? "" : fmt::format(" of microbatch {}", m); }
  // Cut c lies between ranks c and c + 1.
  static Stream stream_of(int cut) { return 1 + cut % 2; }
  int variable(Pass pass, int cut, int m) const {
    const int parities = std::min(2, n_cuts());
    return first_ + ((pass == Pass::forward ? 0 : parities) + cut % 2) * pipeline_.microbatches + m;
  }
  int call_of(Pass pass, int cut, int m) const {
    return ((pass == Pass::forward ? 0 : n_cuts()) + cut) * pipeline_.microbatches + m;
  }

  void keep_weights() {
    std::size_t next = 0;
    for (Actor rank = 0; rank < pipeline_.ranks; ++rank)
      for (std::size_t l = stage(rank).first; l < stage(rank).end; ++l)
        for (std::size_t piece = 0; piece < pieces(l).size(); ++piece) {
          out_.learns[next].keeper = rank;
          out_.learns[next++].how = Program::Learns::How::own_part;
        }
  }

  void write_calls() {
    out_.calls.reserve(2 * static_cast<std::size_t>(n_cuts()) * static_cast<std::size_t>(pipeline_.microbatches));
    for (const Pass pass : {Pass::forward, Pass::backward})
      for (int cut = 0; cut < n_cuts(); ++cut)
        for (int m = 0; m < pipeline_.microbatches; ++m) {
          done(work_);
          const bool is_back = pass == Pass::backward;
          Program::Call call{.name = fmt::format("send {}{}", is_back ? "back" : "on", of(m)),
                             .schedule = *pipeline_.transfer,
                             .members = {is_back ? cut + 1 : cut, is_back ? cut : cut + 1},
                             .variables = {variable(pass, cut, m)}};
          out_.calls.push_back(std::move(call));
        }
  }
  Task& write_transfer(Pass pass, int cut, int m) { return write_call(stream_of(cut), call_of(pass, cut, m)); }

  const Stage& stage(Actor rank) const { return stages_[static_cast<std::size_t>(rank)]; }

  void write_rank(Actor rank) {
    for (int m = 0; m < pipeline_.microbatches; ++m) write_forward_of(rank, m);
    for (int m = pipeline_.microbatches; m-- > 0;) write_backward_of(rank, m);
    Task& update = kernel("update", updates_[static_cast<std::size_t>(rank)]);
    for (std::size_t l = stage(rank).first; l < stage(rank).end; ++l)
      for (const Piece& piece : pieces(l)) update.touches.push_back({As::apply, piece.gradient, piece.weights});
    out_.roles.push_back(take_role());
  }

  void write_forward_of(Actor rank, int m) {
    const std::size_t first = stage(rank).first, end = stage(rank).end;
    for (std::size_t l = first; l < end; ++l) {
      const bool is_in = l == first && rank > 0, is_out = l + 1 == end && rank < n_cuts();
      if (is_in) write_transfer(Pass::forward, rank - 1, m);
      Task& task = write_forward(l);
      task.time = of_microbatch(task.time, pipeline_);
      task.name += of(m);
      if (is_in) receive(task, Pass::forward, rank - 1, m);
      if (is_out) send(task, Pass::forward, rank, m);
    }
  }

  void write_backward_of(Actor rank, int m) {
    const std::size_t first = stage(rank).first, end = stage(rank).end;
    for (std::size_t l = end; l-- > first;) {
      const bool is_in = l + 1 == end && rank < n_cuts(), is_out = l == first && rank > 0;
      if (is_in) write_transfer(Pass::backward, rank, m);
      Task& task = write_backward(l);
      task.time = of_microbatch(task.time, pipeline_);
      task.name += of(m);
      for (Program::Touch& touch : task.touches)
        if (touch.as == As::make && m + 1 < pipeline_.microbatches) touch.as = As::add;
      if (is_in) receive(task, Pass::backward, rank, m);
      if (!is_out) continue;
      task.touches.push_back({As::read, variable(Pass::forward, rank - 1, m), -1});  // what the layer was given
      send(task, Pass::backward, rank - 1, m);
    }
  }

  void receive(Task& task, Pass pass, int cut, int m) {
    task.after.push_back({stream_of(cut), n_tasks(stream_of(cut)), 0});
    task.touches.push_back({As::read, variable(pass, cut, m), -1});
  }
  void send(Task& task, Pass pass, int cut, int m) {
    task.touches.push_back({As::make, variable(pass, cut, m), -1});
    write_transfer(pass, cut, m).after.push_back({0, n_tasks(0), 0});
  }

  const Pipeline& pipeline_;
  int first_ = 0;                     // of the variables that travel
  std::vector<Stage> stages_;         // [rank]
  std::vector<Picoseconds> updates_;  // [rank]
};

}  // namespace

std::vector<Stage> stages_of(const std::vector<LayerCost>& layers, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  ensure(1 <= ranks && n <= layers.size(), "every rank has a layer");
  // As many layers as fit into `limit`, rank by rank, but one at least for each rank that comes.
  const auto cut = [&](Picoseconds limit) {
    std::vector<Stage> stages{{}};
    Picoseconds time{0};
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const Picoseconds more = add(layers[l].forward, layers[l].backward);
      const bool is_full = add(time, more) > limit || layers.size() - l < n + 1 - stages.size();
      if (l > stages.back().first && is_full) {
        stages.push_back({.first = l});
        time = Picoseconds{0};
      }
      time = add(time, more);
      stages.back().end = l + 1;
      for (const std::int64_t tensor : layers[l].tensors) stages.back().parameters += tensor;
    }
    return stages;
  };
  Picoseconds low{0}, high{0};  // enough is more than `low` and at most `high`
  for (const LayerCost& layer : layers) {
    const Picoseconds time = add(layer.forward, layer.backward);
    low = std::max(low, time);
    high = add(high, time);
  }
  low -= Picoseconds{1};
  while (high - low > Picoseconds{1}) {
    const Picoseconds middle = low + (high - low) / 2;
    (cut(middle).size() <= n ? high : low) = middle;
  }
  return cut(high);
}

Program model_parallel_program(const TrainingStep& step, const Pipeline& pipeline, WatchedWork* work) {
  ensure(step.buckets.empty() && pipeline.microbatches >= 1, "model parallelism has microbatches and no buckets");
  ensure(pipeline.transfer.has_value() || pipeline.ranks == 1, "several ranks exchange activations");
  return ModelParallelWriter(step, pipeline, work).write();
}

std::vector<Picoseconds> pipeline_step_ends(const TrainingStep& step, const Pipeline& pipeline, Picoseconds transfer) {
  const std::vector<Stage> stages = stages_of(step.layers, pipeline.ranks);
  const auto n = stages.size();
  // [rank] when it has computed what it was given so far; [cut] when the transfer before has come in.
  std::vector<Picoseconds> gpu(n, Picoseconds{0}), cut_free(n, Picoseconds{0});
  const auto pass = [&](std::size_t rank, Picoseconds LayerCost::*part) {
    for (std::size_t l = stages[rank].first; l < stages[rank].end; ++l)
      gpu[rank] = add(gpu[rank], of_microbatch(step.layers[l].*part, pipeline));
  };
  const auto send = [&](std::size_t from, std::size_t to, std::size_t cut) {
    cut_free[cut] = add(std::max(cut_free[cut], gpu[from]), add(step.launch, transfer));
    gpu[to] = std::max(gpu[to], cut_free[cut]);
  };
  for (int m = 0; m < pipeline.microbatches; ++m)
    for (std::size_t rank = 0; rank < n; ++rank) {
      pass(rank, &LayerCost::forward);
      if (rank + 1 < n) send(rank, rank + 1, rank);
    }
  for (int m = 0; m < pipeline.microbatches; ++m)
    for (std::size_t rank = n; rank-- > 0;) {
      pass(rank, &LayerCost::backward);
      if (rank > 0) send(rank, rank - 1, rank - 1);
    }
  const std::vector<Picoseconds> updates = updates_of(step, stages);
  for (std::size_t rank = 0; rank < n; ++rank) gpu[rank] = add(gpu[rank], updates[rank]);
  return gpu;
}

}  // namespace ringsim
