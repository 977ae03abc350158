// tools/traces/kineto_file.hpp, by the command: exported kernels, added up as Holistic Trace Analysis does
// (hta/analyzers, commit f4d0062), are the columns of the step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace kineto_file_test {

using namespace ringsim;
using namespace ringsim::test;
using Json = nlohmann::json;

namespace {

using Interval = std::pair<std::int64_t, std::int64_t>;  // ns

std::int64_t ns_of(const Json& us) { return std::llround(us.get<double>() * 1000); }

/// As merge_kernel_intervals of hta/utils/utils.py.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> out;
  for (const Interval& each : intervals)
    if (!out.empty() && each.first <= out.back().second)
      out.back().second = std::max(out.back().second, each.second);
    else
      out.push_back(each);
  return out;
}

std::int64_t length(const std::vector<Interval>& intervals) {
  std::int64_t sum = 0;
  for (const auto& [begin, end] : intervals) sum += end - begin;
  return sum;
}

/// The columns of get_temporal_breakdown and get_comm_comp_overlap, ns.
struct Breakdown {
  std::int64_t kernel_time = 0, compute = 0, non_compute = 0, idle = 0, overlap = 0, end = 0;
  std::int64_t kernels = 0;
  Interval step;  ///< ProfilerStep#0
};

Breakdown breakdown_of(const std::string& trace) {
  std::vector<Interval> compute, communication, all;
  Breakdown out;
  const Json document = Json::parse(trace);
  for (const Json& event : document.at("traceEvents")) {
    const Interval when{ns_of(event.at("ts")), ns_of(event.at("ts")) + ns_of(event.at("dur"))};
    const auto name = event.at("name").get<std::string>();
    if (name == "ProfilerStep#0") out.step = when;
    if (event.at("cat") != "kernel") continue;
    ++out.kernels;
    all.push_back(when);
    (name.starts_with("nccl") ? communication : compute).push_back(when);
  }
  all = merged(std::move(all));
  compute = merged(std::move(compute));
  communication = merged(std::move(communication));
  out.kernel_time = all.back().second - all.front().first;
  out.end = all.back().second;
  out.idle = out.kernel_time - length(all);
  out.compute = length(compute);
  out.non_compute = out.kernel_time - out.compute - out.idle;
  out.overlap = length(compute) + length(communication) - length(all);
  return out;
}

/// A plan whose stages call receives long before they are due, in the step before.
constexpr const char* plan = R"({"version": 1,
  "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
  "training": {"workload": {"transformer": {"layers": 4, "hidden": 1024, "heads": 8, "ffn": 4096, "vocabulary": 8000},
                            "sequence": 512, "micro_batch_size": 1, "global_batch_size": 8,
                            "compute": {"flops": "100 TFLOP/s", "efficiency": "50%"}},
               "parallel": {"tensor": 2, "pipeline": 2}, "steps": 1, "warmup": 1}})";

}  // namespace

TEST_CASE("kernels of the rank that ends last add up to the step, its compute and its overlap") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"llama3-8b.json", read_file(source_dir() + "/scenarios/examples/training/llama3-8b.json")},
      {"exposed-bucket.json", read_file(source_dir() + "/scenarios/examples/explain/exposed-bucket.json")},
      {"plan", plan}};
  for (const auto& each_case : cases) {
    CAPTURE(each_case.first);
    const auto& [name, text] = each_case;
    const Prediction prediction = predict(ScenarioFile::parse(text, name).point(0));
    REQUIRE(prediction.training);
    const std::string base = temporary_file("step.rank", "");
    const Outcome outcome =
        run_command({"trace", "export", temporary_file("s.json", text), base + "{rank}.json", "--force"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    std::vector<Breakdown> of;
    for (int rank = 0; rank < prediction.request.ranks; ++rank)
      of.push_back(breakdown_of(read_file(base + std::to_string(rank) + ".json")));
    const Breakdown& last =
        *std::max_element(of.begin(), of.end(), [](const Breakdown& a, const Breakdown& b) { return a.end < b.end; });
    const TimeSplit& split = prediction.training->split;
    // Begins and ends are cut to whole ns, each by itself.
    const auto differs = [&](std::int64_t ns, Picoseconds time) { return std::abs(ns - time.count() / 1000); };
    CHECK(differs(last.kernel_time, prediction.training->step) <= 1);
    CHECK(differs(last.compute, split.compute) <= last.kernels);
    CHECK(differs(last.non_compute, split.exposed_communication + split.waiting_for_others) <= last.kernels);
    CHECK(differs(last.idle, split.idle + split.waiting_for_host) <= last.kernels);
    CHECK(differs(last.overlap, split.overlapped) <= 2 * last.kernels);
    CHECK(last.overlap > 0);
    for (const Breakdown& each : of) CHECK(each.step.second - each.step.first == each.kernel_time);
  }
}

}  // namespace kineto_file_test
