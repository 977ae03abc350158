// The critical path in words, and links scaled by class.
#include "scenarios/predict/explain.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"

namespace why_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

Prediction explained(const std::string& text) {
  return predict(ScenarioFile::parse(text, "s.json").point(0), {.progress = {}, .stage = {}, .explain = true});
}

Picoseconds sum_of(const Explanation& explanation) {
  Picoseconds sum{0};
  for (const ExplainedPart& part : explanation.parts) sum += part.time;
  return sum;
}

/// A ring all-reduce of 40 MB over a star of four ranks at 10 GB/s, 1 us per link: 6012 us.
std::string on_star(const std::string& more) {
  return R"({"version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"})" +
         more + "}";
}

std::string on_nodes(const std::string& more) {
  return R"({"version": 1,
  "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 8, "fabric": {"kind": "leaf_spine", "nodes_per_leaf": 2,
    "oversubscription": 2, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}}},
  "collective": {"op": "all_reduce", "algorithm": "halving_doubling", "bytes": "8 MiB"})" +
         more + "}";
}

}  // namespace

TEST_CASE("without being asked a prediction explains nothing") {
  CHECK(!predict(ScenarioFile::parse(on_star(""), "s.json").point(0)).explanation);
}

TEST_CASE("a launch is a part of its own, and so is each way in which ranks are late") {
  const Prediction p = explained(on_star(R"(, "transport": {"launch": "7 us"}, "disturbance": {
    "late": [{"rank": 1, "by": "100 us"}], "slow": [{"rank": 1, "step_delay": "10 us"}]})"));
  REQUIRE(p.explanation);
  CHECK(sum_of(*p.explanation) == p.time);
  const auto part = [&](const std::string& cause) -> const ExplainedPart& {
    for (const ExplainedPart& each : p.explanation->parts)
      if (each.cause == cause) return each;
    FAIL("no part " << cause);
    return p.explanation->parts.front();
  };
  CHECK(part("launch").time == 7us);
  CHECK(part("late").time == 100us);
  CHECK(part("late").rank == 1);
  // Each of the rank's 6 steps begins 10 us later.
  CHECK(part("slow").time == 60us);
}

TEST_CASE("a job's parts count from its own start, and sum to its own time") {
  const Prediction p = explained(on_star(R"(, "jobs": [{"name": "other", "start": "10 us",
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "10 MB"}}])"));
  REQUIRE(p.explanation);
  CHECK(sum_of(*p.explanation) == p.time);
}

TEST_CASE("messages that end when the path's own begins, or begin when it ends, share nothing with it") {
  // Each rank sends one message after the other over its cable, without a pause.
  const Prediction p = explained(R"({"version": 1,
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}})");
  REQUIRE(p.explanation);
  const ExplainedPart& cables = p.explanation->parts.front();
  CHECK(cables.cause == "link");
  REQUIRE(cables.sharing);
  CHECK(cables.sharing->messages == 0);
  CHECK(cables.sharing->ranks.size() == 1);  // its own
}

// Five ranks reduce 20 MB in a ring of 8 steps of 4 MB at 1 GB/s: 32 ms of 52.016 per step. Four steps count, all
// alike.
TEST_CASE("of a training step the longest link has its share of one step, however many steps count") {
  for (const int steps : {1, 4}) {
    CAPTURE(steps);
    const Prediction p = explained(fmt::format(R"({{"version": 1,
      "topology": {{"kind": "star", "ranks": 5, "link": {{"bandwidth": "1 GB/s", "latency": "1 us"}}}},
      "training": {{"workload": {{"layers": [{{"name": "l", "parameters": 5000000, "forward": "7 ms", "backward": "13 ms"}}],
        "batch": 1}}, "regime": {{"name": "ddp", "algorithm": "ring"}}, "steps": {}}}}})",
                                               steps));
    REQUIRE(p.explanation);
    CHECK(p.time == 52'016us);
    CHECK(sum_of(*p.explanation) == p.time);
    const ExplainedPart& first = p.explanation->parts.front();
    CHECK(first.cause == "link");
    CHECK(first.time == 32ms);
    CHECK(first.link_time == 32ms);
    for (const ExplainedPart& part : p.explanation->parts) CHECK(part.task_time <= part.time);
  }
}

TEST_CASE("a folded run has the parts of the whole one") {
  const std::string big = R"({"version": 1,
    "topology": {"kind": "star", "ranks": 1024, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 GiB"}})";
  const Prediction p = explained(big);
  REQUIRE(p.folded);  // 1024 ranks times 2046 steps are more than 2^20 messages
  CHECK(sum_of(*p.explanation) == p.time);
  REQUIRE(p.explanation->parts.size() == 2);
  CHECK(p.explanation->parts[1].time == 4092us);  // 2046 steps of 2 us
  CHECK(!p.explanation->parts[0].sharing);        // no message was recorded
}

TEST_CASE("parts of staged messages are links, staging and latency") {
  const Prediction p = explained(on_nodes(R"(, "transport": {"gpudirect": false})"));
  CHECK(sum_of(*p.explanation) == p.time);
  bool staging = false;
  for (const ExplainedPart& part : p.explanation->parts) staging = staging || part.cause == "staging";
  CHECK(staging);
}

TEST_CASE("each class of links is scaled apart, and the time of the run is that of the same machine bought so") {
  // The whole machine twice as fast, latencies halved: half the time, to the rounding of each transfer. Every class
  // that carries data is scaled, and no link twice.
  const Prediction plain = explained(on_nodes(""));
  CHECK(plain.explanation->kinds == std::vector<std::string>{"nvlink", "pcie", "nic", "fabric"});
  std::string all = R"("scale_latency": 0.5)";
  for (const std::string& kind : plain.explanation->kinds) all += fmt::format(R"(, "scale_{}": 2)", kind);
  const Prediction fast = explained(on_nodes(R"(, "calibration": {)" + all + "}"));
  const double ratio = static_cast<double>(plain.time.count()) / static_cast<double>(fast.time.count());
  CHECK(ratio == doctest::Approx(2).epsilon(1e-6));
  CHECK(fast.calibration == "scale_nvlink 2, scale_pcie 2, scale_nic 2, scale_fabric 2, scale_latency 0.5");
  // A class that is not there changes nothing.
  CHECK(explained(on_nodes(R"(, "calibration": {"scale_xgmi": 2, "scale_link": 3})")).time == plain.time);
}

TEST_CASE("scale goes with a calibration's factors, and refuses what no factor is") {
  // 10 GB/s times 0.5 times 2, latencies times 2 times 0.5.
  CHECK(explained(on_star(R"(, "calibration": {"efficiency_between": 0.5, "latency_scale": 2,
                            "scale_link": 2, "scale_latency": 0.5})"))
            .time == 6012us);
  CHECK(ringsim::test::complaint([] {
          explained(on_star(R"(, "calibration": {"scale_nick": 2})"));
        }).find("/calibration/scale_nick") != std::string::npos);
}

}  // namespace why_test
