// The machine that a log was measured on, compared with the machine of the scenario.
#include "validate/score/unlike_machine.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "validate/measured/measured.hpp"
#include "validate/score/scorecard.hpp"

namespace unlike_machine_test {

using namespace ringsim;
using ringsim::test::has;

namespace {

using About = std::map<std::string, std::string>;

/// A log of nccl-tests: each host with two GPUs, and one row, whose busbw is 2(K-1)/K of 10.49 GB/s.
std::string log_of(const std::vector<std::string>& hosts, const std::string& gpu, const std::string& head = "") {
  std::string text = head + "# Using devices\n";
  int rank = 0;
  for (const std::string& host : hosts)
    for (int device = 0; device < 2; ++device, ++rank)
      text += fmt::format("#  Rank {:2} Group  0 Pid {:6} on {:>10} device {:2} [0000:18:00] {}\n", rank, 900 + rank,
                          host, device, gpu);
  const std::string figures = fmt::format("    100.0   10.49   {}      0", hosts.size() == 2 ? "15.73" : "10.49");
  return text +
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
         "busbw "
         "#wrong\n     1048576        262144     float     sum      -1" +
         figures + figures + '\n';
}
About about_of(const std::string& text) { return parse_measured(text, "log", CollectiveOp::all_reduce).about; }

Scenario on(const std::string& node, int nodes, const std::string& collective = "") {
  return ScenarioFile::parse(fmt::format(R"({{"version": 1, "name": "t", "library": "nccl",
                              "topology": {{"kind": "cluster", "node": "{}", "nodes": {}, "fabric": {{"kind": "star",
                                "link": {{"bandwidth": "100 Gb/s", "latency": "1 us"}}}}}},
                              "collective": {{"op": "all_reduce", "bytes": "1 MiB"{}}}}})",
                                         node, nodes, collective),
                             "t.json")
      .point(0);
}

}  // namespace

TEST_CASE("a log tells its nodes, its GPUs and its release of NCCL") {
  const std::string v100 = "Tesla V100-SXM2-16GB";
  const About about = about_of(log_of({"a", "b"}, v100));
  CHECK(about.at("nodes") == "2");
  CHECK(about.at("gpu") == v100);
  CHECK(!about.contains("library"));
  CHECK(about_of(log_of({"a"}, v100)).at("nodes") == "1");
  // As nccl-tests and NCCL_DEBUG=VERSION print the release: NVIDIA/nccl src/nccl.h.in has the codes.
  const auto release = [&](const std::string& head) { return about_of(log_of({"a"}, v100, head)).at("library"); };
  CHECK(release("# nccl-tests version 2.17.6 nccl-headers=22203 nccl-library=22807\n") == "NCCL 2.28.7");
  CHECK(release("# nccl-tests version 2.17.6 nccl-headers=22203 nccl-library=2804\n") == "NCCL 2.8.4");
  CHECK(release("NCCL version 2.21.5+cuda12.4\n") == "NCCL 2.21.5");
  CHECK(release("# library: NCCL 2.8.4-1\nNCCL version 2.21.5+cuda12.4\n") == "NCCL 2.8.4-1");  // said by a person
}

TEST_CASE("a fact on which the lines of a log disagree, or that lines are missing for, is unknown") {
  const std::string v100 = "Tesla V100-SXM2-16GB", two = log_of({"a", "b"}, v100);
  CHECK(!about_of("NCCL version 2.21.5\nNCCL version 2.22.3\n" + two).contains("library"));
  CHECK(!about_of("RCCL version 2.22.3\n" + two).contains("library"));
  CHECK(!about_of(test::replaced(two, "device  1 [0000:18:00] Tesla V100", "device  1 [0000:18:00] Tesla P100"))
             .contains("gpu"));
  // One of four lines is lost: its host may have been a third one.
  const std::size_t line = two.find("#  Rank  1");
  std::string torn = two;
  torn.erase(line, two.find('\n', line) + 1 - line);
  CHECK(!about_of(torn).contains("nodes"));
  CHECK(about_of(torn).at("gpu") == v100);
}

