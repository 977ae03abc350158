// Logs and tables as they are found: decorated, torn, of several runs. Each is a file of tests/data/measured.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "validate/measured/measured.hpp"

namespace measured_logs_test {

using namespace ringsim;
using ringsim::test::has;
using ringsim::test::replaced;

namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(test::source_dir()) / "tests/data/measured"; }
std::string text_of(const std::string& name) { return test::read_file(folder() / name); }

/// What nearly all of them are compared with: an all-reduce of 8 ranks.
const ComparedWith eight{.ops = {CollectiveOp::all_reduce}, .ranks = {8}};

/// "1048576 45 44 | ...": bytes, the time, in place.
std::string figures(const MeasuredTable& table) {
  std::string text;
  for (const MeasuredRow& row : table.rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " | ", row.bytes.count, row.time_us);
    if (row.in_place_us) text += fmt::format(" {}", *row.in_place_us);
  }
  return text;
}

/// Rows, ranks and warnings; or the error.
std::string outcome_of(const std::string& text, const std::string& name, std::optional<int> run = std::nullopt,
                       const std::optional<ComparedWith>& with = eight) {
  std::string outcome;
  const std::string complaint = test::complaint([&] {
    const MeasuredTable table = MeasuredFile(text, name).table(run, with);
    outcome =
        figures(table) + fmt::format("; {}", table.ranks ? fmt::format("{} ranks", *table.ranks) : "ranks not told");
    for (const std::string& warning : table.warnings) outcome += "\n" + warning;
  });
  return complaint.empty() ? outcome : complaint;
}

// Made up: 1, 2 and 4 MiB, out of place and in place. busbw of 8 ranks is 1.75 of bytes / time.
const std::string three = "1048576 45 44 | 2097152 60 58 | 4194304 80 79";
const std::string out_alone = "1048576 45 | 2097152 60 | 4194304 80",
                  in_alone = "1048576 44 44 | 2097152 58 58 | 4194304 79 79";
const std::string whole = three + "; 8 ranks";
const std::string untold = "; ranks not told";

std::string by_busbw(const std::string& name) {
  return "\n" + name +
         ": the file does not name the collective; the collective of the scenario, all_reduce, is used because busbw "
         "fits it";
}

}  // namespace

