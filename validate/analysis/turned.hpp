// One tree rotated to all roots as a schedule for a scenario, with as many slices and lanes as are fastest.
#pragma once

#include <functional>
#include <optional>

#include "validate/analysis/message_ways.hpp"
#include "validate/analysis/synthesize.hpp"

namespace ringsim {

/// What methods of synthesis ask of the one that compares them.
struct CandidateTimes {
  const Scenario& scenario;
  std::function<Picoseconds(const std::shared_ptr<const StoredSchedule>&)> time_of;  ///< proves and simulates
  std::function<void(const std::string&)> say;
  Breath breathe;
};

/// The symmetry of hosts with equally many ranks, one host after the other: {hosts, ranks per host}; of ranks without
/// hosts, {ranks}. Nothing if hosts have unequal numbers or their ranks are not next to each other.
std::optional<Symmetry> symmetry_of_hosts(const Topology& topology, const std::vector<NodeId>& ranks);

/// The schedule of Synthesis::turned for an all_gather, reduce_scatter or all_reduce.
class TurnedRun {
 public:
  TurnedRun(const CandidateTimes& times, MachineBounds& machine, MessageWays& ways, const std::vector<NodeId>& ranks,
            int most_slices);

  /// Nothing if the ranks do not see the same machine.
  std::optional<Synthesis::Turned> plan();
  /// After plan(). Tries one slice, then twice as many until that has not helped twice, each with one to three lanes.
  MadeSchedule fastest();

 private:
  struct Part {  // up or down
    TreeWires wires;
    TurnedLoads loads;
    TurnedTree tree;
  };
  std::optional<Part> plan(bool up);
  MadeSchedule timed(int slices, int lanes) const;
  int ranks() const { return group_->order(); }
  std::int64_t messages(int slices) const;

  const CandidateTimes& times_;
  const CollectiveRequest& request_;
  MachineBounds& machine_;
  MessageWays& ways_;
  std::optional<Symmetry> group_;
  int most_slices_;
  std::optional<Part> down_, up_;
};

}  // namespace ringsim
