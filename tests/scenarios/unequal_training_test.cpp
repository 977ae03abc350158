// Training steps as scenarios whose ranks are not in step: stragglers, and servers that do not wait for all workers.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/training_scenario.hpp"
#include "validate/results/result.hpp"

namespace unequal_training_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

// The form works with the same draws; rounds of 2 steps for local_sgd.
TEST_CASE("stragglers: regimes agree with the closed form of the same draws, or say that none holds") {
  for (const char* regime :
       {R"("parameter_server")", R"({"name": "parameter_server", "servers": 1})",
        R"({"name": "local_sgd", "algorithm": "ring", "every": 2})", R"("gossip")",
        R"({"name": "gossip", "every": 2, "overlap": true})", R"({"name": "ddp", "algorithm": "halving_doubling"})"})
    for (const char* unequal :
         {R"("slow": [{"rank": 1, "factor": 1.5, "from": 2, "until": 5}])",
          R"("jitter": {"distribution": "exponential", "spread": "4 ms", "seed": 5})",
          R"("slow": [{"rank": 0, "factor": 2}], "jitter": {"distribution": "uniform", "spread": "30 ms"})"}) {
      CAPTURE(regime);
      CAPTURE(unequal);
      // 25,600,000 parameters: 4 ranks divide every bucket.
      const Result result = result_of(star_scenario(
          4,
          fmt::format(R"({{"workload": {{"layers": [{{"name": "l", "times": 8, "parameters": 3200000, "forward": "4 ms",
                           "backward": "8 ms"}}], "batch": 32}}, "regime": {}, {}, "optimizer": {{"time": "1 ms"}},
                           "steps": 6, "warmup": 2}})",
                      regime, unequal)));
      REQUIRE(result.form);
      CHECK(result.form->holds());
      CHECK(result.form->agrees(result.prediction.time));
      CHECK(result.prediction.training->split.total() == result.prediction.time);
      CHECK(result.prediction.time > 97ms);  // without stragglers and communication
    }
  const Result several =
      resnet_by(R"({"name": "parameter_server", "servers": 2})", 4, R"(, "slow": [{"rank": 1, "factor": 2}])");
  CHECK(!several.form->holds());
  CHECK(several.form->because == std::vector<std::string>{"ranks compute at different speeds"});
}

