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
     .computes = "all of it on the GPU",
     .source = "the baseline of all others"},
    {.kind = Regime::Kind::data_parallel,
     .name = "data_parallel",
     .summary = "DataParallel: a master GPU hands out one batch and the model, and collects gradients",
     .travels =
         "per step: parts of the batch, the model, outputs, gradients of the loss, gradients; all to or from the "
         "master",
     .computes = "both passes on all GPUs, each with its part of the batch; loss and update on the master",
     .source = "torch.nn.parallel.DataParallel"},
    {.kind = Regime::Kind::parameter_server,
     .name = "parameter_server",
     .summary =
         "a parameter server: workers push gradients and pull the model, all together or (mode async) each by itself",
     .travels =
         "per step: the gradients of all workers to the server, the model back to each; before it, if stated, each "
         "worker's samples from the server",
     .computes =
         "both passes on every worker, each with a batch of its own; the update on the server, of all gradients "
         "together or (mode async) of each worker's by itself",
     .source = "Li et al., OSDI 2014; mode async: Dean et al., NIPS 2012"},
    {.kind = Regime::Kind::ddp,
     .name = "ddp",
     .summary = "DistributedDataParallel: buckets of gradients are reduced while the backward pass goes on",
     .travels = "per step: the gradients, bucket by bucket, by an all-reduce",
     .computes = "all of it on every GPU, each with a batch of its own",
     .source = "Li et al., VLDB 13 (2020)"},
    {.kind = Regime::Kind::local_sgd,
     .name = "local_sgd",
     .summary = "every GPU trains by itself; every few steps all average their weights",
     .travels = "every H steps: the weights, by an all-reduce",
     .computes = "all of it on every GPU, each with a batch and weights of its own",
     .source = "Stich, ICLR 2019"},
    {.kind = Regime::Kind::gossip,
     .name = "gossip",
     .summary = "every GPU trains by itself, and averages its weights with those of two neighbors",
     .travels = "every H steps: the weights, from each rank to both of its neighbors on a ring of ranks",
     .computes = "all of it on every GPU, each with a batch and weights of its own",
     .source = "Lian et al., NIPS 2017"},
    {.kind = Regime::Kind::model_parallel,
     .name = "model_parallel",
     .summary = "every GPU has some of the layers; microbatches pass through all GPUs, there and back",
     .travels = "per step: from each GPU to the next the output of its last layer for the whole batch, and back its "
                "gradients; no gradients of weights",
     .computes = "both passes and the update of a layer on the GPU that has it, of one batch for all GPUs",
     .source = "Huang et al., NeurIPS 2019 (GPipe)"}};

}  // namespace

std::span<const Regime> regimes() { return all_regimes; }

const Regime& plan_regime() {
  static const Regime plan{.kind = Regime::Kind::plan,
                           .name = "parallel",
                           .summary = "a plan of tensor, pipeline and data parallelism",
                           .travels = "partial sums of layers, activations and their gradients, gradients of weights",
                           .computes = "each rank its part of a layer, a stage and the batch",
                           .source = "Narayanan et al., SC 2021"};
  return plan;
}

const Regime& trace_regime() {
  static const Regime trace{.kind = Regime::Kind::trace,
                            .name = "trace",
                            .summary = "the step of a real job, as an execution trace has it",
                            .travels = "what the job's collectives, sends and receives carried",
                            .computes = "each rank what was recorded, for as long",
                            .source = "Sridharan et al., arXiv 2305.14516 (Chakra)"};
  return trace;
}

const Regime* find_regime(std::string_view name) {
  const auto found =
      std::find_if(all_regimes.begin(), all_regimes.end(), [&](const Regime& regime) { return regime.name == name; });
  return found == all_regimes.end() ? nullptr : &*found;
}

}  // namespace ringsim
