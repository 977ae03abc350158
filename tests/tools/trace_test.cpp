// --trace and --utilization as a user meets them; tests/scripts/trace_check.py has the rules of the files.
#include "scenarios/predict/trace.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace trace_test {

using namespace ringsim;
using namespace std::chrono_literals;
using nlohmann::json;
using namespace ringsim::test;

namespace {

// A ring of 4: 6 steps of 2 us and 10 MB / 10 GB/s.
const std::string star = R"({"version": 1, "name": "four",
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}})";

std::string fresh(const std::string& name) { return temporary_file(name, "") + ".new" + name.substr(name.find('.')); }

Outcome traced(const std::string& file, const std::string& scenario, const Words& more = {}) {
  Words words{"run", temporary_file("s.json", scenario), "--trace", file};
  words.insert(words.end(), more.begin(), more.end());
  return run_command(words);
}

Recording recorded(const std::string& text, const TraceFilter& filter) {
  Recording recording;
  recording.filter = filter;
  PredictOptions options;
  options.recording = &recording;
  predict(ScenarioFile::parse(text, "s.json").point(0), options);
  return recording;
}

std::vector<const Trace::Slice*> slices_on(const Trace& trace, const std::string& process, const std::string& track) {
  std::vector<const Trace::Slice*> found;
  for (const Trace::Slice& slice : trace.slices) {
    const Trace::Track& on = trace.tracks[slice.track];
    if (on.name == track && trace.processes[on.process].name == process) found.push_back(&slice);
  }
  return found;
}

}  // namespace

TEST_CASE("a trace has what each rank sends and receives, the critical path, and the links") {
  const Trace trace = recorded(star, {}).trace;
  CHECK(trace.left_out.empty());
  const auto sends = slices_on(trace, "rank 1 (gpu1)", "sends");
  REQUIRE(sends.size() == 6);
  CHECK(sends[1]->name == "to rank 2");
  CHECK(sends[1]->begin == SimTime{1002us});
  CHECK(sends[1]->end == SimTime{2004us});
  CHECK(sends[1]->bytes == Bytes{10'000'000});
  CHECK(sends[1]->step == 1);
  CHECK(slices_on(trace, "rank 1 (gpu1)", "receives").size() == 6);
  const auto path = slices_on(trace, "critical path", "critical path");
  REQUIRE(path.size() == 12);  // per step the link, and its latency
  CHECK(has(path[0]->name, " -> switch0"));
  CHECK(path[0]->end == SimTime{1000us});
  CHECK(path[1]->name == "latency");
  CHECK(path.back()->end == SimTime{6012us});
  // A port carries 10 GB/s except for 2 us per step: nearly full; then nothing.
  REQUIRE(!trace.samples.empty());
  for (const Trace::Sample& sample : trace.samples) {
    CHECK(sample.value >= (sample.when == SimTime{6012us} ? 0 : 80));
    CHECK(sample.value <= (sample.when == SimTime{6012us} ? 0 : 100.0001));
  }
}