// Copies of 10 MB take 0.8 ms: equal workers that start 5 ms apart never meet. 90 of 100 updates: 22.5 steps of 4
// workers, so the form has room; 88 are 22 steps.
TEST_CASE("an asynchronous server agrees with its closed form where workers never meet, and says so where they may") {
  const auto of = [](const std::string& regime, const std::string& more) {
    return result_of(star_scenario(
        4, fmt::format(R"({{"workload": {{"layers": [{{"name": "l", "parameters": 2500000, "forward": "7 ms",
            "backward": "13 ms"}}], "batch": 32}}, "regime": {{"name": "parameter_server", "mode": "async", {}}}, {}}})",
                       regime, more)));
  };
  const Result apart = of(R"("servers": 1)", R"("updates": 100, "warmup_updates": 12)");
  CHECK(apart.form->holds());
  CHECK(apart.form->time == 21'604us);
  CHECK(apart.prediction.time == 21'604us);
  CHECK(apart.form->agrees(apart.prediction.time));
  const TrainingReport& report = *apart.prediction.training;
  CHECK(report.split.total() == apart.prediction.time);
  CHECK(report.split.compute == 20ms);
  CHECK(report.split.exposed_communication == 1'604us);
  CHECK(report.steady);
  CHECK(report.batch == 128);
  CHECK(report.sent.count == 2 * 4 * 10'000'000);
  REQUIRE(report.async);
  CHECK(report.async->updates == 88);
  CHECK(report.async->staleness == 3);
  CHECK(report.async->start == "staggered");
  CHECK(report.async->updates_per_s == doctest::Approx(4 / 21.604e-3));
  CHECK(report.async->histogram == std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 88}});
  REQUIRE(report.by_rank.size() == 2);
  CHECK(report.by_rank[0].who == "ranks 0 to 3");
  CHECK(report.by_rank[1].who == "server 0");
  // The server's time is idle but for updates: 2 ms each, per update of the model.
  const Result updates = of(R"("servers": 2)", R"("optimizer": {"time": "4 ms"}, "updates": 50)");
  CHECK(updates.prediction.training->by_rank.back().who == "servers 0 to 1");
  CHECK(updates.prediction.training->by_rank.back().split.compute == 2ms);
  CHECK(updates.form->holds());
  CHECK(updates.form->agrees(updates.prediction.time));
  // Together they are a synchronous server, to the picosecond: 20 + 8 * 0.8 ms and four times a microsecond.
  const Result together = of(R"("servers": 1, "start": "together")", R"("updates": 100, "warmup_updates": 12)");
  CHECK(together.prediction.time == 26'404us);
  CHECK(!together.form->holds());
  CHECK(together.form->because ==
        std::vector<std::string>{"several workers may use a server's port or compute unit at the same time"});
  const Result seeds[] = {of(R"("servers": 1, "start": "random")", R"("updates": 100)"),
                          of(R"("servers": 1, "start": "random", "seed": 1)", R"("updates": 100)")};
  CHECK(seeds[0].prediction.time != seeds[1].prediction.time);
  CHECK(seeds[1].prediction.training->async->start == "random 1");
}

// Copies of 10 MB take 0.8 ms: rank 2, the server, steps in 20 ms, the other three in 21.604, and the three never meet.
TEST_CASE("an asynchronous master among the ranks agrees with its closed form, and sends for the others") {
  const auto of = [](const std::string& regime, const std::string& more) {
    return result_of(star_scenario(
        4, fmt::format(R"({{"workload": {{"layers": [{{"name": "l", "parameters": 2500000, "forward": "7 ms",
            "backward": "13 ms"}}], "batch": 32}}, "regime": {{"name": "parameter_server", "mode": "async",
            "master": 2{}}}{}}})",
                       regime, more)));
  };
  const Result result = of("", "");
  CHECK(result.form->formula ==
        "K / X, X = 1/(f + B + u) + sum over other workers of 1/(f + B + 2(p/b + a) + u), to within a step at both "
        "ends of the window");
  CHECK(result.form->holds());
  CHECK(result.form->agrees(result.prediction.time));
  const double exact = 4 / (1 / 20.0 + 3 / 21.604);  // ms
  CHECK(std::abs(static_cast<double>(result.prediction.time.count()) / 1e9 - exact) <
        exact * 4 / 400);  // of 400 updates 4 more or less
  const TrainingReport& report = *result.prediction.training;
  REQUIRE(report.by_rank.size() == 3);
  CHECK(report.by_rank[1].who == "rank 2");
  CHECK(report.by_rank[0].sent == 10'000'000_B);
  // 300 updates or so by the others to 107 of its own: three times 20/21.604.
  CHECK(std::abs(static_cast<double>(report.by_rank[1].sent.count) - 3e7 * 20 / 21.604) < 1e6);
  CHECK(report.by_rank[1].memory.copies == 20'000'000_B);
  CHECK(report.by_rank[0].memory.copies == 0_B);
  CHECK(report.sent == 60'000'000_B);
  const Result busy = of("", R"(, "optimizer": {"time": "1 ms"})");
  CHECK(busy.form->because == std::vector<std::string>{"passes of the master and updates wait for each other"});
  const Result every = of(R"(, "every": 4)", "");
  CHECK(every.form->agrees(every.prediction.time));
}

// Nobody else: the master trains by itself, and updates once per step.
TEST_CASE("an asynchronous server of one rank that is its own server is one GPU") {
  const Result alone = result_of(star_scenario(
      1, R"({"workload": {"layers": [{"name": "l", "parameters": 2500000, "forward": "7 ms", "backward": "13 ms"}],
            "batch": 32}, "regime": {"name": "parameter_server", "mode": "async"}, "optimizer": {"time": "1 ms"}})"));
  CHECK(alone.prediction.time == 21ms);
  CHECK(alone.prediction.training->async->staleness == 0);
}

