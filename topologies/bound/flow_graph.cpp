#include "topologies/bound/flow_graph.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {
std::size_t index(int i) { return static_cast<std::size_t>(i); }
}  // namespace

FlowGraph::FlowGraph(int n_vertices) : first_(index(n_vertices), -1) {}

int FlowGraph::add_vertex() {
  first_.push_back(-1);
  return n_vertices() - 1;
}

int FlowGraph::add_edge(int from, int to, std::int64_t capacity) {
  ensure(from != to && capacity >= 0, "an edge joins two vertices and has a capacity of at least 0");
  const auto edge = static_cast<int>(capacity_.size());
  capacity_.push_back(capacity);
  arcs_.push_back({to, 2 * edge + 1, first_[index(from)], capacity});
  first_[index(from)] = 2 * edge;
  arcs_.push_back({from, 2 * edge, first_[index(to)], 0});
  first_[index(to)] = 2 * edge + 1;
  return edge;
}

void FlowGraph::set_capacity(int edge, std::int64_t capacity) {
  ensure(capacity >= 0, "a capacity is at least 0");
  capacity_[index(edge)] = capacity;
}

void FlowGraph::restore() {
  for (std::size_t e = 0; e < capacity_.size(); ++e) {
    arcs_[2 * e].residual = capacity_[e];
    arcs_[2 * e + 1].residual = 0;
  }
}

/// Distances to the sink over arcs that are not full. From the sink, because a source that is joined to every GPU
/// would reach all of the graph at once.
bool FlowGraph::find_levels(int from, int to) {
  level_.assign(first_.size(), -1);
  queue_.assign(1, to);
  level_[index(to)] = 0;
  for (std::size_t head = 0; head < queue_.size() && level_[index(from)] < 0; ++head) {
    const int here = queue_[head];
    for (int a = first_[index(here)]; a >= 0; a = arcs_[index(a)].next) {
      const Arc& back = arcs_[index(a)];  // its twin leads from back.to to here
      if (level_[index(back.to)] >= 0 || arcs_[index(back.twin)].residual == 0) continue;
      level_[index(back.to)] = level_[index(here)] + 1;
      queue_.push_back(back.to);
    }
  }
  return level_[index(from)] >= 0;
}

/// Sends along shortest paths until none is left, or `most` is reached.
std::int64_t FlowGraph::augment(int from, int to, std::int64_t most) {
  current_ = first_;
  path_.clear();
  std::int64_t sent = 0;
  int here = from;
  while (sent < most) {
    if (here == to) {
      std::int64_t width = most - sent;
      for (const int a : path_) width = std::min(width, arcs_[index(a)].residual);
      std::size_t keep = path_.size();
      for (std::size_t i = path_.size(); i-- > 0;) {
        Arc& arc = arcs_[index(path_[i])];
        arc.residual -= width;
        arcs_[index(arc.twin)].residual += width;
        if (arc.residual == 0) keep = i;
      }
      sent += width;
      if (keep == path_.size()) continue;  // only `most` ended it
      here = arcs_[index(arcs_[index(path_[keep])].twin)].to;
      path_.resize(keep);
      continue;
    }
    int& a = current_[index(here)];
    while (a >= 0 && (arcs_[index(a)].residual == 0 || level_[index(arcs_[index(a)].to)] != level_[index(here)] - 1))
      a = arcs_[index(a)].next;
    if (a >= 0) {
      path_.push_back(a);
      here = arcs_[index(a)].to;
      continue;
    }
    if (path_.empty()) break;
    level_[index(here)] = -1;  // nothing leads on from here
    here = arcs_[index(arcs_[index(path_.back())].twin)].to;
    path_.pop_back();
  }
  return sent;
}

std::int64_t FlowGraph::max_flow(int from, int to, std::int64_t most) {
  ensure(from != to, "a flow has two ends");
  restore();
  sink_ = to;
  std::int64_t sent = 0;
  while (sent < most && find_levels(from, to)) {
    const std::int64_t more = augment(from, to, most - sent);
    if (__builtin_add_overflow(sent, more, &sent)) fail_too_large("the flow through a topology");
  }
  return sent;
}

std::vector<bool> FlowGraph::sink_side() const {
  std::vector<bool> reaches(first_.size());
  std::vector<int> queue{sink_};
  reaches[index(sink_)] = true;
  while (!queue.empty()) {
    const int here = queue.back();
    queue.pop_back();
    for (int a = first_[index(here)]; a >= 0; a = arcs_[index(a)].next) {
      const Arc& back = arcs_[index(a)];
      if (reaches[index(back.to)] || arcs_[index(back.twin)].residual == 0) continue;
      reaches[index(back.to)] = true;
      queue.push_back(back.to);
    }
  }
  return reaches;
}

}  // namespace ringsim
