#include "topologies/synthesis/turned_tree.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

std::size_t spot(int i) { return static_cast<std::size_t>(i); }

/// How many messages each class carries, and what that takes.
class ClassTimes {
 public:
  explicit ClassTimes(const TurnedLoads& loads) : loads_(loads), messages_(loads.capacities().size()) {}
  double time_of(int edge_class, std::int64_t messages) const {
    return static_cast<double>(messages) / static_cast<double>(loads_.capacities()[spot(edge_class)]);
  }
  /// The longest that a class takes which this displacement uses, with it.
  double longest_with(int displacement) const {
    double longest = 0;
    for (const TurnedLoads::Load& each : loads_.of(displacement))
      longest = std::max(longest, time_of(each.edge_class, messages_[spot(each.edge_class)] + each.messages));
    return longest;
  }
  double work_of(int displacement) const {
    double sum = 0;
    for (const TurnedLoads::Load& each : loads_.of(displacement)) sum += time_of(each.edge_class, each.messages);
    return sum;
  }
  void add(int displacement) {
    for (const TurnedLoads::Load& each : loads_.of(displacement)) messages_[spot(each.edge_class)] += each.messages;
  }

 private:
  const TurnedLoads& loads_;
  std::vector<std::int64_t> messages_;  // [class]
};

/// The most that an edge carries by its capacity, when the tree is turned to all roots.
double fullest_edge(const Wires& wires, const Symmetry& group, const std::vector<int>& parent, const WayBetween& way) {
  std::map<int, std::int64_t> uses;  // of a displacement, by edges of the tree
  for (int d = 1; d < group.order(); ++d) ++uses[group.subtract(d, parent[spot(d)])];
  std::vector<std::int64_t> carried(wires.edges.size());
  for (const auto& [displacement, times] : uses)
    for (int a = 0; a < group.order(); ++a)
      for (const int edge : way(a, group.add(a, displacement))) carried[spot(edge)] += times;
  double most = 0;
  for (std::size_t e = 0; e < carried.size(); ++e)
    if (carried[e] > 0)
      most = std::max(most, static_cast<double>(carried[e]) / static_cast<double>(wires.edges[e].capacity));
  return most;
}

std::vector<int> depths_of(const std::vector<int>& parent) {
  std::vector<int> depth(parent.size());
  for (std::size_t d = 0; d < parent.size(); ++d)
    for (int at = static_cast<int>(d); parent[spot(at)] >= 0; at = parent[spot(at)]) ++depth[d];
  return depth;
}

}  // namespace

std::optional<TurnedLoads> TurnedLoads::of(const Wires& wires, const Symmetry& group, const WayBetween& way,
                                           const Breath& breath) {
  TurnedLoads made;
  const int n = group.order();
  // Classes are parted, displacement by displacement, by how many messages an edge carries and by its capacity.
  std::vector<int> class_of(wires.edges.size());
  std::map<std::int64_t, int> first;
  for (std::size_t e = 0; e < wires.edges.size(); ++e)
    class_of[e] = first.try_emplace(wires.edges[e].capacity, static_cast<int>(first.size())).first->second;
  int n_classes = static_cast<int>(first.size());
  std::vector<std::vector<std::pair<int, int>>> counts(spot(n));  // [displacement] (edge, messages)
  for (int d = 1; d < n; ++d) {
    if (breath) breath();
    std::vector<int> crossed(wires.edges.size());
    for (int a = 0; a < n; ++a) {
      const std::vector<int> edges = way(a, group.add(a, d));
      if (edges.empty()) return std::nullopt;
      for (const int edge : edges) ++crossed[spot(edge)];
    }
    std::map<std::pair<int, int>, int> parts;
    for (std::size_t e = 0; e < crossed.size(); ++e) {
      if (crossed[e] > 0) counts[spot(d)].emplace_back(static_cast<int>(e), crossed[e]);
      class_of[e] = parts.try_emplace({class_of[e], crossed[e]}, static_cast<int>(parts.size())).first->second;
    }
    n_classes = static_cast<int>(parts.size());
    if (spot(n_classes) > most_classes) return std::nullopt;
  }
  made.capacities_.resize(spot(n_classes));
  for (std::size_t e = 0; e < class_of.size(); ++e) made.capacities_[spot(class_of[e])] = wires.edges[e].capacity;
  made.loads_.resize(spot(n));
  made.ports_.assign(spot(n), -1);
  for (int d = 1; d < n; ++d) {
    made.ports_[spot(d)] = class_of[spot(way(0, d).front())];
    std::map<int, int> of_class;
    for (const auto& [edge, messages] : counts[spot(d)]) of_class[class_of[spot(edge)]] = messages;
    for (const auto& [edge_class, messages] : of_class) made.loads_[spot(d)].push_back({edge_class, messages});
  }
  return made;
}