TEST_CASE("settings of an asynchronous server that cannot be are refused, and those without effect are warned of") {
  const auto scenario = [](const std::string& regime, const std::string& more = "") {
    return star_scenario(4, fmt::format(R"({{{}, "regime": {}{}}})", resnet, regime, more));
  };
  const std::string async = R"({"name": "parameter_server", "servers": 1, "mode": "async"})";
  CHECK(complaint_of(scenario(R"({"name": "parameter_server", "mode": "async", "master": 4})")) ==
        "t.json: /training/regime/master: expected a rank from 0 to 3, found 4");
  CHECK(complaint_of(scenario(async, R"(, "updates": 20, "warmup_updates": 20)")) ==
        "t.json: /training/updates: expected more updates than warmup_updates, found 20 and 20");
  CHECK(complaint_of(scenario(async, R"(, "warmup_updates": 440)")) ==
        "t.json: /training/warmup_updates: expected more updates than warmup_updates, found 440 and 440");
  CHECK(complaint_of(scenario(async, R"(, "updates": -1)")) ==
        "t.json: /training/updates: expected a whole number from 1 to 1000000000, found -1");
  CHECK(complaint_of(scenario(R"("parameter_server")", R"(, "updates": 20)")) ==
        "t.json: /training/updates: expected updates only with mode async of parameter_server, found another mode or "
        "regime");
  CHECK(complaint_of(scenario(R"({"name": "ddp", "algorithm": "ring"})", R"(, "warmup_updates": 20)")) ==
        "t.json: /training/warmup_updates: expected warmup_updates only with mode async of parameter_server, found "
        "another mode or regime");
  CHECK(complaint_of(scenario(R"({"name": "parameter_server", "servers": 1, "start": "together"})")) ==
        "t.json: /training/regime/start: expected start only with mode async of parameter_server, found another mode "
        "or regime");
  CHECK(complaint_of(scenario(R"({"name": "ddp", "algorithm": "ring", "mode": "async"})")) ==
        "t.json: /training/regime/mode: expected a known key of ddp, found \"mode\"");
  const auto warnings = [&](const std::string& regime, const std::string& more) {
    return ScenarioFile::parse(scenario(regime, more), "t.json").point(0).warnings;
  };
  CHECK(warnings(async, "").empty());
  CHECK(
      warnings(async, R"(, "steps": 5)") ==
      std::vector<std::string>{"t.json: /training/steps: has no effect: mode async counts updates and warmup_updates"});
  CHECK(warnings(R"({"name": "parameter_server", "servers": 1, "mode": "async", "seed": 3})", "") ==
        std::vector<std::string>{"t.json: /training/regime/seed: has no effect: only start random uses it"});
  CHECK(ScenarioFile::parse(star_scenario(4, fmt::format(R"({{{}, "regime": {}}})", resnet, async),
                                          R"(, "transport": {"channels": 2})"),
                            "t.json")
            .point(0)
            .warnings ==
        std::vector<std::string>{
            "t.json: /transport/channels: has no effect: with mode async, each shard is sent in one message"});
  // No step is common to all workers.
  CHECK(complaint([&] { predict(ScenarioFile::parse(scenario(async), "t.json").point(0), {.explain = true}); })
            .find("t.json: /training/regime/mode: expected the mode sync, because asynchronous workers have no common "
                  "step to explain, found async") == 0);
}

TEST_CASE("stragglers that cannot be are refused, and those without effect are warned of") {
  const auto complaint = [](const std::string& more) {
    return complaint_of(star_scenario(4, fmt::format(R"({{{}, "regime": "parameter_server", {}}})", resnet, more)));
  };
  CHECK(complaint(R"("slow": [{"rank": 4, "factor": 2}])") ==
        "t.json: /training/slow/0/rank: expected a rank from 0 to 3, found 4");
  CHECK(complaint(R"("slow": [{"rank": 1, "factor": 2, "from": 3, "until": 3}])") ==
        "t.json: /training/slow/0/until: expected a step after 3, found 3");
  CHECK(complaint(R"("jitter": {"distribution": "normal", "spread": "1 ms"})") != "accepted");
  const auto warnings = [](const std::string& more) {
    return ScenarioFile::parse(
               star_scenario(4, fmt::format(R"({{{}, "regime": "parameter_server", {}}})", resnet, more)), "t.json")
        .point(0)
        .warnings;
  };
  CHECK(warnings(R"("slow": [{"rank": 1, "factor": 1}])") ==
        std::vector<std::string>{"t.json: /training/slow/0: has no effect: a factor of 1 has no effect"});
  CHECK(warnings(R"("slow": [{"rank": 1, "factor": 2, "from": 3}])") ==
        std::vector<std::string>{"t.json: /training/slow/0: has no effect: the run ends after step 2"});
  CHECK(warnings(R"("jitter": {"distribution": "uniform", "spread": "0 us"})") ==
        std::vector<std::string>{"t.json: /training/jitter: has no effect: a spread of 0 has no effect"});
}

}  // namespace unequal_training_test
