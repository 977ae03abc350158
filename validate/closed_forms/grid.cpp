#include "validate/closed_forms/grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "topologies/search/reduction_tree.hpp"

namespace ringsim {

using namespace literals;

namespace {

constexpr Bandwidth port = 10_GBps;
// Not a round number: a latency that was dropped or doubled shows.
constexpr Picoseconds some_latency{1'234'567};

TopologySpec machine_of(const GridCase& c) {
  const LinkSpec link{.bandwidth = port, .latency = c.link_latency, .source = "grid"};
  if (c.machine == "star") return Star{c.request.ranks, link, c.entry->in_fabric ? 0 : c.entry->helpers(c.arguments)};
  if (c.machine == "torus") return Torus{grid_of(*c.entry, c.arguments, c.request), link};
  if (c.machine == "full_mesh") return FullMesh{c.request.ranks, link};
  return Ring{c.request.ranks, link};
}

/// What the grid asks of an algorithm, and on which machines besides the star its form holds.
struct GridRow {
  const char* algorithm;
  CollectiveOp op;
  Arguments arguments = {};
  std::vector<const char*> other_machines = {};
  int most_ranks = 1000;
  bool by_packet = true;  // false: messages to several ports leave one at once; see assume_packets()
  bool (*made_for)(int ranks, Bytes bytes) = nullptr;  // for which cases the form holds; none: for all
  bool on_star = true;                                 // false: its form is of other machines
  bool power_of_two = false;                           // of ranks only
  int ranks_of = 1;                                    // multiples of this only
  int ranks_only = 0;                                  // not 0: this number only
  std::int64_t bytes_of = 1;                           // multiples of this only
};

bool of_full_trees(int ranks, Bytes) { return ranks == 2 || (ranks & (ranks + 1)) == 0; }  // of arity 2
bool of_three_ranks_or_more(int ranks, Bytes) { return ranks > 2; }  // of two rings; of trees that share no cable
bool of_four_ranks_or_more_in_quarters(int ranks, Bytes bytes) { return ranks > 3 && bytes.count % 4 == 0; }
bool of_four_rings(int ranks, Bytes) { return ranks == 5 || ranks > 6; }  // others have fewer strides without divisor
bool of_equal_pieces(int ranks, Bytes bytes) { return ranks > 2 && bytes.count % (std::int64_t{ranks} * 2) == 0; }

bool takes(const GridRow& row, int ranks, Bytes bytes) {
  if (row.op == CollectiveOp::pairs && ranks % 2 != 0) return false;
  if (row.power_of_two && (ranks & (ranks - 1)) != 0) return false;
  if (ranks > row.most_ranks || ranks % row.ranks_of != 0 || bytes.count % row.bytes_of != 0) return false;
  return row.made_for == nullptr || row.made_for(ranks, bytes);
}

Arguments levels(int group, const char* inner, const char* outer) {
  return {.numbers = {{"group", group}}, .texts = {{"inner", inner}, {"outer", outer}}};
}
Arguments sizes(const char* dimensions) { return {.numbers = {}, .texts = {{"dimensions", dimensions}}}; }

const std::vector<GridRow>& rows() {
  static const std::vector<GridRow> all{
      {"parameter_server", CollectiveOp::all_reduce, {}, {"full_mesh"}},
      {"parameter_server", CollectiveOp::all_reduce, {.numbers = {{"servers", 1}}}, {}},
      {"parameter_server", CollectiveOp::all_reduce, {.numbers = {{"servers", 3}}}, {}, 1000, false},
      {"parameter_server", CollectiveOp::all_reduce, {.numbers = {{"servers", 16}}}, {}, 1000, false},
      {"ring", CollectiveOp::all_reduce, {}, {"full_mesh", "ring"}},
      {"ring", CollectiveOp::reduce_scatter, {}, {"full_mesh", "ring"}},
      {"ring", CollectiveOp::all_gather, {}, {"full_mesh", "ring"}},
      {"ring", CollectiveOp::broadcast, {}, {"full_mesh", "ring"}},
      {"ring", CollectiveOp::broadcast, {.numbers = {{"segments", 7}}}, {"full_mesh", "ring"}},
      {"halving_doubling", CollectiveOp::all_reduce, {.texts = {{"fold", "rabenseifner"}}}, {"full_mesh"}},
      {"halving_doubling", CollectiveOp::all_reduce, {.texts = {{"fold", "naive"}}}, {"full_mesh"}},
      {"direct", CollectiveOp::pairs, {}, {"full_mesh"}},
      {"pairwise", CollectiveOp::all_to_all, {}, {"full_mesh"}, 256},
      {"direct", CollectiveOp::all_to_all, {}, {}, 256, false},  // K(K-1) messages at once
  };
  return all;
}

Arguments numbers(std::map<std::string, std::int64_t> given) { return {.numbers = std::move(given), .texts = {}}; }

/// Trees, direct sends and rings in pieces.
std::vector<GridRow> more_rows() {
  using enum CollectiveOp;
  std::vector<GridRow> all;
  for (const CollectiveOp op : {broadcast, reduce, all_reduce, scatter, gather, barrier})
    all.push_back({"binomial_tree", op, {}, {"full_mesh"}, 256});
  all.push_back({"dissemination", barrier, {}, {"full_mesh"}, 256});
  for (const CollectiveOp op : {broadcast, reduce, scatter, gather, send_recv})
    all.push_back({"direct", op, {}, {"full_mesh"}, 256});
  for (const CollectiveOp op : {reduce_scatter, all_gather, all_reduce})
    all.push_back({"direct", op, {}, {"full_mesh"}, 64, false});
  all.push_back({"direct", all_reduce, numbers({{"shots", 1}}), {"full_mesh"}, 64, false});

  const Arguments chain = numbers({{"segments", 7}}), tree = numbers({{"arity", 2}, {"segments", 5}});
  for (const CollectiveOp op : {broadcast, reduce}) all.push_back({"chain", op, chain, {"full_mesh", "ring"}, 256});
  all.push_back({"chain", all_reduce, numbers({{"segments", 2}}), {}, 256});
  all.push_back({.algorithm = "chain",
                 .op = all_reduce,
                 .arguments = chain,
                 .other_machines = {"full_mesh", "ring"},
                 .on_star = false});
  all.push_back({"kary_tree", broadcast, tree, {}, 256, false});
  all.push_back({"kary_tree", broadcast, numbers({{"arity", 3}, {"segments", 2}}), {}, 256, false});
  all.push_back({"kary_tree", reduce, tree, {}, 256, true, of_full_trees});
  all.push_back({"kary_tree", all_reduce, numbers({{"arity", 2}, {"segments", 2}}), {}, 256, false, of_full_trees});
  for (const CollectiveOp op : {broadcast, reduce, all_reduce})
    all.push_back(
        {.algorithm = "kary_tree", .op = op, .arguments = tree, .other_machines = {"full_mesh"}, .on_star = false});
  for (const CollectiveOp op : {broadcast, reduce, all_reduce})
    all.push_back({.algorithm = "double_binary_tree",
                   .op = op,
                   .arguments = numbers({{"segments", op == all_reduce ? 2 : 3}}),
                   .other_machines = {"full_mesh"},
                   .made_for = op == all_reduce ? of_four_ranks_or_more_in_quarters : of_three_ranks_or_more,
                   .on_star = false});

  const Arguments sliced = numbers({{"slices", 3}}), both_ways = numbers({{"rings", 2}}),
                  four = numbers({{"rings", 4}});
  for (const CollectiveOp op : {all_reduce, reduce_scatter, all_gather}) {
    all.push_back({"ring", op, sliced, {"full_mesh", "ring"}, 64});
    all.push_back({"ring", op, both_ways, {}, 64, false, of_equal_pieces});
    all.push_back({"ring", op, both_ways, {"full_mesh", "ring"}, 17, true, of_three_ranks_or_more, false});
    all.push_back({"ring", op, four, {"full_mesh"}, 17, true, of_four_rings, false});
  }
  return all;
}

/// Exchanges of log2(K) steps.
const std::vector<GridRow>& exchange_rows() {
  using enum CollectiveOp;
  static const Arguments blocks{.numbers = {}, .texts = {{"fold", "binary_blocks"}}};
  static const Arguments whole{.numbers = {}, .texts = {{"variant", "latency"}}};
  static const std::vector<GridRow> all{
      {.algorithm = "halving_doubling", .op = reduce_scatter, .other_machines = {"full_mesh"}, .power_of_two = true},
      {.algorithm = "halving_doubling", .op = all_gather, .other_machines = {"full_mesh"}, .power_of_two = true},
      {.algorithm = "halving_doubling",
       .op = all_reduce,
       .arguments = blocks,
       .other_machines = {"full_mesh"},
       .most_ranks = 256,
       .by_packet = false},
      {.algorithm = "recursive_doubling", .op = all_reduce, .other_machines = {"full_mesh"}},
      {.algorithm = "recursive_doubling", .op = all_gather, .other_machines = {"full_mesh"}, .power_of_two = true},
      {.algorithm = "bruck", .op = all_gather, .other_machines = {"full_mesh"}, .most_ranks = 256},
      {.algorithm = "bruck", .op = all_to_all, .other_machines = {"full_mesh"}, .most_ranks = 100},
      {.algorithm = "pat", .op = reduce_scatter, .other_machines = {"full_mesh"}, .most_ranks = 256},
      {.algorithm = "pat", .op = all_gather, .other_machines = {"full_mesh"}, .most_ranks = 256},
      {.algorithm = "swing", .op = all_reduce, .other_machines = {"full_mesh"}, .power_of_two = true},
      {.algorithm = "swing",
       .op = all_reduce,
       .arguments = whole,
       .other_machines = {"full_mesh"},
       .power_of_two = true},
      {.algorithm = "swing",
       .op = all_reduce,
       .arguments = sizes("4x2x4"),
       .other_machines = {"torus"},
       .ranks_only = 32},
  };
  return all;
}

/// Several levels, dimensions, and the switch itself.
const std::vector<GridRow>& composed_rows() {
  using enum CollectiveOp;
  static const std::vector<GridRow> all{
      {.algorithm = "hierarchical",
       .op = all_reduce,
       .arguments = levels(2, "ring", "ring"),
       .other_machines = {"full_mesh", "torus"},
       .most_ranks = 100,
       .ranks_of = 2},
      {.algorithm = "hierarchical",
       .op = all_reduce,
       .arguments = levels(4, "halving_doubling", "ring"),
       .other_machines = {"full_mesh"},
       .most_ranks = 100,
       .ranks_of = 4},
      {.algorithm = "hierarchical",
       .op = all_reduce,
       .arguments = levels(4, "pat", "recursive_doubling"),
       .most_ranks = 100,
       .ranks_of = 4},
      {.algorithm = "torus",
       .op = all_reduce,
       .arguments = sizes("4x4"),
       .other_machines = {"torus", "full_mesh"},
       .ranks_only = 16},
      {.algorithm = "torus",
       .op = all_reduce,
       .arguments = sizes("5x2x3"),
       .other_machines = {"torus", "full_mesh"},
       .ranks_only = 30},
      {.algorithm = "torus",
       .op = reduce_scatter,
       .arguments = sizes("3x4"),
       .other_machines = {"torus"},
       .ranks_only = 12},
      {.algorithm = "torus",
       .op = all_gather,
       .arguments = sizes("3x4"),
       .other_machines = {"torus"},
       .ranks_only = 12},
      {.algorithm = "bucket",
       .op = all_reduce,
       .arguments = sizes("4x4"),
       .other_machines = {"torus"},
       .by_packet = false,
       .ranks_only = 16,
       .bytes_of = 64},
      {.algorithm = "bucket",
       .op = all_reduce,
       .arguments = sizes("8"),
       .other_machines = {"torus"},
       .by_packet = false,
       .ranks_only = 8,
       .bytes_of = 16},
      {.algorithm = "in_switch", .op = all_reduce, .arguments = {.numbers = {{"segments", 1}}, .texts = {}}},
      {.algorithm = "in_switch", .op = all_reduce, .most_ranks = 100},
  };
  return all;
}

std::string name_of(const GridRow& row) {
  std::string name = row.algorithm;
  for (const auto& [parameter, value] : row.arguments.numbers) name += fmt::format(" {}={}", parameter, value);
  for (const auto& [parameter, value] : row.arguments.texts) name += fmt::format(" {}={}", parameter, value);
  return name;
}

void add_cases(const GridRow& row, const std::vector<int>& counts, std::vector<GridCase>& cases) {
  std::vector<std::string> machines(row.other_machines.begin(), row.other_machines.end());
  if (row.on_star) machines.insert(machines.begin(), "star");
  const std::vector<Bytes> sizes =
      row.op == CollectiveOp::barrier ? std::vector{0_B} : std::vector{1_B, 1_KiB, 1000003_B, 64_MiB, 1_GiB};
  for (const std::string& machine : machines) {
    for (const int k : row.ranks_only > 0 ? std::vector<int>{row.ranks_only} : counts) {
      if (machine != "star" && k > 17 && row.ranks_only == 0) continue;  // the star covers the sizes, these the shapes
      for (const Bytes p : sizes) {
        if (!takes(row, k, p)) continue;
        for (const Picoseconds latency : {0_ps, some_latency}) {
          for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair, NetworkModel::packet}) {
            // What is small enough to go packet by packet.
            if (model == NetworkModel::packet && (!row.by_packet || k > 17 || p > 1000003_B)) continue;
            cases.push_back({.machine = machine,
                             .algorithm = name_of(row),
                             .request = {.op = row.op, .ranks = k, .bytes = p, .both_ways = true},
                             .link_latency = latency,
                             .model = model,
                             .entry = find_algorithm(row.algorithm),
                             .arguments = row.arguments});
          }
        }
      }
    }
  }
}

}  // namespace

