// How the points of a scenario come about: lists, ranges, sweeps and --set.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/plain_scenario.hpp"

namespace scenario_points_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::test;

namespace {

/// What varies, one line per point: "path=value path=value".
Texts points(const std::string& text, const Texts& overrides = {}) {
  const ScenarioFile file = parse(text, overrides);
  Texts lines;
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string line;
    for (const auto& [path, value] : file.point(i).varied) line += (line.empty() ? "" : " ") + path + '=' + value;
    lines.push_back(line);
  }
  return lines;
}
/// The sizes of all points.
std::vector<std::int64_t> sizes(const std::string& bytes) {
  const ScenarioFile file = parse(changed("\"64 MiB\"", bytes));
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < file.size(); ++i) out.push_back(file.point(i).main().request.bytes.count);
  return out;
}

}  // namespace

TEST_CASE("lists multiply in file order, the first key varying slowest") {
  CHECK(points(changed("\"ring\", \"bytes\": \"64 MiB\"",
                       R"(["ring", "halving_doubling"], "bytes": ["1 MiB", "2 MiB"])")) ==
        Texts{R"(collective.algorithm="ring" collective.bytes="1 MiB")",
              R"(collective.algorithm="ring" collective.bytes="2 MiB")",
              R"(collective.algorithm="halving_doubling" collective.bytes="1 MiB")",
              R"(collective.algorithm="halving_doubling" collective.bytes="2 MiB")"});
}

TEST_CASE("sweeps vary slower than lists in place, in their own order") {
  const std::string text = changed("\"64 MiB\"}}", R"(["1 B", "2 B"]},
    "sweep": {"topology.ranks": [2, 4], "network.model": ["fair", "ideal"]}})");
  CHECK(points(text) == Texts{R"(topology.ranks=2 network.model="fair" collective.bytes="1 B")",
                              R"(topology.ranks=2 network.model="fair" collective.bytes="2 B")",
                              R"(topology.ranks=2 network.model="ideal" collective.bytes="1 B")",
                              R"(topology.ranks=2 network.model="ideal" collective.bytes="2 B")",
                              R"(topology.ranks=4 network.model="fair" collective.bytes="1 B")",
                              R"(topology.ranks=4 network.model="fair" collective.bytes="2 B")",
                              R"(topology.ranks=4 network.model="ideal" collective.bytes="1 B")",
                              R"(topology.ranks=4 network.model="ideal" collective.bytes="2 B")"});
  const ScenarioFile file = parse(text);
  CHECK(std::get<Star>(file.point(5).topology).ranks == 4);
  CHECK(file.point(5).model == NetworkModel::fair);
  CHECK(file.point(5).main().request.bytes == 2_B);
}

TEST_CASE("a sweep replaces the value at its path, lists too") {
  const std::string listed =
      changed("\"64 MiB\"}}", R"(["1 B", "2 B", "3 B"]}, "sweep": {"collective.bytes": ["9 B", "8 B"]}})");
  CHECK(points(listed) == Texts{R"(collective.bytes="9 B")", R"(collective.bytes="8 B")"});
  CHECK(points(extended(R"("sweep": {"topology.link": [{"bandwidth": "1 GB/s"}, {"bandwidth": "2 GB/s"}]})")) ==
        Texts{R"(topology.link={"bandwidth":"1 GB/s"})", R"(topology.link={"bandwidth":"2 GB/s"})"});
  const std::string torus = R"("topology.dimensions": [[2, 4], [8]])";
  CHECK(points(changed(R"("star", "ranks": 8)", R"("torus", "dimensions": [1])",
                       extended("\"sweep\": {" + torus + "}"))) ==
        Texts{"topology.dimensions=[2,4]", "topology.dimensions=[8]"});
}

