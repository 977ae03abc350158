// Tables and notes that fit a terminal.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace table_test {

using ringsim::characters;
using ringsim::Table;
using ringsim::wrapped;
using ringsim::test::Outcome;
using ringsim::test::run_command;

namespace {

std::size_t longest_line(const std::string& text) {
  std::istringstream in(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(in, line);) longest = std::max(longest, characters(line));
  return longest;
}

std::string without_blanks(std::string text) {
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  return text;
}

}  // namespace

TEST_CASE("text is wrapped at blanks, newlines stay, and nothing but blanks is lost") {
  CHECK(wrapped("one two three", 2, 9) == "one two\n  three");
  CHECK(wrapped("one two three", 2, 100) == "one two three");
  CHECK(wrapped("", 2, 10) == "");
  CHECK(wrapped("one\ntwo three", 0, 9) == "one\ntwo three");
  CHECK(wrapped("one two\n", 0, 9) == "one two\n");
  // A word that is longer than a line breaks behind a comma, or where it must.
  CHECK(wrapped("[1]: [\"aaa\",\"bbb\",\"ccc\"]", 2, 15) == "[1]: [\"aaa\",\n  \"bbb\",\"ccc\"]");
  CHECK(wrapped("abcdefghijkl", 2, 6) == "abcdef\n  ghij\n  kl");
  CHECK(wrapped("\u00b5s \u00b5s \u00b5s", 0, 5) == "\u00b5s \u00b5s\n\u00b5s");  // characters count, not bytes
  for (std::size_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::string text;
    std::size_t state = seed;
    for (int i = 0; i < 60; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      text += "ab, c\n{"[(state >> 33) % 7];
    }
    for (const std::size_t width : {5U, 10U, 33U}) {
      const std::string lines = wrapped(text, 2, width);
      CHECK(longest_line(lines) <= width);
      CHECK(without_blanks(lines) == without_blanks(text));
    }
  }
}

TEST_CASE("what all rows share is printed once above the table, as its pattern says") {
  Table table({"bytes", "collective", "ranks", "time us"});
  table.pull_out("collective");
  table.pull_out("ranks", "{} ranks");
  table.pull_out("no such column");
  table.add({"1 KiB", "all_reduce", "8", "1.5"});
  table.add({"1 MiB", "all_reduce", "8", "12.5"});
  CHECK(table.fitted() == "all_reduce  8 ranks\nbytes  time us\n1 KiB      1.5\n1 MiB     12.5\n");
  table.add({"1 GiB", "all_reduce", "16", "9.0"});  // it varies now
  CHECK(table.fitted() ==
        "all_reduce\nbytes  ranks  time us\n1 KiB      8      1.5\n1 MiB      8     12.5\n1 GiB     16      9.0\n");
  CHECK(table.text().starts_with("bytes  collective  ranks  time us\n"));
}

TEST_CASE("of two columns of one heading each has its own pattern; the last column is never pulled out") {
  Table table({"ranks", "ranks"});
  table.pull_out("ranks", "{} ranks");
  table.pull_out("ranks", "ranks {}");
  table.add({"8", "[1]"});
  CHECK(table.fitted() == "8 ranks\nranks\n[1]\n");
}

TEST_CASE(
    "a table that is too wide stacks its headings, then numbers the column that needs the fewest lines to explain") {
  Table table({"algorithm", "algbw GB/s", "bottleneck"});
  table.add({"halving_doubling", "1.000", "node0.gpu0 -> node0.pcie0"});
  table.add({"recursive_doubling", "2.000", "node0.gpu0 -> node0.pcie0"});
  table.add({"ring", "3.000", "leaf0"});
  CHECK(table.fitted(52) ==
        "algorithm           algbw  bottleneck\n"
        "                     GB/s\n"
        "halving_doubling    1.000  node0.gpu0 -> node0.pcie0\n"
        "recursive_doubling  2.000  node0.gpu0 -> node0.pcie0\n"
        "ring                3.000  leaf0\n");
  CHECK(table.fitted(40) ==
        "algorithm           algbw  bottleneck\n"
        "                     GB/s\n"
        "halving_doubling    1.000  [1]\n"
        "recursive_doubling  2.000  [1]\n"
        "ring                3.000  leaf0\n"
        "bottleneck [1]: node0.gpu0 ->\n  node0.pcie0\n");
}

