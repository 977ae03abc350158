// Settings without effect next to a library, and machines that it sees differently: each is a warning.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/library_scenario.hpp"

namespace library_warnings_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::test;

namespace {}  // namespace

TEST_CASE("without a library an algorithm is needed, and the launch of its kernels changes nothing, which is said") {
  CHECK(has(refusal(one_dgx_a100, {"library=null"}), R"(/collective: expected the key "algorithm", found none)"));
  const Scenario scenario =
      point(one_dgx_a100, {"library=null", "collective.algorithm=ring", "devices.gpu.launch=1 us"});
  REQUIRE(scenario.warnings.size() == 1);
  CHECK(has(scenario.warnings.front(), "/devices/gpu/launch: it has no effect"));
}

TEST_CASE("what a library's costs have already changes nothing, which is said") {
  const std::string small = "collective.bytes=4 MiB";  // by LL128
  const auto warning = [&](const std::string& set) { return point(one_dgx_a100, {small, set}).warnings.at(0); };
  CHECK(has(warning("devices.gpu.channel=20 GB/s"), "/devices/gpu/channel: it has no effect"));
  CHECK(has(warning("devices.gpu.start=2 us"), "/devices/gpu/start: it has no effect"));
  CHECK(has(warning("devices.cpu.reduce=20 GB/s"), "/devices/cpu: it has no effect"));
  CHECK(predicted(one_dgx_a100, {small, "devices.gpu.channel=1 GB/s"}).time == predicted(one_dgx_a100, {small}).time);
}

TEST_CASE("a thread that calls several GPUs launches later, and what is not modeled is warned of") {
  const Prediction one = predicted(one_dgx_a100), eight = predicted(one_dgx_a100, {"harness.gpus_per_thread=8"});
  CHECK(eight.time - one.time == Picoseconds{51'800'000});  // 7 more of 7.4 us
  const Scenario scenario = point(one_dgx_a100, {"library.env.NCCL_CROSS_NIC=1", "library.env.NCCL_BUFFSIZE=4194304"});
  REQUIRE(scenario.warnings.size() == 2);
  CHECK(has(scenario.warnings.front(), "/library/env/NCCL_CROSS_NIC: it has no effect"));
  CHECK(has(point(one_dgx_a100, {"harness.iterations=20"}).warnings.front(), "/harness/iterations: it has no effect"));
  const Scenario without =
      point(one_dgx_a100, {"library=null", "collective.algorithm=ring", "harness.processes_per_node=8"});
  REQUIRE(without.warnings.size() == 1);
  CHECK(has(without.warnings.front(), "/harness: it has no effect"));
}

TEST_CASE("NICs that NCCL would use between GPUs of a node cause a warning, unless NCCL_NET_DISABLE_INTRA is 1") {
  const std::string two = R"({"version": 1, "library": "nccl", "topology": {"kind": "cluster", "node": "a100-pcie",
      "nodes": 2, "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}}},
      "collective": {"op": "all_reduce", "bytes": "64 MiB"}})";
  REQUIRE(point(two).warnings.size() == 1);
  CHECK(has(point(two).warnings.front(), "s.json: /library: NCCL would also use NICs between GPUs of one node"));
  CHECK(point(two, {"library.env.NCCL_NET_DISABLE_INTRA=1"}).warnings.empty());
  CHECK(point(two, {"library.env.NCCL_NET_DISABLE_INTRA=0"}).warnings.size() == 2);  // and that it is not modeled
  CHECK(point(two, {"topology.node=dgx-a100"}).warnings.empty());
}

