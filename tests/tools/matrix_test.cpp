// `--format matrix`: one column of results by two others.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"

namespace matrix_test {

using namespace ringsim::test;

namespace {

// Without latency ring all-reduce takes 2(K-1)/K p/b, halving-doubling the same, and recursive doubling log2(K) p/b.
const char* const two_by_two = R"({"version": 1, "name": "two by two",
  "topology": {"kind": "star", "ranks": [2, 4], "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling"], "bytes": "40 kB"}})";

std::string scenario() { return temporary_file("two-by-two.json", two_by_two); }

Outcome matrix(const Words& more, const std::string& file = scenario()) {
  Words words{"run", file};
  words.insert(words.end(), more.begin(), more.end());
  return run_command(words);
}

const Words by_ranks{"--rows", "topology.ranks", "--columns", "collective.algorithm"};
Words with(const Words& before, Words after = by_ranks) {
  after.insert(after.begin(), before.begin(), before.end());
  return after;
}

}  // namespace

TEST_CASE("a matrix has every point in one cell, as text, as Markdown and as CSV") {
  // p/b is 4 us: ring 2(K-1)/K of it, 4 and 6 us; recursive doubling log2(K) of it, 4 and 8 us.
  CHECK(matrix(with({"--format", "matrix"})).out ==
        "time_us: topology.ranks \\ collective.algorithm   ring  recursive_doubling\n"
        "                                             2  4.000               4.000\n"
        "                                             4  6.000               8.000\n");
  CHECK(matrix(with({"--format", "matrix-markdown"})).out ==
        "| time_us: topology.ranks \\ collective.algorithm |  ring | recursive_doubling |\n"
        "| ---------------------------------------------- | ----: | -----------------: |\n"
        "| 2                                              | 4.000 |              4.000 |\n"
        "| 4                                              | 6.000 |              8.000 |\n");
  CHECK(matrix(with({"--format", "matrix-csv"})).out ==
        "time_us: topology.ranks \\ collective.algorithm,ring,recursive_doubling\n"
        "2,4,4\n"
        "4,6,8\n");
  // busbw is 2(K-1)/K p/t; columns of results are also names, and sizes have their unit.
  CHECK(matrix({"--format", "matrix-csv", "--rows", "algorithm", "--columns", "ranks", "--cell", "busbw_GBps"}).out ==
        "busbw_GBps: algorithm \\ ranks,2,4\nring,10,10\nrecursive_doubling,10,7.5\n");
  const Outcome sizes = matrix({"--format", "matrix-csv", "--rows", "bytes", "--columns", "collective.algorithm",
                                "--set", "topology.ranks=2", "--set", R"(collective.bytes=["1 KiB", "1 MiB"])"});
  CHECK(has(sizes.out, "\n1 KiB,"));
  CHECK(has(sizes.out, "\n1 MiB,"));
}

TEST_CASE("rows and columns by algorithm have the library's names, which tell apart what one schedule stands for") {
  const std::string file = ringsim::test::temporary_file("nccl.json", R"({"version": 1,
    "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 2,
                 "fabric": {"kind": "star", "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}}},
    "library": {"name": "nccl", "env": {"NCCL_ALGO": ["Tree", "NVLSTree", "Ring"]}},
    "collective": {"op": "all_reduce", "bytes": ["1 MiB", "1 GiB"]}})");
  const Outcome found =
      run_command({"run", file, "--format", "matrix-csv", "--rows", "bytes", "--columns", "algorithm"});
  CHECK(found.code == 0);
  CHECK(has(found.out, "time_us: bytes \\ algorithm,Tree,NVLSTree,Ring\n"));
}

TEST_CASE("a parameter of an algorithm is part of its column's name, and what no point is for stays empty") {
  const Outcome outcome =
      matrix(with({"--format", "matrix-markdown", "--set",
                   R"(collective.algorithm=["ring", {"name": "parameter_server", "servers": 2}])", "--set",
                   R"x(where=["not (topology.ranks == 4 and collective.algorithm == 'ring')"])x"}));
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(has(outcome.out, "|  ring | parameter_server servers=2 |\n"));
  CHECK(has(outcome.out, "\n| 4                                              |       |"));
}

