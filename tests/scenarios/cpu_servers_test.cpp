// Parameter servers on CPUs: where they sit, and what binds them, worked out by hand.
#include <doctest/doctest.h>

#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/command.hpp"

namespace cpu_servers_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

Prediction predicted(const std::string& topology, int servers, const std::string& more = "",
                     const std::string& bytes = "1 MB") {
  const std::string text = R"({"version": 1, "topology": )" + topology +
                           R"(, "collective": {"op": "all_reduce", "servers_on": "cpu", "bytes": ")" + bytes +
                           R"(", "algorithm": {"name": "parameter_server", "servers": )" + std::to_string(servers) +
                           "}" + more + "}}";
  return predict(ScenarioFile::parse(text, "s.json").point(0));
}

std::string refusal(const std::string& topology, int servers) {
  try {
    predicted(topology, servers);
    return "none";
  } catch (const InputError& error) {
    return error.what();
  }
}

// g0 - s0 - c0 = 4 GB/s = c1 - s1 - g2, with g1 on s0 and g3 on s1; all else 10 GB/s, and 100 ns per link.
constexpr const char* two_sockets = R"({"kind": "graph",
  "nodes": [{"name": "g0", "kind": "gpu"}, {"name": "g1", "kind": "gpu"}, {"name": "g2", "kind": "gpu"},
            {"name": "g3", "kind": "gpu"}, {"name": "s0", "kind": "pcie_switch"}, {"name": "s1", "kind": "pcie_switch"},
            {"name": "c0", "kind": "cpu"}, {"name": "c1", "kind": "cpu"}],
  "links": [{"from": "g0", "to": "s0", "bandwidth": "10 GB/s", "latency": "100 ns"},
            {"from": "g1", "to": "s0", "bandwidth": "10 GB/s", "latency": "100 ns"},
            {"from": "g2", "to": "s1", "bandwidth": "10 GB/s", "latency": "100 ns"},
            {"from": "g3", "to": "s1", "bandwidth": "10 GB/s", "latency": "100 ns"},
            {"from": "s0", "to": "c0", "bandwidth": "10 GB/s", "latency": "100 ns"},
            {"from": "s1", "to": "c1", "bandwidth": "10 GB/s", "latency": "100 ns"},
            {"from": "c0", "to": "c1", "bandwidth": "4 GB/s", "latency": "100 ns"}]})";

}  // namespace

TEST_CASE("servers on CPUs of a free graph: the links that GPUs share on their way there set the time") {
  // p = 1 MB. g0 and g1 alone, server on c0: the uplink s0 -> c0 carries 2p in 200 us, after 0.2 us; and the same back.
  CHECK(predicted(two_sockets, 1, R"(, "ranks": ["g0", "g1"])").time == times(2, 200'200'000_ps));
  // All four: the link between the sockets carries the 2p of g2 and g3 in 500 us, after 0.3 us.
  CHECK(predicted(two_sockets, 1).time == times(2, 500'300'000_ps));
  // A server on each: half of each buffer crosses the sockets, p each way in 250 us. Its uplink gives a GPU what is
  // left.
  CHECK(predicted(two_sockets, 2).time == times(2, 250'300'000_ps));
}