TEST_CASE("a variable of what the library has not chosen changes nothing, which is said") {
  const std::string two_hgx_h100 = R"({"version": 1,
    "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 2,
                 "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "150 ns"}}},
    "library": {"name": "nccl", "env": {"NCCL_ALGO": "NVLSTree"}}, "collective": {"op": "all_reduce", "bytes": "64 MiB"}})";
  struct Row {
    std::string scenario;
    Overrides chosen;
    std::string variable;
    int value;
    std::string because;
  };
  const std::vector<Row> rows = {
      {two_hgx_h100, {}, "NCCL_MAX_NCHANNELS", 2, "chooses NVLSTree"},
      {two_hgx_h100, {}, "NCCL_MIN_NCHANNELS", 32, "chooses NVLSTree"},
      {two_hgx_h100, {}, "NCCL_NTHREADS", 256, "chooses NVLSTree"},
      {one_dgx_a100, {"library.env.NCCL_PROTO=LL128"}, "NCCL_NTHREADS", 256, "chooses LL128"},
      {one_dgx_a100,
       {"collective.op=all_to_all"},
       "NCCL_NTHREADS",
       256,
       "all_to_all consists of sends and receives to peers"},
      {one_dgx_a100, {"collective.op=all_gather"}, "NCCL_NVLS_ENABLE", 0, "not modeled for all_gather"}};
  for (const Row& row : rows) {
    CAPTURE(row.variable);
    Overrides with = row.chosen;
    with.push_back("library.env." + row.variable + "=" + std::to_string(row.value));
    const std::vector<std::string> warnings = point(row.scenario, with).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(has(warnings.front(), "/library/env/" + row.variable + ": it has no effect, because "));
    CHECK(has(warnings.front(), row.because));
    CHECK(predicted(row.scenario, with).time == predicted(row.scenario, row.chosen).time);
  }
  // Of what is chosen, each has an effect, and nothing is said.
  for (const char* set : {"library.env.NCCL_MAX_NCHANNELS=2", "library.env.NCCL_NTHREADS=64"}) {
    CAPTURE(set);
    const Overrides small = {"library.env.NCCL_ALGO=Ring", "library.env.NCCL_PROTO=Simple", "collective.bytes=256 KiB"};
    Overrides with = small;
    with.emplace_back(set);
    CHECK(point(one_dgx_a100, with).warnings.empty());
    CHECK(predicted(one_dgx_a100, with).time != predicted(one_dgx_a100, small).time);
  }
}

TEST_CASE("numbers that a release has no use for count as what NCCL takes instead, which is said") {
  const Overrides many = {"library.env.NCCL_MIN_NCHANNELS=64"};
  const Scenario capped = point(two_dgx_a100, many);  // 2.22.3: MAXCHANNELS is 32
  CHECK(capped.warnings ==
        std::vector<std::string>{"--set library.env.NCCL_MIN_NCHANNELS=64: /library/env/NCCL_MIN_NCHANNELS: treated as "
                                 "32, because NCCL 2.22.3 supports no more channels; found 64"});
  CHECK(capped.main().request.channels == 32);
  CHECK(has(point(two_dgx_a100, {"library.env.NCCL_MAX_NCHANNELS=33"}).warnings.at(0), "treated as 32"));
  const Scenario newer = point(two_dgx_a100, {"library.env.NCCL_MIN_NCHANNELS=64", "library.version=2.25.1"});
  CHECK(newer.warnings.empty());
  CHECK(newer.main().request.channels == 64);

  const Overrides simple = {"library.env.NCCL_PROTO=Simple", "library.env.NCCL_ALGO=Ring", "collective.bytes=256 KiB"};
  const auto with_threads = [&](int threads) {
    Overrides out = simple;
    out.push_back("library.env.NCCL_NTHREADS=" + std::to_string(threads));
    return out;
  };
  REQUIRE(predicted(one_dgx_a100, with_threads(96)).time != predicted(one_dgx_a100, with_threads(512)).time);
  CHECK(predicted(one_dgx_a100, with_threads(100)).time == predicted(one_dgx_a100, with_threads(512)).time);
  CHECK(has(point(one_dgx_a100, with_threads(100)).warnings.at(0),
            "/library/env/NCCL_NTHREADS: treated as 512, because NCCL accepts only multiples of 32; found 100"));
  CHECK(point(one_dgx_a100, with_threads(96)).warnings.empty());
}

TEST_CASE("a release older than all that are modeled goes by the rules of the oldest, which is said") {
  CHECK(has(point(two_dgx_a100, {"library.version=2.4.8"}).warnings.at(0),
            "/library/version: 2.4.8 is simulated with the rules of 2.8.3, the oldest release that is modeled"));
  for (const char* version : {R"(library.version="2.8")", "library.version=2.8.3", "library.version=2.22.3"}) {
    CAPTURE(version);
    CHECK(point(two_dgx_a100, {version}).warnings.empty());
  }
}

TEST_CASE("a list for one function is compared with what that function does, also in an inference step") {
  const std::string decode = R"({"version": 1, "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 1},
    "library": {"name": "nccl", "env": {"NCCL_ALGO": "allreduce:NVLS"}},
    "inference": {"workload": {"model": "llama3_8b", "compute": {"gemm": "70%", "attention": "50%", "memory": "80%",
                               "peak": "989 TFLOP/s", "hbm": "3350 GB/s"}},
                  "parallel": {"tensor": 8}, "phase": "decode", "batch": 1, "context": 1024}})";
  CHECK(point(decode).warnings.empty());
  CHECK(has(refusal(decode, {"library.env.NCCL_ALGO=NVLS"}), "an algorithm and a protocol that NCCL can use for"));
}

