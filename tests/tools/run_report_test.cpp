// `run --report`: all of a run on one page.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace run_report_test {

using namespace ringsim::test;

namespace {

namespace fs = std::filesystem;
// What would load something, if it were not text.
const char* const hostile = R"({"version": 1, "name": "<img src=http://x.example/a.png> & 'b'",
  // <script src="https://x.example/c.js"></script>
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling"], "bytes": ["1 KiB", "1 GiB"]}})";

std::string new_page() {
  const std::string path = temporary_file("report.html", "");
  fs::remove(path);
  return path;
}

std::string report(const std::string& scenario, const Words& more = {}) {
  const std::string page = new_page();
  Words words{"run", scenario, "--report", page};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_command(words);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  return read_file(page);
}

/// Everything between < and >.
std::vector<std::string> tags_of(const std::string& page) {
  std::vector<std::string> tags;
  for (std::size_t at = 0; (at = page.find('<', at)) != std::string::npos;) {
    const std::size_t end = page.find('>', at);
    REQUIRE(end != std::string::npos);
    tags.push_back(page.substr(at, end - at + 1));
    at = end;
  }
  return tags;
}

std::string heading_of(const std::string& page) {
  const std::size_t begin = page.find("<h1>") + 4;
  return page.substr(begin, page.find("</h1>") - begin);
}

}  // namespace

TEST_CASE("a report refers to nothing outside of its file, whatever names the scenario has") {
  const std::string page = report(temporary_file("hostile.json", hostile));
  // Elements and attributes by which a page loads something; those that it has are counted, so that others are noticed.
  const std::regex loads(
      R"(^<(script|link|img|iframe|object|embed|base|video|audio|source|use|image|form|foreignObject)\b)");
  const std::regex refers(R"re(\s(src|xlink:href|srcset|data|poster|action|background|on\w+)\s*=)re");
  for (const std::string& tag : tags_of(page)) {
    CAPTURE(tag);
    CHECK(!std::regex_search(tag, loads));
    CHECK(!std::regex_search(tag, refers));
    CHECK((!has(tag, "href=") || std::regex_search(tag, std::regex("^<a href=\"#link-[0-9]+\""))));  // within the page
    CHECK(!has(tag, "url("));
    CHECK(!has(tag, "://"));
  }
  const std::size_t style = page.find("<style>");
  const std::string rules = page.substr(style, page.find("</style>") - style);
  CHECK(page.find("<style>", style + 1) == std::string::npos);
  CHECK(!has(rules, "url("));
  CHECK(!has(rules, "@import"));
  CHECK(!has(rules, "@font-face"));
  CHECK(!has(rules, "//"));
  // The browser enforces it as well.
  CHECK(has(page,
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"));
  CHECK(has(page, "&lt;script src=&quot;https://x.example/c.js&quot;&gt;"));  // the scenario, as text
}

TEST_CASE("the sentence is that of the fastest point of the largest message, with its share of the bound") {
  const std::string scenario = temporary_file("hostile.json", hostile), page = report(scenario);
  const std::string heading = heading_of(page);
  // The ring takes 6 (2 us + p/(4 b)): 161.073 ms of 1 GiB, recursive doubling 2 (2 us + p/b), more. No algorithm needs
  // less than 2 * 3/4 p/b, so that all but 12 us of 161073 are what the wires need.
  CHECK(
      heading.starts_with("all_reduce of 1 GiB, ring, 4 ranks (&lt;img src=http://x.example/a.png&gt; &amp; "
                          "&#39;b&#39;): 161 ms, 9.999 GB/s bus, 100 % of what the links allow; "));
  CHECK(has(heading, "of the critical path"));
  CHECK(has(page, "This is the fastest point in the table for the largest message."));
  const Outcome explained = run_command({"explain", scenario, "--set", "collective.algorithm=ring", "--set",
                                         "collective.bytes=1 GiB", "--format", "json"});
  REQUIRE(explained.code == 0);
  const auto document = nlohmann::json::parse(explained.out);
  const std::string why = document.at("summary").get<std::string>();
  CHECK(has(heading, why.substr(why.find("; ") + 2, 40).substr(0, 5)));
  // The bars are explain's what-ifs; those that change less than a thousandth are named below.
  int bars = 0, named = 0;
  for (const auto& what_if : document.at("what_if")) {
    const std::string label = what_if.at("label").get<std::string>();
    const bool has_bar = has(page, '>' + label + "</text>");
    CHECK(has_bar == (std::abs(what_if.at("change").get<double>()) >= 0.001));
    (has_bar ? bars : named) += 1;
    if (!has_bar) CHECK(page.find(label, page.find("Less than 0.1 %: ")) != std::string::npos);
  }
  CHECK(bars >= 2);
  CHECK(named >= 2);
}

TEST_CASE("a report has both plots, a row per result, the scenario, the versions and the command") {
  const std::string scenario = temporary_file("plain.json", R"({"version": 1, "name": "plain",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling"], "bytes": ["1 KiB", "1 GiB"]}})");
  const std::string page = report(scenario, {"--set", "topology.link.latency=2 us", "--bound"});
  const auto tags = tags_of(page);
  CHECK(std::count(tags.begin(), tags.end(), "<tr>") ==
        5 + 3);  // a head and 4 points; of the explained one a head and 2 phases
  CHECK(has(page, ">bus bandwidth (GB/s)</text>"));
  CHECK(has(page, ">time</text>"));
  CHECK(has(page, ">bound of the machine</text>"));
  CHECK(has(page, "&quot;name&quot;: &quot;plain&quot;"));
  CHECK(has(page, "ringsim run " + scenario + " --set &#39;topology.link.latency=2 us&#39; --bound --report "));
  CHECK(has(page, "model version "));
  CHECK(has(page, run_command({"run", scenario, "--set", "topology.link.latency=2 us", "--format", "csv"}).code == 0
                      ? "scenario "
                      : "never"));
  // By keyboard: what scrolls can be reached; on paper and in the dark: rules for both.
  CHECK(has(page, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Results\">"));
  CHECK(has(page, "@media print"));
  CHECK(has(page, "@media (prefers-color-scheme: dark)"));
  CHECK(report(scenario, {"--y", "time_us"}).find(">bus bandwidth (GB/s)</text>") == std::string::npos);
}

