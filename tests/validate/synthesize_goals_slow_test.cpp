// What synthesis must reach on five machines: within 2 % of the optimum for large messages, and never behind the
// catalog.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "tests/support/bound_graphs.hpp"
#include "validate/synthesis/synthesize.hpp"

namespace synthesize_goals_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

struct Machine {
  std::string name, topology, faults;
};

std::string cluster_of(const std::string& node, int nodes, const std::string& cable) {
  return fmt::format(
      R"({{"kind": "cluster", "node": "{}", "nodes": {}, "fabric": {{"kind": "star", "link": {{"bandwidth": "{}", "latency": "1 us"}}}}}})",
      node, nodes, cable);
}

std::vector<Machine> five_machines() {
  test::BareGraph leaves;  // two leaves of eight ports of 100 GB/s, and half as much between them
  leaves.latency = 1us;
  leaves.gpus(16).add_switch("leaf0").add_switch("leaf1").add_switch("spine0");
  for (int g = 0; g < 16; ++g) leaves.cable(fmt::format("gpu{}", g), fmt::format("leaf{}", g / 8), 100);
  for (const char* leaf : {"leaf0", "leaf1"}) leaves.cable(leaf, "spine0", 400);
  return {{"DGX-1V", cluster_of("dgx-1v", 1, "100 Gb/s"), ""},
          {"two DGX A100", cluster_of("dgx-a100", 2, "200 Gb/s"), ""},
          {"torus 4x4",
           R"({"kind": "torus", "dimensions": [4, 4], "link": {"bandwidth": "25 GB/s", "latency": "1 us"}})", ""},
          {"leaf-spine 2:1", leaves.json(), ""},
          {"two DGX-1V, an NVLink and a NIC missing", cluster_of("dgx-1v", 2, "100 Gb/s"),
           R"(, "faults": [{"link": "node0.gpu0 -> node0.gpu4", "state": "down"},
                           {"link": "node0.gpu4 -> node0.gpu0", "state": "down"},
                           {"link": "node1.nic1", "state": "down"}])"}};
}

Synthesis made_for(const Machine& machine, const std::string& op, const std::string& bytes) {
  const Scenario scenario =
      ScenarioFile::parse(
          fmt::format(
              R"({{"version": 1, "name": "goal", "topology": {}, "collective": {{"op": "{}", "algorithm": "ring", "bytes": "{}"}}{}}})",
              machine.topology, op, bytes, machine.faults),
          "goal.json")
          .point(0);
  return synthesize(scenario, set_up(scenario));
}

}  // namespace

TEST_CASE("at 1 GiB all-gather, reduce-scatter and all-reduce come within 2 % of the optimum on five machines") {
  // What is written is the faster of what was made and the catalog: an all-reduce's target is that of both halves.
  std::string table =
      fmt::format("\n{:40} {:15} {:>12} {:>8} {:>7}\n", "machine", "op", "time us", "/ target", "height");
  for (const Machine& machine : five_machines())
    for (const char* op : {"all_gather", "reduce_scatter", "all_reduce"}) {
      const Synthesis made = made_for(machine, op, "1 GiB");
      const double over =
          static_cast<double>(made.made.front().time.count()) / static_cast<double>(made.target.count());
      int height = 0;
      for (const auto* trees : {&made.trees.down, &made.trees.up})
        if (*trees) height = std::max(height, (*trees)->highest);
      table += fmt::format("{:40} {:15} {:12.3f} {:8.4f} {:7}\n", machine.name, op,
                           microseconds(made.made.front().time), over, height);
      CAPTURE(machine.name);
      CAPTURE(op);
      CHECK(over >= 1);
      CHECK(over <= 1.02);
    }
  MESSAGE(table);
}

}  // namespace synthesize_goals_test
