#include "algorithms/training/regimes.hpp"

#include <algorithm>
#include <vector>

namespace ringsim {

namespace {

const std::vector<Regime> all_regimes{
    {.kind = Regime::Kind::single,
     .name = "single",
     .summary = "training on a single GPU",
     .travels = "none",
     .computes = "the GPU runs the whole model",
     .source = "the baseline for all other regimes"},
    {.kind = Regime::Kind::data_parallel,
     .name = "data_parallel",
     .summary = "DataParallel: a master GPU distributes a batch and the model, and collects the gradients",
     .travels = "in each step, the master sends each GPU its part of the batch, the model and the gradients "
                "of the loss, and receives outputs and gradients of the weights",
     .computes = "each GPU runs both passes on its part of the batch, and the master computes the loss and "
                 "the update",
     .source = "torch.nn.parallel.DataParallel"},
    {.kind = Regime::Kind::parameter_server,
     .name = "parameter_server",
     .summary = "a parameter server: workers push gradients and pull the model, all together or (in mode async) "
                "independently",
     .travels = "in each step, each worker sends its gradients to the server and receives the model; if "
                "stated, it first receives its samples from the server",
     .computes = "each worker runs both passes on its own batch; the server updates the model with all gradients "
                 "together or (in mode async) with those of each worker separately",
     .source = "Li et al., OSDI 2014; mode async: Dean et al., NIPS 2012"},
    {.kind = Regime::Kind::ddp,
     .name = "ddp",
     .summary = "DistributedDataParallel: buckets of gradients are reduced during the backward pass",
     .travels = "in each step, the gradients are all-reduced, bucket by bucket",
     .computes = "every GPU runs the whole model on its own batch",
     .source = "Li et al., VLDB 13 (2020)"},
    {.kind = Regime::Kind::local_sgd,
     .name = "local_sgd",
     .summary = "every GPU trains independently, and all GPUs average their weights every few steps",
     .travels = "every H steps, the weights are all-reduced",
     .computes = "every GPU runs the whole model with its own batch and weights",
     .source = "Stich, ICLR 2019"},
    {.kind = Regime::Kind::gossip,
     .name = "gossip",
     .summary = "every GPU trains independently and averages its weights with those of two neighbors",
     .travels = "every H steps, each rank sends its weights to both of its neighbors on a ring of ranks",
     .computes = "every GPU runs the whole model with its own batch and weights",
     .source = "Lian et al., NIPS 2017"},
    {.kind = Regime::Kind::model_parallel,
     .name = "model_parallel",
     .summary = "every GPU has some of the layers, and microbatches pass through all GPUs and back",
     .travels = "in each step, each GPU sends the output of its last layer for the whole batch to the next GPU and "
                "receives the gradients of this output; no gradients of weights are sent",
     .computes = "each GPU runs both passes and the update for its layers; all GPUs process the same batch",
     .source = "Huang et al., NeurIPS 2019 (GPipe)"}};

}  // namespace

std::span<const Regime> regimes() { return all_regimes; }

const Regime& plan_regime() {
  static const Regime plan{.kind = Regime::Kind::plan,
                           .name = "parallel",
                           .summary = "a plan of tensor, pipeline and data parallelism",
                           .travels = "partial sums of layers, activations and their gradients, gradients of weights",
                           .computes = "each rank runs its part of a layer, a stage and the batch",
                           .source = "Narayanan et al., SC 2021"};
  return plan;
}

const Regime& trace_regime() {
  static const Regime trace{.kind = Regime::Kind::trace,
                            .name = "trace",
                            .summary = "the step of a real job, as recorded in an execution trace",
                            .travels = "what the job's collectives, sends and receives carried",
                            .computes = "each rank computes what was recorded, for the recorded time",
                            .source = "Sridharan et al., arXiv 2305.14516 (Chakra)"};
  return trace;
}

const Regime* find_regime(std::string_view name) {
  const auto found =
      std::find_if(all_regimes.begin(), all_regimes.end(), [&](const Regime& regime) { return regime.name == name; });
  return found == all_regimes.end() ? nullptr : &*found;
}

}  // namespace ringsim