TurnedTree turned_tree(const Wires& wires, const Symmetry& group, const TurnedLoads& loads, const WayBetween& way) {
  const int n = group.order();
  TurnedTree made;
  made.parent.assign(spot(n), -1);
  std::vector<int> depth(spot(n));
  ClassTimes times(loads);
  for (int d = 1; d < n; ++d) {
    std::optional<std::tuple<double, double, int, int>> best;  // ends with the parent
    for (int p = 0; p < d; ++p) {
      const int displacement = group.subtract(d, p);
      const std::tuple option(times.longest_with(displacement), times.work_of(displacement), depth[spot(p)], p);
      if (!best || option < *best) best = option;
    }
    const int parent = std::get<3>(*best);
    made.parent[spot(d)] = parent;
    depth[spot(d)] = depth[spot(parent)] + 1;
    made.height = std::max(made.height, depth[spot(d)]);
    times.add(group.subtract(d, parent));
  }
  made.inverse_rate = fullest_edge(wires, group, made.parent, way);
  return made;
}

std::vector<int> turns_of(const TurnedTree& tree, const TurnedLoads& loads, const Symmetry& group, int slices,
                          int lanes) {
  const int n = group.order();
  ensure(slices > 0 && lanes > 0, "turns are of slices that follow one another");
  std::vector<int> below(spot(n)), order(spot(n - 1));
  std::iota(order.begin(), order.end(), 1);
  const std::vector<int> depth = depths_of(tree.parent);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return depth[spot(a)] > depth[spot(b)]; });
  for (const int d : order) below[spot(tree.parent[spot(d)])] += below[spot(d)] + 1;
  // A parent has more below it than its children.
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return below[spot(a)] > below[spot(b)]; });
  double longest = 0;
  const ClassTimes alone(loads);
  for (const int d : order) longest = std::max(longest, alone.longest_with(group.subtract(d, tree.parent[spot(d)])));
  longest *= 1.15;  // else small messages next to large ones leave steps that are nearly full, and need more of them
  std::vector<ClassTimes> steps;
  std::vector<int> turn(spot(n) * spot(slices), -1);
  std::map<std::vector<std::pair<int, int>>, int> open;  // the first step that may have room, by what is used
  for (int slice = 0; slice < slices; ++slice)
    for (const int d : order) {
      const int parent = tree.parent[spot(d)], displacement = group.subtract(d, parent);
      std::vector<std::pair<int, int>> used;
      for (const TurnedLoads::Load& each : loads.of(displacement)) used.emplace_back(each.edge_class, each.messages);
      int& from = open[used];
      const int earliest = parent == 0 ? 0 : turn[spot(slice * n + parent)] + lanes;
      int step = std::max(earliest, from);
      for (; step < static_cast<int>(steps.size()); ++step)
        if (steps[spot(step)].longest_with(displacement) <= longest) break;
      if (from >= earliest) from = step;  // all before it are full for these
      while (static_cast<int>(steps.size()) <= step) steps.emplace_back(loads);
      steps[spot(step)].add(displacement);
      turn[spot(slice * n + d)] = step;
    }
  return turn;
}

}  // namespace ringsim
