// What a sweep is held to.
#include "validate/results/gates.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"

namespace gates_test {

using namespace ringsim;
using ringsim::test::temporary_file;

namespace {

std::string line(int nodes, const std::string& rest) {
  const std::string key = result_key("1", 2, "s", {"h", {{"topology.nodes", fmt::to_string(nodes)}}}, false);
  return fmt::format(
      R"({{"ringsim":{{"version":"1","model_version":2}},"scenario":{{"name":"s","hash":"h"}},"key":"{}",)"
      R"("point":{{"topology.nodes":{}}},{}}})"
      "\n",
      key, nodes, rest);
}
std::string timed(int nodes, double time_us, double busbw = 10, std::int64_t bytes = 1048576) {
  return line(nodes, fmt::format(R"("bytes":{},"time_us":{},"busbw_GBps":{})", bytes, time_us, busbw));
}
std::string failed(int nodes) {
  return line(nodes, R"("error":{"kind":"input","where":"/x","message":"too large","hint":""})");
}

GateReport report(const GateOptions& options, const std::vector<std::string>& lines) {
  Gates gates(options);
  for (const std::string& each : lines) gates.take(ResultRow::parse(each, "f:1"));
  return std::move(gates).report();
}

/// All failures, a line each.
std::string failures(const GateReport& report) {
  std::string text;
  for (const auto& point : report.points)
    for (const std::string& failure : point.failures) text += point.label + ": " + failure + "\n";
  for (const std::string& failure : report.general) text += failure + "\n";
  return text;
}

std::string complaint(const GateOptions& options, const std::vector<std::string>& lines = {}) {
  return ringsim::test::complaint([&] { report(options, lines); });
}

}  // namespace

TEST_CASE("an assertion holds every row to its condition, and says what it found") {
  const GateReport found = report({.assertions = {"busbw_GBps > 40 where bytes >= 1 MiB"}},
                                  {timed(1, 5, 41), timed(2, 5, 38.25), timed(3, 5, 1, 1024)});
  CHECK(failures(found) == "topology.nodes 2: busbw_GBps > 40 where bytes >= 1 MiB: busbw_GBps is 38.25\n");
  CHECK(found.failed_gates == 1);
  CHECK(found.failed_points == 0);
  CHECK(found.points.size() == 3);
}

TEST_CASE("an assertion that meets no row is a failure, but of a shard") {
  const GateOptions none{.assertions = {"busbw_GBps > 40 where topology.nodes > 9"}};
  CHECK(failures(report(none, {timed(1, 5)})) == "busbw_GBps > 40 where topology.nodes > 9: it applies to no result\n");
  CHECK(failures(report({.assertions = none.assertions, .all_points = false}, {timed(1, 5)})) == "");
}

TEST_CASE("a point that failed is an error of its own, and asked nothing") {
  const GateReport found = report({.assertions = {"time_us < 10"}}, {failed(1), timed(2, 5)});
  CHECK(failures(found) == "");
  CHECK(found.failed_points == 1);
  CHECK(found.points[0].error == "/x: too large");
}

TEST_CASE("an assertion that is wrong is named with its column, and the near column") {
  CHECK(
      complaint({.assertions = {"busbw_GBps >"}}).starts_with("--assert \"busbw_GBps >\": column 13: expected a path"));
  CHECK(complaint({.assertions = {"time_us < 3 where bytes >"}})
            .starts_with("--assert \"time_us < 3 where bytes >\": column 26: expected a path"));
  CHECK(complaint({.assertions = {"busbw_GBp > 40"}}, {timed(1, 5)}) ==
        "--assert \"busbw_GBp > 40\": column 1: expected a value of \"busbw_GBp\", found none here, in the row of "
        "topology.nodes 1\n  hint: test first that there is one: has(busbw_GBp) and ...");
}

TEST_CASE("names that no row can have are found without a row") {
  const auto unknown = [](const std::string& text) -> std::string {
    return ringsim::test::complaint([&] {
      Assertion::parse(text).require_known({"time_us", "busbw_GBps", "closed_form.ratio"}, {"topology.nodes"});
    });
  };
  CHECK(unknown("busbw_GBps > 40 and point.topology.nodes > 1 where topology.nodes < 9") == "");
  CHECK(unknown("busbw_GBp > 40") ==
        "--assert \"busbw_GBp > 40\": expected a column of the results or a path that varies, found \"busbw_GBp\"\n"
        "  hint: did you mean \"busbw_GBps\"?");
  CHECK(unknown("time_us > 4 where nodes > 1").ends_with("hint: did you mean \"topology.nodes\"?"));  // its last word
  CHECK(unknown("time_us > 4 where has(rank)")
            .ends_with("such as time_us and busbw_GBps, and the varying paths: topology.nodes"));
}

TEST_CASE("against a baseline, what moved by more than the tolerance is named, either way") {
  // 100 to 102 is the tolerance itself; 103 and 97 are beyond it.
  const std::string baseline = temporary_file("base.jsonl", timed(1, 100) + timed(2, 100) + timed(3, 100));
  const GateReport found =
      report({.baseline = baseline, .tolerance = 0.02}, {timed(1, 102), timed(2, 103), timed(3, 97)});
  CHECK(failures(found) ==
        "topology.nodes 2: slower: 103 us, in the baseline 100 us (+3.00 %)\n"
        "topology.nodes 3: faster: 97 us, in the baseline 100 us (-3.00 %)\n");
  CHECK(found.compared == 3);
  CHECK(found.moved == 2);
  CHECK(found.largest_move == doctest::Approx(0.03));
  CHECK(failures(report({.baseline = baseline}, {timed(1, 100), timed(2, 100), timed(3, 100)})) == "");
  // The tolerance is a share of the baseline: 20.1 us are more than a fifth of 100, though not of 120.1.
  CHECK(failures(report({.baseline = baseline, .tolerance = 0.2}, {timed(1, 120.1), timed(2, 80), timed(3, 79.9)})) ==
        "topology.nodes 1: slower: 120.1 us, in the baseline 100 us (+20.10 %)\n"
        "topology.nodes 3: faster: 79.9 us, in the baseline 100 us (-20.10 %)\n");
  CHECK(report({.baseline = baseline}, {timed(1, 100.000001), timed(2, 100), timed(3, 100)}).moved == 1);
}

TEST_CASE("points that are missing fail, points that are new are named, points that fail now or then fail") {
  const std::string baseline = temporary_file("base.jsonl", timed(1, 100) + timed(2, 100) + failed(3) + failed(4));
  const GateReport found = report({.baseline = baseline}, {failed(2), timed(3, 7), failed(4), timed(5, 1)});
  CHECK(failures(found) ==
        "topology.nodes 2: fails now, but took 100 us in the baseline\ntopology.nodes 3: takes 7 us now, but failed in "
        "the baseline\nmissing: topology.nodes 1 is only in the baseline\n");
  CHECK(found.new_ones == std::vector<std::string>{"topology.nodes 5"});
  const GateReport shard = report({.baseline = baseline, .all_points = false}, {failed(4)});
  CHECK(failures(shard) == "");
}

TEST_CASE("jobs are compared each with its own") {
  const auto job = [](const char* name, int time) {
    return line(1, fmt::format(R"("job":"{}","time_us":{})", name, time));
  };
  const std::string baseline = temporary_file("base.jsonl", job("main", 10) + job("other", 20));
  CHECK(failures(report({.baseline = baseline}, {job("main", 10), job("other", 20)})) == "");
  CHECK(failures(report({.baseline = baseline}, {job("main", 10), job("other", 10)})) ==
        "topology.nodes 1, job other: faster: 10 us, in the baseline 20 us (-50.00 %)\n");
  CHECK(failures(report({.baseline = baseline}, {failed(1)})) ==
        "topology.nodes 1: fails now, but took 10 us in the baseline\n");
}

TEST_CASE("a baseline with a point twice, with nothing, or cut off is refused") {
  CHECK(complaint({.baseline = temporary_file("b", timed(1, 1) + timed(1, 2))})
            .find(":2: expected each point only once") != std::string::npos);
  CHECK(complaint({.baseline = temporary_file("b", "")}).find("at least one result, found none") != std::string::npos);
  CHECK(complaint({.baseline = temporary_file("b", timed(1, 1) + "{")}).find("found an incomplete last line") !=
        std::string::npos);
}

}  // namespace gates_test
