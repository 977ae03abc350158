#include "validate/grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/check.hpp"
#include "sim/error.hpp"
#include "sim/run.hpp"

namespace ringsim {

using namespace literals;

namespace {

constexpr Bandwidth port = 10_GBps;
// Not a round number: a latency that was dropped or doubled shows.
constexpr Picoseconds some_latency{1'234'567};

TopologySpec machine_of(const GridCase& c) {
  const LinkSpec link{.bandwidth = port, .latency = c.link_latency, .source = "grid"};
  if (c.machine == "star") return Star{c.request.ranks, link, c.entry->helpers(c.arguments)};
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
  bool by_packet = true;  // false: messages to several ports leave one at once; see assume_packets()
};

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
      for (const int k : counts) {
        if (machine != machines.front() && k > 17) continue;  // the star covers the sizes, these the shapes
        if (k > row.most_ranks) continue;
        if (row.op == CollectiveOp::pairs && k % 2 != 0) continue;
        for (const Bytes p : {1_B, 1_KiB, 1000003_B, 64_MiB, 1_GiB})
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
  return cases;
}

GridResult run_case(const GridCase& c) {
  const Topology topology = build(machine_of(c));
  const CheckedSchedule checked = check(c.entry->make(c.request, c.arguments));
  const auto form = closed_form(*c.entry, c.arguments, c.request,
                                uniform_of(topology, topology.ranks(), topology.helpers(), Transport{}));
  ensure(form.has_value(), "every row of the grid has a closed form");
  GridResult result{.form = *form, .simulated = run(topology, checked, {.model = c.model}).duration()};
  result.good = form->holds() && form->agrees(result.simulated);
  return result;
}

std::int64_t GridResult::off() const {
  return std::max({(simulated - form.time).count(), (form.low - simulated).count(), std::int64_t{0}});
}

}  // namespace ringsim
