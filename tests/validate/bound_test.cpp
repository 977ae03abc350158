// Bounds of scenarios: which links count, what staging costs, what faults leave, and what the command says.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/bound_graphs.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "validate/closed_forms/bound.hpp"
#include "validate/results/result.hpp"

namespace bound_of_scenario_test {

using namespace ringsim;
using namespace ringsim::literals;
using test::has;
using test::run_command;
using test::temporary_file;

namespace {

std::string scenario_text(const std::string& topology, const std::string& op = "all_gather",
                          const std::string& more = "") {
  return fmt::format(
      R"({{"version": 1, "name": "t", "topology": {}, "collective": {{"op": "{}", "algorithm": "direct", "bytes": "1 GB"}}{}}})",
      topology, op, more);
}

Scenario point(const std::string& topology, const std::string& op = "all_gather", const std::string& more = "") {
  return ScenarioFile::parse(scenario_text(topology, op, more), "t.json").point(0);
}

MachineBounds machine(const Scenario& scenario, Counted counted = Counted::any_way) {
  const Setup setup = set_up(scenario);
  return {scenario, setup, setup.collectives.front().ranks, {}, counted};
}

std::string inverse(const Scenario& scenario, CollectiveOp op, Counted counted = Counted::any_way) {
  return to_string(
      machine(scenario, counted).of({.op = op, .point_to_point = is_point_to_point(op)}, 1_GiB)->inverse_rate);
}

std::string cluster(const char* node, int nodes, const char* rate = "100 Gb/s") {
  return fmt::format(
      R"({{"kind": "cluster", "node": "{}", "nodes": {}, "fabric": {{"kind": "star", "link": {{"bandwidth": "{}", "latency": "1 us"}}}}}})",
      node, nodes, rate);
}

}  // namespace

TEST_CASE("a scenario with a `graph` topology has the optimum of the table, to its last digit") {
  for (const test::KnownOptimum& known : test::known_optima()) {
    CAPTURE(known.name);
    MachineBounds bounds = machine(point(known.graph.json()));
    const int n = bounds.wires().n_ranks();
    for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter}) {
      const Bound bound = *bounds.of({.op = op}, 1_GiB);
      CHECK(to_string(bound.inverse_rate) == known.inverse_rate);
      CHECK(test::digits_as(bound.algbw, known.algbw) == known.algbw);
      CHECK(test::digits_as(bound.algbw * (n - 1) / n, known.busbw) == known.busbw);
      CHECK(bound.is_optimum);
    }
  }
}

TEST_CASE("a library's kernels reach less than the wires, or more by its own fit; the bound is that of the wires") {
  for (const char* node : {"dgx-a100", "hgx-h100", "hgx-b200"}) {
    CAPTURE(node);
    const std::string topology = fmt::format(R"({{"kind": "cluster", "node": "{}", "nodes": 1}})", node);
    const Scenario plain = point(topology);
    const Scenario by_library =
        ScenarioFile::parse(fmt::format(R"({{"version": 1, "name": "t", "topology": {}, "library": "nccl",
            "collective": {{"op": "all_gather", "bytes": "1 GB"}}}})",
                                        topology),
                            "t.json")
            .point(0);
    CHECK(set_up(by_library).topology.links()[0].bandwidth != set_up(plain).topology.links()[0].bandwidth);
    CHECK(inverse(by_library, CollectiveOp::all_gather) == inverse(plain, CollectiveOp::all_gather));
    Bounds bounds;
    CHECK(bounds.of(by_library, set_up(by_library)).at(0)->time == bounds.of(plain, set_up(plain)).at(0)->time);
  }
}

