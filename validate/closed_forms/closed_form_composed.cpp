#include <fmt/format.h>

#include <algorithm>

#include "validate/closed_forms/forms.hpp"

namespace ringsim {

using namespace forms;

namespace {

void needs_own_links_in_grid(const Uniform& machine, const std::vector<int>& grid, ClosedForm& form) {
  const auto dimensions = std::count_if(grid.begin(), grid.end(), [](int size) { return size > 1; });
  const bool is_ring = machine.shape == Shape::neighbors && dimensions == 1;
  if (machine.shape == Shape::grid || is_ring || machine.shape == Shape::star || machine.shape == Shape::full_mesh)
    return;
  form.because.emplace_back(
      "there is no equal cable to the next rank along each dimension, and the ranks are neither equal ports of one "
      "switch nor fully meshed: b and a are those of the slowest and the longest path between neighboring ranks");
}

/// Adds what a part takes: `low` and `high` are its forms for the sizes rounded down and up.
void append(ClosedForm& form, const ClosedForm& low, const ClosedForm& high) {
  form.low = add(form.low, low.low);
  form.time = add(form.time, high.time);
  form.steps += high.steps;
  form.is_shared = form.is_shared || high.is_shared;
  for (const std::string& reason : high.because)
    if (std::find(form.because.begin(), form.because.end(), reason) == form.because.end())
      form.because.push_back(reason);
}

std::optional<ClosedForm> hierarchical_form(const Algorithm& algorithm, const Arguments& arguments,
                                            const CollectiveRequest& request, Uniform machine) {
  const std::vector<int> grid = grid_of(algorithm, arguments, request);
  const std::string inner = text(algorithm, arguments, "inner"), outer = text(algorithm, arguments, "outer");
  if (machine.shape == Shape::grid) machine.shape = Shape::neighbors;  // in either dimension
  const std::int64_t p = request.bytes.count, g = grid[1];
  const auto part = [&](const std::string& name, CollectiveOp op, int ranks, std::int64_t bytes) {
    return closed_form(*find_algorithm(name), {}, {.op = op, .ranks = ranks, .bytes = {bytes}}, machine);
  };
  const auto scatter = part(inner, CollectiveOp::reduce_scatter, grid[1], p);
  const auto low = part(outer, CollectiveOp::all_reduce, grid[0], p / g);
  const auto high = part(outer, CollectiveOp::all_reduce, grid[0], ceil_div(p, g));
  const auto gather = part(inner, CollectiveOp::all_gather, grid[1], p);
  if (!scatter || !low || !high || !gather) return std::nullopt;
  ClosedForm form{.formula = fmt::format("{} [g ranks] + {} [K/g ranks, p/g] + {} [g ranks]", scatter->formula,
                                         high->formula, gather->formula)};
  append(form, *scatter, *scatter);
  append(form, *low, *high);
  append(form, *gather, *gather);
  return form;
}

ClosedForm torus_form(const std::vector<int>& grid, const CollectiveRequest& request, const Uniform& machine) {
  const bool both = request.op == CollectiveOp::all_reduce;
  ClosedForm form{.formula = both ? "2 sum(d_i-1) a + 2(K-1)/K p/b" : "sum(d_i-1) a + (K-1)/K p/b"};
  needs_own_links_in_grid(machine, grid, form);
  Sum sum{machine, form};
  std::int64_t chunks = request.ranks;  // of those left
  for (const int size : grid) {
    chunks /= size;
    sum.steps((both ? 2LL : 1LL) * (size - 1), share(request.bytes.count, chunks, request.ranks));
  }
  return form;
}

ClosedForm bucket_form(const std::vector<int>& grid, const CollectiveRequest& request, const Uniform& machine) {
  std::vector<int> sizes;
  for (const int size : grid)
    if (size > 1) sizes.push_back(size);
  const auto n_lanes = 2 * static_cast<std::int64_t>(sizes.size());
  const bool is_star = machine.shape == Shape::star;
  ClosedForm form{.formula = is_star ? "2D(d-1) a + 2(K-1)/K p/b" : "2D(d-1) a + (K-1)/K p/(D b)"};
  form.is_shared = true;
  if (!is_star && machine.shape != Shape::grid && !(machine.shape == Shape::neighbors && sizes.size() == 1))
    form.because.emplace_back(
        "there is no equal cable to the next rank along each dimension: b and a are those of the slowest and the "
        "longest path between neighboring ranks");
  if (std::any_of(sizes.begin(), sizes.end(), [&](int size) { return size != sizes.front(); }))
    form.because.emplace_back("the dimensions are not equal, so lanes share the links of one dimension");
  if (!is_star && std::any_of(sizes.begin(), sizes.end(), [](int size) { return size == 2; }))
    form.because.emplace_back("a dimension of size 2 has one cable for both directions");
  if (request.bytes.count % (n_lanes * request.ranks) != 0)
    form.because.emplace_back("the chunks are not equal, so lanes get out of step and share links");
  Sum sum{machine, form};
  std::int64_t chunks = request.ranks;
  for (const int size : sizes) {
    chunks /= size;
    const Share one = share(request.bytes.count, chunks, n_lanes * request.ranks);
    const std::int64_t at_once = is_star ? n_lanes : 1;
    sum.steps(2LL * (size - 1), one.low * at_once, one.high * at_once);
  }
  return form;
}

ClosedForm in_switch_form(std::int64_t segments, const CollectiveRequest& request, const Uniform& machine) {
  ClosedForm form{.formula = "(s+1)(a/2 + p/(s b))"};
  if (machine.shape != Shape::star) {
    form.because.emplace_back(
        "there is more than one switch, or the ranks are not equal full-duplex ports of the switch");
    Uniform port = machine;
    port.a = machine.a / 2;
    Sum{port, form}.steps(segments + 1, share(request.bytes.count, 1, segments));
    return form;
  }
  // Segment i goes down when it is up, and the one before is down: exact also if segments differ by a byte.
  const Layout layout = Layout::near_equal(request.bytes, static_cast<int>(segments));
  Picoseconds up{0}, down{0};
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(segments); ++i) {
    const Picoseconds one = add(machine.a / 2, transfer_time(layout.size(i, 1), machine.b));
    up = add(up, one);
    down = add(std::max(up, down), one);
  }
  form.low = form.time = down;
  form.steps = static_cast<int>(segments) + 1;
  return form;
}

}  // namespace

std::optional<ClosedForm> composed_form(const Algorithm& algorithm, const Arguments& arguments,
                                        const CollectiveRequest& request, const Uniform& machine) {
  if (algorithm.name == "hierarchical") return hierarchical_form(algorithm, arguments, request, machine);
  if (algorithm.name == "torus") return torus_form(grid_of(algorithm, arguments, request), request, machine);
  if (algorithm.name == "bucket") return bucket_form(grid_of(algorithm, arguments, request), request, machine);
  if (algorithm.name == "in_switch") return in_switch_form(number(algorithm, arguments, "segments"), request, machine);
  return std::nullopt;
}

}  // namespace ringsim
