// Machines as bare graphs, with capacities that can be checked by hand: the rows of the table of optima.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "topologies/catalog.hpp"

namespace ringsim::test {

/// Cables given in GB/s, as a `graph` topology.
class BareGraph {
 public:
  BareGraph& gpus(int n, const std::string& prefix = "gpu") {
    for (int g = 0; g < n; ++g) graph_.nodes.push_back({fmt::format("{}{}", prefix, g), NodeKind::gpu});
    return *this;
  }
  BareGraph& add_switch(const std::string& name) {
    graph_.nodes.push_back({name, NodeKind::network_switch});
    return *this;
  }
  BareGraph& cable(const std::string& from, const std::string& to, double GBps, bool one_way = false) {
    graph_.links.push_back({.from = from, .to = to, .link = link(GBps), .one_way = one_way});
    return *this;
  }
  BareGraph& half_duplex(const std::string& from, const std::string& to, double GBps) {
    cable(from, to, GBps);
    graph_.links.back().link.duplex = Duplex::half;
    return *this;
  }
  Graph graph() const { return graph_; }
  Topology build() const { return ringsim::build(graph_); }
  /// The graph as a scenario's "topology".
  std::string json() const {
    std::string nodes, links;
    for (const Graph::NodeSpec& node : graph_.nodes)
      nodes += fmt::format(R"({}{{"name": "{}", "kind": "{}"}})", nodes.empty() ? "" : ", ", node.name,
                           node.kind == NodeKind::gpu ? "gpu" : "switch");
    for (const Graph::Cable& each : graph_.links)
      links += fmt::format(R"({}{{"from": "{}", "to": "{}", "bandwidth": "{} B/s", "latency": "{} ps"{}{}}})",
                           links.empty() ? "" : ", ", each.from, each.to, each.link.bandwidth.bytes_per_second,
                           each.link.latency.count(), each.one_way ? R"(, "one_way": true)" : "",
                           each.link.duplex == Duplex::half ? R"(, "duplex": "half")" : "");
    return fmt::format(R"({{"kind": "graph", "nodes": [{}], "links": [{}]}})", nodes, links);
  }
  Picoseconds latency{0};

 private:
  LinkSpec link(double GBps) const {
    return {.bandwidth = {static_cast<std::int64_t>(GBps * 1e9)}, .latency = latency, .source = "test"};
  }
  Graph graph_;
};

inline BareGraph bare_star(int ranks, double GBps) {
  BareGraph g;
  g.gpus(ranks).add_switch("switch0");
  for (int r = 0; r < ranks; ++r) g.cable(fmt::format("gpu{}", r), "switch0", GBps);
  return g;
}

inline BareGraph bare_ring(int ranks, double GBps, bool one_way) {
  BareGraph g;
  g.gpus(ranks);
  for (int r = 0; r < ranks; ++r)
    g.cable(fmt::format("gpu{}", r), fmt::format("gpu{}", (r + 1) % ranks), GBps, one_way);
  return g;
}

inline BareGraph bare_grid(int rows, int columns, bool closed, double GBps = 1) {
  BareGraph g;
  g.gpus(rows * columns);
  const auto name = [&](int r, int c) { return fmt::format("gpu{}", r % rows * columns + c % columns); };
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      if (closed || c + 1 < columns) g.cable(name(r, c), name(r, c + 1), GBps);
      if (closed || r + 1 < rows) g.cable(name(r, c), name(r + 1, c), GBps);
    }
  }
  return g;
}

inline BareGraph bare_hypercube(int dimensions, double GBps = 1) {
  BareGraph g;
  g.gpus(1 << dimensions);
  for (int v = 0; v < 1 << dimensions; ++v)
    for (int d = 0; d < dimensions; ++d)
      if ((v & 1 << d) == 0) g.cable(fmt::format("gpu{}", v), fmt::format("gpu{}", v | 1 << d), GBps);
  return g;
}

