#include "scenarios/scenario.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/plain_scenario.hpp"

namespace scenario_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::test;

TEST_CASE("a scenario of few words takes the defaults") {
  const Scenario s = only(plain);
  CHECK(s.name == "s");
  CHECK(s.hash.size() == 32);
  const Star& star = std::get<Star>(s.topology);
  CHECK(star.ranks == 8);
  CHECK(star.extra_ports == 0);
  CHECK(star.link.bandwidth == 25_GBps);
  CHECK(star.link.latency == 1'300'000_ps);
  CHECK(star.link.source == "scenario");
  CHECK(s.main().algorithm == find_algorithm("ring"));
  CHECK(s.main().arguments.numbers.empty());
  CHECK(s.main().request.op == CollectiveOp::all_reduce);
  CHECK(s.main().request.ranks == 8);
  CHECK(s.main().request.bytes == 64_MiB);
  CHECK(s.main().request.root == 0);
  CHECK_FALSE(s.main().request.both_ways);
  CHECK(s.main().ranks.empty());
  CHECK(s.transport.gdr_level == PathType::p2c);
  CHECK(s.transport.staging.size == 512_KiB);
  CHECK(s.transport.staging.depth == 8);
  CHECK(s.model == NetworkModel::fair);
  CHECK(s.varied.empty());
}

TEST_CASE("what is said is taken") {
  const Scenario s = only(R"({"version": 1, "name": "mine", "$schema": "./scenario.schema.json",
    "topology": {"kind": "graph",
      "nodes": [{"name": "a", "kind": "gpu"}, {"name": "s", "kind": "switch"}, {"name": "b", "kind": "gpu"}],
      "links": [{"from": "a", "to": "s", "bandwidth": "1 GB/s", "duplex": "half"},
                {"from": "s", "to": "b", "bandwidth": "2 GB/s", "latency": "3 ns", "one_way": true}]},
    "collective": {"op": "broadcast", "algorithm": {"name": "ring", "segments": 4}, "bytes": "3 B", "root": 1,
                   "ranks": ["b", "a"]},
    "transport": {"gpudirect": false, "protocol": "none", "channels": 1, "staging": {"size": "1 MiB", "depth": 2}},
    "network": {"model": "ideal"}})");
  CHECK(s.name == "mine");
  const Graph& graph = std::get<Graph>(s.topology);
  REQUIRE(graph.nodes.size() == 3);
  CHECK(graph.nodes[1].name == "s");
  CHECK(graph.nodes[1].kind == NodeKind::network_switch);
  REQUIRE(graph.links.size() == 2);
  CHECK(graph.links[0].link.duplex == Duplex::half);
  CHECK_FALSE(graph.links[0].one_way);
  CHECK(graph.links[1].from == "s");
  CHECK(graph.links[1].to == "b");
  CHECK(graph.links[1].link.latency == 3000_ps);
  CHECK(graph.links[1].link.duplex == Duplex::full);
  CHECK(graph.links[1].one_way);
  CHECK(s.main().arguments.numbers.at("segments") == 4);
  CHECK(s.main().request.op == CollectiveOp::broadcast);
  CHECK(s.main().request.root == 1);
  CHECK(s.main().request.ranks == 2);
  CHECK(s.main().ranks == Texts{"b", "a"});
  CHECK(s.transport.gdr_level == PathType::loc);
  CHECK(s.transport.staging.size == 1_MiB);
  CHECK(s.transport.staging.depth == 2);
  CHECK(s.model == NetworkModel::ideal);
}

