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

TEST_CASE("each bucket has the algorithm, protocol, channels and launch that the library takes for its size alone") {
  // 40 KB go by LL, 80 MB by Simple. The small bucket, which the last layer fills, is over long before the first
  // layer's backward pass, so the large one alone counts.
  const std::string text = step_of(1, {20'000'000, 10'000});
  const Scenario scenario = point(text, {"training.regime.buckets.first=1 KiB"});
  CHECK(scenario.protocol->name == "simple");
  REQUIRE(scenario.library->exchanges.size() == 2);
  const LibraryCall &small = scenario.library->exchanges.at(all_reduce_of(40'000_B)),
                    &large = scenario.library->exchanges.at(all_reduce_of(80'000'000_B));
  CHECK(small.protocol->name == "ll");
  CHECK(large.protocol->name == "simple");
  CHECK(small.channels < large.channels);
  CHECK(small.launch < large.launch);
  CHECK(small.number != large.number);
  CHECK(scenario.warnings.empty());
  const Prediction step = predicted(text, {"training.regime.buckets.first=1 KiB"});
  CHECK(step.time == 180ms + alone(1, 80'000'000).time);
  CHECK(step.library_algorithm == "Ring");
  CHECK(step.library_protocol == "Simple, LL");  // most bytes first
}

TEST_CASE("buckets by NVLSTree, whose connections have more slots, and by LL go in one step") {
  // Two nodes of 8 H100: 80 MB by NVLSTree; 40 KB by LL, over before the other begins.
  const Overrides h100{"topology.node=hgx-h100"};
  Overrides step{"topology.node=hgx-h100", "training.regime.buckets.first=1 KiB"};
  const Prediction found = predicted(step_of(2, {20'000'000, 10'000}), step);
  CHECK(found.library_algorithm == "NVLSTree, Tree");
  CHECK(found.library_protocol == "Simple, LL");
  const LibraryRun library = point(step_of(2, {20'000'000, 10'000}), step).library.value();
  CHECK(library.exchanges.at(all_reduce_of(40'000_B)).protocol->slots !=
        library.exchanges.at(all_reduce_of(80'000'000_B)).protocol->slots);
  CHECK(found.time == 180ms + alone(2, 80'000'000, h100).time);
}

TEST_CASE("buckets that the library exchanges one after another take the times that each takes alone") {
  // No overlap, one step: the small bucket goes when all of the backward pass is done, the large one when the small one
  // is. Ranks leave a ring of equal chunks together, so nothing overlaps. Of a tree some are earlier: there the sum is
  // a bound. 2 nodes: 1 KB by Tree and LL, 80 MB by Ring and Simple.
  for (const int nodes : {1, 2})
    for (const std::int64_t parameters : {250, 16'000, 1'000'000}) {
      CAPTURE(nodes);
      CAPTURE(parameters);
      const std::string text = step_of(nodes, {20'000'000, parameters});
      const Overrides apart{"training.regime.buckets.first=1 B", "training.regime.overlap=false"};
      const Picoseconds together = predicted(text, apart).time - 180ms,
                        sum = alone(nodes, 4 * parameters).time + alone(nodes, 80'000'000).time;
      CHECK(together <= sum);
      CHECK(together > sum - sum / 200);
    }
}

TEST_CASE(
    "jobs by a library, one after another, take the sum of the times that each takes alone, and each its own plan") {
  const std::string text = R"({"version": 1,
    "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2, "fabric": {"kind": "star", "link":
                 {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
    "library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 KiB"},
    "jobs": [{"name": "large", "collective": {"op": "all_reduce", "bytes": "1 GiB"}, "after": ["main"]}]})";
  const auto one = [&](const char* bytes) {
    return predicted(text, {"jobs=null", fmt::format("collective.bytes={}", bytes)});
  };
  const Prediction small = one("1 KiB"), large = one("1 GiB"), both = predicted(text);
  REQUIRE(both.jobs.size() == 2);
  CHECK(both.time == small.time);
  CHECK(both.library_algorithm == small.library_algorithm);
  CHECK(both.library_protocol == "LL");
  CHECK(both.jobs[0].library_algorithm == large.library_algorithm);
  CHECK(both.jobs[0].library_protocol == "Simple");
  CHECK(both.jobs[0].request.channels == large.request.channels);
  CHECK(both.jobs[1].is_total);
  CHECK(both.jobs[1].time == small.time + large.time);
}

TEST_CASE(
    "jobs by LL, LL128 and Simple, which reach unlike shares of the links, take the sum of what each takes alone") {
  // Rings of equal chunks on one node: all GPUs are done together, so nothing overlaps.
  const std::string text = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
    "library": "nccl", "collective": {"op": "all_gather", "bytes": "64 KiB"},
    "jobs": [{"name": "b", "collective": {"op": "all_gather", "bytes": "4 MiB"}, "after": ["main"]},
             {"name": "c", "collective": {"op": "all_gather", "bytes": "256 MiB"}, "after": ["b"]}]})";
  Picoseconds sum{0};
  for (const char* bytes : {"64 KiB", "4 MiB", "256 MiB"})
    sum += predicted(text, {"jobs=null", fmt::format("collective.bytes={}", bytes)}).time;
  const Prediction all = predicted(text);
  CHECK(all.library_protocol == "LL");
  CHECK(all.jobs.at(0).library_protocol == "LL128");
  CHECK(all.jobs.at(1).library_protocol == "Simple");
  CHECK(all.jobs.back().time == sum);
}

TEST_CASE("two trainings by a library on nodes of their own take the times that each takes alone") {
  // Simple on one, LL on the other: the second program's calls have the second plan.
  const auto on_node = [](int node) {
    std::string names;
    for (int gpu = 0; gpu < 8; ++gpu) names += fmt::format("{}\"node{}.gpu{}\"", gpu == 0 ? "" : ", ", node, gpu);
    return "[" + names + "]";
  };
  const auto layers = [](int parameters) {
    return fmt::format(R"([{{"name": "l", "parameters": {}, "forward": "30 ms", "backward": "60 ms"}}])", parameters);
  };
  const std::string second = fmt::format(
      R"(jobs=[{{"name": "b", "training": {{"workload": {{"batch": 8, "layers": {}}}, "regime": {{"name": "ddp"}},
                "ranks": {}, "steps": 1, "warmup": 0}}}}])",
      layers(10'000), on_node(1));
  const Prediction both = predicted(step_of(2, {20'000'000}), {"training.ranks=" + on_node(0), second});
  CHECK(both.time == 90ms + alone(1, 80'000'000).time);
  CHECK(both.library_protocol == "Simple");
  REQUIRE(both.jobs.size() == 1);
  CHECK(both.jobs[0].time == 90ms + alone(1, 40'000).time);
  CHECK(both.jobs[0].library_protocol == "LL");
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
        std::vector<std::string>{"s.json: /library: it has no effect with the regime single, which exchanges no data"});
  const auto refusal = [&](const Overrides& overrides) { return test::complaint([&] { point(text, overrides); }); };
  CHECK(refusal({"training.regime=parameter_server"}).find("/library: expected the regime ddp or local_sgd") !=
        std::string::npos);
  CHECK(refusal({"training.regime.algorithm=ring"}).find("/training/regime/algorithm: cannot be combined with") !=
        std::string::npos);
  CHECK(refusal({R"(training.ranks=["gpu0", "gpu1"])"})
            .find("/training/ranks/0: expected the name of a GPU, found \"gpu0\"") != std::string::npos);
  CHECK(refusal({"library=null"}).find("/training/regime: expected the key \"algorithm\"") != std::string::npos);
  CHECK(refusal({"library=gloo"}).find("/library") != std::string::npos);
}

}  // namespace library_training_test
