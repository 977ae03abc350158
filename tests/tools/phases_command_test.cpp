// Phases as a user meets them: ringsim run --phases, ringsim explain, a report.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"

namespace phases_command_test {

using nlohmann::json;
using namespace ringsim::test;

namespace {

// 3 steps of 10 MB at 10 GB/s over a path of 2 us, twice: 6012 us.
const std::string star = R"({"version": 1, "name": "a star",
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}})";

std::string star_file() { return temporary_file("star.json", star); }

std::int64_t ps_of(const json& us) { return std::llround(us.get<double>() * 1e6); }

void check_phases_of_star(const json& result) {
  REQUIRE(result["phases"].size() == 2);
  std::int64_t sum = 0;
  for (const json& phase : result["phases"]) {
    CHECK(phase["steps"] == 3);
    CHECK(phase["critical_us"] == 3006);
    CHECK(phase["bytes"] == 120'000'000);  // 4 ranks send 10 MB in each of 3 steps
    CHECK(phase["messages"] == 12);
    REQUIRE(phase["each_step"].size() == 3);
    CHECK(phase["each_step"][1]["step"] == 1);
    CHECK(phase["each_step"][1]["critical_us"] == 1002);
    sum += ps_of(phase["critical_us"]);
  }
  CHECK(result["phases"][0]["name"] == "reduce_scatter");
  CHECK(result["phases"][1]["name"] == "all_gather");
  CHECK(result["phases"][1]["first_start_us"] == 3006);
  CHECK(result["phases"][1]["last_end_us"] == 6012);
  CHECK(sum == ps_of(result["time_us"]));
}

}  // namespace

TEST_CASE("run --phases adds phases to JSON, and only then") {
  const std::string file = star_file();
  const Outcome outcome = run_command({"run", file, "--phases", "--format", "json"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  CHECK(outcome.err.empty());
  json result = json::parse(outcome.out)["results"][0];
  check_phases_of_star(result);
  const json line = json::parse(run_command({"run", file, "--phases", "--format", "jsonl"}).out);
  CHECK(line["phases"] == result["phases"]);
  result.erase("phases");
  CHECK(json::parse(run_command({"run", file, "--format", "json"}).out)["results"][0] == result);
}

TEST_CASE("run --phases prints a table of phases and one of steps for each result") {
  const Outcome outcome =
      run_command({"run", star_file(), "--phases", "--set", "collective.bytes=[\"40 MB\", \"80 MB\"]"});
  CHECK(outcome.code == 0);
  CHECK(has(outcome.out, "40 MB all_reduce ring\n"));
  CHECK(has(outcome.out, "80 MB all_reduce ring\n"));
  CHECK(has(outcome.out, "sum to 6012.0 us:"));
  CHECK(has(outcome.out, "all_gather          3  3006.0    6012.0   3006.0  50.0 %  1: 1002.0 us  120 MB\n"));
  CHECK(has(outcome.out, "reduce_scatter     2  1002.0    2004.0   1002.0         4  40 MB\n"));
}

TEST_CASE("a run of many steps counts them in the table") {
  const Outcome outcome = run_command({"run", star_file(), "--phases", "--set", "topology.ranks=64"});
  CHECK(has(outcome.out, "126 steps; --format json prints the time of each\n"));
}

TEST_CASE("--phases warns where it has no effect") {
  const std::string file = star_file();
  for (const char* format : {"csv", "nccl-tests"}) {
    const Outcome rows = run_command({"run", file, "--phases", "--format", format});
    CHECK(rows.code == 0);
    CHECK(has(rows.err, "--phases: it has no effect on this format"));
    CHECK(rows.out == run_command({"run", file, "--format", format}).out);
  }
  const Outcome groups =
      run_command({"run", file, "--phases", "--set", R"(collective.groups=[["gpu0", "gpu1"], ["gpu2", "gpu3"]])"});
  CHECK(groups.code == 0);
  CHECK(has(groups.err, "--phases: training steps, groups and several jobs have no phases"));
}

TEST_CASE("explain always has the phases, as text and as JSON, and so has a report") {
  const std::string file = star_file();
  check_phases_of_star(json::parse(run_command({"explain", file, "--format", "json"}).out));
  CHECK(has(run_command({"explain", file}).out,
            "The phases of the algorithm; the times on the critical path sum to 6012.0 us:"));
  const std::string page = temporary_file("page.html", "");
  REQUIRE(run_command({"run", file, "--report", page}).code == 0);
  const std::string text = read_file(page);
  CHECK(has(text, "<h2>Phases of the algorithm</h2>"));
  CHECK(has(text, "<td class=\"text\">reduce_scatter</td><td>3</td><td>0.000</td><td>3006.0</td>"));
}

}  // namespace phases_command_test