TEST_CASE("logs and tables in forms that are found in public: their rows, ranks and warnings, or the error") {
  const std::map<std::string, std::string> forms{
      // What jobs put before lines and around them.
      {"mpi-tags.log", whole},
      {"slurm-labels.log", whole},
      {"kubernetes.log", whole},
      {"python-logging.log", whole},
      {"syslog.log", whole},
      {"docker.log", whole},
      {"quoted.log", whole},
      {"colors.log", whole},
      {"colors-lost.log", whole},
      {"web-page.log", three + untold + by_busbw("web-page.log")},
      {"windows.log", whole},
      {"nccl-info.log", whole},
      {"wrapped.log", whole},
      {"torn-rows.log",
       "1048576 45 44 | 4194304 80 79; 8 ranks\ntorn-rows.log:19: expected 8 columns after the operation and its root, "
       "found 3; the row is ignored\ntorn-rows.log:20: expected size, count and type before these figures, found a row "
       "without them; the row is ignored"},
      {"nan-rows.log",
       "1048576 45 44 | 8388608 120 | 16777216 200 198; 8 ranks\nnan-rows.log:19: expected time above 0, found 0.00; "
       "the row is ignored\nnan-rows.log:20: expected a finite number for algbw, found nan; the row is "
       "ignored\nnan-rows.log:21: expected a finite number for time, found nan; the in-place time is ignored"},
      // Versions and options of benchmarks.
      {"in-place-only.log", in_alone + "; 8 ranks"},
      {"out-of-place-only.log", out_alone + "; 8 ranks"},
      {"not-checked.log", whole},
      {"timestamps-at-end.log", whole},
      {"no-wrong-column.log", whole},
      {"average.log", whole},
      {"rccl-tests.log", whole},
      {"rccl-tests-in-place.log", in_alone + "; 8 ranks"},
      {"mscclpp-test.log", in_alone + untold + by_busbw("mscclpp-test.log")},
      {"mscclpp-test.json", out_alone + "; 8 ranks"},
      {"no-name.log", three + untold + by_busbw("no-name.log")},
      {"osu_allreduce.log",
       "1048576 45 | 2097152 60; ranks not told\nosu_allreduce.log:6: expected Avg Latency(us) above 0, found 0.00; "
       "the row is ignored"},
      {"osu-without-title.log", "1048576 45 | 2097152 60; ranks not told"},
      // Several runs.
      {"two-runs.log",
       "1048576 46 45 | 2097152 61.5 59 | 4194304 81 79.5; 8 ranks\ntwo-runs.log: it has 2 runs: run 1 (line 18, 3 "
       "rows, 8 ranks), run 2 (line 42, 3 rows, 8 ranks); they are treated as repetitions, and the median is used; "
       "their times differ by up to 5.0 % (2 MiB: 60 to 63 us)"},
      {"two-runs-apart.log",
       "1048576 46 45 | 2097152 75 73 | 4194304 81 79.5; 8 ranks\ntwo-runs-apart.log: it has 2 runs: run 1 (line 18, 3 "
       "rows, 8 ranks), run 2 (line 42, 3 rows, 8 ranks); they differ by 50 % (2 MiB in 60 us in run 1 (line 19) and "
       "90 us in run 2 (line 43)), too much for repetitions; their median is used unless --run N chooses one"},
      {"three-cycles.log",
       "1048576 46 44 | 2097152 61 58 | 4194304 81 79; 8 ranks\nthree-cycles.log: it has 3 runs: run 1 (line 18, 3 "
       "rows, 8 ranks), run 2 (line 21, 3 rows, 8 ranks), run 3 (line 24, 3 rows, 8 ranks); they are treated as "
       "repetitions, and the median is used; their times differ by up to 4.4 % (1 MiB: 45 to 47 us)"},
      {"runs-of-two-sizes.log",
       whole +
           "\nruns-of-two-sizes.log: not compared because the scenario has 8 ranks: run 2 (line 50, 3 rows, 16 ranks)"},
      {"runs-half-listed.log",
       three + untold + "\nruns-half-listed.log:8: the log lists 1 rank, and the highest is 15; assuming 16 ranks" +
           by_busbw("runs-half-listed.log") +
           "\nruns-half-listed.log: not compared because the scenario has 8 ranks: run 2 (line 12, 3 rows, 16 ranks)"},
      {"two-collectives.log",
       whole + "\ntwo-collectives.log: rows of other collectives are not compared: 3 all_gather"},
      {"loop-of-two.log", three + untold + by_busbw("loop-of-two.log") +
                              "\nloop-of-two.log: run 2 (line 13, 3 rows) is ignored: expected to find the measured "
                              "collective, found no information; busbw fits all_gather of 8 ranks or all_to_all of 8 "
                              "ranks, not the all_reduce of 8 ranks in the scenario"},
      {"suite.log", whole + "\nsuite.log: run 2 (line 42, 3 rows, 8 ranks) is ignored: expected a known collective, "
                            "found rows of hypercube_perf"},
      {"scaling.csv",
       "1048576 45 | 2097152 60; 8 ranks\nscaling.csv: not compared because the scenario has 8 ranks: run 2 (line 4, 2 "
       "rows, 16 ranks)"},
      // Tables between bars.
      {"markdown.log", three + untold},
      {"markdown-summary.log", out_alone + untold +
                                   "\nmarkdown-summary.log:3: the table starts here; the line before it is ignored" +
                                   by_busbw("markdown-summary.log")},
      {"markdown-in-place.log", in_alone + untold},
      {"drawn-table.log", out_alone + untold + by_busbw("drawn-table.log")},
      // CSV.
      {"nccl-columns.csv", three + untold + by_busbw("nccl-columns.csv")},
      {"pandas.csv", three + untold + "\npandas.csv:1: the column \"\" is ignored" + by_busbw("pandas.csv")},
      {"pandas-print.log", out_alone + untold + by_busbw("pandas-print.log")},
      {"excel.csv", out_alone + untold + "\nexcel.csv:2: the table starts here; the line before it is ignored" +
                        by_busbw("excel.csv")},
      {"cloudai.csv",
       whole + "\ncloudai.csv:1: the columns \"GPU Type\", \"Devices per Node\", \"Size Human-readable\" are ignored" +
           by_busbw("cloudai.csv")},
      {"letters.csv", out_alone + untold},
      {"decimal-comma.csv", out_alone + untold},
      {"decimal-comma.log", whole},
      {"decimal-comma-told.csv", "1048576 45.125 | 2097152 1060.125; ranks not told"},
      {"decimal-comma-unclear.csv",
       "decimal-comma-unclear.csv:3: expected a number with a decimal point for time_us, found \"45,125\"\n  hint: the "
       "comma is ambiguous (decimal or thousands separator), unless other numbers in the file resolve it"},
      {"decimal-comma-split.csv",
       "decimal-comma-split.csv:3: expected 3 columns as in the header, found 5\n  hint: if the numbers have decimal "
       "commas, separate the columns with ';'"},
      // JSON.
      {"json-in-log.log", "1048576 45 44 | 2097152 60 58; 8 ranks"},
      {"json-lines.json",
       "1048576 46 45 | 2097152 61.5 59.5; 8 ranks\njson-lines.json: it has 2 runs: run 1 (line 1, 2 rows, 8 ranks), "
       "run 2 (line 2, 2 rows, 8 ranks); they are treated as repetitions, and the median is used; their times differ "
       "by up to 5.0 % (2 MiB: 60 to 63 us)"},
      {"json-cut.log",
       "1048576 45 44 | 2097152 60 58; 8 ranks\njson-cut.log:3: the JSON document that starts here is incomplete and "
       "was ignored"},
      {"json-nan.json",
       "1048576 45 44 | 4194304 80; 8 ranks\njson-nan.json: /results/1/out_of_place/time: expected time above 0, found "
       "0; the row is ignored\njson-nan.json: /results/2/in_place/time: expected a finite number for time, found nan; "
       "the in-place time is ignored"},
  };
  for (const auto& form : forms) {
    CAPTURE(form.first);
    CHECK(outcome_of(text_of(form.first), form.first) == form.second);
  }
  CHECK(outcome_of(text_of("osu_allgather-tagged.log"), "x", std::nullopt,
                   ComparedWith{.ops = {CollectiveOp::all_gather}, .ranks = {8}}) ==
        "1048576 45 | 2097152 60; ranks not told");  // 128 KiB of each of 8 ranks
  std::size_t logs = 0;
  for (const fs::path& path : test::files_in(folder(), ".log")) {
    CAPTURE(path.string());
    CHECK((forms.contains(path.filename().string()) || path.filename() == "osu_allgather-tagged.log"));
    ++logs;
  }
  CHECK(logs > 30);
}

