// ringsim trace of Flight Recorder's dumps: what a user sees of a job that hangs.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/made_dumps.hpp"
#include "tests/support/paths.hpp"

namespace trace_hang_test {

using namespace ringsim::test;

namespace {

std::vector<std::string> show_hung(const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"trace", "show"};
  for (const char* rank : {"0", "1", "2", "3"})
    words.push_back(source_dir() + "/tests/data/profiles/hung-rank-" + rank + ".json");
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The lines of a page that are indented by four blanks after `first`, up to "...", without the indentation.
std::string shown_in(const std::string& page, const std::string& first) {
  std::string out;
  std::size_t at = page.find(first);
  REQUIRE(at != std::string::npos);
  for (at = page.find('\n', at) + 1; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    const std::string line = page.substr(at, end - at);
    if (line == "    ...") return out;
    out += (line.empty() ? line : line.substr(4)) + '\n';
    at = end + 1;
  }
  return out;
}

/// The fill of a class in the rules for light pages, or for dark ones, if those have another.
std::string fill_of(const std::string& page, const std::string& of, bool dark) {
  const std::string rule = ".chart " + of + " { fill: #";
  const std::size_t at = dark ? page.rfind(rule) : page.find(rule);
  REQUIRE(at != std::string::npos);
  return page.substr(at + rule.size(), 6);
}

/// WCAG 2.1: the relative luminance of "rrggbb".
double luminance(const std::string& color) {
  constexpr std::array<double, 3> weights{0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double part = static_cast<double>(std::strtol(color.substr(2 * i, 2).c_str(), nullptr, 16)) / 255;
    sum += weights[i] * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(const std::string& a, const std::string& b) {
  const double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
  return std::max(one, other) / std::min(one, other);
}

std::string dump_of_pair(int rank, const std::vector<MadeEntry>& entries) {
  return temporary_file("trace_" + std::to_string(rank),
                        made_dump(entries, {{.name = "0", .description = "default_pg", .ranks = {0, 1}}}));
}

}  // namespace

TEST_CASE("trace show of dumps says why a job hangs: the guide's example") {
  const Outcome outcome = run_command(show_hung());
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  const std::string shown = shown_in(read_file(source_dir() + "/docs/guide/my-job-is-slow.md"),
                                     "    $ ringsim trace show tests/data/profiles/hung-rank-*.json\n");
  CHECK(shown.size() > 1000);
  CHECK(outcome.out.starts_with(shown));
  CHECK(has(outcome.out, "2 (tensor)           7      2  not called            6          6\n"));
  CHECK(has(outcome.out, "2 (tensor)           7      3  scheduled             7          6\n"));
}

TEST_CASE("JSON and CSV of dumps have each rank of each group") {
  const Outcome json = run_command(show_hung({"--format", "json"}));
  REQUIRE(json.code == 0);
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document.at("findings").size() == 3);
  CHECK(document.at("world") == 4);
  const auto& group = document.at("groups").at(1);
  CHECK(group.at("group") == "2");
  CHECK(group.at("state") == "ranks behind");
  CHECK(group.at("completed_by_all") == 6);
  CHECK(group.at("next_call") == "all_reduce [[4096, 8192]] BFloat16");
  CHECK(group.at("ranks").at(0).at("state") == "not called");
  CHECK(group.at("ranks").at(0).at("place") == "step at train.py:88");
  const Outcome csv = run_command(show_hung({"--format", "csv"}));
  REQUIRE(csv.code == 0);
  CHECK(csv.out.starts_with("group,description,group_state,completed_by_all,next,next_call,rank,state,called,"));
  CHECK(has(csv.out, "\n2,tensor,ranks behind,6,7,\"all_reduce [[4096, 8192]] BFloat16\",2,not called,6,6,1,false,"));
}

TEST_CASE("dumps with durations have a table of them, and compare reads it; without durations compare refuses") {
  const auto entry = [](double ms) { return MadeEntry{.in = "[[1048576]]", .duration_ms = ms}; };
  const std::string first = dump_of_pair(0, {entry(5.0)}), second = dump_of_pair(1, {entry(2.0)});
  const Outcome shown = run_command({"trace", "show", first, second});
  CHECK(shown.code == 0);
  CHECK(has(shown.out, "nothing hangs"));
  CHECK(has(shown.out, "all_reduce  4.194 MB      2      1  2.00 to 5.00  ~ 3.00   <= 2.00           rank 1 (1 of 1)"));
  const Outcome compared =
      run_command({"trace", "compare", "dgx-a100", first, second, "--assert", "transfer_us < 100"});
  CHECK(compared.code == 1);
  CHECK(has(compared.out, "late rank 1"));
  CHECK(has(compared.err, "warning: Flight Recorder measures durations"));
  const std::string bare = dump_of_pair(0, {{}});
  const Outcome refused = run_command({"trace", "compare", "dgx-a100", bare});
  CHECK(refused.code == 3);
  CHECK(has(refused.err,
            "expected calls with \"duration_ms\" to compare, found none\n  hint: run the job with "
            "TORCH_NCCL_ENABLE_TIMING=1"));
}

TEST_CASE("the page of a hang has the cause as its title, all findings, and each rank in the groups that stand still") {
  const std::string page_file = temporary_file("hang.html", "");
  const Outcome outcome = run_command(show_hung({"--report", page_file}));
  CHECK(outcome.err == "");
  REQUIRE(outcome.code == 0);
  const std::string page = read_file(page_file);
  CHECK(has(page,
            "<h1>Rank 2 has not called number 3 of group 0 (default_pg), all_reduce [[1000000]] BFloat16; ranks 0, "
            "1 have</h1>"));
  std::size_t findings = 0;
  for (std::size_t at = page.find("<li>"); at != std::string::npos; at = page.find("<li>", at + 1)) ++findings;
  CHECK(findings == 3);
  CHECK(has(page,
            "check the program: its last call was all_reduce number 2 of group 0 (default_pg), step at "
            "train.py:88</li>"));
  CHECK(has(page, ">number 3 of 0 (default_pg)</text>"));
  CHECK(has(page, ">number 7 of 2 (tensor)</text>"));
  CHECK(!has(page, "of 1 (tensor)</text>"));  // it is finished
  CHECK(has(page,
            "<title>rank 2, number 3: not called; last call all_reduce number 2 of group 0 (default_pg), step at "
            "train.py:88</title>"));
  // Four ranks in one group, two in the other.
  std::size_t cells = 0;
  for (std::size_t at = page.find("<title>rank "); at != std::string::npos; at = page.find("<title>rank ", at + 1))
    ++cells;
  CHECK(cells == 6);
  for (const char* heading : {"Groups", "Progress of each rank"}) CHECK(has(page, std::string(heading) + "</h2>"));
  CHECK(!has(page, "Pending sends and receives"));
  CHECK(has(page, "ringsim trace show"));
  CHECK(!has(page, "<script"));
}

TEST_CASE("the numbers in the cells of a hang's grid have a contrast of at least 4.5, on light and on dark pages") {
  const std::string page_file = temporary_file("hang.html", "");
  REQUIRE(run_command(show_hung({"--report", page_file})).code == 0);
  const std::string page = read_file(page_file);
  CHECK(has(page, "<g class=\"l5\"><rect class=\"cell\""));
  CHECK(has(page, "class=\"small dark-text\""));  // on not called
  CHECK(has(page, "class=\"small bar-text\""));   // on scheduled
  for (const bool dark : {false, true}) {
    CAPTURE(dark);
    for (const char* cell : {".l5 .cell", ".s1 .mark", ".s2 .mark", ".s4 .mark"})
      CHECK(contrast(fill_of(page, cell, dark), fill_of(page, ".dark-text", dark)) >= 4.5);
    for (const char* cell : {".s0 .mark", ".s3 .mark", ".s5 .mark"})
      CHECK(contrast(fill_of(page, cell, dark), fill_of(page, ".bar-text", dark)) >= 4.5);
    for (const char* cell : {".l0 .cell", ".l1 .cell"})
      CHECK(contrast(fill_of(page, cell, dark), fill_of(page, "text", dark)) >= 4.5);
  }
}

TEST_CASE("of many ranks the page draws those that the findings name") {
  std::vector<int> all(100);
  for (int i = 0; i < 100; ++i) all[static_cast<std::size_t>(i)] = i;
  const auto dump = [&](int rank, const std::vector<MadeEntry>& entries) {
    return temporary_file("trace_" + std::to_string(rank),
                          made_dump(entries, {{.name = "0", .description = "default_pg", .ranks = all}}));
  };
  const std::string first = dump(0, {{.number = 1}, {.number = 2, .state = "started"}}),
                    late = dump(77, {{.number = 1}}), page_file = temporary_file("hang.html", "");
  REQUIRE(run_command({"trace", "show", first, late, "--report", page_file}).code == 0);
  const std::string page = read_file(page_file);
  CHECK(has(page, "64 of 100 ranks are drawn: first those named in the findings, then those that are behind."));
  CHECK(has(page, "<title>rank 77, number 2: not called"));
  CHECK(has(page, "<title>rank 62, number 2: no dump</title>"));
  CHECK(!has(page, "<title>rank 63, "));
}

// Rank 5 waits in 70 groups. Of 69 nobody else has a dump; in the last one, by name, rank 6 has not called. No more
// than 64 groups are drawn.
TEST_CASE("of many groups the page draws those that the findings name") {
  std::vector<MadeEntry> entries;
  std::vector<MadeGroup> groups;
  for (int i = 0; i < 70; ++i) {
    const std::string name = std::to_string(100 + i);
    entries.push_back({.number = 1, .state = "scheduled", .group = name});
    groups.push_back({.name = name, .description = "g", .ranks = {5, i == 69 ? 6 : 200 + i}});
  }
  const std::string waits = temporary_file("trace_5", made_dump(entries, groups)),
                    late = temporary_file("trace_6", made_dump({}, {groups.back()})),
                    page_file = temporary_file("hang.html", "");
  const Outcome outcome = run_command({"trace", "show", waits, late, "--report", page_file});
  CHECK(outcome.err == "");
  REQUIRE(outcome.code == 0);
  const std::string page = read_file(page_file);
  CHECK(has(page, "<h1>Rank 6 has not called number 1 of group 169 (g)"));
  CHECK(has(page, ">number 1 of 169 (g)</text>"));
  CHECK(has(page, "<title>rank 6, number 1: not called"));
  CHECK(has(page, "64 of 70 groups are drawn."));
}

TEST_CASE("the page of a job that does not hang says so, and has no picture") {
  const std::string file = dump_of_pair(0, {{}}), page_file = temporary_file("hang.html", "");
  REQUIRE(run_command({"trace", "show", file, "--report", page_file}).code == 0);
  const std::string page = read_file(page_file);
  CHECK(has(page, "<h1>No call in these dumps is pending</h1>"));
  CHECK(!has(page, "<svg"));
}

TEST_CASE("what dumps cannot give is refused, and what has no effect warns") {
  const std::string file = dump_of_pair(0, {{}});
  const std::string to = temporary_file("page.html", "");
  const Outcome trace = run_command({"trace", "show", file, "--trace", to + ".json"});
  CHECK(trace.code == 2);
  CHECK(has(trace.err, "--trace: expected profiles with times, found Flight Recorder dumps, which have none"));
  const Outcome group = run_command({"trace", "show", file, "--group", "all"});
  CHECK(group.code == 0);
  CHECK(has(group.err, "warning: --group has no effect"));
}

TEST_CASE("names out of a dump cannot steer a terminal") {
  const std::string file = temporary_file(
      "trace_0",
      made_dump({{.name = "x\\u001b[31m", .state = "scheduled", .type = "F\\u001b[31m", .group = "\\u001b[31m"}},
                {{.name = "0\\u001b[31m", .description = "d\\u001b[31m", .ranks = {0}}}));
  const Outcome outcome = run_command({"trace", "show", file});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find('\x1b') == std::string::npos);
}

}  // namespace trace_hang_test
