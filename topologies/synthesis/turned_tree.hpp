// One spanning tree for all roots: found for one, and turned to the others.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "topologies/synthesis/tree_graph.hpp"

namespace ringsim {

/// The edges of the wires that the messages of a tree's edge take, from one rank to another; none: not known.
using WayBetween = std::function<std::vector<int>(int from, int to)>;

/// What crosses the wires if each rank a exchanges a message with a + d, for every displacement d. Edges over which
/// equally many messages of every displacement go are one class: if a machine is symmetric there are few.
class TurnedLoads {
 public:
  struct Load {
    int edge_class = 0;
    int messages = 0;  ///< over each edge of the class
  };
  /// Counts the messages of all pairs of ranks. Nothing if a way is not known, or if there are more than
  /// `most_classes`: ranks do not see the same machine. Time and memory: O(length of all ways).
  static std::optional<TurnedLoads> of(const Wires& wires, const Symmetry& group, const WayBetween& way,
                                       const Breath& breath = {});
  static constexpr std::size_t most_classes = 64;

  const std::vector<Load>& of(int displacement) const { return loads_[static_cast<std::size_t>(displacement)]; }
  /// The first edge that a message to this displacement takes, as a class: its port.
  int port(int displacement) const { return ports_[static_cast<std::size_t>(displacement)]; }
  /// [class] the capacity of its edges, in the units of the wires.
  const std::vector<std::int64_t>& capacities() const { return capacities_; }

 private:
  std::vector<std::vector<Load>> loads_;  // [displacement]
  std::vector<int> ports_;                // [displacement]; -1: 0
  std::vector<std::int64_t> capacities_;
};

/// A spanning tree of displacements: the tree of root r joins r + d to r + parent[d].
struct TurnedTree {
  std::vector<int> parent;  ///< [displacement]; -1: 0, the root
  int height = 0;
  /// The time for all blocks in units of a block over one unit of capacity, counted on the edges themselves: the most
  /// messages over an edge by its capacity. At least the optimum's inverse rate.
  double inverse_rate = 0;
};

/// Gives displacements parents one after another, each the one that keeps the fullest edges emptiest, then the one that
/// uses the least of the machine, then the nearest to the root. Counts again what crosses every edge of the wires when
/// the tree is turned to all roots, so nothing depends on whether the machine is symmetric but the quality. Greedy: the
/// caller compares `inverse_rate` with the optimum.
TurnedTree turned_tree(const Wires& wires, const Symmetry& group, const TurnedLoads& loads, const WayBetween& way);

/// [slice * K + displacement] in which step each slice of a block reaches its displacement; -1: the root. Steps go to
/// `lanes` lanes in turn; a displacement follows its parent by as many steps, so in the next step of that lane or
/// later.
///
/// A step has room for what takes 15 % longer than the longest message alone. Those with the most below them come
/// first. A list schedule, by loads of classes.
std::vector<int> turns_of(const TurnedTree& tree, const TurnedLoads& loads, const Symmetry& group, int slices,
                          int lanes);

}  // namespace ringsim
