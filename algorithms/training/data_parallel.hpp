// DataParallel: one process, one master GPU that hands out the batch and the model, and collects what comes back.
#pragma once

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

/// The step divides one batch among the GPUs. The master scatters the batch and broadcasts the model, all GPUs run the
/// forward pass, the master gathers the outputs, computes the loss (`loss`) and scatters its gradients, all GPUs run
/// the backward pass, the master collects and adds the gradients and updates the model. One after the other, as one
/// thread of the process calls them. `step`: times of one GPU's part of the batch. Kernels that the host launches are
/// not modelled. Without an exchange: one GPU.
///
/// Sent per step, by the master: (K-1)(p + (x + o)/K), by each other GPU p + o/K; p bytes of gradients, x of the batch,
/// o of its outputs. Closed form on a star: (K-1)(2p + (x + 2o)/K)/b + 5a + (f + B)/K + loss + u, f and B of the whole
/// batch on one GPU. Source: torch.nn.parallel.DataParallel (torch/nn/parallel/data_parallel.py: scatter, replicate,
/// parallel_apply, gather; _functions.py: Broadcast.backward adds the gradients up on the master).
Program data_parallel_program(const TrainingStep& step, int ranks, Picoseconds loss,
                              const std::optional<MasterExchange>& exchange);

/// That form; `calls`: what all five exchanges take together, with the launch of each. 0: one GPU.
Picoseconds data_parallel_step_time(const TrainingStep& step, Picoseconds loss, Picoseconds calls);

}  // namespace ringsim
