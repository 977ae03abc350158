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

/// What one stream of a tree carries: chunks [first, first + ...) of `data`, `width` in a slice, of which the first
/// slice may have only `lead`, and the last one the rest.
struct StreamSlices {
  int first = 0, width = 1, lead = 0;
  int count = 0;  ///< of slices

  Region operator[](int i) const {
    if (lead == 0) return chunks(first + i * width, width);
    if (i == 0) return chunks(first, lead);
    return chunks(first + lead + (i - 1) * width, i + 1 == count ? width - lead : width);
  }
};

/// [tree * streams + stream]
struct PackedParts {
  std::vector<ChanneledTree> up, down;
  TreeSlices slices;

  bool both() const { return !up.empty() && !down.empty(); }
  bool is_up(Lane lane) const { return !up.empty() && (!both() || lane % 2 == 0); }
  std::size_t place(Lane lane) const { return static_cast<std::size_t>(both() ? lane / 2 : lane); }
  StreamSlices slices_of(Lane lane) const {
    const int place = both() ? lane / 2 : lane, lead = place % slices.streams;
    return {.first = place * slices.count * slices.streams,
            .width = slices.streams,
            .lead = lead,
            .count = slices.count + (lead > 0 ? 1 : 0)};
  }
};

void packed_step(const PackedParts& parts, Actor r, Lane lane, int i, Step& out) {
  const StreamSlices slices = parts.slices_of(lane);
  const std::size_t at = parts.place(lane);
  if (parts.is_up(lane)) {
    pipelined_up(parts.up[at], r, i, slices, 0, out);
    return parts.up[at].number(r, out);
  }
  if (parts.both() && i < slices.count) {  // a slice has gone up: an inner rank sends it one step after it came in
    const bool is_inner = parts.up[at].parent(r) >= 0 && parts.up[at].has_child(r);
    out.wait(lane - 1, is_inner ? i + 2 : i + 1);
  }
  pipelined_down(parts.down[at], r, i, slices, 0, out);
  parts.down[at].number(r, out);
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

Schedule packed_trees(CollectiveOp op, Bytes bytes, const std::vector<SpanningTree>& down,
                      const std::vector<SpanningTree>& up, const TreeSlices& slices) {
  const bool goes_up =
      op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::reduce;
  const bool comes_down = !goes_up || op == CollectiveOp::all_reduce;
  const std::vector<SpanningTree>& some = goes_up ? up : down;
  ensure(!some.empty() && slices.count > 0 && slices.streams > 0, "a collective over trees has some, and slices");
  if (goes_up && comes_down)
    ensure(std::equal(up.begin(), up.end(), down.begin(), down.end(),
                      [](const SpanningTree& a, const SpanningTree& b) { return a.root == b.root; }),
           "trees up and down have the same roots");
  const int ranks = static_cast<int>(some.front().parents.size()), n_trees = static_cast<int>(some.size());
  const int pieces = slices.count * slices.streams * slices.streams;  // of a tree
  auto parts = std::make_shared<PackedParts>();
  parts->slices = slices;
  ConnectionNumbers numbers;
  for (std::size_t t = 0; t < some.size(); ++t)
    for (int stream = 0; stream < slices.streams; ++stream) {
      if (goes_up) parts->up.emplace_back(up[t], true, numbers);
      if (comes_down) parts->down.emplace_back(down[t], false, numbers);
    }
  Schedule s{.algorithm = "packed_trees",
             .collective = collective_of(op, ranks, bytes, some.front().root, n_trees / ranks * pieces),
             .actors = ranks,
             .lanes = n_trees * slices.streams * (parts->both() ? 2 : 1)};
  s.layout[0] = Layout::near_equal(bytes, n_trees * pieces);
  const std::shared_ptr<const PackedParts> made = std::move(parts);
  s.n_steps = [made](Actor r, Lane lane) {
    const ChanneledTree& tree = (made->is_up(lane) ? made->up : made->down)[made->place(lane)];
    return pipelined_steps(tree, r, made->slices_of(lane).count);
  };
  if (made->both())
    s.phases = {{"reduce up", "broadcast down"}, [made](Actor, Lane lane, int i) {
                  return PhaseStep{made->is_up(lane) ? 0 : 1, i};
                }};
  s.step = [made](Actor r, Lane lane, int i, Step& out) { packed_step(*made, r, lane, i, out); };
  return s;
}

}  // namespace ringsim
