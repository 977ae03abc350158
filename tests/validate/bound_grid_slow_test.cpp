// Runs of every algorithm on many machines, and of NCCL on every preset, next to the bound of each.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/bound_graphs.hpp"
#include "topologies/machines/machine.hpp"
#include "validate/closed_forms/bound.hpp"
#include "validate/results/result.hpp"

namespace bound_grid_slow_test {

using namespace ringsim;

namespace {

struct Tally {
  int compared = 0;
  int at_bound = 0;  // within 1 %
};

/// Runs the points of a scenario that can be run. Whether any could.
bool hold_to_bounds(const std::string& text, Bounds& bounds, Tally& tally) {
  bool any = false;
  try {
    const ScenarioFile file = ScenarioFile::parse(text, "grid.json");
    for (std::size_t i = 0; i < file.size(); ++i) {
      for (const Result& row : results_of(file.point(i), {}, &bounds)) {
        any = true;
        if (!row.bound) continue;
        CAPTURE(row.prediction.request.bytes.count);
        CHECK(row.prediction.time >= *row.bound);
        ++tally.compared;
        tally.at_bound += of_bound(row).value_or(0) > 0.99 ? 1 : 0;
      }
    }
  } catch (const InputError&) {
    // The machine does not suit the algorithm, or its number of ranks; it must suit on another.
  }
  return any;
}

/// Machines of 4 to 16 ranks: with ports, rings, tori, uplinks, several NICs, staging in host memory, shared cables.
std::vector<std::string> machines() {
  const std::string link = R"("link": {"bandwidth": "10 GB/s", "latency": "1 us"})";
  const auto cluster = [](const char* node, int nodes) {
    const std::string fabric =
        nodes == 1 ? "" : R"(, "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "150 ns"}})";
    return fmt::format(R"({{"kind": "cluster", "node": "{}", "nodes": {}{}}})", node, nodes, fabric);
  };
  test::BareGraph shared;
  shared.gpus(4).half_duplex("gpu0", "gpu1", 10).cable("gpu1", "gpu2", 5).cable("gpu2", "gpu3", 20);
  shared.half_duplex("gpu3", "gpu0", 7);
  test::BareGraph slow = test::bare_star(7, 50);
  slow.gpus(1, "slow").cable("slow0", "switch0", 1);
  return {fmt::format(R"({{"kind": "star", "ranks": 8, {}}})", link),
          fmt::format(R"({{"kind": "star", "ranks": 7, {}}})", link),
          fmt::format(R"({{"kind": "ring", "ranks": 8, {}}})", link),
          fmt::format(R"({{"kind": "full_mesh", "ranks": 5, {}}})", link),
          fmt::format(R"({{"kind": "torus", "dimensions": [2, 4], {}}})", link),
          fmt::format(R"({{"kind": "torus", "dimensions": [4, 4], {}}})", link),
          shared.json(),
          slow.json(),
          test::bare_leaf_spine(2, 4, 100, 25).json(),
          test::bare_boxes(2, 300, 25, 2).json(),
          test::bare_ring(6, 10, true).json(),
          cluster("dgx-1v", 1),
          cluster("rtx4090-pcie", 1),
          cluster("dgx-a100", 2),
          cluster("abci-v", 2),
          cluster("polaris", 2)};
}

/// The algorithm as a scenario names it: with all defaults, and with each parameter at other values, one by one.
std::vector<std::string> spellings(const Algorithm& algorithm) {
  std::vector<std::string> all{fmt::format(R"({{"name": "{}"}})", algorithm.name)};
  for (const Parameter& parameter : algorithm.parameters) {
    for (const std::string& choice : parameter.choices)
      all.push_back(fmt::format(R"({{"name": "{}", "{}": "{}"}})", algorithm.name, parameter.name, choice));
    if (!parameter.choices.empty() || !parameter.example.empty()) continue;
    for (const std::int64_t value : {parameter.min, parameter.min + 1, std::min<std::int64_t>(parameter.max, 4)})
      if (value <= parameter.max)
        all.push_back(fmt::format(R"({{"name": "{}", "{}": {}}})", algorithm.name, parameter.name, value));
  }
  return all;
}

}  // namespace

TEST_CASE("no algorithm, doing whatever it can, on any of sixteen machines at any size, is faster than the bound") {
  std::set<std::pair<std::string, CollectiveOp>> ran;
  Tally tally;
  for (const std::string& topology : machines()) {
    Bounds bounds;
    for (const Algorithm& algorithm : algorithms()) {
      for (const CollectiveOp op : algorithm.ops) {
        if (op == CollectiveOp::barrier) continue;  // moves no bytes
        for (const std::string& spelling : spellings(algorithm)) {
          CAPTURE(topology);
          CAPTURE(spelling);
          CAPTURE(std::string(to_string(op)));
          // 1 B and 999999 B leave blocks of unequal size; a large message hides the latency.
          if (hold_to_bounds(fmt::format(R"({{"version": 1, "name": "t", "topology": {}, "collective": {{"op": "{}",
                  "algorithm": {}, "bytes": ["1 B", "999999 B", "64 MiB"]}}}})",
                                         topology, to_string(op), spelling),
                             bounds, tally))
            ran.emplace(algorithm.name, op);
        }
      }
    }
  }
  for (const Algorithm& algorithm : algorithms()) {
    if (algorithm.name == "file") continue;  // schedules of others
    for (const CollectiveOp op : algorithm.ops)
      CHECK_MESSAGE((op == CollectiveOp::barrier || ran.contains({algorithm.name, op})), algorithm.name, " ",
                    to_string(op));
  }
  CHECK(tally.compared > 5000);
  CHECK(tally.at_bound > 100);  // the bounds are not far below everything
}

TEST_CASE("nothing that NCCL is predicted to do on a preset is faster than the bound of its wires") {
  Tally tally;
  int n_scenarios = 0;
  for (const PresetFile& preset : preset_files()) {
    const std::string name(preset.name);
    if (name.ends_with("nvl72")) continue;  // minutes
    for (const int nodes : {1, 2}) {
      Bounds bounds;
      for (const char* op : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all"}) {
        // Two of four sizes in turn: over 40 presets every collective meets each size on machines of all kinds.
        const char* sizes = ++n_scenarios % 2 == 0 ? R"("1 KiB", "64 MiB")" : R"("1 MiB", "1 GiB")";
        CAPTURE(name);
        CAPTURE(nodes);
        CAPTURE(std::string(op));
        const std::string fabric =
            nodes == 1 ? "" : R"(, "fabric": {"kind": "star", "link": {"bandwidth": "800 Gb/s", "latency": "150 ns"}})";
        hold_to_bounds(fmt::format(R"({{"version": 1, "name": "t", "library": "nccl",
                "topology": {{"kind": "cluster", "node": "{}", "nodes": {}{}}},
                "collective": {{"op": "{}", "bytes": [{}]}}}})",
                                   name, nodes, fabric, op, sizes),
                       bounds, tally);
      }
    }
  }
  CHECK(tally.compared > 500);
}

}  // namespace bound_grid_slow_test
