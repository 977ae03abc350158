// Calibration as a scenario has it: what it scales, what it adds, and what is no calibration.
#include "scenarios/calibration.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "validate/closed_forms/form_of.hpp"

namespace calibration_test {

using namespace ringsim;
using namespace std::chrono_literals;

namespace {

ScenarioFile scenario(const std::string& topology, const std::string& calibration, const std::string& name = "s.json") {
  return ScenarioFile::parse(R"({"version": 1, "topology": )" + topology + R"(, "collective": {"op": "all_reduce",
    "algorithm": "ring", "bytes": "4 MB"})" +
                                 (calibration.empty() ? "" : R"(, "calibration": )" + calibration) + "}",
                             name);
}

const std::string star = R"({"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0.5 us"}})";

Link link_of(const Topology& topology, const std::string& from, const std::string& to) {
  for (const Link& link : topology.links())
    if (topology.node(link.from).name == from && topology.node(link.to).name == to) return link;
  FAIL("no link " << from << " -> " << to);
  return {};
}

std::string refused(const std::string& calibration) {
  return ringsim::test::complaint([&] { scenario(star, calibration).point(0); });
}

}  // namespace

TEST_CASE("links inside nodes, adapters' ports and cables, and all latencies are scaled each by its factor") {
  const std::string cluster = R"({"kind": "cluster", "node": "abci-v", "nodes": 2, "fabric": {"kind": "leaf_spine",
    "nodes_per_leaf": 1, "spines": 1, "link": {"bandwidth": "100 Gb/s", "latency": "100 ns"},
    "uplink": {"bandwidth": "50 Gb/s", "latency": "200 ns"}}})";
  const Topology plain = topology_of(scenario(cluster, "").point(0));
  const Topology scaled = topology_of(
      scenario(cluster, R"({"latency_scale": 3, "efficiency_inside": 0.5, "efficiency_between": 0.8})").point(0));
  struct Row {
    const char *from, *to;
    double factor;
  };
  for (const Row& row : std::vector<Row>{{"node0.gpu0", "node0.gpu1", 0.5},
                                         {"node1.gpu3", "node1.pcie1", 0.5},
                                         {"node0.cpu0", "node0.mem0", 0.5},
                                         {"node0.nic0", "leaf0", 0.8},
                                         {"leaf1", "node1.nic1", 0.8},
                                         {"leaf0", "spine0", 0.8}}) {
    CAPTURE(row.from);
    const Link before = link_of(plain, row.from, row.to), after = link_of(scaled, row.from, row.to);
    CHECK(static_cast<double>(after.bandwidth.bytes_per_second) ==
          doctest::Approx(row.factor * static_cast<double>(before.bandwidth.bytes_per_second)));
    CHECK(after.latency == 3 * before.latency);
  }
  CHECK(scaled.n_links() == plain.n_links());
}

TEST_CASE("every kind of fabric and of free topology is scaled") {
  const std::string link = R"("link": {"bandwidth": "100 Gb/s", "latency": "1 us"})";
  const std::string other = R"({"bandwidth": "50 Gb/s", "latency": "2 us"})";
  const std::vector<std::string> fabrics = {
      R"("kind": "star", )" + link,
      R"("kind": "fat_tree", "k": 4, )" + link,
      R"("kind": "rail", "nodes_per_group": 1, "spines": 1, "uplink": )" + other + ", " + link,
      R"("kind": "torus", "dimensions": [2], "hop": )" + other + ", " + link,
      R"("kind": "dragonfly", "groups": 2, "routers": 1, "nodes_per_router": 1, "global_links": 1, "local": )" + other +
          R"(, "global": )" + other + ", " + link,
      link +
          R"(, "kind": "star", "cables": [{"from": "node0.nic0", "to": "leaf0", "bandwidth": "50 Gb/s", "latency": "9 us"}])"};
  std::vector<std::string> topologies = {star, R"({"kind": "ring", "ranks": 4, )" + link + "}",
                                         R"({"kind": "full_mesh", "ranks": 4, )" + link + "}",
                                         R"({"kind": "torus", "dimensions": [2, 2], )" + link + "}",
                                         R"({"kind": "graph", "nodes": [{"name": "a", "kind": "gpu"}, {"name": "b",
                                            "kind": "gpu"}], "links": [{"from": "a", "to": "b", "bandwidth": "1 GB/s",
                                            "latency": "1 us"}]})"};
  for (const std::string& fabric : fabrics)
    topologies.push_back(R"({"kind": "cluster", "node": "abci-v", "nodes": 2, "fabric": {)" + fabric + "}}");
  for (const std::string& text : topologies) {
    CAPTURE(text);
    const Topology plain = topology_of(scenario(text, "").point(0));
    const Topology scaled = topology_of(scenario(text, R"({"latency_scale": 2, "efficiency_between": 0.25})").point(0));
    REQUIRE(plain.n_links() == scaled.n_links());
    for (std::uint32_t l = 0; l < plain.n_links(); ++l) {
      const Link &before = plain.link({l}), &after = scaled.link({l});
      const bool inside = plain.node(before.from).host && plain.node(before.from).host == plain.node(before.to).host;
      CAPTURE(plain.link_name({l}));
      CHECK(after.latency == 2 * before.latency);
      CHECK(static_cast<double>(after.bandwidth.bytes_per_second) ==
            doctest::Approx((inside ? 1 : 0.25) * static_cast<double>(before.bandwidth.bytes_per_second)));
    }
  }
}

