#include "topologies/bound/wires.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

class Builder {
 public:
  Builder(const Topology& topology, const std::vector<bool>& used, const std::vector<Bandwidth>& rates)
      : topology_(topology), used_(used), rates_(rates), vertex_(topology.n_nodes(), -1) {}

  Wires build(std::span<const NodeId> ranks) {
    for (const NodeId rank : ranks) {
      out_.ranks.push_back(vertex_of(rank));
      ++out_.vertices[static_cast<std::size_t>(out_.ranks.back())].ranks;
    }
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l)
      if (used_.empty() || used_[l]) add(LinkId{l});
    std::int64_t unit = 0;
    for (const Wires::Edge& edge : out_.edges) unit = std::gcd(unit, edge.capacity);
    if (unit == 0) return std::move(out_);  // no link counts
    out_.unit = unit;
    for (Wires::Edge& edge : out_.edges) edge.capacity /= unit;
    for (Wires::Medium& medium : out_.media) medium.capacity /= unit;
    return std::move(out_);
  }

 private:
  int new_vertex(const Wires::Vertex& vertex) {
    out_.vertices.push_back(vertex);
    return static_cast<int>(out_.vertices.size()) - 1;
  }
  int vertex_of(NodeId node) {
    int& vertex = vertex_[node.value];
    if (vertex < 0) vertex = new_vertex({.node = node, .host = topology_.node(node).host});
    return vertex;
  }

  void add(LinkId id) {
    const Link& link = topology_.link(id);
    const int from = vertex_of(link.from), to = vertex_of(link.to);
    const std::int64_t rate = (rates_.empty() ? link.bandwidth : rates_[id.value]).bytes_per_second;
    if (!topology_.resource(link.resource).shared) {
      out_.edges.push_back({from, to, rate, id});
      return;
    }
    const auto [found, is_new] = media_.try_emplace(link.resource);
    auto& [in, out] = found->second;
    if (is_new) {
      const auto host = topology_.node(link.from).host;
      in = new_vertex({.host = host});
      out = new_vertex({.host = host});
      out_.edges.push_back({in, out, rate, id});
      out_.media.push_back({from, to, in, out, rate, id});
    }
    out_.edges.push_back({from, in, rate});
    out_.edges.push_back({out, to, rate});
  }

  const Topology& topology_;
  const std::vector<bool>& used_;
  const std::vector<Bandwidth>& rates_;
  std::vector<int> vertex_;                          // [node]
  std::map<ResourceId, std::pair<int, int>> media_;  // if both directions go in, and come out
  Wires out_;
};

}  // namespace

Wires wires_of(const Topology& topology, std::span<const NodeId> ranks, const std::vector<bool>& used,
               const std::vector<Bandwidth>& rates) {
  return Builder(topology, used, rates).build(ranks);
}

Wires reversed(const Wires& wires) {
  Wires back = wires;
  for (Wires::Edge& edge : back.edges) std::swap(edge.from, edge.to);
  for (Wires::Medium& medium : back.media) std::swap(medium.in, medium.out);
  return back;
}

FlowGraph flow_graph(const Wires& wires, std::int64_t factor) {
  FlowGraph graph(static_cast<int>(wires.vertices.size()));
  for (const Wires::Edge& edge : wires.edges) {
    std::int64_t capacity = 0;
    if (__builtin_mul_overflow(edge.capacity, factor, &capacity)) fail_too_large("the capacity of a topology's links");
    graph.add_edge(edge.from, edge.to, capacity);
  }
  return graph;
}

namespace {

/// Calls visit(capacity, link) for all that leaves the sets.
template <class Visit>
void for_each_leaving(const Wires& wires, const std::vector<std::vector<bool>>& sets, Visit visit) {
  constexpr int none = -1, of_medium = -2;
  std::vector<int> set_of(wires.vertices.size(), none);
  for (std::size_t s = 0; s < sets.size(); ++s)
    for (std::size_t v = 0; v < sets[s].size(); ++v)
      if (sets[s][v]) set_of[v] = static_cast<int>(s);
  for (const Wires::Medium& medium : wires.media)
    set_of[static_cast<std::size_t>(medium.in)] = set_of[static_cast<std::size_t>(medium.out)] = of_medium;
  for (const Wires::Edge& edge : wires.edges) {
    const int from = set_of[static_cast<std::size_t>(edge.from)], to = set_of[static_cast<std::size_t>(edge.to)];
    if (from >= 0 && to != of_medium && from != to) visit(edge.capacity, edge.link);
  }
  for (const Wires::Medium& medium : wires.media)
    if (set_of[static_cast<std::size_t>(medium.a)] != set_of[static_cast<std::size_t>(medium.b)])
      visit(medium.capacity, medium.link);
}

}  // namespace

std::int64_t leaving(const Wires& wires, const std::vector<std::vector<bool>>& sets) {
  std::int64_t sum = 0;
  for_each_leaving(wires, sets, [&](std::int64_t capacity, LinkId) {
    if (__builtin_add_overflow(sum, capacity, &sum)) fail_too_large("the capacity of a cut");
  });
  return sum;
}

std::vector<LinkId> links_leaving(const Wires& wires, const std::vector<std::vector<bool>>& sets) {
  std::vector<LinkId> links;
  for_each_leaving(wires, sets, [&](std::int64_t, LinkId link) { links.push_back(link); });
  std::sort(links.begin(), links.end());
  return links;
}

bool is_balanced(const Wires& wires) {
  if (!wires.media.empty()) return false;
  std::vector<std::int64_t> surplus(wires.vertices.size());
  for (const Wires::Edge& edge : wires.edges) {
    surplus[static_cast<std::size_t>(edge.from)] -= edge.capacity;
    surplus[static_cast<std::size_t>(edge.to)] += edge.capacity;
  }
  for (std::size_t v = 0; v < surplus.size(); ++v)
    if (wires.vertices[v].ranks == 0 && surplus[v] != 0) return false;
  return true;
}

}  // namespace ringsim
