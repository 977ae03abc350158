#include "topologies/synthesis/tree_graph.hpp"

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "topologies/bound/flow_graph.hpp"

namespace ringsim {

namespace {

std::size_t nth(int i) { return static_cast<std::size_t>(i); }

/// What can be cut from the edges of one side of a switch, in the order in which it is.
class Surplus {
 public:
  explicit Surplus(Wires& wires) : wires_(wires), in_(wires.vertices.size()), out_(wires.vertices.size()) {
    for (std::size_t e = 0; e < wires.edges.size(); ++e) {
      out_[nth(wires.edges[e].from)].push_back(e);
      in_[nth(wires.edges[e].to)].push_back(e);
    }
  }

  void remove() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t v = 0; v < in_.size(); ++v) {
        if (wires_.vertices[v].ranks > 0) continue;
        const std::int64_t more = sum(in_[v]) - sum(out_[v]);
        if (more > 0) cut(in_[v], more);
        if (more < 0) cut(out_[v], -more);
        changed = changed || more != 0;
      }
    }
  }

 private:
  std::int64_t sum(const std::vector<std::size_t>& edges) const {
    std::int64_t total = 0;
    for (const std::size_t e : edges)
      if (__builtin_add_overflow(total, wires_.edges[e].capacity, &total)) fail_too_large("the capacity of a switch");
    return total;
  }
  std::int64_t back_of(const Wires::Edge& edge) const {
    std::int64_t total = 0;
    for (const std::size_t e : out_[nth(edge.to)])
      if (wires_.edges[e].to == edge.from) total += wires_.edges[e].capacity;
    return total;
  }
  void cut(std::vector<std::size_t> edges, std::int64_t amount) {
    std::stable_sort(edges.begin(), edges.end(),
                     [&](std::size_t a, std::size_t b) { return wires_.edges[a].capacity > wires_.edges[b].capacity; });
    for (const std::size_t e : edges) {
      Wires::Edge& edge = wires_.edges[e];
      const std::int64_t less =
          std::min({amount, edge.capacity, std::max<std::int64_t>(0, edge.capacity - back_of(edge))});
      edge.capacity -= less;
      amount -= less;
    }
    for (const std::size_t e : edges) {
      const std::int64_t less = std::min(amount, wires_.edges[e].capacity);
      wires_.edges[e].capacity -= less;
      amount -= less;
    }
  }

  Wires& wires_;
  std::vector<std::vector<std::size_t>> in_, out_;  // [vertex] edges
};

/// floor(a * b), refused beyond 64 bits.
std::int64_t scaled(std::int64_t a, const Fraction& b) {
  const boost::multiprecision::cpp_int product = boost::multiprecision::cpp_int(a) * b.over / b.under;
  if (product > std::numeric_limits<std::int64_t>::max() / 4) fail_too_large("the number of trees over a link");
  return static_cast<std::int64_t>(product);
}

}  // namespace

TreeWires tree_wires(const Wires& wires) {
  TreeWires out{.wires = wires, .original = {}, .medium = {}, .doubled = !wires.media.empty()};
  out.wires.edges.clear();
  out.wires.media.clear();
  std::vector<bool> of_medium(wires.vertices.size());
  for (const Wires::Medium& medium : wires.media) of_medium[nth(medium.in)] = of_medium[nth(medium.out)] = true;
  const auto add = [&](Wires::Edge edge, int original, int medium) {
    out.wires.edges.push_back(edge);
    out.original.push_back(original);
    out.medium.push_back(medium);
  };
  for (std::size_t e = 0; e < wires.edges.size(); ++e) {
    Wires::Edge edge = wires.edges[e];
    if (of_medium[nth(edge.from)] || of_medium[nth(edge.to)]) continue;
    if (out.doubled && __builtin_mul_overflow(edge.capacity, 2, &edge.capacity))
      fail_too_large("the capacity of a topology's links");
    add(edge, static_cast<int>(e), -1);
  }
  for (std::size_t m = 0; m < wires.media.size(); ++m) {
    const Wires::Medium& medium = wires.media[m];
    add({medium.a, medium.b, medium.capacity, medium.link}, -1, static_cast<int>(m));
    add({medium.b, medium.a, medium.capacity, medium.link}, -1, static_cast<int>(m));
  }
  Surplus(out.wires).remove();
  return out;
}