TEST_CASE("a fault that slows or cuts a link of a node is warned of, because a library chooses as without it") {
  const auto warned = [](const std::string& faults) {
    const std::vector<std::string> warnings = point(two_dgx_a100, {"faults=[" + faults + "]"}).warnings;
    return warnings.empty() ? std::string() : warnings.front();
  };
  const std::string half = R"("bandwidth": "50%"})", slower = "describe the machine with fewer links or lanes";
  CHECK(has(warned(R"({"link": "node0.gpu0 -> node0.nvswitch0", )" + half), slower));
  CHECK(has(warned(R"({"link": "node0.nic0", )" + half), slower));  // all links of a device
  const std::string down = R"({"link": "node0.nic0", "state": "down"})";
  CHECK(has(warned(R"({"link": "node0.gpu0", )" + half + ", " + down), "/faults/1: NCCL chooses"));
  CHECK(has(warned(down), "describe the machine without the link"));
  for (const char* cable : {R"({"link": "node0.nic0 -> leaf0", )", R"({"link": "leaf0 -> node0.nic0", )"})
    CHECK(has(warned(cable + half), "A job that starts later sees the rate of the port"));
  CHECK(warned(R"({"link": "leaf0", )" + half).empty());  // a switch
  CHECK(warned(R"({"link": "node0.gpu0", "at": "1 us", )" + half).empty());
}

TEST_CASE("settings of what a machine lacks or an operation leaves out change nothing, which is said") {
  const std::string hgx_h100 = R"({"version": 1, "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 1},
    "library": "nccl", "collective": {"op": "all_reduce", "bytes": "64 MiB"}})";
  struct Row {
    std::string scenario, place;
    Overrides set;
    std::string because;
  };
  const std::vector<Row> rows = {
      {hgx_h100, "/library/env/NCCL_NVLS_ENABLE", {"library.env.NCCL_NVLS_ENABLE=2"}, "NVLS can be chosen without it"},
      {two_dgx_a100, "/library/env/NCCL_NVLS_ENABLE", {"library.env.NCCL_NVLS_ENABLE=0"}, "the machine has no NVLS"},
      {hgx_h100,
       "/library/env/NCCL_ALGO",
       {"library.env.NCCL_ALGO=allgather:Ring"},
       "nothing here calls the functions that it names"},
      {hgx_h100,
       "/library/env/NCCL_PROTO",
       {"library.env.NCCL_PROTO=broadcast:Simple"},
       "nothing here calls the functions that it names"},
      {two_dgx_a100, "/devices/gpu/copy", {"devices.gpu.copy=1 GB/s"}, "in all_reduce, no rank copies its own part"},
      {one_dgx_a100,
       "/devices/gpu/reduce",
       {"devices.gpu.reduce=1 GB/s", "collective.op=all_gather"},
       "in all_gather, no rank adds its own part"}};
  for (const Row& row : rows) {
    CAPTURE(row.set.front());
    const std::vector<std::string> warnings = point(row.scenario, row.set).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(has(warnings.front(), row.place + ": it has no effect, because " + row.because));
    const Overrides without(row.set.begin() + 1, row.set.end());
    CHECK(predicted(row.scenario, row.set).time == predicted(row.scenario, without).time);
  }
  for (const char* set : {"library.env.NCCL_ALGO=Ring", "devices.gpu.reduce=1 GB/s", "library.env.NCCL_ALGO=^Tree"}) {
    CAPTURE(set);
    CHECK(point(two_dgx_a100, {set}).warnings.empty());
  }
  CHECK(point(hgx_h100, {"library.env.NCCL_NVLS_ENABLE=0"}).warnings.empty());
  // Of a file that varies it, one point is the one without it.
  CHECK(point(hgx_h100, {R"(library.env.NCCL_NVLS_ENABLE=["2", "0"])"}).warnings.empty());
}

TEST_CASE("where the machine has none of the algorithms that are named, it is said which NCCL takes") {
  const auto warnings = [](const std::string& algorithms, const std::string& bytes) {
    return point(two_dgx_a100, {"library.env.NCCL_ALGO=" + algorithms, "collective.bytes=" + bytes}).warnings;
  };
  CHECK(has(warnings("NVLS", "64 MiB").at(0),
            "/library/env/NCCL_ALGO: NCCL 2.22.3 does not have NVLS here and falls back to Ring"));
  CHECK(has(warnings("NVLS", "1 KiB").at(0), "falls back to Tree"));
  CHECK(has(warnings("NVLSTree", "1 KiB").at(0), "does not have NVLSTree here and falls back to Ring"));
  CHECK(has(warnings("^Ring,Tree", "64 MiB").at(0), "does not have NVLS, NVLSTree, PAT here and falls back to Ring"));
  CHECK(warnings("NVLS,Ring", "64 MiB").empty());
}

}  // namespace library_warnings_test
