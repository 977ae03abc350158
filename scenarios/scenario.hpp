// A scenario: the question that a user asks, as a JSON file. Decoded strictly, expanded into points, never guessed at.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/inference/inference_costs.hpp"
#include "algorithms/traces/trace_program.hpp"
#include "algorithms/training/ddp.hpp"
#include "algorithms/training/plan_program.hpp"
#include "algorithms/training/regimes.hpp"
#include "algorithms/training/stragglers.hpp"
#include "algorithms/training/transformer_costs.hpp"
#include "scenarios/calibration.hpp"
#include "sim/network/network_model.hpp"
#include "sim/run/disturbance.hpp"
#include "sim/run/protocol.hpp"
#include "sim/topology/routes.hpp"
#include "topologies/catalog.hpp"
#include "topologies/formats/nccl_graph.hpp"
#include "topologies/nccl/nccl_library.hpp"

namespace ringsim {

/// Routing (sim/topology/routes.hpp) by the names of a topology that is not built yet.
struct RoutingSpec {
  struct Entry {
    std::string at, to, via;  ///< `to`: a NIC, a node of the cluster, or "*"
  };
  Routing::Policy policy = Routing::Policy::fixed;
  bool is_auto = false;  ///< the scenario left it to the network of the machines' NICs
  std::uint64_t seed = 0;
  std::vector<Entry> table;
};

/// A change of links (sim/run/disturbance.hpp), and its end, by the names of a topology that is not built yet.
struct FaultSpec {
  std::string link;  ///< "FROM -> TO", or a node: all of its links
  LinkChange change;
  std::optional<SimTime> until;  ///< restored then
};
/// The delay of a rank. `job`: as Scenario::jobs.
struct RankDelay {
  std::size_t job = 0;
  Actor rank = 0;
  Picoseconds time{0};
};
/// Background messages between gpus of those names.
struct BackgroundSpec {
  std::string from, to;
  Disturbance::Background message;  ///< but for its ends
};

struct TrainingSpec;
struct LibraryRun;

/// A collective and its participants.
struct Job {
  std::string name;
  const Algorithm* algorithm = nullptr;  ///< of the catalog
  Arguments arguments;
  CollectiveRequest request;       ///< request.ranks: the number of members, of one group
  std::vector<std::string> ranks;  ///< names of the gpus that take part, in rank order; empty: all
  /// [group][rank of the group] its place in `ranks`, after shuffling; each group has a collective of its own at the
  /// same time. Empty: all are one group.
  std::vector<std::vector<int>> groups;
  bool by_rule = false;                  ///< the groups are those of `split`: `ranks` are not in their order
  std::optional<std::uint64_t> shuffle;  ///< the seed by which the ranks are shuffled; none: as they stand
  bool best_ring = false;       ///< the ranks are put in the order of best_ring() (topologies/search/ring_order.hpp)
  bool channel_rings = false;   ///< each channel has a ring of its own (topologies/search/channel_rings.hpp)
  bool servers_on_cpu = false;  ///< helpers sit on the CPUs of the topology, not on ports of their own
  Picoseconds start{0};
  std::vector<std::size_t> after;       ///< [job] those that a GPU is done with before it begins
  std::string pointer = "/collective";  ///< where the scenario says it; "/training/regime", "/jobs/0/collective"
  /// The library's decisions for a job other than the first; else nullptr.
  std::shared_ptr<const LibraryRun> library;
  /// What a job other than the first trains; its collective is that of all its gradients. Else nullptr.
  std::shared_ptr<const TrainingSpec> training;

