// Pipeline schedules: in which order a stage runs the passes of micro-batches.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace ringsim {

/// gpipe: all forward passes, then all backward passes, the last micro-batch first (Huang et al., NeurIPS 2019).
/// one_f_one_b: warm-up, then one forward, one backward (Narayanan et al., SC 2021, section 2.2.1; also
/// PipeDream-Flush). interleaved: the same with several chunks of layers a stage (section 2.2.2). zero_bubble_h1: 1f1b
/// with the gradients of weights in passes of their own, which fill bubbles (Qi et al., ICLR 2024, arXiv 2401.10241,
/// section 2.1). zero_bubble_h2: the same with more forward passes before the first backward pass (section 2.2).
enum class PipelineSchedule : std::uint8_t { gpipe, one_f_one_b, interleaved, zero_bubble_h1, zero_bubble_h2 };
inline constexpr PipelineSchedule pipeline_schedules[] = {
    PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b, PipelineSchedule::interleaved,
    PipelineSchedule::zero_bubble_h1, PipelineSchedule::zero_bubble_h2};
/// As scenarios name it: "gpipe", "1f1b", "interleaved", "zero_bubble_h1", "zero_bubble_h2".
std::string_view to_string(PipelineSchedule schedule);

struct PipelineShape {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int stages = 1;  ///< p
  int chunks = 1;  ///< v, of each stage; chunk k of stage s comes after k p + s others. Above 1: interleaved alone
  int micro_batches = 1;

  /// True if the backward pass of a micro-batch leaves the gradients of weights to a pass of their own.
  bool splits_backward() const {
    return schedule == PipelineSchedule::zero_bubble_h1 || schedule == PipelineSchedule::zero_bubble_h2;
  }
};

/// A pass of one micro-batch through one chunk of a stage.
struct PipelinePass {
  bool backward = false;
  int chunk = 0, micro_batch = 0;
  bool weights = false;  ///< neither forward nor backward: the gradients of weights

  /// True if nothing that the forward pass has kept is needed after it.
  bool is_last_of(const PipelineShape& shape) const { return shape.splits_backward() ? weights : backward; }

  bool operator==(const PipelinePass&) const = default;
};

/// The passes of `stage` in order: each micro-batch once forward and once backward through each chunk, and with passes
/// for weights once more.
///
/// A stage of 1f1b runs min(p - s - 1, m) forward passes before its first backward pass. Interleaved it runs
/// min(2 (p - s - 1) + (v - 1) p, m v), p micro-batches through each chunk in turn, so m must be a multiple of p
/// (Megatron-LM, megatron/core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving).
/// zero_bubble_h1 is 1f1b in which stage s computes the weights of a micro-batch after the backward pass of the s-th
/// one after it, and of the last s at the end: so each stage has p micro-batches in flight, as many as stage 0 of 1f1b.
///
/// zero_bubble_h2: 2 (p - s - 1) forward passes before the first backward pass, which are those that fit into the time
/// until it can begin if all passes take equally long, and weights 2 s backward passes later, so that stage s has 2 s +
/// 1 passes for weights left when its last backward pass ends: each stage ends as much later than stage 0 as it began
/// later, and the next step follows without a gap. It has 2p - 1 micro-batches in flight. The orders were derived here
/// from these two properties, which the paper states (section 2.2: a parallelogram instead of a trapezoid; table 1:
/// memory of 2p - 1 micro-batches).
std::vector<PipelinePass> pipeline_order(const PipelineShape& shape, int stage);

/// The most micro-batches of chunks whose forward pass a stage has done, and not the last pass that needs what it has
/// kept. gpipe m; 1f1b min(p - s, m); interleaved min(2 (p - s - 1) + (v - 1) p + 1, m v); zero_bubble_h1 min(p, m);
/// zero_bubble_h2 min(2p - 1, m).
int passes_in_flight(const PipelineShape& shape, int stage);

/// Times of unlike stages: [stage][chunk].
struct PassTimes {
  std::vector<std::vector<Picoseconds>> forward, backward, weights;  ///< weights: only if they have passes
};

/// When the last pass ends, from the orders alone: a pass begins when the one before it on its stage is done and what
/// it reads has come in, `hop` after it was made on another stage. `forward`, `backward` and `weights`: of a chunk of
/// equal stages, whose closed forms are those of pipeline_form() (validate/closed_forms/closed_form_plans.hpp).
Picoseconds pipeline_time(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                          Picoseconds weights = Picoseconds{0});
Picoseconds pipeline_time(const PipelineShape& shape, const PassTimes& times, Picoseconds hop);

/// From the end of a step to the end of the next one if every stage begins a step as soon as it is done with the one
/// before. With zero_bubble_h2 that is shorter than a step alone, whose first stages end early: they run the next one
/// while the last stages end theirs. Of equal stages no other schedule is shorter so. Its closed form is that of
/// pipeline_period_form().
Picoseconds pipeline_period(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                            Picoseconds weights = Picoseconds{0});
Picoseconds pipeline_period(const PipelineShape& shape, const PassTimes& times, Picoseconds hop);

}  // namespace ringsim
