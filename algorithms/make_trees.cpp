#include "algorithms/make_trees.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "algorithms/exchanges/dissemination.hpp"
#include "algorithms/trees/binomial_tree.hpp"
#include "algorithms/trees/double_binary_tree.hpp"
#include "algorithms/trees/kary_tree.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

int setting(const char* algorithm, const Arguments& arguments, const char* name) {
  return static_cast<int>(number(*find_algorithm(algorithm), arguments, name));
}

void expect_no_bytes(const CollectiveRequest& request) {
  if (request.bytes.count != 0)
    throw InputError("", fmt::format("a barrier moves no data: expected 0 B, found {} B", request.bytes.count));
}

Schedule on_tree(const CollectiveRequest& request, int arity, int segments) {
  const auto make = request.op == CollectiveOp::broadcast ? kary_broadcast
                    : request.op == CollectiveOp::reduce  ? kary_reduce
                                                          : kary_all_reduce;
  return make(request.ranks, request.bytes, request.root, arity, segments);
}

}  // namespace

Schedule make_binomial_tree(const CollectiveRequest& request, const Arguments&) {
  switch (request.op) {
    case CollectiveOp::broadcast:
      return binomial_broadcast(request.ranks, request.bytes, request.root);
    case CollectiveOp::reduce:
      return binomial_reduce(request.ranks, request.bytes, request.root);
    case CollectiveOp::all_reduce:
      return binomial_all_reduce(request.ranks, request.bytes, request.root);
    case CollectiveOp::scatter:
      return binomial_scatter(request.ranks, request.bytes, request.root);
    case CollectiveOp::gather:
      return binomial_gather(request.ranks, request.bytes, request.root);
    case CollectiveOp::barrier:
      expect_no_bytes(request);
      return binomial_barrier(request.ranks, request.root);
    default:
      fail_invariant("an algorithm is asked only for what it supports");
  }
}

Schedule make_dissemination(const CollectiveRequest& request, const Arguments&) {
  expect_no_bytes(request);
  return dissemination_barrier(request.ranks);
}

Schedule make_chain(const CollectiveRequest& request, const Arguments& arguments) {
  const int segments = setting("chain", arguments, "segments");
  Schedule s = on_tree(request, 1, segments);
  s.algorithm += fmt::format(" segments={}", segments);
  return s;
}

Schedule make_kary_tree(const CollectiveRequest& request, const Arguments& arguments) {
  const int arity = setting("kary_tree", arguments, "arity"), segments = setting("kary_tree", arguments, "segments");
  Schedule s = on_tree(request, arity, segments);
  s.algorithm += fmt::format(" arity={} segments={}", arity, segments);
  return s;
}

Schedule make_double_binary_tree(const CollectiveRequest& request, const Arguments& arguments) {
  const int segments = setting("double_binary_tree", arguments, "segments");
  const int group = setting("double_binary_tree", arguments, "group");
  if (group > 0 && request.op != CollectiveOp::all_reduce)
    throw InputError("",
                     fmt::format("double_binary_tree: group applies to all_reduce, not to {}", to_string(request.op)),
                     "remove group");
  Schedule s = request.op == CollectiveOp::all_reduce
                   ? double_tree_all_reduce(request.ranks, request.bytes, segments, std::max(1, group))
               : request.op == CollectiveOp::broadcast
                   ? double_tree_broadcast(request.ranks, request.bytes, request.root, segments)
                   : double_tree_reduce(request.ranks, request.bytes, request.root, segments);
  s.algorithm += fmt::format(" segments={}", segments);
  if (group > 0) s.algorithm += fmt::format(" group={}", group);
  return s;
}

}  // namespace ringsim
