// The forms of trees, of direct sends and of rings in pieces. They are derived in the doc comments of algorithms/*.hpp
// and, if it takes more than a line, here.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "algorithms/trees/double_binary_tree.hpp"
#include "algorithms/trees/kary_tree.hpp"
#include "validate/closed_forms/forms.hpp"

namespace ringsim {

using namespace forms;

namespace {

std::int64_t ceil_log2(int n) { return static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(n - 1))); }

ClosedForm binomial_form(const CollectiveRequest& request, const Uniform& machine) {
  ClosedForm form;
  needs_own_links_to_peers(machine, form);
  Sum sum{machine, form};
  const int n = request.ranks;
  const std::int64_t m = ceil_log2(n);
  const std::int64_t p = request.bytes.count;
  switch (request.op) {
    case CollectiveOp::scatter:
    case CollectiveOp::gather:
      // The root's own messages are the longest chain: of 2^k blocks, the farthest of what is left.
      form.formula = "ceil(log2 K) a + (K-1)/K p/b";
      for (std::int64_t k = 0; k < m; ++k) {
        const std::int64_t from = std::int64_t{1} << k;
        sum.steps(1, share(p, std::min<std::int64_t>(2 * from, n) - from, n));
      }
      break;
    case CollectiveOp::barrier:
      form.formula = "2 ceil(log2 K) a";
      sum.steps(2 * m, 0);
      break;
    case CollectiveOp::all_reduce:
      form.formula = "2 ceil(log2 K) (a + p/b)";
      sum.steps(2 * m, p);
      break;
    default:
      form.formula = "ceil(log2 K) (a + p/b)";
      sum.steps(m, p);
      break;
  }
  return form;
}

ClosedForm dissemination_form(const CollectiveRequest& request, const Uniform& machine) {
  ClosedForm form{.formula = "ceil(log2 K) a"};
  needs_own_links_to_peers(machine, form);
  Sum{machine, form}.steps(ceil_log2(request.ranks), 0);
  return form;
}

/// Steps of a segment to each of `children` at a time, over one port.
void add_segments(Sum& sum, std::int64_t steps, std::int64_t children, std::int64_t p, std::int64_t segments) {
  const auto of_all = [&](std::int64_t segment) { return (Bytes{segment} * children).count; };
  sum.steps(steps, of_all(p / segments), of_all(ceil_div(p, segments)));
}

/// A k-ary tree on ports: a rank and its children share the rank's port.
ClosedForm kary_form_of_ports(const KaryTree& tree, std::int64_t s, const CollectiveRequest& request,
                              const Uniform& machine) {
  ClosedForm form;
  needs_star(machine, form);
  Sum sum{machine, form};
  const std::int64_t p = request.bytes.count, k = tree.arity, d = tree.depth();
  const std::int64_t most = std::min<std::int64_t>(k, tree.n - 1);
  form.is_shared = most > 1 && request.op != CollectiveOp::reduce;
  std::int64_t level = 0, next_level = 1;  // the first ranks of the lowest level but one, and of the lowest
  for (std::int64_t e = 1; e < d; ++e) {
    level = next_level;
    next_level = next_level * k + 1;
  }
  const bool full = d == 1 || next_level * k + 1 == tree.n;
  if (request.op == CollectiveOp::broadcast) {
    const std::int64_t last_parent = (tree.n - 2) / k;
    const std::int64_t c = last_parent == level ? tree.n - 1 - k * last_parent : most;
    form.formula = k == 1 ? "(K-2+s)(a + p/(s b))" : "(d-2+s)(a + k p/(s b)) + a + c p/(s b)";
    add_segments(sum, d - 2 + s, most, p, s);
    add_segments(sum, 1, c, p, s);
    return form;
  }
  if (!full)
    form.because.emplace_back(
        "the tree is not full: ranks without children send first, while the port of their parent is free");
  if (request.op == CollectiveOp::reduce) {
    form.formula = k == 1 ? "(K-2+s)(a + p/(s b))" : "(d-1+s)(a + k p/(s b))";
    add_segments(sum, d - 1 + s, most, p, s);
    return form;
  }
  // A rank of level e, neither root nor leaf, sends up from step d-e on and down from step d+e on, s steps each; so it
  // is with what it receives. On level 1 they meet if s > 2.
  if (d > 1 && s > 2)
    form.because.emplace_back("with more than 2 segments, upward and downward messages share the ports of the ranks");
  form.formula = k == 1 ? "(2K-3+s)(a + p/(s b))" : "(2d-1+s)(a + k p/(s b))";
  add_segments(sum, 2 * d - 1 + s, most, p, s);
  return form;
}