TEST_CASE("every kind of topology is decoded") {
  CHECK(std::get<Ring>(only(changed("star", "ring")).topology).ranks == 8);
  CHECK(std::get<FullMesh>(only(changed("star", "full_mesh")).topology).link.bandwidth == 25_GBps);
  const Scenario torus = only(changed(R"("star", "ranks": 8)", R"("torus", "dimensions": [2, 3, 4])"));
  CHECK(std::get<Torus>(torus.topology).dimensions == std::vector<int>{2, 3, 4});
  CHECK(torus.main().request.ranks == 24);
  const std::string star = R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})";
  const Scenario cluster = only(changed(star, R"("cluster", "node": "dgx-1v", "nodes": 2,
    "fabric": {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})"));
  CHECK(std::get<Cluster>(cluster.topology).parts[0].machine->name == "dgx-1v");
  CHECK(std::get<StarFabric>(*std::get<Cluster>(cluster.topology).fabric).link.bandwidth == 100_Gbps);
  CHECK(cluster.main().request.ranks == 16);
  CHECK(only(changed(star, R"("cluster", "node": "dgx-1v", "nodes": 1)")).main().request.ranks ==
        8);  // needs no fabric
}

TEST_CASE("every kind of fabric is decoded") {
  const auto cluster = [](const std::string& fabric) {
    const Scenario s = only(changed(
        R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
        R"("cluster", "node": "dgx-1v", "nodes": 2, "fabric": {)" + fabric + R"(, "link": {"bandwidth": "10 GB/s"}})"));
    return std::get<Cluster>(s.topology);
  };
  const auto two = std::get<LeafSpine>(*cluster(R"("kind": "leaf_spine", "nodes_per_leaf": 4, "oversubscription": 2,
    "spines": 3, "uplink": {"bandwidth": "20 GB/s", "latency": "1 us"})")
                                            .fabric);
  CHECK(two.nodes_per_leaf == 4);
  CHECK(two.oversubscription == 2);
  CHECK(two.spines == 3);
  CHECK(two.link.bandwidth == 10_GBps);
  REQUIRE(two.uplink);
  CHECK(two.uplink->bandwidth == 20_GBps);
  CHECK(two.uplink->latency == 1'000'000_ps);
  const auto plain_two = std::get<LeafSpine>(*cluster(R"("kind": "leaf_spine", "nodes_per_leaf": 4)").fabric);
  CHECK(plain_two.oversubscription == 1);
  CHECK(plain_two.spines == 0);
  CHECK_FALSE(plain_two.uplink);
  const auto tree = std::get<FatTree>(*cluster(R"("kind": "fat_tree", "k": 8, "oversubscription": 2)").fabric);
  CHECK(tree.k == 8);
  CHECK(tree.oversubscription == 2);
  const auto rail = std::get<RailFabric>(*cluster(R"("kind": "rail", "nodes_per_group": 16, "oversubscription": 4,
    "spines": 2, "uplink": {"bandwidth": "40 GB/s"})")
                                              .fabric);
  CHECK(rail.nodes_per_group == 16);
  CHECK(rail.oversubscription == 4);
  CHECK(rail.spines == 2);
  CHECK(rail.uplink.value().bandwidth == 40_GBps);
  CHECK(std::get<RailFabric>(*cluster(R"("kind": "rail", "nodes_per_group": 16)").fabric).spines == 0);
  const auto torus = std::get<TorusFabric>(
      *cluster(R"("kind": "torus", "dimensions": [2, 3], "hop": {"bandwidth": "5 GB/s"})").fabric);
  CHECK(torus.dimensions == std::vector<int>{2, 3});
  CHECK(torus.hop.value().bandwidth == 5_GBps);
  const auto fly = std::get<Dragonfly>(*cluster(R"("kind": "dragonfly", "groups": 9, "routers": 4,
    "nodes_per_router": 3, "global_links": 2, "local": {"bandwidth": "6 GB/s"}, "global": {"bandwidth": "7 GB/s"})")
                                            .fabric);
  CHECK(fly.groups == 9);
  CHECK(fly.routers == 4);
  CHECK(fly.nodes_per_router == 3);
  CHECK(fly.global_links == 2);
  CHECK(fly.local.value().bandwidth == 6_GBps);
  CHECK(fly.global.value().bandwidth == 7_GBps);
}