  /// True if its helpers are switches of the fabric.
  bool uses_fabric() const { return algorithm->uses_fabric(arguments); }
  int n_groups() const { return groups.empty() ? 1 : static_cast<int>(groups.size()); }
  /// Ranks of all its groups.
  int members() const { return request.ranks * n_groups(); }
};

/// parameter_server with mode async: no worker waits for another.
struct AsyncSpec {
  enum class Start : std::uint8_t { staggered, together, random };
  Start start = Start::staggered;
  std::uint64_t seed = 0;                ///< of random offsets
  std::int64_t updates = 0, warmup = 0;  ///< of the whole model; how many of them do not count
};

/// A plan of tensor, pipeline and data parallelism: `training.parallel`.
struct PlanTraining {
  TransformerPlan model;
  PlanSpec program;                ///< without its iterations
  std::int64_t global_batch = 0;   ///< samples of all GPUs in a step
  std::vector<PlanMemory> memory;  ///< [stage] of each rank
  bool ignores_memory = false;     ///< it is run even if it does not fit
  /// Of scenario key `inference`: then `program` is a forward pass alone, and of `model` only the card counts.
  std::optional<InferencePlan> inference;
};

/// A training step: scenario key `training`. Or a step of inference, key `inference`, which is a plan's forward pass;
/// or the step of a real job, key `trace`.
struct TrainingSpec {
  const Regime* regime = nullptr;
  std::string workload;  ///< the model's name; "layers" if the scenario has its own
  std::string compute;   ///< where times come from: "measured" (a step), "flops" (a peak and an efficiency), "stated"
  std::string optimizer;
  std::int64_t batch = 0;  ///< samples per GPU
  /// Tokens of a sample and multiply-adds of its forward pass, if the model is a transformer's card; else 0.
  std::int64_t sequence = 0, macs = 0;
  std::int64_t peak = 0;  ///< operations per second of a GPU, as stated; 0: not stated
  std::int64_t parameters = 0;
  int bytes_per_parameter = 4;
  int warmup = 0;                   ///< how many of the steps (of local_sgd and gossip: rounds) do not count
  TrainingStep step;                ///< without schedules and the launch of a collective
  int servers = 0;                  ///< parameter_server: separate ones; 0: the master, a rank
  Actor master = 0;                 ///< parameter_server, data_parallel
  Picoseconds loss{0};              ///< data_parallel: on the master
  bool launch_by_layer = false;     ///< data_parallel: the thread launches a layer on all GPUs, then the next one
  Bytes sample;                     ///< that the master or the servers send; 0: workers have their own
  Bytes output;                     ///< data_parallel: of a sample
  int every = 1;                    ///< local_sgd, gossip: steps in a round
  std::optional<AsyncSpec> async;   ///< parameter_server; else workers wait for each other
  bool overlap = false;             ///< gossip: weights travel during both passes
  int microbatches = 1;             ///< model_parallel
  Bytes activations;                ///< model_parallel: of a microbatch, from one rank to the next
  std::optional<Bytes> gpu_memory;  ///< of each GPU; none: what the machine's file says
  Stragglers stragglers;
  std::int64_t slowdown = 1'000'000;  ///< millionths: kernels take so many times as long while a collective runs
  /// In place of a regime; then regime is plan_regime(), and of `step` only name, steps and bytes_per_element count.
  std::shared_ptr<const PlanTraining> plan;

  /// In place of a regime; then regime is trace_regime(), and of the others `workload`, `compute` and step.name count.
  std::shared_ptr<const traces::TraceJob> trace;

  Bytes gradients() const { return Bytes{parameters} * bytes_per_parameter; }
  const InferencePlan* inference() const { return plan && plan->inference ? &*plan->inference : nullptr; }
  /// The scenario's key, and what messages call it.
  const char* key() const { return trace ? "trace" : inference() != nullptr ? "inference" : "training"; }
  const char* what() const {
    return trace ? "a trace" : inference() != nullptr ? "an inference step" : "a training step";
  }
  /// Kinds of calls in the groups of a plan or a trace, each once, in order; and the members of each group.
  bool calls_in_groups() const { return plan != nullptr || trace != nullptr; }
  std::vector<PlanExchange> exchanges_in_groups() const {
    return trace ? trace->exchanges() : plan_exchanges(plan->program);
  }
  Program::Groups groups_of(const PlanExchange& exchange) const {
    return trace ? trace->groups_of(exchange.stage) : plan_groups(plan->program, exchange.use, exchange.stage);
  }
};

/// The decisions of a communication library for one collective.
struct LibraryCall {
  /// Shares of the links' rates; nvlink: also of xGMI's; network: of NICs' rates.
  struct Shares {
    double nvlink = 1, pcie = 1, network = 1;