TEST_CASE("ringsim bound: the rows of the table as graph scenarios, exact, with the bottleneck by name") {
  struct Row {
    test::BareGraph graph;
    const char* inverse_rate;
    double algbw;
  };
  for (const Row& row :
       {Row{test::bare_boxes(2, 300, 25, 2), "3/65", 346.6667}, Row{test::bare_boxes(1, 300, 25, 2), "7/300", 342.8571},
        Row{test::bare_ring(8, 1, false), "7/2", 2.285714}, Row{test::bare_dgx1v(), "7/150", 171.4286},
        Row{test::bare_grid(3, 3, false), "4", 2.25}, Row{test::bare_leaf_spine(4, 8, 100, 200), "31/100", 103.2258}}) {
    const std::string file = temporary_file("graph.json", scenario_text(row.graph.json()));
    const auto outcome = run_command({"bound", file, "--format", "json"});
    REQUIRE(outcome.code == 0);
    const auto gather = nlohmann::json::parse(outcome.out).at("bounds").at(0);
    CHECK(gather.at("collective") == "all_gather");
    CHECK(gather.at("inverse_rate") == row.inverse_rate);
    CHECK(gather.at("inverse_rate_of") == "block");
    CHECK(gather.at("bound_algbw_GBps").get<double>() == doctest::Approx(row.algbw).epsilon(1e-6));
    CHECK(gather.at("optimum") == true);
    CHECK(gather.at("cut").size() >= 1);
  }
  // Two DGX A100: 15 blocks enter a GPU over NVLink and its NIC, 325 GB/s.
  const std::string file = temporary_file("a100.json", scenario_text(test::bare_boxes(2, 300, 25, 2).json()));
  const auto outcome = run_command({"bound", file, "--format", "json"});
  const auto gather = nlohmann::json::parse(outcome.out).at("bounds").at(0);
  CHECK(gather.at("cut") == nlohmann::json{"nvswitch0 -> gpu0", "rail0 -> gpu0"});
  CHECK(gather.at("bottleneck") ==
        "15 of the 16 blocks must enter gpu0 over nvswitch0 -> gpu0 (300 GB/s) and rail0 -> gpu0 (25 GB/s)");
  CHECK(gather.at("bound_us") == 2884.615384);  // 62.5 MB * 3/65 s/GB, down to the picosecond
  const std::string table = run_command({"bound", file}).out;
  CHECK(has(table, "3/65 per block  optimum"));
  CHECK(has(table, "takes 5769.2 us."));
  CHECK(has(table, "\nall_gather: 15 of the 16 blocks must enter gpu0 over "));
}

TEST_CASE("the bottleneck is marked in the picture of the topology, and only if asked for") {
  const std::string file = temporary_file("marked.json", scenario_text(test::bare_leaf_spine(2, 8, 100, 25).json()));
  const std::string dot = run_command({"topology", "export", file, "--to", "dot", "--bound"}).out;
  CHECK(dot.find("\"leaf0\" -> \"spine0\" [penwidth=3, color=\"#424242\", tooltip=\"link 25 GB/s\", dir=none, "
                 "style=dashed, label=\"bottleneck\"]") != std::string::npos);
  const std::string graphml = run_command({"topology", "export", file, "--to", "graphml", "--bound"}).out;
  CHECK(graphml.find("<data key=\"bottleneck\">true</data>") != std::string::npos);
  CHECK(run_command({"topology", "export", file, "--to", "graphml"}).out.find("bottleneck") == std::string::npos);
  const auto refused = run_command({"topology", "export", file, "--to", "machine", "--bound"});
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "--bound: expected --to dot or --to graphml as well, found a machine format"));
  const auto barrier = run_command({"topology", "export", file, "--to", "dot", "--bound", "--set",
                                    R"(collective={"op": "barrier", "algorithm": "dissemination", "bytes": "0 B"})"});
  CHECK(barrier.code == 3);
  CHECK(has(barrier.err, "/collective/op: expected a collective that moves bytes, for --bound, found barrier"));
}

TEST_CASE(
    "a link counts if a path between ranks takes it: with NVLink, PCIe does not, nor do the NICs of a single node") {
  const Scenario one = point(R"({"kind": "cluster", "node": "dgx-1v", "nodes": 1})");
  // Six NVLinks of 25 GB/s * 0.9696 = 24.24 GB/s at each of eight GPUs.
  CHECK(inverse(one, CollectiveOp::all_gather) == to_string(fraction(7 * 100, 6 * 2424)));
  // All links: x16 of PCIe generation 3, 12 GB/s, which two GPUs share on their way to the others.
  CHECK(as_double(machine(one, Counted::all).of({.op = CollectiveOp::all_gather}, 1_GiB)->inverse_rate) <
        7.0 / (6 * 24.24) * 0.95);
  const auto outcome = run_command(
      {"bound", temporary_file("one.json", scenario_text(R"({"kind": "cluster", "node": "dgx-1v", "nodes": 1})")),
       "--all-links"});
  CHECK(outcome.code == 0);
}

