// A training step of a scenario: its program, run and accounted for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/training/data_parallel.hpp"
#include "scenarios/predict/async_training.hpp"
#include "scenarios/predict/plan_account.hpp"
#include "scenarios/predict/program_run.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/program/program_size.hpp"

namespace ringsim {

struct PredictOptions;

/// Memory of a GPU or a server by parts; activations only of a plan.
struct TrainingMemory {
  Bytes weights, gradients;
  Bytes state;    ///< the optimizer's
  Bytes copies;   ///< of gradients: buckets; what comes in at the master of data_parallel, or from neighbors
  Bytes outputs;  ///< of the whole batch, at the master of data_parallel
  Bytes activations;
  Bytes cache = {};  ///< of inference: keys and values

  Bytes total() const { return weights + gradients + state + copies + outputs + activations + cache; }
  bool operator==(const TrainingMemory&) const = default;
};

/// What one rank or server does in a step: means over those that count, and its part of the data.
struct RankReport {
  std::string who;  ///< "rank 3", "server 0"; of several alike the first to the last: "ranks 1 to 7"
  TimeSplit split;
  Bytes sent, received;  ///< over the links of its node, a step
  TrainingMemory memory;
};

/// The library's choice for one exchange of a step.
struct ExchangeReport {
  std::string group;  ///< between which ranks: "data", "tensor", "forward" (stages) ...; of a trace "group 3"
  int stage = 0;      ///< of a plan; its first virtual stage
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;
  std::int64_t times = 1;           ///< in a step; of local_sgd in a round
  std::string algorithm, protocol;  ///< by the library's names
  int channels = 1;
};

/// The step of a plan.
struct PlanReport {
  int tensor = 1, pipeline = 1, virtual_pipeline = 1, context = 1, expert = 1, data = 1, micro_batches = 1;
  std::string schedule, shard;
  PlanSplit split;                 ///< of the rank that ended last: its parts sum to the step
  std::vector<PlanMemory> memory;  ///< [stage]
};

/// A step of inference.
struct InferenceReport {
  InferencePhase phase = InferencePhase::decode;
  std::int64_t context = 0;  ///< tokens of each sequence
  double communication = 0;  ///< share of the step in which the next kernel waits for a collective
  double tokens_per_s_per_gpu = 0;
};

/// The step of a trace; counts of all its files.
struct TraceReport {
  std::int64_t files = 1;  ///< 1: one rank's trace stands for all
  std::int64_t nodes = 0, tasks = 0;
  std::int64_t collectives = 0, unwaited = 0;  ///< those that nothing waits for
  std::string sync;                            ///< the node that was made to wait for collectives; empty: none
};

/// What a training step took, and where its time went. Means over the steps that count, of the rank that ended last
/// (of several, the first).
struct TrainingReport {
  std::string regime, workload, compute, optimizer;
  std::int64_t batch = 0;  ///< samples of all GPUs
  std::int64_t parameters = 0;
  std::size_t buckets = 0;
  Picoseconds step{0};  ///< the sum of the parts below, each rounded down to a picosecond
  Picoseconds shortest{0}, longest{0};
  bool steady = false;  ///< the last two steps took equally long
  TimeSplit split;
  double samples_per_s = 0;
  /// If it trains a transformer, else 0: tokens of all GPUs, and operations of the model per second and GPU in 10^12. A
  /// multiply-add is two, the backward pass counts twice, recomputation does not (Chowdhery et al., arXiv 2204.02311,
  /// appendix B).
  double tokens_per_s = 0, tflops_per_gpu = 0;
  double mfu = 0;                            ///< those over the stated peak; 0: none is stated
  double efficiency = 0;                     ///< of one GPU's step without any communication, over this one
  Bytes sent;                                ///< by all ranks and helpers, a step
  TrainingMemory memory;                     ///< of the GPU that needs most
  std::optional<PlanReport> plan;            ///< of a training with a plan, or of inference
  std::optional<TraceReport> trace;          ///< then batch, parameters, rates, memory and efficiency are not known
  std::optional<InferenceReport> inference;  ///< then `batch` counts sequences, and tokens_per_s those of the step
  std::optional<AsyncReport> async;  ///< of a server that waits for nobody. Means are then over all workers and updates
  std::vector<ExchangeReport> exchanges;  ///< by size; none without a library
  std::vector<RankReport> by_rank;        ///< ranks, then servers; neighbors that are alike in all of it are one entry
};

/// The library's choices for the exchanges of a training job, by size; empty without a library or a training.
std::vector<ExchangeReport> exchanges_of(const Scenario& scenario, std::size_t job);
/// The step without the schedules of its buckets: with the launch of a collective.
TrainingStep training_step_of(const Scenario& scenario);
/// The all-reduce of a bucket: with a library as it does that size.
PlacedCollective bucket_of(const Scenario& scenario, const PlacedCollective& placed, Bytes bytes);
/// The mean step of one of its GPUs without any communication, and without stragglers.
Picoseconds alone_step_time(const TrainingSpec& spec);
/// The order in which the one thread of data_parallel launches.
LaunchOrder launch_order(const TrainingSpec& spec);
/// True if anything is exchanged: there are several ranks, or separate servers.
bool exchanges(const Scenario& scenario);
/// One of the exchanges that the regimes with a master or a server are made of: scatter, broadcast, gather or reduce of
/// all ranks (and, as the last, a separate server, which then is the root) by the algorithm `direct`.
PlacedCollective exchange_of(const TrainingSpec& spec, const PlacedCollective& placed, CollectiveOp op, Bytes bytes);
/// How a microbatch of model_parallel gets from one rank to the next: a broadcast of two ranks.
PlacedCollective transfer_of(const TrainingSpec& spec, const PlacedCollective& placed);
/// The buffer of the scatter by which a parameter server hands out its part of the samples; of a separate one a part is
/// its own.
Bytes samples_sent(const TrainingSpec& spec, int ranks, std::uint32_t shard);

/// Throws InputError if the GPUs of a plan have no room for it, unless it says that this is to be ignored.
void expect_plans_fit(const Scenario& scenario, const Setup& setup);

/// The program of a scenario's training, and what its run says of it.
class TrainingRun {
 public:
  /// Throws what schedule_of() and check() throw; before anything is made, InputError if its program takes more memory
  /// than options.max_memory. The scenario's own training; `room`: as ProgramRun's. Its first step begins at the start
  /// of the scenario's own job.
  TrainingRun(const Scenario& scenario, const PlacedCollective& placed, const PredictOptions& options,
              int room = all_channels);

