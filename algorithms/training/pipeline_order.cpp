#include "algorithms/training/pipeline_order.hpp"

#include <algorithm>
#include <cstddef>

#include "sim/base/error.hpp"

namespace ringsim {

std::string_view to_string(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::gpipe            ? "gpipe"
         : schedule == PipelineSchedule::one_f_one_b    ? "1f1b"
         : schedule == PipelineSchedule::interleaved    ? "interleaved"
         : schedule == PipelineSchedule::zero_bubble_h1 ? "zero_bubble_h1"
                                                        : "zero_bubble_h2";
}

namespace {

/// The number of forward passes before the first backward pass.
int warm_up(const PipelineShape& shape, int stage) {
  const int left = shape.stages - stage - 1, all = shape.micro_batches * shape.chunks;
  switch (shape.schedule) {
    case PipelineSchedule::gpipe:
      return all;
    case PipelineSchedule::one_f_one_b:
    case PipelineSchedule::zero_bubble_h1:
      return std::min(left, all);
    case PipelineSchedule::zero_bubble_h2:
      return std::min(2 * left, all);
    case PipelineSchedule::interleaved:
      return std::min(2 * left + (shape.chunks - 1) * shape.stages, all);
  }
  fail_invariant("a pipeline has one of five schedules");
}

/// Forward passes in order; backward passes come in the order of the forward passes, chunks the other way round.
std::vector<PipelinePass> passes_of(const PipelineShape& shape, bool backward) {
  std::vector<PipelinePass> passes;
  for (int first = 0; first < shape.micro_batches; first += shape.stages)
    for (int k = 0; k < shape.chunks; ++k)
      for (int m = first; m < std::min(first + shape.stages, shape.micro_batches); ++m)
        passes.push_back({backward, backward ? shape.chunks - 1 - k : k, m});
  return passes;
}

/// With the passes for weights put in: those of a micro-batch `delay` backward passes later, and at the end.
std::vector<PipelinePass> with_weights(const std::vector<PipelinePass>& order, int delay, int micro_batches) {
  std::vector<PipelinePass> all;
  int n_backward = 0, next = 0;
  const auto add = [&] { all.push_back({false, 0, next++, true}); };
  for (const PipelinePass& pass : order) {
    all.push_back(pass);
    if (pass.backward && n_backward++ >= delay) add();
  }
  while (next < micro_batches) add();
  return all;
}

}  // namespace

std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, int stage) {
  ensure(0 <= stage && stage < shape.stages && shape.micro_batches >= 1 && shape.chunks >= 1, "a stage has passes");
  ensure(shape.chunks == 1 || shape.schedule == PipelineSchedule::interleaved, "interleaved stages have chunks");
  ensure(shape.chunks == 1 || shape.micro_batches % shape.stages == 0,
         "each stage gets the same number of micro-batches");
  const std::vector<PipelinePass> forward = passes_of(shape, false);
  std::vector<PipelinePass> backward = passes_of(shape, true);
  if (shape.schedule == PipelineSchedule::gpipe) std::reverse(backward.begin(), backward.end());
  const auto n_warm = static_cast<std::size_t>(warm_up(shape, stage));
  std::vector<PipelinePass> order(forward.begin(), forward.begin() + static_cast<std::ptrdiff_t>(n_warm));
  for (std::size_t i = n_warm; i < forward.size(); ++i) {
    order.push_back(forward[i]);
    order.push_back(backward[i - n_warm]);
  }
  order.insert(order.end(), backward.end() - static_cast<std::ptrdiff_t>(n_warm), backward.end());
  if (!shape.splits_backward()) return order;
  const bool is_h2 = shape.schedule == PipelineSchedule::zero_bubble_h2;
  return with_weights(order, is_h2 ? 2 * stage : stage, shape.micro_batches);
}

int passes_in_flight(const PipelineShape& shape, int stage) {
  const int all = shape.micro_batches * shape.chunks;
  if (shape.schedule == PipelineSchedule::zero_bubble_h1) return std::min(shape.stages, all);
  if (shape.schedule == PipelineSchedule::zero_bubble_h2) return std::min(2 * shape.stages - 1, all);
  return std::min(warm_up(shape, stage) + 1, all);
}

