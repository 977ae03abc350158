#include "algorithms/trees/binomial_tree.hpp"

#include <algorithm>
#include <bit>

#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

/// Ranks counted from the root: v.
struct Tree {
  int n = 0;
  Actor root = 0;
  bool in_blocks = false;  // an edge carries the blocks of the subtree below it; else the whole buffer, one chunk

  int seen_from_root(Actor rank) const { return wrap(rank - root, n); }
  Actor rank(int v) const { return wrap(v + root, n); }

  static int parent(int v) { return v & (v - 1); }  // without its lowest bit
  /// Child k is v + 2^k, as long as that lies below v's own lowest bit and there is such a rank.
  int n_children(int v) const {
    const auto in_range = static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1 - v)));
    return v == 0 ? in_range : std::min(in_range, std::countr_zero(static_cast<unsigned>(v)));
  }
  /// What goes between v and its parent.
  Region behind(int v) const {
    if (!in_blocks) return chunk(0);
    const int lowest_bit = v & -v;
    return chunks(v, std::min(lowest_bit, n - v));
  }
};

// Step i of what goes up: from the children, nearest first, then to the parent.
void up(const Tree& tree, int v, int i, Step& out) {
  if (i == tree.n_children(v)) return out.send(tree.rank(Tree::parent(v)), tree.behind(v));
  const int child = v + (1 << i);
  if (tree.in_blocks)
    out.receive(tree.rank(child), tree.behind(child));
  else
    out.receive_add(tree.rank(child), tree.behind(child));
}

// Step i of what comes down: from the parent, then to the children, farthest first.
void down(const Tree& tree, int v, int i, Step& out) {
  if (v != 0 && i == 0) return out.receive(tree.rank(Tree::parent(v)), tree.behind(v));
  const int sent = v == 0 ? i : i - 1;
  const int child = v + (1 << (tree.n_children(v) - 1 - sent));
  out.send(tree.rank(child), tree.behind(child));
}

int steps_one_way(const Tree& tree, int v) { return tree.n_children(v) + (v == 0 ? 0 : 1); }

Schedule binomial(Collective collective, const Tree& tree, bool goes_up, bool comes_down) {
  Schedule s{.algorithm = "binomial_tree", .collective = std::move(collective), .actors = tree.n};
  s.layout[0] = Layout::near_equal(s.collective.bytes, tree.in_blocks ? tree.n : 1);
  s.n_steps = [tree, ways = (goes_up ? 1 : 0) + (comes_down ? 1 : 0)](Actor r, Lane) {
    return ways * steps_one_way(tree, tree.seen_from_root(r));
  };
  if (goes_up && comes_down)
    s.phases = {s.collective.op == CollectiveOp::barrier ? std::vector<std::string>{"up", "down"}
                                                         : std::vector<std::string>{"reduce up", "broadcast down"},
                [tree](Actor r, Lane, int i) {
                  const int of_up = steps_one_way(tree, tree.seen_from_root(r));
                  return i < of_up ? PhaseStep{0, i} : PhaseStep{1, i - of_up};
                }};
  s.step = [tree, goes_up](Actor r, Lane, int i, Step& out) {
    const int v = tree.seen_from_root(r);
    const int of_up = goes_up ? steps_one_way(tree, v) : 0;
    if (i < of_up)
      up(tree, v, i, out);
    else
      down(tree, v, i - of_up, out);
  };
  return s;
}

}  // namespace

Schedule binomial_broadcast(int n, Bytes bytes, Actor root) {
  return binomial(broadcast(n, bytes, root), {n, root}, false, true);
}
Schedule binomial_reduce(int n, Bytes bytes, Actor root) {
  return binomial(reduce(n, bytes, root), {n, root}, true, false);
}
Schedule binomial_all_reduce(int n, Bytes bytes, Actor root) {
  return binomial(all_reduce(n, bytes), {n, root}, true, true);
}
Schedule binomial_scatter(int n, Bytes bytes, Actor root) {
  return binomial(scatter(n, bytes, root), {n, root, true}, false, true);
}
Schedule binomial_gather(int n, Bytes bytes, Actor root) {
  return binomial(gather(n, bytes, root), {n, root, true}, true, false);
}
Schedule binomial_barrier(int n, Actor root) { return binomial(barrier(n), {n, root}, true, true); }

}  // namespace ringsim
