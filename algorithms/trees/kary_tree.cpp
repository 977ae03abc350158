#include "algorithms/trees/kary_tree.hpp"

#include "algorithms/trees/pipelined.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

Schedule on_tree(Collective collective, const KaryTree& tree, int segments) {
  return pipelined<KaryTree>(tree.arity == 1 ? "chain" : "kary_tree", std::move(collective), {tree}, segments);
}

}  // namespace

Schedule kary_broadcast(int n, Bytes bytes, Actor root, int arity, int segments) {
  return on_tree(broadcast(n, bytes, root), {n, root, arity}, segments);
}
Schedule kary_reduce(int n, Bytes bytes, Actor root, int arity, int segments) {
  return on_tree(reduce(n, bytes, root), {n, root, arity}, segments);
}
Schedule kary_all_reduce(int n, Bytes bytes, Actor root, int arity, int segments) {
  return on_tree(all_reduce(n, bytes), {n, root, arity}, segments);
}

}  // namespace ringsim
