// One scenario's answer: the line of the program, from a validated scenario to a report.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/check/check.hpp"
#include "sim/run/timeline.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {

/// What held the run back, in names.
struct BottleneckReport {
  std::string link;    ///< "node0.nic0 -> leaf0"; empty where only latency counted
  std::string kind;    ///< of the link
  double busy = 0;     ///< share of the run during which it, or its like, set the speed of the critical path
  double latency = 0;  ///< share of the run that the critical path spent in latencies and in filling staging rooms
  double delay = 0;    ///< ... that it waited for ranks that are late, slow or unsteady
};

/// What the busiest of a group of like links carried. Like: the same name but for its numbers.
struct LinkGroup {
  std::string links;  ///< "node*.nic* -> leaf*"
  std::string kind;
  int count = 0;           ///< of links that carried anything
  Bytes most;              ///< that one of them carried
  double utilisation = 0;  ///< the highest: bytes over what the link could have carried in the run
  std::string busiest;     ///< the first link of that utilisation
  Bytes through_busiest;   ///< less than `most` where another link carries more, at a higher bandwidth
};

/// Of one collective. Where a scenario has jobs, `jobs` of the first one's are the others.
struct Prediction {
  std::string job;  ///< "main", or the job's name; empty where there is but one collective
  std::vector<Prediction> jobs;
  Picoseconds start{0};    ///< of a job: when its ranks began; `time` counts from there
  bool disturbed = false;  ///< faults, delays or the traffic of others
  CollectiveRequest request;
  std::string algorithm;                                        ///< its name
  std::vector<std::pair<std::string, std::string>> parameters;  ///< of the algorithm, with their values as JSON text
  int nodes = 0;  ///< hosts that its ranks lie on; 0 where there are bare gpus only
  NetworkModel model = NetworkModel::fair;
  const Protocol* protocol = &no_protocol();
  std::string calibration;  ///< what was fitted, as to_string(Calibration); empty where the scenario has none
  Picoseconds time{0};
  double algbw = 0, busbw = 0;        ///< GB/s, as nccl-tests defines them
  std::optional<double> measured_us;  ///< where somebody measured the same; predict() does not set it
  /// Of a replay: `measured_us` is its median, and this the rest; predict() does not set it.
  struct Replayed {
    double min_us = 0, max_us = 0;
    std::int64_t wrong = 0;  ///< elements, over all runs
  };
  std::optional<Replayed> replayed;
  /// Of a replay on GPUs: what a probe's measurements make of it, additions included; predict() does not set it.
  struct Modelled {
    double in_turn_us = 0, shared_us = 0;  ///< where copies are served one after the other; where they share
  };
  std::optional<Modelled> modelled;
  std::int64_t transfers = 0;
  std::int64_t events = 0;
  std::optional<std::uint64_t> fingerprint;
  std::optional<std::string> folded;  ///< as Timeline's, and so is the next
  std::string not_folded;
  std::optional<ClosedForm> form;
  std::optional<BottleneckReport> bottleneck;  ///< nothing where nothing moved
  /// Where there are several hosts and one collective: most bytes that left one of them, and at what average rate
  /// (GB/s).
  std::optional<std::pair<Bytes, double>> inter_node;
  std::vector<LinkGroup> links;  ///< the busiest first; of all collectives together, with the first one's
  std::string ring;              ///< as ring_order_of(); empty where the order is another
  Proof proof;
  std::vector<std::pair<std::string, std::string>> varied;  ///< see Scenario::varied
};

/// The schedule of one of a scenario's collectives, and where it runs.
struct PlacedSchedule {
  std::string job;  ///< as Prediction::job
  CheckedSchedule schedule;
  std::vector<NodeId> nodes;  ///< [actor]
};

struct PredictOptions {
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double)> progress;
  bool fold = true;  ///< as RunOptions::fold
  /// What is run in place of the schedules that would be made: schedules_of_elements() of the same scenario.
  const std::vector<PlacedSchedule>* schedules = nullptr;
};

/// The first stages of the line by themselves. Errors name the scenario's file and the place in it.
Topology topology_of(const Scenario& scenario);
/// With order best_ring: "gpu0 -> gpu3 -> ... -> gpu0, narrowest hop 48.5 GB/s"; else empty.
std::string ring_order_of(const Scenario& scenario);
Routing routing_of(const Topology& topology, const Scenario& scenario);
/// Faults, delays and background messages; late starts of jobs among the delays. `first_actors`: [job] its first actor;
/// behind the last job the number of all actors.
Disturbance disturbance_of(const Topology& topology, const Scenario& scenario, const std::vector<Actor>& first_actors);
/// That of the scenario's own collective, not those of its jobs.
CheckedSchedule schedule_of(const Scenario& scenario, const std::atomic<bool>* stop = nullptr);
/// All of them, the scenario's own first, for data of elements that must stay whole: made for as many bytes as there
/// are elements, then every chunk that many times as large. Throws InputError where a message size is no multiple of
/// `element`.
std::vector<PlacedSchedule> schedules_of_elements(const Scenario& scenario, int element,
                                                  const std::atomic<bool>* stop = nullptr);

/// Builds topology and schedule, checks the schedule, runs it, and works out what to report.
/// Throws what build(), check() and run() throw, and InputError for a rank that is not a gpu of the topology.
Prediction predict(const Scenario& scenario, const PredictOptions& options = {});

}  // namespace ringsim
