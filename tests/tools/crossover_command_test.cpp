// ringsim crossover as a user meets it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"

namespace crossover_command_test {

using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

// a = 2 us a path, b = 10 GB/s, K = 4: recursive doubling 2(a + p/b), halving-doubling 4a + 1.5 p/b, ring 6a + 1.5 p/b
// (DESIGN.md section 7). The first two are level where p/(2b) = 2a: at 80000 B.
std::string four() {
  return temporary_file("four.json", R"({
    "version": 1, "name": "four",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["recursive_doubling", "halving_doubling", "ring"],
                   "bytes": ["40 kB", "160 kB"]}})");
}

Outcome crossover(std::vector<std::string> more) {
  std::vector<std::string> arguments{"crossover", four()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(arguments);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> rows_of(const std::string& text) {  // without comments
  std::vector<std::string> rows;
  for (const std::string& line : lines_of(text))
    if (!line.starts_with('#')) rows.push_back(line);
  return rows;
}

}  // namespace

TEST_CASE("crossover prints the best algorithm at each size, and by how much, as the closed forms have it") {
  const Outcome outcome = crossover({});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "");
  const auto lines = lines_of(outcome.out);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0] == "all_reduce, 4 ranks");
  // 2(2 + 4) = 12 us against 8 + 6 = 14; 8 + 24 = 32 against 12 + 24 = 36.
  CHECK(lines[2].starts_with("40 kB   40 kB   A     12.000 - 12.000  1.17 x B "));
  CHECK(lines[3].starts_with("160 kB  160 kB  B     32.000 - 32.000  1.12 x A "));  // and the ring, just as slow
  CHECK(lines[4] == "A: recursive_doubling");  // whole names would make the table too wide
  CHECK(lines[5] == "B: halving_doubling fold=rabenseifner");
}

TEST_CASE("crossover --refine finds the size at which two closed forms are level") {
  const auto lines = lines_of(crossover({"--refine"}).out);
  REQUIRE(lines.size() == 8);
  CHECK(lines[2].starts_with("40 kB    79999 B  A "));
  // Up to three bytes more are the same longest chunk of four, and so the same time.
  CHECK(lines[3].starts_with("80 kB    80003 B  A = B "));
  CHECK(lines[4].starts_with("80004 B  160 kB   B "));
  CHECK(lines[5] == "A: recursive_doubling");
  CHECK(lines[6] == "B: halving_doubling fold=rabenseifner");
}

TEST_CASE("crossover --format csv has every size and algorithm, with its time over the best one's") {
  const Outcome outcome = crossover(
      {"--format", "csv", "--set", "collective.bytes=[\"40 kB\"]", "--set", "network.model=[\"ideal\",\"fair\"]"});
  CHECK(outcome.code == 0);
  // 12, 14 and 12 + 6 = 18 us.
  CHECK(outcome.out ==
        "op,ranks,nodes,bytes,algorithm,parameters,protocol,channels,time_us,best,times_the_best,point.network.model\n"
        "all_reduce,4,0,40000,recursive_doubling,,none,1,12,true,1,ideal\n"
        "all_reduce,4,0,40000,halving_doubling,fold=rabenseifner,none,1,14,false,1.1666666666666667,ideal\n"
        "all_reduce,4,0,40000,ring,,none,1,18,false,1.5,ideal\n"
        "all_reduce,4,0,40000,recursive_doubling,,none,1,12,true,1,fair\n"
        "all_reduce,4,0,40000,halving_doubling,fold=rabenseifner,none,1,14,false,1.1666666666666667,fair\n"
        "all_reduce,4,0,40000,ring,,none,1,18,false,1.5,fair\n");
}

TEST_CASE("crossover: the results do not depend on how many points are simulated at a time") {
  CHECK(crossover({"-j", "1", "--refine", "--format", "csv"}).out ==
        crossover({"-j", "3", "--refine", "--format", "csv"}).out);
}

TEST_CASE("an algorithm that cannot serve a point is left out of the crossover with a note, and an error of run") {
  const std::vector<std::string> set{"--set", "collective.op=[\"all_reduce\",\"broadcast\"]", "--set",
                                     "collective.algorithm=[\"ring\",\"halving_doubling\",\"chain\"]"};
  const Outcome outcome = crossover(set);
  CHECK(outcome.code == 0);
  CHECK(outcome.err ==
        "ringsim: note: left out at 2 of 12 points: halving_doubling: expected an algorithm for broadcast, found "
        "\"halving_doubling\"\n");
  CHECK(has(outcome.out, "broadcast, 4 ranks\n"));
  CHECK(has(outcome.out, " 1.29 x B "));  // all_reduce of 40 kB: 18 against halving-doubling's 14 us
  std::vector<std::string> run{"run", four()};
  run.insert(run.end(), set.begin(), set.end());
  CHECK(run_command(run).code == 3);
}