TEST_CASE("a sentence each names other nodes and other GPUs than those that were measured") {
  const About measured{{"nodes", "2"}, {"gpu", "NVIDIA H100 80GB HBM3"}};
  CHECK(unlike_machine(measured, on("hgx-h100", 2)).empty());
  CHECK(unlike_machine(measured, on("hgx-h100", 3)) ==
        std::vector<std::string>{"the rows were measured on 2 nodes, but the scenario has 3; to change it, set "
                                 "topology.nodes (of a machine given by name: --nodes and --fabric)"});
  // The same architecture, but another GPU of presets.
  CHECK(unlike_machine(measured, on("hgx-h200", 2)) ==
        std::vector<std::string>{R"(the rows were measured on "NVIDIA H100 80GB HBM3", but the scenario has hgx-h200 )"
                                 "with H200; `ringsim list nodes` shows other machines"});
  CHECK(unlike_machine(measured, on("dgx-a100", 1)).size() == 2);
}

TEST_CASE("unknown GPUs, listed ranks, racks and other topologies are not compared") {
  // 18 hosts of a rack with 72 GPUs, which is one node of the preset.
  CHECK(unlike_machine({{"nodes", "18"}, {"gpu", "NVIDIA GB200"}}, on("gb200-nvl72", 1)).empty());
  CHECK(unlike_machine({{"gpu", "Graphics Device"}}, on("dgx-a100", 2)).empty());
  CHECK(unlike_machine({{"nodes", "several"}}, on("dgx-a100", 2)).empty());
  const std::string chosen = R"(, "ranks": ["node0.gpu0", "node0.gpu1"])";
  CHECK(unlike_machine({{"nodes", "1"}}, on("dgx-a100", 2, chosen)).empty());
  const Scenario star = ScenarioFile::parse(R"({"version": 1, "name": "t", "topology": {"kind": "star", "ranks": 4,
      "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}},
      "collective": {"op": "all_reduce", "bytes": "1 MiB", "algorithm": "ring"}})",
                                            "t.json")
                            .point(0);
  CHECK(unlike_machine({{"nodes", "2"}, {"gpu", "V100"}}, star).empty());
}

TEST_CASE("of a machine from a file its GPUs' architecture is compared") {
  const std::string file = test::temporary_file("own.machine.json", R"({"name": "own", "summary": "two GPUs",
    "devices": [{"name": "gpu[0-1]", "kind": "gpu", "attributes": {"sm": "80"}}],
    "links": [{"from": "gpu0", "to": "gpu1", "type": "nvlink3", "count": 4}]})");
  const auto said = [&](const char* gpu) {
    const Scenario scenario =
        ScenarioFile::parse(R"({"version": 1, "name": "t", "topology": {"kind": "cluster", "node_file": ")" + file +
                                R"(", "nodes": 1}, "collective": {"op": "all_reduce", "bytes": "1 MiB",
                                "algorithm": "ring"}})",
                            "t.json")
            .point(0);
    return unlike_machine({{"gpu", gpu}}, scenario);
  };
  CHECK(said("NVIDIA A100-SXM4-40GB").empty());
  CHECK(said("Tesla V100-SXM2-16GB").size() == 1);
}

TEST_CASE("the published tables were measured on the machines of their scenarios") {
  for (const PublishedTable& table : published_tables()) {
    if (table.scenario.empty()) continue;
    CAPTURE(table.id);
    const Scenario scenario = ScenarioFile::parse(table.scenario, table.scenario_file).point(0);
    CHECK(unlike_machine(parse_measured(table.csv, table.csv_file).about, scenario) == std::vector<std::string>{});
  }
}

TEST_CASE("compare warns of another machine than that of the log, and takes the log's release for a machine's name") {
  const std::string log =
      test::temporary_file("log.txt", log_of({"a", "b"}, "Tesla V100-SXM2-16GB", "NCCL version 2.22.3+cuda12.6\n"));
  const test::Outcome outcome = test::run_command({"compare", "azure-ncv4", log, "--collective", "all_reduce"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.err, "log.txt: the rows were measured on 2 nodes, but the scenario has 1;"));
  CHECK(has(outcome.err, R"(but the scenario has azure-ncv4 with A100)"));
  CHECK(has(outcome.out, "\nnccl 2.22.3\n"));
}

}  // namespace unlike_machine_test
