// Predicted against measured: the command and its parts.
#include "validate/score/compare.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/wrap.hpp"
#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace compare_test {

using ringsim::characters;
using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

// A ring of 4 takes 2(K-1)(a + p/(K b)) = 6 (1 us + p/40 GB/s): 4000 B 6.6 us, 40 kB 12 us, 400 kB 66 us.
std::string scenario() {
  return temporary_file("four.json", R"({
  "version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0.5 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "parameter_server"], "bytes": "1 MiB"}
})");
}

/// Of the ring: 10 % too slow, 20 % too fast, right.
std::string measured() {
  return temporary_file("measured.csv",
                        "# collective: all_reduce\n# ranks: 4\nbytes,time_us\n4000,6\n40000,15\n400000,66\n");
}

}  // namespace

TEST_CASE("compare predicts at the measured sizes, and rows and document have the contract's figures") {
  const Outcome outcome = run_command({"compare", scenario(), measured(), "--algorithm", "ring", "--format", "json"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err == "");
  const auto document = nlohmann::json::parse(outcome.out);
  REQUIRE(document.at("results").size() == 3);
  const double predicted[] = {6.6, 12, 66}, times[] = {6, 15, 66}, errors[] = {0.1, -0.2, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto& row = document.at("results").at(i);
    CHECK(row.at("time_us") == doctest::Approx(predicted[i]));
    CHECK(row.at("measured_us") == times[i]);
    CHECK(row.at("error") == doctest::Approx(errors[i]));
  }
  CHECK(document.at("median_abs_error") == doctest::Approx(0.1));  // of 0, 0.1, 0.2
  CHECK(document.at("p90_abs_error") == doctest::Approx(0.18));    // 0.8 of the way from 0.1 to 0.2
}

TEST_CASE("the table has each algorithm's rows and errors by size, both curves, and which is nearest") {
  const Outcome outcome = run_command({"compare", scenario(), measured()});
  REQUIRE(outcome.code == 0);
  const auto has = [&](const std::string& text) { return outcome.out.find(text) != std::string::npos; };
  CHECK(has("\nring\nbytes   measured us  predicted us    error\n4 kB           6.00          6.60  +10.0 %\n"));
  CHECK(has("40 kB         15.00         12.00  -20.0 %\n"));
  CHECK(has("up to 64 KiB        2          15.0 %           19.0 %        -5.0 %\n"));
  CHECK(has("all sizes           3          10.0 %           18.0 %        +0.0 %\n"));
  for (const char* name : {" ring\n", " parameter_server\n", " measured\n"}) CHECK(has(name));  // the legend
  // Of the server 2(K-1)p/b + 2 us: 4.4, 26, 242 us for 6, 15, 66: off by 26.7, 73.3, 266.7 %. With the ring's 0, 10
  // and 20 % the middle of the six lies between 20 and 26.7.
  CHECK(
      has("\nPredicted and measured times differ by 23.3 % (median of 6 rows). The nearest of the 2 predictions\n"
          "  is ring: by 10.0 % (median of 3 rows).\n"));
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) CHECK(characters(line) <= 100);
}

/// The errors that the table prints, in percent and without their signs.
std::vector<double> printed_errors(const std::string& table) {
  std::vector<double> errors;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line) && !line.starts_with("sizes");) {
    const std::size_t sign = line.find_last_of("+-");
    if (sign != std::string::npos && line.ends_with(" %")) errors.push_back(std::stod(line.substr(sign + 1)));
  }
  return errors;
}

