#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "algorithms/catalog_parts.hpp"
#include "algorithms/composed/hierarchical.hpp"
#include "algorithms/composed/torus.hpp"
#include "algorithms/trees/in_switch.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr int most_ranks = 1'048'576;

std::int64_t product(const std::vector<int>& sizes) {
  std::int64_t n = 1;
  for (const int size : sizes) n = std::min<std::int64_t>(n * size, std::int64_t{most_ranks} + 1);
  return n;
}

/// "4x4x2" as numbers.
std::vector<int> parse_dimensions(const std::string& name, const std::string& text) {
  std::vector<int> sizes;
  const char *at = text.data(), *end = text.data() + text.size();
  for (;;) {
    int size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc{} || size < 1 || size > most_ranks || (next != end && *next != 'x'))
      throw InputError("", fmt::format("{}: expected dimensions such as \"4x4x2\", found \"{}\"", name, text),
                       "use whole numbers of at least 1, separated by x");
    sizes.push_back(size);
    if (next == end) return sizes;
    at = next + 1;
  }
}

int group_of(const Algorithm& algorithm, const Arguments& arguments, const CollectiveRequest& request) {
  if (const auto given = static_cast<int>(number(algorithm, arguments, "group")); given > 0) return given;
  if (request.grid.size() > 1) return request.grid.back();
  if (request.ranks == 1) return 1;
  throw InputError("", "hierarchical: expected the parameter \"group\", the number of ranks per node, found none",
                   R"(a cluster of equal nodes implies it; otherwise write {"name": "hierarchical", "group": 8})");
}

/// The schedule that an algorithm makes by itself, of so many ranks; bytes do not count if it is a part.
Schedule part(const std::string& name, CollectiveOp op, int ranks) {
  return find_algorithm(name)->make({.op = op, .ranks = ranks}, {});
}

Schedule make_hierarchical(const CollectiveRequest& request, const Arguments& arguments) {
  const Algorithm& self = *find_algorithm("hierarchical");
  const std::vector<int> grid = grid_of(self, arguments, request);
  const std::string inner = text(self, arguments, "inner"), outer = text(self, arguments, "outer");
  Schedule scatter = part(inner, CollectiveOp::reduce_scatter, grid[1]);
  Schedule between = part(outer, CollectiveOp::all_reduce, grid[0]);
  Schedule gather = part(inner, CollectiveOp::all_gather, grid[1]);
  Schedule s = hierarchical_all_reduce(request.ranks, request.bytes, grid[1], std::move(scatter), std::move(between),
                                       std::move(gather));
  s.algorithm += fmt::format(" group={} inner={} outer={}", grid[1], inner, outer);
  return s;
}

Schedule named(Schedule schedule, const std::vector<int>& dimensions) {
  schedule.algorithm += fmt::format(" dimensions={}", fmt::join(dimensions, "x"));
  return schedule;
}

Schedule make_torus(const CollectiveRequest& request, const Arguments& arguments) {
  const std::vector<int> dimensions = grid_of(*find_algorithm("torus"), arguments, request);
  switch (request.op) {
    case CollectiveOp::reduce_scatter:
      return named(torus_reduce_scatter(dimensions, request.bytes), dimensions);
    case CollectiveOp::all_gather:
      return named(torus_all_gather(dimensions, request.bytes), dimensions);
    default:
      return named(torus_all_reduce(dimensions, request.bytes), dimensions);
  }
}

Schedule make_bucket(const CollectiveRequest& request, const Arguments& arguments) {
  const std::vector<int> dimensions = grid_of(*find_algorithm("bucket"), arguments, request);
  return named(bucket_all_reduce(dimensions, request.bytes), dimensions);
}

Schedule make_in_switch(const CollectiveRequest& request, const Arguments& arguments) {
  const auto segments = static_cast<int>(number(*find_algorithm("in_switch"), arguments, "segments"));
  std::vector<Actor> tree = request.tree;
  if (tree.empty()) {
    tree.assign(static_cast<std::size_t>(request.ranks), request.ranks);
    tree.push_back(-1);
  }
  Schedule s = in_switch_all_reduce(request.ranks, request.bytes, tree, segments);
  s.algorithm += fmt::format(" segments={}", segments);
  return s;
}

int one_switch(const Arguments&) { return 1; }

