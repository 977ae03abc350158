// The program's one line: a validated scenario in, a prediction out.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/explain.hpp"
#include "scenarios/predict/no_effect.hpp"
#include "scenarios/predict/trace.hpp"
#include "scenarios/predict/training.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/check/check.hpp"
#include "sim/run/phase_account.hpp"
#include "sim/run/timeline.hpp"

namespace ringsim {

/// What held the run back, in names.
struct BottleneckReport {
  std::string link;    ///< "node0.nic0 -> leaf0"; empty if only latency counted
  std::string kind;    ///< of the link
  double busy = 0;     ///< share of the run during which it, or an equivalent link, set the speed of the critical path
  double latency = 0;  ///< share of the run that the critical path spent in latencies and in filling staging rooms
  double delay = 0;    ///< ... that it waited for ranks that are late, slow or unsteady
};

/// What the busiest of a group of like links carried. Like: the same name but for its numbers.
struct LinkGroup {
  std::string links;  ///< "node*.nic* -> leaf*"
  std::string kind;
  std::string link_class;  ///< class_name()
  int count = 0;           ///< of links that carried anything
  Bytes most;              ///< that one of them carried
  double utilization = 0;  ///< the highest: bytes over what the link could have carried in the run
  std::string busiest;     ///< the first link of that utilization
  Bytes through_busiest;   ///< less than `most` if another link carries more, at a higher bandwidth
};

/// The prediction for one collective. If a scenario has jobs, the first one's `jobs` are the others.
struct Prediction {
  std::string job;  ///< "main", or the job's name; empty if there is but one collective
  std::vector<Prediction> jobs;
  bool is_total = false;   ///< of all jobs together ("all"): no collective, algorithm or size; request.ranks: GPUs
  Picoseconds start{0};    ///< of a job: when its ranks began; `time` counts from there
  bool disturbed = false;  ///< faults, delays or the traffic of others
  CollectiveRequest request;
  std::string algorithm;                                        ///< its name
  std::vector<std::pair<std::string, std::string>> parameters;  ///< of the algorithm, with their values as JSON text
  int groups = 0;  ///< that do the same at the same time, `request` and bandwidths being those of one; 0: it has none
  int nodes = 0;   ///< hosts that its ranks lie on; 0 if there are bare gpus only
  NetworkModel model = NetworkModel::fair;
  std::string routing;  ///< "static", "ecmp, seed 3"; empty if the fabric has one shortest way for each message
  const Protocol* protocol = &no_protocol();
  Picoseconds launch{0};  ///< launch_of()
  std::string library;    ///< "nccl 2.30.7"; empty if no library decided
  /// The library's names for what it decided: "Tree" and "LL128", as NCCL_ALGO and NCCL_PROTO have them, or
  /// "Send/Recv". Empty without a library. `algorithm` and `protocol` are the schedule and costs that simulate them.
  std::string library_algorithm, library_protocol;  ///< of several all, the one of most bytes first: "Simple, LL"
  std::string calibration;  ///< what was fitted, as to_string(Calibration); empty if the scenario has none
  bool staged = false;      ///< data between hosts rests in host memory, as stages_between_hosts() says
  /// What the collectives of a trace or an inference step do without taking time, because the scenario has neither a
  /// library nor a figure for it: "launches", "copies", "additions".
  std::vector<std::string> untimed;
  std::optional<TrainingReport> training;  ///< of a training step; `time` is its step, `request` all its gradients
  Picoseconds time{0};
  double algbw = 0, busbw = 0;  ///< GB/s, as nccl-tests defines them
  std::int64_t transfers = 0;
  std::int64_t events = 0;
  std::optional<std::uint64_t> fingerprint;
  std::optional<std::string> folded;  ///< as Timeline's, and so is the next
  std::string not_folded;
  std::string remembered;  ///< how many calls of a training step were remembered; empty: all were simulated
  std::optional<BottleneckReport> bottleneck;  ///< nothing if nothing moved
  /// If there are several hosts and one collective: most bytes that left one of them, and at what average rate
  /// (GB/s).
  std::optional<std::pair<Bytes, double>> inter_node;
  std::vector<LinkGroup> links;  ///< the busiest first; of all collectives together, with the first one's
  std::string ring;              ///< as ring_order_of(); empty if the order is another
  Proof proof;
  std::vector<std::pair<std::string, std::string>> varied;  ///< see Scenario::varied
  std::optional<Explanation> explanation;  ///< only if PredictOptions::explain asks for it; of jobs, the first
                                           ///< one's, or that of all together
  /// How `time` divides over the phases of the schedule, whose critical times sum to it; "launch" and "own pass" are
  /// phases without steps. Moments count from the start of the launch. Only if PredictOptions::phases asks for it,
  /// of a collective by itself: groups, jobs and training steps have none.
  std::vector<PhaseTime> phases;
  std::vector<std::string>
      warnings;  ///< of the whole run, such as a model that GPUs have no room for; the first job's only
  /// Settings that may have had no effect, for the whole run. Set only on the first job.
  std::vector<SettingEffect> settings;
  /// As the function of that name (no_effect.hpp). Set only with PredictOptions::explain, on what is explained.
  std::string beyond_gpudirect;
};

struct PredictOptions {
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double)> progress;
  /// Told what is done from now on, in words: "simulating 4190208 messages".
  std::function<void(const std::string&)> stage;
  /// A training step whose program takes more is refused before it is made.
  std::optional<Bytes> max_memory;
  bool fold = true;                           ///< as RunOptions::fold
  std::optional<std::int64_t> most_messages;  ///< as RunOptions::most_messages: TooManyMessages (sim/run/run.hpp)
  bool explain = false;  ///< sets Prediction::explanation; keeps the critical path and, of a smaller run, all messages
  bool phases = false;   ///< sets Prediction::phases; keeps the critical path
  Recording* recording = nullptr;  ///< filled in, if one is given: then no run is folded
  /// What is run in place of the schedules that would be made: schedules_of_elements() of the same scenario.
  const std::vector<PlacedSchedule>* schedules = nullptr;
  /// For a training: chunks consist of whole elements of so many bytes, as in schedules_of_elements().
  int element = 1;
};