TEST_CASE(
    "what a library chooses by size is one curve by NCCL's names, and the headline is the median of all its rows") {
  // Times are the predicted ones of two DGX A100 (37.08, 82.11, 848.81, 2704.9 us), off by 2, 40, 10 and 5 %.
  const std::string rows = temporary_file("library.csv",
                                          "# collective: all_reduce\n# ranks: 16\nbytes,time_us\n1024,36.35\n1048576,"
                                          "58.65\n67108864,771.6\n268435456,2576.1\n");
  const Outcome outcome = run_command(
      {"compare", ringsim::test::source_dir() + "/scenarios/examples/library/nccl-two-dgx-a100.json", rows});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find("segments") == std::string::npos);
  for (const char* plan :
       {"1 KiB    Tree       LL         1 ", "1 MiB    Tree       LL128      8 ", "64 MiB   Ring       LL128      8 ",
        "256 MiB  Ring       Simple     8 ", "\nTree LL         1 ", "\nRing Simple     1 "})
    CHECK_MESSAGE(outcome.out.find(plan) != std::string::npos, plan);
  std::vector<double> errors = printed_errors(outcome.out);
  REQUIRE(errors.size() == 4);
  std::sort(errors.begin(), errors.end());
  CHECK(errors.front() == doctest::Approx(2.0));
  CHECK(errors.back() == doctest::Approx(40.0));
  const std::string headline =
      fmt::format("\nnccl 2.22.3: predicted and measured times differ by {:.1f} % (median of 4 rows).\n",
                  (errors[1] + errors[2]) / 2);
  CHECK_MESSAGE(outcome.out.ends_with(headline), headline);
}

TEST_CASE("one plan of a library that is far off fails --max-error, however near the others are") {
  const std::string rows = temporary_file("library.csv",
                                          "# collective: all_reduce\n# ranks: 16\nbytes,time_us\n1024,37.69\n67108864,"
                                          "400\n268435456,2710\n");
  const Outcome outcome =
      run_command({"compare", ringsim::test::source_dir() + "/scenarios/examples/library/nccl-two-dgx-a100.json", rows,
                   "--max-error", "10%"});
  CHECK(outcome.code == 1);
  CHECK(outcome.err.find("one in ten rows of nccl 2.22.3 is") != std::string::npos);
}