TEST_CASE("the bound of LL, which takes the links of GPUDirect in any case, is the same with gpudirect false") {
  const auto bound = [](const char* transport) {
    const Scenario scenario =
        point(cluster("dgx-1v", 2), "all_gather", fmt::format(R"(, "transport": {{{}}})", transport));
    MachineBounds bounds = machine(scenario);
    return bounds.of({.op = CollectiveOp::all_gather}, 1_GiB)->time;
  };
  CHECK(bound(R"("protocol": "ll", "gpudirect": false)") == bound(R"("protocol": "ll")"));
  CHECK(bound(R"("gpudirect": false)") > bound(R"("gpudirect": true)"));  // 1/3 and 391/2000
}

TEST_CASE("without GPUDirect what enters and leaves a node crosses the PCIe uplinks once more") {
  const std::string two = cluster("dgx-1v", 2);
  const Scenario direct = point(two), staged = point(two, "all_gather", R"(, "transport": {"gpudirect": false})");
  // Four NICs of 12 GB/s carry 8 of 16 blocks one way, and a byte that they read from a GPU costs 1.173; staged, the
  // four uplinks carry 8 in and 8 out in one direction.
  CHECK(inverse(direct, CollectiveOp::all_gather) == "391/2000");  // 8 * 1.173 / 48
  CHECK(inverse(staged, CollectiveOp::all_gather) == "1/3");
  MachineBounds bounds = machine(staged);
  const Bound bound = *bounds.of({.op = CollectiveOp::all_gather}, 1_GiB);
  CHECK(bound.why ==
        "8 of the 16 blocks must enter node0, crossing once; 8 of the 16 blocks must leave node0, crossing once "
        "node*.pcie* -> node*.cpu* (4 links, 48 GB/s)");
  CHECK_FALSE(bound.is_optimum);
  // And the runs, which share those links, come out above.
  for (const Scenario& scenario : {direct, staged})
    CHECK(predict(scenario).time >=
          machine(scenario).of({.op = CollectiveOp::all_gather}, scenario.main().request.bytes)->time);
}

TEST_CASE("a collective is bound by its own messages' ways, not by those of sends and receives") {
  // Of node1's four NICs one is down. Messages of collectives go by PXN to a GPU at one of the others, which reads it
  // for 1.173 of 12 GB/s: 8 * 1.173 / 36. Sends of the GPUs at the broken one may rest in host memory, so that nic0
  // has all of its cable, and two read GPUs for 12 / 1.173, in steps of 10 MB/s 10.24 each: 64 / 32.48, over 16.
  const char* broken = R"(, "faults": [{"link": "node1.nic1", "state": "down"}])";
  const Scenario gather = point(cluster("dgx-1v", 2), "all_gather", broken),
                 swap = point(cluster("dgx-1v", 2), "all_to_all", broken);
  CHECK(inverse(gather, CollectiveOp::all_gather) == "391/1500");
  CHECK(inverse(swap, CollectiveOp::all_to_all) == "400/203");
  // A machine knows the ways of both, as the rows of `ringsim bound` ask for them.
  CHECK(inverse(gather, CollectiveOp::all_to_all) == "400/203");
  CHECK(inverse(swap, CollectiveOp::all_gather) == "391/1500");
  // Also the floor of ways that nothing has asked for before.
  CHECK(machine(gather).latency_floor({.op = CollectiveOp::all_to_all, .point_to_point = true}) ==
        machine(swap).latency_floor({.op = CollectiveOp::all_to_all, .point_to_point = true}));
  // All jobs of a run send in the way of the scenario's own collective.
  const Scenario jobs = point(cluster("dgx-1v", 2), "all_gather",
                              broken + std::string(R"(, "jobs": [{"name": "swap", "collective": {"op": "all_to_all",
                                  "algorithm": "direct", "bytes": "1 GB"}}])"));
  Bounds bounds;
  const auto of_jobs = bounds.of(jobs, set_up(jobs));
  REQUIRE(of_jobs.size() == 2);
  CHECK(to_string(of_jobs[0]->inverse_rate) == "391/1500");
  // 64 blocks leave node1, over three NICs that read GPUs: 64 * 1.173 / 36.
  CHECK(to_string(of_jobs[1]->inverse_rate) == "782/375");
  // Also where a point of the same sweep has it as its own collective, on the same machine.
  CHECK(to_string(bounds.of(swap, set_up(swap))[0]->inverse_rate) == "400/203");
  CHECK(to_string(bounds.of(jobs, set_up(jobs))[1]->inverse_rate) == "782/375");
  CHECK(bounds.n_machines() == 1);
}

