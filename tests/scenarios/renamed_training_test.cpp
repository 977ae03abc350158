// A training step whose exchanges run on several channels that are one, renamed: it takes as long as with all channels.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"

namespace renamed_training_test {

using namespace ringsim;

namespace {

/// Eleven layers of a bucket each, by DDP with NCCL's trees; `more`: keys of the training, and of the scenario after
/// it.
std::string step(const std::string& node, int nodes, const std::string& more) {
  return fmt::format(R"({{"version": 1,
      "topology": {{"kind": "cluster", "node": "{}", "nodes": {},
                    "fabric": {{"kind": "star", "link": {{"bandwidth": "400 Gb/s", "latency": "150 ns"}}}}}},
      "library": {{"name": "nccl", "env": {{"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL128"}}}},
      "training": {{"workload": {{"layers": [{{"name": "l", "times": 11, "parameters": 6500000, "forward": "1 ms",
                                              "backward": "2 ms"}}], "batch": 1}},
                    "regime": "ddp", "steps": 2, "warmup": 1{}}})",
                     node, nodes, more);
}

}  // namespace

TEST_CASE("a step with NCCL's trees is the same with one channel for all and with all of them simulated") {
  struct Case {
    std::string text;
    bool is_renamed;
  };
  for (const Case& each : {Case{step("dgx-h100", 6, "}"), true}, Case{step("dgx-a100", 6, "}"), true},
                           // Rank 5 is slow, so that its images by renaming arrive before it.
                           Case{step("dgx-h100", 6, R"(, "slow": [{"rank": 5, "factor": 1.01}]})"), false}}) {
    CAPTURE(each.text);
    const Scenario scenario = ScenarioFile::parse(each.text, "s.json").point(0);
    const Prediction some = predict(scenario), all = predict(scenario, {.fold = false});
    REQUIRE_FALSE(some.remembered.empty());
    CHECK(all.remembered.empty());
    // To rounding: shares are summed in another order.
    CHECK(std::abs((some.time - all.time).count()) <= 10);
    CHECK(std::abs((some.training->split.exposed_communication - all.training->split.exposed_communication).count()) <=
          10);
    CHECK(some.transfers == all.transfers);
    REQUIRE(some.links.size() == all.links.size());
    for (std::size_t i = 0; i < all.links.size(); ++i) {
      CHECK(some.links[i].links == all.links[i].links);
      CHECK(some.links[i].most == all.links[i].most);
    }
    for (std::size_t i = 0; i < all.training->by_rank.size(); ++i) {
      CHECK(some.training->by_rank.at(i).sent == all.training->by_rank[i].sent);
      CHECK(some.training->by_rank.at(i).received == all.training->by_rank[i].received);
    }
    CHECK((some.events < all.events / 4) == each.is_renamed);  // one of eight channels
  }
}

}  // namespace renamed_training_test
