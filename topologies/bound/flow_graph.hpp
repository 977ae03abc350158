// Maximum flows and minimum cuts in whole numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace ringsim {

/// A directed graph with whole capacities that can be changed between flows.
///
/// Dinic's algorithm, which stops as soon as the flow reaches the amount asked for. Bounds and trees ask thousands of
/// times "is the flow at least F?", mostly with the answer yes; Boost.Graph's push_relabel_max_flow always finds the
/// maximum, and took 8 times as long for all flows of the bound of 32 DGX A100. The tests compare it with Boost's.
/// Source: Dinic, Soviet Math. Doklady 11 (1970).
class FlowGraph {
 public:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  explicit FlowGraph(int n_vertices = 0);

  int n_vertices() const { return static_cast<int>(first_.size()); }
  int add_vertex();
  /// Returns the edge's number. Requires capacity >= 0; `unlimited` is never full.
  int add_edge(int from, int to, std::int64_t capacity);
  std::int64_t capacity(int edge) const { return capacity_[static_cast<std::size_t>(edge)]; }
  void set_capacity(int edge, std::int64_t capacity);

  /// The maximum flow, or `most` if it is more. Requires from != to and a result that fits into 64 bits.
  std::int64_t max_flow(int from, int to, std::int64_t most = unlimited);
  /// After a max_flow() below its `most`: the vertices of the smallest sink side of a minimum cut, [vertex].
  std::vector<bool> sink_side() const;

 private:
  struct Arc {
    int to = 0;
    int twin = 0;               ///< the arc back
    int next = -1;              ///< of the same vertex
    std::int64_t residual = 0;  ///< what can still be sent
  };

  void restore();
  bool find_levels(int from, int to);
  std::int64_t augment(int from, int to, std::int64_t most);

  std::vector<int> first_;              // [vertex] its first arc, or -1
  std::vector<Arc> arcs_;               // edge e: arcs 2e and, back, 2e + 1
  std::vector<std::int64_t> capacity_;  // [edge]
  std::vector<int> level_, current_, queue_;
  std::vector<int> path_;  // arcs of the path that is being extended
  int sink_ = -1;
};

}  // namespace ringsim
