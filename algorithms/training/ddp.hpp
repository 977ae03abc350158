// Training steps as programs: one GPU, and DistributedDataParallel (DDP) on many.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace ringsim {

/// A layer of a model, as a training step sees it.
struct LayerCost {
  std::string name;
  std::vector<std::int64_t> tensors;    ///< elements of each parameter, in the order in which the model registers them
  Picoseconds forward{0}, backward{0};  ///< of one step on one GPU
};

/// Gradients that are reduced together.
struct Bucket {
  struct Tensor {
    int layer = 0, tensor = 0;
  };
  std::vector<Tensor> tensors;
  Bytes bytes;
  int ready = 0;  ///< it may go when the backward pass of this layer is done: of its layers the first of the model
  /// Horovod: the cycle at whose end it goes, counted from the start of the step. PyTorch: -1.
  std::int64_t cycle = -1;
  Picoseconds beyond{0};  ///< what its all-reduce takes beyond the launch and what is simulated
  int plan = 0;           ///< Program::Call::plan of its all-reduce
};

/// PyTorch's rule (torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size; Li et al., VLDB 2020):
/// parameters in reverse order of registration; a bucket is closed when it has reached its limit, `first` for the first
/// one and `size` for the others; a tensor is never split. The order in which gradients really become ready, by which
/// PyTorch rebuilds the buckets after the first step, is taken to be that order.
std::vector<Bucket> pytorch_buckets(const std::vector<LayerCost>& layers, int bytes_per_element, Bytes first,
                                    Bytes size);

/// Horovod's rule (docs/tensor-fusion.rst): at the end of every cycle the gradients that were requested go, together up
/// to `size`; a larger tensor goes alone. Cycles are taken to begin with the step, and the negotiation between ranks to
/// cost nothing. Requires cycle > 0.
///
/// `launch`: what the host takes to launch the kernel of a layer's forward or backward pass. A gradient is requested
/// when the kernel that computes it is launched; then its bucket waits for the data of all of its tensors
/// (operations.cc since v0.9: EnqueueTensorAllreduce with a ready_event, for which PerformOperation waits). So a host
/// that is far ahead of the GPU fuses gradients that are computed long after one another. None: requested when it is
/// computed, as on CPUs.
std::vector<Bucket> horovod_buckets(const std::vector<LayerCost>& layers, int bytes_per_element, Bytes size,
                                    Picoseconds cycle, std::optional<Picoseconds> launch);

/// What a training step does on every GPU.
struct TrainingStep {
  std::string name;  ///< of the program
  std::vector<LayerCost> layers;
  Picoseconds update{0};        ///< the optimizer's
  Picoseconds host_launch{0};   ///< a host thread launches each kernel (a layer's forward or backward pass, the update)
  bool host_waits = true;       ///< it launches a step's kernels only when the step before is done
  std::vector<Bucket> buckets;  ///< in the order in which layers complete them; none on one GPU
  std::vector<CheckedSchedule> schedules;  ///< [bucket] its all-reduce
  Picoseconds launch{0};                   ///< before each all-reduce
  Picoseconds hook{0};                     ///< on the GPU, before each all-reduce: the copy into the bucket
  Picoseconds cycle{0};                    ///< Horovod's; 0: buckets go when they are ready
  int plan = 0;                            ///< Program::Call::plan of local_sgd's average
  bool overlap = true;                     ///< false: all buckets wait for the end of the backward pass
  int steps = 1;
  int bytes_per_element = 4;  ///< of a gradient; only if a model is cut into shards
};

/// One GPU: forward through the layers, backward in reverse order, update; again. With buckets: DDP. Each GPU has the
/// whole model and a batch of its own. A compute stream runs the layers; when the gradients of a bucket are there, it
/// goes to the communication stream, which reduces one bucket after the other while the backward pass goes on. The
/// update waits for all of them.
///
/// Sent per rank and step: what the algorithm sends for the model's gradients (ring: 2(K-1)/K of them).
/// Closed form, if an all-reduce begins and ends at all ranks at once: f + B, T_j the times of the forward pass, the
/// backward pass and the all-reduce of bucket j, ready_j the time at which j may go, u that of the update:
/// step = max(f + B, max_j (ready_j + sum_{i >= j} T_i)) + u.
/// Source: Li et al., "PyTorch Distributed", VLDB 13 (2020).
Program training_program(const TrainingStep& step, WatchedWork* work = nullptr);

/// When a GPU alone is done with what it has computed so far, for closed forms. A host that launches kernels goes on as
/// far ahead as it can (Lindley's form).
struct GpuClock {
  const TrainingStep& step;
  Picoseconds host{0}, gpu{0};

  void begin_step();           ///< the host waits until the step before is done, if it does so
  void run(Picoseconds time);  ///< one kernel
  void forward();
  void backward();
};

/// That form, with the host's launches and Horovod's cycles; `times`: [bucket] T_j with its launch and what it takes
/// beyond.
Picoseconds training_step_time(const TrainingStep& step, const std::vector<Picoseconds>& times);

/// The mean of steps `warmup` to `steps` - 1 of one GPU that exchanges nothing. `loss`: of data_parallel, a kernel
/// between both passes. A host that does not wait runs ahead from the second step on: k steps of n kernels take P + (k
/// - 1) max(C, n t), with P of the first step, C of all kernels and t of a launch (the longest of all ways to launch
/// some kernels and then compute the rest).
Picoseconds alone_step_time(const TrainingStep& step, std::optional<Picoseconds> loss, std::int64_t warmup,
                            std::int64_t steps);

}  // namespace ringsim