TEST_CASE("--run chooses a run, and rows are checked with its own ranks before any become one") {
  const std::string apart = text_of("two-runs-apart.log"), sizes = text_of("runs-of-two-sizes.log");
  CHECK(outcome_of(apart, "x", 1) == whole);
  CHECK(outcome_of(apart, "x", 2) == "1048576 47 46 | 2097152 90 88 | 4194304 82 80; 8 ranks");
  CHECK(outcome_of(apart, "x", 3) ==
        "x: expected a run from 1 to 2, found 3\n"
        "  hint: it has run 1 (line 18, 3 rows, 8 ranks), run 2 (line 42, 3 rows, 8 ranks)");
  const ComparedWith sixteen{.ops = {CollectiveOp::all_reduce}, .ranks = {16}};
  CHECK(outcome_of(sizes, "x", std::nullopt, sixteen) ==
        "1048576 60 59 | 2097152 75 74 | 4194304 95 94; 16 ranks\nx: not compared because the scenario has 16 ranks: "
        "run 1 (line 18, 3 rows, 8 ranks)");
  CHECK(outcome_of(sizes, "x", 2, std::nullopt) == "1048576 60 59 | 2097152 75 74 | 4194304 95 94; 16 ranks");
  CHECK(outcome_of(sizes, "x", std::nullopt, std::nullopt) ==
        "x: expected runs with the same number of ranks, found run 1 (line 18, 3 rows, 8 ranks), run 2 (line 50, 3 "
        "rows, 16 ranks)\n  hint: choose a run with --run N");
  CHECK(outcome_of(sizes, "x", std::nullopt, ComparedWith{.ops = {CollectiveOp::all_reduce}, .ranks = {4}}) ==
        "x: expected measurements of 4 ranks as in the scenario, found run 1 (line 18, 3 rows, 8 ranks), run 2 (line "
        "50, 3 rows, 16 ranks)\n  hint: use --nodes N for a machine given by name, or --set topology.nodes=N or "
        "topology.ranks=N for a scenario file; collective.ranks lists GPUs if not all of them take part");
  // A row that contradicts itself is named as it stands, not as the mean of two.
  CHECK(outcome_of(replaced(text_of("two-runs.log"), "    63.00   33.29   58.25", "    63.00   33.29   61.17"), "x") ==
        "x:43: expected busbw to be 58.25 GB/s, which follows from all_reduce on 8 ranks in 63 us, found 61.17\n  "
        "hint: check the collective and the number of ranks");
  // The first run's list of ranks is not the second one's.
  const std::string log = text_of("mpi-tags.log");
  std::string unlisted = text_of("no-name.log");
  CHECK(has(outcome_of(log + unlisted, "x", 2), untold));
}