TEST_CASE("two points in one cell are refused before the first run, with what splits them") {
  const std::string file = scenario(), out = temporary_file("matrix.txt", "");
  std::filesystem::remove(out);
  const Outcome outcome =
      matrix(with({"--format", "matrix", "-o", out, "--set", R"(collective.bytes=["1 KiB", "1 MiB"])"}), file);
  CHECK(outcome.code == 2);
  CHECK(!std::filesystem::exists(out));
  CHECK(has(outcome.err,
            "ringsim: error: --format: expected one result per cell of the matrix, found two for topology.ranks 2, "
            "collective.algorithm ring: collective.bytes is 1 KiB and 1 MiB\n  hint: use it as --rows or --columns, or "
            "choose one value with --set collective.bytes=VALUE\n"));
  // So it is by columns that are known beforehand. Nothing is simulated.
  const Outcome by_column = matrix({"--format", "matrix", "-o", out, "--rows", "ranks", "--columns", "protocol"});
  CHECK(by_column.code == 2);
  CHECK(!std::filesystem::exists(out));
  CHECK(
      has(by_column.err, "found two for ranks 2, protocol none: collective.algorithm is ring and recursive_doubling"));
  CHECK(has(matrix(with({"--format", "matrix", "--set", "topology.ranks=[2, 2]"})).err, "this point occurs twice"));
}

TEST_CASE("the jobs of a scenario split a cell, and may be its rows") {
  const Words jobs{
      "--set",
      "topology.ranks=4",
      "--set",
      "collective.algorithm=ring",
      "--set",
      R"(collective.bytes=["40 kB", "80 kB"])",
      "--set",
      R"(jobs=[{"name": "other", "collective": {"op": "broadcast", "algorithm": "binomial_tree", "bytes": "1 kB"}}])"};
  const Outcome split = matrix(with(jobs, {"--format", "matrix", "--rows", "collective", "--columns", "model"}));
  CHECK(split.code == 2);
  const Outcome by_job =
      matrix(with(jobs, {"--format", "matrix-csv", "--rows", "job", "--columns", "collective.bytes"}));
  CAPTURE(by_job.err);
  CHECK(by_job.code == 0);
  CHECK(has(by_job.out, "\nmain,"));
  CHECK(has(by_job.out, "\nother,"));
}

TEST_CASE("names of a matrix are known before the first point is simulated") {
  const std::string out = temporary_file("unknown.txt", "");
  std::filesystem::remove(out);
  const auto refused = [&](const Words& words) {
    const Outcome outcome = matrix(with(words, {"-o", out}));
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
    CHECK(!std::filesystem::exists(out));
    return outcome.err.substr(0, outcome.err.find("usage:"));
  };
  CHECK(refused({"--format", "matrix", "--rows", "topology.rank", "--columns", "collective.algorithm"}) ==
        "ringsim: error: --rows: expected a column of the results or a path that varies, found \"topology.rank\"\n"
        "  hint: did you mean \"topology.ranks\"?\n");
  CHECK(has(refused(with({"--format", "matrix", "--cell", "time"})), "--cell: expected a column"));
  CHECK(has(refused(with({"--format", "matrix", "--cell", "busbw"})), "did you mean \"busbw_GBps\"?"));
  // What is fixed is a column, but no path that varies.
  CHECK(has(refused({"--format", "matrix", "--rows", "transport.protocol", "--columns", "collective.algorithm"}),
            "did you mean \"protocol\"?"));
  CHECK(has(refused({"--format", "matrix", "--rows", "topology.link.latency", "--columns", "collective.algorithm"}),
            "topology.link.latency does not vary in these results"));
  CHECK(has(refused(with({"--format", "matrix", "--cell", "of_bound"})), "expected --bound as well for of_bound"));
  CHECK(has(refused(with({"--format", "matrix", "--cell", "measured_us"})), "--cell: expected a column"));
  CHECK(has(refused({"--format", "matrix", "--rows", "bytes"}), "--format: expected --columns with a matrix"));
  CHECK(has(refused({"--rows", "bytes"}), "--rows: expected --format matrix, matrix-markdown or matrix-csv as well"));
  CHECK(has(refused({"--cell", "busbw_GBps"}), "--cell: expected --format matrix"));
  CHECK(has(refused({"--format", "matrix", "--rows", "bytes", "--columns", "bytes"}), "expected a name other"));
  // A column of results that these results have no value for.
  CHECK(has(refused(with({"--format", "matrix", "--cell", "samples_per_s"})), "samples_per_s\", which no result has"));
}