TEST_CASE("a bound that measured rows break is said to be broken") {
  // 4 ranks of 10 GB/s cannot reduce 400 kB in less than 2 * 3/4 * 400 kB / 10 GB/s = 60 us.
  const std::string rows =
      temporary_file("fast.csv", "# collective: all_reduce\n# ranks: 4\nbytes,time_us\n40000,15\n400000,50\n");
  const Outcome outcome = run_command({"compare", scenario(), rows, "--bound"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.out.find(
            "\n1 of 2 measured rows are faster than the bound, so the bound does not hold for the measured machine.") !=
        std::string::npos);
  CHECK(run_command({"compare", scenario(), measured(), "--bound"}).out.find("faster than the bound") ==
        std::string::npos);
}

TEST_CASE("the plot has the measured point below the predicted one, in one column") {
  const std::string one = temporary_file("one.csv", "# collective: all_reduce\n# ranks: 4\nbytes,time_us\n4000,6\n");
  const Outcome outcome = run_command({"compare", scenario(), one, "--algorithm", "ring"});
  REQUIRE(outcome.code == 0);
  // 6.6 us are predicted. The axis has a title and a label in us; marks are of Unicode or ASCII, as the locale is.
  const std::string plot = outcome.out.substr(outcome.out.find("\ntime\n"));
  CHECK(plot.find("4000 B") == std::string::npos);  // ticks are at round sizes
  const auto place = [&](const std::vector<std::string>& marks) {
    std::istringstream text(plot);
    int row = 0;
    for (std::string line; std::getline(text, line); ++row)
      for (const std::string& mark : marks)
        if (const std::size_t at = line.find(mark); at != std::string::npos)
          return std::pair{row, characters(line.substr(0, at))};
    return std::pair{-1, std::size_t{0}};
  };
  const auto predicted = place({"\u25cf", "A"}), found = place({"\u25cb", "o"});
  REQUIRE(predicted.first > 0);
  CHECK(found.first > predicted.first);
  CHECK(found.second == predicted.second);
}

TEST_CASE("--max-error is held against the 90th percentile of the best algorithm: exit 1 beyond it") {
  const auto code = [](const std::string& limit, const std::string& algorithm = "ring") {
    return run_command({"compare", scenario(), measured(), "--algorithm", algorithm, "--max-error", limit}).code;
  };
  CHECK(code("18.1%") == 0);
  CHECK(code("17.9%") == 1);
  CHECK(code("17.9%", "parameter_server") == 1);
  CHECK(run_command({"compare", scenario(), measured(), "--max-error", "18.1 %"}).code == 0);  // the ring is within
  CHECK(code("0.15") == 2);
  CHECK(code("15") == 2);
  CHECK(code("-1%") == 2);
  CHECK(run_command({"compare", scenario(), measured(), "--max-error", "10%"}).err ==
        "ringsim: --max-error 10.0 % exceeded: one in ten rows of ring is off by 18.0 % or more\n");
}

TEST_CASE("what does not belong together is refused, or told") {
  const std::string path = scenario();
  const auto err = [&](const std::string& text, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"compare", path, temporary_file("m.csv", text)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = run_command(arguments);
    std::string said = outcome.err;
    if (const std::size_t at = said.find(arguments[2]); at != std::string::npos)
      said.replace(at, arguments[2].size(), "FILE");
    return fmt::format("{} {}", outcome.code, said);
  };
  CHECK(
      err("# ranks: 8\n# collective: all_reduce\nbytes,time_us\n8,10\n") ==
      fmt::format(
          "3 ringsim: error: FILE: expected as many ranks as {} has, 4, found measurements with 8\n  hint: use --nodes "
          "N for a machine given by name, or --set topology.nodes=N or topology.ranks=N for a scenario file; "
          "collective.ranks lists GPUs if not all of them take part\n",
          path));
  CHECK(err("# ranks: 4\ncollective,bytes,time_us\nbroadcast,8,10\nbroadcast,9,10\nall_gather,8,10\n") ==
        "3 ringsim: error: FILE: expected rows of all_reduce as in the scenario, found 1 all_gather, 2 broadcast\n  "
        "hint: the file may belong to another scenario; to change the collective of the scenario, use --set "
        "collective.op=NAME\n");
  CHECK(err("# ranks: 4\ncollective,bytes,time_us\nbroadcast,8,10\nall_reduce,8,10\n") ==
        "0 ringsim: warning: FILE: rows of other collectives are not compared: 1 broadcast\n");
  CHECK(
      err("# collective: all_reduce\nbytes,time_us\n8,10\n") ==
      "0 ringsim: warning: FILE: the file does not state the number of ranks; the number in the scenario is assumed\n");
  CHECK(err("# ranks: 4\nbytes,time_us\n8,10\n", {"--collective", "allreduce"}) == "0 ");
  CHECK(err("# ranks: 4\nbytes,time_us\n8,10\n", {"--collective", "all_redoce"})
            .starts_with("2 ringsim: error: --collective: expected the name of a collective, found \"all_redoce\"\n"
                         "  hint: did you mean \"all_reduce\"?"));
  CHECK(err("# ranks: 4\n# collective: all_reduce\nbytes,time_us\n8,10\n",
            {"--set", R"(collective.op=["all_reduce","all_gather"])", "--algorithm", "ring"}) ==
        fmt::format("3 ringsim: error: {}: /collective/op: expected one collective, found all_reduce and all_gather\n"
                    "  hint: choose one with --set collective.op=NAME\n",
                    path));
}

TEST_CASE("of ringsim's own results only the measured times are measured; without any they are refused") {
  const std::string path = scenario();
  const std::string predicted = temporary_file("p.csv", run_command({"run", path, "--format", "csv"}).out);
  for (const char* format : {"csv", "json", "jsonl"}) {
    CAPTURE(format);
    const std::string own = temporary_file("own", run_command({"run", path, "--format", format}).out);
    const Outcome refused = run_command({"compare", path, own});
    CHECK(refused.code == 3);
    CHECK(has(refused.err, "expected measured times, found ringsim predictions\n  hint: to compare two"));
  }
  const std::string rows = "# ranks: 4\n# collective: all_reduce\nbytes,time_us\n1048576,12345\n";
  const Outcome both = run_command(
      {"run", path, "--set", "collective.bytes=1 MiB", "--measured", temporary_file("m.csv", rows), "--format", "csv"});
  CHECK(has(both.out, ",measured_us,"));
  const Outcome read = run_command({"compare", path, temporary_file("both.csv", both.out)});
  CHECK(read.code == 0);
  CHECK(has(read.out, " 12345.00 "));
}

TEST_CASE("busbw is held against time and the scenario's ranks where the file does not tell its ranks") {
  // 400 kB in 66 us: algbw 6.06 GB/s; busbw of 4 ranks 2 * 3/4 of it, 9.09, of 8 ranks 10.61.
  const auto outcome = [](const std::string& busbw) {
    return run_command(
        {"compare", scenario(),
         temporary_file("m.csv", "# collective: all_reduce\nbytes,time_us,busbw_GBps\n400000,66," + busbw + "\n")});
  };
  CHECK(outcome("9.09").code == 0);
  const Outcome other = outcome("10.61");
  CHECK(other.code == 3);
  CHECK(other.err.find("m.csv:3: expected busbw to be 9.09 GB/s, which follows from all_reduce on the 4 ranks of the "
                       "scenario in 66 us, found 10.61") != std::string::npos);
}

TEST_CASE("run --measured adds what was measured to rows that were, and tells what met no partner") {
  const std::string file = measured();
  const Outcome outcome = run_command({"run", scenario(), "--set", R"(collective.bytes=["4 kB","8 kB"])", "--measured",
                                       file, "--format", "csv", "--set", "collective.algorithm=ring"});
  REQUIRE(outcome.code == 0);
  std::istringstream lines(outcome.out);
  std::string head, met, alone;
  std::getline(lines, head);
  std::getline(lines, met);
  std::getline(lines, alone);
  CHECK(head.find(",busbw_GBps,measured_us,error,transfers,") != std::string::npos);
  CHECK(met.find(",6,0.09999999999999987,") != std::string::npos);
  CHECK(alone.find(",,,24,") != std::string::npos);  // neither measured nor an error; 4 ranks take 6 steps
  CHECK(outcome.err ==
        fmt::format("ringsim: warning: {0}: 2 of 3 measured rows match no point of the scenario: all_reduce of 40 kB, "
                    "all_reduce of 400 kB\nringsim: warning: {0}: there are no measurements of all_reduce of 8 kB\n",
                    file));
  CHECK(run_command({"run", scenario(), "--set", "topology.ranks=5", "--measured", file}).code == 3);
  // Without it no output mentions it.
  CHECK(run_command({"run", scenario(), "--format", "json"}).out.find("measured") == std::string::npos);
}

TEST_CASE("a scenario of several machines has a curve for each, and of jobs there must be one") {
  const std::string nodes =
      temporary_file("sweep.json", R"({"version": 1, "sweep": {"topology.link.latency": ["0 us", "0.5 us"]},
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "8 B"}})");
  const Outcome outcome = run_command({"compare", nodes, measured()});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("is ring, topology.link.latency 0.5 us: by 10.0 % (median of 3 rows).\n") !=
        std::string::npos);
  const Outcome jobs =
      run_command({"compare", scenario(), measured(), "--algorithm", "ring", "--set",
                   R"(jobs=[{"name": "b", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "8 B"}}])"});
  CHECK(jobs.code == 3);
  CHECK(jobs.err.find("/jobs: expected a single collective, as in the measurement, found other jobs") !=
        std::string::npos);
}

