// Jobs and exchanges by a library, each with its own plan: what one of them has must not be taken for the others'.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "validate/closed_forms/bound.hpp"

namespace library_jobs_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

using Overrides = std::vector<std::string>;

const std::string two_dgx_a100 = R"({"version": 1,
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2, "fabric": {"kind": "star", "link":
               {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
  "library": "nccl", "collective": {"op": "all_reduce", "bytes": "64 MiB"}})";
const std::string one_h100 = R"({"version": 1, "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 1},
  "library": {"name": "nccl", "version": "2.18.3"}, "collective": {"op": "all_reduce", "bytes": "64 MiB"}})";

Scenario point(const std::string& text, const Overrides& overrides = {}) {
  return ScenarioFile::parse(text, "s.json", overrides).point(0);
}
Prediction predicted(const std::string& text, const Overrides& overrides = {}) {
  return predict(point(text, overrides), PredictOptions{});
}
/// jobs=[...] with one collective.
std::string job(const char* op, const char* bytes, const std::string& more) {
  return fmt::format(R"(jobs=[{{"name": "b", "collective": {{"op": "{}", "bytes": "{}"}}, {}}}])", op, bytes, more);
}
bool warns_of(const Scenario& scenario, const std::string& key) {
  return std::any_of(scenario.warnings.begin(), scenario.warnings.end(),
                     [&](const std::string& warning) { return warning.find(key) != std::string::npos; });
}

}  // namespace

TEST_CASE("a bucket by NVLS below one by rings has its switch, wherever the step's largest bucket goes") {
  // 3 MiB by NVLS, 32 MiB by Ring. The small one is over before the other is ready.
  const auto step = [](const char* layers, const Overrides& more = {}) {
    Overrides all{"collective=null",
                  fmt::format(R"(training={{"workload": {{"layers": {}, "batch": 1}}, "regime": "ddp",
                                "ranks": ["node0.gpu0", "node0.gpu1", "node0.gpu2", "node0.gpu3"],
                                "steps": 1, "warmup": 0}})",
                              layers)};
    all.insert(all.end(), more.begin(), more.end());
    return predicted(one_h100, all);
  };
  const Prediction both = step(R"([{"name": "a", "parameters": 8388608, "forward": "9 ms", "backward": "20 ms"},
                                   {"name": "b", "parameters": 786432, "forward": "9 ms", "backward": "20 ms"}])"),
                   large = step(R"([{"name": "a", "parameters": 8388608, "forward": "9 ms", "backward": "20 ms"}])");
  CHECK(both.library_algorithm == "Ring, NVLS");
  CHECK(both.time == large.time + 29ms);
  for (const RankReport& rank : both.training->by_rank) CHECK(rank.who == "ranks 0 to 3");  // none has the switch
}

TEST_CASE("the average of local SGD moves by its own plan next to a job by another") {
  const char* training = R"("training": {"workload": {"layers": [{"name": "l", "parameters": 45000000,
      "forward": "1 ms", "backward": "2 ms"}], "batch": 1}, "regime": {"name": "local_sgd", "every": 2},
      "ranks": ["node0.gpu4", "node0.gpu5", "node1.gpu4", "node1.gpu5"], "steps": 2, "warmup": 1})";
  const Overrides ranks{R"(collective.ranks=["node0.gpu0", "node0.gpu1", "node1.gpu0", "node1.gpu1"])",
                        fmt::format(R"(jobs=[{{"name": "sgd", {}}}])", training)};
  const auto time_with = [&](const char* bytes) {
    Overrides all = ranks;
    all.push_back(fmt::format("collective.bytes={}", bytes));
    return predicted(two_dgx_a100, all).jobs.at(0).time;
  };
  CHECK(time_with("1 KiB") == time_with("1 GiB"));  // by Tree and LL, by Ring and Simple
}

TEST_CASE("a fault's bandwidth is the link's own, of which each call reaches its share, whatever else runs") {
  const Overrides fault{R"(faults=[{"link": "node0.gpu0 -> node0.nvswitch0", "at": "0 us", "bandwidth": "10 GB/s"}])"};
  const Picoseconds alone = predicted(two_dgx_a100, fault).time;
  for (const char* bytes : {"1 KiB", "1 GiB"}) {
    Overrides all = fault;
    all.push_back(job("all_reduce", bytes, R"("start": "2 s")"));
    CHECK(predicted(two_dgx_a100, all).time == alone);
  }
}

