// Plots in the terminal: `run --plot`, `plot` and what `compare` draws.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "sim/text/wrap.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace plot_test {

using namespace ringsim::test;

namespace {

const char* const rings = R"({"version": 1, "name": "plotted",
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling"],
                 "bytes": ["1 KiB", "32 KiB", "1 MiB", "32 MiB"]}})";

std::string scenario() { return temporary_file("plotted.json", rings); }

/// Runs the command with those variables, such as "LC_ALL=C"; `before`: what starts it.
std::string in_locale(const std::string& variables, const std::string& words, const std::string& before = "") {
  const std::string out = temporary_file("out", "");
  CHECK(std::system(fmt::format("env -u NO_COLOR -u LC_ALL -u LC_CTYPE -u LANG {} {} {} {} > {} 2>&1", variables,
                                before, command_file(), words, out)
                        .c_str()) == 0);
  return read_file(out);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The characters between the vertical axis and the end of its lines.
std::string field_of(const std::string& plot) {
  std::string field;
  for (const std::string& line : lines_of(plot)) {
    const std::size_t axis = line.find_first_of("|+");
    if (axis != std::string::npos && line.find("+-") == std::string::npos) field += line.substr(axis + 1) + '\n';
  }
  return field;
}

}  // namespace

TEST_CASE("a plot in ASCII has axes with units, one mark per series, and a legend") {
  const std::string text = in_locale("LC_ALL=C", "run " + scenario() + " --plot");
  const std::string plot = text.substr(text.find("\n\nplotted: all_reduce, 4 ranks\n") + 2);
  for (const char c : plot) CHECK((static_cast<unsigned char>(c) < 0x80));
  CHECK(has(plot, "\nbus bandwidth (GB/s)\n"));
  CHECK(has(plot, "1 KiB"));
  CHECK(has(plot, "32 MiB"));
  CHECK(has(plot, " message size\n"));
  CHECK(has(plot, "    A ring\n"));
  CHECK(has(plot, "    B recursive_doubling\n"));
  // Sizes grow by 32: the four columns of marks are as far from each other, to a character.
  const std::string field = field_of(plot);
  std::vector<std::size_t> columns;
  for (const std::string& line : lines_of(field))
    for (std::size_t at = 0; at < line.size(); ++at)
      if (line[at] == 'A' || line[at] == 'B') columns.push_back(at);
  std::sort(columns.begin(), columns.end());
  REQUIRE(columns.size() == 8);  // no two points of the two series are in one place
  for (std::size_t i = 0; i + 1 < columns.size(); i += 2) CHECK(columns[i] == columns[i + 1]);
  const auto step = [&](std::size_t i) { return static_cast<int>(columns[2 * i + 2] - columns[2 * i]); };
  CHECK(std::abs(step(0) - step(1)) <= 1);
  CHECK(std::abs(step(1) - step(2)) <= 1);
  // Recursive doubling has 2 steps of latency, the ring 6: it is faster for little, and slower for much.
  CHECK(field.find('B') > field.find('A'));  // the best point is the ring's
  const std::vector<std::string> lines = lines_of(field);
  std::size_t first_a = 0, first_b = 0;
  for (std::size_t line = 0; line < lines.size(); ++line) {
    if (lines[line].size() <= columns[0]) continue;
    if (lines[line][columns[0]] == 'A') first_a = line;
    if (lines[line][columns[0]] == 'B') first_b = line;
  }
  CHECK(first_a > first_b);
}

TEST_CASE("the locale decides between braille and ASCII, the first variable that is set") {
  const std::string words = "run " + scenario() + " --plot";
  CHECK(has(in_locale("LC_ALL=C.UTF-8", words), "● ring"));
  CHECK(has(in_locale("LANG=en_US.utf8", words), "● ring"));
  CHECK(has(in_locale("LC_CTYPE=C.UTF-8 LANG=C", words), "● ring"));
  CHECK(has(in_locale("LC_ALL=C LANG=C.UTF-8", words), "A ring"));
  CHECK(has(in_locale("LC_ALL=", words), "A ring"));
  const std::string braille = in_locale("LC_ALL=C.UTF-8", words);
  CHECK(has(braille, "\xe2\xa0"));  // U+2800 to U+283F
  CHECK(has(braille, "│"));
}

