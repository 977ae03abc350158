// The weights of a fully sharded plan: when a rank gathers them, how long it keeps them, when it reduces gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "algorithms/training/plan_program.hpp"

namespace ringsim {

/// A bucket's turn in a pass.
struct GatherTurn {
  std::vector<std::size_t> gathers;  ///< buckets whose weights are gathered from its beginning on, in order
  bool drops = false;                ///< it frees its weights at its end
  bool reduces = false;              ///< backward: its gradient is reduced then
};

/// As PyTorch's FSDP2 (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: pre_forward, post_forward,
/// _backward_prefetch, post_backward), each layer being a group of parameters:
///
/// - A pass gathers the weights of its first layer when it begins, and those `prefetch` layers ahead when a layer
///   begins. Weights that are still whole are not gathered again.
/// - They are freed after the layer's forward pass if the plan reshards, and after its backward pass; in a pipeline
///   after the last micro-batch's alone, as PyTorch's pipelines ask for (torch/distributed/pipelining/stage.py,
///   backward_maybe_with_nosync). An embedding that is the head too stays whole in between, as FSDP2's root does.
/// - Gradients are reduced after each micro-batch's backward pass, in a pipeline after the last one's alone.
class GatherOrder {
 public:
  GatherOrder(const PlanSpec& spec, int stage);

  /// The turns of the next pass of the stage: [position], the first bucket that the pass meets first.
  std::vector<GatherTurn> next(const PipelinePass& pass);
  bool is_whole(int chunk, std::size_t bucket) const { return whole_[static_cast<std::size_t>(chunk)][bucket]; }

 private:
  const PlanSpec& spec_;
  std::vector<std::vector<bool>> whole_;  // [chunk][bucket]
  std::vector<int> left_;                 // [chunk] backward passes
};

/// The bucket of a position in a pass.
inline std::size_t bucket_at(bool backward, std::size_t position, std::size_t n_buckets) {
  return backward ? position : n_buckets - 1 - position;
}

/// The number of calls of each collective of a stage's data groups, per rank and step.
std::map<PlanExchange, std::int64_t> plan_data_uses(const PlanSpec& spec, int stage);

/// The weights, gradients and optimizer state that a rank of a stage keeps.
struct PlanSharding {
  int weights = 1, gradients = 1, state = 1;  ///< one part of so many
  int expert_state = 1;                       ///< likewise of experts that are reduced among other ranks
  Bytes whole_weights;                        ///< gathered ones, at the moment when they are most
  Bytes whole_gradients;                      ///< next to its part: those that are not reduced yet
};
/// Gradients next to the parts: with `full` of two layers, because FSDP2 waits for the reduction before the last one;
/// with `optimizer_gradients` of a bucket, of two if reductions overlap (DeepSpeed's buffers,
/// deepspeed/runtime/zero/stage_1_and_2.py). In a pipeline gradients of `full` are whole until they are reduced.
PlanSharding plan_sharding(const PlanSpec& spec, int stage);

}  // namespace ringsim
