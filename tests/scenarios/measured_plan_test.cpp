// compute.measured: one measured step of a plan gives the share of the peak that matrix products reach.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/predict/measured_share.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"

namespace measured_plan_test {

using namespace ringsim;
using ringsim::test::complaint;
using ringsim::test::has;
using Json = nlohmann::json;

namespace {

/// Two nodes of 8 A100; the plan and the compute of a small transformer are arguments.
std::string scenario(const std::string& parallel, const std::string& shares, const std::string& more = "") {
  return fmt::format(
      R"({{"version": 1, "name": "small",
      "topology": {{"kind": "cluster", "node": "dgx-a100", "nodes": 2,
                    "fabric": {{"kind": "star", "link": {{"bandwidth": "200 Gb/s", "latency": "1 us"}}}}}},
      "training": {{"workload": {{"transformer": {{"layers": 8, "hidden": 512, "heads": 8, "ffn": 2048,
                                                   "vocabulary": 1000}},
                                  "sequence": 256, "micro_batch_size": 2, "global_batch_size": 64,
                                  "compute": {{{}, "attention": "40%", "memory": "80%",
                                               "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}}}},
                    "parallel": {}, "optimizer": "adam", "steps": 1, "warmup": 0 {}}}}})",
      shares, parallel, more);
}
const std::string own = R"({"tensor": 2, "pipeline": 2})", other = R"({"tensor": 1, "pipeline": 4})";

Prediction predicted(const std::string& text) { return predict(ScenarioFile::parse(text, "s.json").point(0)); }
std::string measured(const std::string& step, const std::string& more = "") {
  return fmt::format(R"("measured": {{"step": "{}", "parallel": {}{}}})", step, other, more);
}
std::string in_us(Picoseconds time) { return fmt::format("{:.6f} us", static_cast<double>(time.count()) / 1e6); }
/// A point of one scenario is decoded when the file is read.
std::string refusal(const std::string& text) {
  return complaint([&] { ScenarioFile::parse(text, "s.json"); });
}

}  // namespace

TEST_CASE("one measured step of another plan gives the share that products have in all") {
  const Prediction known = predicted(scenario(own, R"("gemm": "55%")")),
                   step = predicted(scenario(other, R"("gemm": "55%")"));
  const Prediction solved = predicted(scenario(own, measured(in_us(step.time))));
  CHECK(std::abs(static_cast<double>(solved.time.count()) / static_cast<double>(known.time.count()) - 1) < 0.002);
  REQUIRE(solved.training);
  CHECK(solved.training->compute.starts_with("measured plan: gemm 5"));
}

TEST_CASE("the measured plan has its own batch, sequence and nodes") {
  const auto edited = [](Json text) {
    text["topology"]["nodes"] = 1;
    text["topology"].erase("fabric");
    text["training"]["workload"]["sequence"] = 128;
    text["training"]["workload"]["micro_batch_size"] = 1;
    text["training"]["workload"]["global_batch_size"] = 16;
    return text.dump();
  };
  const Prediction step = predicted(edited(Json::parse(scenario(other, R"("gemm": "55%")"))));
  const std::string compute =
      predicted(
          scenario(own, measured(in_us(step.time),
                                 R"(, "micro_batch_size": 1, "global_batch_size": 16, "sequence": 128, "nodes": 1)")))
          .training->compute;
  const std::string found = compute.substr(std::string("measured plan: gemm ").size());
  const Prediction again = predicted(edited(Json::parse(scenario(other, fmt::format(R"("gemm": "{}")", found)))));
  CHECK(std::abs(static_cast<double>(again.time.count()) / static_cast<double>(step.time.count()) - 1) < 0.0015);
}

TEST_CASE("a step that no share explains is refused with the arithmetic") {
  const std::string text = refusal(scenario(own, measured("10 us")));
  CHECK(has(text,
            "s.json: /training/workload/compute/measured/step: expected a step time that is possible with matrix "
            "products at or below the peak, found 1e-05 s: with products at 100 % of the peak, the step takes "));
  CHECK(has(text, " s of computation"));
}

TEST_CASE("a measured plan needs its step and plan, and takes the place of gemm") {
  CHECK(has(refusal(scenario(own, R"("measured": {"step": "1 ms"})")), "expected the key \"parallel\", found none"));
  CHECK(has(refusal(scenario(own, R"("measured": {"parallel": {"tensor": 2}})")),
            "expected the key \"step\", found none"));
  CHECK(has(refusal(scenario(own, measured("1 ms") + R"(, "gemm": "50%")")),
            "/training/workload/compute/gemm: cannot be combined with measured"));
  CHECK(has(
      refusal(scenario(own, R"("measured": {"step": "1 ms", "parallel": {"tensor": 3}})")),
      "/training/workload/compute/measured: expected a plan that can be simulated, found s.json: /training/parallel: "
      "expected tensor times pipeline to divide the 16 GPUs"));
}

TEST_CASE("the hash of a point with a measured plan is that of the scenario as written") {
  const ScenarioFile file = ScenarioFile::parse(scenario(own, measured("20 ms")), "s.json");
  CHECK(file.point(0).hash == file.id(0).hash);
}

}  // namespace measured_plan_test