TEST_CASE("the bound of a scenario whose switch adds is that of sums in switches: a message enters each GPU once") {
  const char* text =
      R"({"version": 1, "name": "t", "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
          "collective": {"op": "all_reduce", "algorithm": "in_switch", "bytes": "1 GB"}})";
  CHECK(own_bound(ScenarioFile::parse(text, "t.json").point(0)).algbw ==
        50.0);  // without the switch's sums: 8 / 14 of it
}

TEST_CASE("where NCCL takes NVLS, alone or in trees, the bound is that of sums in switches") {
  for (const int nodes : {1, 2}) {
    CAPTURE(nodes);
    const Scenario nvls =
        ScenarioFile::parse(
            fmt::format(R"({{"version": 1, "name": "t", "topology": {}, "collective": {{"op": "all_reduce",
            "bytes": "1 GiB"}}, "library": {{"name": "nccl", "env": {{"NCCL_ALGO": "{}"}}}}}})",
                        cluster("hgx-h100", nodes, "800 Gb/s"), nodes == 1 ? "NVLS" : "NVLSTree"),
            "t.json")
            .point(0);
    const Setup setup = set_up(nvls);
    Bounds bounds;
    const Picoseconds bound = bounds.of(nvls, setup).at(0)->time;
    // The message enters each GPU once, over NVLink (376.02 GB/s) and, with several nodes, over the NICs of a node:
    // 384.
    CHECK(bound == time_at(1_GiB, fraction(1, nodes == 1 ? 376'020'000'000 : 384'000'000'000)));
    CHECK(predict(nvls).time > bound);
    // Only GPUs that add up could not be so fast.
    CHECK(predict(nvls).time < machine(nvls).of({.op = CollectiveOp::all_reduce}, 1_GiB)->time);
  }
}

TEST_CASE("faults that hold from the start to the end are the machine; others leave it at its best") {
  const std::string star = R"({"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}})";
  const auto with = [&](const std::string& faults) {
    return inverse(point(star, "all_gather", fmt::format(R"(, "faults": [{}])", faults)), CollectiveOp::all_gather);
  };
  CHECK(inverse(point(star), CollectiveOp::all_gather) == "3/10");
  CHECK(with(R"({"link": "gpu1", "bandwidth": "25%"})") == "6/5");  // three blocks into a port of 2.5 GB/s
  CHECK(with(R"({"link": "gpu1", "bandwidth": "25%", "at": "1 ms"})") == "3/10");
  CHECK(with(R"({"link": "gpu1", "bandwidth": "25%", "until": "5 s"})") == "3/10");
  // A cable that is down takes its capacity along; data goes the other way round.
  const std::string ring = R"({"kind": "ring", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}})";
  const Scenario cut =
      point(ring, "all_gather",
            R"(, "faults": [{"link": "gpu0 -> gpu1", "state": "down"}, {"link": "gpu1 -> gpu0", "state": "down"}])");
  CHECK(inverse(point(ring), CollectiveOp::all_gather) == "3/20");
  CHECK(inverse(cut, CollectiveOp::all_gather) == "3/10");
}

TEST_CASE("ranks that nothing joins are an error, a barrier has no bound, and one rank needs no time") {
  test::BareGraph g;
  g.gpus(3).cable("gpu0", "gpu1", 1).cable("gpu1", "gpu2", 1, /*one_way=*/true);
  const auto outcome = run_command({"bound", temporary_file("apart.json", scenario_text(g.json()))});
  CHECK(outcome.code == 3);
  CHECK(has(outcome.err, "apart.json: /topology: no links lead to some of the ranks, or from them"));
  const Scenario star = point(R"({"kind": "star", "ranks": 1, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}})");
  CHECK_FALSE(machine(star).of({.op = CollectiveOp::barrier}, 0_B).has_value());
  CHECK(machine(star).of({.op = CollectiveOp::all_gather}, 1_GiB)->time == Picoseconds{0});
}

