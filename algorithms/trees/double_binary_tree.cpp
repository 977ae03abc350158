#include "algorithms/trees/double_binary_tree.hpp"

#include <fmt/format.h>

#include "algorithms/trees/pipelined.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

constexpr const char* name = "double_binary_tree";

Schedule below_root(Collective collective, int segments) {
  const int n = collective.ranks;
  const Actor root = collective.root;
  return pipelined<DoubleTree>(name, std::move(collective),
                               {DoubleTree::below(root, n, 0), DoubleTree::below(root, n, 1)}, segments);
}

}  // namespace

Schedule double_tree_all_reduce(int n, Bytes bytes, int segments, int group) {
  if (n % group != 0)
    throw InputError("", fmt::format("double_binary_tree: expected a group that divides {} ranks, found {}", n, group));
  if (group > 1)
    return pipelined<TreeOfChains>(name, all_reduce(n, bytes), {TreeOfChains(n, group, 0), TreeOfChains(n, group, 1)},
                                   segments);
  return pipelined<DoubleTree>(name, all_reduce(n, bytes), {DoubleTree::over_all(n, 0), DoubleTree::over_all(n, 1)},
                               segments);
}
Schedule double_tree_broadcast(int n, Bytes bytes, Actor root, int segments) {
  return below_root(broadcast(n, bytes, root), segments);
}
Schedule double_tree_reduce(int n, Bytes bytes, Actor root, int segments) {
  return below_root(reduce(n, bytes, root), segments);
}

}  // namespace ringsim