TEST_CASE("cables of a fabric that differ are decoded, with what is said of them") {
  const Scenario s = only(changed(R"("star", "ranks": 8, "link": {"bandwidth": "25 GB/s", "latency": "1.3 us"})",
                                  R"("cluster", "node": "dgx-1v", "nodes": 2, "fabric": {"kind": "star",
                                     "link": {"bandwidth": "10 GB/s"}, "cables": [
      {"from": "leaf0", "to": "node0.nic1", "bandwidth": "1 GB/s"},
      {"from": "node1.nic0", "to": "leaf0", "latency": "5 ns"}]})"));
  const auto& changes = std::get<Cluster>(s.topology).changes;
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].from == "leaf0");
  CHECK(changes[0].to == "node0.nic1");
  CHECK(changes[0].bandwidth == 1_GBps);
  CHECK_FALSE(changes[0].latency);
  CHECK_FALSE(changes[1].bandwidth);
  CHECK(changes[1].latency == 5'000_ps);
}

TEST_CASE("channels, pieces and buffers are taken, by jobs too") {
  const Scenario few = only(plain);
  CHECK(few.main().request.channels == 1);
  CHECK_FALSE(few.main().request.chunk);
  CHECK_FALSE(few.main().request.in_place);
  const Scenario s = only(extended(R"("transport": {"channels": 4, "chunk": "3 KiB"}, "jobs": [{"name": "other",
    "collective": {"op": "all_gather", "algorithm": "ring", "bytes": "1 B", "in_place": false}}])"));
  CHECK(s.main().request.channels == 4);
  CHECK(s.main().request.chunk == 3_KiB);
  CHECK(s.jobs.at(1).request.channels == 4);
  CHECK(s.jobs[1].request.chunk == 3_KiB);
  CHECK(s.jobs[1].request.in_place == false);
}

TEST_CASE("in place where the algorithm is, or apart where it is not, asks nothing: one hash") {
  CHECK(hash(changed("\"64 MiB\"", R"("64 MiB", "in_place": true)")) == hash(plain));
  CHECK(hash(changed("\"64 MiB\"", R"("64 MiB", "in_place": false)")) != hash(plain));
  const std::string apart = R"({"version": 1, "topology": {"kind": "star", "ranks": 4, "link":
    {"bandwidth": "1 GB/s", "latency": "0 s"}}, "collective": {"op": "alltoall", "algorithm": "pairwise", "bytes": "4 B")";
  CHECK(hash(apart + R"(, "in_place": false}})") == hash(apart + "}}"));
  CHECK(hash(apart + R"(, "in_place": true}})") != hash(apart + "}}"));
}

TEST_CASE("helpers of an algorithm sit on extra ports of the star") {
  const Scenario s = only(changed("\"ring\"", R"({"name": "parameter_server", "servers": 3})"));
  CHECK(std::get<Star>(s.topology).extra_ports == 3);
  CHECK(s.main().request.ranks == 8);
  CHECK(only(changed("\"ring\"", "\"parameter_server\"")).main().arguments.numbers.count("servers") == 0);
}

TEST_CASE("bounds are inclusive") {
  CHECK(only(changed("\"ranks\": 8", "\"ranks\": 1048576")).main().request.ranks == 1'048'576);
  CHECK(only(changed("\"ranks\": 8", "\"ranks\": 1")).main().request.ranks == 1);
  CHECK(only(changed("\"64 MiB\"", "\"0 B\"")).main().request.bytes == 0_B);
  CHECK(only(extended(R"("transport": {"staging": {"size": "1 B", "depth": 65536}})")).transport.staging.depth ==
        65536);
  CHECK_THROWS_AS(parse(changed("\"ranks\": 8", "\"ranks\": 1048577")), InputError);
  CHECK_THROWS_AS(parse(extended(R"("transport": {"staging": {"depth": 65537}})")), InputError);
  CHECK(only(changed("\"ranks\": 8", "\"ranks\": 8.0")).main().request.ranks == 8);
  CHECK(parse(changed("\"64 MiB\"", R"({"from": "1 B", "to": "10000000 B", "step": "1 B"})")).size() == 10'000'000);
}

