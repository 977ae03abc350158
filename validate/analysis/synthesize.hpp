// A schedule made for a scenario's own machine: trees that use its links fully, next to the algorithms of the catalog.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/stored_schedule.hpp"
#include "algorithms/trees/packed_trees.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "topologies/synthesis/tree_plan.hpp"
#include "topologies/synthesis/turned_tree.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim {

struct SynthesisOptions {
  std::optional<std::int64_t> trees;  ///< from each root; none: as choose_rate()
  int most_slices = 256;              ///< TreeSlices::count is at most this
  /// Throws InputError if a schedule cannot be written as it is to be; asked before it is timed. With one slice, that
  /// ends the synthesis; more slices, and other methods, are left out.
  std::function<void(const StoredSchedule&)> expect_writable;
  const std::atomic<bool>* stop = nullptr;
  /// Told what is done from now on, in words.
  std::function<void(const std::string&)> stage;
};

/// Trees of one direction.
struct DirectedTrees {
  TreePlan plan;
  int lowest = 0, highest = 0;  ///< their heights
};

/// An algorithm of the catalog on the same machine, by the same simulation.
struct TimedAlgorithm {
  std::string name;  ///< as algorithm_text() of its prediction
  Picoseconds time{0};
  Scenario scenario;  ///< with this algorithm
};

/// A schedule that was made, by the method that made it.
struct MadeSchedule {
  std::string name;                                ///< "trees, 64 slices in each of 2 streams"
  Picoseconds time{0};                             ///< by simulation
  std::shared_ptr<const StoredSchedule> schedule;  ///< proved
};

struct Synthesis {
  struct Trees {
    std::optional<DirectedTrees> down, up;           ///< up: of what is reduced
    TreeSlices slices;                               ///< the fastest of those tried
    Picoseconds time{0};                             ///< by simulation
    std::shared_ptr<const StoredSchedule> schedule;  ///< proved; null: trees of each root were not planned
    std::vector<std::pair<TreeSlices, Picoseconds>> tried;
  };
  /// What bandwidth allows at best with trees: the bound of the op; of an all_reduce that of a reduce_scatter and an
  /// all_gather, one after the other.
  Picoseconds target{0};
  std::string target_why;  ///< what limits it, in words
  Bound bound;             ///< of the op itself
  Trees trees;
  /// One tree rotated to all roots, if the machine looks alike to all ranks (topologies/synthesis/turned_tree.hpp).
  struct Turned {
    std::optional<TurnedTree> down, up;
    double share = 0;  ///< of the optimum's rate
  };
  std::optional<Turned> turned;
  std::vector<MadeSchedule> made;       ///< the best of each method, the fastest first
  std::vector<TimedAlgorithm> catalog;  ///< the fastest first; may be empty
  int left_out = 0;                     ///< schedules that SynthesisOptions::expect_writable refused

  bool made_is_faster() const { return catalog.empty() || made.front().time <= catalog.front().time; }
};

/// Plans trees (topologies/synthesis), makes a schedule of them, proves and times it with several numbers of slices and
/// streams; does the same with one tree rotated to all roots. If there are so many ranks that trees of each root could
/// not be cut into slices, these are planned only if the turned one falls short of the optimum's rate. Then times every
/// algorithm of the catalog that serves the scenario's collective there: with its defaults, pipelined ones also with 16
/// and 128 segments, the ring also with one of its own for each channel (topologies/search/channel_rings.hpp), and the
/// scenario's own as it is set. Left out are algorithms whose switches add. Throws InputError for what trees are not
/// made for: another collective than all_gather, reduce_scatter, all_reduce, broadcast and reduce, a scenario with a
/// library or several jobs, fewer than two ranks; what MachineBounds throws; Interrupted.
Synthesis synthesize(const Scenario& scenario, const Setup& setup, const SynthesisOptions& options = {});

/// The scenario with its collective run by a stored schedule.
Scenario with_schedule(const Scenario& scenario, std::shared_ptr<const StoredSchedule> stored);

}  // namespace ringsim