ClosedForm kary_form(const KaryTree& tree, std::int64_t s, const CollectiveRequest& request, const Uniform& machine) {
  const bool own_cables = machine.shape == Shape::full_mesh || (tree.arity == 1 && machine.shape == Shape::neighbors);
  if (!own_cables) return kary_form_of_ports(tree, s, request, machine);
  ClosedForm form;
  const bool both = request.op == CollectiveOp::all_reduce;
  const std::int64_t d = tree.depth();
  form.formula = tree.arity == 1 ? (both ? "(2K-3+s)(a + p/(s b))" : "(K-2+s)(a + p/(s b))")
                                 : (both ? "(2d-1+s)(a + p/(s b))" : "(d-1+s)(a + p/(s b))");
  Sum sum{machine, form};
  add_segments(sum, (both ? 2 * d : d) - 1 + s, 1, request.bytes.count, s);
  return form;
}

int depth_of(const DoubleTree& tree, Actor r) {
  int edges = 0;
  for (Actor up = tree.parent(r); up >= 0; up = tree.parent(up)) ++edges;
  return edges;
}

/// Says if a cable carries what two of the ways send at one time. Segments differ by a byte if 2s does not divide
/// p: then the tree of the larger ones falls behind, and may still be there when the other one comes.
void needs_cables_apart(const DoubleTree& one, const DoubleTree& other, const CollectiveRequest& request,
                        std::int64_t s, const Uniform& machine, ClosedForm& form) {
  const std::int64_t p = request.bytes.count, d = one.depth();
  const Picoseconds shortest = add(machine.a, transfer_time({p / (2 * s)}, machine.b)),
                    longest = add(machine.a, transfer_time({ceil_div(p, 2 * s)}, machine.b));
  for (Actor r = 0; r < request.ranks; ++r) {
    const Actor parent = one.parent(r);
    if (parent < 0) continue;
    const bool same_way = other.parent(r) == parent;
    // r sends up to its parent until step d - depth + s, and in the other tree down to it from step d + depth - 1 on.
    const std::int64_t end = d - depth_of(one, r) + s, begin = d + depth_of(other, parent) - 1;
    const bool opposite = request.op == CollectiveOp::all_reduce && other.parent(parent) == r &&
                          (end > begin || times(end, longest) > times(begin, shortest));
    if (!same_way && !opposite) continue;
    form.because.push_back(fmt::format("{}both trees use the cable from rank {} to rank {} at the same time",
                                       same_way || end > begin ? "" : "segments differ by a byte: ", r, parent));
    return;
  }
}

ClosedForm double_tree_form(std::int64_t s, std::int64_t group, const CollectiveRequest& request,
                            const Uniform& machine) {
  ClosedForm form;
  const int n = request.ranks;
  const bool both = request.op == CollectiveOp::all_reduce;
  const auto tree = [&](int which) {
    return both ? DoubleTree::over_all(n, which) : DoubleTree::below(request.root, n, which);
  };
  if (machine.shape != Shape::full_mesh)
    form.because.emplace_back(
        "the ranks are not fully meshed, and the two trees share their links: b and a are those of the slowest and the "
        "longest path between neighboring ranks");
  else if (group > 1)
    form.because.emplace_back("the chains of a group are in both trees, which share their cables");
  else
    needs_cables_apart(tree(0), tree(1), request, s, machine, form);
  form.formula = both ? "(2d-1+s)(a + p/(2 s b))" : "(d-1+s)(a + p/(2 s b))";
  const std::int64_t d =
      group > 1 ? TreeOfChains(n, static_cast<int>(group), 0).depth() : std::int64_t{tree(0).depth()};
  Sum sum{machine, form};
  add_segments(sum, (both ? 2 * d : d) - 1 + s, 1, request.bytes.count, 2 * s);
  return form;
}

}  // namespace

