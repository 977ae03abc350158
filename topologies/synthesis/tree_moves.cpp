#include "topologies/synthesis/tree_moves.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// Trees one by one, and how many of them each edge carries.
class TreeLoads {
 public:
  TreeLoads(const std::vector<PackedTree>& trees, const std::vector<std::vector<int>>& ways, const Wires& wires,
            const TreeRate& rate)
      : ways_(ways), n_(trees.front().parent.size()), load_(wires.edges.size()) {
    for (const Wires::Edge& edge : wires.edges) {
      const Fraction trees_over = fraction(edge.capacity, 1) * rate.scale;
      should_.push_back(as_double(trees_over));
      room_.push_back(trees_over.over / trees_over.under);
    }
    for (const PackedTree& tree : trees) {
      for (std::int64_t copy = 0; copy < tree.copies; ++copy) trees_.push_back({tree.root, 1, tree.parent});
      for (std::size_t r = 0; r < n_; ++r)
        if (tree.parent[r] >= 0)
          for (const int edge : way(tree.parent[r], r)) load_[index(edge)] += tree.copies;
    }
  }

  /// One move; false if none lowers the excess.
  bool improve() {
    std::optional<TreeMove> best;
    for (std::size_t t = 0; t < trees_.size(); ++t)
      for (std::size_t r = 0; r < n_; ++r)
        if (trees_[t].parent[r] >= 0 && is_crowded(way(trees_[t].parent[r], r))) look_at(t, r, best);
    if (!best) return false;
    int& parent = trees_[best->tree].parent[best->rank];
    shift(way(parent, best->rank), -1);
    parent = best->parent;
    shift(way(parent, best->rank), 1);
    return true;
  }

  double worst() const {
    double most = 0;
    for (std::size_t e = 0; e < load_.size(); ++e)
      if (load_[e] > 0) most = std::max(most, static_cast<double>(load_[e]) / should_[e]);
    return most;
  }
  std::vector<PackedTree> take() { return std::move(trees_); }

 private:
  struct TreeMove {
    std::size_t tree = 0, rank = 0;
    int parent = 0;
    std::int64_t less = 0;  // excess
    int depth = 0;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const std::vector<int>& way(int from, std::size_t to) const { return ways_[index(from) * n_ + to]; }
  void shift(const std::vector<int>& edges, std::int64_t by) {
    for (const int edge : edges) load_[index(edge)] += by;
  }
  bool is_crowded(const std::vector<int>& edges) const {
    return std::any_of(edges.begin(), edges.end(), [&](int e) { return load_[index(e)] > room_[index(e)]; });
  }
  std::int64_t excess(const std::vector<int>& edges) const {
    std::int64_t sum = 0;
    for (const int e : edges) sum += std::max<std::int64_t>(0, load_[index(e)] - room_[index(e)]);
    return sum;
  }
  /// How deep a rank lies; -1 if it is below `above`, or that itself.
  int depth_outside(const std::vector<int>& parent, int rank, std::size_t above) const {
    int depth = 0;
    for (; index(rank) != above; rank = parent[index(rank)], ++depth)
      if (parent[index(rank)] < 0) return depth;
    return -1;
  }

  void look_at(std::size_t t, std::size_t r, std::optional<TreeMove>& best) {
    const std::vector<int>& parent = trees_[t].parent;
    const std::vector<int>& old = way(parent[r], r);
    const std::int64_t before = excess(old);
    shift(old, -1);
    const std::int64_t gain = before - excess(old);
    for (std::size_t u = 0; u < n_; ++u) {
      const std::vector<int>& other = way(static_cast<int>(u), r);
      if (other.empty() || static_cast<int>(u) == parent[r]) continue;
      const int depth = depth_outside(parent, static_cast<int>(u), r);
      if (depth < 0) continue;
      const std::int64_t had = excess(other);
      shift(other, 1);
      const std::int64_t less = gain - (excess(other) - had);
      shift(other, -1);
      if (less <= 0 || (best && (less < best->less || (less == best->less && depth >= best->depth)))) continue;
      best = {t, r, static_cast<int>(u), less, depth};
    }
    shift(old, 1);
  }

  const std::vector<std::vector<int>>& ways_;
  std::size_t n_;
  std::vector<PackedTree> trees_;
  std::vector<std::int64_t> load_, room_;  // [edge]
  std::vector<double> should_;             // [edge]
};

}  // namespace

double follow_ways(std::vector<PackedTree>& trees, const std::vector<std::vector<int>>& ways, const Wires& wires,
                   const TreeRate& rate) {
  ensure(!trees.empty(), "there are trees to follow ways");
  TreeLoads loads(trees, ways, wires, rate);
  bool moved = false;
  while (loads.improve()) moved = true;
  if (moved) trees = loads.take();
  return TreeLoads(trees, ways, wires, rate).worst();
}

}  // namespace ringsim
