// Model parallelism: each GPU has a few layers of the model, and the batch passes through all of them, there and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "algorithms/training/ddp.hpp"

namespace ringsim {

/// How a model lies on several GPUs.
struct Pipeline {
  int ranks = 1;
  int microbatches = 1;  ///< the parts of the batch that pass one after the other; 1: plain model parallelism
  /// From one rank to the next, of a microbatch: what a layer puts out, and on the way back its gradient, equally
  /// large. A broadcast of two ranks. None: one GPU.
  std::optional<CheckedSchedule> transfer = {};
};

/// The layers of one rank: from `first` to before `end`.
struct Stage {
  std::size_t first = 0, end = 0;
  std::int64_t parameters = 0;
};

/// [rank] neighbors in the model, at least one layer each, such that the longest time of both passes of any rank is as
/// short as can be. Requires 1 <= ranks <= number of layers.
std::vector<Stage> stages_of(const std::vector<LayerCost>& layers, int ranks);

/// The step has one batch, K times that of one GPU, cut into M microbatches. Rank 0 runs the forward pass of its layers
/// on a microbatch and sends what comes out to rank 1, and so on; when all are through, the backward passes come back
/// from the last rank to rank 0, last microbatch first. Each rank adds up the gradients of its microbatches and updates
/// its own layers, in their share of the time of the update. M = 1 is torch.nn with layers on several GPUs (PyTorch,
/// "Single-Machine Model Parallel Best Practices"); M > 1 is GPipe (Huang et al., NeurIPS 2019, figure 2c), without
/// recomputation of activations: the program is that of such a plan (plan_program.hpp), with a stage for each rank and
/// no other parallelism.
///
/// `step`: times of one GPU with its batch. A microbatch takes K/M of them, rounded up to a picosecond: a kernel's time
/// is taken to grow with its samples. Each rank has a host thread of its own.
///
/// Sent per step by each rank: x to the next, x to the one before, x the outputs of a layer for the whole batch. No
/// gradients. Closed form of K equal ranks, f and B of one GPU: (M + K - 1)(f + B)/M + 2(K - 1)(x/(M b) + a) + u/K, if
/// a transfer is no longer than a microbatch's pass on a rank.
Program model_parallel_program(const TrainingStep& step, const Pipeline& pipeline, WatchedWork* work = nullptr);

/// When each rank has updated its layers, in the first step: [rank]. Any ranks, without a host's launches. `transfer`:
/// of a microbatch from rank to rank, without its launch; no two share a link, and a call begins when the one before it
/// on its stream has come in.
std::vector<Picoseconds> pipeline_step_ends(const TrainingStep& step, const Pipeline& pipeline, Picoseconds transfer);

}  // namespace ringsim