TEST_CASE("the result is not written over what is read") {
  const std::string file = measured();
  CHECK(run_command({"compare", scenario(), file, "-o", file}).code == 3);
  CHECK(run_command({"run", scenario(), "--measured", file, "-o", file}).code == 3);
}

TEST_CASE("every point has the ranks that were measured, not the first one alone") {
  const auto complaint = [](const char* ranks) {
    const ringsim::ScenarioFile file =
        ringsim::ScenarioFile::parse(fmt::format(R"({{"version": 1, "topology": {{"kind": "star", "ranks": {},
          "link": {{"bandwidth": "10 GB/s", "latency": "1 us"}}}},
          "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}}}})",
                                                 ranks),
                                     "s.json");
    ringsim::MeasuredTable table;
    table.file = "m.csv";
    table.ranks = 8;
    try {
      ringsim::require_measured_ranks(file, table);
    } catch (const ringsim::InputError& error) {
      return error.message();
    }
    return std::string();
  };
  CHECK(complaint("8") == "");
  CHECK(complaint("[4, 8]") == "expected as many ranks as s.json has, 4, found measurements with 8");
  CHECK(complaint("[8, 4]") == "expected as many ranks as s.json has, 4, found measurements with 8");
}

TEST_CASE("a table of a release that is not modeled is compared with a warning, and a scenario of one is refused") {
  const auto machine = [](const std::string& library) {
    return temporary_file("one.json", R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
      "library": )" + library + R"(, "collective": {"op": "all_reduce", "bytes": "1 MiB"}})");
  };
  const auto err = [&](const std::string& library, const std::string& measured_with) {
    const std::string file = temporary_file(
        "m.csv", "# collective: all_reduce\n# ranks: 8\n# library: " + measured_with + "\nbytes,time_us\n1048576,60\n");
    const Outcome outcome = run_command({"compare", machine(library), file});
    std::string said = outcome.err;
    if (const std::size_t at = said.find(file); at != std::string::npos) said.replace(at, file.size(), "FILE");
    return fmt::format("{} {}", outcome.code, said);
  };
  CHECK(err("\"nccl\"", "NCCL 2.32.6") ==
        "0 ringsim: warning: FILE: the table is for NCCL 2.32.6, which is newer than any release that is modeled; the "
        "prediction is for nccl 2.30.7, which uses different rules (docs/guide/nccl.md, Newer releases)\n");
  CHECK(err("\"nccl\"", "NCCL 2.31.2").starts_with("0 ringsim: warning: FILE: the table is for NCCL 2.31.2, "));
  CHECK(err("\"nccl\"", "NCCL 2.30.7") == "0 ");
  CHECK(err("\"nccl\"", "RCCL 2.99.1")
            .starts_with("0 ringsim: warning: FILE: the table is for RCCL 2.99.1, which is not modeled; the prediction "
                         "is for nccl 2.30.7, which uses different rules (docs/guide/rccl.md)"));
  CHECK(err("\"nccl\"", "RCCL 2.21.5") == "0 ");
  const std::string refused = err(R"({"name": "nccl", "version": "2.31.2"})", "NCCL 2.31.2");
  CHECK(refused.starts_with("3 "));
  CHECK(
      refused.ends_with("/library/version: expected a version up to 2.30.7, the newest that is modeled, found 2.31.2\n "
                        " hint: newer releases use different rules (docs/guide/nccl.md, Newer releases); \"2.30.7\" "
                        "shows what this release would do\n"));
}

TEST_CASE("the headline has the worst tenth from ten rows on") {
  const auto headline = [](int rows) {
    std::vector<ringsim::Result> results(static_cast<std::size_t>(rows));
    for (int i = 0; i < rows; ++i) {
      ringsim::Result& each = results[static_cast<std::size_t>(i)];
      each.prediction.algorithm = "ring";
      each.prediction.request.bytes = {1024 << i};
      each.prediction.time = ringsim::Picoseconds{110'000'000};  // 110 us, 10 % more than
      each.measured_us = 100;
    }
    return ringsim::headline_of(ringsim::curves_of(results));
  };
  CHECK(headline(1) == "ring: predicted and measured times differ by 10.0 % (median of 1 row).");
  CHECK(headline(9) == "ring: predicted and measured times differ by 10.0 % (median of 9 rows).");
  CHECK(headline(10) ==
        "ring: predicted and measured times differ by 10.0 % (median of 10 rows), and by more than 10.0 % in one row "
        "out of ten.");
}

}  // namespace compare_test
