// "library": "rccl": what it predicts by hand arithmetic, and what it refuses.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"

namespace rccl_scenario_test {

using namespace ringsim;

namespace {

const std::string one_node = R"({"version": 1, "topology": {"kind": "cluster", "node": "mi300x", "nodes": 1},
  "library": "rccl", "collective": {"op": "all_reduce", "bytes": "64 KiB"}})";
const std::string two_nodes = R"({"version": 1,
  "topology": {"kind": "cluster", "node": "mi300x", "nodes": 2,
               "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "150 ns"}}},
  "library": "rccl", "collective": {"op": "all_reduce", "bytes": "16 GiB"}})";

using Overrides = std::vector<std::string>;

Scenario point(const std::string& text, const Overrides& overrides = {}) {
  return ScenarioFile::parse(text, "s.json", overrides).point(0);
}
double us(const std::string& text, const Overrides& overrides = {}) {
  return microseconds(predict(point(text, overrides)).time);
}
std::string refusal(const std::string& text, const Overrides& overrides = {}) {
  return test::complaint([&] { point(text, overrides); });
}
void check_has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  CHECK(text.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("one node: times are launch, steps and what the slowest link leaves of the mesh") {
  // MSCCL by LL: 12 us, two steps of 0.8, twice an eighth with flags over a link of 45.1 GB/s, and the sum at 60 GB/s.
  CHECK(us(one_node) == doctest::Approx(12 + 2 * 0.8 + 2 * 16.384 / 45.1 + 8.192 / 60).epsilon(1e-3));
  // By Simple: 17 us, two steps of 2.1.
  CHECK(us(one_node, {"collective.bytes=8 MiB"}) ==
        doctest::Approx(17 + 2 * 2.1 + 2 * 1048.576 / 45.1 + 1048.576 / 60).epsilon(1e-3));
  // Rings by Simple: 14 steps, 2 * 7/8 of 1 GiB over seven links.
  CHECK(us(one_node, {"collective.bytes=1 GiB"}) ==
        doctest::Approx(17 + 14 * 2.1 + 1.75 * 1073741.824 / (7 * 45.1)).epsilon(1e-3));
  // Sends to all: an eighth to each.
  CHECK(us(one_node, {"collective.op=all_to_all", "collective.bytes=1 GiB"}) ==
        doctest::Approx(17 + 2.1 + 134217.728 / 45.1).epsilon(1e-3));
  const Prediction large = predict(point(one_node, {"collective.bytes=1 GiB"}));
  CHECK(large.library == "rccl 2.21.5");
  CHECK(large.request.channels == 14);
}

TEST_CASE("two nodes: a ring's steps within nodes load each link with an eighth of it") {
  // 2 * 15/16 of 16 GiB, over eight rings that each take a way of its own: 360.8 GB/s of bus bandwidth. NICs would
  // carry 8 * 48. Steps are 0.1 % of it.
  CHECK(us(two_nodes) == doctest::Approx(1.875 * 17179869.184 / (8 * 45.1)).epsilon(2e-3));
  const Scenario scenario = point(two_nodes);
  CHECK(scenario.main().algorithm->name == "ring");
  CHECK(scenario.transport.nics == Transport::Nics::per_channel);
  // Each NIC sends to the NIC of the same number: ring 0 leaves node0 by nic7, and enters node1, which it crosses
  // backwards, by nic7.
  const ChannelNics& nics = *scenario.transport.channel_nics;
  CHECK(nics.nic_of[0].at("gpu7") == "nic7");
  CHECK(nics.nic_of[0].at("gpu0") == "nic0");
  CHECK(scenario.library->call.graph->turned);
}

TEST_CASE("each library is refused on the other's GPUs, with its name") {
  const std::string nccl = refusal(one_node, {"library=nccl"});
  check_has(nccl, "expected NVIDIA GPUs for NCCL, found AMD GPUs in mi300x");
  const std::string rccl = refusal(one_node, {"topology.node=hgx-h100"});
  check_has(rccl, "expected AMD GPUs for RCCL, found NVIDIA GPUs in hgx-h100");
  const auto hint = [](const std::string& text, const Overrides& overrides) -> std::string {
    try {
      point(text, overrides);
    } catch (const InputError& error) {
      return error.hint();
    }
    return "";
  };
  CHECK(hint(one_node, {"library=nccl"}) == R"(write "library": "rccl")");
  CHECK(hint(one_node, {"topology.node=hgx-h100"}) == R"(write "library": "nccl")");
}

TEST_CASE("what is not modeled of RCCL is refused") {
  check_has(refusal(one_node, {"library.version=2.22.3"}),
            R"(/library/version: expected 2.21.5, the only release of RCCL that is modeled, found "2.22.3")");
  for (const char* op : {"send_recv", "gather", "scatter"})
    check_has(refusal(one_node, {std::string("collective.op=") + op}),
              "/library: expected an operation that is modeled for RCCL on one node, found " + std::string(op));
  check_has(refusal(two_nodes, {"collective.op=all_to_all"}),
            "/library: expected an operation that is modeled for RCCL on several nodes, found all_to_all");
  check_has(refusal(two_nodes, {"topology.nodes=3"}), "/topology: expected one node or an even number of nodes");
  check_has(refusal(one_node, {R"(collective.ranks=["node0.gpu0", "node0.gpu1"])"}),
            "/collective/ranks: expected all 8 GPUs of each node for RCCL, found 2 of mi300x");
  check_has(refusal(one_node, {"harness.gpus_per_thread=8"}),
            "/harness/gpus_per_thread: expected one GPU per thread with RCCL, found several");
  check_has(refusal(one_node, {"collective.algorithm=ring"}), "cannot be combined with a library");
  check_has(refusal(one_node, {"library.env.NCCL_ALGO=CollNet"}), "/library/env/NCCL_ALGO: expected names of");
  check_has(refusal(one_node, {"library.env.RCCL_ENABLE_HIPGRAPH=1"}), "its effect on RCCL is not modeled");
  check_has(refusal(one_node, {"library.env.NCCL_ALOG=Ring"}), "NCCL_ALGO");
  check_has(refusal(one_node, {"library.costs=costs.json"}), "/library/costs");
}

TEST_CASE("variables act as in RCCL, or a warning says that they do not") {
  const auto warned = [](const Overrides& overrides) {
    const auto all = point(one_node, overrides).warnings;
    std::string text;
    for (const std::string& each : all) text += each + '\n';
    return text;
  };
  const Overrides off{"library.env.RCCL_MSCCL_ENABLE=0"};
  CHECK(warned(off).empty());
  // Ring LL: 14 steps of 0.8 us, 7/4 of 64 KiB with flags; in four of its rings at once, a link of its own each.
  CHECK(us(one_node, off) > us(one_node));
  CHECK(point(one_node, off).protocol->name == "ll");
  CHECK(point(one_node, off).main().algorithm->name == "ring");
  CHECK(warned({"library.env.NCCL_PROTO=Simple"}) ==
        "--set library.env.NCCL_PROTO=Simple: /library/env/NCCL_PROTO: it has no effect, because an MSCCL schedule "
        "takes precedence at this size; with RCCL_MSCCL_ENABLE=0, RCCL's tuner chooses\n");
  CHECK(warned({"library.env.NCCL_PROTO=Simple", off.front()}).empty());
  CHECK(point(one_node, {"library.env.NCCL_PROTO=Simple", off.front()}).protocol->name == "simple");
  CHECK(warned({"library.env.NCCL_ALGO=Tree", off.front(), "collective.op=all_gather"})
            .find("RCCL 2.21.5 does not have Tree here and falls back to Ring") != std::string::npos);
  CHECK(warned({"library.env.RCCL_MSCCL_ENABLE=0", "collective.op=all_gather"}) ==
        "--set library.env.RCCL_MSCCL_ENABLE=0: /library/env/RCCL_MSCCL_ENABLE: it has no effect, because no MSCCL "
        "schedule applies here\n");
  CHECK(
      warned({"library.env.NCCL_MIN_NCHANNELS=32"}) ==
      "--set library.env.NCCL_MIN_NCHANNELS=32: /library/env/NCCL_MIN_NCHANNELS: its effect on RCCL is not modeled\n");
  CHECK(warned({"library.env.NCCL_BUFFSIZE=1048576"}) ==
        "--set library.env.NCCL_BUFFSIZE=1048576: /library/env/NCCL_BUFFSIZE: its effect on RCCL is not modeled\n");
  CHECK(
      warned({"library.env.RCCL_MSCCLPP_ENABLE=1"}) ==
      "--set library.env.RCCL_MSCCLPP_ENABLE=1: /library/env/RCCL_MSCCLPP_ENABLE: its effect on RCCL is not modeled\n");
  CHECK(warned({"library.env.NCCL_DEBUG=INFO"}).empty());  // changes no time
}

}  // namespace rccl_scenario_test