TEST_CASE("a bound counts cables and switches that the routing leaves unused, and the command says which") {
  // Two cables of 10 GB/s side by side: the block of each of two ranks crosses 20 GB/s, but static routing takes one.
  test::BareGraph parallel;
  parallel.gpus(2).cable("gpu0", "gpu1", 10).cable("gpu0", "gpu1", 10);
  // A way over one switch, and a longer one over two, which no shortest path takes.
  test::BareGraph longer;
  longer.gpus(2).add_switch("switch0").add_switch("switch1").add_switch("switch2");
  longer.cable("gpu0", "switch0", 10).cable("switch0", "gpu1", 10);
  longer.cable("gpu0", "switch1", 10).cable("switch1", "switch2", 10).cable("switch2", "gpu1", 10);
  for (const test::BareGraph* graph : {&parallel, &longer}) {
    const Scenario scenario = point(graph->json());
    CHECK(inverse(scenario, CollectiveOp::all_gather) == "1/20");
    CHECK(inverse(scenario, CollectiveOp::all_gather, Counted::routed) == "1/10");
    CHECK(inverse(scenario, CollectiveOp::all_gather, Counted::all) == "1/20");
    CHECK(machine(scenario, Counted::routed).unused().empty());
  }
  CHECK(machine(point(parallel.json())).unused().size() == 2);  // one cable, both ways
  CHECK(machine(point(longer.json())).unused().size() == 6);
  const std::string file = temporary_file("parallel.json", scenario_text(parallel.json()));
  const auto told = run_command({"bound", file});
  REQUIRE(told.code == 0);
  // 1 GB in two blocks over 20 and over 10 GB/s.
  CHECK(has(told.out, "all_gather                       25.000  40.000  20.000     50.000  lower bound"));
  CHECK(has(told.out, "The routing (static) leaves 2 of them unused: gpu* ->\n  gpu* (2 links, 20 GB/s)."));
  CHECK_FALSE(has(told.out, "optimum"));  // trees that reach it need both cables
  const auto document = nlohmann::json::parse(run_command({"bound", file, "--format", "json"}).out);
  CHECK(document.at("unused_links") == nlohmann::json({"gpu0 -> gpu1", "gpu1 -> gpu0"}));
  CHECK(document.at("bounds").at(0).at("bound_as_routed_us").get<double>() == 50000);
  // Spread over both cables nothing is left unused.
  const auto spread = run_command({"bound", file, "--set", "network.routing=packet_spray"});
  CHECK_FALSE(has(spread.out, "unused"));
  CHECK(has(spread.out, "optimum"));
}

TEST_CASE("within one machine NICs and their fabric stay out of a bound, however many ways there are outside") {
  const Scenario one = point(cluster("dgx-a100", 1));
  CHECK(machine(one).unused().empty());
  const Scenario two = point(cluster("dgx-a100", 2));
  CHECK(inverse(two, CollectiveOp::all_gather) == inverse(two, CollectiveOp::all_gather, Counted::routed));
}

