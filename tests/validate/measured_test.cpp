// Files of measured times: every format with the right numbers, damaged logs, and what is refused with its line.
#include "validate/measured/measured.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace measured_test {

using namespace ringsim;
using ringsim::test::replaced;

namespace {

namespace fs = std::filesystem;

fs::path samples() { return fs::path(test::source_dir()) / "tests/data/measured"; }
std::string text_of(const std::string& name) { return test::read_file(samples() / name); }
MeasuredTable table_of(const std::string& name) { return parse_measured(text_of(name), name); }
std::string log() { return text_of("nccl-tests.txt"); }

std::string complaint(const std::string& text, const std::string& name = "x",
                      std::optional<CollectiveOp> collective = std::nullopt) {
  return ringsim::test::complaint([&] { parse_measured(text, name, collective); });
}

/// "1024 10 9.5 | 1048576 100 98": bytes, out of place, in place.
std::string figures(const MeasuredTable& table) {
  std::string text;
  for (const MeasuredRow& row : table.rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " | ", row.bytes.count, row.time_us);
    if (row.in_place_us) text += fmt::format(" {}", *row.in_place_us);
  }
  return text;
}

std::string each_line(const std::string& text, const std::function<std::string(const std::string&)>& change) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    result += change(text.substr(at, end - at)) + "\n";
    at = end + 1;
  }
  return result;
}

bool is_row(const std::string& line) { return line.find("float") != std::string::npos; }

/// The text up to what is given, and no further.
std::string cut_at(const std::string& text, const std::string& what) { return text.substr(0, text.find(what)); }

const std::string all_rows = "1024 10 9.5 | 1048576 100 98 | 67108864 1250 1240";

}  // namespace

TEST_CASE("nccl-tests text: both times, bandwidths, wrong elements, ranks and collective") {
  const MeasuredTable table = table_of("nccl-tests.txt");
  CHECK(table.format == "nccl-tests text");
  CHECK(table.ranks == 2);
  CHECK(table.warnings.empty());
  CHECK(figures(table) == all_rows);
  CHECK(table.rows[1].op == CollectiveOp::all_reduce);
  CHECK(table.rows[1].algbw_GBps == 10.49);
  CHECK(table.rows[1].busbw_GBps == 10.49);
  CHECK(table.rows[1].wrong == 0);
  CHECK(table.rows[1].line == 13);
  CHECK(!table.rows[1].time_min_us);
}

TEST_CASE("nccl-tests text of 2019: no root, `error` is no count, all_gather's algbw is (n-1)/n of size over time") {
  const MeasuredTable table = table_of("nccl-tests-2019-all_gather.txt");
  CHECK(table.ranks == 4);
  CHECK(figures(table) == "4096 16 15 | 1048576 50 49");
  CHECK(table.rows[1].algbw_GBps == 15.73);  // 3/4 of 20.97
  CHECK(!table.rows[1].wrong);
  REQUIRE(table.warnings.size() == 1);
  CHECK(
      table.warnings[0] ==
      "nccl-tests-2019-all_gather.txt: the file does not name the collective; all_gather is taken from the file name");
}

TEST_CASE("nccl-tests text with -I and -S: least and most of the iterations, the time of day is skipped") {
  const MeasuredTable table = table_of("nccl-tests-iterations.txt");
  REQUIRE(figures(table) == "4194304 40 39");
  CHECK(table.rows[0].op == CollectiveOp::reduce_scatter);
  CHECK(table.rows[0].time_min_us == 38.5);
  CHECK(table.rows[0].time_max_us == 44.25);
}

TEST_CASE("nccl-tests JSON, with a size that was measured in place alone") {
  const MeasuredTable table = table_of("nccl-tests.json");
  CHECK(table.format == "nccl-tests JSON");
  CHECK(table.ranks == 2);
  CHECK(table.about.at("nccl_version") == "23004");
  CHECK(table.about.size() == 1);  // the environment is nobody's business
  CHECK(figures(table) == "1048576 100 98 | 2097152 150 150");
  CHECK(table.rows[0].time_max_us == 110.25);
  CHECK(table.rows[0].wrong == 0);
  CHECK(table.rows[1].algbw_GBps == 13.981013);
}

