// `where` of a scenario: which points are left out.
#include "scenarios/conditions/where.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"

namespace where_test {

using namespace ringsim;

namespace {

ScenarioFile scenario(const std::string& where, const std::vector<std::string>& set = {}) {
  const std::string text = fmt::format(R"({{"version": 1,
    "topology": {{"kind": "star", "ranks": [2, 4, 8], "link": {{"bandwidth": "10 GB/s", "latency": "1 us"}}}},
    "collective": {{"op": "all_reduce", "algorithm": ["ring", {{"name": "halving_doubling", "fold": "naive"}}],
                    "bytes": ["1 KiB", "1 MiB"]}}{}}})",
                                       where.empty() ? "" : ",\n\"where\": " + where);
  return ScenarioFile::parse(text, "s.json", set);
}

/// The points that are left, as "ranks/bytes/algorithm".
std::string points(const ScenarioFile& file) {
  std::string text;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario point = file.point(i);
    text += fmt::format("{}/{}/{} ", point.main().request.ranks, point.main().request.bytes.count,
                        point.main().algorithm->name);
  }
  return text;
}

std::string complaint(const std::string& where) {
  return ringsim::test::complaint([&] { scenario(where); });
}

}  // namespace

TEST_CASE("points for which a condition does not hold are left out, the others keep their order") {
  const ScenarioFile all = scenario("");
  CHECK(all.size() == 12);
  CHECK(all.left_out() == 0);
  const ScenarioFile some = scenario(R"w(["topology.ranks * 8 <= 32", "collective.bytes >= 1 MiB"])w");
  CHECK(some.left_out() == 8);
  CHECK(points(some) == "2/1048576/ring 2/1048576/halving_doubling 4/1048576/ring 4/1048576/halving_doubling ");
}

TEST_CASE("an algorithm is its name, its parameters lie below, and defaults count") {
  CHECK(scenario(R"w(["collective.algorithm == 'ring'"])w").size() == 6);
  CHECK(scenario(R"w(["collective.algorithm.name == 'halving_doubling'"])w").size() == 6);
  CHECK(scenario(R"w(["has(collective.algorithm.fold) and collective.algorithm.fold == 'naive'"])w").size() == 6);
  CHECK(scenario(R"w(["network.model == 'fair' and transport.gpudirect and collective.root == 0"])w").size() == 12);
  CHECK(scenario(R"w(["topology.kind == 'star' and topology.link.bandwidth == 80 Gb/s"])w").size() == 12);
  CHECK(scenario(R"w(["topology.link.latency / 2 == 500 ns"])w").size() == 12);
  CHECK(scenario(R"w(["not has(network.packet.buffer)"])w").size() == 12);  // it has no default
}

TEST_CASE("conditions on lists, and on shares of faults") {
  const std::vector<std::string> fault{R"(faults=[{"link": "gpu0 -> switch0", "bandwidth": "25%"}])"};
  CHECK(scenario(R"w(["faults.0.bandwidth == 0.25"])w", fault).size() == 12);
  CHECK(scenario(R"w(["has(faults.1.bandwidth)", "topology.ranks == 2"])w", {R"(faults=[{"link": "gpu0 -> switch0",
    "bandwidth": "25%"}, {"link": "gpu1 -> switch0", "bandwidth": "25%"}])"})
            .size() == 4);
}

TEST_CASE("a point keeps its hash and its id whatever `where` leaves out; the file's hash knows the conditions") {
  const ScenarioFile all = scenario(""), some = scenario(R"w(["topology.ranks == 8"])w");
  REQUIRE(some.size() == 4);
  CHECK(some.point(0).hash == all.point(8).hash);
  CHECK(some.id(0).hash == all.point(8).hash);
  CHECK(some.id(0).varied == all.point(8).varied);
  CHECK(some.hash() != all.hash());
  CHECK(some.hash() == scenario(R"w([" (topology.ranks)==8"])w").hash());
  CHECK(some.hash() != scenario(R"w(["topology.ranks == 4"])w").hash());
}

TEST_CASE("a point that cannot be decoded has an id of its own") {
  // `dimensions` is no key of a star: its point fails by itself, the torus is well.
  const std::string text = R"({"version": 1, "topology": {"kind": ["star", "torus"], "dimensions": [2, 2],
    "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 KiB"}})";
  const ScenarioFile file = ScenarioFile::parse(text, "s.json");
  CHECK_THROWS_AS(file.point(0), InputError);
  CHECK(file.id(0).hash != file.id(1).hash);
  CHECK(file.id(0).hash == ScenarioFile::parse(text, "other.json").id(0).hash);
  CHECK(file.id(1).hash == file.point(1).hash);
  const ScenarioFile rest = ScenarioFile::parse(text, "s.json", {R"(where=["topology.kind == 'torus'"])"});
  CHECK(rest.size() == 1);
}

TEST_CASE("a condition that is wrong is named with its place in the file") {
  CHECK(complaint(R"w(["topology.rank == 2"])w") ==
        "s.json: /where/0: column 1: expected a valid scenario path, found \"topology.rank\": there is no key "
        "\"rank\"\n  hint: did you mean \"ranks\"?");
  CHECK(complaint(R"w(["topology.ranks == 2", "collective.bytes > 5"])w").starts_with("s.json: /where/1: column 18: "));
  CHECK(complaint(R"w(["topology.link == 2"])w")
            .starts_with(
                "s.json: /where/0: column 1: expected a path to a single value, found \"topology.link\": an object"));
  CHECK(complaint(R"w(["topology.ranks.x == 2"])w").find("/topology/ranks has no keys below it") != std::string::npos);
  CHECK(complaint(R"w(["topology.nodes == 2"])w") ==  // of a cluster, not of a star
        "s.json: /where/0: column 1: expected a value of \"topology.nodes\", found none here\n  hint: test first that "
        "there is one: has(topology.nodes) and ...");
  CHECK(complaint(R"w(["topology.ranks == 3"])w") ==
        "s.json: /where: expected conditions that hold for at least one point, found none among 12");
  CHECK(complaint(R"("topology.ranks == 3")") == "s.json: /where: expected a list, found \"topology.ranks == 3\"");
  CHECK(complaint(R"([["topology.ranks == 3"]])").starts_with("s.json: /where/0: expected a non-empty string"));
}

}  // namespace where_test