std::optional<ClosedForm> direct_form(bool one_shot, const CollectiveRequest& request, const Uniform& machine) {
  ClosedForm form;
  const bool mesh = machine.shape == Shape::full_mesh;  // n-1 messages at the same time, each on its own cable
  const std::int64_t n = request.ranks, p = request.bytes.count;
  const std::int64_t all = mesh ? p : (Bytes{p} * (n - 1)).count;
  const std::int64_t blocks = mesh ? ceil_div(p, n) : (Bytes{ceil_div(p, n)} * (n - 1)).count;
  const auto once = [&](const char* on_star, const char* on_mesh, std::int64_t bytes, int steps = 1) {
    form.formula = mesh ? on_mesh : on_star;
    Sum{machine, form}.steps(steps, bytes);
  };
  if (request.op == CollectiveOp::send_recv) {
    needs_neighbors(machine, form);
    once("a + p/b", "a + p/b", p);
    return form;
  }
  if (!mesh) needs_star(machine, form);
  form.is_shared = !mesh && !has_root(request.op);
  switch (request.op) {
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce:
      once("a + (K-1) p/b", "a + p/b", all);
      break;
    case CollectiveOp::scatter:
    case CollectiveOp::gather:
      // The root's own block is one of the smaller; those of floor(p/K) end before those that are a byte longer.
      once("a + (K-1)/K p/b", "a + p/(K b)", mesh ? blocks : p - p / n);
      ++form.steps;
      break;
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather:
      once("a + (K-1)/K p/b", "a + p/(K b)", blocks);
      break;
    case CollectiveOp::all_reduce:
      if (one_shot)
        once("a + (K-1) p/b", "a + p/b", all);
      else
        once("2a + 2(K-1)/K p/b", "2a + 2 p/(K b)", blocks, 2);
      break;
    default:
      return std::nullopt;
  }
  return form;
}

std::optional<ClosedForm> tree_form(const Algorithm& algorithm, const Arguments& arguments,
                                    const CollectiveRequest& request, const Uniform& machine) {
  const auto setting = [&](const char* name) { return static_cast<int>(number(algorithm, arguments, name)); };
  if (algorithm.name == "binomial_tree") return binomial_form(request, machine);
  if (algorithm.name == "dissemination") return dissemination_form(request, machine);
  if (algorithm.name == "chain")
    return kary_form({request.ranks, request.root, 1}, setting("segments"), request, machine);
  if (algorithm.name == "kary_tree")
    return kary_form({request.ranks, request.root, setting("arity")}, setting("segments"), request, machine);
  if (algorithm.name == "double_binary_tree")
    return double_tree_form(setting("segments"), setting("group"), request, machine);
  return std::nullopt;
}

ClosedForm ring_in_pieces_form(std::int64_t rings, std::int64_t slices, const CollectiveRequest& request,
                               const Uniform& machine) {
  ClosedForm form;
  needs_neighbors(machine, form);
  const std::int64_t n = request.ranks, p = request.bytes.count, pieces = n * rings * slices;
  const bool both = request.op == CollectiveOp::all_reduce;
  const std::int64_t steps = (both ? 2 : 1) * (n - 1) * slices;
  Sum sum{machine, form};
  const bool own_cables =
      rings == 1 || machine.shape == Shape::full_mesh || (rings == 2 && machine.shape == Shape::neighbors);
  if (own_cables) {
    form.formula = both ? "2(K-1) l (a + p/(K R l b))" : "(K-1) l (a + p/(K R l b))";
    sum.steps(steps, p / pieces, ceil_div(p, pieces));
    return form;
  }
  needs_star(machine, form);
  form.is_shared = true;
  if (p % pieces != 0)
    form.because.emplace_back(
        "the pieces of the rings differ by a byte, so rings that share ports get out of step, and one sends during the "
        "latency of another");
  form.formula = both ? "2(K-1) l (a + p/(K l b))" : "(K-1) l (a + p/(K l b))";
  sum.steps(steps, (Bytes{ceil_div(p, pieces)} * rings).count);
  return form;
}

}  // namespace ringsim
