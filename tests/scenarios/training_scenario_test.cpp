// Training steps as scenarios: workloads, buckets to the byte, keys, and the results next to the closed form.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <numeric>
#include <string>
#include <vector>

#include "scenarios/meaning/meaning_training.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "validate/results/result.hpp"

namespace training_scenario_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

std::string star_scenario(int ranks, const std::string& training, const std::string& more = "") {
  return fmt::format(R"({{"version": 1, "topology": {{"kind": "star", "ranks": {},
    "link": {{"bandwidth": "100 Gb/s", "latency": "1 us"}}}}, "training": {}{}}})",
                     ranks, training, more);
}

Result result_of(const std::string& text) { return results_of(ScenarioFile::parse(text, "t.json").point(0)).front(); }

std::string complaint_of(const std::string& text) {
  try {
    ScenarioFile::parse(text, "t.json").point(0);
    return "accepted";
  } catch (const InputError& error) {
    return error.where() + ": " + error.message();
  }
}

constexpr const char* resnet = R"("workload": {"model": "resnet50", "batch": 32, "compute": {"step": "97 ms"}})";

/// Elements of each bucket of a model, by PyTorch's rule with its own limits.
std::vector<std::int64_t> bucket_elements(const std::string& model) {
  std::vector<std::int64_t> elements;
  for (const Bucket& bucket : pytorch_buckets(scenarios::workload_named(model).layers, 4, 1_MiB, 25_MiB))
    elements.push_back(bucket.bytes.count / 4);
  return elements;
}

}  // namespace

// What torchvision and HuggingFace count; tensors as the modules register them.
TEST_CASE("the workloads have the published numbers of parameters and tensors") {
  struct Row {
    const char* name;
    std::int64_t parameters, tensors;
    double macs;
  };
  for (const Row& row :
       {Row{"resnet50", 25'557'032, 161, 4.089184256e9}, Row{"vgg16", 138'357'544, 32, 15.47026432e9},
        Row{"bert_large", 336'226'108, 398, 43.59585792e9},  // 391 of the encoder and pooler, 7 of heads
        Row{"gpt2_xl", 1'557'611'200, 580, 1753.3517824e9}, Row{"llama2_7b", 6'738'415'616, 291, 31460.6354432e9}}) {
    CAPTURE(row.name);
    const scenarios::Workload workload = scenarios::workload_named(row.name);
    std::int64_t parameters = 0, tensors = 0;
    for (const LayerCost& layer : workload.layers) {
      parameters += std::accumulate(layer.tensors.begin(), layer.tensors.end(), std::int64_t{0});
      tensors += static_cast<std::int64_t>(layer.tensors.size());
    }
    CHECK(parameters == row.parameters);
    CHECK(tensors == row.tensors);
    CHECK(static_cast<double>(std::accumulate(workload.macs.begin(), workload.macs.end(), std::int64_t{0})) ==
          row.macs);
    CHECK(!workload.source.empty());
  }
}

