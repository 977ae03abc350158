// Which links a scenario's messages take between ranks, in the terms in which trees are planned.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/topology/routes.hpp"
#include "topologies/synthesis/tree_plan.hpp"
#include "topologies/synthesis/turned_tree.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim {

/// The links that messages take between the ranks of a scenario's own collective. Keeps references to what it is made
/// of.
class MessageWays {
 public:
  MessageWays(const Scenario& scenario, const Setup& setup, const MachineBounds& machine);

  /// [from * ranks + to] edges of the wires, in order; none for a rank to itself, and if the wires lack a link.
  /// `backwards`: the wires are reversed(), and a tree's edge from u to t is a message from t to u.
  std::vector<std::vector<int>> on(const TreeWires& wires, bool backwards);
  /// As on(), but looks up pair by pair, which takes no memory for the pairs. Keeps a reference to this object.
  WayBetween between(const TreeWires& wires, bool backwards);

 private:
  std::vector<LinkId> links_between(NodeId from, NodeId to) const;

  const std::vector<NodeId>& ranks_;
  const Topology& topology_;
  std::unique_ptr<Routes> routes_;
};

}  // namespace ringsim