TEST_CASE("crossover leaves out what only the schedule's maker refuses, and names it") {
  const Outcome outcome = crossover({"--set", "collective.algorithm=[\"ring\",\"halving_doubling\",\"hierarchical\"]"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err ==
        "ringsim: note: left out at 2 of 6 points: hierarchical: expected the parameter \"group\", the number of ranks "
        "per node, found none\n");
}

TEST_CASE("crossover: other mistakes are errors as in run") {
  CHECK(crossover({"--set", "collective.ranks=[\"gpu0\",\"gpu9\"]"}).code == 3);
  CHECK(crossover({"--set", "collective.algorithm=[\"ring\",\"rnig\"]"}).code == 3);
  CHECK(crossover({"--format", "json"}).code == 2);
  CHECK(crossover({"-o", "/no/such/folder/x"}).code == 3);
  CHECK(run_command({"crossover", four()}, "/dev/full").code == 5);
  const std::string path = temporary_file("four.txt", ringsim::test::read_file(four()));
  CHECK(run_command({"crossover", path, "-o", path}).code == 3);
}

TEST_CASE("one algorithm is nothing to compare, and neither is what no two can serve") {
  const Outcome one = crossover({"--set", "collective.algorithm=ring"});
  CHECK(one.code == 3);
  CHECK(has(one.err,
            "four.json: /collective/algorithm: expected several algorithms to compare, found one\n  hint: list "
            "algorithms or parameters: "));
  const Outcome lonely =
      crossover({"--set", "collective.op=broadcast", "--set", "collective.algorithm=[\"chain\",\"halving_doubling\"]"});
  CHECK(lonely.code == 3);
  CHECK(has(lonely.err, "expected several algorithms to compare, found no two that run at the same point"));
}

TEST_CASE("a barrier has one size, 0 B") {
  const Outcome outcome = crossover({"--set", "collective.op=barrier", "--set", "collective.bytes=0 B", "--set",
                                     "collective.algorithm=[\"dissemination\",\"binomial_tree\"]", "--refine"});
  CHECK(outcome.code == 0);
  // 2 steps of 2 us; there and back: 4 steps.
  CHECK(has(outcome.out, "dissemination  4.000 - 4.000  2.00 x A "));
}

TEST_CASE("crossover --format nccl-tuner: NCCL's words, rows without gaps, lines as short as the plugin reads them") {
  const std::string hgx = temporary_file("hgx.json", R"({
    "version": 1, "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 1},
    "collective": {"op": ["all_reduce", "all_gather", "all_to_all"],
      "algorithm": ["ring", {"name": "double_binary_tree", "segments": [1, 64]}, {"name": "in_switch", "segments": 8},
                    "pat", "direct"], "bytes": ["8 B", "256 KiB", "1 GiB"]}})");
  const Outcome outcome = run_command({"crossover", hgx, "--format", "nccl-tuner", "--refine"});
  REQUIRE(outcome.code == 0);
  for (const std::string& line : lines_of(outcome.out)) CHECK(line.size() < 255);
  CHECK(has(outcome.out, "# all_reduce, 8 ranks on 1 node\n# left out because NCCL does not have it: direct\n"));
  CHECK(has(outcome.out,
            "# all_to_all, 8 ranks on 1 node\n# left out because NCCL does not have it: direct\n# no row: "));
  long long next = 8;
  std::vector<std::string> names;
  for (const std::string& row : rows_of(outcome.out)) {
    if (!row.starts_with("allreduce,")) continue;
    std::vector<std::string> cells;
    std::istringstream in(row);
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == 10);
    CHECK(std::stoll(cells[1]) == next);
    next = std::stoll(cells[2]) + 1;
    names.push_back(cells[3]);
    CHECK(std::vector<std::string>(cells.begin() + 4, cells.end()) ==
          std::vector<std::string>{"simple", "-1", "1", "8", "-1", "-1"});
  }
  CHECK(next == (1LL << 30) + 1);
  CHECK(names.back() == "nvls");  // the switch adds up: half the bytes of a ring
  CHECK(has(outcome.out, "\nallgather,8,"));
  CHECK(has(outcome.out, ",pat,simple,-1,1,8,-1,-1\n"));
}

TEST_CASE("a change that was not located lies in the geometric middle of two compared sizes") {
  // On the star of four a tree in one piece has fewer latencies, a ring fewer bytes: one change between 64 B and 64
  // MiB, whose geometric middle is 64 KiB.
  const Outcome outcome =
      crossover({"--format", "nccl-tuner", "--set", "collective.bytes=[\"64 B\",\"64 MiB\"]", "--set",
                 "collective.algorithm=[\"ring\",{\"name\":\"double_binary_tree\",\"segments\":1}]", "--set",
                 "topology.ranks=16"});
  REQUIRE(outcome.code == 0);
  CHECK(rows_of(outcome.out) == std::vector<std::string>{"allreduce,64,65536,tree,simple,-1,-1,16,-1,-1",
                                                         "allreduce,65537,67108864,ring,simple,-1,-1,16,-1,-1"});
}

TEST_CASE("NCCL's tuner needs two of NCCL's algorithms, and tells apart only what NCCL asks it for") {
  CHECK(has(crossover({"--format", "nccl-tuner"}).err, "expected at least two algorithms that NCCL has"));
  const Outcome models = crossover({"--format", "nccl-tuner", "--set", "network.model=[\"ideal\",\"fair\"]"});
  CHECK(models.code == 3);
  CHECK(has(models.err, "expected one group of points for all_reduce of 4 ranks"));
}

