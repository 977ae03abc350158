// What is expected of a prediction's work, next to the messages that it had.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "scenarios/predict/expected_work.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/kept_results.hpp"
#include "tests/support/paths.hpp"

namespace expected_work_test {

using namespace ringsim;

namespace {

/// Expected over simulated messages, of the points of an example whose results are kept.
std::vector<double> ratios_of(const std::string& name) {
  const auto file = ScenarioFile::load(test::source_dir() + "/scenarios/" + name + ".json");
  const std::vector<test::KeptRow> rows = test::kept_results(name);
  std::vector<double> ratios;
  if (rows.size() != file.size()) return ratios;  // several jobs
  for (std::size_t i = 0; i < file.size(); ++i) {
    const double messages = rows[i].number("transfers");
    if (messages > 0) ratios.push_back(static_cast<double>(expected_work(file.point(i))) / messages);
  }
  return ratios;
}

}  // namespace

TEST_CASE("collectives are expected to have their messages, between half of them and a third more") {
  for (const char* name :
       {"two-dgx-a100", "examples/algorithms/all-reduce-trees", "examples/algorithms/broadcast-segments",
        "examples/algorithms/crossover-dgx-1v", "examples/algorithms/crossover-hgx-h100",
        "examples/algorithms/in-switch", "examples/algorithms/parameter-servers", "examples/algorithms/torus-rings",
        "examples/algorithms/twelve-ranks", "examples/collectives/channels", "examples/collectives/groups",
        "examples/collectives/ring-collectives", "examples/library/nccl-hgx-h100", "examples/library/nccl-two-dgx-a100",
        "examples/networks/leaf-spine-64-all-to-all", "questions/12-nvls", "questions/13-protocols"}) {
    CAPTURE(name);
    const std::vector<double> ratios = ratios_of(name);
    REQUIRE(!ratios.empty());
    CHECK(*std::min_element(ratios.begin(), ratios.end()) >= 0.5);
    CHECK(*std::max_element(ratios.begin(), ratios.end()) <= 1.34);
  }
}

TEST_CASE(
    "training steps are expected to have their messages if exchanges are rings, and plans within a factor of 20") {
  for (const char* name : {"examples/training/buckets", "examples/training/dgx-a100", "examples/training/gossip",
                           "examples/training/local-sgd"}) {
    CAPTURE(name);
    for (const double ratio : ratios_of(name)) CHECK(std::abs(ratio - 0.75) <= 0.25);
  }
  for (const char* name : {"examples/training/plans", "examples/training/zero-bubble", "examples/training/experts",
                           "examples/training/gpt3-175b-selene", "examples/inference/prefill"}) {
    CAPTURE(name);
    const std::vector<double> ratios = ratios_of(name);
    REQUIRE(!ratios.empty());
    CHECK(*std::min_element(ratios.begin(), ratios.end()) >= 0.05);
    CHECK(*std::max_element(ratios.begin(), ratios.end()) <= 1.1);
  }
}

TEST_CASE("packets count as messages, and a training step grows with its steps") {
  const auto work = [](const std::string& more, const std::string& of) {
    return expected_work(ScenarioFile::parse(R"({"version": 1,
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}}, )" +
                                                 of + more + "}",
                                             "text")
                             .point(0));
  };
  const std::string ring = R"("collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "4 MiB"})";
  CHECK(work("", ring) == 24);                                                    // 2 (4 - 1) steps of 4 ranks
  CHECK(work(R"(, "network": {"model": "packet"})", ring) == 24 + 2 * 4 * 1024);  // packets of 4 KiB
  const std::string training =
      R"("training": {"workload": {"layers": [{"name": "l", "parameters": 1000, "forward": "1 us",
    "backward": "1 us"}], "batch": 1}, "regime": {"name": "ddp", "algorithm": "ring"}, "steps": )";
  CHECK(work("8}", training) > work("4}", training));
}

}  // namespace expected_work_test