TEST_CASE("columns for which no line has room continue in a second table, with what names the rows") {
  Table named({"gpu", "to gpu0", "to gpu1", "to gpu2"});
  named.add({"gpu0", "111111", "222222", "333333"});
  named.add({"gpu1", "444444", "555555", "666666"});
  CHECK(named.fitted(20) ==
        "gpu       to      to\n        gpu0    gpu1\ngpu0  111111  222222\ngpu1  444444  555555\n\n"
        "gpu       to\n        gpu2\ngpu0  333333\ngpu1  666666\n");
  Table unnamed({"bytes", "one", "two"});  // the first column is the same in both rows
  unnamed.add({"1 KiB", "111111", "222222"});
  unnamed.add({"1 KiB", "333333", "444444"});
  CHECK(unnamed.fitted(16) ==
        "#  bytes     one\n1  1 KiB  111111\n2  1 KiB  333333\n\n#     two\n1  222222\n2  444444\n");
}

TEST_CASE("no random table is wider than it may be, and each of its cells is there") {
  for (std::size_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::size_t state = seed;
    const auto draw = [&](std::size_t n) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      return (state >> 33) % n;
    };
    const std::size_t columns = 1 + draw(12), rows = 1 + draw(5);
    std::vector<std::string> head;
    for (std::size_t c = 0; c < columns; ++c) head.push_back(fmt::format("h{} {}", c, std::string(draw(8), 'x')));
    Table table(head);
    std::vector<std::string> cells;
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<std::string> row;
      for (std::size_t c = 0; c < columns; ++c) {
        row.push_back(draw(2) == 0 ? fmt::format("{}.{}", draw(100000), draw(10))
                                   : std::string(draw(40), 'a' + static_cast<char>(draw(26))));
        cells.push_back(row.back());
      }
      table.add(row);
    }
    for (std::size_t c = 0; c < columns; c += 2) table.pull_out(head[c]);
    const std::string text = table.fitted(60);
    CHECK(longest_line(text) <= 60);
    const std::string all = without_blanks(text);
    for (const std::string& cell : cells) CHECK(all.find(cell) != std::string::npos);
  }
}

TEST_CASE("no line of the other tables is longer than 100 characters (golden_test has those of run)") {
  const std::string examples = ringsim::test::source_dir() + "/scenarios/examples/";
  const std::vector<std::vector<std::string>> commands{
      {"run", examples + "machines/two-node-server.json", "--explain"},
      {"check", examples + "machines/two-node-server.json", "-v"},
      {"check", examples + "algorithms/log-steps.json", "-v"},
      {"compare", examples + "machines/abci-v100.json",
       ringsim::test::source_dir() + "/validate/measured/tables/abci-v100-2n4g-all_reduce.csv"},
      {"crossover", examples + "algorithms/crossover-hgx-h100.json"},
      {"list"},
      {"topology", "show", examples + "machines/two-node-server.json", "--pairs"},
      {"topology", "show", examples + "algorithms/crossover-hgx-h100.json"},
      {"schedule", "show", examples + "machines/two-node-server.json"},
      {"schedule", "show", examples + "machines/two-node-server.json", "--picture"},
      {"schedule", "check", ringsim::test::source_dir() + "/scenarios/star.json"}};
  for (const auto& command : commands) {
    CAPTURE(fmt::format("{}", fmt::join(command, " ")));
    const Outcome outcome = run_command(command);
    CHECK(outcome.code == 0);
    CHECK(!outcome.out.empty());
    CHECK(longest_line(outcome.out) <= 100);
  }
}

TEST_CASE("run says once above its table what all points share") {
  const std::string star = ringsim::test::source_dir() + "/scenarios/star.json";
  const Outcome one = run_command({"run", star, "--set", "collective.algorithm=ring", "--set", "network.model=fair"});
  CHECK(
      one.out.starts_with("all_reduce  ring  fair  8 ranks  closed form x 1.0000\n"
                          "bytes     time us  algbw GB/s  busbw GB/s  bottleneck          busy\n"));
}

}  // namespace table_test
