// A library next to a training step: what it decides for each bucket, and what that costs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"

namespace library_training_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

using Overrides = std::vector<std::string>;

/// Layers of 30 ms forward and 60 ms backward; a bucket each, if they are large enough. One step: after it ranks are
/// apart by as much as the exchange left them.
std::string step_of(int nodes, const std::vector<std::int64_t>& parameters) {
  std::string layers;
  for (std::size_t l = 0; l < parameters.size(); ++l)
    layers += fmt::format(R"({}{{"name": "l{}", "parameters": {}, "forward": "30 ms", "backward": "60 ms"}})",
                          l == 0 ? "" : ", ", l, parameters[l]);
  return fmt::format(R"({{"version": 1,
    "topology": {{"kind": "cluster", "node": "dgx-a100", "nodes": {}, "fabric": {{"kind": "star", "link":
                 {{"bandwidth": "200 Gb/s", "latency": "150 ns"}}}}}},
    "library": "nccl",
    "training": {{"workload": {{"batch": 8, "layers": [{}]}}, "regime": {{"name": "ddp"}},
                 "steps": 1, "warmup": 0}}}})",
                     nodes, layers);
}

Scenario point(const std::string& text, const Overrides& overrides = {}) {
  return ScenarioFile::parse(text, "s.json", overrides).point(0);
}
Prediction predicted(const std::string& text, const Overrides& overrides = {}) {
  return predict(point(text, overrides), PredictOptions{});
}
/// The same collective without a step around it.
Prediction alone(int nodes, std::int64_t bytes, const Overrides& overrides = {}) {
  Overrides all = {"training=null", R"(collective={"op": "all_reduce"})", fmt::format("collective.bytes={} B", bytes)};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return predicted(step_of(nodes, {1}), all);
}

}  // namespace

TEST_CASE("a step of one bucket takes its passes and what the library takes for the bucket alone, to the picosecond") {
  for (const int nodes : {1, 2})
    for (const std::int64_t parameters : {1'000, 1'000'000, 16'000'000}) {  // LL or LL128 to Simple
      CAPTURE(nodes);
      CAPTURE(parameters);
      const Prediction step = predicted(step_of(nodes, {parameters})), one = alone(nodes, 4 * parameters);
      CHECK(step.time == 90ms + one.time);
      CHECK(step.library == "nccl 2.30.7");
      CHECK(step.protocol == one.protocol);
      CHECK(step.algorithm == one.algorithm);
      CHECK(step.request.channels == one.request.channels);
    }
}

TEST_CASE("each bucket has channels and costs of its own, under the protocol of most bytes") {
  // 40 KB go by LL when alone, 80 MB by Simple: 99.95 % of the bytes. The small bucket, which the last layer fills, is
  // over long before the first layer's backward pass, so the large one alone counts.
  const std::string text = step_of(1, {20'000'000, 10'000});
  const Scenario scenario = point(text, {"training.regime.buckets.first=1 KiB"});
  CHECK(scenario.protocol->name == "simple");
  CHECK(scenario.library->exchanges.size() == 2);
  CHECK(scenario.library->exchanges.at(40'000_B).channels < scenario.library->exchanges.at(80'000'000_B).channels);
  CHECK(scenario.library->exchanges.at(40'000_B).beyond < scenario.library->exchanges.at(80'000'000_B).beyond);
  CHECK(predicted(text, {"training.regime.buckets.first=1 KiB"}).time == 180ms + alone(1, 80'000'000).time);
  REQUIRE(scenario.warnings.size() == 1);
  CHECK(scenario.warnings.front() ==
        "s.json: /library: NCCL would exchange 0.0 % of the bytes by Ring and LL; a step is simulated with one "
        "algorithm and protocol, Ring and Simple");
}

TEST_CASE("local SGD averages as the library does, every H steps") {
  const Prediction step = predicted(step_of(2, {16'000'000}), {R"(training.regime={"name": "local_sgd", "every": 4})"});
  // Every part of a step is rounded down to a picosecond.
  CHECK((step.time - (90ms + alone(2, 64'000'000).time / 4)).count() <= 0);
  CHECK((step.time - (90ms + alone(2, 64'000'000).time / 4)).count() >= -5);
}

TEST_CASE("one GPU exchanges nothing, which is said; other regimes are refused; what NCCL decides cannot be set") {
  const std::string text = step_of(1, {1'000'000});
  const Scenario single = point(text, {"training.regime=single"});
  CHECK(!single.library);
  CHECK(single.warnings ==
        std::vector<std::string>{"s.json: /library: it has no effect with the regime single: nothing is exchanged"});
  const auto refusal = [&](const Overrides& overrides) { return test::complaint([&] { point(text, overrides); }); };
  CHECK(refusal({"training.regime=parameter_server"}).find("/library: expected the regime ddp or local_sgd") !=
        std::string::npos);
  CHECK(refusal({"training.regime.algorithm=ring"}).find("/training/regime/algorithm: cannot be combined with") !=
        std::string::npos);
  CHECK(refusal({R"(training.ranks=["gpu0", "gpu1"])"})
            .find("/training/ranks/0: expected the name of a gpu, found \"gpu0\"") != std::string::npos);
  CHECK(refusal({"library=null"}).find("/training/regime: expected the key \"algorithm\"") != std::string::npos);
  CHECK(refusal({"library.name=rccl"}).find("/library") != std::string::npos);
}

}  // namespace library_training_test