TEST_CASE("a job's bound is that of its own algorithm") {
  // 1 GiB over two nodes of 8 H100 goes by NVLSTree, whose switches add up; 1 KiB before it by a tree of ranks.
  const Overrides h100{"topology.node=hgx-h100", "topology.fabric.link.bandwidth=400 Gb/s", "library.version=2.22.3",
                       "collective.bytes=1 KiB"};
  Overrides both = h100;
  both.push_back(job("all_reduce", "1 GiB", R"("start": "1 s")"));
  const Scenario scenario = point(two_dgx_a100, both);
  const auto bounds = Bounds().of(scenario, set_up(scenario));
  Overrides large = h100;
  large.back() = "collective.bytes=1 GiB";
  REQUIRE(bounds.at(1).has_value());
  CHECK(bounds[1]->time == own_bound(point(two_dgx_a100, large)).time);
  CHECK(bounds[0]->time == own_bound(point(two_dgx_a100, h100)).time);
}

TEST_CASE("a variable that another job reads is not said to have no effect") {
  const Overrides peers{"library.env.NCCL_MAX_P2P_NCHANNELS=1"};
  CHECK(warns_of(point(two_dgx_a100, peers), "NCCL_MAX_P2P_NCHANNELS"));
  Overrides with_sends = peers;
  with_sends.push_back(job("all_to_all", "64 MiB", R"("after": ["main"])"));
  CHECK(!warns_of(point(two_dgx_a100, with_sends), "NCCL_MAX_P2P_NCHANNELS"));
  CHECK(predicted(two_dgx_a100, with_sends).jobs.at(0).time >
        predicted(two_dgx_a100, {with_sends.back()}).jobs.at(0).time);
  // Likewise what a GPU's own part takes, and NVLS.
  CHECK(warns_of(point(two_dgx_a100, {"devices.gpu.copy=10 GB/s"}), "/devices/gpu/copy"));
  CHECK(!warns_of(point(two_dgx_a100, {"devices.gpu.copy=10 GB/s", job("all_gather", "1 GiB", R"("after": ["main"])")}),
                  "/devices/gpu/copy"));
  const Overrides off{"library.env.NCCL_NVLS_ENABLE=0", "collective.op=all_gather"};
  CHECK(warns_of(point(one_h100, off), "NCCL_NVLS_ENABLE"));
  CHECK(!warns_of(point(one_h100, {off[0], off[1], job("all_reduce", "64 MiB", R"("after": ["main"])")}),
                  "NCCL_NVLS_ENABLE"));
}

TEST_CASE("a job by NVLS after another counts from its first GPU, not from when its switch could begin") {
  const Prediction both = predicted(one_h100, {job("all_reduce", "128 MiB", R"("after": ["main"])")}),
                   large = predicted(one_h100, {"collective.bytes=128 MiB"});
  CHECK(both.library_algorithm == "NVLS");
  CHECK(both.jobs.at(0).time == large.time);
  CHECK(both.jobs.at(1).time == both.time + large.time);
}

TEST_CASE("kernels of two jobs have thread blocks of their own") {
  // Four channels are held by their blocks, not by NVLink: twice as many move twice as much.
  const Overrides few{"library.env.NCCL_MAX_NCHANNELS=4", "topology.nodes=1", "topology.fabric=null",
                      "collective.bytes=1 GiB"};
  Overrides both = few;
  both.push_back(job("all_reduce", "1 GiB", R"("start": "0 us")"));
  const Picoseconds alone = predicted(two_dgx_a100, few).time;
  CHECK(predicted(two_dgx_a100, both).time == alone);
  CHECK(predicted(two_dgx_a100, both).jobs.at(0).time == alone);
}

TEST_CASE("protocols of a job are named as results name them") {
  const Scenario scenario = point(two_dgx_a100, {job("all_reduce", "1 KiB", R"("after": ["main"])")});
  CHECK(protocols_of(scenario, 0) == "ll128");
  CHECK(protocols_of(scenario, 1) == "ll");
  CHECK(protocols_of(point(R"({"version": 1, "topology": {"kind": "star", "ranks": 2, "link": {"bandwidth": "1 GB/s",
      "latency": "1 us"}}, "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 KiB"}})"),
                     0) == "none");
}

}  // namespace library_jobs_test
