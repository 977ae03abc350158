// ringsim plan as a user meets it.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"

namespace plan_command_test {

using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

/// Four GPUs, one layer's worth of plans: few enough to read.
const std::string& small() {
  static const std::string file = temporary_file("small.json", R"({
    "version": 1, "name": "small",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
    "training": {
      "workload": {"transformer": {"layers": 4, "hidden": 512, "heads": 4, "ffn": 1536, "vocabulary": 1000}, "sequence": 256,
                   "global_batch_size": 16, "micro_batch_size": 2,
                   "compute": {"gemm": "60%", "attention": "40%", "memory": "80%", "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}},
      "parallel": {"shard": "optimizer", "recompute": "none", "virtual_pipeline": 1}, "optimizer": "adam", "steps": 1, "warmup": 1}})");
  return file;
}

Outcome plan(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"plan", small()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(arguments);
}

/// The step of the first result, in us.
double step_of(const std::string& lines) {
  return nlohmann::json::parse(lines.substr(0, lines.find('\n')))["time_us"].get<double>();
}

}  // namespace

TEST_CASE("plan prints the plans, what became of the others, and commands that give the first again") {
  const Outcome outcome = plan({"--within", "100000%"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  CHECK(has(outcome.out, "6 plans in all."));  // t, p and d of 4 GPUs: 4 = 1 x 1 x 4 = ... in six orders
  CHECK(has(outcome.out, "Simulated: 6."));
  CHECK(!has(outcome.out, "Not simulated"));
  const std::string command = "  ringsim run " + small() + " ";
  REQUIRE(has(outcome.out, command));
  // Its options, given to run, give the step of the table's first row.
  std::string options = outcome.out.substr(outcome.out.find(command) + command.size());
  options = options.substr(0, options.find('\n'));
  std::vector<std::string> run{"run", small(), "--format", "jsonl"};
  const std::string set = "--set ";
  for (std::size_t at = options.find(set); at != std::string::npos;) {
    const std::size_t next = options.find(" " + set, at);
    std::string value = options.substr(at + set.size(), next == std::string::npos ? next : next - at - set.size());
    std::erase(value, '\'');
    run.insert(run.end(), {"--set", value});
    at = next == std::string::npos ? next : next + 1;
  }
  const Outcome again = run_command(run);
  CHECK(again.code == 0);
  CHECK(step_of(again.out) == step_of(plan({"--within", "100000%", "--format", "jsonl"}).out));
}

TEST_CASE("plan answers the same whatever the number of threads") {
  const Outcome one = plan({"-j", "1", "--format", "csv"});
  CHECK(one.code == 0);
  CHECK(has(one.out, "point.training.parallel.pipeline"));
  CHECK(one.out == plan({"-j", "3", "--format", "csv"}).out);
}

TEST_CASE("plan --bounds simulates nothing and shows bounds") {
  const Outcome outcome = plan({"--bounds", "--top", "2"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, ">= "));
  CHECK(has(outcome.out, "Simulated: 0."));
  CHECK(has(outcome.out, "Not simulated: 6, each of which takes "));
  const Outcome csv = plan({"--bounds", "--format", "csv"});
  CHECK(csv.code == 2);
  CHECK(has(csv.err, "--bounds: expected the table, found another format"));
}

TEST_CASE("plan lists plans of too many messages with their bounds, and says so") {
  const Outcome outcome = plan({"--within", "100000%", "--messages", "1"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, ">= "));
  CHECK(has(outcome.out, "Too long to simulate: "));
  CHECK(has(outcome.out, "one by one; --messages "));
  const Outcome rows = plan({"--within", "100000%", "--messages", "1", "--format", "csv"});
  CHECK(has(rows.err, "Too long to simulate: "));
  CHECK(std::count(rows.out.begin(), rows.out.end(), '\n') == 1);  // the head
}

TEST_CASE("plan says that no plan fits, and what each would need") {
  const Outcome outcome = plan({"--set", "training.gpu_memory=1 MB"});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.out, "Too large for the memory of a GPU: 6; the smallest needs "));
  CHECK(has(outcome.out, "No plan fits: take more GPUs"));
}

TEST_CASE("plan refuses a scenario without plans, and an output that holds something else") {
  const Outcome outcome = run_command({"plan", "scenarios/star.json"});
  CHECK(outcome.code == 3);
  CHECK(has(outcome.err, "scenarios/star.json: /training: expected a training with the key \"parallel\", found none"));
  const std::string own = temporary_file("own.csv", "mine\n");
  CHECK(plan({"-o", own}).code != 0);
  CHECK(plan({"--top", "0"}).code == 2);
  CHECK(plan({"--within", "5"}).code == 2);
}

}  // namespace plan_command_test