    bool operator==(const Shares&) const = default;
  };
  nccl::LibraryPlan plan;
  const Algorithm* algorithm = nullptr;  ///< the schedule that stands for its kernels
  Arguments arguments;
  int channels = 1;
  bool channel_rings = false;  ///< Job::channel_rings
  /// The graph of the plan's rings or trees: that of the file that NCCL_GRAPH_FILE names, or what NCCL's search finds;
  /// nullptr: rings are searched for among the links (topologies/search).
  std::shared_ptr<const nccl::SearchGraph> graph;
  std::shared_ptr<const Protocol> protocol;  ///< with the steps of the library's kernels on these GPUs
  Transport transport;
  Picoseconds launch{0};         ///< before its first step, with what the protocol takes once
  bool starts_channels = false;  ///< the launch has a time for each channel: devices.gpu.launch_channel
  Picoseconds own_pass{0};       ///< copying or adding up a rank's own part, which no wire hides
  Shares reached;                ///< what the plan's kernels move
  Bandwidth channel;             ///< of a GPU's channel: what it sends at most; 0: no limit
  int number = 0;  ///< of its CallPlan in the run: equal for calls whose messages move alike (setup/call_plans.hpp)
};

/// What a communication library has decided: scenario key `library`. Algorithm, order, channels, NICs and launch of the
/// scenario's own collective are also in the scenario's own members.
struct LibraryRun {
  std::string name, version;  ///< "nccl", "2.30.7"
  /// As its makers write it.
  const char* printed_name() const { return name == "rccl" ? "RCCL" : "NCCL"; }
  LibraryCall call;            ///< of a training step that of the largest exchange
  nccl::TunerMachine machine;  ///< as the library sees it
  std::string graph_file;      ///< empty: none
  /// What the search takes links to carry: what rings by Simple move. NCCL searches once, before any message, with
  /// speeds of its own for links, which are near to that (a V100's NVLink 20 of 25 GB/s, src/graph/topo.h).
  LibraryCall::Shares searched;
  /// A training step's: all_reduce_of() each size; a plan's: those of its groups.
  std::map<PlanExchange, LibraryCall> exchanges;
};

/// What devices of each kind do with data within themselves; if nothing is said, it takes no time.
struct DeviceSpec {
  std::optional<DeviceRates> gpu;
  std::optional<DeviceRates> cpu;  ///< and of the memory where a server of a CPU sits
};

/// One point: everything that one simulation needs, validated, in base units.
struct Scenario {
  std::string name;
  std::string file;  ///< what errors call the file
  std::string hash;  ///< XXH3-128 of this point's canonical form, 32 hex digits
  TopologySpec topology;
  std::optional<TrainingSpec> training;  ///< then jobs[0] is the collective of all its gradients
  std::optional<LibraryRun> library;     ///< then jobs[0] is what it does; others have their own
  std::vector<Job> jobs;  ///< [0] the scenario's own collective, "main"; then others that run at the same time
  Transport transport;
  std::optional<bool> said_gpudirect;         ///< transport.gpudirect as the file has it; nothing: it has none
  const Protocol* protocol = &no_protocol();  ///< of the simulator's, or the library's
  std::optional<Picoseconds> launch;          ///< before the first step; none: the protocol's
  NetworkModel model = NetworkModel::fair;
  PacketOptions packet;
  RoutingSpec routing;
  DeviceSpec devices;
  std::vector<FaultSpec> faults;
  std::vector<RankDelay> late, slow;
  Disturbance::Jitter jitter;
  std::vector<BackgroundSpec> background;
  std::optional<Calibration> calibration;  ///< whose scales are in `topology` already
  /// What varies between the points of the file, in the order in which it varies: dotted path, value as JSON text.
  std::vector<std::pair<std::string, std::string>> varied;
  /// Problems in the files that it names, and what is used instead. For readers, on stderr.
  std::vector<std::string> warnings;

