// The graph in which broadcast trees are packed: ranks, switches until they are removed, and how many trees fit where.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "topologies/bound/fraction.hpp"
#include "topologies/bound/wires.hpp"

namespace ringsim {

/// Asked between maximum flows; may throw to end a long search.
using Breath = std::function<void()>;

/// Wires in which trees can be packed: every switch lets out as much as comes in.
///
/// A half-duplex cable becomes two directions with half its capacity each, all capacities then being twice as many
/// half units. A switch that gets more than it can send on, or the reverse, loses the surplus: first where a link is
/// wider than the one back, then of its widest links. What is lost is capacity that no tree could use, unless another
/// choice would have left more: the rate of the result says how much it costs.
struct TreeWires {
  Wires wires;                ///< no media; balanced
  std::vector<int> original;  ///< [edge] the edge of the given wires, or -1: a direction of medium `medium[edge]`
  std::vector<int> medium;    ///< [edge] or -1
  bool doubled = false;       ///< capacities are in half units
};
TreeWires tree_wires(const Wires& wires);

/// Ranks, switches and edges that carry whole numbers of trees.
struct TreeGraph {
  struct Edge {
    int from = 0, to = 0;
    std::int64_t capacity = 0;  ///< trees
    std::vector<int> way;       ///< the edges of the wires that it crosses, in order
  };
  std::vector<int> ranks;                          ///< [rank] its vertex, each another
  std::vector<std::int64_t> wanted;                ///< [rank] trees that start there
  std::vector<std::optional<std::uint32_t>> host;  ///< [vertex]
  std::vector<Edge> edges;

  int n_vertices() const { return static_cast<int>(host.size()); }
  std::int64_t n_trees() const;  ///< all that start anywhere
};

/// The wires with capacities times `scale`, rounded down and balanced again, for `k` trees from each rank that `roots`
/// names (empty: all). Throws InputError (without a place) if two ranks share a device.
TreeGraph tree_graph(const Wires& wires, const std::vector<int>& roots, std::int64_t k, const Fraction& scale);

/// Tells if all trees can reach every rank: from a source that feeds each root with its trees, all of them flow to each
/// rank at once (Edmonds). One graph after the other, each asked first for the rank at which the last one failed.
class TreesFit {
 public:
  explicit TreesFit(Breath breath = {}) : breath_(std::move(breath)) {}
  bool operator()(const TreeGraph& graph);

 private:
  Breath breath_;
  std::size_t suspect_ = 0;
};

/// How many trees a root has, and how fast they are.
struct TreeRate {
  std::int64_t k = 0;     ///< trees from each root
  Fraction scale;         ///< trees for each unit of capacity: an edge of capacity b carries floor(scale * b)
  Fraction inverse_rate;  ///< scale / k: the time for a root's block, in units of capacity
};
/// The optimum with the fewest trees. `inverse_rate`: gather_limit() or broadcast_limit() of these wires, p/q: with g =
/// gcd(q, all capacities) there are q/g trees from each root, and the scale is p/g.
TreeRate best_tree_rate(const Wires& wires, const Fraction& inverse_rate);
/// The best of exactly k trees: the smallest scale with which they fit. `optimum`: the best inverse rate of any k.
TreeRate tree_rate_of(const Wires& wires, const std::vector<int>& roots, std::int64_t k, const Fraction& optimum,
                      TreesFit& fit);

}  // namespace ringsim