TEST_CASE("a share is a percentage in a matrix of text, and the same number in CSV") {
  const Words bound{"--bound", "--cell", "of_bound"};
  CHECK(has(matrix(with(with(bound, {"--format", "matrix"}))).out, "100.0 %"));
  CHECK(has(matrix(with(with(bound, {"--format", "matrix-csv"}))).out, "\n4,1,0.75\n"));
}

TEST_CASE("merge makes the matrix of stored results that run makes") {
  const std::string file = scenario(), rows = temporary_file("rows.jsonl", "");
  REQUIRE(run_command({"sweep", file, "-o", rows}).code == 0);
  const std::string out = temporary_file("matrix", "");
  for (const char* format : {"matrix", "matrix-markdown", "matrix-csv"}) {
    CAPTURE(format);
    const Outcome merged = run_command(with({"merge", rows, "-o", "-", "--format", format}));
    CHECK(merged.code == 0);
    CHECK(merged.out.starts_with(std::string(format) == "matrix-markdown" ? "| time_us: " : "time_us: "));
    if (std::string(format) == "matrix-csv")  // merge sorts: recursive_doubling before ring
      CHECK(merged.out == "time_us: topology.ranks \\ collective.algorithm,recursive_doubling,ring\n2,4,4\n4,8,6\n");
    CHECK(run_command(with({"merge", rows, "-o", out, "--format", format})).code == 0);
    CHECK(read_file(out) == merged.out);
    CHECK(matrix(with({"--format", format, "-o", out}), file).code == 0);  // a matrix may be replaced
  }
  const std::string notes = temporary_file("notes.txt", "note: a \\ b\n");
  CHECK(run_command(with({"merge", rows, "-o", notes, "--format", "matrix"})).code == 2);
  CHECK(read_file(notes) == "note: a \\ b\n");
  const Outcome unknown = run_command(
      {"merge", rows, "-o", "-", "--format", "matrix", "--rows", "topology.rnks", "--columns", "algorithm"});
  CHECK(unknown.code == 2);
  CHECK(has(unknown.err, "did you mean \"topology.ranks\"?"));
  CHECK(run_command({"merge", rows, "-o", "x.txt"}).code == 2);
}

TEST_CASE("columns of Markdown are as wide as what is written in them, bars with their backslashes") {
  const Outcome made = matrix({"--format", "matrix-markdown", "--rows", "job", "--columns", "collective", "--set",
                               "topology.ranks=2", "--set", "collective.algorithm=ring", "--set",
                               R"(jobs=[{"name": "the|other|job|of|this|run", "collective": {"op": "broadcast",
                                  "algorithm": "binomial_tree", "bytes": "1 kB"}}])"});
  CAPTURE(made.err);
  REQUIRE(made.code == 0);
  CHECK(has(made.out, "| the\\|other\\|job\\|of\\|this\\|run |"));
  std::istringstream lines(made.out);
  std::string line;
  REQUIRE(std::getline(lines, line));
  const std::size_t width = line.size();
  while (std::getline(lines, line)) CHECK(line.size() == width);
}

}  // namespace matrix_test
