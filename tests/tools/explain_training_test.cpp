// ringsim explain of training steps: the critical path per task and bucket.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace explain_training_test {

using nlohmann::json;
using namespace ringsim::test;

namespace {

json answer(const std::string& command, const std::string& file, const Words& more = {}) {
  Words words{command, file, "--format", "json"};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_command(words);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const json document = json::parse(outcome.out);
  return command == "run" ? document["results"][0] : document;
}

std::int64_t picoseconds(const json& us) { return std::llround(us.get<double>() * 1e6); }

/// The parts and the tasks sum to the step, to the picosecond; of steps that are alike the chain of the last does as
/// well.
json explained(const std::string& file, const Words& more = {}) {
  json document = answer("explain", file, more);
  std::int64_t parts = 0, tasks = 0, lines = 0;
  for (const json& part : document["why"]) parts += picoseconds(part["us"]);
  for (const json& task : document["tasks"]) tasks += picoseconds(task["us"]);
  for (const json& line : document["path"]) lines += picoseconds(line["us"]);
  CHECK(parts == picoseconds(document["time_us"]));
  CHECK(tasks == picoseconds(document["time_us"]));
  if (document["step_min_us"] == document["step_max_us"]) CHECK(lines == picoseconds(document["time_us"]));
  return document;
}

/// What the path spent in tasks of a kind, for a cause; in ps.
std::int64_t time_in(const json& document, const std::string& task, const std::string& cause) {
  std::int64_t sum = 0;
  for (const json& part : document["why"])
    if (part["task"] == task && part["cause"] == cause) sum += picoseconds(part["us"]);
  return sum;
}

const json& what_if(const json& document, const std::string& label) {
  for (const json& each : document["what_if"])
    if (each["label"] == label) return each;
  FAIL("no what-if " << label);
  return document;
}

double change(const json& document, const std::string& label) {
  return what_if(document, label)["change"].get<double>();
}

constexpr std::int64_t ms = 1'000'000'000;  // ps
constexpr std::int64_t us = 1'000'000;

/// Four layers of 1 M parameters, a bucket of 4 MB each, on four ports of 8 Gb/s: a ring takes 6 steps of 1 us and
/// 1 MB / 1 GB/s, 6.006 ms a bucket.
std::string four_layers(const std::string& backward, const std::string& more = "", const std::string& host = "") {
  return temporary_file("four-layers.json", fmt::format(R"({{"version": 1, "name": "four layers",
  "topology": {{"kind": "star", "ranks": 4, "link": {{"bandwidth": "8 Gb/s", "latency": "500 ns"}}}},
  "training": {{
    "workload": {{"layers": [{{"name": "l", "times": 4, "parameters": 1000000, "forward": "2 ms", "backward": "{}"}}],
                 "batch": 8}},
    "regime": {{"name": "ddp", "algorithm": "ring", "buckets": {{"size": "4 MB", "first": "4 MB"}}}},
    "optimizer": {{"time": "1 ms"}}{}}}{}}})",
                                                        backward, host, more));
}

}  // namespace