/// Builds topology and schedule, checks the schedule, runs it, and names what limited it. Throws what set_up(), check()
/// and run() throw.
Prediction predict(const Scenario& scenario, const PredictOptions& options = {});
/// As predict() above, with a setup that was made before: set_up(scenario).
Prediction predict(const Scenario& scenario, const Setup& setup, const PredictOptions& options = {});

/// The algorithm that the library chose for the job, by the library's name: "Tree". For a training step all of them,
/// the one of most bytes first: "Ring, Tree". Empty without a library.
std::string library_algorithm_of(const Scenario& scenario, std::size_t job);
/// Likewise its protocols: "Simple, LL".
std::string library_protocol_of(const Scenario& scenario, std::size_t job);
/// The protocols by which a job's messages move, as results have them: "simple, ll".
std::string protocols_of(const Scenario& scenario, std::size_t job);
std::string protocols_of(const Prediction& prediction);

/// "halving_doubling fold=naive": an algorithm with its parameters, in tables; a library's by the library's name:
/// "Tree".
std::string algorithm_text(const Prediction& prediction);
/// "ll128"; a library's by the library's name: "LL128".
std::string protocol_text(const Prediction& prediction);

/// The time before the first step of every collective: the scenario's, or the protocol's, and what a calibration adds.
Picoseconds launch_of(const Scenario& scenario, std::size_t job = 0);
/// What a library's kernels take for a rank's own part, copied or added up apart from the schedule: it comes on top.
Picoseconds own_pass_of(const Scenario& scenario, std::size_t job = 0);
/// True if faults, delays, background messages or other jobs act on the run.
bool is_disturbed(const Scenario& scenario);

}  // namespace ringsim