  ProgramRun& run() { return *run_; }
  bool is_async() const { return async_ != nullptr; }
  /// Tells the options to listen, and, of an asynchronous server, when to end. Must outlive the run.
  void listen(RunOptions& options);
  /// [actor] where it sits; lanes of servers come last.
  std::vector<NodeId> placement() const;
  /// Names the lanes of the servers of an asynchronous one: "server 0 for rank 3 (port3)". `names`: [actor]
  void name_lanes(const Topology& topology, std::vector<std::string>& names) const;
  /// At most.
  std::int64_t n_messages() const;
  /// The bytes of its messages: of all, and of those that each actor sent and received.
  struct Traffic {
    Bytes sent;
    std::vector<Bytes> sent_by, received_by;  ///< [actor]
  };
  /// What the memory of GPUs has no room for, with the sum; empty: nothing, or their memory is not known. `pointer`:
  /// if the scenario trains.
  std::string lacking_memory(const Topology& topology, const std::string& pointer) const;
  /// When the run is over. An asynchronous one counts for itself: it takes no `traffic`.
  TrainingReport report(const Traffic& traffic) const;

 private:
  Program program_of(const Scenario& scenario, const PredictOptions& options, WatchedWork* work);
  Program plan_program_of(const Scenario& scenario, const PredictOptions& options, WatchedWork* work);
  std::vector<Stream> streams_of_stages() const;
  void describe_plan(TrainingReport& report) const;
  void describe_trace(TrainingReport& report) const;
  ProgramSize size_of(const Scenario& scenario) const;
  void expect_room(const Scenario& scenario, const ProgramSize& size, Bytes most) const;
  TrainingMemory memory_of(Actor actor) const;
  TrainingReport async_training_report() const;
  void describe(TrainingReport& report) const;
  std::vector<RankReport> async_by_rank() const;
  NodeId node_of_server(int server) const;
  std::vector<RankReport> by_rank(const Traffic& traffic) const;

  const TrainingSpec& spec_;
  PlacedCollective placed_;
  TrainingStep step_;
  std::unique_ptr<AsyncServer> async_;  // none: workers wait for each other
  std::optional<ProgramRun> run_;
  std::unique_ptr<AsyncAccount> account_;
  PlanStreams plan_streams_;          // of a plan, and so are these
  std::vector<NodeId> plan_helpers_;  // [actor - ranks]
  std::unique_ptr<PlanAccount> plan_account_;
};

}  // namespace ringsim