TEST_CASE("a point of a sweep is explained as itself, and a run of one point has no plots") {
  const std::string swept = temporary_file("swept.json", R"({"version": 1, "name": "swept",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"},
    "sweep": {"topology.link": [{"bandwidth": "10 GB/s", "latency": "1 us"}, {"bandwidth": "20 GB/s", "latency": "1 us"}],
              "collective.algorithm": ["ring", {"name": "parameter_server", "servers": 2}]}})");
  // The ring at 20 GB/s is the fastest of four: 6 (2 us + 256 KiB / 20 GB/s). Two servers take 2 * 2 MiB / 20 GB/s.
  const std::string all = report(swept);
  CHECK(heading_of(all).starts_with("all_reduce of 1 MiB, ring, 4 ranks (swept): 90.6 us, "));
  CHECK(has(all, "This is the fastest point in the table"));
  const std::string one = report(swept, {"--set", "sweep=null"});
  CHECK(!has(one, "<h2>Plots</h2>"));
  CHECK(has(one, "<h2>What if</h2>"));
  CHECK(!has(one, "This is the fastest"));
}

TEST_CASE("a training step has a report, without a bound") {
  const std::string page = report(ringsim::test::source_dir() + "/scenarios/examples/explain/exposed-bucket.json");
  CHECK(heading_of(page).starts_with(
      "training step of layers (an exposed last bucket), ddp, ring, 8 ranks, 5 buckets: 274 ms"));
  CHECK(!has(page, "of what the links allow"));
}

TEST_CASE("a training step's bar has computation and what it does not hide, one for each point") {
  const std::string file = ringsim::test::source_dir() + "/scenarios/examples/explain/exposed-bucket.json";
  // 274.228 ms: forward, backward and update take 151 of them; nothing of the last bucket is hidden.
  const std::string page = report(file);
  CHECK(has(page, "<h2>The parts of a step</h2>"));
  CHECK(has(page, "<title>computes: 55.1 %</title>"));
  CHECK(has(page, "<title>exposed communication: 44.9 %</title>"));
  CHECK(!has(page, "waits for others"));  // nobody waits, so that the legend leaves it out
  const std::string two = report(file, {"--set", "topology.ranks=[2, 8]"});
  CHECK(has(two, "<title>computes: 55.1 %</title>"));
  CHECK(has(two, ">ranks 2</text>"));
  CHECK(has(two, ">ranks 8</text>"));
  CHECK(!has(report(temporary_file("hostile.json", hostile)), "The parts of a step"));
}

TEST_CASE("a report that cannot be written is refused before the run") {
  const std::string scenario = temporary_file("hostile.json", hostile), rows = temporary_file("rows.csv", "");
  fs::remove(rows);
  const auto refused = [&](const std::string& page, int code, const Words& more = {}) {
    Words words{"run", scenario, "-o", rows, "--report", page};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_command(words);
    CHECK(outcome.code == code);
    CHECK(!fs::exists(rows));  // nothing was run
    return outcome.err;
  };
  CHECK(has(refused("x.htm", 2), "--report: expected a name that ends in .html, found \"x.htm\""));
  CHECK(has(refused("/no/such/folder/x.html", 3), "found no folder \"/no/such/folder\""));
  const std::string theirs = temporary_file("theirs.html", "<!doctype html><title>mine</title>");
  CHECK(
      has(refused(theirs, 2), "ringsim: error: --report: expected a new file or a file with ringsim results, found "));
  CHECK(read_file(theirs) == "<!doctype html><title>mine</title>");
  const std::string page = new_page();
  CHECK(run_command({"run", scenario, "--report", page}).code == 0);
  CHECK(run_command({"run", scenario, "--report", page}).code == 0);  // our own
  CHECK(run_command({"run", scenario, "--report", theirs, "--force"}).code == 0);
}

}  // namespace run_report_test