TEST_CASE("two spellings of one scenario have one hash") {
  const std::string same = hash(plain);
  CHECK(hash(changed("64 MiB", "65536 KiB")) == same);
  CHECK(hash(changed("25 GB/s", "200 Gb/s")) == same);
  CHECK(hash(changed("\"ring\"", R"({"name": "ring"})")) == same);
  CHECK(hash(changed("{\"version\"", "// a remark\n{\"name\": \"other\", \"$schema\": \"x\", \"version\"")) == same);
  CHECK(hash(changed("\"kind\": \"star\", \"ranks\": 8", "\"ranks\": 8, \"kind\": \"star\"")) == same);
  CHECK(hash(extended(R"("network": {"model": "fair"}, "transport": {"channels": 1, "staging": {"depth": 8}})")) ==
        same);
  CHECK(only(plain).hash == same);  // a file of one point is that point
  CHECK(parse(changed("\"64 MiB\"", R"(["1 B", "64 MiB"])")).point(1).hash == same);
  CHECK(parse(extended(R"("sweep": {"topology.ranks": [4, 8]})")).point(1).hash == same);
}

TEST_CASE("the levels of paths are read in ringsim's words and in NCCL's, with one hash a meaning") {
  const auto point = [](const std::string& transport) {
    return parse(extended(R"("transport": {)" + transport + "}")).point(0);
  };
  const Scenario ours = point(R"("gdr_level": "PHB", "p2p_level": "LOC", "pxn": false, "nics": "all")");
  CHECK(ours.transport.gdr_level == PathType::phb);
  CHECK(ours.transport.p2p_level == PathType::loc);
  CHECK_FALSE(ours.transport.pxn);
  CHECK(ours.transport.nics == Transport::Nics::all);
  for (const char* spelling :
       {R"("NCCL_NET_GDR_LEVEL": "PHB", "NCCL_P2P_LEVEL": "LOC", "NCCL_PXN_DISABLE": "1", "nics": "all")",
        R"("NCCL_NET_GDR_LEVEL": "3", "NCCL_P2P_DISABLE": "1", "NCCL_PXN_DISABLE": "1", "nics": "all")",
        R"("NCCL_NET_GDR_LEVEL": 3, "NCCL_P2P_DISABLE": 1, "NCCL_PXN_DISABLE": 1, "nics": "all")",
        R"("NCCL_NET_GDR_LEVEL": "3", "NCCL_P2P_LEVEL": "0", "pxn": false, "nics": "all")"}) {
    CAPTURE(spelling);
    CHECK(point(spelling).hash == ours.hash);
    CHECK(point(spelling).transport.gdr_level == PathType::phb);
  }
  CHECK(point(R"("gpudirect": false)").hash == point(R"("gdr_level": "LOC")").hash);
  CHECK(point(R"("NCCL_P2P_DISABLE": "0", "NCCL_PXN_DISABLE": "0")").hash == point("").hash);
}

TEST_CASE("a seed that nothing draws from is warned of at its place") {
  const auto warnings = [](const std::string& rest) { return parse(extended(rest)).point(0).warnings; };
  CHECK(warnings(R"("network": {"seed": 7})") ==
        Texts{"s.json: /network/seed: it has no effect, because routing is neither ecmp nor flow_spray"});
  CHECK(warnings(R"("network": {"seed": 7, "routing": "ecmp"})").empty());
  CHECK(parse(changed("\"bytes\"", R"("seed": 1, "bytes")")).point(0).warnings ==
        Texts{"s.json: /collective/seed: it has no effect, because order is given, not shuffled"});
  CHECK(parse(changed("\"bytes\"", R"("seed": 1, "order": "shuffled", "bytes")")).point(0).main().shuffle == 1U);
}

