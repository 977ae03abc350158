#include "topologies/synthesis/tree_packing.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/bound/flow_graph.hpp"

namespace ringsim {

int height(const PackedTree& tree) {
  int most = 0;
  for (std::size_t r = 0; r < tree.parent.size(); ++r) {
    int depth = 0;
    for (int at = static_cast<int>(r); tree.parent[static_cast<std::size_t>(at)] >= 0; ++depth)
      at = tree.parent[static_cast<std::size_t>(at)];
    most = std::max(most, depth);
  }
  return most;
}

namespace {

class TreePacker {
 public:
  TreePacker(const TreeGraph& graph, const Breath& breath) : breath_(breath), n_(static_cast<int>(graph.ranks.size())) {
    std::vector<int> rank_of(graph.host.size(), -1);
    for (int r = 0; r < n_; ++r) rank_of[at(graph.ranks[at(r)])] = r;
    left_.resize(at(n_) * at(n_));
    for (const TreeGraph::Edge& edge : graph.edges) {
      const int from = rank_of[at(edge.from)], to = rank_of[at(edge.to)];
      ensure(from >= 0 && to >= 0, "trees are packed when all switches are gone");
      left(from, to) += edge.capacity;
    }
    for (int r = 0; r < n_; ++r)
      if (graph.wanted[at(r)] > 0) batches_.push_back(Batch(r, graph.wanted[at(r)], n_));
  }

  std::vector<PackedTree> run() {
    for (int depth = 0; depth < n_; ++depth)
      for (std::vector<Growth> some = growths(depth); !some.empty(); some = growths(depth)) grow(some);
    std::vector<PackedTree> trees;
    for (const Batch& batch : batches_) {
      ensure(batch.reached == n_, "a graph in which all trees fit has a tree for each");
      trees.push_back({batch.root, batch.copies, batch.parent});
    }
    std::stable_sort(trees.begin(), trees.end(), [](const auto& a, const auto& b) { return a.root < b.root; });
    return trees;
  }

 private:
  struct Batch {
    int root = 0;
    std::int64_t copies = 0;
    std::vector<int> parent;  // [rank]
    std::vector<int> depth;   // [rank] -1: not in it
    int reached = 1;
    std::set<std::pair<int, int>> refused;  // edges that no tree of it may take any more

    Batch(int r, std::int64_t m, int n) : root(r), copies(m), parent(at(n), -1), depth(at(n), -1) { depth[at(r)] = 0; }
  };
  struct Growth {
    std::size_t batch = 0;
    int from = 0, to = 0;
  };
  struct Grown {
    Growth growth;
    std::int64_t amount = 0;
    bool split = false;  // the others became the last batch
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::int64_t& left(int from, int to) { return left_[at(from) * at(n_) + at(to)]; }
  bool may(const Growth& g) {
    const Batch& batch = batches_[g.batch];
    return batch.depth[at(g.from)] >= 0 && batch.depth[at(g.to)] < 0 && left(g.from, g.to) > 0 &&
           !batch.refused.contains({g.from, g.to});
  }

  /// For each batch an edge to each rank that is not in it, from a rank at this depth or nearer to the root. The
  /// batches take turns; seen from their roots they take ranks in the same order, so that none comes first everywhere.
  std::vector<Growth> growths(int depth) {
    std::vector<Growth> found;
    for (int step = 1; step < n_; ++step)
      for (std::size_t b = 0; b < batches_.size(); ++b) {
        if (batches_[b].reached == n_) continue;
        const int to = (batches_[b].root + step) % n_;
        Growth best{b, -1, to};
        for (int i = 0; i < n_; ++i) {
          const Growth g{b, (to + i) % n_, to};
          if (batches_[b].depth[at(g.from)] > depth || !may(g)) continue;
          if (best.from < 0 || better(g, best)) best = g;
        }
        if (best.from >= 0) found.push_back(best);
      }
    return found;
  }
  bool better(const Growth& a, const Growth& b) {
    const std::vector<int>& depth = batches_[a.batch].depth;
    if (depth[at(a.from)] != depth[at(b.from)]) return depth[at(a.from)] < depth[at(b.from)];
    return left(a.from, a.to) > left(b.from, b.to);
  }

