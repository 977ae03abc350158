#include "validate/grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.hpp"
#include "sim/error.hpp"
#include "sim/run.hpp"
#include "topologies/reduction_tree.hpp"

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
struct Row {
  const char* algorithm;
  CollectiveOp op;
  Arguments arguments;
  std::vector<const char*> other_machines;
  int most_ranks = 1000;
  bool by_packet = true;      // false: messages to several ports leave one at once; see assume_packets()
  bool power_of_two = false;  // of ranks only
  int ranks_of = 1;           // multiples of this only
  int ranks_only = 0;         // not 0: this number only
  std::int64_t bytes_of = 1;  // multiples of this only
};

bool takes(const Row& row, int ranks) {
  if (row.op == CollectiveOp::pairs && ranks % 2 != 0) return false;
  if (row.power_of_two && (ranks & (ranks - 1)) != 0) return false;
  return ranks <= row.most_ranks && ranks % row.ranks_of == 0;
}

Arguments levels(int group, const char* inner, const char* outer) {
  return {.numbers = {{"group", group}}, .texts = {{"inner", inner}, {"outer", outer}}};
}
Arguments sizes(const char* dimensions) { return {.numbers = {}, .texts = {{"dimensions", dimensions}}}; }

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
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
      // Exchanges of log2(K) steps.
      {"halving_doubling", CollectiveOp::reduce_scatter, {}, {"full_mesh"}, 1000, true, true},
      {"halving_doubling", CollectiveOp::all_gather, {}, {"full_mesh"}, 1000, true, true},
      {"halving_doubling",
       CollectiveOp::all_reduce,
       {.texts = {{"fold", "binary_blocks"}}},
       {"full_mesh"},
       1000,
       false},
      {"recursive_doubling", CollectiveOp::all_reduce, {}, {"full_mesh"}},
      {"recursive_doubling", CollectiveOp::all_gather, {}, {"full_mesh"}, 1000, true, true},
      {"bruck", CollectiveOp::all_gather, {}, {"full_mesh"}},
      {"bruck", CollectiveOp::all_to_all, {}, {"full_mesh"}, 100},
      {"pat", CollectiveOp::reduce_scatter, {}, {"full_mesh"}, 256},
      {"pat", CollectiveOp::all_gather, {}, {"full_mesh"}, 256},
      {"swing", CollectiveOp::all_reduce, {}, {"full_mesh"}, 1000, true, true},
      {"swing", CollectiveOp::all_reduce, sizes("4x2x4"), {"torus"}, 32, true, false, 1, 32},
      // Several levels, dimensions, and the switch itself.
      {"hierarchical",
       CollectiveOp::all_reduce,
       levels(2, "ring", "ring"),
       {"full_mesh", "torus"},
       100,
       true,
       false,
       2},
      {"hierarchical",
       CollectiveOp::all_reduce,
       levels(4, "halving_doubling", "ring"),
       {"full_mesh"},
       100,
       true,
       false,
       4},
      {"hierarchical", CollectiveOp::all_reduce, levels(4, "pat", "recursive_doubling"), {}, 100, true, false, 4},
      {"torus", CollectiveOp::all_reduce, sizes("4x4"), {"torus", "full_mesh"}, 16, true, false, 1, 16},
      {"torus", CollectiveOp::all_reduce, sizes("5x2x3"), {"torus", "full_mesh"}, 30, true, false, 1, 30},
      {"torus", CollectiveOp::reduce_scatter, sizes("3x4"), {"torus"}, 12, true, false, 1, 12},
      {"torus", CollectiveOp::all_gather, sizes("3x4"), {"torus"}, 12, true, false, 1, 12},
      {"bucket", CollectiveOp::all_reduce, sizes("4x4"), {"torus"}, 16, false, false, 1, 16, 64},
      {"bucket", CollectiveOp::all_reduce, sizes("8"), {"torus"}, 8, false, false, 1, 8, 16},
      {"in_switch", CollectiveOp::all_reduce, {.numbers = {{"segments", 1}}}, {}},
      {"in_switch", CollectiveOp::all_reduce, {}, {}, 100},
  };
  return all;
}

std::string name_of(const Row& row) {
  std::string name = row.algorithm;
  for (const auto& [parameter, value] : row.arguments.numbers) name += fmt::format(" {}={}", parameter, value);
  for (const auto& [parameter, value] : row.arguments.texts) name += fmt::format(" {}={}", parameter, value);
  return name;
}

}  // namespace

std::vector<GridCase> closed_form_grid() {
  std::vector<int> counts;
  for (int k = 2; k <= 17; ++k) counts.push_back(k);
  for (const int k : {32, 64, 100, 256, 1000}) counts.push_back(k);
  std::vector<GridCase> cases;
  for (const Row& row : rows()) {
    std::vector<const char*> machines{"star"};
    machines.insert(machines.end(), row.other_machines.begin(), row.other_machines.end());
    for (const char* machine : machines) {
      for (const int k : row.ranks_only > 0 ? std::vector<int>{row.ranks_only} : counts) {
        // The star covers the sizes, these the shapes.
        if (machine != machines.front() && k > 17 && row.ranks_only == 0) continue;
        if (!takes(row, k)) continue;
        for (const Bytes p : {1_B, 1_KiB, 1000003_B, 64_MiB, 1_GiB}) {
          if (p.count % row.bytes_of != 0) continue;
          for (const Picoseconds latency : {0_ps, some_latency})
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