TEST_CASE("a sweep may stand for what the file leaves out, and may be a range") {
  const std::string text = changed(", \"bytes\": \"64 MiB\"", "", extended(R"("sweep": {"collective.bytes":
    {"from": "1 KiB", "to": "4 KiB", "factor": 2}, "transport.staging.depth": [1]})"));
  CHECK(points(text) ==
        Texts{R"(collective.bytes="1 KiB")", R"(collective.bytes="2 KiB")", R"(collective.bytes="4 KiB")"});
  CHECK(parse(text).point(0).transport.staging.depth == 1);
}

TEST_CASE("the parameters of an algorithm vary within their object") {
  CHECK(points(changed("\"ring\"", R"({"name": "halving_doubling", "fold": ["naive", "rabenseifner"]})")) ==
        Texts{R"(collective.algorithm.fold="naive")", R"(collective.algorithm.fold="rabenseifner")"});
  CHECK(points(changed("\"ring\"",
                       R"([{"name": "parameter_server", "servers": {"from": 1, "to": 3, "step": 1}}, "ring"])")) ==
        Texts{R"(collective.algorithm={"name":"parameter_server","servers":1})",
              R"(collective.algorithm={"name":"parameter_server","servers":2})",
              R"(collective.algorithm={"name":"parameter_server","servers":3})", R"(collective.algorithm="ring")"});
}

TEST_CASE("objects, kinds and the members of lists vary too") {
  CHECK(points(changed("\"star\"", R"(["star", "ring"])")) ==
        Texts{R"(topology.kind="star")", R"(topology.kind="ring")"});
  CHECK(points(extended(R"("sweep": {"topology.kind": ["ring", "full_mesh"]})")) ==
        Texts{R"(topology.kind="ring")", R"(topology.kind="full_mesh")"});
  CHECK(points(extended(R"("network": [{"model": "fair"}, {"model": "ideal"}])")) ==
        Texts{R"(network={"model":"fair"})", R"(network={"model":"ideal"})"});
  CHECK(points(changed(R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
                       R"("graph", "nodes": [{"name": "a", "kind": "gpu"}, {"name": "b", "kind": "gpu"}],
                          "links": [{"from": "a", "to": "b", "bandwidth": ["1 GB/s", "2 GB/s"]}])")) ==
        Texts{R"(topology.links.0.bandwidth="1 GB/s")", R"(topology.links.0.bandwidth="2 GB/s")"});
}

TEST_CASE("the collective as a whole varies, and so does the transport, in any spelling") {
  const ScenarioFile file = parse(R"({"version": 1, "topology": {"kind": "star", "ranks": 4, "link":
    {"bandwidth": "1 GB/s", "latency": "0 s"}},
    "collective": [{"op": "all_reduce", "algorithm": "ring", "bytes": "4 B"},
                   {"op": "alltoall", "algorithm": "pairwise", "bytes": "4 B"}],
    "transport": [{"channels": 2}, {"NCCL_P2P_DISABLE": "1"}]})");
  REQUIRE(file.size() == 4);
  CHECK(file.point(0).main().request.channels == 2);
  CHECK(file.point(3).main().request.op == CollectiveOp::all_to_all);
  CHECK(file.point(3).transport.p2p_level == PathType::loc);
}