TEST_CASE("an exposed last bucket is the first cause, and no faster GPU helps as much as faster links") {
  const std::string file = ringsim::test::source_dir() + "/scenarios/examples/explain/exposed-bucket.json";
  const json document = explained(file);
  const json& first = document["why"][0];
  CHECK(first["cause"] == "link");
  CHECK(first["task"] == "bucket 4");
  CHECK(first["links"] == "gpu* -> switch*");  // all ports are loaded alike: one stands for them
  // 14 steps of 220 MB / 8 over 3.125 GB/s; bucket 4: block 11 is bucket 0, then three blocks each, then the rest.
  CHECK(picoseconds(first["us"]) == 14 * 8'800 * us);
  CHECK(has(document["summary"].get<std::string>(), "bucket 4 over gpu"));
  CHECK(change(document, "link 2x") < change(document, "compute 2x"));
  CHECK(change(document, "link 2x") == doctest::Approx(-0.2246).epsilon(0.001));  // 61.6 of 274.2 ms
  // Every what-if has the time that `ringsim run` gives with the same --set.
  for (const json& each : document["what_if"]) {
    CAPTURE(each.dump());
    Words set;
    for (const json& change : each["set"]) set.insert(set.end(), {"--set", change.get<std::string>()});
    CHECK(each["time_us"] == answer("run", file, set)["time_us"]);
  }
}

TEST_CASE("GPUs that a scenario has made faster are tried faster still") {
  Words set{"--set", "calibration.scale_compute=2.5"};
  const json document = explained(four_layers("7 ms"), set);
  CHECK(what_if(document, "compute 10 % faster")["set"] == json{"calibration.scale_compute=2.75"});
  CHECK(what_if(document, "compute 2x")["set"] == json{"calibration.scale_compute=5"});
  CHECK(change(document, "compute 2x") < 0);
  CHECK(change(document, "compute 10 % faster") < 0);  // it took longer by the factor 1.1 instead of 2.75
}

TEST_CASE("where only the last bucket is exposed, the path's computation and communication are those of the split") {
  const json document = explained(four_layers("7 ms"));  // more than 6.006: each bucket is through before the next
  CHECK(time_in(document, "forward", "compute") == 8 * ms);
  CHECK(time_in(document, "backward", "compute") == 28 * ms);
  CHECK(time_in(document, "update", "compute") == 1 * ms);
  CHECK(time_in(document, "bucket 3", "link") == 6 * ms);
  CHECK(time_in(document, "bucket 3", "latency") == 6 * us);
  CHECK(picoseconds(document["split_us"]["compute"]) == 37 * ms);
  CHECK(picoseconds(document["split_us"]["exposed_communication"]) == 6 * ms + 6 * us);
  // Each layer's pass is a task of the same length, in the order of the step.
  REQUIRE(document["tasks"].size() == 10);
  CHECK(document["tasks"][0] == json{{"task", "forward l.0"}, {"us", 2000.0}});
  CHECK(document["tasks"][4] == json{{"task", "backward l.3"}, {"us", 7000.0}});
  CHECK(document["tasks"][8] == json{{"task", "bucket 3"}, {"us", 6006.0}});
  CHECK(document["tasks"][9] == json{{"task", "update"}, {"us", 1000.0}});
  // The chain: forward, backward, the bucket, the update.
  REQUIRE(document["path"].size() == 4);
  CHECK(document["path"][1]["first_task"] == "backward l.3");
  CHECK(document["path"][1]["last_task"] == "backward l.0");
  CHECK(document["path"][2]["first_step"] == 0);
  CHECK(document["path"][2]["last_step"] == 5);
}

TEST_CASE("where communication binds, the path leaves the GPU with the first bucket and goes through all of them") {
  const json document = explained(four_layers("5 ms"));
  CHECK(time_in(document, "backward", "compute") == 5 * ms);  // of the last layer; the others are hidden
  for (int bucket = 0; bucket < 4; ++bucket)
    CHECK(time_in(document, fmt::format("bucket {}", bucket), "link") == 6 * ms);
  CHECK(picoseconds(document["time_us"]) == 8 * ms + 5 * ms + 4 * (6 * ms + 6 * us) + 1 * ms);
  // What is on the path gains: 1.3 ms of 14 that the GPU computes there, 2.2 of 24 that links take.
  CHECK(change(document, "compute 10 % faster") > change(document, "link 10 % faster"));
}

TEST_CASE("launches of collectives and of kernels are causes of their own") {
  const json launched = explained(four_layers("7 ms", R"(, "transport": {"launch": "10 us"})"));
  CHECK(time_in(launched, "bucket 3", "launch") == 10 * us);
  // The host launches kernels one by one, each after 3 ms: it is late with all that are shorter.
  const json hosted = explained(four_layers("7 ms", "", R"(, "host": {"launch": "3 ms"})"));
  CHECK(time_in(hosted, "launch", "host") == 5 * 3 * ms);  // four forward passes, and the first backward pass
  CHECK(time_in(hosted, "forward", "compute") == 0);
  CHECK(change(hosted, "host launches halved") < 0);
  CHECK(what_if(hosted, "host launches halved")["set"] == json{"training.host.launch=1.5 ms"});
}

TEST_CASE("one GPU's path is its computation, and nothing else helps") {
  const std::string file = temporary_file("single.json", R"({"version": 1, "name": "alone",
  "topology": {"kind": "star", "ranks": 2, "link": {"bandwidth": "8 Gb/s", "latency": "1 us"}},
  "training": {"workload": {"model": "resnet50", "batch": 32,
                            "compute": {"flops": "100 TFLOP/s", "efficiency": "40%"}}, "regime": "single"}})");
  const json document = explained(file);
  CHECK(document["why"].size() == 2);
  CHECK(document["why"][0]["task"] == "backward");
  CHECK(has(document["summary"].get<std::string>(), "limited by the backward pass for 67 %"));
  CHECK(has(document["summary"].get<std::string>(), "all of the time is computation"));
  CHECK(document["what_if"].size() >= 2);
  // Twice the speed: half the time, but for the picosecond to which each of 54 layers and 2 passes is rounded.
  const double twice = answer("run", file, {"--set", "training.workload.compute.flops=200 TFLOP/s"})["time_us"];
  CHECK(std::abs(what_if(document, "compute 2x")["time_us"].get<double>() - twice) <= 108e-6);
}

