// DataParallel: one process, one master GPU that hands out the batch and the model, and collects what comes back.
#pragma once

#include <cstdint>
#include <optional>

#include "algorithms/training/ddp.hpp"

namespace ringsim {

/// What the master exchanges with the other GPUs in a step, in this order.
struct MasterExchange {
  CheckedSchedule batch;      ///< a scatter: each GPU its part of the samples
  CheckedSchedule model;      ///< a broadcast: the weights
  CheckedSchedule outputs;    ///< a gather
  CheckedSchedule loss;       ///< a scatter: the gradients of the outputs, as large as these
  CheckedSchedule gradients;  ///< a reduce
  Actor master = 0;
};

/// In which order the one thread of the process launches the kernels of a pass.
enum class LaunchOrder : std::uint8_t {
  by_gpu,   ///< all layers of rank 0, then all of rank 1, ...
  by_layer  ///< a layer on all ranks, then the next one
};

/// The step divides one batch among the GPUs. The master scatters the batch and broadcasts the model, all GPUs run the
/// forward pass, the master gathers the outputs, computes the loss (`loss`) and scatters its gradients, all GPUs run
/// the backward pass, the master collects and adds the gradients and updates the model. One after the other, as one
/// thread of the process calls them. `step`: times of one GPU's part of the batch. Without an exchange: one GPU.
///
/// With step.host_launch that thread, which the master's host stream is, also launches the kernels of all GPUs, one
/// after the other: those of the forward pass, the loss, those of the backward pass in the same order of GPUs, the
/// update. It does not wait for them, but for the end of the step before (step.host_waits). A GPU's kernel waits for
/// its launch.
///
/// Sent per step, by the master: (K-1)(p + (x + o)/K), by each other GPU p + o/K; p bytes of gradients, x of the batch,
/// o of its outputs. Closed form on a star: (K-1)(2p + (x + 2o)/K)/b + 5a + (f + B)/K + loss + u, f and B of the whole
/// batch on one GPU. Source: torch.nn.parallel.DataParallel (torch/nn/parallel/data_parallel.py: scatter, replicate,
/// parallel_apply, gather; _functions.py: Broadcast.backward adds the gradients up on the master).
Program data_parallel_program(const TrainingStep& step, int ranks, Picoseconds loss,
                              const std::optional<MasterExchange>& exchange, LaunchOrder order = LaunchOrder::by_gpu,
                              WatchedWork* work = nullptr);

/// That form; `calls`: what all five exchanges take together, with the launch of each. 0: one GPU.
Picoseconds data_parallel_step_time(const TrainingStep& step, Picoseconds loss, Picoseconds calls);

/// How long the exchanges take on a star. `before`: both that come before the forward pass; `loss`: the scatter; each
/// with its launches. `outputs`, `gradients`: of one GPU alone, at the master's port; `a`: latency of a path.
struct MasterTimes {
  Picoseconds before{0}, loss{0}, outputs{0}, gradients{0}, a{0};
};
/// The step time if a host launches the kernels. GPU k begins a kernel when the one before it is done and the kernel's
/// launch, the n-th of the step, is: at n l. GPUs end a pass one after the other then, and the master's port takes in
/// what they send as a queue.
Picoseconds launched_step_time(const TrainingStep& step, int ranks, Actor master, Picoseconds loss, LaunchOrder order,
                               const MasterTimes& times);

}  // namespace ringsim