TEST_CASE("a plot is as wide as the terminal, and 80 characters elsewhere; it has colors unless NO_COLOR is set") {
  const std::string file = scenario();
  const auto widest = [](const std::string& text) {
    std::size_t width = 0;
    for (const std::string& line : lines_of(text)) {
      std::string shown;  // without what a terminal does not show
      for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '\x1b')
          i = line.find('m', i);
        else if (line[i] != '\r')
          shown += line[i];
      }
      width = std::max(width, ringsim::characters(shown));
    }
    return width;
  };
  const std::string rows = temporary_file("rows.csv", "");
  REQUIRE(run_command({"run", file, "--format", "csv", "-o", rows}).code == 0);
  const std::string piped = in_locale("LC_ALL=C.UTF-8", "plot " + rows);
  CHECK(widest(piped) == 80);
  CHECK(!has(piped, "\x1b"));
  if (std::system("command -v script > /dev/null 2>&1") != 0) return;  // no terminal to be had
  const auto on_terminal = [&](int columns, const std::string& variables) {
    const std::string out = temporary_file("screen", "");
    const std::string line = fmt::format("stty cols {}; env -u NO_COLOR TERM=xterm LC_ALL=C.UTF-8 {} {} plot {}",
                                         columns, variables, command_file(), rows);
    CHECK(std::system(fmt::format("script -qec '{}' /dev/null < /dev/null > {} 2>&1", line, out).c_str()) == 0);
    return read_file(out);
  };
  for (const int columns : {60, 120}) {
    CAPTURE(columns);
    CHECK(widest(on_terminal(columns, "")) == static_cast<std::size_t>(columns));
  }
  CHECK(has(on_terminal(100, ""), "\x1b[34m●\x1b[0m"));
  CHECK(!has(on_terminal(100, "NO_COLOR=1"), "\x1b["));
}

TEST_CASE("results in a file leave standard output to the plot, and both in one place are refused") {
  const std::string file = scenario(), out = temporary_file("rows.jsonl", "");
  const Outcome plotted = run_command({"run", file, "--format", "jsonl", "-o", out, "--plot"});
  CHECK(plotted.code == 0);
  CHECK(plotted.out.starts_with("plotted: all_reduce, 4 ranks\n"));
  CHECK(lines_of(read_file(out)).size() == 8);
  const Outcome both = run_command({"run", file, "--format", "json", "--plot"});
  CHECK(both.code == 2);
  CHECK(
      has(both.err,
          "--plot: expected --format table or a file for the results, found results and plot both on standard output"));
  CHECK(has(run_command({"run", file, "--y", "time_us"}).err, "--y: expected --plot or --report as well"));
}

TEST_CASE("the axes are what is asked for, and a name that no result has is refused before the run") {
  const std::string file = scenario();
  CHECK(has(run_command({"run", file, "--plot", "--y", "time_us"}).out, "\ntime\n"));
  const Outcome by_ranks =
      run_command({"run", file, "--plot", "--set", "topology.ranks=[2,4,8]", "--set", "collective.bytes=1 MiB"});
  CAPTURE(by_ranks.err);
  CHECK(has(by_ranks.out, " ranks\n"));  // what varies, if the size does not
  CHECK(has(by_ranks.out, "plotted: all_reduce, 1 MiB\n"));
  const Outcome unknown = run_command({"run", file, "--plot", "--y", "busbw"});
  CHECK(unknown.code == 2);
  CHECK(unknown.out == "");
  CHECK(has(unknown.err,
            "--y: expected a column of the results or a path that varies, found \"busbw\"\n"
            "  hint: did you mean \"busbw_GBps\"?\n"));
  CHECK(has(run_command({"run", file, "--plot", "--x", "algorithm"}).err,
            "--x: expected a column of numbers, found \"algorithm\", which is \"ring\""));
  const Outcome two = run_command({"run", file, "--plot", "--by", "model"});
  CHECK(two.code == 2);
  CHECK(has(two.err,
            "--by: expected one point per series and bytes, found two of \"fair\" at 1 KiB: "
            "collective.algorithm is ring and recursive_doubling"));
  CHECK(has(run_command({"run", file, "--plot", "--series", "model"}).err, "--series has been replaced by --by"));
}

