#include "algorithms/training/program_sizes.hpp"

#include <algorithm>
#include <cstdint>

namespace ringsim {

namespace {

/// The parts that all writers share (step_writer.hpp): variables, kernels and the variables that kernels touch.
struct Model {
  explicit Model(const TrainingStep& step)
      : layers(static_cast<std::int64_t>(step.layers.size())), launches(step.host_launch.count() > 0 ? 1 : 0) {
    for (const LayerCost& layer : step.layers) tensors += static_cast<std::int64_t>(layer.tensors.size());
  }

  /// Kernels with their launches.
  std::int64_t kernels(std::int64_t n) const { return n * (1 + launches); }
  std::int64_t step_tasks() const { return kernels(2 * layers + 1); }  // both passes, and the update
  /// Forward reads weights, backward reads them and makes gradients, the update applies these.
  std::int64_t step_touches() const { return 4 * tensors; }

  std::int64_t layers, launches, tensors = 0;
};

}  // namespace

ProgramSize training_program_size(const TrainingStep& step, int ranks, int helpers) {
  const Model model(step);
  const auto buckets = static_cast<std::int64_t>(step.buckets.size());
  const bool has_hooks = step.hook.count() > 0, has_cycles = step.cycle.count() > 0;
  ProgramSize size{.actors = ranks + helpers,
                   .streams = 1 + model.launches +
                              (buckets == 0 ? 0
                               : has_cycles ? 2
                                            : 1),
                   .variables = 2 * model.tensors};
  size.add_role(ranks, model.step_tasks() + buckets * (1 + (has_hooks ? 1 : 0) + (has_cycles ? 1 : 0)),
                model.step_touches());
  if (helpers > 0) size.add_role(helpers, buckets, 0);
  size.add_calls(buckets, ranks + helpers, buckets > 0 ? model.tensors : 0);
  return size;
}

ProgramSize local_sgd_program_size(const TrainingStep& step, int every, int ranks, int helpers, bool exchanges) {
  const Model model(step);
  const int n_calls = exchanges ? 1 : 0;
  ProgramSize size{.actors = ranks + helpers, .streams = 1 + n_calls + model.launches, .variables = 2 * model.tensors};
  size.add_role(ranks, every * model.step_tasks() + n_calls, every * model.step_touches());
  if (helpers > 0) size.add_role(helpers, 1, 0);
  size.add_calls(n_calls, ranks + helpers, n_calls * model.tensors);
  return size;
}

ProgramSize gossip_program_size(const TrainingStep& step, const Gossip& gossip, int ranks, bool exchanges) {
  const Model model(step);
  const int n_calls = exchanges ? std::min(2, ranks - 1) : 0, n_means = exchanges ? 1 : 0;
  ProgramSize size{
      .actors = ranks, .streams = 1 + n_calls + model.launches, .variables = (2 + n_calls) * model.tensors};
  size.add_role(ranks, gossip.every * model.step_tasks() + n_calls + n_means,
                gossip.every * model.step_touches() + (n_calls + n_means) * model.tensors);
  size.add_calls(n_calls, ranks, n_calls * model.tensors);
  return size;
}

ProgramSize data_parallel_program_size(const TrainingStep& step, int ranks, bool exchanges) {
  const Model model(step);
  const std::int64_t n_calls = exchanges ? 5 : 0, thread = model.launches * (2 * model.layers * ranks + 2);
  ProgramSize size{
      .actors = ranks, .streams = 1 + (exchanges ? 1 : 0) + model.launches, .variables = 2 * model.tensors + 3};
  const std::int64_t passes = 2 * model.layers, own = 3 * model.tensors + 3;
  // The master: the loss, which reads the outputs and makes its gradient, the batch, and the update.
  size.add_role(1, passes + 2 + n_calls + thread, own + 3 + model.tensors);
  const std::int64_t n_roles = ranks == 1 ? 0 : model.launches > 0 ? ranks - 1 : 1;
  for (std::int64_t role = 0; role < n_roles; ++role) size.add_role((ranks - 1) / n_roles, passes + n_calls, own);
  size.add_calls(n_calls, ranks, exchanges ? 2 * model.tensors + 3 : 0);
  return size;
}

ProgramSize server_program_size(const TrainingStep& step, int ranks, int servers, bool hands_out) {
  Model model(step);
  const std::int64_t shards = std::max(1, servers), n_calls = hands_out ? 3 : 2;
  model.tensors += shards - 1;
  ProgramSize size{.actors = ranks + servers,
                   .streams = 1 + shards + model.launches,
                   .variables = 2 * model.tensors + (hands_out ? shards : 0)};
  const std::int64_t passes = model.kernels(2 * model.layers), samples = hands_out ? shards : 0;
  const std::int64_t touches = 3 * model.tensors + samples;
  const int masters = servers == 0 ? 1 : 0;
  size.add_role(ranks - masters, passes + n_calls * shards, touches);
  if (masters > 0) size.add_role(1, passes + n_calls + model.kernels(1), touches + model.tensors + samples);
  for (int server = 0; server < servers; ++server)
    size.add_role(1, n_calls + 1, 2 * ((model.tensors + servers - 1) / servers) + (hands_out ? 1 : 0));
  const std::int64_t members = ranks + (servers > 0 ? 1 : 0);
  size.add_calls(n_calls * shards, members, 2 * model.tensors + samples);
  size.pairs = n_calls * shards * (members - 1);
  return size;
}

ProgramSize async_program_size(const TrainingStep& step, const AsyncServer& given) {
  const Model model(step);
  const std::int64_t layers = model.launches > 0 ? model.layers : 1;  // as_one() of async_server.cpp
  ProgramSize size{
      .actors = std::int64_t{given.workers} * (1 + given.servers), .streams = 2 + model.launches, .variables = 1};
  for (Actor worker = 0; worker < given.workers; ++worker) {
    const bool serves = worker == given.master && step.update.count() > 0;
    const std::int64_t kernels = 2 * (serves ? model.layers : layers) + (given.every > 1 ? 1 : 0);
    size.add_role(1, 2 + model.kernels(given.every * kernels), 1);  // the start and the exchange
    size.add_role(given.servers, 1, 0);
  }
  size.add_calls(given.workers, 1 + given.servers, given.workers);
  size.pairs = 2 * std::int64_t{given.workers} * given.servers;
  return size;
}

ProgramSize model_parallel_program_size(const TrainingStep& step, int ranks, int microbatches, bool exchanges) {
  const Model model(step);
  const std::int64_t cuts = exchanges ? ranks - 1 : 0, m = microbatches;
  ProgramSize size{.actors = ranks,
                   .streams = 1 + std::min<std::int64_t>(2, cuts) + model.launches,
                   .variables = 2 + (1 + 2 * std::min<std::int64_t>(2, cuts)) * m};
  // Each rank its layers, one of many alike; a microbatch crosses a cut both ways, with a task at both ends.
  size.add_role(1, model.kernels(2 * model.layers * m + ranks) + 4 * m * cuts, (5 * m + 1) * ranks + 5 * m * cuts);
  size.largest_role = size.tasks / ranks;
  size.add_calls(2 * cuts * m, 2, 2 * cuts * m);
  return size;
}

}  // namespace ringsim
