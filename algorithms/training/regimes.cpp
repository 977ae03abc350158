#include "algorithms/training/regimes.hpp"

#include <algorithm>
#include <vector>

namespace ringsim {

namespace {

const std::vector<Regime> all_regimes{
    {.kind = Regime::Kind::single,
     .name = "single",
     .summary = "one GPU",
     .travels = "nothing",
     .computes = "the GPU runs the whole model",
     .source = "the baseline of all others"},
    {.kind = Regime::Kind::data_parallel,
     .name = "data_parallel",
     .summary = "DataParallel: a master GPU hands out one batch and the model, and collects gradients",
     .travels = "in each step, parts of the batch, the model, outputs, gradients of the loss and gradients of the "
                "weights; all to or from the master",
     .computes = "all GPUs run both passes on their part of the batch; the master computes the loss and the update",
     .source = "torch.nn.parallel.DataParallel"},
    {.kind = Regime::Kind::parameter_server,
     .name = "parameter_server",
     .summary =
         "a parameter server: workers push gradients and pull the model, all together or (mode async) each by itself",
     .travels = "in each step, the gradients of all workers, to the server, and the model, back to each worker; before "
                "that, if stated, each worker's samples, from the server",
     .computes =
         "every worker runs both passes on its own batch; the server updates the model with all gradients together or "
         "(mode async) with those of each worker separately",
     .source = "Li et al., OSDI 2014; mode async: Dean et al., NIPS 2012"},
    {.kind = Regime::Kind::ddp,
     .name = "ddp",
     .summary = "DistributedDataParallel: buckets of gradients are reduced during the backward pass",
     .travels = "in each step, the gradients, bucket by bucket, by an all-reduce",
     .computes = "every GPU runs the whole model on its own batch",
     .source = "Li et al., VLDB 13 (2020)"},
    {.kind = Regime::Kind::local_sgd,
     .name = "local_sgd",
     .summary = "every GPU trains by itself; every few steps, all GPUs average their weights",
     .travels = "every H steps, the weights, by an all-reduce",
     .computes = "every GPU runs the whole model with its own batch and weights",
     .source = "Stich, ICLR 2019"},
    {.kind = Regime::Kind::gossip,
     .name = "gossip",
     .summary = "every GPU trains by itself and averages its weights with those of two neighbors",
     .travels = "every H steps, the weights of each rank, to both of its neighbors on a ring of ranks",
     .computes = "every GPU runs the whole model with its own batch and weights",
     .source = "Lian et al., NIPS 2017"},
    {.kind = Regime::Kind::model_parallel,
     .name = "model_parallel",
     .summary = "every GPU has some of the layers; microbatches pass through all GPUs and back",
     .travels =
         "in each step, the output of each GPU's last layer for the whole batch, to the next GPU, and its gradients, "
         "back; no gradients of weights",
     .computes = "each GPU runs both passes and the update for its layers, with one batch for all GPUs",
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
