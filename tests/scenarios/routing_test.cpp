// network.routing: what a scenario that leaves it out gets, how a result names it, and how much it depends on a seed.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/topology/routing_policy.hpp"
#include "tests/support/command.hpp"

namespace routing_test {

using namespace ringsim;
using test::has;
using test::run_command;
using test::temporary_file;

namespace {

std::string text(const std::string& node, const std::string& fabric, const std::string& network = "") {
  return fmt::format(
      R"({{"version": 1, "name": "t", "topology": {{"kind": "cluster", "node": "{}", "nodes": 4, "fabric": {}}}{},
         "collective": {{"op": "all_to_all", "algorithm": "direct", "bytes": "1 MiB"}}}})",
      node, fabric, network.empty() ? "" : fmt::format(R"(, "network": {})", network));
}

const std::string leaf_spine =
    R"({"kind": "leaf_spine", "nodes_per_leaf": 2, "spines": 2, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})";
const std::string star = R"({"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})";

Scenario point(const std::string& scenario) { return ScenarioFile::parse(scenario, "t.json").point(0); }

}  // namespace

TEST_CASE("left out, routing is what the network of the NICs does") {
  struct Row {
    const char* node;
    const char* routing;
  };
  // InfiniBand's subnet manager fills tables, Ethernet's switches hash, EFA and Slingshot spread packets: the sources
  // are next to the ports, in link_types.json.
  for (const Row& row : {Row{"hgx-h100", "static"}, Row{"dgx-a100", "static"}, Row{"gcp-a3-ultra", "ecmp"},
                         Row{"azure-ncv4", "ecmp"}, Row{"gcp-a3-mega", "ecmp"}, Row{"k80x8", "ecmp"},
                         Row{"aws-p5", "packet_spray"}, Row{"polaris", "packet_spray"}}) {
    CAPTURE(row.node);
    const Scenario scenario = point(text(row.node, leaf_spine));
    CHECK(to_string(scenario.routing.policy) == row.routing);
    CHECK(scenario.routing.is_auto);
    CHECK(to_string(point(text(row.node, star)).routing.policy) == "static");  // with one way there is no choice
    const Scenario stated = point(text(row.node, leaf_spine, R"({"routing": "ecmp"})"));
    CHECK(to_string(stated.routing.policy) == "ecmp");
    CHECK_FALSE(stated.routing.is_auto);
  }
  CHECK(to_string(point(R"({"version": 1, "topology": {"kind": "torus", "dimensions": [3, 4],
      "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})")
                      .routing.policy) == "static");
  // Tables of one's own are static routing, whatever the NICs.
  const std::string table = R"({"table": [{"at": "leaf0", "to": "*", "via": "spine1"}]})";
  CHECK(to_string(point(text("gcp-a3-ultra", leaf_spine, table)).routing.policy) == "static");
}

TEST_CASE("machines on unlike networks have no routing of their own: static is taken, and said") {
  const Scenario mixed =
      point(R"({"version": 1, "topology": {"kind": "cluster",
      "parts": [{"node": "hgx-h100", "nodes": 2}, {"node": "gcp-a3-ultra", "nodes": 2}], "fabric": )" +
            leaf_spine + R"(}, "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  CHECK(to_string(mixed.routing.policy) == "static");
  REQUIRE(mixed.warnings.size() == 1);
  CHECK(mixed.warnings.front() ==
        "t.json: /network/routing: the NICs of the machines use different networks, static and ecmp; static routing is "
        "used");
}

TEST_CASE("a seed counts if the NICs' network draws, and has no effect if it does not") {
  const auto warnings = [](const char* node) { return point(text(node, leaf_spine, R"({"seed": 3})")).warnings; };
  CHECK(warnings("gcp-a3-ultra").empty());
  REQUIRE(warnings("hgx-h100").size() == 1);
  CHECK(has(warnings("hgx-h100").front(), "/network/seed: it has no effect"));
  CHECK(predict(point(text("gcp-a3-ultra", leaf_spine, R"({"seed": 3})"))).time !=
        predict(point(text("gcp-a3-ultra", leaf_spine))).time);
}

TEST_CASE("a result names the routing where the fabric had a choice, and only there") {
  CHECK(predict(point(text("hgx-h100", leaf_spine))).routing == "static");
  CHECK(predict(point(text("gcp-a3-ultra", leaf_spine, R"({"seed": 3})"))).routing == "ecmp, seed 3");
  CHECK(predict(point(text("aws-p4d", leaf_spine))).routing == "packet_spray");
  CHECK(predict(point(text("gcp-a3-ultra", star))).routing.empty());
  // Two equally long ways round a ring of four; a graph takes the first for all.
  const std::string square = R"({"version": 1, "topology": {"kind": "graph", "nodes": [{"name": "g0", "kind": "gpu"},
      {"name": "s0", "kind": "switch"}, {"name": "s1", "kind": "switch"}, {"name": "g1", "kind": "gpu"}], "links": [LINKS]},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})";
  const auto with = [&](const std::vector<std::pair<const char*, const char*>>& links) {
    std::string listed;
    for (const auto& [from, to] : links)
      listed += fmt::format(R"({}{{"from": "{}", "to": "{}", "bandwidth": "10 GB/s", "latency": "1 us"}})",
                            listed.empty() ? "" : ", ", from, to);
    std::string whole = square;
    return predict(point(whole.replace(whole.find("LINKS"), 5, listed))).routing;
  };
  CHECK(with({{"g0", "s0"}, {"s0", "g1"}, {"g0", "s1"}, {"s1", "g1"}}) == "static");
  CHECK(with({{"g0", "s0"}, {"s0", "s1"}, {"s1", "g1"}}).empty());
  CHECK(with({{"g0", "g1"}, {"g0", "g1"}, {"g1", "s0"}, {"s0", "s1"}}) == "static");  // parallel cables
}

TEST_CASE("explain says how switches chose, and over five seeds what ECMP would do") {
  const std::string file = temporary_file("t.json", text("hgx-h100", leaf_spine));
  const auto outcome = run_command({"explain", file, "--format", "json"});
  REQUIRE(outcome.code == 0);
  const auto document = nlohmann::json::parse(outcome.out);
  std::vector<double> times;
  for (int seed = 0; seed < 5; ++seed)
    times.push_back(microseconds(
        predict(point(text("hgx-h100", leaf_spine, fmt::format(R"({{"routing": "ecmp", "seed": {}}})", seed)))).time));
  std::sort(times.begin(), times.end());
  CHECK(times.front() < times.back());
  const auto& spread = document.at("routing_spread");
  CHECK(spread.at("seeds") == 5);
  CHECK(spread.at("least_us") == times.front());
  CHECK(spread.at("median_us") == times[2]);
  CHECK(spread.at("most_us") == times.back());
  const std::string said = run_command({"explain", file}).out;
  CHECK(has(said, "\nRouting: static, the default for the network of these NICs. With ecmp, 5 seeds take "));
  CHECK_FALSE(has(said, "ecmp, seed"));  // a seed is chance, no change
  // Of a run that draws itself its own seed is one of the five.
  const auto own =
      run_command({"explain", file, "--set", "network.routing=ecmp", "--set", "network.seed=2", "--format", "json"});
  REQUIRE(own.code == 0);
  CHECK(nlohmann::json::parse(own.out).at("routing_spread") == spread);
  // On a star there is nothing to say.
  CHECK_FALSE(has(run_command({"explain", temporary_file("star.json", text("hgx-h100", star))}).out, "Routing:"));
}

}  // namespace routing_test