TEST_CASE(
    "rccl-tests: a list, objects a line each, CSV; rows in place join those out of place, cycles are repetitions") {
  for (const char* name : {"rccl-tests.json", "rccl-tests.csv"}) {
    CAPTURE(name);
    const MeasuredTable table = table_of(name);
    CHECK(table.ranks == 8);  // two processes of four GPUs; eight of one
    CHECK(figures(table) == "1048576 80 75.5");
    CHECK(table.rows[0].op == CollectiveOp::all_reduce);
    CHECK(table.rows[0].busbw_GBps == 22.9376);
    CHECK(table.rows[0].wrong == 0);
  }
  const MeasuredTable cycles = table_of("rccl-tests-2024.json");
  CHECK(figures(cycles) == "1048576 85 76");  // the middle of 80 and 90, of 75.5 and 76.5
  CHECK(cycles.rows[0].time_min_us == 80);
  CHECK(cycles.rows[0].time_max_us == 90);
  REQUIRE(cycles.warnings.size() == 1);
  CHECK(cycles.warnings[0] ==
        "rccl-tests-2024.json: 1 of 1 sizes occur several times, up to 2; they are treated as repetitions, and the "
        "median is used; their times differ by up to 12.5 % (1 MiB: 80 to 90 us)");
}

TEST_CASE("OSU counts a rank's own part of an all-gather, nccl-tests the whole") {
  const MeasuredTable table = table_of("osu_allgather.txt");
  CHECK(table.format == "OSU text");
  CHECK(figures(table) == "4 12.5 | 1048576 300.25");
  CHECK(table.rows[1].time_min_us == 290);
  CHECK(table.rows[1].time_max_us == 310.5);
  CHECK(complaint(replaced(text_of("osu_allgather.txt"), "# ranks: 4\n", "")) ==
        "x:4: expected to find the number of ranks, because sizes of all_gather here are per rank\n  hint: add a line "
        "\"# ranks: N\" to the file");
  CHECK(complaint(replaced(text_of("osu_allgather.txt"), "Allgather", "Bidirectional")) ==
        "x:3: expected a benchmark of a collective, found \"OSU MPI-CUDA Bidirectional Latency Test v5.7\"");
}

TEST_CASE("plain CSV: units in the columns' names, quotes, comments; a warning names columns that mean nothing") {
  const MeasuredTable table = table_of("plain.csv");
  CHECK(table.format == "CSV");
  CHECK(table.ranks == 4);
  CHECK(table.about.at("source") == "typed in by hand");
  CHECK(figures(table) == "1024 12.5 12 | 1048576 200 190.5");
  const auto windows = each_line(text_of("plain.csv"), [](const std::string& line) { return line + "\r"; });
  CHECK(figures(parse_measured(windows, "w")) == figures(table));
  CHECK(parse_measured(windows, "w").about == table.about);
  REQUIRE(table.warnings.size() == 1);
  CHECK(table.warnings[0] == "plain.csv:4: the column \"host\" is ignored");
}

TEST_CASE("the collective: as the file says, else as the reader says, else by the file's name, else refused") {
  const std::string silent = "bytes,time_us\n8,10\n";
  CHECK(complaint(silent, "x.csv") ==
        "x.csv:2: expected to find the measured collective, found no information\n  hint: set it with --collective "
        "NAME, or with a line \"# collective: all_reduce\" in the file");
  CHECK(parse_measured(silent, "x.csv", CollectiveOp::reduce).rows[0].op == CollectiveOp::reduce);
  CHECK(parse_measured(silent, "dir_all_reduce/h100-ReduceScatter.csv").rows[0].op == CollectiveOp::reduce_scatter);
  CHECK(complaint(silent, "all_reduce-or-broadcast.csv") != "");
  CHECK(complaint(log(), "x", CollectiveOp::broadcast) ==
        "x:12: expected rows of broadcast as specified, found all_reduce");
  for (const CollectiveOp op : collective_ops()) CHECK(collective_named(to_string(op)) == op);
  CHECK(collective_named("osu_bcast") == CollectiveOp::broadcast);
  CHECK(collective_named("sendrecv_perf") == CollectiveOp::send_recv);
  CHECK(collective_named("MPI_Allreduce") == CollectiveOp::all_reduce);
  CHECK(collective_named("ncclReduceScatter") == CollectiveOp::reduce_scatter);
  CHECK(collective_named("torch.distributed.all_gather_into_tensor") == CollectiveOp::all_gather);
  CHECK(collective_named("dist.reduce_scatter_tensor") == CollectiveOp::reduce_scatter);
  CHECK(collective_named("all_to_all_single") == CollectiveOp::all_to_all);
  CHECK(!collective_named("nccl"));
  CHECK(!collective_named("hypercube_perf"));
}