TEST_CASE("each of these alone begins a run: a heading, a list of ranks, nThread, another program, the end of a run") {
  // 1 MiB of 8 ranks (45 us, busbw 1.75 of 23.30), then 2 MiB of 16 (60 us, 1.875 of 34.95).
  const std::string heading = "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n";
  const std::string first = "# all_reduce_perf\n" + heading + "  1048576  1  float  sum  -1  45.00  23.30  40.78  0\n";
  const std::string second = "  2097152  1  float  sum  -1  60.00  34.95  65.54  0\n";
  const std::string left_out = "\nx: not compared because the scenario has 8 ranks: run 2 (line ";
  const std::vector<std::string> signs{
      heading,
      "#  Rank 15 Group  0 Pid    101 on      node1 device  7 [0000:0f:00] NVIDIA A100\n",
      "# nThread 1 nGpus 1\n",
      "# Collective test starting: all_reduce_perf\n",
      "# Out of bounds values : 0 OK\n",
      "# Avg bus bandwidth    : 40.78\n"};
  for (const std::string& sign : signs) {
    CAPTURE(sign);
    const std::string outcome = outcome_of(first + sign + second, "x");
    CHECK(outcome.starts_with("1048576 45; ranks not told\n"));
    CHECK(has(outcome, left_out));
  }
  CHECK(has(outcome_of(first + second, "x"),
            "x:4: expected busbw to be 61.17 GB/s, which follows from all_reduce on the 8 ranks of the scenario"));
  const std::string other = outcome_of(first + "$ build/all_gather_perf\n" + replaced(second, "65.54", "30.58"), "x");
  CHECK(has(other, "\nx: rows of other collectives are not compared: 1 all_gather"));
}

TEST_CASE("bandwidths of repetitions are those of their median time") {
  // Two runs: 1 MiB in 100 and in 110 us. A mean of bandwidths would be 10.01 GB/s, the median's is 1048576 / 105 us.
  const auto run = [](const std::string& figures) {
    return "# Collective test starting: all_reduce_perf\n#  size  count  type  redop  root  time  algbw  busbw  "
           "#wrong\n"
           "  1048576  262144  float  sum  -1  " +
           figures + "  0\n";
  };
  const MeasuredTable table =
      MeasuredFile(run("100.00   10.49   18.35") + run("110.00    9.53   16.68"), "x").table(std::nullopt, eight);
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].time_us == 105);
  CHECK(*table.rows[0].algbw_GBps == doctest::Approx(1048576 / 105e3).epsilon(0.001));
  CHECK(*table.rows[0].busbw_GBps == doctest::Approx(1.75 * 1048576 / 105e3).epsilon(0.001));
  CHECK(table.rows[0].time_min_us == 100);
  CHECK(table.rows[0].time_max_us == 110);
}

TEST_CASE(
    "runs count by their median, with a warning that names them where they are over 20 % apart; sizes that one run has "
    "are put together") {
  const auto run = [](int bytes, double time) {
    return fmt::format(
        "# Collective test starting: all_reduce_perf\n#  size  count  type  redop  root  time  algbw  busbw  #wrong\n"
        "  {}  1  float  sum  -1  {:.2f}  {:.2f}  {:.2f}  0\n",
        bytes, time, bytes / time / 1e3, 1.75 * bytes / time / 1e3);
  };
  CHECK(
      has(outcome_of(run(1 << 20, 100) + run(1 << 20, 119.9), "x"), "differ by up to 19.9 % (1 MiB: 100 to 119.9 us)"));
  CHECK(has(outcome_of(run(1 << 20, 100) + run(1 << 20, 120.1), "x"),
            "differ by 20 % (1 MiB in 100 us in run 1 (line 3) and 120.1 us in run 2 (line 6)), too much for "
            "repetitions; their median is used unless --run N chooses one"));
  CHECK(outcome_of(run(1 << 20, 100) + run(1 << 21, 200), "x") ==
        "1048576 100 | 2097152 200; ranks not told\nx: it has 2 runs: run 1 (line 3, 1 row), run 2 (line 6, 1 row); "
        "they have no size in common, so their rows are combined");
  // Other types are no repetitions.
  CHECK(outcome_of(run(1 << 20, 100) + replaced(run(1 << 20, 101), "float", "half"), "x") ==
        "x: expected 1 MiB with one type, operation and root, found \"float sum -1\" in run 1 and \"half sum -1\" in "
        "run 2\n  hint: "
        "choose a run with --run N");
}

