// Jobs that train, and jobs next to them; what jobs share.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/plain_scenario.hpp"

namespace jobs_test {

using namespace ringsim;
using namespace std::chrono_literals;
using ringsim::test::only;
using ringsim::test::Texts;

namespace {

/// Passes of 10 and 20 ms, 100 MB of gradients in one bucket.
std::string training_on(const std::string& ranks) {
  return R"({"workload": {"layers": [{"name": "all", "parameters": 25000000, "forward": "10 ms", "backward": "20 ms"}],
    "batch": 1}, "regime": {"name": "ddp", "algorithm": "ring"}, "steps": 3, "ranks": )" +
         ranks + "}";
}

/// Two racks with two GPUs each and a trunk of 10 GB/s; main trains across it, and so may `job`.
std::string on_trunk(const std::string& job) {
  return R"({"version": 1, "topology": {"kind": "graph",
    "nodes": [{"name": "a0", "kind": "gpu"}, {"name": "a1", "kind": "gpu"}, {"name": "b0", "kind": "gpu"},
      {"name": "b1", "kind": "gpu"}, {"name": "s0", "kind": "switch"}, {"name": "s1", "kind": "switch"}],
    "links": [{"from": "a0", "to": "s0", "bandwidth": "10 GB/s", "latency": "1 us"},
      {"from": "b0", "to": "s0", "bandwidth": "10 GB/s", "latency": "1 us"},
      {"from": "a1", "to": "s1", "bandwidth": "10 GB/s", "latency": "1 us"},
      {"from": "b1", "to": "s1", "bandwidth": "10 GB/s", "latency": "1 us"},
      {"from": "s0", "to": "s1", "bandwidth": "10 GB/s", "latency": "1 us"}]}, "training": )" +
         training_on(R"(["a0", "a1"])") + R"(, "jobs": [)" + job + "]}";
}

std::string second_training(const std::string& ranks, const std::string& start) {
  return R"({"name": "second", "start": ")" + start + R"(", "training": )" + training_on(ranks) + "}";
}

}  // namespace

TEST_CASE("two trainings that send at the same time have half of their trunk each; out of step they have all of it") {
  // Alone: 30 ms, and a ring of 2: two steps of 50 MB at 10 GB/s and 3 us. Together the steps take 10 ms each.
  CHECK(predict(only(on_trunk(""))).time == 40'006us);
  Prediction both = predict(only(on_trunk(second_training(R"(["b0", "b1"])", "0 us"))));
  REQUIRE(both.jobs.size() == 1);
  CHECK(both.time == 50'006us);
  CHECK(both.jobs[0].time == 50'006us);
  REQUIRE(both.jobs[0].training);
  CHECK(both.jobs[0].training->split.exposed_communication == 20'006us);
  CHECK(both.jobs[0].training->sent == both.training->sent);
  REQUIRE(both.jobs[0].bottleneck);
  CHECK(both.jobs[0].bottleneck->kind == both.bottleneck->kind);
  // 15 ms apart one computes while the other sends.
  both = predict(only(on_trunk(second_training(R"(["b0", "b1"])", "15 ms"))));
  CHECK(both.time == 40'006us);
  CHECK(both.jobs[0].time == 40'006us);
  CHECK(both.jobs[0].start == 15ms);
}

TEST_CASE("a collective next to a training step slows it, and its own time counts from its start") {
  // 80 MB over the same trunk, from 32 ms on, 2 ms into the exchange of 100 MB. Each direction of the trunk carries
  // both, 18 ms in all, without a break but for the latency of one exchange, and both end at the same time.
  const std::string job = R"({"name": "other", "start": "32 ms", "collective":
      {"op": "all_reduce", "algorithm": "ring", "bytes": "80 MB", "ranks": ["b0", "b1"]}})";
  const Prediction both = predict(only(on_trunk(job), {"training.steps=1", "training.warmup=0"}));
  CHECK(both.time == 48'003us);
  CHECK(both.jobs[0].time == 16'003us);
  CHECK(!both.jobs[0].training);
  // On the GPUs that train, it does the same: only links are shared.
  const Prediction shared = predict(
      only(on_trunk(job), {"training.steps=1", "training.warmup=0", R"(jobs.0.collective.ranks=["a0", "a1"])"}));
  CHECK(shared.time == both.time);
  CHECK(shared.jobs[0].time == both.jobs[0].time);
}

// 464.544 us in all: 5 us of start, 115 until the late rank begins, 10 of launch; the share of the delay leaves the
// start out.
TEST_CASE("a late rank of a job is late from the job's start on, whatever the launch takes") {
  const std::string job = R"({"name": "other", "start": "5 us", "collective":
      {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB", "ranks": ["gpu2", "gpu3"]}})";
  const Prediction found = predict(only(R"({"version": 1,
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "25 Gb/s", "latency": "1 us"}},
      "transport": {"launch": "10 us"},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB", "ranks": ["gpu0", "gpu1"]},
      "disturbance": {"late": [{"job": "other", "rank": 1, "by": "120 us"}]}, "jobs": [)" +
                                        job + "]}"));
  const Prediction& other = found.jobs.front();
  // A ring of 2: two steps of 512 KiB at 3.125 GB/s and 2 us.
  CHECK(other.time == 115us + 10us + 2 * (Picoseconds{167'772'160} + 2us));
  REQUIRE(other.bottleneck);
  CHECK(other.bottleneck->delay == doctest::Approx(115e6 / static_cast<double>(other.time.count())));
}

// Two nodes with one adapter each: what one GPU sends over the other's NVLink is no message of the other's.
TEST_CASE("what a rank of a training sends does not depend on other jobs, nor on whom messages pass") {
  const std::string workload = R"("workload": {"layers": [{"name": "all", "parameters": 1000000, "forward": "1 ms",
      "backward": "2 ms"}], "batch": 1}, "regime": {"name": "ddp", "algorithm": "ring"}, "steps": 2, "warmup": 0)";
  const auto report = [&](const std::string& jobs) {
    return *predict(only(R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
        "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}}, "training": {)" +
                         workload + "}" + jobs + "}"))
                .training;
  };
  const TrainingReport alone = report("");
  const TrainingReport next_to = report(R"(, "jobs": [{"name": "later", "start": "1 s", "collective":
      {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}}])");
  CHECK(alone.sent == next_to.sent);
  REQUIRE(alone.by_rank.size() == next_to.by_rank.size());
  for (std::size_t i = 0; i < alone.by_rank.size(); ++i) {
    CHECK(alone.by_rank[i].sent == next_to.by_rank[i].sent);
    CHECK(alone.by_rank[i].sent == Bytes{7'500'000});  // 2 * 15/16 of 4 MB, for every rank of a ring
    CHECK(alone.by_rank[i].received == next_to.by_rank[i].received);
  }
}