TEST_CASE("blocks are whole bytes: the bound of 7 bytes over 8 ranks is 0, that of 17 counts two per rank") {
  const Scenario star = point(R"({"kind": "star", "ranks": 8, "link": {"bandwidth": "1 GB/s", "latency": "0 us"}})");
  CHECK(machine(star).of({.op = CollectiveOp::all_gather}, 7_B)->time == Picoseconds{0});
  CHECK(machine(star).of({.op = CollectiveOp::all_gather}, 17_B)->time == Picoseconds{14'000});
}

TEST_CASE("the latency floor is the longest of the shortest ways: from the root, to it, or between any two") {
  test::BareGraph g;
  g.gpus(3);
  g.latency = Picoseconds{1'000'000};
  g.cable("gpu0", "gpu1", 1).cable("gpu1", "gpu2", 1);
  const Scenario line = point(g.json());
  MachineBounds bounds = machine(line);
  CHECK(bounds.latency_floor({.op = CollectiveOp::all_gather}) == Picoseconds{2'000'000});
  CHECK(bounds.latency_floor({.op = CollectiveOp::broadcast, .root = 1}) == Picoseconds{1'000'000});
  CHECK(bounds.latency_floor({.op = CollectiveOp::reduce, .root = 2}) == Picoseconds{2'000'000});
}

TEST_CASE("nothing is faster than its latency floor, and pairs, which need not hear of all others, have none") {
  const auto floors = [](const std::string& op, const std::string& more) {
    const std::string text = R"({"version": 1, "name": "t", "topology": {"kind": "torus", "dimensions": [3, 4],
        "link": {"bandwidth": "10 GB/s", "latency": "1 us"}}, "collective": {"op": ")" +
                             op + R"(", "bytes": "96 B")" + more + "}}";
    Bounds bounds;
    const std::vector<Result> rows = results_of(ScenarioFile::parse(text, "t.json").point(0), {}, &bounds);
    REQUIRE(rows.size() == 1);
    if (rows[0].latency_floor) CHECK(*rows[0].latency_floor <= rows[0].prediction.time);
    return rows[0].latency_floor;
  };
  // From corner to corner of a torus of 3 x 4: one way along the first ring, two along the second.
  CHECK(floors("all_reduce", R"(, "algorithm": "recursive_doubling")") == Picoseconds{3'000'000});
  CHECK(floors("all_gather", R"(, "algorithm": "bruck")") == Picoseconds{3'000'000});
  CHECK(floors("broadcast", R"(, "algorithm": "binomial_tree")") == Picoseconds{3'000'000});
  CHECK(floors("all_to_all", R"(, "algorithm": "pairwise")") == Picoseconds{3'000'000});
  CHECK_FALSE(floors("send_recv", R"(, "algorithm": "direct")").has_value());
}

TEST_CASE("--bound: each result has its share, a machine is worked out once, and `ideal` has no bound") {
  const std::string text = R"({"version": 1, "name": "t",
      "topology": {"kind": "star", "ranks": [4, 8], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "collective": {"op": "all_reduce", "algorithm": ["ring", "direct"], "bytes": ["1 MiB", "1 GiB"]}})";
  const ScenarioFile file = ScenarioFile::parse(text, "t.json");
  Bounds bounds;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario scenario = file.point(i);
    const std::vector<Result> rows = results_of(scenario, {}, &bounds);
    REQUIRE(rows.size() == 1);
    REQUIRE(of_bound(rows[0]).has_value());
    CHECK(*of_bound(rows[0]) <= 1);
    // But for latency both algorithms are at the bound.
    if (scenario.main().request.bytes == 1_GiB) CHECK(*of_bound(rows[0]) > 0.99);
  }
  CHECK(bounds.n_machines() == 2);
  const std::string path = temporary_file("shares.json", text);
  const auto rows = nlohmann::json::parse(run_command({"run", path, "--bound", "--format", "json"}).out).at("results");
  for (const auto& row : rows) {
    CHECK(row.at("of_bound").get<double>() > 0);
    CHECK(row.at("of_bound").get<double>() == row.at("bound_us").get<double>() / row.at("time_us").get<double>());
    CHECK(row.at("latency_floor_us") == 2);  // in, and out of the switch
  }
  CHECK(has(run_command({"run", path, "--bound"}).out, "of bound"));
  CHECK(!has(run_command({"run", path}).out, "of bound"));
  CHECK(has(run_command({"run", path, "--bound", "--format", "csv"}).out, ",bound_us,of_bound,latency_floor_us,"));
  CHECK(!has(run_command({"run", path, "--format", "json"}).out, "of_bound"));
  CHECK(!has(run_command({"run", path, "--bound", "--format", "csv", "--set", "network.model=ideal"}).out, "of_bound"));
}