TEST_CASE("a delay of nothing is warned of at its place, unless the file varies it") {
  const auto warnings = [](const std::string& rest) { return parse(extended(rest)).point(0).warnings; };
  CHECK(warnings(R"("disturbance": {"late": [{"rank": 0, "by": "0 us"}]})") ==
        Texts{"s.json: /disturbance/late/0/by: it has no effect, because the delay is 0"});
  CHECK(
      warnings(R"("disturbance": {"slow": [{"rank": 1, "step_delay": "1 us"}, {"rank": 0, "step_delay": "0 us"}]})") ==
      Texts{"s.json: /disturbance/slow/1/step_delay: it has no effect, because the delay is 0"});
  CHECK(warnings(R"("disturbance": {"jitter": {"most": "0 us"}})") ==
        Texts{"s.json: /disturbance/jitter/most: it has no effect, because the longest delay is 0"});
  CHECK(warnings(R"("disturbance": {"late": [{"rank": 0, "by": ["0 us", "5 us"]}]})").empty());
}

TEST_CASE("routing is read, its tables by name") {
  const Scenario s = parse(extended(R"("network": {"routing": "ecmp", "seed": 7})")).point(0);
  CHECK(s.routing.policy == Routing::Policy::ecmp);
  CHECK(s.routing.seed == 7);
  const Scenario table = parse(extended(R"("network": {"table": [{"at": "a", "to": "*", "via": "b"}]})")).point(0);
  CHECK(table.routing.policy == Routing::Policy::fixed);
  REQUIRE(table.routing.table.size() == 1);
  CHECK(table.routing.table[0].via == "b");
}

TEST_CASE("static routing over equal ways of a graph, and parts for unequal NICs, are warned of at their places") {
  // Two leaves, two spines: two ways from a to b.
  const auto graph = [](const std::string& more) {
    return R"({"version": 1, "topology": {"kind": "graph",
      "nodes": [{"name": "a", "kind": "gpu"}, {"name": "b", "kind": "gpu"}, {"name": "l", "kind": "switch"},
                {"name": "r", "kind": "switch"}, {"name": "s", "kind": "switch"}, {"name": "t", "kind": "switch"}],
      "links": [{"from": "a", "to": "l", "bandwidth": "1 GB/s", "latency": "0 us"},
                {"from": "b", "to": "r", "bandwidth": "1 GB/s", "latency": "0 us"},
                {"from": "l", "to": "s", "bandwidth": "1 GB/s", "latency": "0 us"},
                {"from": "l", "to": "t", "bandwidth": "1 GB/s", "latency": "0 us"},
                {"from": "r", "to": "s", "bandwidth": "1 GB/s", "latency": "0 us"},
                {"from": "r", "to": "t", "bandwidth": "1 GB/s", "latency": "0 us"}]},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MB"})" +
           more + "}";
  };
  const std::vector<std::string> warnings = parse(graph("")).point(0).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find(
            "/network/routing: in a graph, static routing sends all messages over the first of several equally short "
            "paths, in link order; a to b has 2 and uses one.") != std::string::npos);
  CHECK(parse(graph(R"(, "network": {"routing": "ecmp"})")).point(0).warnings.empty());
  CHECK(parse(graph(R"(, "network": {"table": [{"at": "l", "to": "b", "via": "t"}]})")).point(0).warnings.empty());
}

TEST_CASE("the model packet takes its settings, and has defaults for them") {
  const Scenario said = only(extended(
      R"("network": {"model": "packet", "packet": {"mtu": "1 KiB", "buffer": "64 KiB", "flow_control": "pause"}})"));
  CHECK(said.model == NetworkModel::packet);
  CHECK(said.packet.mtu == 1_KiB);
  CHECK(said.packet.buffer == 64_KiB);
  CHECK(said.packet.flow_control == PacketOptions::FlowControl::pause);
  const Scenario plainly = only(extended(R"("network": {"model": "packet"})"));
  CHECK(plainly.packet.mtu == 4_KiB);
  CHECK_FALSE(plainly.packet.buffer);
  CHECK(plainly.packet.flow_control == PacketOptions::FlowControl::credit);
  CHECK(plainly.hash != only(extended(R"("network": {"model": "packet", "packet": {"mtu": "1 KiB"}})")).hash);
  CHECK(plainly.hash == only(extended(R"("network": {"model": "packet", "packet": {"mtu": "4 KiB"}})")).hash);
}