TEST_CASE("twenty damaged logs: the right numbers, or refused with the line") {
  struct Damaged {
    const char* what;
    std::string text, figures, complaint;  // of the last two, one
  };
  // Without the row that other output has torn.
  const std::string other_rows = "1024 10 9.5 | 67108864 1250 1240";
  const auto prefixed = [](const std::string& prefix) {
    return each_line(log(), [&](const std::string& line) { return prefix + line; });
  };
  const std::vector<Damaged> damaged{
      {"mpirun --tag-output", prefixed("[1,0]<stdout>:"), all_rows, ""},
      {"the same, no blank between", replaced(prefixed("[1,0]<stdout>:"), ":        1024", ":1024"), all_rows, ""},
      {"srun -l", prefixed("0: "), all_rows, ""},
      {"time stamps", prefixed("2026-02-03T10:11:12.123456Z "), all_rows, ""},
      {"a container's name", prefixed("worker-1  | "), all_rows, ""},
      {"Windows line ends", each_line(log(), [](const std::string& line) { return line + "\r"; }), all_rows, ""},
      {"a byte order mark", "\xEF\xBB\xBF" + log(), all_rows, ""},
      {"NCCL INFO between rows",
       each_line(log(),
                 [](const std::string& line) {
                   return is_row(line) ? line +
                                             "\nnode0:101:150 [0] NCCL INFO AllReduce: "
                                             "1048576 Bytes -> Algo 1 proto 2 time 73.8"
                                       : line;
                 }),
       all_rows, ""},
      {"no header", each_line(log(), [](const std::string& line) { return is_row(line) ? line : "# all_reduce_perf"; }),
       all_rows, ""},
      {"without its end", cut_at(log(), "# Out of bounds"), all_rows, ""},
      {"the last row cut after its columns", cut_at(log(), "\n# Out of bounds"), all_rows, ""},
      {"the last row cut within", cut_at(log(), "   53.69       0   1240"), "1024 10 9.5 | 1048576 100 98", ""},
      {"the last row cut before its type", cut_at(log(), "      16777216"), "1024 10 9.5 | 1048576 100 98", ""},
      {"measured in place alone",
       replaced(log(), "    10.00    0.10    0.10       0", "                                "),
       "1024 9.5 9.5 | 1048576 100 98 | 67108864 1250 1240", ""},
      {"out of place alone",
       each_line(log(),
                 [](const std::string& line) {
                   return line.size() > 95 && line[0] != '#' ? line.substr(0, 88)
                          : line.find("algbw") == std::string::npos
                              ? line
                              : "#  size count type redop root time algbw busbw #wrong";
                 }),
       "1024 10 | 1048576 100 | 67108864 1250", ""},
      {"a row in the middle cut", replaced(log(), "    98.00   10.70   10.70       0", ""), other_rows, ""},
      {"NCCL INFO within a row", replaced(log(), "   100.00   10.49", "node0:1:2 [0] NCCL INFO x\n   100.00   10.49"),
       other_rows, ""},
      {"NCCL INFO behind a row",
       replaced(log(), "98.00   10.70   10.70       0", "98.00   10.70   10.70       0 node0:1:2 [0] NCCL"), other_rows,
       ""},
      {"a row that lost its beginning", replaced(log(), "     1048576        262144     float     sum", ""), other_rows,
       ""},
      {"every row torn", each_line(log(), [](const std::string& line) { return is_row(line) ? line + " x" : line; }),
       "",
       "x: expected rows with times (nccl-tests text), found none\n  hint: x:12: expected the end of the row, found "
       "\"x\"; the row is ignored, and 2 more"},
      {"NCCL INFO lists the ranks of its channels",
       replaced(log(), "#\n# Using devices\n",
                "#\n# Using devices\nnode0:101:150 [0] NCCL INFO Channel 00/24 :    0   1   2   3   4   5   6   7\n"),
       all_rows, ""},
      {"a column lost",
       replaced(log(), "   100.00   10.49   10.49       0    98.00", "   10.49   10.49       0    98.00   98.00"), "",
       "x:13: expected algbw to be 1 MiB over 10.49 us, which is 99.96 GB/s, found 10.49\n  hint: a column is missing "
       "or misplaced, or the row is truncated"},
      {"a digit lost", replaced(log(), "     1048576  ", "     104857  "), "",
       "x:13: expected algbw to be 104857 B over 100 us, which is 1.05 GB/s, found 10.49\n  hint: a column is missing "
       "or misplaced, or the row is truncated"},
      {"a negative time", replaced(log(), "   100.00", "  -100.00"), "",
       "x:13: expected time of at least 0 and finite, found -100.00"},
      {"not a number", replaced(log(), "   100.00", "      nan"), other_rows, ""},
      {"the CPU's time", replaced(log(), "root     time", "root  cputime"), "",
       "x:10: expected times of whole collectives, found CPU times only (cputime)\n  hint: measure without -C"},
      {"UTF-16", replaced(log(), "nccl", std::string("n\0c\0", 4)), "",
       "x:1: expected text, found byte 0x00\n  hint: a file in UTF-16 must be saved as UTF-8 first"},
      {"another program", replaced(log(), "all_reduce_perf", "hypercube_perf"), "",
       "x:12: expected a known collective, found rows of hypercube_perf\n  hint: remove its rows from the file"},
      {"a rank lost",
       each_line(log(), [](const std::string& line) { return line.find("Rank  1") == std::string::npos ? line : "#"; }),
       "",
       // One rank has no bus bandwidth at all.
       "x:12: expected busbw to be 0.00 GB/s, which follows from all_reduce on 1 ranks in 10 us, found 0.1\n  hint: "
       "check the collective and the number of ranks"},
      {"no rows", cut_at(log(), "        1024 "), "", "x: expected rows with times (nccl-tests text), found none"},
      {"two runs of different sizes of cluster",
       log() + replaced(log(), "#\n# Using devices\n", "#\n# Using devices\n#  Rank  2 Group  0 Pid    103 on node0\n"),
       "",
       "x: expected runs with the same number of ranks, found run 1 (line 12, 3 rows, 2 ranks), run 2 (line 31, 3 "
       "rows, 3 ranks)\n  hint: choose a run with --run N"},
  };
  CHECK(damaged.size() >= 20);
  for (const Damaged& each : damaged) {
    CAPTURE(each.what);
    CHECK(complaint(each.text) == each.complaint);
    if (each.complaint.empty()) CHECK(figures(parse_measured(each.text, "x")) == each.figures);
  }
}