TEST_CASE("a log that names no collective: the scenario's if busbw fits it, else the error says what fits") {
  const std::string log = text_of("no-name.log");
  const auto with = [](CollectiveOp op, int ranks) { return ComparedWith{.ops = {op}, .ranks = {ranks}}; };
  const auto error = [](const std::string& found) {
    return "x:4: expected to find the measured collective, found no information" + found +
           "\n  hint: set it with --collective NAME, or with a line \"# collective: all_reduce\" in the file";
  };
  const std::string fits = "; busbw fits all_reduce of 8 ranks";
  CHECK(outcome_of(log, "x", std::nullopt, std::nullopt) == error(fits));
  CHECK(outcome_of(log, "x", std::nullopt, with(CollectiveOp::all_reduce, 16)) ==
        error(fits + ", not the all_reduce of 16 ranks in the scenario"));
  CHECK(outcome_of(log, "x", std::nullopt, with(CollectiveOp::all_gather, 8)) ==
        error(fits + ", not the all_gather of 8 ranks in the scenario"));
  const std::string heading = "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n";
  const auto line = [&](const std::string& words, const std::string& bandwidths) {
    return "#\n#\n" + heading + "  1073741824  268435456  float  " + words + "  5760.8  " + bandwidths + "  0\n";
  };
  // 369.86 / 186.39 of a public log: 2 * 127 / 128.
  CHECK(outcome_of(line("sum  -1", "186.39  369.86"), "x", std::nullopt, eight) ==
        error("; busbw fits all_reduce of 128 ranks, not the all_reduce of 8 ranks in the scenario"));
  CHECK(has(outcome_of(line("sum  -1", "186.39  369.86"), "x", std::nullopt, with(CollectiveOp::all_reduce, 128)),
            "1073741824 5760.8; ranks not told"));
  // redop and root say what a factor of 7/8 or of 1 leaves open.
  CHECK(
      has(outcome_of(line("none  -1", "186.39  163.09"), "x"), "fits all_gather of 8 ranks or all_to_all of 8 ranks,"));
  CHECK(has(outcome_of(line("sum  -1", "186.39  163.09"), "x"), "fits reduce_scatter of 8 ranks,"));
  CHECK(has(outcome_of(line("none  0", "186.39  163.09"), "x"), "fits scatter of 8 ranks or gather of 8 ranks,"));
  CHECK(has(outcome_of(line("none  0", "186.39  186.39"), "x"), "fits broadcast of any number of ranks,"));
  CHECK(has(outcome_of(line("sum  0", "186.39  186.39"), "x"), "fits reduce of any number of ranks,"));
  CHECK(has(outcome_of(line("sum  -1", "186.39  186.39"), "x"),
            "fits all_reduce of 2 ranks or send_recv of any number of ranks,"));
  CHECK(has(outcome_of(line("sum  -1", "186.39  248.52"), "x"), "fits all_reduce of 3 ranks,"));
  CHECK(has(outcome_of(line("sum  -1", "186.39  500.00"), "x"), "fits no collective,"));
  // A busbw of 0.00 fits anything, so it tells nothing.
  CHECK(outcome_of("#\n#\n" + heading + "  8  2  float  sum  -1  12.00  0.00  0.00  0\n", "x") == error(""));
  // The file's name says it, as before.
  CHECK(has(outcome_of(log, "8-gpus-all_reduce.log"), "all_reduce is taken from the file name"));
}

TEST_CASE("a run without a name is another one of the program before it only if its bandwidths may be") {
  const std::string named = "# Collective test starting: all_reduce_perf\n" + text_of("no-name.log");
  CHECK(has(outcome_of(named + text_of("no-name.log"), "x"), "it has 2 runs"));
  const std::string loop = text_of("loop-of-two.log");
  const std::string gathered = loop.substr(loop.rfind("# nThread"));
  CHECK(has(outcome_of(named + gathered, "x"), "run 2 (line 12, 3 rows) is ignored: "));
}

