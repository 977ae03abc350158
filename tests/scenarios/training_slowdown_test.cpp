// `training.slowdown`: kernels that take longer while a collective runs on their GPU, in plans and in regimes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/json_scenario.hpp"

namespace training_slowdown_test {

using namespace ringsim;
using test::changed;
using test::predicted;
using Json = nlohmann::json;

namespace {

/// A small transformer on a star of 50 GB/s, without launches.
Json plan_of(int ranks, const Json& parallel) {
  Json scenario = Json::parse(R"({"version": 1, "name": "small",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
      "training": {"workload": {"transformer": {"layers": 8, "hidden": 512, "heads": 8, "ffn": 2048,
                                                "vocabulary": 1000},
                                "sequence": 256, "micro_batch_size": 2, "global_batch_size": 32,
                                "compute": {"gemm": "60%", "attention": "40%", "memory": "80%",
                                            "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}},
                   "optimizer": "adam", "steps": 1, "warmup": 1}})");
  scenario["topology"]["ranks"] = ranks;
  scenario["training"]["parallel"] = parallel;
  return scenario;
}

Json slowed(const Json& scenario, double factor) { return changed(scenario, {{"/training/slowdown", factor}}); }

const std::string no_overlap = "no kernel overlaps with a collective on its GPU, except transfers between stages";

std::string idle_of(const Prediction& prediction) {
  for (const SettingEffect& each : prediction.settings)
    if (each.setting.find("slowdown") != std::string::npos) return each.idle;
  return "not asked";
}

}  // namespace

// For t of a GPU's time next to a collective its kernels do t / f of their work, so they take t (1 - 1 / f) longer. t
// is what the account has as overlapped: a call is open while a kernel runs. Nothing is launched in these plans.
TEST_CASE("kernels of a plan take longer by the time that a collective of its data is next to them") {
  const Json reduce = Json::array({"grad_reduce"}), both = Json::array({"grad_reduce", "param_gather"});
  constexpr int bucket = 1'000'000;  // parameters, of 26 million: without buckets nothing is reduced before the end
  const std::vector<Json> plans{
      {{"overlap", reduce}, {"bucket_size", bucket}},
      {{"shard", "optimizer"}, {"overlap", both}, {"bucket_size", bucket}},
      {{"shard", "full"}},
      {{"tensor", 2}, {"overlap", reduce}, {"bucket_size", bucket}},
  };
  for (const Json& parallel : plans)
    for (const double factor : {1.0625, 1.5, 4.0}) {
      CAPTURE(parallel.dump());
      CAPTURE(factor);
      const Json scenario = plan_of(4, parallel);
      const Prediction alone = predicted(scenario), slower = predicted(slowed(scenario, factor));
      const TimeSplit &before = alone.training->split, &after = slower.training->split;
      REQUIRE(after.overlapped.count() > 0);
      const double longer = static_cast<double>((after.compute - before.compute).count());
      // Each of some 500 kernels is rounded up to a picosecond.
      CHECK(std::abs(longer - static_cast<double>(after.overlapped.count()) * (1 - 1 / factor)) < 1000);
      CHECK(slower.training->step >= alone.training->step);  // equal where transfers are all that counts
      CHECK(after.total() == slower.training->step);
      CHECK(slower.training->sent == alone.training->sent);
      CHECK(idle_of(slower) == "");
    }
}

TEST_CASE("what pipeline stages hand on, and collectives that kernels wait for, slow nothing: the setting is idle") {
  const Json two_stages = plan_of(4, {{"pipeline", 2}, {"tensor", 2}, {"schedule", "1f1b"}});
  const Json scenarios[] = {two_stages, plan_of(4, {{"tensor", 4}}), plan_of(4, {{"overlap", Json::array()}})};
  for (const Json& scenario : scenarios) {
    CAPTURE(scenario["training"]["parallel"].dump());
    const Prediction alone = predicted(scenario), slower = predicted(slowed(scenario, 1.5));
    CHECK(slower.training->step == alone.training->step);
    CHECK(idle_of(slower) == no_overlap);
    CHECK(idle_of(alone) == "not asked");
  }
  // Next to stages, gradients that are reduced during the backward pass count.
  const Json with_data = plan_of(
      8, {{"pipeline", 2}, {"tensor", 2}, {"overlap", Json::array({"grad_reduce"})}, {"bucket_size", 1'000'000}});
  CHECK(idle_of(predicted(slowed(with_data, 1.5))) == "");
}

TEST_CASE("a slowed step of calls that are remembered equals the step that is simulated whole") {
  // A million messages: calls of less are not remembered.
  Json scenario = plan_of(64, {{"shard", "full"}});
  scenario["training"]["workload"]["transformer"]["layers"] = 32;
  scenario["training"]["workload"]["global_batch_size"] = 128;
  scenario["training"]["steps"] = 3;
  scenario = slowed(scenario, 1.2);
  const Scenario point = ScenarioFile::parse(scenario.dump(), "s.json").point(0);
  PredictOptions whole;
  whole.fold = false;
  const Prediction a = predict(point, PredictOptions{}), b = predict(point, whole);
  REQUIRE(a.remembered != b.remembered);
  CHECK(a.training->step == b.training->step);
  CHECK(a.training->split == b.training->split);
}

TEST_CASE("a regime without an overlap says that the setting is idle") {
  const Json ddp = Json::parse(R"({"version": 1,
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "training": {"workload": {"layers": [{"name": "a", "parameters": 1000000, "forward": "1 ms", "backward": "2 ms"},
                                           {"name": "b", "parameters": 1000000, "forward": "1 ms", "backward": "2 ms"}], "batch": 1},
                   "regime": {"name": "ddp", "algorithm": "ring", "overlap": true, "buckets": {"size": "1 MB", "first": "1 MB"}},
                   "slowdown": 1.1}})");
  CHECK(idle_of(predicted(ddp)) == "");
  CHECK(idle_of(predicted(changed(ddp, {{"/training/regime/overlap", false}}))) == no_overlap);
}

}  // namespace training_slowdown_test
