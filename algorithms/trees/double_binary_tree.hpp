// The double binary tree: two trees at once, in which a rank that passes data on in one is a leaf of the other.
#pragma once

#include <algorithm>
#include <bit>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A binary tree over positions 0..n-1 in which every odd position is a leaf, on which the ranks are placed so that
/// those on odd positions of tree 0 stand on even ones of tree 1.
///
/// Position 0 is the root and has one child, the largest power of two below n; a position with lowest bit B > 1 has
/// the children v - B/2 and v + B/2, or if there is no such position v + the next lower power of two that there is.
/// Tree 1 is tree 0 with the ranks in reverse if their number is even, shifted by one if it is odd. (NCCL,
/// src/graph/trees.cc, ncclGetDtree; the in-order tree is that of Sanders, Speck & Traff.)
class DoubleTree {
 public:
  /// Tree `which` (0 or 1) over all n ranks: two different roots.
  static DoubleTree over_all(int n, int which) { return {n, 0, 0, which}; }
  /// Tree `which` over all ranks but the root, which is placed on top of both.
  static DoubleTree below(Actor root, int n, int which) { return {n, root, 1, which}; }

  Actor parent(Actor r) const {
    const int v = position(r);
    if (v == 0) return -1;
    const int bit = v & -v;
    const int up = (v ^ bit) | (bit << 1);
    return rank(up < n_ ? up : v ^ bit);
  }
  bool has_child(Actor r) const {
    const int v = position(r);
    return v == 0 ? n_ > 1 : v % 2 == 0;
  }
  template <class Visit>
  void for_each_child(Actor r, Visit visit) const {
    if (!has_child(r)) return;
    const int v = position(r);
    const int above = n_ - 1 - v;  // so many positions lie behind v
    if (v == 0) return visit(rank(static_cast<int>(std::bit_floor(static_cast<unsigned>(above)))));
    const int half = (v & -v) / 2;
    visit(rank(v - half));
    if (above > 0) visit(rank(v + std::min(half, static_cast<int>(std::bit_floor(static_cast<unsigned>(above))))));
  }
  /// Edges from the root to the farthest rank.
  int depth() const { return static_cast<int>(std::bit_width(static_cast<unsigned>(n_ - 1))); }

 private:
  DoubleTree(int n, Actor root, int fixed, int which) : n_(n), root_(root), fixed_(fixed), which_(which) {}

  // Counted from the root, the first `fixed_` ranks keep their place; the others are mirrored or shifted.
  int position(Actor r) const { return placed(wrap(r - root_, n_), -1); }
  Actor rank(int position) const { return wrap(placed(position, 1) + root_, n_); }
  int placed(int v, int shift) const {
    if (which_ == 0 || v < fixed_) return v;
    const int m = n_ - fixed_, u = v - fixed_;
    return fixed_ + (m % 2 == 0 ? m - 1 - u : wrap(u + shift, m));
  }

  int n_;
  Actor root_;
  int fixed_;
  int which_;
};

/// A tree of DoubleTree over the first ranks of groups of consecutive ones; the others of a group form a chain below
/// its first. So NCCL's Tree lies over nodes (src/graph/trees.cc, src/graph/connect.cc): only one GPU of a node is in
/// the tree, and the rest of the node reaches it from GPU to GPU.
class TreeOfChains {
 public:
  /// Requires that `group` divides the ranks.
  TreeOfChains(int ranks, int group, int which) : firsts_(DoubleTree::over_all(ranks / group, which)), group_(group) {}

  Actor parent(Actor r) const {
    if (r % group_ != 0) return r - 1;
    const Actor up = firsts_.parent(r / group_);
    return up < 0 ? -1 : up * group_;
  }
  bool has_child(Actor r) const {
    return r % group_ < group_ - 1 || (r % group_ == 0 && firsts_.has_child(r / group_));
  }
  template <class Visit>
  void for_each_child(Actor r, Visit visit) const {
    if (r % group_ == 0) firsts_.for_each_child(r / group_, [&](Actor child) { visit(child * group_); });
    if (r % group_ < group_ - 1) visit(r + 1);
  }
  int depth() const { return firsts_.depth() + group_ - 1; }

 private:
  DoubleTree firsts_;
  int group_;
};

// Below: s segments per tree, x = size/(2 s b), d = ceil(log2 n) the depth of either tree. Every rank sends about as
// much as it receives: half the ranks pass on one half of the buffer, the others the other. Source: Sanders, Speck &
// Traff, Two-tree algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 35 (2009); the
// all-reduce as NCCL has it since 2.4.

/// Double binary tree all-reduce, over two trees with a root each: one half of the buffer goes up and down tree 0, the
/// other tree 1; all four ways are lanes of their own.
///
/// Steps: s + 1 a rank and lane.  Sent per rank: up to 2 size (in one tree half up and twice half down, in the other
/// half up).  Links used: up to 4 a rank.
/// Closed form, if no cable carries two of the four ways at a time: (2d-1+s)(a + x).
///
/// `group` ranks, consecutive ones, form a chain at each place of the trees (TreeOfChains); 1: none. The chains are in
/// both trees, which share their cables. Throws InputError (empty `where`) if it does not divide the ranks.
Schedule double_tree_all_reduce(int ranks, Bytes bytes, int segments, int group = 1);

/// The two-tree broadcast: the root sends one half of its buffer to the top of each tree of the others.
///
/// Steps: s + 1 a rank and lane.  Sent per rank: up to size; by the root: size.
/// Closed form, if no cable is in both trees: (d-1+s)(a + x).
Schedule double_tree_broadcast(int ranks, Bytes bytes, Actor root, int segments);

/// The two-tree reduce, the broadcast run backwards. Closed form: as of the broadcast.
Schedule double_tree_reduce(int ranks, Bytes bytes, Actor root, int segments);

}  // namespace ringsim