// Each of n calls at the same time may use 65,536 / n channels.
TEST_CASE("more jobs than channels are refused, with both numbers") {
  std::string jobs;
  for (int i = 0; i < 1030; ++i)
    jobs += fmt::format(
        R"({}{{"name": "j{}", "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "1 KiB"}}}})",
        i > 0 ? ", " : "", i);
  const std::string text = test::complaint([&] {
    predict(only(R"({"version": 1, "transport": {"channels": 64},
        "topology": {"kind": "star", "ranks": 2, "link": {"bandwidth": "25 Gb/s", "latency": "1 us"}},
        "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 KiB"}, "jobs": [)" +
                 jobs + "]}"));
  });
  CAPTURE(text);
  CHECK(text.find("expected at most 32 channels of each of the calls that may run at the same time, found 33") !=
        std::string::npos);
}

// The steps of the training and the time of the groups count from other moments, and are of other things.
TEST_CASE("groups next to a training step have no result together") {
  const std::string job = R"({"name": "other", "start": "32 ms", "collective":
      {"op": "all_reduce", "algorithm": "ring", "bytes": "80 MB", "groups": [["b0", "b1"]]}})";
  const Prediction both = predict(only(on_trunk(job), {"training.steps=1", "training.warmup=0"}), {.explain = true});
  REQUIRE(both.jobs.size() == 1);
  CHECK(both.jobs[0].job == "other");
  CHECK(both.jobs[0].time == 16'003us);
  for (const Prediction* each : {&both, &both.jobs[0]}) {
    REQUIRE(each->bottleneck);
    CHECK(each->bottleneck->busy <= 1);
    CHECK(each->bottleneck->delay <= 1);
  }
  REQUIRE(both.explanation.has_value());
  Picoseconds sum{0};
  for (const ExplainedPart& part : both.explanation->parts) sum += part.time;
  CHECK(sum == both.time);
}

TEST_CASE("jobs next to training that cannot be are refused at their place") {
  const auto has = [](const std::string& text, const std::string& part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  const auto complaint = [](const std::string& text, const Texts& set = {}) {
    return test::complaint([&] { predict(only(text, set)); });
  };
  has(complaint(on_trunk(second_training(R"(["b0", "a1"])", "0 us"))),
      "/jobs/0/training/ranks: expected GPUs that no other job trains on, found a1, which trains for main");
  has(complaint(on_trunk(second_training(R"(["b0", "b1"])", "0 us")), {R"(jobs.0.after=["main"])"}),
      "/jobs/0/after: cannot be combined with a training step");
  has(complaint(on_trunk(second_training(R"(["b0", "b1"])", "0 us")), {"jobs.0.training.workload.model=resnet50"}),
      "/jobs/0/training/workload: expected either model, layers or transformer, found model and layers");
  has(complaint(on_trunk(""), {"training.slowdown=0.5"}), "/training/slowdown: expected a number from 1 to 1000");
  has(complaint(on_trunk(second_training(R"(["b0", "b1"])", "0 us")),
                {"library=nccl", "training.regime=single", R"(training.ranks=["a0"])"}),
      "/training/regime: expected a regime that exchanges data, for use with a library and jobs, found single");
  has(complaint(on_trunk(R"({"name": "none"})")),
      "/jobs/0: expected the key \"collective\" or \"training\", found none");
}

}  // namespace jobs_test