TEST_CASE("text and JSON of one log: the rows are read, and a warning says that the JSON is not") {
  const std::string both = text_of("mpi-tags.log") + text_of("json-in-log.log");
  CHECK(outcome_of(both, "x") == whole + "\nx: the JSON in the file is ignored; the rows of the log are used");
}

TEST_CASE("commas in numbers: unclear ones are read as the clear ones in the file, or refused") {
  const auto csv = [](const std::string& rows) {
    return outcome_of("# collective: all_reduce\nbytes;time_us\n" + rows, "x");
  };
  CHECK(csv("8;1,250\n16;1,5\n") == "8 1.25 | 16 1.5; ranks not told");
  CHECK(csv("8;1,250\n16;1,250,000.5\n") == "8 1250 | 16 1250000.5; ranks not told");
  CHECK(csv("8;0,125\n") == "8 0.125; ranks not told");
  CHECK(csv("1.048.576;1.250,5\n1 048;2,5\n1'024;3,5\n") == "1048576 1250.5 | 1048 2.5 | 1024 3.5; ranks not told");
  CHECK(csv("8;1,250\n16;12.5\n")
            .starts_with("x:3: expected a number with a decimal point for time_us, found \"1,250\""));
  CHECK(
      csv("8;1.250\n16;12,5\n")
          .starts_with(
              "x:3: expected a number with a decimal comma for time_us, as others in the file have, found \"1.250\""));
  CHECK(csv("8;1.250\n") == "8 1.25; ranks not told");
  CHECK(csv("8;1,25,0\n") == "x:3: expected a number for time_us, found \"1,25,0\"");
  CHECK(csv("8;,5\n") == "x:3: expected a number for time_us, found \",5\"");
}

TEST_CASE("sizes with letters: K, M and G are binary, as nccl-tests takes them; MB is 10^6 with a warning") {
  const auto csv = [](const std::string& size) {
    return outcome_of("# collective: all_reduce\nbytes,time_us\n" + size + ",10\n", "x");
  };
  for (const char* size :
       {"1048576", "1M", "1m", "1 MiB", "1024K", "1024 KiB", "1048576 B", "1048576.0", "1.048576e6"}) {
    CAPTURE(size);
    CHECK(csv(size) == "1048576 10; ranks not told");
  }
  CHECK(csv("0.5K") == "512 10; ranks not told");
  CHECK(csv("1 MB") == "1000000 10; ranks not told\nx:3: MB is read as 1000000 bytes each; M and MiB are 2^20");
  CHECK(csv("1 Mib") ==
        "x:3: expected a size in bytes for bytes, found \"1 Mib\"\n  hint: such as 1048576, 1M or 1 MiB");
  CHECK(csv("0.3K") == "x:3: expected bytes to be a whole number of bytes, found 0.3K");
}

TEST_CASE("ringsim compare, run and calibrate take --run") {
  const std::string scenario = test::temporary_file("star8.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "400 Gb/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  const std::string apart = (folder() / "two-runs-apart.log").string();
  const auto run = [](std::vector<std::string> words) { return test::run_command(words); };
  const test::Outcome both = run({"compare", scenario, apart});
  CHECK(both.code == 0);
  CHECK(has(both.err, "they differ by 50 %"));
  const test::Outcome second = run({"compare", scenario, apart, "--run", "2", "--format", "csv"});
  CHECK(second.code == 0);
  CHECK(second.err.empty());
  CHECK(has(second.out, ",90,"));
  CHECK(has(run({"run", scenario, "--measured", apart, "--run", "1", "--format", "csv"}).out, ",45,"));
  CHECK(run({"run", scenario, "--run", "1"}).code == 2);  // of what?
  CHECK(run({"compare", scenario, apart, "--run", "0"}).code == 2);
  CHECK(run({"compare", scenario, apart, "--run", "3"}).code == 3);
  const test::Outcome calibrated =
      run({"calibrate", scenario, apart, "--run", "1", "-o", test::temporary_file("factors.json", "")});
  CHECK(has(calibrated.err, "expected at least 5 rows to fit"));  // of the three that this run has
}

}  // namespace measured_logs_test
