// NCCL's variables that change nothing here: that the table is whole, and that each is taken.
#include "topologies/nccl/nccl_variables.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"

namespace nccl_variables_test {

using namespace ringsim;

namespace {

const std::string two_dgx_a100 = R"({"version": 1,
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
               "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}}},
  "library": {"name": "nccl", "version": "2.22.3"},
  "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";

Scenario point(const std::vector<std::string>& set = {}) {
  return ScenarioFile::parse(two_dgx_a100, "s.json", set).point(0);
}
std::string variable(std::string_view name, const std::string& value) {
  return fmt::format("library.env.{}={}", name, value);
}

}  // namespace

TEST_CASE("every variable of the table is taken, changes neither scenario nor time, and says so if NCCL's would") {
  // GPUs that have only host memory between them, on two nodes: NCCL reads all variables there.
  const auto at = [](std::vector<std::string> set) {
    set.emplace_back("topology.node=rtxpro6000-pcie");
    set.emplace_back("library.version=2.30.7");
    return point(set);
  };
  const Scenario without = at({});
  std::size_t neutral = 0, unmodeled = 0;
  std::set<std::string_view> names;
  for (const nccl::OtherVariable& each : nccl::other_variables()) {
    CAPTURE(std::string(each.name));
    CHECK(each.name.starts_with("NCCL_"));
    CHECK(names.insert(each.name).second);
    CHECK_FALSE(each.what.empty());
    CHECK(nccl::find_other_variable(each.name) == &each);
    (each.changes_time ? unmodeled : neutral)++;
    for (const char* value : {"77", "\"a text\""}) {
      const Scenario with = at({variable(each.name, value)});
      CHECK(with.hash == without.hash);
      REQUIRE(with.warnings.size() == (each.changes_time ? 1U : 0U));
      if (!each.changes_time) continue;
      CHECK(with.warnings.front().find(fmt::format("/library/env/{}: its effect is not modeled: {}", each.name,
                                                   each.what)) != std::string::npos);
    }
    for (std::size_t from = 0; from < each.idle.size();) {
      const std::size_t comma = std::min(each.idle.find(',', from), each.idle.size());
      CHECK(at({variable(each.name, fmt::format("\"{}\"", each.idle.substr(from, comma - from)))}).warnings.empty());
      from = comma + 1;
    }
  }
  CHECK(neutral + unmodeled > 200);
  CHECK(neutral > 60);
  CHECK(unmodeled > 60);
  CHECK(nccl::find_other_variable("NCCL_ALGO") == nullptr);  // acts
  CHECK(nccl::find_other_variable("NCCL") == nullptr);
}

TEST_CASE("the variables of real command lines run, with a warning for what is not modeled") {
  // From the threads of NVIDIA/nccl and nccl-tests.
  const Scenario scenario = point({R"(library.env={"NCCL_DEBUG": "INFO", "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_IB_GID_INDEX": "3", "NCCL_IB_TC": 106, "NCCL_TOPO_DUMP_FILE": "/tmp/t.xml", "NCCL_CUMEM_ENABLE": 0,
    "NCCL_IB_QPS_PER_CONNECTION": 4, "NCCL_SHM_DISABLE": "0", "NCCL_IB_DISABLE": 1})"});
  REQUIRE(scenario.warnings.size() == 2);
  CHECK(scenario.warnings[0].ends_with(
      "/library/env/NCCL_IB_QPS_PER_CONNECTION: its effect is not modeled: the number of queue pairs per connection "
      "between two ranks, and with it the number of fabric paths that its messages use; \"network\": {\"routing\": "
      "\"packet_spray\"} spreads every message over all paths"));
  CHECK(scenario.warnings[1].ends_with(
      "/library/env/NCCL_IB_DISABLE: its effect is not modeled: sockets instead of InfiniBand and RoCE"));
  CHECK(predict(scenario).time == predict(point()).time);
}

TEST_CASE("a variable warns only on machines where NCCL reads it") {
  const auto warnings = [](const std::string& node, int nodes, const std::string& env) {
    return point({"topology.node=" + node, fmt::format("topology.nodes={}", nodes), "library.env=" + env}).warnings;
  };
  // All GPUs reach each other over NVLink: nothing rests in host memory.
  CHECK(warnings("dgx-a100", 2, R"({"NCCL_SHM_DISABLE": 1})").empty());
  CHECK(warnings("dgx-a100", 1, R"({"NCCL_SHM_DISABLE": 1, "NCCL_IB_QPS_PER_CONNECTION": 4})").empty());
  CHECK(warnings("dgx-a100", 1, R"({"NCCL_NETDEVS_POLICY": "MAX:1", "NCCL_GDRCOPY_ENABLE": 1})").empty());
  CHECK(warnings("dgx-a100", 2, R"({"NCCL_IB_QPS_PER_CONNECTION": 4})").size() == 1);
  CHECK(warnings("dgx-a100", 2, R"({"NCCL_IB_MERGE_NICS": 1})").empty());  // the default
  CHECK(warnings("dgx-a100", 2, R"({"NCCL_IB_MERGE_NICS": 0})").size() == 1);
  // Eight GPUs of two sockets exchange data through host memory, or without it through the network.
  CHECK(warnings("rtx4090-pcie", 1, R"({"NCCL_IB_QPS_PER_CONNECTION": 4})").empty());
  const auto two = warnings("rtx4090-pcie", 1, R"({"NCCL_SHM_DISABLE": 1, "NCCL_IB_QPS_PER_CONNECTION": 4})");
  REQUIRE(two.size() == 2);
  CHECK(
      two[0].ends_with("/library/env/NCCL_SHM_DISABLE: its effect is not modeled: using the network instead of host "
                       "memory between the GPUs of a node; NCCL then treats each group of GPUs with peer access as a "
                       "node, so describe these nodes in the scenario (docs/guide/nccl.md, Your own nodes)"));
  // Without peer access NVLink is not used either.
  CHECK(warnings("dgx-a100", 1, R"({"NCCL_SHM_DISABLE": 1, "NCCL_P2P_DISABLE": 1})").size() == 1);
}

TEST_CASE("a name that NCCL does not have is an error with the nearest one, and other software's with what to do") {
  const auto complaint = [](const std::string& name) {
    const std::string text = test::complaint([&] { point({variable(name, "1")}); });
    return text.substr(text.find("expected"));
  };
  CHECK(complaint("NCCL_IB_QPS_PER_CONECTION") ==
        "expected a known key of env, found \"NCCL_IB_QPS_PER_CONECTION\"\n"
        "  hint: did you mean \"NCCL_IB_QPS_PER_CONNECTION\"?");
  CHECK(complaint("NCCL_ALGOS").find("did you mean \"NCCL_ALGO\"?") != std::string::npos);
  CHECK(complaint("NCCL_WHAT_IS_THIS").ends_with("\n  hint: NCCL 2.8 to 2.30 has no such variable; remove it"));
  CHECK(complaint("FI_PROVIDER").find("\n  hint: it is a libfabric variable, and libfabric settings are not modeled") !=
        std::string::npos);
  CHECK(complaint("CUDA_VISIBLE_DEVICES").ends_with("\n  hint: to select GPUs, use \"ranks\" of \"collective\""));
  for (const nccl::ForeignVariables& each : nccl::foreign_variables()) {
    CAPTURE(std::string(each.begin));
    CHECK(complaint(std::string(each.begin) + "ZZZQQQ").ends_with("\n  hint: " + std::string(each.hint)));
  }
}

}  // namespace nccl_variables_test