TEST_CASE("ranks: the highest number that is listed and one, in abridged logs and where a # is lost") {
  // busbw of an all-reduce is 2(n-1)/n of algbw, 1.875 for 16 ranks: 19.66 of 10.49 GB/s.
  const std::string row =
      "     1048576        262144     float     sum      -1   100.00   10.49   19.66       0    98.00   10.70   20.06  "
      "     0\n";
  const auto log_of = [&](const std::vector<int>& ranks, const std::function<std::string(int)>& mark,
                          const std::function<int(int)>& group) {
    std::string text = "# nThread 1 nGpus 1 minBytes 1048576\n# all_reduce_perf\n";
    for (const int rank : ranks)
      text += fmt::format("{}Rank {:2} Group {:2} Pid    101 on      node0 device  0 [0000:07:00] NVIDIA H100\n",
                          mark(rank), rank, group(rank));
    return text + row;
  };
  const auto marked = [](int) { return std::string("#  "); };
  const auto one_group = [](int) { return 0; };
  std::vector<int> all;
  for (int rank = 0; rank < 16; ++rank) all.push_back(rank);

  const MeasuredTable abridged = parse_measured(log_of({0, 7, 8, 15}, marked, one_group), "x");
  CHECK(abridged.ranks == 16);
  REQUIRE(abridged.warnings.size() == 1);
  CHECK(abridged.warnings[0] == "x:6: the log lists 4 ranks, and the highest is 15; assuming 16 ranks");
  const MeasuredTable lost =
      parse_measured(log_of(
                         all, [](int rank) { return rank == 15 ? std::string() : std::string("#  "); }, one_group),
                     "x");
  CHECK(lost.ranks == 16);
  CHECK(lost.warnings.empty());
  // Two groups of 16, numbered through: nccl-tests with NCCL_TESTS_SPLIT.
  std::vector<int> more = all;
  for (int rank = 16; rank < 32; ++rank) more.push_back(rank);
  CHECK(parse_measured(log_of(more, marked, [](int rank) { return rank / 16; }), "x").ranks == 16);
  const MeasuredTable halves = parse_measured(log_of({0, 15, 16, 31}, marked, [](int rank) { return rank / 16; }), "x");
  CHECK(halves.ranks == 16);
  CHECK(halves.warnings.front() ==
        "x:6: the log lists 4 ranks, and the highest is 31; assuming 16 ranks in each of 2 groups");
  // What busbw contradicts is refused: here the highest ranks are not listed.
  CHECK(complaint(log_of({0, 7}, marked, one_group)) ==
        "x:5: expected busbw to be 18.35 GB/s, which follows from all_reduce on 8 ranks in 100 us, found 19.66\n  "
        "hint: check the collective and the number of ranks");
}

