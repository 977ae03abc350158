// Settings that change nothing in a run are said, with their place; those that change something never are.
#include "scenarios/predict/no_effect.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"

namespace no_effect_test {

using namespace ringsim;

namespace {

using Texts = std::vector<std::string>;

/// The idle ones: "/faults/0: gpu3 -> switch0: why".
Texts no_effect(const std::string& text) {
  Texts found;
  for (const SettingEffect& each : predict(ScenarioFile::parse(text, "s.json").point(0)).settings)
    if (!each.idle.empty()) found.push_back(each.setting + ": " + each.idle);
  return found;
}

/// A ring all-reduce of 40 MB over a star of four ranks at 10 GB/s, 1 us per link: 6012 us. It uses every port.
Texts on_star(const std::string& more, const std::string& ranks = "") {
  return no_effect(R"({"version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB")" +
                   ranks + "}" + (more.empty() ? "" : ",\n  " + more) + "}");
}

/// 8 dgx-1v, 2 to a leaf, four spines. `ranks`: two nodes of one leaf, or of two.
Texts on_leaves(const std::string& ranks, const std::string& fabric, const std::string& more = "") {
  return no_effect(R"({"version": 1,
  "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 8,
    "fabric": {"kind": "leaf_spine", "nodes_per_leaf": 2, "spines": 4, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"})" +
                   fabric + R"(}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MB", "ranks": [)" +
                   ranks + "]}" + more + "}");
}
const std::string one_leaf = R"("node0.gpu0", "node1.gpu0")", two_leaves = R"("node0.gpu0", "node2.gpu0")";

}  // namespace

TEST_CASE("a run without such settings, and one whose settings matter, has nothing to say") {
  CHECK(on_star("").empty());
  CHECK(on_star(R"("faults": [{"link": "gpu1 -> switch0", "bandwidth": "25%", "at": "1 ms"}])").empty());
  CHECK(on_star(R"("faults": [{"link": "gpu1", "state": "down", "at": "1 ms", "until": "2 ms"}])").empty());
  CHECK(on_star(R"("disturbance": {"background": [{"from": "gpu0", "to": "gpu1", "bytes": "1 MB"}]})").empty());
  CHECK(on_leaves(two_leaves, R"(, "oversubscription": 2)").empty());
}

TEST_CASE("a fault on a link that carries no message is said, whatever it does to the link") {
  const std::string two_ranks = R"(, "ranks": ["gpu0", "gpu1"])";
  for (const std::string change : {R"("bandwidth": "25%")", R"("state": "down")"}) {
    CAPTURE(change);
    CHECK(on_star(R"("faults": [{"link": "gpu3 -> switch0", )" + change + "}]", two_ranks) ==
          Texts{"s.json: /faults/0: gpu3 -> switch0: no message of this run uses such a link"});
  }
  // The second of two.
  CHECK(on_star(R"("faults": [{"link": "gpu0", "bandwidth": "50%"}, {"link": "gpu2", "bandwidth": "50%"}])",
                two_ranks) == Texts{"s.json: /faults/1: gpu2: no message of this run uses such a link"});
}

TEST_CASE("a link that is down from the beginning has an effect if messages would take it otherwise") {
  // Static routing goes over spine0 without the fault, and round it with the fault.
  const Texts on_the_way = on_leaves(two_leaves, "", R"(, "faults": [{"link": "spine0", "state": "down"}])");
  CHECK(on_the_way.empty());
  CHECK(on_leaves(one_leaf, "", R"(, "faults": [{"link": "spine0", "state": "down"}])") ==
        Texts{"s.json: /faults/0: spine0: no message of this run uses such a link"});
}

TEST_CASE("a fault that begins when all is over, restores what was whole, or sets the rate that a link has, is said") {
  CHECK(on_star(R"("faults": [{"link": "gpu0", "state": "down", "at": "1 s"}])") ==
        Texts{"s.json: /faults/0: gpu0: it starts after the end of the run"});
  CHECK(on_star(R"("faults": [{"link": "gpu0 -> switch0", "bandwidth": "10 GB/s"}])") ==
        Texts{"s.json: /faults/0: gpu0 -> switch0: the link has this bandwidth anyway"});
  CHECK(on_star(R"("faults": [{"link": "gpu0", "bandwidth": "50%"}])", R"(, "ranks": ["gpu0"])") ==
        Texts{"s.json: /faults/0: gpu0: no data moves in this run"});
}

TEST_CASE("a background message that meets no message of the run is said") {
  const std::string apart = R"("disturbance": {"background": [{"from": "gpu2", "to": "gpu3", "bytes": "1 MB"}]})";
  CHECK(on_star(apart, R"(, "ranks": ["gpu0", "gpu1"])") ==
        Texts{"s.json: /disturbance/background/0: gpu2 -> gpu3: it shares no link with the messages of this run"});
  CHECK(
      on_star(R"("disturbance": {"background": [{"from": "gpu0", "to": "gpu1", "bytes": "1 MB", "start": "1 s"}]})") ==
      Texts{"s.json: /disturbance/background/0: gpu0 -> gpu1: it starts after the end of the run"});
}

TEST_CASE("oversubscription and figures of uplinks that no message crosses are said") {
  CHECK(
      on_leaves(one_leaf, R"(, "oversubscription": 2)") ==
      Texts{"s.json: /topology/fabric/oversubscription: cables between switches: no message of this run crosses one"});
  CHECK(on_leaves(one_leaf, R"(, "oversubscription": 1)").empty());  // nothing that one would expect to matter
  CHECK(on_leaves(one_leaf, R"(, "cables": [{"from": "leaf0", "to": "spine0", "bandwidth": "50 Gb/s"}])") ==
        Texts{"s.json: /topology/fabric/cables/0: leaf0, spine0: no message of this run crosses it"});
}

TEST_CASE("a slow cable that messages avoid because it is slow is not said to change nothing") {
  // hgx-h100-4nic: the GPU next to nic3 takes another NIC, whose path is wider.
  const std::string nodes = R"({"version": 1, "topology": {"kind": "cluster", "node": "hgx-h100-4nic", "nodes": 4,
    "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"},
      "cables": [{"from": "node)";
  const std::string rest = R"(.nic3", "to": "leaf0", "bandwidth": "100 Gb/s"}]}},
    "collective": {"op": "send_recv", "algorithm": "direct", "bytes": "1 MB", "ranks": ["node0.gpu6", "node1.gpu6"]}})";
  CHECK(no_effect(nodes + "0" + rest).empty());
  CHECK(no_effect(nodes + "3" + rest) ==
        Texts{"s.json: /topology/fabric/cables/0: node3.nic3, leaf0: no message of this run crosses it"});
}

