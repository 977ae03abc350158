#include "algorithms/trees/packed_trees.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "algorithms/trees/pipelined.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

/// Numbers the uses of each connection, (from, to).
class ConnectionNumbers {
 public:
  int next(Actor from, Actor to) { return used_[{from, to}]++; }

 private:
  std::map<std::pair<Actor, Actor>, int> used_;
};

/// A tree with the children of each rank, and the channels between them.
struct ChanneledTree {
  SpanningTree tree;
  std::vector<std::vector<Actor>> children;  // [rank]
  std::vector<int> channels;                 // [rank] to or from its parent

  ChanneledTree(SpanningTree of, bool goes_up, ConnectionNumbers& numbers)
      : tree(std::move(of)), children(tree.parents.size()), channels(tree.parents.size()) {
    for (Actor r = 0; r < static_cast<Actor>(tree.parents.size()); ++r) {
      const Actor parent = tree.parent(r);
      if (parent < 0) continue;
      children[static_cast<std::size_t>(parent)].push_back(r);
      channels[static_cast<std::size_t>(r)] = goes_up ? numbers.next(r, parent) : numbers.next(parent, r);
    }
  }
  // As pipelined.hpp asks for it.
  Actor parent(Actor rank) const { return tree.parent(rank); }
  bool has_child(Actor rank) const { return !children[static_cast<std::size_t>(rank)].empty(); }
  template <class Visit>
  void for_each_child(Actor rank, Visit visit) const {
    for (const Actor child : children[static_cast<std::size_t>(rank)]) visit(child);
  }
  /// Gives each message of the step, which were made for channel 0, that of its connection.
  void number(Actor rank, Step& step) const {
    for (Op& op : step.ops) {
      const Actor child = op.peer == tree.parent(rank) ? rank : op.peer;
      op.channel = static_cast<std::uint16_t>(channels[static_cast<std::size_t>(child)]);
    }
  }
};

struct PackedParts {
  std::vector<ChanneledTree> up, down;  // [tree]
  int slices = 1;
  bool both() const { return !up.empty() && !down.empty(); }
};

void packed_step(const PackedParts& parts, Actor r, Lane lane, int i, Step& out) {
  const int t = parts.both() ? lane / 2 : lane;
  const Segments slice{t * parts.slices, parts.slices};
  const auto tree = static_cast<std::size_t>(t);
  if (!parts.up.empty() && (!parts.both() || lane % 2 == 0)) {
    pipelined_up(parts.up[tree], r, i, slice, 0, out);
    return parts.up[tree].number(r, out);
  }
  if (parts.both() && i < parts.slices) {  // a slice has gone up: an inner rank sends it one step after it came in
    const bool is_inner = parts.up[tree].parent(r) >= 0 && parts.up[tree].has_child(r);
    out.wait(lane - 1, is_inner ? i + 2 : i + 1);
  }
  pipelined_down(parts.down[tree], r, i, slice, 0, out);
  parts.down[tree].number(r, out);
}

Collective collective_of(CollectiveOp op, int ranks, Bytes bytes, Actor root, int pieces) {
  switch (op) {
    case CollectiveOp::all_gather:
      return all_gather_in_pieces(ranks, bytes, pieces);
    case CollectiveOp::reduce_scatter:
      return reduce_scatter_in_pieces(ranks, bytes, pieces);
    case CollectiveOp::all_reduce:
      return all_reduce(ranks, bytes);
    case CollectiveOp::broadcast:
      return broadcast(ranks, bytes, root);
    case CollectiveOp::reduce:
      return reduce(ranks, bytes, root);
    default:
      fail_invariant("trees make no other collective");
  }
}

}  // namespace

Schedule packed_trees(CollectiveOp op, Bytes bytes, std::vector<SpanningTree> down, std::vector<SpanningTree> up,
                      int slices) {
  const bool goes_up =
      op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::reduce;
  const bool comes_down = !goes_up || op == CollectiveOp::all_reduce;
  const std::vector<SpanningTree>& some = goes_up ? up : down;
  ensure(!some.empty() && slices > 0, "a collective over trees has some, and slices");
  if (goes_up && comes_down)
    ensure(std::equal(up.begin(), up.end(), down.begin(), down.end(),
                      [](const SpanningTree& a, const SpanningTree& b) { return a.root == b.root; }),
           "trees up and down have the same roots");
  const int ranks = static_cast<int>(some.front().parents.size()), n_trees = static_cast<int>(some.size());
  const Actor root = some.front().root;
  auto parts = std::make_shared<PackedParts>();
  parts->slices = slices;
  ConnectionNumbers numbers;
  if (goes_up)
    for (SpanningTree& tree : up) parts->up.emplace_back(std::move(tree), true, numbers);
  if (comes_down)
    for (SpanningTree& tree : down) parts->down.emplace_back(std::move(tree), false, numbers);
  Schedule s{.algorithm = "packed_trees",
             .collective = collective_of(op, ranks, bytes, root, n_trees / ranks * slices),
             .actors = ranks,
             .lanes = n_trees * (parts->both() ? 2 : 1)};
  s.layout[0] = Layout::near_equal(bytes, n_trees * slices);
  const std::shared_ptr<const PackedParts> made = std::move(parts);
  s.n_steps = [made](Actor r, Lane lane) {
    const auto tree = static_cast<std::size_t>(made->both() ? lane / 2 : lane);
    const bool is_up = !made->up.empty() && (!made->both() || lane % 2 == 0);
    return pipelined_steps((is_up ? made->up : made->down)[tree], r, made->slices);
  };
  s.step = [made](Actor r, Lane lane, int i, Step& out) { packed_step(*made, r, lane, i, out); };
  return s;
}

}  // namespace ringsim