TEST_CASE("a row that other output has torn costs that row and a warning with its line") {
  const auto warnings = [](const std::string& text) { return parse_measured(text, "x").warnings; };
  CHECK(warnings(replaced(log(), "    98.00   10.70   10.70       0", "")) ==
        std::vector<std::string>{
            "x:13: expected 8 columns after the operation and its root, found 4; the row is ignored"});
  CHECK(warnings(replaced(log(), "98.00   10.70   10.70       0", "98.00   10.70   10.70       0 node0:1:2 [0]")) ==
        std::vector<std::string>{"x:13: expected the end of the row, found \"node0:1:2\"; the row is ignored"});
  CHECK(warnings(replaced(log(), "     1048576        262144     float     sum", "")) ==
        std::vector<std::string>{
            "x:13: expected size, count and type before these figures, found a row without them; the row is ignored"});
}

TEST_CASE("warnings name what is left out: cut rows, rows without a time, wrong results") {
  const auto warned = [](const std::string& text) {
    const auto warnings = parse_measured(text, "x", CollectiveOp::all_reduce).warnings;
    return warnings.empty() ? "" : warnings.front();
  };
  CHECK(warned(cut_at(log(), "   53.69       0   1240")) ==
        "x:14: the last line of the file is incomplete and was ignored");
  CHECK(warned("bytes,time_us\n4,\n8,10\n") == "x:2: no time was printed; the row is ignored");
  CHECK(warned("bytes,time_us,wrong\n8,10,3\n") == "x: 3 wrong elements at 8 B: the timed run was incorrect");
  CHECK(warned(replaced(log(), "values : 0 OK", "values : 2 FAILED")) ==
        "x:15: the benchmark found wrong results: the timed runs were incorrect");
}

