// The first stages of the program's line: from a validated scenario to a topology, routes, and collectives on its
// nodes.
#pragma once

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/check/check.hpp"
#include "sim/run/call_plan.hpp"
#include "topologies/search/channel_rings.hpp"

namespace ringsim {

/// A collective, and the nodes that it runs on.
struct PlacedCollective {
  Job job;                             ///< of an algorithm in the fabric: its request has the tree of switches
  std::vector<NodeId> ranks, helpers;  ///< [rank], [actor - ranks]
  std::string ring;                    ///< as ring_order_of()
  /// The exchanges of a training step by a library: one of each size, in their order, with its algorithm and rings. Of
  /// a plan, with or without a library: each for each of its groups, in their order.
  std::vector<PlacedCollective> exchanges;
  PlanExchange exchange;  ///< of one of a plan's

  /// Helpers with ports of their own: all but switches of the fabric.
  std::vector<NodeId> endpoints() const { return uses_fabric() ? std::vector<NodeId>{} : helpers; }
  /// True if its helpers, or those of an exchange, are switches of the fabric.
  bool uses_fabric() const {
    return job.uses_fabric() || std::any_of(exchanges.begin(), exchanges.end(),
                                            [](const PlacedCollective& each) { return each.job.uses_fabric(); });
  }
};

/// Everything that a run needs except schedules and what disturbs it.
struct Setup {
  Topology topology;
  Routing routing;
  std::vector<PlacedCollective> collectives;                ///< [job], as Scenario::jobs; of several groups the first
  std::vector<std::vector<PlacedCollective>> other_groups;  ///< [job]
};

/// All functions throw InputError that names the scenario's file and the place in it, and UnservedError if an algorithm
/// cannot do what is asked of it on this topology. Those with `stop` ask it now and then, and throw Interrupted when it
/// is set.
Setup set_up(const Scenario& scenario, const std::atomic<bool>* stop = nullptr);

Topology topology_of(const Scenario& scenario);
/// The topology with the rates that the library's search for rings assumes, whatever the protocol of the run.
Topology topology_for_search(const Scenario& scenario);
/// The machine as it is: links at their own rates. With a library topology_of() has the rates that its kernels reach,
/// which are fitted to measurements.
Topology topology_without_kernels(const Scenario& scenario);
/// [LibraryCall::number] how the messages of its calls move; without a library the scenario's one plan. `topology`: as
/// rated() made it.
std::vector<CallPlan> call_plans(const Scenario& scenario, const Topology& topology);
/// True if devices take time for work on their own data.
bool has_rates(const Scenario& scenario);
/// The topology with what devices take for work on their own data, as a run needs it: links that come after all others.
/// `schedules`: of all collectives, as they are by themselves; they say how many channels a device has.
Topology rated(const Topology& topology, const Scenario& scenario, const std::vector<CheckedSchedule>& schedules);
Routing routing_of(const Topology& topology, const Scenario& scenario);
/// [job][group]; of a job without groups, one.
std::vector<std::vector<PlacedCollective>> collectives_of(const Scenario& scenario, const Topology& topology,
                                                          const std::atomic<bool>* stop = nullptr);
/// The rings of a scenario's library, whatever algorithm it takes for its call; nullptr: rings are searched for among
/// the links.
std::shared_ptr<const nccl::SearchGraph> ring_graph_of(const Scenario& scenario);

/// Rings for the channels of ranks: those of ring_graph_of() if it is of their GPUs, else those that a search finds
/// (topologies/search/channel_rings.hpp), which throws as that does.
ChannelRings rings_for(const Topology& topology, const Scenario& scenario, const std::vector<NodeId>& ranks,
                       const Transport& transport, const std::atomic<bool>* stop = nullptr);
/// NCCL's channels are its rings, or as many again: never one ring more often than another.
void fit_channels(CollectiveRequest& request);
/// With order best_ring: "gpu0 -> gpu3 -> ... -> gpu0, narrowest hop 48.5 GB/s"; with channel_rings: "2 rings of 25
/// GB/s each; 0: 0 1 2 3; 1: ..." by ranks; otherwise empty.
std::string ring_order_of(const Scenario& scenario);
/// What faults do to links, by time in the scenario's order.
std::vector<LinkChange> faults_of(const Topology& topology, const Scenario& scenario);
/// The topology as faults leave it at the start of the run, for a search of rings: a link that is down has 1 B/s, so
/// that no ring takes it if there is another.
Topology topology_at_start(const Topology& topology, const Scenario& scenario);
/// Faults, delays and background messages. `actors`: [job][rank]; `lanes`: [job], all of an actor if it is empty.
Disturbance disturbance_of(const Topology& topology, const Scenario& scenario,
                           const std::vector<std::vector<Actor>>& actors, const std::vector<Disturbance::Lanes>& lanes);

/// The links of that name, "FROM -> TO", or all of the node of that name. Throws InputError at `pointer`.
std::vector<LinkId> links_named(const Topology& topology, const std::string& name, const std::string& pointer);

/// The schedule of one of a scenario's collectives, and the nodes that it runs on.
struct PlacedSchedule {
  std::string job;  ///< as Prediction::job
  CheckedSchedule schedule;
  std::vector<NodeId> nodes;  ///< [actor]
};
/// Throws InputError if the scenario is a program: a training step, groups, or jobs after others.
void expect_collective(const Scenario& scenario);
/// The proved schedule of the scenario's own collective, not those of its jobs.
CheckedSchedule schedule_of(const Scenario& scenario, const std::atomic<bool>* stop = nullptr);
/// The proved schedule of any placed collective. `element`: as in schedules_of_elements().
CheckedSchedule schedule_of(const Scenario& scenario, const PlacedCollective& placed, const std::atomic<bool>* stop,
                            int element = 1);
/// All of them, for data whose elements must stay whole: each schedule is made for as many bytes as there are elements,
/// then every chunk is scaled by `element` bytes. Throws InputError if a message size is no multiple of `element`.
std::vector<PlacedSchedule> schedules_of_elements(const Scenario& scenario, int element,
                                                  const std::atomic<bool>* stop = nullptr);

}  // namespace ringsim