TEST_CASE("of steps that differ the parts are means that sum to the mean") {
  // A link that is slow only at the beginning: the first of three steps that count takes longer.
  const json document =
      explained(four_layers("7 ms", R"(, "faults": [{"link": "gpu1", "bandwidth": "30%", "until": "60 ms"}])",
                            R"(, "steps": 3, "warmup": 0)"));
  CHECK(document["step_max_us"].get<double>() > document["step_min_us"].get<double>());
  CHECK(time_in(document, "update", "compute") == 1 * ms);  // in every step
}

TEST_CASE("a step of inference is explained as such, in tokens") {
  const std::string file = ringsim::test::source_dir() + "/scenarios/examples/inference/nim-two-h100.json";
  const Outcome outcome =
      run_command({"explain", file, "--set", "inference.context=1500", "--set", "inference.host.launch=8.8 us"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.starts_with(
      "decode of llama3_70b (NIM on two H100), 1 sequence of 1500 tokens, Ring, 2 ranks: 20.7 ms, 48.36"));
  CHECK(has(outcome.out, "tensor all_reduce"));
}

TEST_CASE("the text names passes, buckets and links, and what a change gains") {
  const Outcome outcome = run_command({"explain", four_layers("7 ms")});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err == "");
  CHECK(outcome.out.starts_with("training step of layers (four layers), ddp, ring, 4 ranks, 4 buckets: 43 ms, 744.1"));
  CHECK(has(explained(four_layers("7 ms"))["summary"].get<std::string>(),
            "limited by the backward pass for 65 % of the critical path; apart from computation, bucket 3 over gpu* -> "
            "switch* takes the most time: 14 %"));
  CHECK(has(outcome.out, "backward l.3 to backward l.0, 4 tasks: rank "));
  CHECK(has(outcome.out, " over gpu* -> switch*, 6 messages: 6.006 ms"));
  CHECK(has(outcome.out, "compute 2x"));
}

TEST_CASE("diff of two training steps names the tasks") {
  const std::string file = four_layers("7 ms");
  const Outcome outcome = run_command({"diff", file, file, "--set-b", "calibration.scale_link=2"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  CHECK(has(outcome.out, "bucket 3: link"));
}

TEST_CASE("a factor on computation without training is warned of") {
  const std::string file = temporary_file("star.json", R"({"version": 1, "name": "four",
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}, "calibration": {"scale_compute": 2}})");
  const Outcome outcome = run_command({"run", file});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.err, "/calibration/scale_compute: it has no effect, because there is no training step"));
}

}  // namespace explain_training_test