std::vector<GridCase> closed_form_grid() {
  std::vector<int> counts;
  for (int k = 2; k <= 17; ++k) counts.push_back(k);
  for (const int k : {32, 64, 100, 256, 1000}) counts.push_back(k);
  std::vector<GridCase> cases;
  for (const auto& list : {rows(), more_rows(), exchange_rows(), composed_rows()})
    for (const GridRow& row : list) add_cases(row, counts, cases);
  return cases;
}

GridResult run_case(const GridCase& c) {
  const Topology topology = build(machine_of(c));
  RunOptions options{.model = c.model};
  if (c.entry->in_fabric) {
    const ReductionTree tree = reduction_tree(topology, topology.ranks());
    options.placement.assign(topology.ranks().begin(), topology.ranks().end());
    options.placement.insert(options.placement.end(), tree.switches.begin(), tree.switches.end());
  }
  const CheckedSchedule checked = check(c.entry->make(c.request, c.arguments));
  const auto form = closed_form(*c.entry, c.arguments, c.request,
                                uniform_of(topology, topology.ranks(), topology.helpers(), Transport{}, {},
                                           grid_of(*c.entry, c.arguments, c.request)));
  ensure(form.has_value(), "every row of the grid has a closed form");
  GridResult result{.form = *form, .simulated = run(topology, checked, options).duration()};
  result.good = form->holds() && form->agrees(result.simulated);
  return result;
}

std::int64_t GridResult::off() const {
  return std::max({(simulated - form.time).count(), (form.low - simulated).count(), std::int64_t{0}});
}

}  // namespace ringsim