TEST_CASE("a launch is added once to each collective, and to nothing for one rank") {
  // 6 (1 us + 1 MB/(10 GB/s)) = 606 us; half the rate 1206 us; twice the latency 612 us.
  const auto time = [](const std::string& calibration) { return predict(scenario(star, calibration).point(0)).time; };
  CHECK(time("") == 606us);
  CHECK(time(R"({"launch": "5 us"})") == 611us);
  CHECK(time(R"({"efficiency_between": 0.5})") == 1206us);
  CHECK(time(R"({"latency_scale": 2})") == 612us);
  CHECK(time(R"({"efficiency_inside": 0.5})") == 606us);  // a star has no nodes
  const std::string alone = R"({"kind": "star", "ranks": 1, "link": {"bandwidth": "10 GB/s", "latency": "0.5 us"}})";
  CHECK(predict(scenario(alone, R"({"launch": "5 us"})").point(0)).time == 0us);
  // Beside what the protocol and the transport say.
  const auto both = ScenarioFile::parse(R"({"version": 1, "topology": )" + star + R"(, "collective": {"op":
    "all_reduce", "algorithm": "ring", "bytes": "4 MB"}, "transport": {"launch": "3 us"}, "calibration": {"launch":
    "5 us"}})",
                                        "s.json");
  CHECK(predict(both.point(0)).time == 614us);
  CHECK(form_of(both.point(0), set_up(both.point(0))).value().time == 614us);
}

TEST_CASE("a scenario without factors is the same question as one with none listed") {
  CHECK(scenario(star, "{}").hash() == scenario(star, "").hash());
  CHECK(scenario(star, "{}").point(0).hash == scenario(star, "").point(0).hash);
  CHECK_FALSE(scenario(star, "{}").point(0).calibration.has_value());
  CHECK(scenario(star, R"({"launch": "1 us"})").hash() != scenario(star, "").hash());
  CHECK(predict(scenario(star, "").point(0)).calibration == "");
  CHECK(predict(scenario(star, R"({"launch": "1500 ns", "efficiency_between": 0.85})").point(0)).calibration ==
        "launch 1.5 us, efficiency_between 0.85");
  CHECK(scenario(star, R"({"latency_scale": [1, 2.5]})").size() == 2);
}

TEST_CASE("what is no factor is refused where it stands") {
  CHECK(refused(R"({"latency_scale": 0})") ==
        "s.json: /calibration/latency_scale: expected a number from 0.01 to 100, found 0");
  CHECK(refused(R"({"latency_scale": "2"})") ==
        "s.json: /calibration/latency_scale: expected a number from 0.01 to 100, found \"2\"\n  hint: write the factor "
        "without quotes: 0.9");
  CHECK(refused(R"({"efficiency_inside": 0.12345678})") ==
        "s.json: /calibration/efficiency_inside: expected a number from 0.01 to 100, found 0.12345678\n  hint: a "
        "factor can have at most 6 decimals");
  CHECK(refused(R"({"launch": 5})").starts_with("s.json: /calibration/launch: expected a time such as"));
  CHECK(refused(R"({"efficency_inside": 0.9})").find("did you mean \"efficiency_inside\"?") != std::string::npos);
  CHECK(refused(R"({"file": "no/such.json"})").starts_with("s.json: /calibration/file: expected a file"));
}

TEST_CASE("a calibration's file is read strictly") {
  const auto read = [](const std::string& text) {
    std::vector<std::string> warnings;
    const Calibration found = read_calibration(text, "c.json", warnings);
    for (const std::string& warning : warnings) MESSAGE(warning);
    return to_string(found);
  };
  CHECK(read(R"({"factors": {"launch": "2 us", "latency_scale": 1.5, "efficiency_inside": 0.9}})") ==
        "launch 2 us, latency_scale 1.5, efficiency_inside 0.9");
  CHECK(read(R"({"factors": {}})") == "nothing");
  const auto wrong = [&](const std::string& text) { return ringsim::test::complaint([&] { read(text); }); };
  CHECK(wrong("{}") ==
        "c.json: expected the key \"factors\", found none\n  hint: `ringsim calibrate` writes these files");
  CHECK(wrong(R"({"factors": {"file": "other.json"}})")
            .starts_with("c.json: /factors/file: expected a calibration key, found another key"));
  CHECK(wrong(R"({"factors": {"launch": 2}})").starts_with("c.json: /factors/launch: expected a time such as"));
  CHECK(wrong(R"({"factors": {"latency_scale": 1000}})").starts_with("c.json: /factors/latency_scale: expected a nu"));
  CHECK(wrong(R"({"factors": {}, "factor": {}})").find("did you mean \"factors\"?") != std::string::npos);
  CHECK(wrong(R"({"factors": [1]})") == "c.json: /factors: expected an object, found a list");
  CHECK(wrong("{").starts_with("c.json:1:"));
}

TEST_CASE("a file stands for its factors, is part of the question, and one of another model warns") {
  const std::string path =
      test::temporary_file("c.json", R"({"factors": {"efficiency_between": 0.5}, "model_version": )" +
                                         std::to_string(model_version + 1) + "}");
  const std::string file = R"({"file": ")" + path + R"("})";
  const Scenario point = scenario(star, file).point(0);
  CHECK(predict(point).time == 1206us);
  REQUIRE(point.warnings.size() == 1);
  CHECK(point.warnings[0] == path + ": fitted with model version " + std::to_string(model_version + 1) +
                                 ", but this is version " + std::to_string(model_version) + ": calibrate again");
  CHECK(point.hash != scenario(star, "").point(0).hash);
  CHECK(refused(R"({"launch": "1 us", "file": ")" + path + R"("})") ==
        "s.json: /calibration/launch: expected either a file or factors, found file and launch");
}

}  // namespace calibration_test