TEST_CASE("sweep --bound has the share in its rows and for --assert; rows with and without it have different keys") {
  const std::string path = temporary_file("swept.json", R"({"version": 1, "name": "t",
      "topology": {"kind": "star", "ranks": [4, 8], "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  const std::string plain = temporary_file("plain.jsonl", ""), bounded = temporary_file("bounded.jsonl", "");
  for (const std::string& file : {plain, bounded}) std::filesystem::remove(file);
  CHECK(run_command({"sweep", path, "-o", plain}).code == 0);
  CHECK(run_command({"sweep", path, "-o", bounded, "--bound", "--assert", "of_bound == 1"}).code == 0);
  CHECK(run_command({"sweep", path, "--bound", "--assert", "of_bound < 1"}).code == 1);
  const auto key = [](const std::string& file) {
    const std::string rows = test::read_file(file);
    return nlohmann::json::parse(rows.substr(0, rows.find('\n'))).at("key").get<std::string>();
  };
  CHECK(key(plain) != key(bounded));
  const auto refused = run_command({"sweep", path, "-o", plain, "--resume", "--bound"});
  CHECK(refused.code == 3);
  CHECK(has(refused.err, "only one of the sweeps uses --bound"));
  CHECK(run_command({"sweep", path, "-o", bounded, "--resume", "--bound"}).code == 0);
}

TEST_CASE("compare --bound adds the shares of measured and of predicted times") {
  const std::string measured = temporary_file("m.csv", "bytes,time_us,algbw_GBps,busbw_GBps\n1000000,1000,1.0,1.5\n");
  const std::string path = temporary_file("c.json", R"({"version": 1, "name": "t",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MB"}})");
  const auto outcome = run_command({"compare", path, measured, "--collective", "all_reduce", "--bound"});
  REQUIRE(outcome.code == 0);
  // 2 * 3/4 MB at 10 GB/s take 150 us: 15 % of what was measured, all of what the ring takes.
  CHECK(outcome.out.find("latency floor us  bandwidth bound us  measured of bound") != std::string::npos);
  CHECK(outcome.out.find("15.0 %") != std::string::npos);
  CHECK(outcome.out.find("100.0 %") != std::string::npos);
}

TEST_CASE("a host without the root sends its own blocks to it and receives its own, over however narrow links") {
  // Without GPUDirect what leaves a dgx-1v crosses its four PCIe uplinks of 12 GB/s. On the last of three nodes they
  // have 5 % of that, 2.4 GB/s together: its 8 blocks of 24 take 8/2.4 = 10/3 s per GB of a block, either way.
  const std::string narrow = R"(, "transport": {"gpudirect": false},
    "faults": [{"link": "node2.cpu0", "bandwidth": "5%"}, {"link": "node2.cpu1", "bandwidth": "5%"}])";
  for (const auto& each : {std::pair{"gather", "leave"}, std::pair{"scatter", "enter"}}) {
    CAPTURE(each.first);
    const Bound bound = own_bound(point(cluster("dgx-1v", 3), each.first, narrow));
    CHECK(to_string(bound.inverse_rate) == "10/3");
    CHECK(has(bound.why, fmt::format("8 of the 24 blocks must {} node2", each.second)));
  }
}

TEST_CASE("of scenarios that differ in one key of their transport each has its own bound, kept or not") {
  const std::string rails = R"({"kind": "cluster", "node": "dgx-a100", "nodes": 3,
    "fabric": {"kind": "rail", "nodes_per_group": 3, "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}})";
  Bounds kept;
  std::vector<bool> optimum;
  for (const char* transport :
       {"{}", R"({"pxn": false})", R"({"gpudirect": false})", R"({"acs": true})", R"({"pxn": true})"}) {
    CAPTURE(transport);
    const Scenario scenario = point(rails, "all_gather", fmt::format(R"(, "transport": {})", transport));
    const Bound alone = own_bound(scenario), found = kept.of(scenario, set_up(scenario)).front().value();
    CHECK(found.inverse_rate == alone.inverse_rate);
    CHECK(found.is_optimum == alone.is_optimum);
    CHECK(found.why == alone.why);
    CHECK(found.time == alone.time);
    optimum.push_back(found.is_optimum);
  }
  // Without PXN data crosses the spine, and whether trees would reach the bound there is not known.
  CHECK(optimum[0]);
  CHECK_FALSE(optimum[1]);
}

}  // namespace bound_of_scenario_test
