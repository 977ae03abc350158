#include "algorithms/training/pipeline_order.hpp"

#include <algorithm>
#include <cstddef>

#include "sim/base/error.hpp"

namespace ringsim {

std::string_view to_string(PipelineSchedule schedule) {
  return schedule == PipelineSchedule::gpipe         ? "gpipe"
         : schedule == PipelineSchedule::one_f_one_b ? "1f1b"
         : schedule == PipelineSchedule::interleaved ? "interleaved"
                                                     : "zero_bubble_h1";
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
    case PipelineSchedule::interleaved:
      return std::min(2 * left + (shape.chunks - 1) * shape.stages, all);
  }
  fail_invariant("a pipeline has one of four schedules");
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
  if (shape.splits_backward()) return with_weights(order, stage, shape.micro_batches);
  return order;
}

int passes_in_flight(const PipelineShape& shape, int stage) {
  const int all = shape.micro_batches * shape.chunks;
  if (shape.splits_backward()) return std::min(shape.stages, all);
  return std::min(warm_up(shape, stage) + 1, all);
}

Picoseconds pipeline_time(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                          Picoseconds weights) {
  const auto all = [&](Picoseconds time) {
    return std::vector<std::vector<Picoseconds>>(
        static_cast<std::size_t>(shape.stages), std::vector<Picoseconds>(static_cast<std::size_t>(shape.chunks), time));
  };
  return pipeline_time(shape, {all(forward), all(backward), all(weights)}, hop);
}

Picoseconds pipeline_time(const PipelineShape& shape, const PassTimes& times, Picoseconds hop) {
  const auto p = static_cast<std::size_t>(shape.stages);
  const std::size_t places = p * static_cast<std::size_t>(shape.chunks);  // chunk k of stage s is place k p + s
  std::vector<std::vector<PipelinePass>> orders;
  for (int stage = 0; stage < shape.stages; ++stage) orders.push_back(pipeline_order(shape, stage));
  constexpr Picoseconds not_yet{-1};
  std::vector<Picoseconds> ends[2];  // [backward][micro-batch * places + place]
  for (auto& each : ends) each.assign(places * static_cast<std::size_t>(shape.micro_batches), not_yet);
  std::vector<std::size_t> next(p);
  std::vector<Picoseconds> free(p, Picoseconds{0});
  const auto run_next = [&](std::size_t stage) {
    const PipelinePass& pass = orders[stage][next[stage]];
    if (pass.weights) {  // its backward pass came before it
      free[stage] = add(free[stage], times.weights[stage][static_cast<std::size_t>(pass.chunk)]);
      ++next[stage];
      return true;
    }
    const std::size_t place = static_cast<std::size_t>(pass.chunk) * p + stage;
    const std::size_t first = static_cast<std::size_t>(pass.micro_batch) * places;
    Picoseconds begin = free[stage];
    const bool is_turn = pass.backward && place + 1 == places;
    if (pass.backward || place > 0) {
      const std::size_t from = is_turn ? place : pass.backward ? place + 1 : place - 1;
      const Picoseconds made = ends[pass.backward && !is_turn ? 1 : 0][first + from];
      if (made == not_yet) return false;
      begin = std::max(begin, is_turn || p == 1 ? made : add(made, hop));
    }
    free[stage] = ends[pass.backward ? 1 : 0][first + place] =
        add(begin, (pass.backward ? times.backward : times.forward)[stage][static_cast<std::size_t>(pass.chunk)]);
    ++next[stage];
    return true;
  };
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (std::size_t stage = 0; stage < p; ++stage)
      while (next[stage] < orders[stage].size() && run_next(stage)) goes_on = true;
  }
  for (std::size_t stage = 0; stage < p; ++stage)
    ensure(next[stage] == orders[stage].size(), "a pipeline's order has no circle");
  return *std::max_element(free.begin(), free.end());
}

}  // namespace ringsim