TEST_CASE("on DGX-1V the uplinks of the PCIe switches bind four GPUs of a socket, the sockets' link all eight") {
  // Uplinks of 12 GB/s, QPI of 6 GB/s; GPU -> switch -> CPU -> memory 350 + 350 + 100 ns, over QPI 100 ns more.
  // p = 12 MB: two GPUs an uplink take 2 ms; four GPUs' buffers over QPI 8 ms, four halves 4 ms.
  const std::string dgx = R"({"kind": "cluster", "node": "dgx-1v", "nodes": 1})";
  const std::string socket = R"(, "ranks": ["node0.gpu0", "node0.gpu1", "node0.gpu2", "node0.gpu3"])";
  const Prediction four = predicted(dgx, 1, socket, "12 MB");
  CHECK(four.time == times(2, 2'000'800'000_ps));
  REQUIRE(four.bottleneck);
  CHECK(four.bottleneck->kind == "pcie");
  const Prediction eight = predicted(dgx, 1, "", "12 MB");
  CHECK(eight.time == times(2, 8'000'900'000_ps));
  REQUIRE(eight.bottleneck);
  CHECK(eight.bottleneck->kind == "socket");
  CHECK(predicted(dgx, 2, "", "12 MB").time == times(2, 4'000'900'000_ps));
}

TEST_CASE("a CPU's data leaves by its fastest NIC, though a slow port, as for management, is nearer") {
  // Port m, 1 Gb/s, on the CPU itself; NIC f, 10 GB/s, below a switch. One server: rank 1 pushes 1 MB to node 0's CPU
  // and pulls it back: 2 (p/b + a), 0.1 ms a way over f, and 8 ms over m.
  const auto type = [](const std::string& name, const std::string& kind, const std::string& rate) {
    return '"' + name + R"(": {"kind": ")" + kind + R"(", "bandwidth": {"value": ")" + rate +
           R"(", "source": "t"}, "latency": {"value": "0 us", "source": "t"}})";
  };
  const std::string machine = R"({"name": "managed", "summary": "t", "link_types": {)" +
                              type("wire", "pcie", "10 GB/s") + ", " + type("fast", "infiniband", "10 GB/s") + ", " +
                              type("slow", "ethernet", "1 Gb/s") +
                              R"(}, "devices": [{"name": "g", "kind": "gpu"}, {"name": "c", "kind": "cpu"},
                {"name": "p", "kind": "pcie_switch"}, {"name": "m", "kind": "nic", "port": "slow"},
                {"name": "f", "kind": "nic", "port": "fast"}],
    "links": [{"from": "p", "to": "c", "type": "wire"}, {"from": "g", "to": "p", "type": "wire"},
              {"from": "m", "to": "c", "type": "wire"}, {"from": "f", "to": "p", "type": "wire"}]})";
  const std::string file = test::temporary_file("managed.json", machine);
  const Prediction p = predicted(
      R"({"kind": "cluster", "node_file": ")" + file +
          R"(", "nodes": 2, "fabric": {"kind": "star", "link": {"bandwidth": "10 GB/s", "latency": "0 us"}}})",
      1);
  CHECK(p.time < Picoseconds{1'000'000'000});  // 1 ms
}

TEST_CASE("servers take the first CPU of each node before the second") {
  // Two nodes, a server on cpu0 of each. In a node four GPUs are on the other socket: half of each of their buffers
  // goes to the near server over QPI, 2p, and as much comes back the other way. What is for the other node takes a NIC
  // near the GPU, and there one near the server. Both servers on node0 would have 4p on its QPI and nothing on node1's.
  const Prediction p = predicted(R"({"kind": "cluster", "node": "dgx-1v", "nodes": 2, "fabric": {"kind": "star",
    "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}}})",
                                 2);
  int found = 0;
  for (const LinkGroup& group : p.links) {
    if (group.links != "node*.cpu* -> node*.cpu*") continue;
    ++found;
    CHECK(group.count == 4);
    CHECK(group.most == 2_B * 1'000'000);
  }
  CHECK(found == 1);
}

TEST_CASE("servers need CPUs, one each, and an algorithm that has servers") {
  CHECK(refusal(two_sockets, 3) ==
        "s.json: /collective/servers_on: expected at most as many servers as CPUs, 2, found 3\n"
        "  hint: `ringsim topology show` lists the nodes");
  CHECK(refusal(R"({"kind": "star", "ranks": 4, "link": {"bandwidth": "1 GB/s", "latency": "0 ns"}})", 1) ==
        "s.json: /collective/servers_on: expected at most as many servers as CPUs, 0, found 1\n"
        "  hint: `ringsim topology show` lists the nodes");
  const auto ring = [] {
    ScenarioFile::parse(R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 1},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MB", "servers_on": "cpu"}})",
                        "s.json")
        .point(0);
  };
  CHECK_THROWS_WITH_AS(ring(),
                       "s.json: /collective/servers_on: expected servers_on only for an algorithm with separate "
                       "servers, found ring\n  hint: such as {\"name\": \"parameter_server\", \"servers\": 1}",
                       InputError);
}

}  // namespace cpu_servers_test