TEST_CASE("tables are refused with line, what was expected and what was found") {
  const auto csv = [](const std::string& text) { return complaint("# collective: all_reduce\n" + text); };
  CHECK(csv("size,time_us\n8,10\n") ==
        "x:2: expected a unit in the column's name, as in size_KiB, found \"size\"\n  hint: valid units: B, bytes, "
        "KiB, MiB, GiB, kB, MB, GB; b is bits, B is bytes");
  CHECK(csv("bytes,time_us,algbw_Gbps\n8,10,1\n") ==
        "x:2: expected a unit in the column's name, as in algbw_GBps, found \"algbw_Gbps\"\n  hint: valid units: GBps, "
        "GB/s, MBps, MB/s; b is bits, B is bytes");
  CHECK(csv("bytes,algbw_GBps\n8,10\n") ==
        "x:2: expected a column for the time, found none\n  hint: time_us, time_ms, latency_us, ...");
  CHECK(csv("bytes,time_us,time_ms\n8,10,1\n") ==
        "x:2: expected one column of each kind, found another one with \"time_ms\"");
  CHECK(csv("bytes,time_us\n8,10,11\n") ==
        "x:3: expected 2 columns as in the header, found 3\n  hint: if the numbers have decimal commas, separate the "
        "columns with ';'");
  CHECK(csv("bytes,time_us\n8,ten\n") == "x:3: expected a number for time_us, found \"ten\"");
  CHECK(csv("bytes,time_us\n8,0\n") ==
        "x: expected rows with times (CSV), found none\n  hint: x:3: expected time_us above 0, found 0; the row is "
        "ignored");
  CHECK(csv("bytes,time_us\n8,-1\n") == "x:3: expected time_us of at least 0 and finite, found -1");
  CHECK(csv("bytes,time_us\n8.5,10\n") == "x:3: expected bytes to be a whole number of bytes, found 8.5");
  CHECK(csv("bytes,time_us\n8,10\n16,11\n8,12\n") ==
        "x:5: expected each size only once, found 8 B of all_reduce here and on line 3\n  hint: repetitions are "
        "accepted only if every size has the same number of them; their median is used");
  CHECK(csv("bytes,time_us,type\n8,10,x\n").empty());
  CHECK(complaint("collective,bytes,time_us\nall_reduse,8,10\n") ==
        "x:2: expected the name of a collective, found \"all_reduse\"");
  CHECK(complaint("hello\nworld\n")
            .starts_with("x: expected measured times in a supported format, found none\n  hint: supported formats:\n"));
  CHECK(complaint("").starts_with("x: expected measured times in a supported format, found none"));
  CHECK(complaint(replaced(text_of("nccl-tests.json"), "\"time\":98.000000", "\"time\":\"soon\"")) ==
        "x: /results/0/in_place/time: expected a number, found \"soon\"");
  CHECK(complaint(replaced(text_of("nccl-tests.json"), "10.485760", "11.485760")) ==
        "x: /results/0: expected algbw to be 1 MiB over 100 us, which is 10.49 GB/s, found 11.48576\n  hint: a column "
        "is missing or misplaced, or the row is truncated");
  CHECK(complaint("{\"a\": 1}")
            .starts_with("x: expected a list of results, or an object with \"results\", found an object without"));
}

TEST_CASE("repetitions in a table: as many of every size, and the median counts") {
  const MeasuredTable table =
      parse_measured("bytes,time_us\n8,10\n16,20\n8,14\n16,26\n8,11\n16,21\n", "x", CollectiveOp::all_reduce);
  CHECK(figures(table) == "8 11 | 16 21");
  CHECK(table.rows[0].time_max_us == 14);
  CHECK(complaint(log() + replaced(log(), "     float     sum", "      half     sum")) ==
        "x: expected 1 KiB with one type, operation and root, found \"float sum -1\" in run 1 and \"half sum -1\" in "
        "run 2\n  hint: "
        "choose a run with --run N");
  CHECK(complaint(
            replaced(log(), "# Out of bounds",
                     "        1024           512      half     sum      -1    11.00    0.09    0.09       0    10.50  "
                     "  0.10    0.10       0\n# Out of bounds")) ==
        "x:15: expected 1 KiB with one type, operation and root, found \"half sum -1\" here and \"float sum -1\" on "
        "line 12\n  hint: "
        "put the rows of each type, operation and root into a separate file");
}

TEST_CASE("the published tables of validate/measured are read, each of them whole") {
  int tables = 0;
  for (const fs::path& path : test::files_in(fs::path(test::source_dir()) / "validate/measured/tables", ".csv")) {
    if (path.filename() == "copies.csv") continue;  // copies between pairs, no collective
    CAPTURE(path.string());
    const MeasuredTable table = read_measured(path.string());
    CHECK(table.about.at("id") == path.stem().string());
    CHECK(table.about.at("source").starts_with("https://"));
    CHECK(table.ranks.has_value());
    // Of one table the shortest times were not printed; all else is there.
    const bool has_holes = path.filename() == "tartan-p100dgx1-1n8g-all_reduce-nccl2.csv";
    CHECK(table.warnings.size() == (has_holes ? 8 : 0));
    const std::string text = test::read_file(path);
    std::stringstream stream(text);
    long lines = -1;  // the header
    for (std::string line; std::getline(stream, line);) lines += line.starts_with('#') ? 0 : 1;
    CHECK(static_cast<long>(table.rows.size() + table.warnings.size()) == lines);
    ++tables;
  }
  CHECK(tables == 107);
}

