// What pipelined trees have in common: a buffer in segments that goes up a tree to its root, down from it, or both.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

// A Tree gives
//   Actor parent(Actor) const                     -1 for the root
//   bool has_child(Actor) const
//   void for_each_child(Actor, Visit visit) const visit(Actor child)

// Pieces give
//   int count, Region operator[](int i) const     what moves one after the other

/// The segments of one tree: chunks [first, first + count) of `data`, one each.
struct Segments {
  int first = 0;
  int count = 0;
  Region operator[](int i) const { return chunk(first + i); }
};

/// Steps of a rank's lane, up or down: an inner rank receives one segment while it passes on the one before.
template <class Tree>
int pipelined_steps(const Tree& tree, Actor r, int segments) {
  const bool is_root = tree.parent(r) < 0, is_leaf = !tree.has_child(r);
  if (is_root && is_leaf) return 0;
  return is_root || is_leaf ? segments : segments + 1;
}

/// Step i of what goes up: segments are added up on their way to the root.
template <class Tree, class Pieces>
void pipelined_up(const Tree& tree, Actor r, int i, const Pieces& segment, int channel, Step& out) {
  const Actor parent = tree.parent(r);
  if (!tree.has_child(r)) return out.send(parent, segment[i], channel);
  if (i < segment.count) tree.for_each_child(r, [&](Actor child) { out.receive_add(child, segment[i], channel); });
  if (i > 0 && parent >= 0) out.send(parent, segment[i - 1], channel);
}

/// Step i of what comes down from the root.
template <class Tree, class Pieces>
void pipelined_down(const Tree& tree, Actor r, int i, const Pieces& segment, int channel, Step& out) {
  const Actor parent = tree.parent(r);
  if (parent >= 0 && i < segment.count) out.receive(parent, segment[i], channel);
  const int passed_on = parent >= 0 ? i - 1 : i;
  if (passed_on >= 0) tree.for_each_child(r, [&](Actor child) { out.send(child, segment[passed_on], channel); });
}

/// A reduce, a broadcast or an all-reduce over one or several trees, among which the buffer is divided equally. Tree t
/// takes channel t; its lane is t, and in an all-reduce, where segments come down while others still go up, lanes 2t
/// (up) and 2t + 1 (down).
template <class Tree>
Schedule pipelined(std::string algorithm, Collective collective, std::vector<Tree> trees, int segments) {
  const bool both = collective.op == CollectiveOp::all_reduce, goes_up = both || collective.op == CollectiveOp::reduce;
  const int n_trees = static_cast<int>(trees.size()), lanes_a_tree = both ? 2 : 1;
  Schedule s{.algorithm = std::move(algorithm),
             .collective = std::move(collective),
             .actors = 0,
             .lanes = n_trees * lanes_a_tree};
  s.actors = s.collective.ranks;
  s.layout[0] = Layout::near_equal(s.collective.bytes, n_trees * segments);
  s.n_steps = [trees, segments, lanes_a_tree](Actor r, Lane lane) {
    return pipelined_steps(trees[static_cast<std::size_t>(lane / lanes_a_tree)], r, segments);
  };
  if (both)
    s.phases = {{"reduce up", "broadcast down"}, [](Actor, Lane lane, int i) { return PhaseStep{lane % 2, i}; }};
  s.step = [trees = std::move(trees), segments, lanes_a_tree, goes_up](Actor r, Lane lane, int i, Step& out) {
    const int t = lane / lanes_a_tree;
    const Tree& tree = trees[static_cast<std::size_t>(t)];
    const Segments segment{t * segments, segments};
    if (goes_up && lane % lanes_a_tree == 0) return pipelined_up(tree, r, i, segment, t, out);
    if (goes_up && i < segments) {  // segment i has gone up: an inner rank sends it one step after it came in
      const bool is_inner = tree.parent(r) >= 0 && tree.has_child(r);
      out.wait(lane - 1, is_inner ? i + 2 : i + 1);
    }
    pipelined_down(tree, r, i, segment, t, out);
  };
  return s;
}

}  // namespace ringsim