std::int64_t TreeGraph::n_trees() const { return std::accumulate(wanted.begin(), wanted.end(), std::int64_t{0}); }

TreeGraph tree_graph(const Wires& wires, const std::vector<int>& roots, std::int64_t k, const Fraction& scale) {
  TreeGraph graph;
  graph.ranks = wires.ranks;
  if (std::set<int>(graph.ranks.begin(), graph.ranks.end()).size() != graph.ranks.size())
    throw InputError("", "trees need one GPU for each rank, found two ranks on one");
  graph.wanted.assign(graph.ranks.size(), roots.empty() ? k : 0);
  for (const int root : roots) graph.wanted[nth(root)] = k;
  for (const Wires::Vertex& vertex : wires.vertices) graph.host.push_back(vertex.host);
  Wires rounded = wires;
  for (Wires::Edge& edge : rounded.edges) edge.capacity = scaled(edge.capacity, scale);
  Surplus(rounded).remove();
  for (std::size_t e = 0; e < rounded.edges.size(); ++e) {
    const Wires::Edge& edge = rounded.edges[e];
    if (edge.capacity > 0) graph.edges.push_back({edge.from, edge.to, edge.capacity, {static_cast<int>(e)}});
  }
  return graph;
}

bool TreesFit::operator()(const TreeGraph& graph) {
  FlowGraph flows(graph.n_vertices());
  for (const TreeGraph::Edge& edge : graph.edges)
    if (edge.capacity > 0) flows.add_edge(edge.from, edge.to, edge.capacity);
  const int source = flows.add_vertex();
  for (std::size_t r = 0; r < graph.ranks.size(); ++r)
    if (graph.wanted[r] > 0) flows.add_edge(source, graph.ranks[r], graph.wanted[r]);
  const std::int64_t all = graph.n_trees();
  const std::size_t n = graph.ranks.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t rank = (suspect_ + i) % n;
    if (breath_) breath_();
    if (flows.max_flow(source, graph.ranks[rank], all) == all) continue;
    suspect_ = rank;
    return false;
  }
  return true;
}

TreeRate best_tree_rate(const Wires& wires, const Fraction& inverse_rate) {
  std::int64_t common = inverse_rate.under;
  for (const Wires::Edge& edge : wires.edges) common = std::gcd(common, edge.capacity);
  return {.k = inverse_rate.under / common, .scale = fraction(inverse_rate.over, common), .inverse_rate = inverse_rate};
}

TreeRate tree_rate_of(const Wires& wires, const std::vector<int>& roots, std::int64_t k, const Fraction& optimum,
                      TreesFit& fit) {
  const auto fits = [&](const Fraction& scale) { return fit(tree_graph(wires, roots, k, scale)); };
  const Fraction least = optimum * fraction(k, 1);
  if (fits(least)) return {k, least, optimum};
  Fraction most = least * fraction(2, 1);
  while (!fits(most)) most = most * fraction(2, 1);
  // A capacity b takes one tree more at the multiples of 1/b: only there does anything change.
  std::set<std::int64_t> capacities;
  for (const Wires::Edge& edge : wires.edges)
    if (edge.capacity > 0) capacities.insert(edge.capacity);
  for (const std::int64_t b : capacities) {
    std::int64_t low = scaled(b, least), high = scaled(b, most);  // low / b does not fit
    if (!fits(fraction(high, b))) continue;                       // nothing changes at b below `most`
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (fits(fraction(middle, b)) ? high : low) = middle;
    }
    most = std::min(most, fraction(high, b));
  }
  return {k, most, most * fraction(1, k)};
}

}  // namespace ringsim