  void grow(std::span<const Growth> some) {
    if (static_cast<int>(some.size()) <= std::max(1, n_ / 2)) {
      for (const Growth& each : some) grow_exactly(each);
      return;
    }
    std::vector<Grown> done;
    for (const Growth& each : some)
      if (may(each)) done.push_back(take(each, std::min(batches_[each.batch].copies, left(each.from, each.to))));
    if (done.empty() || still_fit()) return;
    for (; !done.empty(); done.pop_back()) undo(done.back());
    grow(some.first(some.size() / 2));
    grow(some.subspan(some.size() / 2));
  }

  void grow_exactly(const Growth& growth) {
    if (!may(growth)) return;
    const std::int64_t most = std::min(batches_[growth.batch].copies, left(growth.from, growth.to));
    const std::int64_t amount = spare(growth, most);
    if (amount > 0) take(growth, amount);
    if (amount < most) refuse(growth, amount);
  }
  /// Neither this batch nor, if it was split, the others may take more of the edge.
  void refuse(const Growth& growth, std::int64_t amount) {
    batches_[amount > 0 ? batches_.size() - 1 : growth.batch].refused.insert({growth.from, growth.to});
  }

  Grown take(const Growth& growth, std::int64_t amount) {
    Grown grown{growth, amount, amount < batches_[growth.batch].copies};
    if (grown.split) {
      batches_.push_back(batches_[growth.batch]);
      batches_.back().copies -= amount;
    }
    Batch& batch = batches_[growth.batch];
    batch.copies = amount;
    batch.parent[at(growth.to)] = growth.from;
    batch.depth[at(growth.to)] = batch.depth[at(growth.from)] + 1;
    ++batch.reached;
    left(growth.from, growth.to) -= amount;
    return grown;
  }
  void undo(const Grown& grown) {
    Batch& batch = batches_[grown.growth.batch];
    batch.parent[at(grown.growth.to)] = -1;
    batch.depth[at(grown.growth.to)] = -1;
    --batch.reached;
    left(grown.growth.from, grown.growth.to) += grown.amount;
    if (!grown.split) return;
    batch.copies += batches_.back().copies;
    batches_.pop_back();
  }

  FlowGraph edges_left() {
    FlowGraph flows(n_);
    for (int x = 0; x < n_; ++x)
      for (int y = 0; y < n_; ++y)
        if (left(x, y) > 0) flows.add_edge(x, y, left(x, y));
    return flows;
  }
  /// Joins a vertex to all batches that are not complete, but for one, and returns how many trees they are.
  std::int64_t feed(FlowGraph& flows, int from, std::size_t but) const {
    std::int64_t all = 0;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
      const Batch& batch = batches_[b];
      if (batch.reached == n_ || b == but) continue;
      all += batch.copies;
      const int vertex = flows.add_vertex();
      flows.add_edge(from, vertex, batch.copies);
      for (int r = 0; r < n_; ++r)
        if (batch.depth[at(r)] >= 0) flows.add_edge(vertex, r, FlowGraph::unlimited);
    }
    return all;
  }

  /// True if all batches can still be completed.
  bool still_fit() {
    FlowGraph flows = edges_left();
    const int source = flows.add_vertex();
    const std::int64_t all = feed(flows, source, batches_.size());
    for (int i = 0; i < n_; ++i) {
      const int rank = (suspect_ + i) % n_;
      if (breath_) breath_();
      if (all == 0 || flows.max_flow(source, rank, all) == all) continue;
      suspect_ = rank;
      return false;
    }
    return true;
  }
  std::int64_t spare(const Growth& growth, std::int64_t most) {
    if (breath_) breath_();
    FlowGraph flows = edges_left();
    const std::int64_t others = feed(flows, growth.from, growth.batch);
    return std::clamp<std::int64_t>(flows.max_flow(growth.from, growth.to, others + most) - others, 0, most);
  }

  Breath breath_;
  int n_;
  std::vector<std::int64_t> left_;  // [from * n + to]
  std::vector<Batch> batches_;
  int suspect_ = 0;
};

}  // namespace

std::vector<PackedTree> pack_trees(const TreeGraph& graph, const Breath& breath) {
  return TreePacker(graph, breath).run();
}

}  // namespace ringsim