namespace {

/// The recurrence of passes, step after step: a pass begins when the one before it on its stage is done and what it
/// reads has come in. A stage receives nothing for a step before it has ended the one before.
class PassTimeline {
 public:
  PassTimeline(const PipelineShape& shape, const PassTimes& times, Picoseconds hop)
      : times_(times),
        hop_(hop),
        p_(static_cast<std::size_t>(shape.stages)),
        places_(p_ * static_cast<std::size_t>(shape.chunks)),
        n_ends_(places_ * static_cast<std::size_t>(shape.micro_batches)),
        free_(p_, Picoseconds{0}) {
    for (int stage = 0; stage < shape.stages; ++stage) orders_.push_back(pipeline_order(shape, stage));
  }

  /// Runs one more step; when its last pass ends.
  Picoseconds run_step() {
    for (auto& each : ends_) each.assign(n_ends_, not_yet);
    next_.assign(p_, 0);
    began_ = free_;
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t stage = 0; stage < p_; ++stage)
        while (next_[stage] < orders_[stage].size() && run_next(stage)) goes_on = true;
    }
    for (std::size_t stage = 0; stage < p_; ++stage)
      ensure(next_[stage] == orders_[stage].size(), "a pipeline's order has no circle");
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  static constexpr Picoseconds not_yet{-1};

  /// False if what the next pass of the stage reads has not been made yet.
  bool run_next(std::size_t stage) {
    const PipelinePass& pass = orders_[stage][next_[stage]];
    if (pass.weights) {  // its backward pass came before it
      free_[stage] = add(free_[stage], times_.weights[stage][static_cast<std::size_t>(pass.chunk)]);
      ++next_[stage];
      return true;
    }
    const std::size_t place = static_cast<std::size_t>(pass.chunk) * p_ + stage;
    const std::size_t first = static_cast<std::size_t>(pass.micro_batch) * places_;
    Picoseconds begin = free_[stage];
    const bool is_turn = pass.backward && place + 1 == places_;
    if (pass.backward || place > 0) {
      const std::size_t from = is_turn ? place : pass.backward ? place + 1 : place - 1;
      const Picoseconds made = ends_[pass.backward && !is_turn ? 1 : 0][first + from];
      if (made == not_yet) return false;
      begin = std::max(begin, is_turn || p_ == 1 ? made : add(std::max(made, began_[stage]), hop_));
    }
    free_[stage] = ends_[pass.backward ? 1 : 0][first + place] =
        add(begin, (pass.backward ? times_.backward : times_.forward)[stage][static_cast<std::size_t>(pass.chunk)]);
    ++next_[stage];
    return true;
  }

  const PassTimes& times_;
  Picoseconds hop_;
  std::size_t p_, places_;  // chunk k of stage s is place k p + s
  std::size_t n_ends_;
  std::vector<std::vector<PipelinePass>> orders_;
  std::vector<std::size_t> next_;
  std::vector<Picoseconds> free_, began_;  // [stage] when it ends the pass before, and when it ended the step before
  std::vector<Picoseconds> ends_[2];       // [backward][micro-batch * places + place]
};

PassTimes equal_stages(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds weights) {
  const auto all = [&](Picoseconds time) {
    return std::vector<std::vector<Picoseconds>>(
        static_cast<std::size_t>(shape.stages), std::vector<Picoseconds>(static_cast<std::size_t>(shape.chunks), time));
  };
  return {all(forward), all(backward), all(weights)};
}

}  // namespace

Picoseconds pipeline_time(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                          Picoseconds weights) {
  return pipeline_time(shape, equal_stages(shape, forward, backward, weights), hop);
}

Picoseconds pipeline_time(const PipelineShape& shape, const PassTimes& times, Picoseconds hop) {
  return PassTimeline(shape, times, hop).run_step();
}

Picoseconds pipeline_period(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                            Picoseconds weights) {
  return pipeline_period(shape, equal_stages(shape, forward, backward, weights), hop);
}

Picoseconds pipeline_period(const PipelineShape& shape, const PassTimes& times, Picoseconds hop) {
  PassTimeline timeline(shape, times, hop);
  Picoseconds end = timeline.run_step(), period = Picoseconds::max();
  for (int step = 0; step <= shape.stages; ++step) {  // stages of unlike times may need a few steps to fall into one
    const Picoseconds next = timeline.run_step(), took = next - end;
    if (took == period) break;
    period = took;
    end = next;
  }
  return period;
}

}  // namespace ringsim