// ResNet-50: the five all-reduces of every step in a PyTorch profile of two A100
// (facebookresearch/HolisticTraceAnalysis); the others by the same rule.
TEST_CASE("PyTorch's buckets of ResNet-50 and VGG-16, to the element") {
  CHECK(bucket_elements("resnet50") ==
        std::vector<std::int64_t>{2'049'000, 7'875'584, 6'563'840, 6'637'568, 2'431'040});
  CHECK(bucket_elements("vgg16") ==
        std::vector<std::int64_t>{4'097'000, 16'781'312, 102'764'544, 7'079'424, 7'079'936, 555'328});
}

// ResNet-18 of torchvision: pytorch issue 48880 prints its buckets.
TEST_CASE("PyTorch's buckets of ResNet-18, to the byte") {
  std::vector<LayerCost> layers = {{.name = "conv1", .tensors = {64 * 3 * 49, 64, 64}}};
  const auto conv = [&](std::int64_t in, std::int64_t out, std::int64_t k) {
    layers.push_back({.name = "conv", .tensors = {in * out * k * k, out, out}});
  };
  for (const std::int64_t width : {64, 128, 256, 512})
    for (int block = 0; block < 2; ++block) {
      const std::int64_t in = block == 0 && width > 64 ? width / 2 : width;
      conv(in, width, 3);
      conv(width, width, 3);
      if (in != width) conv(in, width, 1);
    }
  layers.push_back({.name = "fc", .tensors = {512 * 1000, 1000}});
  const auto bytes = [&](Bytes size) {
    std::vector<std::int64_t> all;
    for (const Bucket& bucket : pytorch_buckets(layers, 4, 1_MiB, size)) all.push_back(bucket.bytes.count);
    return all;
  };
  CHECK(bytes(25_MiB) == std::vector<std::int64_t>{2'052'000, 28'852'224, 15'853'824});
  CHECK(bytes(35_MiB) == std::vector<std::int64_t>{2'052'000, 38'297'600, 6'408'448});
}

TEST_CASE("a training scenario gives the step, its parts, and the closed form") {
  const Result result = result_of(
      star_scenario(8, std::string("{") + resnet +
                           R"(, "regime": {"name": "ddp", "algorithm": "ring"}, "optimizer": {"time": "1 ms"}})"));
  REQUIRE(result.prediction.training);
  const TrainingReport& report = *result.prediction.training;
  CHECK(report.buckets == 5);
  CHECK(report.batch == 256);
  CHECK(report.split.compute == 97ms);  // 96 ms of both passes and 1 ms of the update
  CHECK(report.split.total() == result.prediction.time);
  CHECK(report.steady);
  CHECK(report.efficiency == 97e9 / static_cast<double>(report.step.count()));
  REQUIRE(result.form);
  // 4 * 2,049,000 B and the others divide by 8: exact.
  CHECK(result.form->holds());
  CHECK(result.form->time == result.form->low);
  CHECK(result.form->time == result.prediction.time);
  // A ring sends 2(K-1) p in all, p = 4 * 25,557,032 B.
  CHECK(report.sent.count == 2LL * 7 * 4 * 25'557'032);
  CHECK(result.prediction.proof.by == Proof::By::parts);
}

TEST_CASE("one GPU takes its measured step, with efficiency 1, on every machine") {
  for (const char* regime : {R"("single")", R"({"name": "ddp", "algorithm": "ring"})"}) {
    CAPTURE(regime);
    const std::string more = regime[1] == 's' ? "" : R"(, "ranks": ["gpu2"])";
    const Result result = result_of(star_scenario(4, fmt::format(R"({{{}, "regime": {}{}}})", resnet, regime, more)));
    CHECK(result.prediction.time == 97ms);
    CHECK(result.prediction.training->efficiency == 1.0);
    CHECK(result.prediction.training->split.compute == 97ms);
    CHECK(result.prediction.request.ranks == 1);
    CHECK(result.form->time == 97ms);
  }
}

// 2 * 4,089,184,256 multiply-adds * 10 images at 40 % of 100 TFLOP/s: 2.044592128 ms forward, twice that backward.
TEST_CASE("compute by a peak and a share of it counts two operations a multiply-add, three passes' worth") {
  const Result result = result_of(star_scenario(
      1, R"({"workload": {"model": "resnet50", "batch": 10, "compute": {"flops": "100 TFLOP/s", "efficiency": "40%"}},
             "regime": "single"})"));
  CHECK(result.prediction.time == 3 * 2'044'592'128_ps);
  CHECK(scenarios::parse_flops("15.7TFLOP/s") == 15'700'000'000'000);
  CHECK(scenarios::parse_flops("1 PFLOP/s") == 1'000'000'000'000'000);
  for (const char* wrong : {"", "125", "TFLOP/s", "1.TFLOP/s", "1..5 TFLOP/s", "125 TFLOPS", "-1 TFLOP/s", "0 TFLOP/s"})
    CHECK_THROWS_AS(scenarios::parse_flops(wrong), InputError);
}

TEST_CASE("every launch of an all-reduce counts, not one per run") {
  const std::string training =
      R"({"workload": {"layers": [{"name": "l", "times": 4, "parameters": 1000000, "forward": "1 ms", "backward": "1 us"}],
          "batch": 1}, "regime": {"name": "ddp", "algorithm": "ring", "buckets": {"size": "1 B", "first": "1 B"}}})";
  const Picoseconds without = result_of(star_scenario(4, training)).prediction.time;
  const Picoseconds with =
      result_of(star_scenario(4, training, R"(, "transport": {"launch": "10 us"})")).prediction.time;
  CHECK(with - without == 40us);
}

TEST_CASE("what training cannot be is refused at its place") {
  const std::string ddp = std::string("{") + resnet + R"(, "regime": {"name": "ddp", "algorithm": "ring"})";
  CHECK(complaint_of(star_scenario(4, ddp + "}")) == "accepted");
  CHECK(complaint_of(star_scenario(4, ddp + R"(, "stesp": 3})")) ==
        "t.json: /training/stesp: expected a known key of training, found \"stesp\"");
  CHECK(complaint_of(star_scenario(4, ddp + "}",
                                   R"(, "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"})")) ==
        "t.json: expected the key \"collective\" or \"training\", found both");
  CHECK(complaint_of(star_scenario(4, R"({"workload": {"model": "resnet50", "batch": 1}, "regime": "single"})")) ==
        "t.json: /training/workload/compute: expected either step or flops, found neither");
  CHECK(
      complaint_of(star_scenario(
          4,
          R"({"workload": {"model": "resnet50", "batch": 1, "compute": {"flops": "1 TFLOP/s"}}, "regime": "single"})")) ==
      "t.json: /training/workload/compute: expected the key \"efficiency\" with flops, a share such as \"40%\", found "
      "none");
  CHECK(complaint_of(star_scenario(4, R"({"workload": {"batch": 1}, "regime": "single"})")) ==
        "t.json: /training/workload: expected either model or layers, found neither");
  CHECK(complaint_of(star_scenario(
            4, std::string("{") + resnet +
                   R"(, "regime": {"name": "ddp", "algorithm": "ring", "buckets": {"cycle": "1 ms"}}})")) ==
        "t.json: /training/regime/buckets/cycle: expected cycle only with the rule horovod, found pytorch");
  CHECK(complaint_of(
            star_scenario(4, std::string("{") + resnet + R"(, "regime": "single", "ranks": ["gpu0", "gpu1"]})")) ==
        "t.json: /training/ranks: expected one gpu for the regime single, found 2");
  CHECK(
      complaint_of(star_scenario(4, ddp + "}", R"(, "disturbance": {"slow": [{"rank": 1, "step_delay": "1 us"}]})")) ==
      "t.json: /disturbance/slow: expected no slow next to a training step, found it");
  CHECK(complaint_of(star_scenario(
            4, std::string("{") + resnet + R"(, "regime": {"name": "ddp", "algorithm": "dissemination"}})")) !=
        "accepted");
}

TEST_CASE("a schedule is not made of a training step") {
  const Scenario scenario =
      ScenarioFile::parse(star_scenario(4, std::string("{") + resnet + R"(, "regime": "single"})"), "t.json").point(0);
  CHECK_THROWS_AS(schedule_of(scenario), InputError);
}

}  // namespace training_scenario_test