TEST_CASE("--refine asks nobody at a size that `where` keeps him from") {
  // Level at 80 kB, but recursive doubling is not asked above 60.
  const std::vector<std::string> set{
      "--set", "where=[\"collective.bytes <= 60 kB or collective.algorithm != 'recursive_doubling'\"]", "--refine"};
  const auto lines = lines_of(crossover(set).out);
  REQUIRE(lines.size() == 7);
  CHECK(lines[2].starts_with("40 kB    60 kB   A "));
  CHECK(lines[3].starts_with("60001 B  160 kB  B "));
  CHECK(lines[5] == "B: halving_doubling fold=rabenseifner");
}

TEST_CASE("the tuner's rows tell of nothing that is faster by less than one in a hundred") {
  // Ring (K-1 = 3 steps each way of p/4) and tree, whose chunks round differently: from byte to byte now one, now the
  // other is ahead by a picosecond or so, where all are level.
  const std::vector<std::string> close{"--format",
                                       "nccl-tuner",
                                       "--refine",
                                       "--set",
                                       "collective.algorithm=[{\"name\":\"double_binary_tree\",\"segments\":1},"
                                       "{\"name\":\"double_binary_tree\",\"segments\":8},\"ring\"]",
                                       "--set",
                                       "transport.channels=[1,2,4]",
                                       "--set",
                                       "collective.bytes={\"from\":\"1 KiB\",\"to\":\"1 MiB\",\"factor\":2}"};
  const Outcome outcome = crossover(close);
  REQUIRE(outcome.code == 0);
  std::string before;
  for (const std::string& row : rows_of(outcome.out)) {
    std::vector<std::string> cells;
    std::istringstream in(row);
    for (std::string cell; std::getline(in, cell, ',');) cells.push_back(cell);
    REQUIRE(cells.size() == 10);
    const std::string choice = cells[3] + cells[4] + cells[5];
    CHECK(choice != before);  // neighbors are one row
    before = choice;
    CHECK(std::stoll(cells[2]) > std::stoll(cells[1]) + 16);  // no rule for a handful of bytes
  }
}

TEST_CASE("protocol none is no choice next to NCCL's own") {
  const Outcome outcome =
      crossover({"--format", "nccl-tuner", "--set", "transport.protocol=[\"none\",\"ll\"]", "--set",
                 "collective.algorithm=[\"ring\",{\"name\":\"double_binary_tree\",\"segments\":1}]"});
  CHECK(outcome.code == 3);
  CHECK(has(outcome.err, "expected either NCCL protocols or only none, found both\n  hint: "));
}

TEST_CASE("protocols compete as algorithms do, and the tuner's rows name the one that won") {
  const std::vector<std::string> set{
      "--set", "transport.protocol=[\"ll\",\"simple\"]",
      "--set", "collective.bytes=[\"8 B\",\"1 GiB\"]",
      "--set", "collective.algorithm=[\"ring\",{\"name\":\"double_binary_tree\",\"segments\":1}]"};
  std::vector<std::string> tuner = set;
  tuner.insert(tuner.end(), {"--format", "nccl-tuner"});
  const auto rows = rows_of(crossover(tuner).out);
  REQUIRE(rows.size() >= 2);
  // LL's latency is the lowest; it carries 4 bytes of data in 8, so that simple is faster for large ones.
  CHECK(rows.front().starts_with("allreduce,8,"));
  CHECK(has(rows.front(), ",ll,-1,-1,4,-1,-1"));
  CHECK(has(rows.back(), ",1073741824,ring,simple,-1,-1,4,-1,-1"));
  CHECK(!has(crossover(tuner).out, "No protocol was modeled"));
  CHECK(has(crossover(set).out, "ring protocol=simple"));
}

TEST_CASE("numbers of channels compete, and the tuner's rows say a number only where one was chosen") {
  const std::vector<std::string> tree{
      "--format", "nccl-tuner", "--set",
      "collective.algorithm=[\"ring\",{\"name\":\"double_binary_tree\",\"segments\":1}]"};
  CHECK(has(crossover(tree).out, "The number of channels is -1 (not chosen)."));
  std::vector<std::string> chosen = tree;
  chosen.insert(chosen.end(), {"--set", "transport.channels=[1,2]"});
  const Outcome outcome = crossover(chosen);
  CHECK(outcome.code == 0);
  CHECK(!has(outcome.out, "The number of channels is -1"));
  for (const std::string& row : rows_of(outcome.out)) {
    CAPTURE(row);
    CHECK((has(row, ",simple,1,-1,4,") || has(row, ",simple,2,-1,4,")));
  }
  chosen.back() = "transport.channels=2";  // the only number there is, and so the row's
  const auto rows = rows_of(crossover(chosen).out);
  REQUIRE(!rows.empty());
  CHECK(has(rows.front(), ",simple,2,-1,4,"));
}

}  // namespace crossover_command_test