/// The hybrid cube mesh of eight V100, six links of 25 GB/s at each.
inline BareGraph bare_dgx1v() {
  BareGraph g;
  g.gpus(8);
  const std::vector<std::vector<int>> links{{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                                            {1, 5, 2}, {2, 3, 2}, {2, 6, 1}, {3, 7, 1}, {4, 5, 1}, {4, 6, 1},
                                            {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 2}};
  for (const auto& l : links) g.cable(fmt::format("gpu{}", l[0]), fmt::format("gpu{}", l[1]), 25 * l[2]);
  return g;
}

/// Boxes of eight GPUs at an NVSwitch; GPU g of each also at rail g % rails. One box has no rails.
inline BareGraph bare_boxes(int boxes, double nvlink, double nic, int rails) {
  BareGraph g;
  g.gpus(8 * boxes);
  for (int r = 0; r < rails && boxes > 1; ++r) g.add_switch(fmt::format("rail{}", r));
  for (int b = 0; b < boxes; ++b) {
    g.add_switch(fmt::format("nvswitch{}", b));
    for (int l = 0; l < 8; ++l) {
      g.cable(fmt::format("gpu{}", 8 * b + l), fmt::format("nvswitch{}", b), nvlink);
      if (boxes > 1) g.cable(fmt::format("gpu{}", 8 * b + l), fmt::format("rail{}", l % rails), nic);
    }
  }
  return g;
}

inline BareGraph bare_leaf_spine(int leaves, int gpus, double port, double uplink) {
  BareGraph g;
  g.gpus(leaves * gpus).add_switch("spine0");
  for (int l = 0; l < leaves; ++l) {
    g.add_switch(fmt::format("leaf{}", l));
    g.cable(fmt::format("leaf{}", l), "spine0", uplink);
    for (int i = 0; i < gpus; ++i) g.cable(fmt::format("gpu{}", l * gpus + i), fmt::format("leaf{}", l), port);
  }
  return g;
}

/// A machine whose all-gather's optimum is known, to all digits of its table.
struct KnownOptimum {
  const char* name;
  BareGraph graph;
  const char* inverse_rate;  ///< 1/x*, seconds per GB of a rank's block
  const char* algbw;         ///< N x*, GB/s
  const char* busbw;         ///< (N - 1) x*, GB/s
};

/// Sources: ForestColl (arXiv 2402.06787) for the two DGX A100; the others by hand and by an implementation apart,
/// which agrees with ForestColl's tool and with a search of all cuts.
inline std::vector<KnownOptimum> known_optima() {
  return {
      {"star, 8 x 100", bare_star(8, 100), "7/100", "114.2857", "100"},
      {"ring of 8, one way", bare_ring(8, 1, true), "7", "1.142857", "1"},
      {"ring of 8, both ways", bare_ring(8, 1, false), "7/2", "2.285714", "2"},
      {"hypercube 8", bare_hypercube(3), "7/3", "3.428571", "3"},
      {"torus 4x4", bare_grid(4, 4, true), "15/4", "4.266667", "4"},
      {"mesh 3x3", bare_grid(3, 3, false), "4", "2.25", "2"},
      {"mesh 4x4", bare_grid(4, 4, false), "15/2", "2.133333", "2"},
      {"DGX-1 V100", bare_dgx1v(), "7/150", "171.4286", "150"},
      {"DGX A100 x1", bare_boxes(1, 300, 25, 2), "7/300", "342.8571", "300"},
      {"DGX A100 x2", bare_boxes(2, 300, 25, 2), "3/65", "346.6667", "325"},
      {"DGX A100 x4", bare_boxes(4, 300, 25, 2), "3/25", "266.6667", "258.3333"},
      {"HGX H100 x2", bare_boxes(2, 450, 50, 8), "3/100", "533.3333", "500"},
      {"HGX H100 x4", bare_boxes(4, 450, 50, 8), "31/500", "516.1290", "500"},
      {"HGX H100 x8", bare_boxes(8, 450, 50, 8), "7/50", "457.1429", "450"},
      {"HGX H100 x16", bare_boxes(16, 450, 50, 8), "3/10", "426.6667", "423.3"},
      {"HGX H100 x32", bare_boxes(32, 450, 50, 8), "31/50", "412.9032", "411.3"},
      {"leaf-spine 2x8", bare_leaf_spine(2, 8, 100, 200), "3/20", "106.6667", "100"},
      {"leaf-spine 4x8", bare_leaf_spine(4, 8, 100, 200), "31/100", "103.2258", "100"},
  };
}

/// The number, with as many decimals as `like` has.
inline std::string digits_as(double number, const std::string& like) {
  const std::size_t point = like.find('.');
  return fmt::format("{:.{}f}", number, point == std::string::npos ? 0 : like.size() - point - 1);
}

}  // namespace ringsim::test
