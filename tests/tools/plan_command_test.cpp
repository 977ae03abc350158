// ringsim plan as a user meets it.
#include <doctest/doctest.h>

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
std::string small() {
  return temporary_file("small.json", R"({
    "version": 1, "name": "small",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
    "training": {
      "workload": {"transformer": {"layers": 4, "hidden": 512, "heads": 4, "ffn": 1536, "vocabulary": 1000}, "sequence": 256,
                   "global_batch_size": 16, "micro_batch_size": 2,
                   "compute": {"gemm": "60%", "attention": "40%", "memory": "80%", "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}},
      "parallel": {"shard": "optimizer", "recompute": "none", "virtual_pipeline": 1}, "optimizer": "adam", "steps": 1, "warmup": 1}})");
}

Outcome plan(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"plan", small()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(arguments);
}

/// The step of the first row of a CSV of results.
std::string step_of(const std::string& csv) {
  const std::string head = csv.substr(0, csv.find('\n')), row = csv.substr(csv.find('\n') + 1);
  std::size_t columns = 0;
  for (const char c : head.substr(0, head.find("time_us"))) columns += c == ',' ? 1 : 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < columns; ++i) at = row.find(',', at) + 1;
  return row.substr(at, row.find(',', at) - at);
}

}  // namespace

TEST_CASE("plan prints the plans, what became of the others, and commands that give the first again") {
  const Outcome outcome = plan({"--within", "100000%"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  CHECK(has(outcome.out, "6 plans in all."));  // t, p and d of 4 GPUs: 4 = 1 x 1 x 4 = ... in six orders
  CHECK(has(outcome.out, "6 were simulated."));
  CHECK(!has(outcome.out, "were not simulated"));
  const std::string command = "  ringsim run " + small() + " ";
  REQUIRE(has(outcome.out, command));
  // Its options, given to run, give the step of the table's first row.
  std::string options = outcome.out.substr(outcome.out.find(command) + command.size());
  options = options.substr(0, options.find('\n'));
  std::vector<std::string> run{"run", small(), "--format", "csv"};
  for (std::size_t at = 0; at < options.size();) {
    const bool is_quoted = options[at] == '\'';
    std::size_t end = is_quoted ? options.find('\'', at + 1) : options.find(' ', at);
    if (end == std::string::npos) end = options.size();
    run.push_back(options.substr(at + (is_quoted ? 1 : 0), end - at - (is_quoted ? 1 : 0)));
    at = options.find_first_not_of(" '", end);
    if (at == std::string::npos) break;
    if (options[at - 1] == '\'' && at > end + 1) --at;
  }
  const Outcome again = run_command(run);
  CHECK(again.err == "");
  CHECK(step_of(again.out) == step_of(plan({"--within", "100000%", "--format", "csv"}).out));
}

TEST_CASE("plan answers the same whatever the number of threads") {
  CHECK(plan({"-j", "1", "--format", "csv"}).out == plan({"-j", "3", "--format", "csv"}).out);
}

TEST_CASE("plan --bounds simulates nothing and shows bounds") {
  const Outcome outcome = plan({"--bounds", "--top", "2"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, ">= 0.00"));
  CHECK(has(outcome.out, "0 were simulated."));
  CHECK(has(outcome.out, "6 fit and were not simulated: each takes 0.00"));
  const Outcome csv = plan({"--bounds", "--format", "csv"});
  CHECK(csv.code == 2);
  CHECK(has(csv.err, "--bounds: expected the table, found another format"));
}

TEST_CASE("plan says that no plan fits, and what each would need") {
  const Outcome outcome = plan({"--set", "training.gpu_memory=1 MB"});
  CHECK(outcome.code == 1);
  CHECK(has(outcome.out, "6 need more memory than a GPU has; the smallest of them "));
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