/// Those of the rows that can be a part: no helpers of their own, and they do all of `ops`.
std::vector<std::string> names_that_do(const std::vector<Algorithm>& rows, const std::vector<CollectiveOp>& ops) {
  std::vector<std::string> names;
  for (const Algorithm& row : rows)
    if (row.helpers({}) == 0 && std::all_of(ops.begin(), ops.end(), [&](CollectiveOp op) { return row.supports(op); }))
      names.push_back(row.name);
  // The ring is what NCCL does in either place.
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name == "ring"; });
  return names;
}

}  // namespace

Parameter dimensions_parameter() {
  return {.name = "dimensions",
          .doc =
              "how the ranks are arranged, with the last dimension varying fastest; default: as the GPUs of the "
              "topology, or else one ring",
          .choices = {},
          .example = "4x4x2"};
}

std::vector<int> grid_of(const Algorithm& algorithm, const Arguments& arguments, const CollectiveRequest& request) {
  if (algorithm.name == "hierarchical") {
    const int group = group_of(algorithm, arguments, request);
    if (request.ranks % group != 0)
      throw InputError("",
                       fmt::format("hierarchical: expected nodes of equal size, found {} ranks in groups of {}",
                                   request.ranks, group),
                       "choose a group that divides the number of ranks");
    return {request.ranks / group, group};
  }
  const bool has_dimensions = std::any_of(algorithm.parameters.begin(), algorithm.parameters.end(),
                                          [](const Parameter& each) { return each.name == "dimensions"; });
  if (!has_dimensions) return {request.ranks};
  const std::string said = text(algorithm, arguments, "dimensions");
  std::vector<int> grid = said.empty() ? request.grid : parse_dimensions(algorithm.name, said);
  if (grid.empty()) grid = {request.ranks};
  if (product(grid) != request.ranks)
    throw InputError("", fmt::format("{}: expected dimensions that multiply to {} ranks, found {}", algorithm.name,
                                     request.ranks, fmt::join(grid, "x")));
  return grid;
}

void add_composed(std::vector<Algorithm>& rows) {
  std::vector<std::string> inner = names_that_do(rows, {CollectiveOp::reduce_scatter, CollectiveOp::all_gather});
  std::vector<std::string> outer = names_that_do(rows, {CollectiveOp::all_reduce});
  rows.push_back(
      {.name = "hierarchical",
       .summary = "reduce-scatter within nodes, all-reduce between nodes, all-gather within nodes",
       .source = "Mikami et al., arXiv:1811.05233 (2018); Cho et al., BlueConnect, MLSys 2019",
       .ops = {CollectiveOp::all_reduce},
       .parameters = {{.name = "group",
                       .doc = "number of consecutive ranks per node; default: the GPUs per node of the cluster",
                       .min = 1,
                       .max = most_ranks,
                       .fallback = 0},
                      {.name = "inner", .doc = "the algorithm within nodes", .choices = std::move(inner)},
                      {.name = "outer", .doc = "the algorithm between nodes", .choices = std::move(outer)}},
       .make = make_hierarchical,
       .helpers = no_helpers});
  rows.push_back({.name = "torus",
                  .summary = "rings along one dimension after another, then the reverse",
                  .source = "Barnett et al., IPPS 1993; Jouppi et al., TPU v4, ISCA 2023",
                  .ops = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter, CollectiveOp::all_gather},
                  .parameters = {dimensions_parameter()},
                  .make = make_torus,
                  .helpers = no_helpers});
  rows.push_back({.name = "bucket",
                  .summary = "rings along all dimensions at once, in both directions, each with a share of the buffer",
                  .source = "Jain & Sabharwal, ICS 2010",
                  .ops = {CollectiveOp::all_reduce},
                  .parameters = {dimensions_parameter()},
                  .make = make_bucket,
                  .helpers = no_helpers});
  rows.push_back(
      {.name = "in_switch",
       .summary = "the switches that connect the ranks add the data and send the sum back",
       .source = "Graham et al., SHARP, COMHPC 2016; NVLink SHARP (NVLS)",
       .ops = {CollectiveOp::all_reduce},
       .parameters =
           {{.name = "segments",
             .doc = "number of pieces into which the buffer is cut, so that pieces travel up and down at the same time",
             .min = 1,
             .max = 1048576,
             .fallback = 64}},
       .make = make_in_switch,
       .helpers = one_switch,
       .in_fabric = true});
}

}  // namespace ringsim
