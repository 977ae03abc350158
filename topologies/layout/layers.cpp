// Hosts and bare GPUs in a row, what joins them in layers above.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "topologies/layout/layout_draft.hpp"

namespace ringsim::layout {

namespace {

constexpr std::size_t most_equal_hosts = 4, most_kinds_of_hosts = 3, most_kinds_with_marks = 4;
constexpr std::size_t most_gpus = 16, first_gpus = 12;
constexpr std::size_t most_switches = 10, first_switches = 8;
constexpr std::size_t most_layers = 12, first_layers = 8;
constexpr double layer_gap = 96, unit_gap = 40;

/// The devices of a host, and what they are joined to outside.
struct HostOf {
  std::uint32_t host = 0;
  std::vector<NodeId> members;
  std::set<NodeId> outside;
};

std::vector<HostOf> hosts_of(const Plan& plan) {
  std::map<std::uint32_t, HostOf> hosts;
  for (std::uint32_t i = 0; i < plan.topology.n_nodes(); ++i) {
    const auto host = plan.topology.node({i}).host;
    if (!host) continue;
    HostOf& found = hosts[*host];
    found.host = *host;
    found.members.push_back({i});
    for (const NodeId other : plan.neighbors[i])
      if (plan.topology.node(other).host != host) found.outside.insert(other);
  }
  std::vector<HostOf> result;
  for (auto& [number, host] : hosts) result.push_back(std::move(host));
  return result;
}

bool has_mark(const Plan& plan, const std::vector<NodeId>& members) {
  return std::any_of(members.begin(), members.end(), [&](NodeId node) { return plan.marked[node.value]; });
}

/// Chooses a few of equal hosts: first one below switches with marks, then hosts on other switches than the ones
/// before, so that a picture has several leaves.
std::vector<std::size_t> some_of(const Plan& plan, const std::vector<HostOf>& hosts,
                                 const std::vector<std::size_t>& equal) {
  if (equal.size() <= most_equal_hosts) return equal;
  std::vector<std::size_t> chosen;
  std::set<std::set<NodeId>> seen;
  for (const std::size_t i : equal) {
    const std::vector<NodeId> outside(hosts[i].outside.begin(), hosts[i].outside.end());
    if (!has_mark(plan, outside) || chosen.size() + 1 == most_equal_hosts) continue;
    if (seen.insert(hosts[i].outside).second) chosen.push_back(i);
  }
  for (const bool fresh : {true, false})
    for (const std::size_t i : equal) {
      if (chosen.size() == most_equal_hosts) break;
      if (std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
      if (!seen.insert(hosts[i].outside).second && fresh) continue;
      chosen.push_back(i);
    }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

/// Things side by side, with their upper edges at y = 0.
class UnitRow {
 public:
  explicit UnitRow(const Plan& plan) : plan_(plan) {}

  void add_hosts() {
    const std::vector<HostOf> hosts = hosts_of(plan_);
    std::map<std::vector<std::pair<std::string, std::size_t>>, std::vector<std::size_t>> kinds;
    std::vector<std::vector<std::size_t>*> in_order;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      std::vector<std::pair<std::string, std::size_t>> look;
      for (const NodeId node : hosts[i].members)
        look.emplace_back(label_of(plan_.topology, node), plan_.likeness[node.value]);
      std::sort(look.begin(), look.end());
      auto& equal = kinds[look];
      if (equal.empty()) in_order.push_back(&equal);
      equal.push_back(i);
    }
    std::size_t other = 0;
    std::map<bool, std::size_t> n_kinds;  // [whether they have marks]
    for (const auto* equal : in_order) {
      const bool marked = has_mark(plan_, hosts[equal->front()].members);
      if (n_kinds[marked]++ >= (marked ? most_kinds_with_marks : most_kinds_of_hosts)) {
        other += equal->size();
        continue;
      }
      const std::vector<std::size_t> shown = some_of(plan_, hosts, *equal);
      for (const std::size_t i : shown) add(host_of(plan_, hosts[i].host, hosts[i].members));
      if (shown.size() < equal->size()) add_note(more_text(hosts[equal->front()], equal->size() - shown.size()));
    }
    if (other > 0) add_note({fmt::format("... {} more nodes", other), "of other kinds"});
  }

  void add_gpus() {
    std::vector<NodeId> gpus;
    for (std::uint32_t i = 0; i < plan_.topology.n_nodes(); ++i) {
      const Node& node = plan_.topology.node({i});
      if (!node.host && node.kind == NodeKind::gpu) gpus.push_back({i});
    }
    const std::vector<NodeId> shown = gpus.size() > most_gpus ? some_devices(plan_, gpus, first_gpus) : gpus;
    for (const NodeId gpu : shown) {
      Draft one;
      const double width = box_width(plan_.topology, gpu);
      one.place(plan_, gpu, {width / 2, box_height / 2});
      add(one, width);
    }
    if (shown.size() < gpus.size()) add_note(lines_for_more(plan_, gpus, shown.size()));
  }

  Draft draft;
  double width() const { return std::max(right_ - unit_gap, 0.0); }

 private:
  static std::vector<std::string> more_text(const HostOf& like, std::size_t n) {
    return {fmt::format("... {} more node{}", n, n == 1 ? "" : "s"), fmt::format("like node{}", like.host)};
  }

  void add(const Draft& unit) { add(unit, unit.frames.front().box.width); }
  void add(const Draft& unit, double width) {
    draft.add(unit, right_, 0);
    right_ += width + unit_gap;
  }
  void add_note(std::vector<std::string> lines) {
    const Box box = box_of({}, lines);
    draft.note({right_ + box.width / 2, box.height / 2 + 30}, std::move(lines));
    right_ += box.width + unit_gap;
  }

  const Plan& plan_;
  double right_ = 0;
};

/// Switches, and what else belongs to no host, by their distance from hosts and GPUs.
std::vector<std::vector<NodeId>> fabric_of(const Plan& plan) {
  const std::size_t n = plan.neighbors.size();
  std::vector<std::size_t> distance(n, n);
  std::vector<NodeId> reached;
  for (std::uint32_t i = 0; i < n; ++i)
    if (plan.topology.node({i}).host || plan.topology.node({i}).kind == NodeKind::gpu) {
      distance[i] = 0;
      reached.push_back({i});
    }
  std::size_t farthest = 0;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (const NodeId next : plan.neighbors[reached[i].value]) {
      if (distance[next.value] != n) continue;
      distance[next.value] = distance[reached[i].value] + 1;
      farthest = std::max(farthest, distance[next.value]);
      reached.push_back(next);
    }
  std::vector<std::vector<NodeId>> layers(farthest + 1);  // the last one: what nothing reaches
  for (std::uint32_t i = 0; i < n; ++i)
    if (distance[i] > 0) layers[std::min(distance[i] - 1, farthest)].push_back({i});
  std::erase_if(layers, [](const auto& layer) { return layer.empty(); });
  return layers;
}

/// The first of many switches that are joined to what is drawn, if any are.
std::vector<NodeId> shown_of(const Plan& plan, const std::vector<NodeId>& layer, const Draft& draft) {
  if (layer.size() <= most_switches) return layer;
  std::set<NodeId> drawn;
  for (const PlacedNode& placed : draft.nodes) drawn.insert(placed.node);
  const auto joins = [&](NodeId node) {
    const auto& others = plan.neighbors[node.value];
    return std::any_of(others.begin(), others.end(), [&](NodeId other) { return drawn.contains(other); });
  };
  const bool has_joined = std::any_of(layer.begin(), layer.end(), joins);
  std::vector<NodeId> near;
  for (const NodeId node : layer)
    if (joins(node) == has_joined || plan.marked[node.value]) near.push_back(node);
  return some_devices(plan, near, first_switches);
}

/// Above what each is joined to, as far as that tells them apart; else evenly across the width.
std::vector<std::pair<double, NodeId>> ordered(const Plan& plan, const std::vector<NodeId>& shown, double room,
                                               const Draft& draft) {
  std::vector<std::pair<double, NodeId>> order;
  std::vector<bool> joined;
  double left = 1e9, right = -1e9;
  for (const NodeId node : shown) {
    double sum = 0;
    int n = 0;
    for (const NodeId other : plan.neighbors[node.value])
      if (const PlacedNode* below = draft.find(other)) {
        sum += below->box.x;
        ++n;
      }
    joined.push_back(n > 0);
    order.emplace_back(n == 0 ? 0 : sum / n, node);
    if (n == 0) continue;
    left = std::min(left, order.back().first);
    right = std::max(right, order.back().first);
  }
  const bool differ = right - left > room;
  for (std::size_t i = 0; i < order.size(); ++i)
    if (!differ || !joined[i]) order[i].first = differ ? right + room : (static_cast<double>(i) + 0.5) * room;
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return order;
}

/// A layer across the width, with a note at its end.
void add_layer(const Plan& plan, const std::vector<NodeId>& layer, double width, double y, Draft& draft) {
  const std::vector<NodeId> shown = shown_of(plan, layer, draft);
  std::vector<std::string> more;
  if (shown.size() < layer.size()) more = lines_for_more(plan, layer, shown.size());
  const std::size_t n = shown.size() + (more.empty() ? 0 : 1);
  const double room = width / static_cast<double>(n);
  const auto order = ordered(plan, shown, room, draft);
  std::vector<double> wants, widths;
  for (const auto& [want, node] : order) {
    wants.push_back(want);
    widths.push_back(std::max(box_width(plan.topology, node), room * (n == 1 ? 0.9 : 0.6)));
  }
  if (!more.empty()) {
    wants.push_back(width);
    widths.push_back(box_of({}, more).width);
  }
  const std::vector<double> centers = spread(wants, widths, 24);
  for (std::size_t i = 0; i < order.size(); ++i) draft.place(plan, order[i].second, {centers[i], y}, widths[i]);
  if (!more.empty()) draft.note({centers.back(), y}, std::move(more));
}

}  // namespace

Draft layers_of(const Plan& plan) {
  UnitRow row(plan);
  row.add_hosts();
  row.add_gpus();
  Draft draft = std::move(row.draft);
  double y = box_height / 2 - layer_gap;
  const std::vector<std::vector<NodeId>> layers = fabric_of(plan);
  const std::size_t shown = layers.size() > most_layers ? first_layers : layers.size();
  for (std::size_t i = 0; i < shown; ++i, y -= layer_gap)
    add_layer(plan, layers[i], std::max(row.width(), 60.0), y, draft);
  if (shown < layers.size()) {
    std::size_t n = 0;
    for (std::size_t i = shown; i < layers.size(); ++i) n += layers[i].size();
    draft.left_out = fmt::format("{} switch{} in {} layers", n, n == 1 ? "" : "es", layers.size() - shown);
    std::vector<std::string> lines{fmt::format("... {} more switch{}", n, n == 1 ? "" : "es"),
                                   fmt::format("in {} layers", layers.size() - shown)};
    draft.note({std::max(row.width(), 60.0) / 2, y}, std::move(lines));
  }
  return draft;
}

}  // namespace ringsim::layout
