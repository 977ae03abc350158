#include "algorithms/trees/in_switch.hpp"

#include <memory>

#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

constexpr Lane climbing = 0;  // the other lane descends

struct SwitchTree {
  std::vector<Actor> parent;                 // [actor]
  std::vector<std::vector<Actor>> children;  // [actor]
  bool is_root(Actor a) const { return parent[static_cast<std::size_t>(a)] < 0; }
  bool is_leaf(Actor a) const { return children[static_cast<std::size_t>(a)].empty(); }
};

SwitchTree tree_of(int ranks, const std::vector<Actor>& parents) {
  SwitchTree tree{parents, std::vector<std::vector<Actor>>(parents.size())};
  const auto n = static_cast<Actor>(parents.size());
  int roots = 0;
  for (Actor a = 0; a < n; ++a) {
    const Actor parent = parents[static_cast<std::size_t>(a)];
    ensure(parent < 0 || (parent >= ranks && parent < n), "the parents of a reduction tree are its switches");
    if (parent < 0)
      ++roots;
    else
      tree.children[static_cast<std::size_t>(parent)].push_back(a);
  }
  ensure(n > ranks && roots == 1, "a reduction tree has one root, a switch");
  for (Actor a = ranks; a < n; ++a) ensure(!tree.is_leaf(a), "the leaves of a reduction tree are its ranks");
  return tree;
}

// A switch that is not the root takes segment i while it passes on i - 1.
void climb(const SwitchTree& tree, Actor a, int i, int segments, Step& out) {
  const Actor parent = tree.parent[static_cast<std::size_t>(a)];
  if (tree.is_leaf(a)) return out.send(parent, chunk(i));
  if (i < segments)
    for (const Actor child : tree.children[static_cast<std::size_t>(a)]) out.receive_add(child, chunk(i));
  if (i > 0 && !tree.is_root(a)) out.send(parent, chunk(i - 1));
}

void descend(const SwitchTree& tree, Actor a, int i, int segments, Step& out) {
  const std::vector<Actor>& children = tree.children[static_cast<std::size_t>(a)];
  const Actor parent = tree.parent[static_cast<std::size_t>(a)];
  if (tree.is_root(a)) {
    out.wait(climbing, i + 1);  // the sum is whole
    for (const Actor child : children) out.send(child, chunk(i));
    return;
  }
  if (i < segments) {
    out.wait(climbing, tree.is_leaf(a) ? i + 1 : i + 2);  // what is overwritten has left
    out.receive(parent, chunk(i));
  }
  if (i > 0)
    for (const Actor child : children) out.send(child, chunk(i - 1));
}

}  // namespace

Schedule in_switch_all_reduce(int n, Bytes bytes, const std::vector<Actor>& parents, int segments) {
  Schedule s{.algorithm = "in_switch", .collective = all_reduce(n, bytes), .actors = 0};
  s.actors = static_cast<int>(parents.size());
  s.lanes = 2;
  s.tree = parents;
  s.layout[static_cast<std::size_t>(Buffer::data)] = Layout::near_equal(bytes, segments);
  const auto tree = std::make_shared<const SwitchTree>(tree_of(n, parents));
  s.n_steps = [tree, n, segments](Actor a, Lane) {
    if (n == 1) return 0;
    return tree->is_leaf(a) || tree->is_root(a) ? segments : segments + 1;
  };
  s.phases = {{"reduce up", "broadcast down"}, [](Actor, Lane lane, int i) {
                return PhaseStep{lane == climbing ? 0 : 1, i};
              }};
  s.step = [tree, segments](Actor a, Lane lane, int i, Step& out) {
    if (lane == climbing)
      climb(*tree, a, i, segments, out);
    else
      descend(*tree, a, i, segments, out);
  };
  return s;
}

}  // namespace ringsim
