// Model parallelism as scenarios: the closed form, memory and bytes by hand, and what is refused.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "tests/support/training_scenario.hpp"
#include "validate/results/result.hpp"

namespace model_parallel_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace std::chrono_literals;

namespace {

/// Four layers of 1,000,000 parameters, 10 ms forward and 20 ms backward each; 12 samples for each GPU, whose
/// activations have 100 kB.
std::string four_layers(int ranks, const std::string& microbatches, const std::string& more = "") {
  return star_scenario(ranks,
                       fmt::format(R"({{"workload": {{"layers": [{{"name": "l", "times": 4, "parameters": 1000000,
             "forward": "10 ms", "backward": "20 ms"}}], "batch": 12, "activation_bytes": "100 kB"}},
             "regime": {{"name": "model_parallel", "microbatches": {}}},
             "optimizer": {{"name": "adam", "time": "4 ms"}}{}}})",
                                   microbatches, more));
}

}  // namespace

// Of 4 GPUs 48 samples: 4.8 MB, 384 us at 12.5 GB/s, in M parts, and 2 us. One GPU takes 120 ms and the update.
TEST_CASE("a step of equal GPUs takes (M + K - 1)(f + B)/M + 2(K - 1)(x/(M b) + a) + u/K") {
  for (const int m : {1, 2, 4, 16}) {
    CAPTURE(m);
    const Result result = result_of(four_layers(4, std::to_string(m)));
    const Picoseconds time = Picoseconds{120ms} * (m + 3) / m + 6 * (Picoseconds{384us} / m + 2us) + 1ms;
    CHECK(result.prediction.time == time);
    REQUIRE(result.form);
    CHECK(result.form->holds());
    CHECK(result.form->time == time);
    const TrainingReport& report = *result.prediction.training;
    CHECK(report.batch == 48);
    CHECK(report.split.compute == 121ms);
    CHECK(report.split.total() == time);
    CHECK(report.efficiency == doctest::Approx(124e9 / static_cast<double>(time.count())).epsilon(1e-9));
    CHECK(report.sent.count == 2 * 3 * 4'800'000);  // whatever M is
  }
}

TEST_CASE("a GPU keeps its own layers, and sends to its neighbors in the model") {
  const TrainingReport report = *result_of(four_layers(3, "4")).prediction.training;
  REQUIRE(report.by_rank.size() == 3);                 // ranks 0 and 1 differ in what they send
  const Bytes all{4'000'000};                          // of a layer's gradients, or weights; Adam keeps twice as much
  CHECK(report.by_rank[0].memory.weights == all * 2);  // four layers on three GPUs
  CHECK(report.by_rank[1].memory.weights == all);
  CHECK(report.by_rank[0].memory.state == all * 4);
  CHECK(report.memory == report.by_rank[0].memory);
  const std::int64_t batch = 3 * 12 * 100'000;
  CHECK(report.by_rank[0].sent.count == batch);
  CHECK(report.by_rank[1].sent.count == 2 * batch);
  CHECK(report.by_rank[1].received.count == 2 * batch);
  CHECK(report.by_rank[2].sent.count == batch);
}

TEST_CASE("whatever the machine, the form agrees or says why it does not") {
  for (const int ranks : {1, 2, 3, 4})
    for (const char* m : {"1", "3", "12"}) {
      CAPTURE(ranks);
      CAPTURE(m);
      const Result result = result_of(four_layers(ranks, m));
      REQUIRE(result.form);
      CHECK(result.form->holds());
      CHECK(result.form->agrees(result.prediction.time));
      const Result two_channels =
          result_of(star_scenario(ranks,
                                  R"({"workload": {"model": "resnet50", "batch": 12, "activation_bytes": "784 KiB",
                     "compute": {"step": "97 ms"}}, "regime": {"name": "model_parallel", "microbatches": )" +
                                      std::string(m) + "}}",
                                  R"(, "transport": {"channels": 2, "launch": "5 us"})"));
      REQUIRE(two_channels.form);
      CHECK(two_channels.form->agrees(two_channels.prediction.time));
    }
  const Result late = result_of(four_layers(4, "2", R"(, "slow": [{"rank": 1, "factor": 2}])"));
  CHECK(late.form->because == std::vector<std::string>{"ranks compute at different speeds"});
  CHECK(late.prediction.time > result_of(four_layers(4, "2")).prediction.time);
}

TEST_CASE("what model parallelism cannot do is refused at its place") {
  CHECK(complaint_of(four_layers(5, "1")) ==
        "t.json: /training/regime: expected at most as many GPUs as layers in the model, 4, found 5");
  CHECK(complaint_of(four_layers(2, "5")) ==
        "t.json: /training/regime/microbatches: expected a divisor of the samples of all GPUs, 24, found 5");
  CHECK(complaint_of(four_layers(2, "0")).find("/training/regime/microbatches") != std::string::npos);
  CHECK(complaint_of(star_scenario(2, fmt::format(R"({{{}, "regime": "model_parallel"}})", resnet))) ==
        "t.json: /training/workload: expected the key \"activation_bytes\" with the regime model_parallel, found none");
  CHECK(ScenarioFile::parse(
            star_scenario(2, R"({"workload": {"model": "resnet50", "batch": 1, "compute": {"step": "1 ms"},
                                 "activation_bytes": "1 kB"}, "regime": {"name": "ddp", "algorithm": "ring"}})"),
            "t.json")
            .point(0)
            .warnings == std::vector<std::string>{"t.json: /training/workload/activation_bytes: has no effect with the "
                                                  "regime ddp: only model_parallel sends activations"});
}

}  // namespace model_parallel_test