TEST_CASE("points without a place on logarithmic axes are counted") {
  const Outcome none =
      run_command({"run", scenario(), "--plot", "--set", R"(collective.bytes=["0 B", "1 KiB", "1 MiB"])"});
  CHECK(none.code == 0);
  CHECK(has(none.out, "\n2 values not above 0 left out: the axes are logarithmic\n"));
  const Outcome one = run_command({"run", scenario(), "--plot", "--set", R"(collective.bytes=["0 B", "1 KiB"])",
                                   "--set", "collective.algorithm=ring"});
  CHECK(has(one.out, "\n1 value not above 0 left out: the axes are logarithmic\n"));
  const Outcome all = run_command({"run", scenario(), "--plot", "--set", "collective.bytes=0 B"});
  CHECK(all.code == 2);
  CHECK(has(all.err, "expected a value above 0 to plot"));
}

TEST_CASE("what a library chooses for each size is one series, and jobs are series of their own") {
  const Outcome library =
      run_command({"run", ringsim::test::source_dir() + "/scenarios/examples/library/nccl-two-dgx-a100.json", "--plot",
                   "--set", R"(collective.bytes=["1 KiB", "1 MiB", "256 MiB"])"});
  CAPTURE(library.err);
  REQUIRE(library.code == 0);
  // It takes another algorithm or protocol for 1 KiB than for 256 MiB; the legend is one line.
  const std::string plot = library.out.substr(library.out.find("message size\n"));
  CHECK(lines_of(plot).size() == 2);
  CHECK(has(plot, "nccl"));
  const Outcome jobs = run_command(
      {"run", scenario(), "--plot", "--set", "collective.algorithm=ring", "--set",
       R"(jobs=[{"name": "other", "collective": {"op": "broadcast", "algorithm": "binomial_tree", "bytes": "1 kB"}}])"});
  CAPTURE(jobs.err);
  CHECK(jobs.code == 0);
  CHECK(has(jobs.out, "job main"));
}

TEST_CASE("ticks of an axis over less than a factor of 4 are multiples of 1, 2 or 5 of a power of ten") {
  // Two ranks take p/b: 10 to 35 us. At most 7 ticks: of steps of 1, 2 and 5 us the last has so few.
  const std::string file = temporary_file("even.json", R"({"version": 1, "name": "even",
    "topology": {"kind": "star", "ranks": 2, "link": {"bandwidth": "1 GB/s", "latency": "0 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": ["10 kB", "20 kB", "35 kB"]}})");
  const Outcome plotted = run_command({"run", file, "--plot", "--y", "time_us"});
  REQUIRE(plotted.code == 0);
  std::vector<std::string> ticks;
  for (const std::string& line : lines_of(plotted.out.substr(plotted.out.find("\ntime\n"))))
    if (const std::size_t unit = line.find(" us"); unit != std::string::npos && unit < 6)
      ticks.push_back(line.substr(line.find_first_not_of(' '), unit - line.find_first_not_of(' ')));
  CHECK(ticks == std::vector<std::string>{"35", "30", "25", "20", "15", "10"});
}

TEST_CASE("labels below the axis are two blanks apart at least; those without room are left out") {
  // 2n(n-1) transfers of n = 1024 to 8192: ticks at 2^21 to 2^27, some 11 characters apart, as long as their labels.
  const std::string file = temporary_file("many.json", R"({"version": 1, "name": "many",
    "topology": {"kind": "star", "ranks": [1024, 2048, 4096, 8192], "link": {"bandwidth": "1 GB/s", "latency": "0 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})");
  const Outcome plotted = run_command({"run", file, "--plot", "--x", "transfers", "--y", "time_us"});
  REQUIRE(plotted.code == 0);
  const std::vector<std::string> lines = lines_of(plotted.out);
  const auto title =
      std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return line.ends_with(" transfers"); });
  REQUIRE(title != lines.begin());
  REQUIRE(title != lines.end());
  std::vector<std::string> labels;
  std::istringstream words(*(title - 1));
  for (std::string word; words >> word;) labels.push_back(word);
  CHECK(labels ==
        std::vector<std::string>{"2.09715e+06", "8.38861e+06", "3.35544e+07", "1.34218e+08"});  // 2^21, 23, 25, 27
  for (std::size_t at = (title - 1)->find_first_not_of(' '); (at = (title - 1)->find(' ', at)) != std::string::npos;) {
    CHECK((title - 1)->compare(at, 2, "  ") == 0);
    at = (title - 1)->find_first_not_of(' ', at);
  }
}

}  // namespace plot_test