TEST_CASE("the logs from which tables were transcribed say the same") {
  const fs::path shared = fs::path(test::source_dir()) / "../shared/data";
  for (const fs::path& path : test::files_in(shared / "nccl-tests", ".txt")) {  // none if there is no such folder
    CAPTURE(path.string());
    const MeasuredTable log = read_measured(path.string());
    const MeasuredTable table =
        read_measured(fs::path(test::source_dir()) / "validate/measured/tables" / (path.stem().string() + ".csv"));
    REQUIRE(log.rows.size() == table.rows.size());
    CHECK(log.ranks == table.ranks);
    for (std::size_t i = 0; i < log.rows.size(); ++i) {
      CHECK(log.rows[i].bytes == table.rows[i].bytes);
      CHECK(log.rows[i].time_us == table.rows[i].time_us);
    }
  }
  for (const fs::path& path : test::files_in(shared / "measured", ".csv")) CHECK_NOTHROW(read_measured(path.string()));
}

TEST_CASE("a thousand damaged samples are read or refused, and what is read is sane") {
  int read = 0, refused = 0;
  const std::vector<fs::path> files = [] {
    std::vector<fs::path> all;
    for (const char* extension : {".txt", ".json", ".csv", ".log"})
      for (const fs::path& path : test::files_in(samples(), extension)) all.push_back(path);
    return all;
  }();
  REQUIRE(files.size() > 50);
  for (unsigned seed = 0; seed < 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string text = test::damaged(test::read_file(files[seed % files.size()]), random);
    while (random() % 3 == 0 && !text.empty()) text = test::damaged(text, random);
    try {
      const MeasuredTable table = parse_measured(text, "x", std::nullopt);
      for (const MeasuredRow& row : table.rows)
        CHECK((row.time_us > 0 && row.time_us < 1e300 && row.bytes.count >= 0 && row.in_place_us.value_or(1) > 0));
      CHECK(!table.rows.empty());
      ++read;
    } catch (const InputError&) {
      ++refused;
    }
  }
  CHECK(read > 100);  // most damage meets a figure, and figures agree with each other
  CHECK(refused > 200);
}

TEST_CASE("errors by size: each row in its band, the last band within the third; quantiles lie between neighbors") {
  constexpr std::int64_t KiB = 1024, MiB = 1024 * KiB;
  const std::vector<SizedError> errors{{{64 * KiB}, -0.5}, {{64 * KiB + 1}, 0.1}, {{8 * MiB - 1}, -0.3},
                                       {{8 * MiB}, 0.2},   {{255 * MiB}, 0.4},    {{256 * MiB}, -0.6}};
  const std::vector<ErrorBand> bands = error_bands(errors);
  REQUIRE(bands.size() == 4);
  CHECK(bands[0].name == "up to 64 KiB");
  CHECK(bands[0].rows == 1);
  CHECK(bands[1].rows == 2);
  CHECK(bands[1].median_abs == doctest::Approx(0.2));
  CHECK(bands[1].median_signed == doctest::Approx(-0.1));
  CHECK(bands[2].rows == 3);
  CHECK(bands[2].median_abs == 0.4);                 // of 0.2, 0.4, 0.6
  CHECK(bands[2].p90_abs == doctest::Approx(0.56));  // 0.9 * 2 = 1.8: 0.8 of the way from 0.4 to 0.6
  CHECK(bands[3].name == "256 MiB and more");
  CHECK(bands[3].rows == 1);
  CHECK(error_bands(std::vector<SizedError>{{{4}, 0.1}}).size() == 1);
  CHECK(quantile({3, 1, 2}, 0) == 1);
  CHECK(quantile({3, 1, 2}, 1) == 3);
}

TEST_CASE("comments of one key are joined, in their order") {
  const MeasuredTable table = parse_measured(
      "# source: a paper\n# collective: all_reduce\n# source: its appendix\n# ranks: 4\n# source: a letter\n"
      "bytes,time_us\n1024,10\n",
      "x");
  CHECK(table.about.at("source") == "a paper; its appendix; a letter");
  CHECK(table.ranks == 4);
}

TEST_CASE("OSU's rows may follow the prefix of a log without a blank") {
  for (const std::string prefix : {"node1|", "node1:", "[node1]", "node1> "}) {
    CAPTURE(prefix);
    const std::string text = each_line(
        "# OSU MPI-CUDA Allreduce Latency Test v5.7\n# Size       Avg Latency(us)\n4            12.50\n1024  20.00\n",
        [&](const std::string& line) { return prefix + line; });
    CHECK(figures(parse_measured(text, "x")) == "4 12.5 | 1024 20");
  }
}

}  // namespace measured_test
