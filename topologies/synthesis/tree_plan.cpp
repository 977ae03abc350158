#include "topologies/synthesis/tree_plan.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "topologies/bound/limits.hpp"
#include "topologies/synthesis/tree_moves.hpp"

namespace ringsim {

TreeRate choose_rate(const Wires& wires, const std::vector<int>& roots, const Fraction& optimum, const Fraction& enough,
                     TreesFit& fit) {
  const Fraction near = optimum * fraction(enough.under, enough.over);
  std::optional<TreeRate> chosen;
  for (std::int64_t k = 1; k <= most_trees_tried; ++k) {
    const TreeRate rate = tree_rate_of(wires, roots, k, optimum, fit);
    if (!chosen || rate.inverse_rate < chosen->inverse_rate) chosen = rate;
    if (rate.inverse_rate <= near) break;
  }
  return *chosen;
}

TreePlan plan_trees(const Wires& wires, const TreeOptions& options) {
  TreePlan plan{.rate = {}, .optimum = {}, .graph = {}, .trees = {}, .crowding = 1, .wires = tree_wires(wires)};
  const Wires& used = plan.wires.wires;
  ensure(options.roots.size() < 2, "trees start at one rank, or at all");
  plan.optimum =
      (options.roots.empty() ? gather_limit(used) : broadcast_limit(used, options.roots.front())).inverse_rate;
  TreesFit fit(options.breath);
  plan.rate = options.k ? tree_rate_of(used, options.roots, *options.k, plan.optimum, fit)
                        : choose_rate(used, options.roots, plan.optimum, options.enough, fit);
  plan.graph = tree_graph(used, options.roots, plan.rate.k, plan.rate.scale);
  remove_switches(plan.graph, options.ways, options.breath);
  plan.trees = pack_trees(plan.graph, options.breath);
  if (!options.ways.empty()) plan.crowding = std::max(1.0, follow_ways(plan.trees, options.ways, used, plan.rate));
  return plan;
}

}  // namespace ringsim