TEST_CASE("ranges go from their first value as far as their last") {
  using Sizes = std::vector<std::int64_t>;
  CHECK(sizes(R"({"from": "1 B", "to": "64 B", "factor": 4})") == Sizes{1, 4, 16, 64});
  CHECK(sizes(R"({"from": "1 B", "to": "63 B", "factor": 4})") == Sizes{1, 4, 16});
  CHECK(sizes(R"({"from": "10 B", "to": "30 B", "step": "10 B"})") == Sizes{10, 20, 30});
  CHECK(sizes(R"({"from": "10 B", "to": "39 B", "step": "10 B"})") == Sizes{10, 20, 30});
  CHECK(sizes(R"({"from": "10 B", "to": "40 B", "factor": 1.5})") == Sizes{10, 15, 22, 33});
  CHECK(sizes(R"({"from": "0 B", "to": "0 B", "step": "1 B"})") == Sizes{0});
  CHECK(sizes(R"({"from": "7 B", "to": "7 B", "factor": 2})") == Sizes{7});
  CHECK(sizes(R"([{"from": "1 B", "to": "2 B", "step": "1 B"}, "9 B"])") == Sizes{1, 2, 9});
  // The next value would be beyond 64 bits.
  CHECK(sizes(R"({"from": "4611686018427387904 B", "to": "9223372036854775807 B", "factor": 2})") ==
        Sizes{4611686018427387904});
  CHECK(sizes(R"({"from": "9223372036854775806 B", "to": "9223372036854775807 B", "step": "2 B"})") ==
        Sizes{9223372036854775806});
}

TEST_CASE("one value in a list does not vary") {
  CHECK(points(changed("\"64 MiB\"", "[\"64 MiB\"]")) == Texts{""});
  CHECK(hash(changed("\"64 MiB\"", "[\"64 MiB\"]")) == hash(plain));
}

TEST_CASE("--set replaces, adds and varies") {
  CHECK(only(plain, {"collective.bytes=1 GiB"}).main().request.bytes == 1_GiB);
  CHECK(only(plain, {"collective.bytes=\"1 GiB\""}).main().request.bytes == 1_GiB);
  CHECK(only(plain, {"topology.ranks=4"}).main().request.ranks == 4);
  CHECK(only(plain, {"topology.ranks=4", "topology.ranks=5"}).main().request.ranks == 5);
  CHECK(only(plain, {"transport.staging.depth=3"}).transport.staging.depth == 3);  // makes the objects on its way
  CHECK(only(plain, {"network={\"model\": \"ideal\"}"}).model == NetworkModel::ideal);
  CHECK(only(plain, {"name=a=b"}).name == "a=b");
  CHECK(points(plain, {"topology.ranks=[2,4]"}) == Texts{"topology.ranks=2", "topology.ranks=4"});
  CHECK(points(plain, {"sweep.topology.ranks=[2,4]"}) == Texts{"topology.ranks=2", "topology.ranks=4"});
  CHECK(only(changed("\"64 MiB\"", R"(["1 B"])"), {"collective.bytes.0=2 B"}).main().request.bytes == 2_B);
  CHECK(only(changed("all_reduce", "broadcast"), {"collective.algorithm.segments=4"})
            .main()
            .arguments.numbers.at("segments") == 4);
}

TEST_CASE("--set pins what the file sweeps") {
  const std::string text = extended(R"("sweep": {"topology.ranks": [2, 4], "network.model": ["fair", "ideal"]})");
  CHECK(points(text, {"topology.ranks=16"}) == Texts{R"(network.model="fair")", R"(network.model="ideal")"});
  CHECK(parse(text, {"topology.ranks=16"}).point(0).main().request.ranks == 16);
}

TEST_CASE("--set to null removes a key, so that its default holds; what is not there may be removed as well") {
  const std::string text = extended(R"("network": {"model": "ideal"}, "sweep": {"topology.ranks": [2, 4]})");
  CHECK(parse(text).point(0).model == NetworkModel::ideal);
  CHECK(parse(text, {"network.model=null"}).point(0).model == NetworkModel::fair);
  CHECK(parse(text, {"network=null"}).point(0).model == NetworkModel::fair);
  CHECK(parse(text, {"network=null", "sweep=null"}).hash() == hash(plain));
  CHECK(parse(text, {"sweep.topology.ranks=null"}).size() == 1);
  CHECK(parse(plain, {"transport.staging.depth=null", "collective.root=null"}).hash() == hash(plain));
  CHECK(parse(text, {"network.model=null", "network.model=packet"}).point(0).model == NetworkModel::packet);  // in turn
}

}  // namespace scenario_points_test
