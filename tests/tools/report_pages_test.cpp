// `sweep --report`, `compare --report`, `diff --report`.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace report_pages_test {

using namespace ringsim::test;

namespace {

namespace fs = std::filesystem;

std::string new_page() {
  const std::string path = temporary_file("report.html", "");
  fs::remove(path);
  return path;
}

std::string page_of(Words words) {
  const std::string page = new_page();
  words.insert(words.end(), {"--report", page});
  const Outcome outcome = run_command(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return read_file(page);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

/// From a heading to the next.
std::string section(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find("<h2>" + heading + "</h2>");
  REQUIRE(begin != std::string::npos);
  return page.substr(begin, page.find("<h2>", begin + 4) - begin);
}

std::string heading_of(const std::string& page) {
  const std::size_t begin = page.find("<h1>") + 4;
  return page.substr(begin, page.find("</h1>") - begin);
}

const char* const six_points = R"({"version": 1, "name": "six",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling"], "bytes": ["1 KiB", "1 MiB", "1 GiB"]}})";

}  // namespace

TEST_CASE("the page of a sweep explains the point that the page of a run explains, and has every row") {
  const std::string scenario = temporary_file("six.json", six_points);
  const std::string run = page_of({"run", scenario}), sweep = page_of({"sweep", scenario});
  CHECK(heading_of(sweep) == heading_of(run));
  for (const char* same : {"Plots", "What if", "Links by load", "Links over time", "Scenario"}) {
    CAPTURE(same);
    CHECK(section(sweep, same) == section(run, same));
  }
  CHECK(count(section(sweep, "Results"), "<tr>") == 7);  // the head, and 6 points
  CHECK(section(sweep, "Results") == section(run, "Results"));
  CHECK(has(section(sweep, "Results"), "<p>In all rows: collective all_reduce, model fair, ranks 4"));
  CHECK(!has(section(sweep, "Results"), ">collective</th>"));
  CHECK(has(sweep, "ringsim sweep " + scenario + " --report "));
  // The rows of a file, those of a sweep that was resumed too, are the same.
  const std::string rows = temporary_file("rows.jsonl", "");
  fs::remove(rows);
  CHECK(section(page_of({"sweep", scenario, "-o", rows}), "Results") == section(sweep, "Results"));
  CHECK(section(page_of({"sweep", scenario, "-o", rows, "--resume"}), "Results") == section(sweep, "Results"));
}

TEST_CASE("the page of a sweep has failed points as rows with their errors") {
  // An all-to-all is no ring's work.
  const std::string scenario = temporary_file("failing.json", R"({"version": 1, "name": "failing",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": ["all_reduce", "all_to_all"], "algorithm": "ring", "bytes": "1 MiB"}})");
  const std::string page = new_page();
  CHECK(run_command({"sweep", scenario, "--report", page}).code == 1);
  const std::string results = section(read_file(page), "Results");
  CHECK(count(results, "<tr>") == 3);
  CHECK(has(results, ">error</th>"));
  CHECK(has(results, "all_to_all"));
  CHECK(has(heading_of(read_file(page)), "failing"));  // the point that did not fail is explained
}

TEST_CASE("the page of a comparison says how far off the predictions are, and shows both times") {
  // The ring of 1 GiB takes 6 (2 us + 256 MiB / 10 GB/s) = 161073.3 us; measured are 10 % more.
  const std::string scenario = temporary_file("one.json", R"({"version": 1, "name": "one",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 GiB"}})");
  const std::string measured = temporary_file(
      "m.csv", "# collective: all_reduce\n# ranks: 4\nbytes,time_us\n1048576,187\n1073741824,178970.3\n");
  const std::string page = page_of({"compare", scenario, measured});
  CHECK(has(heading_of(page), "one: "));
  CHECK(has(heading_of(page), "(median of "));
  CHECK(has(section(page, "Plots"), "class=\"measured\""));
  CHECK(has(section(page, "Predicted and measured"), "-10.0 %"));
  const Outcome refused = run_command({"compare", scenario, measured, "--explain", "--report", new_page()});
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "ringsim: error: --explain cannot be combined with --report"));
}

TEST_CASE("the page of two runs has both times and every cause that differs, side by side") {
  const std::string scenario = source_dir() + "/scenarios/examples/explain/gpudirect-off.json";
  const Words words{"diff", scenario, scenario, "--set-b", "transport.gpudirect=true"};
  const std::string page = page_of(words);
  const Outcome text = run_command(words);
  CHECK(has(text.out, "12.6 ms"));
  CHECK(has(heading_of(page), "12.6 ms"));
  CHECK(has(heading_of(page), "-47.8 %"));
  CHECK(count(section(page, "Times"), "<rect class=\"mark\"") == 2);
  const std::string causes = section(page, "Causes that differ");
  CHECK(count(causes, "<rect class=\"mark\"") >= 4);
  CHECK(count(causes, ">A: ") == count(causes, ">B: "));
  CHECK(has(causes, ">A: staging</text>"));
  CHECK(has(section(page, "Differences"), "transport.gdr_level"));
  // Columns stay in line: the box scrolls.
  CHECK(has(section(page, "Differences"), "<pre class=\"wide\" tabindex=\"0\""));
  CHECK(has(page, "pre.wide { --under: var(--box); white-space: pre;"));
  // One file: its text is there once, and the change in words.
  CHECK(has(page, "<p>B is A with transport.gpudirect=true.</p>"));
  CHECK(count(page, "<h2>Scenario</h2>") == 1);
  const std::string other = source_dir() + "/scenarios/examples/explain/late-rank.json";
  const std::string two = page_of({"diff", scenario, other});
  CHECK(has(two, "<p>A: " + scenario + ". B: " + other + ".</p>"));
  CHECK(count(two, "<h2>" + scenario + "</h2>") == 1);
  CHECK(count(two, "<h2>" + other + "</h2>") == 1);
}

TEST_CASE("pages that cannot be written are refused before anything runs") {
  const std::string scenario = temporary_file("six.json", six_points);
  const std::string theirs = temporary_file("theirs.html", "<!doctype html><title>mine</title>");
  for (const Words& words : {Words{"sweep", scenario}, Words{"diff", scenario, scenario}}) {
    Words with_page = words;
    with_page.insert(with_page.end(), {"--report", theirs});
    const Outcome refused = run_command(with_page);
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "--report: expected a new file or a file with ringsim results"));
    CHECK(refused.out == "");
    CHECK(read_file(theirs) == "<!doctype html><title>mine</title>");
  }
}

TEST_CASE("points that differ in no number are bars with their whole names") {
  const std::string page = page_of({"run", source_dir() + "/scenarios/examples/faults/link-fails.json"});
  const std::string plots = section(page, "Plots");
  CHECK(count(plots, "<svg") == 2);
  CHECK(!has(plots, "<path class=\"line\""));
  CHECK(has(plots, ">faults none</text>"));
  CHECK(has(plots, ">ms until=30 ms</text>"));  // the end of a name in two lines
  CHECK(has(plots, ">bus bandwidth (GB/s); message size 256 MiB</text>"));
  // The parts of steps are such bars already.
  const std::string steps = page_of({"run", source_dir() + "/scenarios/examples/training/seven-regimes.json"});
  CHECK(!has(steps, "<h2>Plots</h2>"));
  CHECK(has(section(steps, "The parts of a step"), ">nodes 2, regime parameter_server servers=4</text>"));
}

}  // namespace report_pages_test