TEST_CASE("collectives may be spelled as MPI and NCCL do, and ask the same") {
  const auto text = [](const char* op, const char* algorithm) {
    return changed("all_reduce", op, changed("\"ring\"", '"' + std::string(algorithm) + '"'));
  };
  for (const auto& [op, alias, algorithm] :
       {std::tuple{"all_reduce", "allreduce", "ring"}, std::tuple{"all_gather", "allgather", "ring"},
        std::tuple{"reduce_scatter", "reducescatter", "ring"}, std::tuple{"all_to_all", "alltoall", "direct"},
        std::tuple{"send_recv", "sendrecv", "direct"}}) {
    const char* const spelled = alias;
    CAPTURE(spelled);
    CHECK(hash(text(alias, algorithm)) == hash(text(op, algorithm)));
    CHECK(to_string(only(text(alias, algorithm)).main().request.op) == op);
  }
  CHECK(hash(text("sendrecv", "direct")) != hash(text("alltoall", "direct")));
  // In lists, and where conditions compare with the one spelling.
  const std::string listed = changed("\"all_reduce\"", R"(["allreduce", "allgather"])");
  CHECK(hash(listed) == hash(changed("\"all_reduce\"", R"(["all_reduce", "all_gather"])")));
  CHECK(ScenarioFile::parse(listed, "s.json", {"where=[\"collective.op == 'all_gather'\"]"}).size() == 1);
}

TEST_CASE("every algorithm is read for every op that it does") {
  int n_read = 0;
  for (const Algorithm& algorithm : algorithms()) {
    for (const CollectiveOp op : algorithm.ops) {
      const std::string text = changed("all_reduce", std::string(to_string(op)), changed("64 MiB", "0 B"));
      CHECK(only(changed("\"ring\"", '"' + algorithm.name + '"', text)).main().request.op == op);
      ++n_read;
    }
  }
  CHECK(n_read > 30);
}

TEST_CASE("a parameter that is not set leaves no trace in the hash, one with a default does") {
  const auto with = [](const char* algorithm) { return hash(changed("\"ring\"", algorithm)); };
  CHECK(with(R"({"name": "ring", "rings": 1})") != with(R"("ring")"));
  CHECK(with(R"({"name": "chain", "segments": 8})") == with(R"("chain")"));
  CHECK(only(changed("\"ring\"", "\"chain\"")).main().arguments.numbers.at("segments") == 8);
  CHECK(only(plain).main().arguments.numbers.empty());
}

TEST_CASE("another scenario has another hash") {
  const std::set<std::string> hashes{
      hash(plain),
      hash(changed("64 MiB", "65 MiB")),
      hash(changed("star", "ring")),
      hash(changed("1.3 us", "1.301 us")),
      hash(changed("all_reduce", "all_gather")),
      hash(changed("\"ring\"", "\"parameter_server\"")),
      hash(extended(R"("network": {"model": "ideal"})")),
      hash(extended(R"("transport": {"gpudirect": false})")),
      hash(changed("\"64 MiB\"", R"(["64 MiB", "65 MiB"])")),
      hash(changed("\"64 MiB\"", R"({"from": "64 MiB", "to": "65 MiB", "step": "1 MiB"})")),
      hash(extended(R"("sweep": {"topology.ranks": [4, 8]})")),
      hash(extended(R"("sweep": {"topology.ranks": [8, 4]})"))};
  CHECK(hashes.size() == 12);
  // The hash itself, so that it stays the same between versions and machines.
  CHECK(hash(plain) == "45a1b4395496d906caf3296d2d6da55a");
}

TEST_CASE("a combination that cannot be fails alone") {
  const ScenarioFile file = parse(changed("\"ring\"", R"(["ring", "pairwise"])"));
  CHECK(file.size() == 2);
  CHECK(file.point(0).main().algorithm->name == "ring");
  CHECK_THROWS_AS(file.point(1), InputError);
}