  const Job& main() const { return jobs.front(); }
  /// True if its jobs are calls of one program: some come after others, or have groups.
  bool by_program() const {
    return std::any_of(jobs.begin(), jobs.end(),
                       [](const Job& job) { return !job.after.empty() || !job.groups.empty(); });
  }
  /// True if all jobs together have a result, "all": the time of collectives. One that trains has steps instead.
  bool has_total() const { return by_program() && jobs.size() > 1 && !trains(); }
  /// What the library has decided for job j; nullptr: there is none.
  const LibraryRun* library_of(std::size_t j) const {
    return j > 0 ? jobs[j].library.get() : library ? &*library : nullptr;
  }
  /// What job j trains; nullptr: it is a collective.
  const TrainingSpec* training_of(std::size_t j) const {
    if (j > 0) return jobs[j].training.get();
    return training ? &*training : nullptr;
  }
  /// True if some job trains.
  bool trains() const {
    return training || std::any_of(jobs.begin(), jobs.end(), [](const Job& job) { return job.training != nullptr; });
  }
};

/// The first call of each number, in the order of jobs and sizes: [LibraryCall::number] of a whole scenario, some of
/// them of one that has been cut down to a job. Empty without a library.
std::vector<const LibraryCall*> calls_of(const Scenario& scenario);

/// What tells a point from others, without building it.
struct PointId {
  std::string hash;  ///< Scenario::hash; of a point that cannot be decoded a digest of what is written
  std::vector<std::pair<std::string, std::string>> varied;  ///< Scenario::varied
};

/// A scenario file: one or many points, as lists, ranges and `sweep` say.
class ScenarioFile {
 public:
  /// Reads a file. `overrides` are `path=value` texts of --set, applied in order before anything is expanded; the value
  /// null removes the key, so that its default holds.
  /// Throws InputError: where (file:line:column for syntax, file: /pointer for meaning), expected, found, hint.
  static ScenarioFile load(const std::string& path, const std::vector<std::string>& overrides = {});
  /// Reads a scenario from text; `name` stands for the file in errors.
  static ScenarioFile parse(std::string_view text, const std::string& name,
                            const std::vector<std::string>& overrides = {});

  const std::string& name() const;
  /// XXH3-128 of the canonical scenario (defaults filled in, base units, sorted keys; lists and sweep as they stand).
  const std::string& hash() const;
  /// The number of points that `where` lets through: at least 1.
  std::size_t size() const;
  /// The number of those that it does not.
  std::size_t left_out() const;
  /// Decodes point i; the first key varies slowest. Throws InputError as load() does.
  Scenario point(std::size_t i) const;
  /// Decodes point i with another message size; nothing if `where` does not let that through.
  std::optional<Scenario> point(std::size_t i, Bytes size) const;
  /// What the hash of point i counts, as JSON text: defaults filled in, base units (bytes, bytes per second, ps),
  /// sorted keys.
  std::string canonical(std::size_t i) const;
  /// Does not throw for an invalid point; point() does.
  PointId id(std::size_t i) const;

  ~ScenarioFile();
  ScenarioFile(ScenarioFile&&) noexcept;
  ScenarioFile& operator=(ScenarioFile&&) noexcept;

 private:
  ScenarioFile();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The text of a scenario file, JSON without comments, after the changes of --set. `name` stands for the file in
/// errors. Throws InputError as ScenarioFile::parse() for changes that cannot be made; does not look at values.
std::string with_overrides(std::string_view text, const std::string& name, const std::vector<std::string>& overrides);

/// The JSON Schema (draft-07) of a scenario, from the same table of fields that the decoder uses.
std::string scenario_schema();

/// A key that scenarios may have.
struct ScenarioKey {
  std::string path;      ///< as --set takes it: "topology.ranks"; "0" is an element of a list: "faults.0.link"
  std::string expects;   ///< "a whole number from 1 to 65536"
  std::string fallback;  ///< the value of a scenario that says none; empty: none, or as `doc` says
  std::string doc;
  std::vector<std::string> kinds;  ///< of the nearest variant above it, those that have the key: "star", "ring"
};

/// All of them, from the same table, in its order; those of a job's collective and training are as the scenario's own.
std::vector<ScenarioKey> scenario_keys();

}  // namespace ringsim