TEST_CASE("routing that could choose, where every message has one way, is said") {
  CHECK(on_star(R"("network": {"routing": "ecmp", "seed": 7})") ==
        Texts{"s.json: /network/routing: ecmp: every message of this run has only one path"});
  CHECK(on_leaves(two_leaves, "", R"(, "network": {"routing": "ecmp"})").empty());
  CHECK(on_leaves(one_leaf, "", R"(, "network": {"routing": "packet_spray"})") ==
        Texts{"s.json: /network/routing: packet_spray: every message of this run has only one path"});
}

TEST_CASE("PXN that no message would take, and rooms in which none rests, are said") {
  const auto on_a100 = [](const std::string& collective, const std::string& transport, const std::string& library) {
    return no_effect(R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
      "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}}, )" +
                     library + R"( "collective": {"bytes": "1 MB", )" + collective + R"(}, "transport": )" + transport +
                     "}");
  };
  const std::string nccl = R"("library": "nccl",)", off = R"({"pxn": false})";
  const std::string all_reduce = R"("op": "all_reduce")", all_to_all = R"("op": "all_to_all")";
  const std::string of_two = all_reduce + R"(, "ranks": ["node0.gpu0", "node1.gpu0"])";
  const Texts idle{"s.json: /transport/pxn: false (NCCL_PXN_DISABLE=1): no message of this run would use PXN"};
  CHECK(on_a100(of_two, off, nccl) == idle);  // one rail
  CHECK(on_a100(of_two, R"({"NCCL_PXN_DISABLE": "1"})", nccl) == idle);
  CHECK(on_a100(of_two + R"(, "algorithm": "ring")", off, "") == idle);
  CHECK(on_a100(of_two, "{}", nccl).empty());
  CHECK(on_a100(all_to_all, off, nccl).empty());
  CHECK(on_a100(all_to_all + R"(, "algorithm": "direct")", off, "").empty());
  CHECK(on_a100(all_reduce, off, nccl) == idle);  // rings end where their NIC is near

  const Texts no_rooms{
      "s.json: /transport/staging/depth: 4: no message of this run is staged in host memory or on a relaying GPU"};
  CHECK(on_a100(of_two, R"({"staging": {"depth": 4}})", nccl) == no_rooms);
  CHECK(on_a100(of_two, R"({"staging": {"depth": 4}, "gpudirect": false})", nccl).empty());
}

TEST_CASE("GPUDirect switched on or off is said if GPUs are too far from their NICs for it") {
  const auto on_two = [](const std::string& node, const std::string& transport, const std::string& library) {
    return no_effect(R"({"version": 1, "topology": {"kind": "cluster", "node": ")" + node + R"(", "nodes": 2,
      "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}}, )" +
                     library + R"("collective": {"op": "all_reduce", "bytes": "1 MB"}, "transport": )" + transport +
                     "}");
  };
  const std::string nccl = R"("library": "nccl", )", on = R"({"gpudirect": true})", off = R"({"gpudirect": false})";
  const Texts idle_on{
      "s.json: /transport/gpudirect: true: GPUDirect reaches up to P2C, but the distance between GPUs and their NICs "
      "is PHB; with NCCL_NET_GDR_LEVEL SYS, it reaches any distance"};
  const Texts idle_off{
      "s.json: /transport/gpudirect: false: GPUDirect is not used anyway: it reaches up to P2C, but the distance "
      "between GPUs and their NICs is PHB"};
  CHECK(on_two("polaris", on, nccl) == idle_on);
  CHECK(on_two("polaris", off, nccl) == idle_off);
  CHECK(on_two("polaris", "{}", nccl).empty());
  CHECK(on_two("polaris", R"({"gpudirect": true, "gdr_level": "SYS"})", nccl).empty());
  CHECK(on_two("dgx-a100", on, nccl).empty());
  CHECK(on_two("dgx-a100", off, nccl).empty());
}

TEST_CASE("ACS that no message meets is said") {
  const auto ring = [](const std::string& node, const std::string& ranks) {
    return no_effect(R"({"version": 1, "topology": {"kind": "cluster", "node": ")" + node + R"(", "nodes": 2,
      "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MB", "ranks": )" +
                     ranks + R"(}, "transport": {"acs": true}})");
  };
  const Texts idle{
      "s.json: /transport/acs: true: no message of this run passes between two devices below the same PCIe switch"};
  CHECK(ring("dgx-a100", R"(["node0.gpu0", "node0.gpu1"])") == idle);  // over NVLink
  CHECK(ring("dgx-a100", R"(["node0.gpu0", "node1.gpu0"])").empty());
  CHECK(ring("gh200", R"(["node0.gpu0", "node1.gpu0"])") == idle);  // no PCIe switch between GPU and NIC
}

}  // namespace no_effect_test