TEST_CASE("a file is read from disk, and one that cannot be says so") {
  const auto folder = std::filesystem::temp_directory_path() / ("ringsim_scenario_test." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "eight ranks.json").string();
  std::ofstream(path) << "\xEF\xBB\xBF" << plain;  // with a byte order mark
  CHECK(ScenarioFile::load(path).name() == "eight ranks");
  CHECK(ScenarioFile::load(path).hash() == hash(plain));
  const auto complaint = [](const std::string& name) -> std::string {
    return ringsim::test::complaint([&] { ScenarioFile::load(name); });
  };
  const std::string none = (folder / "none.json").string();
  CHECK(complaint(none) == none + ": expected a scenario file, found no file of that name");
  CHECK(complaint(folder.string()) == folder.string() + ": expected a scenario file, found a directory");
  CHECK(complaint("/dev/zero") == "/dev/zero: expected a scenario file of at most 32 MiB, found a larger one");
  std::filesystem::remove_all(folder);
}

TEST_CASE("the schema names every key with its meaning") {
  const nlohmann::json schema = nlohmann::json::parse(scenario_schema());
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  CHECK(schema["required"] == nlohmann::json({"version", "topology"}));
  CHECK(schema["oneOf"] ==
        nlohmann::json::parse(
            R"([{"required": ["collective"]}, {"required": ["training"]}, {"required": ["inference"]},
                 {"required": ["trace"]}])"));
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["definitions"]["transport"]["properties"]["gpudirect"]["default"] == true);
  CHECK(schema["definitions"]["staging"]["properties"]["size"]["default"] == "512 KiB");
  int properties = 0;
  for (const auto& each : schema["definitions"]) {
    // One that a name alone may stand for has the object second.
    const bool named = each.contains("anyOf") && each["anyOf"].size() == 2 && each["anyOf"][1].contains("properties");
    const auto& definition = named ? each["anyOf"][1] : each;
    if (!definition.contains("properties") || definition["properties"].contains("from")) continue;
    for (const auto& property : definition["properties"]) {
      INFO(definition.dump());
      CHECK_FALSE(property["description"].get<std::string>().empty());
      ++properties;
    }
  }
  CHECK(properties >= 12);
}

TEST_CASE("whatever is thrown at it, the decoder reads it or says what is wrong") {
  const std::string whole = changed("\"64 MiB\"}}", R"({"from": "1 B", "to": "64 B", "factor": 2}},
    "transport": {"staging": {"size": ["1 B", "1 KiB"]}}, "sweep": {"topology.ranks": [2, 4], "network.model": ["fair"]}})");
  CHECK(parse(whole).size() == 28);
  const Texts pieces{"{",
                     "}",
                     "[",
                     "]",
                     "\"",
                     ",",
                     ":",
                     "null",
                     "-1",
                     "1e999",
                     "\\u0000",
                     "//",
                     "/*",
                     "\n",
                     "\xFF",
                     "\xC3",
                     "9223372036854775807",
                     "0.1",
                     "\"kind\":",
                     "\"sweep\":{",
                     "\"from\":",
                     "true",
                     "\"\"",
                     "[[[",
                     "{\"a\":"};
  std::mt19937 random(4711);
  const auto below = [&](std::size_t n) { return random() % n; };
  int good = 0, bad = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (std::size_t k = 0; k <= below(3) && !text.empty(); ++k) {
      const std::size_t at = below(text.size());
      switch (below(8)) {
        case 0:
          text.erase(at, 1 + below(8));
          break;
        case 1:
          text[at] = static_cast<char>(below(256));
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), below(20)));
          break;
        case 3:
          text.resize(at + 1);
          break;
        case 4:
          text.insert(at, pieces[below(pieces.size())]);
          break;
        default:  // other numbers and names: what the text means is tried too
          if (std::isalnum(static_cast<unsigned char>(text[at])) != 0) text[at] = static_cast<char>('0' + below(10));
      }
    }
    CAPTURE(text);
    try {
      const ScenarioFile file = ScenarioFile::parse(text, "s.json");
      ++good;
      file.point(file.size() - 1);
    } catch (const InputError& error) {
      CHECK_FALSE(error.message().empty());
      ++bad;
    }
  }
  CHECK(good > 20);  // else nothing after the parser was tried
  CHECK(bad > 1000);
}

}  // namespace scenario_test
