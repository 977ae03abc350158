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
  const Scenario without = point();
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
      const Scenario with = point({variable(each.name, value)});
      CHECK(with.hash == without.hash);
      REQUIRE(with.warnings.size() == (each.changes_time ? 1U : 0U));
      if (!each.changes_time) continue;
      CHECK(with.warnings.front().find(fmt::format("/library/env/{}: its effect is not modeled: {}", each.name,
                                                   each.what)) != std::string::npos);
    }
    for (std::size_t at = 0; at < each.idle.size();) {
      const std::size_t comma = std::min(each.idle.find(',', at), each.idle.size());
      CHECK(point({variable(each.name, fmt::format("\"{}\"", each.idle.substr(at, comma - at)))}).warnings.empty());
      at = comma + 1;
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
  CHECK(
      scenario.warnings[0].ends_with("/library/env/NCCL_IB_QPS_PER_CONNECTION: its effect is not modeled: how many "
                                     "queue pairs a connection between two ranks has"));
  CHECK(scenario.warnings[1].ends_with(
      "/library/env/NCCL_IB_DISABLE: its effect is not modeled: sockets in place of InfiniBand and RoCE"));
  CHECK(predict(scenario).time == predict(point()).time);
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
  CHECK(complaint("NCCL_WHAT_IS_THIS").ends_with("\n  hint: NCCL 2.8 to 2.30 has no such variable; leave it out"));
  CHECK(complaint("FI_PROVIDER").find("\n  hint: it is libfabric's, whose settings are not modeled") !=
        std::string::npos);
  CHECK(complaint("CUDA_VISIBLE_DEVICES")
            .ends_with("\n  hint: it chooses GPUs: \"ranks\" of \"collective\" names those that take part"));
  for (const nccl::ForeignVariables& each : nccl::foreign_variables()) {
    CAPTURE(std::string(each.begin));
    CHECK(complaint(std::string(each.begin) + "ZZZQQQ").ends_with("\n  hint: " + std::string(each.hint)));
  }
}

}  // namespace nccl_variables_test