TEST_CASE("of a training step the streams have the tasks, under the steps that they belong to") {
  const std::string scenario =
      ringsim::test::read_file(ringsim::test::source_dir() + "/scenarios/examples/explain/exposed-bucket.json");
  const Trace trace = recorded(scenario, {.ranks = {2}}).trace;
  const auto compute = slices_on(trace, "rank 2 (gpu2)", "compute");
  REQUIRE(compute.size() == 3 * (1 + 27));  // per step: 13 layers forward and backward, the update; and the step itself
  CHECK(compute[0]->name == "step 0");
  CHECK(compute[1]->name == "forward embedding");
  CHECK(compute[27]->name == "update");
  CHECK(compute[0]->end == compute[27]->end);
  const auto calls = slices_on(trace, "rank 2 (gpu2)", "communication");
  REQUIRE(calls.size() == 3 * (1 + 5));
  CHECK(calls[5]->name == "bucket 4");
  CHECK(calls[5]->end - calls[5]->begin == 123'228us);
  CHECK(slices_on(trace, "rank 2 (gpu2)", "sends").front()->name == "bucket 0 to rank 3");
  CHECK(slices_on(trace, "rank 0 (gpu0)", "compute").empty());  // chosen was rank 2
  const auto path = slices_on(trace, "critical path", "critical path");
  CHECK(std::any_of(path.begin(), path.end(), [](const auto* slice) { return slice->name == "backward block.3"; }));
  CHECK(std::any_of(path.begin(), path.end(),
                    [](const auto* slice) { return slice->name.starts_with("bucket 4: gpu"); }));
}

TEST_CASE("too many events are cut at a time, with both ends of every message, and it is said") {
  for (const std::size_t most : {40U, 60U, 90U}) {
    CAPTURE(most);
    const Trace trace = recorded(star, {.most_events = most}).trace;
    std::map<std::uint32_t, int> ends;
    std::size_t flows = 0;
    SimTime last{};
    for (const Trace::Slice& slice : trace.slices) {
      last = std::max(last, slice.end);
      if (slice.flow == 0) continue;
      ++ends[slice.flow];
      ++flows;
    }
    for (const auto& [flow, n] : ends) CHECK(n == 2);
    CHECK(trace.slices.size() + flows + trace.samples.size() <= most);
    CHECK(trace.slices.size() > 2);
    CHECK(last < SimTime{6012us});
    CHECK(has(trace.left_out, fmt::format("the trace is limited to {} events", most)));
    CHECK(has(trace.left_out, "everything that ended after"));
    CHECK(has(trace.left_out, "--trace-rank, --trace-link, --trace-from and --trace-to"));
  }
}

TEST_CASE("a part of a run: of a link, of a node, of a time") {
  const auto messages = [](const Trace& trace) {
    return std::count_if(trace.slices.begin(), trace.slices.end(),
                         [](const Trace::Slice& slice) { return slice.flow > 0 && !slice.flow_ends; });
  };
  CHECK(messages(recorded(star, {}).trace) == 24);
  const Trace link = recorded(star, {.links = {"switch0 -> gpu2"}}).trace;
  CHECK(messages(link) == 6);  // what rank 2 receives
  CHECK(std::all_of(link.samples.begin(), link.samples.end(),
                    [&](const Trace::Sample& sample) { return link.tracks[sample.track].name == "switch0 -> gpu2"; }));
  CHECK(messages(recorded(star, {.links = {"gpu2"}}).trace) == 12);
  CHECK(messages(recorded(star, {.ranks = {0}}).trace) == 12);
  // The second step lies from 1002 to 2004 us.
  CHECK(messages(recorded(star, {.begin = SimTime{1500us}, .end = SimTime{1600us}}).trace) == 4);
}

TEST_CASE("what is asked wrongly is refused before anything runs, or names the option") {
  const auto is_refused = [](const Outcome& outcome, int code, const std::string& part) {
    CAPTURE(outcome.err);
    CHECK(outcome.code == code);
    CHECK(outcome.out == "");
    CHECK(has(outcome.err, part));
  };
  const std::string file = fresh("t.json");
  is_refused(traced(fresh("t.txt"), star), 2, "expected a file named *.json, *.json.gz or *.pftrace");
  is_refused(traced(file, star, {"--set", "topology.ranks=[4, 8]"}), 2, "expected a scenario with one point, found 2");
  is_refused(traced(file, star, {"--trace-from", "2 us", "--trace-to", "1 us"}), 2, "expected a time after");
  is_refused(traced(file, star, {"--trace-rank", "4"}), 3, "expected a rank from 0 to 3, found 4");
  is_refused(traced(file, star, {"--trace-link", "gpu9"}), 3, "--trace-link: expected a link, FROM -> TO");
  is_refused(run_command({"run", temporary_file("s.json", star), "--trace-rank", "1"}), 2, "--trace");
  is_refused(run_command({"run", temporary_file("s.json", star), "--utilization", "-"}), 2, "expected a separate file");
  is_refused(run_command({"run", temporary_file("s.json", star), "--utilisation", file}), 2,
             "--utilisation has been replaced by --utilization");
  is_refused(run_command({"run", temporary_file("s.json", star), "--utilisation-step", "1 ms"}), 2,
             "--utilisation-step has been replaced by --utilization-step");
  is_refused(traced(file, star, {"--utilization", file}), 3, "expected an output file that");
  is_refused(traced("/no/such/folder/t.json", star), 3, "found no folder");
  CHECK(!std::filesystem::exists(file));
}

TEST_CASE("nothing in the chosen part is said") {
  const Outcome outcome = traced(fresh("t.json"), star, {"--trace-from", "1 s"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.err, "the selected part of the run is empty"));
}

TEST_CASE("explain writes the same trace as run") {
  const std::string one = fresh("a.json"), other = fresh("b.json"), scenario = temporary_file("s.json", star);
  CHECK(run_command({"run", scenario, "--trace", one}).code == 0);
  CHECK(run_command({"explain", scenario, "--trace", other}).code == 0);
  CHECK(ringsim::test::read_file(one) == ringsim::test::read_file(other));
  CHECK(json::parse(ringsim::test::read_file(one))["traceEvents"].size() > 100);
}

TEST_CASE("the table of utilization sums to what each link carried") {
  const std::string file = fresh("use.csv");
  const Outcome outcome = run_command(
      {"run", temporary_file("s.json", star), "--utilization", file, "--utilization-step", "1 ms", "--format", "json"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  std::istringstream lines(ringsim::test::read_file(file));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "link,kind,begin_us,end_us,bytes,utilisation");
  std::map<std::string, std::int64_t> sums;
  std::map<std::string, int> n_steps;
  int rows = 0;
  while (std::getline(lines, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == 6);
    sums[cells[0]] += std::stoll(cells[4]);
    const int step = n_steps[cells[0]]++;
    CHECK(cells[2] == fmt::format("{}", 1000 * step));
    CHECK(cells[3] == (step == 6 ? "6012" : fmt::format("{}", 1000 * (step + 1))));  // the last one ends with the run
    const double utilization = std::stod(cells[5]);
    CHECK(utilization > 0.8);  // all but latencies of 2 us in 1002; of the last step, which lasts 12 us, 10
    CHECK(utilization <= 1.0001);
    ++rows;
  }
  CHECK(rows == 8 * 7);  // 6012 us: six steps of 1 ms and the rest, of each direction of four ports
  for (const auto& [link, sum] : sums) CHECK(sum == 60'000'000);  // six times 10 MB
}

TEST_CASE("a file of JSON counts steps from 1, as people do") {
  const std::string file = fresh("steps.json");
  REQUIRE(traced(file, star).code == 0);
  std::map<int, int> slices;  // by step
  const json document = json::parse(ringsim::test::read_file(file));
  for (const json& event : document["traceEvents"])
    if (event["ph"] == "X" && event["args"].contains("step") && event["args"].contains("bytes"))
      ++slices[event["args"]["step"]];
  REQUIRE(slices.size() == 6);
  CHECK(slices.begin()->first == 1);
  for (const auto& each : slices) CHECK(each.second == 8);  // 4 ranks send and receive in each
}

}  // namespace trace_test
