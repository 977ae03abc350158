// `ringsim sweep` and `ringsim merge` as a user meets them. What needs signals or MPI is in sweep_ended.py.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace sweep_test {

using namespace ringsim::test;

namespace {

namespace fs = std::filesystem;

/// 3 * 2 * 2 points.
const char* twelve = R"({"version": 1, "name": "twelve",
  "topology": {"kind": "star", "ranks": [2, 6, 8], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "halving_doubling"], "bytes": ["1 KiB", "1 MiB"]}})";

std::string scenario(const std::string& text = twelve) { return temporary_file("twelve.json", text); }

/// A name in a fresh folder, with nothing there.
std::string fresh(const std::string& name) {
  const std::string path = temporary_file(name, "");
  fs::remove(path);
  return path;
}

std::size_t n_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// For its lifetime.
struct Environment {
  Environment(const char* variable, const char* value) : name(variable) { setenv(variable, value, 1); }
  ~Environment() { unsetenv(name); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  const char* name;
};

}  // namespace

TEST_CASE("a sweep's rows are those of run, with the point's own hash and a key") {
  const std::string file = scenario(), out = fresh("out.jsonl");
  const Outcome swept = run_command({"sweep", file, "-o", out});
  CHECK(swept.code == 0);
  CHECK(swept.out == "");
  CHECK(swept.err == "");
  std::istringstream rows(read_file(out));
  int n = 0;
  for (std::string line; std::getline(rows, line); ++n) {
    auto row = nlohmann::json::parse(line);
    CHECK(row.at("key").get<std::string>().size() == 32);
    // The point by itself: what varied, pinned.
    std::vector<std::string> arguments{"run", file, "--format", "jsonl"};
    for (const auto& [path, value] : row.at("point").items()) {
      arguments.emplace_back("--set");
      arguments.push_back(path + "=" + value.dump());
    }
    auto alone = nlohmann::json::parse(run_command(arguments).out);
    CHECK(row.at("scenario").at("hash") == alone.at("scenario").at("hash"));
    row.erase("key");
    row.erase("point");
    CHECK(row == alone);
  }
  CHECK(n == 12);
}

TEST_CASE("threads, shards and files cannot be told from what comes out") {
  const std::string file = scenario(), whole = fresh("whole.jsonl"), one = fresh("one.jsonl"),
                    merged = fresh("m.jsonl");
  CHECK(run_command({"sweep", file, "-o", whole, "-j", "4"}).code == 0);
  CHECK(run_command({"sweep", file, "-o", one, "-j", "1"}).code == 0);
  CHECK(read_file(whole) == read_file(one));
  std::vector<std::string> merge{"merge", "-o", merged};
  std::size_t n = 0;
  for (const char* shard : {"1/5", "2/5", "3/5", "4/5", "5/5"}) {
    merge.push_back(fresh("shard.jsonl"));
    CHECK(run_command({"sweep", file, "--shard", shard, "-o", merge.back()}).code == 0);
    n += n_lines(read_file(merge.back()));
  }
  CHECK(n == 12);  // none twice
  CHECK(run_command(merge).code == 0);
  CHECK(read_file(merged) == read_file(whole));
  merge.push_back(whole);  // all of it once more
  CHECK(run_command(merge).code == 0);
  CHECK(read_file(merged) == read_file(whole));
}

TEST_CASE("to standard output rows come in the order of the points, whatever the number of threads") {
  const std::string file = scenario();
  const Outcome one = run_command({"sweep", file, "-j", "1"}), four = run_command({"sweep", file, "-j", "4"});
  CHECK(one.out == four.out);
  CHECK(n_lines(one.out) == 12);
  const auto first = nlohmann::json::parse(one.out.substr(0, one.out.find('\n')));
  CHECK(first.at("algorithm") == "ring");  // as the file has it; the final order of a file is another
  CHECK(run_command({"sweep", file}, "/dev/full").code == 5);
}

TEST_CASE("a sweep goes on with what is there, with what is torn, and when the scenario has grown") {
  const std::string file = scenario(), whole = fresh("whole.jsonl"), part = fresh("part.jsonl");
  CHECK(run_command({"sweep", file, "-o", whole}).code == 0);
  const std::string all = read_file(whole);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, all.find('\n'), all.find('\n') + 1, all.size() / 2,
                                  all.size() - 1, all.size()}) {
    CAPTURE(bytes);
    std::ofstream(part, std::ios::binary | std::ios::trunc) << all.substr(0, bytes);
    const Outcome rest = run_command({"sweep", file, "-o", part, "--resume"});
    CHECK(rest.code == 0);
    CHECK(read_file(part) == all);
    const bool torn = bytes > 0 && all[bytes - 1] != '\n';
    CHECK((rest.err == part + ": the last line was incomplete and has been dropped\n") == torn);
  }
  // Of 12 points 4 are new; the others keep their rows.
  const std::string grown = scenario(ringsim::test::replaced(twelve, "[2, 6, 8]", "[2, 6, 8, 12]"));
  CHECK(
      run_command({"sweep", grown, "-o", part, "--resume", "--dry-run"}).out ==
      "points\nin all combinations  16\nexcluded by where     0\nequal to another      0\nalready done         12\nto "
      "do                 4\n");
  CHECK(run_command({"sweep", grown, "-o", part, "--resume"}).code == 0);
  const std::string again = fresh("again.jsonl");
  CHECK(run_command({"sweep", grown, "-o", again}).code == 0);
  CHECK(read_file(part) == read_file(again));
}

TEST_CASE("without --resume what is there stays; with it what is not this sweep's is refused") {
  const std::string file = scenario(), out = temporary_file("out.jsonl", "precious\n");
  const Outcome refused = run_command({"sweep", file, "-o", out});
  CHECK(refused.code == 3);
  CHECK(refused.err == "ringsim: error: " + out +
                           ": expected no file, or an empty one, found 9 bytes\n  hint: to continue a sweep, add "
                           "--resume; otherwise give another file, or remove this one\n");
  const Outcome corrupt = run_command({"sweep", file, "-o", out, "--resume"});
  CHECK(corrupt.code == 3);
  CHECK(corrupt.err.starts_with("ringsim: error: " + out + ":1:1: expected a value"));
  CHECK(read_file(out) == "precious\n");
  const std::string other = fresh("other.jsonl");
  const std::string shrunk = scenario(ringsim::test::replaced(twelve, "[2, 6, 8]", "[2, 6]"));
  CHECK(run_command({"sweep", file, "-o", other}).code == 0);
  const std::string before = read_file(other);
  const Outcome foreign = run_command({"sweep", shrunk, "-o", other, "--resume"});
  CHECK(foreign.code == 3);
  CHECK(foreign.err.find("expected a result of this scenario with this version of ringsim and its model, found "
                         "another: topology.ranks 8") != std::string::npos);
  CHECK(read_file(other) == before);
  CHECK(run_command({"sweep", file, "--resume"}).code == 2);
  const std::string scenario_itself = temporary_file("scenario.jsonl", twelve);
  CHECK(run_command({"sweep", scenario_itself, "-o", scenario_itself}).code == 3);
  CHECK(run_command({"sweep", file, "-o", "/no/such/folder/out.jsonl"}).code == 3);
  CHECK(run_command({"sweep", file, "-o", "/dev/full"}).code == 5);
}

TEST_CASE("two sweeps do not write into one file") {
  const std::string file = scenario(), out = temporary_file("out.jsonl", "");
  const int held = open(out.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(flock(held, LOCK_EX | LOCK_NB) == 0);
  const Outcome second = run_command({"sweep", file, "-o", out, "--resume"});
  CHECK(second.code == 5);
  CHECK(second.err ==
        "ringsim: error: " + out +
            ": another sweep is writing to it\n  hint: give each sweep its own -o, and merge the files\n");
  close(held);
  CHECK(run_command({"sweep", file, "-o", out, "--resume"}).code == 0);
}

TEST_CASE("a point that fails is a row with its error, without a word of where the file lies, and exit code 1") {
  // An all-to-all is no ring's work.
  const char* text = R"({"version": 1, "name": "f",
    "topology": {"kind": "star", "ranks": [6, 8], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": ["all_reduce", "all_to_all"], "algorithm": "ring", "bytes": "1 MiB"}})";
  const std::string file = scenario(text), out = fresh("out.jsonl");
  const Outcome swept = run_command({"sweep", file, "-o", out});
  CHECK(swept.code == 1);
  const std::string rows = read_file(out);
  CHECK(n_lines(rows) == 4);
  CHECK(rows.find(fs::path(file).parent_path().string()) == std::string::npos);
  std::istringstream lines(rows);
  int failed = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto row = nlohmann::json::parse(line);
    if (!row.contains("error")) continue;
    ++failed;
    CHECK(row.at("point").at("collective.op") == "all_to_all");
    CHECK(row.at("error").at("kind") == "input");
    CHECK(row.at("error").at("where") == "/collective/algorithm");
    CHECK_FALSE(row.contains("time_us"));
  }
  CHECK(failed == 2);
  CHECK(
      swept.err.starts_with("2 of 4 results are errors:\n  topology.ranks 6, collective.op all_to_all: /collective/"));
  CHECK(has(swept.err, "; hint: "));
  // They are known, and not tried again; the exit code still tells of them.
  CHECK(run_command({"sweep", file, "-o", out, "--resume"}).code == 1);
  CHECK(read_file(out) == rows);
  // Where the scenario drops them, so does the file.
  const std::string mended =
      scenario(ringsim::test::replaced(text, R"(["all_reduce", "all_to_all"])", R"(["all_reduce", "all_gather"])"));
  const Outcome gone = run_command({"sweep", mended, "-o", out, "--resume"});
  CHECK(gone.code == 0);
  CHECK(gone.err == out + ": dropped 2 errors of points that are no longer in the scenario\n");
  CHECK(read_file(out).find("\"error\"") == std::string::npos);
}

TEST_CASE("a scenario's jobs have a row each, and a point with only some of them is not done") {
  const std::string file = scenario(R"({"version": 1, "name": "j",
    "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": ["1 KiB", "1 MiB"],
                   "ranks": ["gpu0", "gpu1", "gpu2", "gpu3"]},
    "jobs": [{"name": "other", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB",
                                              "ranks": ["gpu4", "gpu5", "gpu6", "gpu7"]}}]})");
  const std::string out = fresh("out.jsonl");
  CHECK(run_command({"sweep", file, "-o", out}).code == 0);
  const std::string rows = read_file(out);
  CHECK(n_lines(rows) == 4);
  // Cut behind a point's first row: a write that ended there would look whole.
  std::ofstream(out, std::ios::binary | std::ios::trunc) << rows.substr(0, rows.find('\n') + 1);
  CHECK(run_command({"sweep", file, "-o", out, "--resume"}).code == 0);
  CHECK(read_file(out) == rows);
}

TEST_CASE("equal points are simulated once, and told by --dry-run; so is what `where` leaves out") {
  const std::string file = scenario(R"({"version": 1, "where": ["collective.bytes < 1 MiB or topology.ranks == 8"],
    "topology": {"kind": "star", "ranks": [2, 8], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["ring", "ring"], "bytes": ["1 KiB", "1 MiB"]}})");
  CHECK(run_command({"sweep", file, "--dry-run", "--shard", "1/2"}).out ==
        "points\nin all combinations  8\nexcluded by where    2\nequal to another     3\nin shard 1/2         2\n"
        "already done         0\nto do                2\n");
  CHECK(n_lines(run_command({"sweep", file}).out) == 3);
}

TEST_CASE("shards have equally many messages, however the costs of points lie") {
  // Points alternate between 2 * 8 * 7 and 2 * 63 * 62 messages: every fourth one would be of one kind.
  const std::string file = scenario(R"({"version": 1, "name": "alternating",
    "topology": {"kind": "star", "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring"},
    "sweep": {"collective.bytes": ["1 MiB", "2 MiB", "3 MiB", "4 MiB", "5 MiB", "6 MiB", "7 MiB", "8 MiB"],
              "topology.ranks": [8, 63]}})");
  Words merge{"merge"};
  for (const char* shard : {"1/4", "2/4", "3/4", "4/4"}) {
    merge.push_back(fresh("shard.jsonl"));
    REQUIRE(run_command({"sweep", file, "--shard", shard, "-o", merge.back()}).code == 0);
    std::istringstream rows(read_file(merge.back()));
    std::int64_t messages = 0;
    for (std::string line; std::getline(rows, line);)
      messages += nlohmann::json::parse(line).at("transfers").get<std::int64_t>();
    CHECK(messages == 2 * (2 * 8 * 7 + 2 * 63 * 62));
  }
  // One point of 2 * 63 * 62 messages outweighs seven of 2 * 8 * 7: it has a shard for itself.
  const std::string one_large = scenario(R"({"version": 1, "name": "one large",
    "topology": {"kind": "star", "ranks": [8, 63], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "where": ["topology.ranks == 8 or collective.bytes == 1 MiB"],
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": {"from": "1 MiB", "to": "7 MiB", "step": "1 MiB"}}})");
  CHECK(n_lines(run_command({"sweep", one_large, "--shard", "1/2"}).out) == 1);
  CHECK(n_lines(run_command({"sweep", one_large, "--shard", "2/2"}).out) == 7);
  const std::string whole = fresh("whole.jsonl");
  REQUIRE(run_command({"sweep", file, "-o", whole}).code == 0);
  merge.insert(merge.end(), {"-o", "-"});
  CHECK(run_command(merge).out == read_file(whole));
}

TEST_CASE("--status says how far a sweep is by the files of its shards, and simulates nothing") {
  const std::string file = scenario(), one = fresh("one.jsonl"), three = fresh("three.jsonl");
  REQUIRE(run_command({"sweep", file, "--shard", "1/3", "-o", one}).code == 0);
  REQUIRE(run_command({"sweep", file, "--shard", "3/3", "-o", three}).code == 0);
  const Outcome both = run_command({"sweep", file, "--status", one, "--status", three});
  CHECK(both.code == 0);
  CHECK(has(both.out, "\ntogether"));
  std::istringstream lines(both.out);
  std::vector<std::vector<std::string>> table;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    table.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  REQUIRE(table.size() == 5);  // a heading, two files, together, to do
  const auto done = [&](std::size_t row) { return std::stoi(table[row][1]); };
  CHECK(done(1) + done(2) == done(3));
  CHECK(table[4][2] == std::to_string(12 - done(3)));  // "to do" has two words
  CHECK(table[3][2] == "0");                           // none failed
  // A row that is being written has no end yet.
  std::ofstream(one, std::ios::app) << R"({"ringsim":{"version")";
  CHECK(run_command({"sweep", file, "--status", one, "--status", three}).out == both.out);
  CHECK(run_command({"sweep", file, "--status", fresh("none.jsonl")}).code == 3);
  CHECK(run_command({"sweep", scenario(R"({"version": 1, "name": "another",
    "topology": {"kind": "star", "ranks": 3, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 KiB"}})"),
                     "--status", three})
            .code == 3);
}

TEST_CASE("Slurm's job array is the default shard, and stderr says so") {
  const std::string file = scenario();
  const Environment id("SLURM_ARRAY_TASK_ID", "7"), count("SLURM_ARRAY_TASK_COUNT", "3"),
      first("SLURM_ARRAY_TASK_MIN", "5");
  const Outcome third = run_command({"sweep", file});
  CHECK(third.err == "shard 3/3, from the Slurm job array\n");
  CHECK(third.out == run_command({"sweep", file, "--shard", "3/3"}).out);
  CHECK(n_lines(third.out) > 0);
  CHECK(n_lines(third.out) < 12);
  {
    const Environment step("SLURM_ARRAY_TASK_STEP", "2");
    CHECK(run_command({"sweep", file}).err == "shard 2/3, from the Slurm job array\n");
  }
  {
    const Environment odd("SLURM_ARRAY_TASK_ID", "12");
    CHECK(
        run_command({"sweep", file}).err.starts_with("ringsim: error: SLURM_ARRAY_TASK_ID: expected one of 3 numbers"));
  }
  for (const char* wrong : {"0/3", "4/3", "1", "1/", "/3", "a/b", "1/3/5", "-1/3"})
    CHECK(run_command({"sweep", file, "--shard", wrong}).code == 2);
}

TEST_CASE(
    "gates: assertions, a regression in one link's bandwidth against the baseline, and the verdict as JUnit XML") {
  const std::string file = scenario(), base = fresh("base.jsonl"), xml = fresh("gates.xml");
  REQUIRE(run_command({"sweep", file, "-o", base}).code == 0);
  CHECK(run_command({"sweep", file, "--baseline", base}).code == 0);
  // 1 MiB over 8 ranks at 10 GB/s is 5.7 GB/s of algbw at most.
  const Outcome held =
      run_command({"sweep", file, "--assert", "algbw_GBps < 6 where topology.ranks == 8", "--assert",
                   "time_us > 100 where bytes == 1024 and collective.algorithm == 'ring'", "--junit", xml});
  CHECK(held.code == 1);
  CHECK(
      held.err.starts_with("3 gate failures:\n  topology.ranks 2, collective.algorithm ring, collective.bytes 1 KiB: "
                           "time_us > 100 where bytes == 1024 and"));
  const std::string verdict = read_file(xml);
  CHECK(verdict.find("<testsuite name=\"twelve\" tests=\"12\" failures=\"3\" errors=\"0\" skipped=\"0\">") !=
        std::string::npos);
  // A slower link at one rank: a fault of a star, so the points with fewer ranks than it need not move.
  const Outcome moved = run_command({"sweep", file, "--baseline", base, "--tolerance", "2%", "--set",
                                     R"(faults=[{"link": "gpu1 -> switch0", "bandwidth": "90%"}])"});
  CHECK(moved.code == 1);
  CHECK(moved.err.find("topology.ranks 8, collective.algorithm ring, collective.bytes 1 MiB: slower: ") !=
        std::string::npos);
  CHECK(moved.err.find("bytes 1 KiB: slower") == std::string::npos);  // mostly latency: within the tolerance
  CHECK(moved.err.find("baseline: 12 results compared, 6 changed by more than 2 %, at most by ") != std::string::npos);
  // Points that fail now and did not then are errors, and no failures besides.
  const Outcome lost = run_command(
      {"sweep", file, "--baseline", base, "--junit", xml, "--set", R"(faults=[{"link": "gpu1", "state": "down"}])"});
  CHECK(lost.code != 0);
  const std::string errors = read_file(xml);
  CHECK(errors.find(R"(<testsuite name="twelve" tests="12" failures="0" errors="12" skipped="0">)") !=
        std::string::npos);
  CHECK(errors.find("<failure") == std::string::npos);
  CHECK(run_command({"sweep", file, "--tolerance", "2%"}).code == 2);
  CHECK(run_command({"sweep", file, "--baseline", base, "--tolerance", "2"}).code == 2);
  CHECK(run_command({"sweep", file, "--assert", "time_us >"}).code == 2);
}

TEST_CASE("merge writes CSV and SQLite, and refuses what it cannot read or name") {
  const std::string file = scenario(), out = fresh("out.jsonl"), csv = fresh("out.csv"), base = fresh("out.sqlite");
  REQUIRE(run_command({"sweep", file, "-o", out}).code == 0);
  CHECK(run_command({"merge", out, "-o", csv}).code == 0);
  const std::string table = read_file(csv);
  CHECK(n_lines(table) == 13);
  CHECK(table.starts_with("scenario.name,collective,algorithm,"));
  CHECK(run_command({"merge", out, "-o", base}).code == 0);
  CHECK(read_file(base).starts_with("SQLite format 3"));
  CHECK(run_command({"merge", out, "-o", base}).code == 0);  // replaced, not added to
  CHECK(run_command({"merge", out, "-o", "-"}).out == read_file(out));
  CHECK(run_command({"merge", out, "-o", fresh("out.xlsx")}).code == 2);
  CHECK(run_command({"merge", "/no/such.jsonl", "-o", csv}).code == 3);
  CHECK(run_command({"merge", temporary_file("empty", ""), "-o", csv}).code == 3);
  CHECK(run_command({"merge", out, "-o", "/no/such/folder/x.sqlite"}).code == 3);
  CHECK(run_command({"merge", out, "-o", "-"}, "/dev/full").code == 5);
}

TEST_CASE("in a database a row has its own values, and none where it has no such column") {
  if (std::system("python3 -c 'import sqlite3' > /dev/null 2>&1") != 0) return;  // nothing here reads it
  // A chain has a number of segments, a ring has none. Sorted by ranks first, a ring's rows come after a chain's.
  const std::string file = scenario(ringsim::test::replaced(twelve, R"(["ring", "halving_doubling"])",
                                                            R"(["ring", {"name": "chain", "segments": 3}])"));
  const std::string out = fresh("out.jsonl"), base = fresh("out.sqlite"), said = fresh("said");
  REQUIRE(run_command({"sweep", file, "-o", out}).code == 0);
  REQUIRE(run_command({"merge", out, "-o", base}).code == 0);
  const std::string program =
      "import sqlite3; print(sqlite3.connect(\"" + base +
      "\").execute(\"SELECT algorithm, \\\"parameters.segments\\\", count(*) FROM results GROUP BY 1, 2\").fetchall())";
  REQUIRE(std::system(("python3 -c '" + program + "' > " + said).c_str()) == 0);
  CHECK(read_file(said) == "[('chain', 3, 6), ('ring', None, 6)]\n");
}

TEST_CASE("run --format csv and merge -o x.csv have the same header and the same rows") {
  // Several algorithms with parameters: their first rows, and so their columns, come in another order in the file.
  const std::string file = source_dir() + "/scenarios/star.json", out = fresh("out.jsonl"), csv = fresh("out.csv");
  REQUIRE(run_command({"sweep", file, "-o", out}).code == 0);
  REQUIRE(run_command({"merge", out, "-o", csv}).code == 0);
  const auto sorted = [](const std::string& text) {  // merge sorts by what varies, run keeps the scenario's order
    std::istringstream in(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    std::sort(lines.begin() + 1, lines.end());
    return lines;
  };
  const auto of_run = sorted(run_command({"run", file, "--format", "csv"}).out), of_merge = sorted(read_file(csv));
  REQUIRE(of_run.size() == 25);
  CHECK(of_run.front() == of_merge.front());
  CHECK(of_run == of_merge);
}

TEST_CASE("what is no row that was cut off is not dropped: the file of something else stays as it is") {
  const std::string file = scenario();
  for (const char* other : {R"({"version": 1, "note": "another file, minified"})", "notes", R"({"ringsim":{"other")"}) {
    const std::string out = temporary_file("other.jsonl", other);
    const Outcome outcome = run_command({"sweep", file, "-o", out, "--resume"});
    CHECK(outcome.code == 3);
    CHECK(outcome.err.find(out + ":1: expected a ringsim result, or the start of an incomplete one, found other") !=
          std::string::npos);
    CHECK(read_file(out) == other);
    CHECK(run_command({"merge", out, "-o", fresh("m.csv")}).code == 3);
  }
}

TEST_CASE("what is read is never written over, nor are results by the verdict") {
  const std::string file = scenario(), out = fresh("out.jsonl"), baseline = fresh("base.jsonl");
  REQUIRE(run_command({"sweep", file, "-o", baseline}).code == 0);
  const std::string before = read_file(baseline);
  CHECK(run_command({"sweep", file, "--junit", file}).code == 3);
  CHECK(run_command({"sweep", file, "-o", out, "--junit", out}).code == 3);  // neither is there yet
  CHECK(run_command({"sweep", file, "--baseline", baseline, "--junit", baseline}).code == 3);
  CHECK(run_command({"sweep", file, "--baseline", baseline, "-o", baseline, "--resume"}).code == 3);
  CHECK(read_file(file) == twelve);
  CHECK(read_file(baseline) == before);
  CHECK(!fs::exists(out));
}

TEST_CASE("results that are nested without end are refused") {
  std::string nested = R"({"ringsim":{"version":"1","model_version":2},"scenario":{"name":"n"},"time_us":1,"more":)";
  for (int i = 0; i < 200000; ++i) nested += R"({"a":)";
  nested += '1' + std::string(200000, '}') + "}\n";
  const Outcome outcome = run_command({"merge", temporary_file("deep.jsonl", nested), "-o", fresh("m.csv")});
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find(": expected at most 64 levels of nesting, found more") != std::string::npos);
}

TEST_CASE("merge does not take away the file of a sweep that runs, and says where what it reads is not all") {
  const std::string file = scenario(), running = fresh("running.jsonl"), merged = fresh("merged.jsonl");
  REQUIRE(run_command({"sweep", file, "-o", running}).code == 0);
  const std::string before = read_file(running);
  const int sweep = open(running.c_str(), O_RDWR);
  REQUIRE(flock(sweep, LOCK_EX | LOCK_NB) == 0);
  const Outcome onto = run_command({"merge", running, "-o", running});
  CHECK(onto.code == 5);
  CHECK(onto.err.find(running + ": a sweep is writing to it") != std::string::npos);
  CHECK(read_file(running) == before);
  const Outcome from = run_command({"merge", running, "-o", merged});
  CHECK(from.code == 0);
  CHECK(from.err.find("warning: " + running + ": a sweep is writing to it") != std::string::npos);
  close(sweep);
  CHECK(run_command({"merge", running, "-o", merged}).err == "");
}

TEST_CASE("a user's own file of a like name is not touched by what is written") {
  const std::string file = scenario(), out = fresh("out.jsonl");
  for (const char* ending : {".jsonl", ".csv", ".sqlite"}) {
    const std::string merged = fresh("merged") + ending, own = merged + ".part";
    std::ofstream(own) << "mine";
    fs::remove(out);
    std::ofstream(out + ".part") << "mine";
    CHECK(run_command({"sweep", file, "-o", out}).code == 0);
    CHECK(run_command({"merge", out, "-o", merged}).code == 0);
    CHECK(read_file(own) == "mine");
    CHECK(read_file(out + ".part") == "mine");
    CHECK((fs::status(merged).permissions() & fs::perms::owner_read) != fs::perms::none);
    for (const auto& each : fs::directory_iterator(fs::path(merged).parent_path()))
      CHECK(each.path().string().find(".part-") == std::string::npos);
  }
}

TEST_CASE("a scenario without a name, in a file whose name is no text, is refused") {
  const std::string file = fs::path(scenario()).parent_path().string() + "/bad\xFF.json";
  std::ofstream(file) << ringsim::test::replaced(twelve, R"("name": "twelve",)", "");
  const Outcome outcome = run_command({"sweep", file});
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find("expected a file name in UTF-8") != std::string::npos);
  std::ofstream(file, std::ios::trunc) << twelve;
  CHECK(run_command({"sweep", file}).code == 0);
}

TEST_CASE("a matrix is made of what run wrote, as it is by run; else merge refuses such files and says what it takes") {
  const std::string scenario = ringsim::test::source_dir() + "/scenarios/questions/12-nvls.json",
                    kept = ringsim::test::source_dir() + "/scenarios/questions/12-nvls.csv";
  const std::vector<std::string> matrix{"--format",  "matrix", "--rows", "library.env.NCCL_ALGO",
                                        "--columns", "bytes",  "--cell", "busbw_GBps"};
  std::vector<std::string> by_run{"run", scenario}, of_kept{"merge", kept, "-o", "-"};
  by_run.insert(by_run.end(), matrix.begin(), matrix.end());
  of_kept.insert(of_kept.end(), matrix.begin(), matrix.end());
  const auto ran = run_command(by_run), merged = run_command(of_kept);
  CHECK(ran.code == 0);
  CHECK(merged.code == 0);
  CHECK(merged.out == ran.out);
  const auto refused = run_command({"merge", kept, "-o", "-"});
  CHECK(refused.code == 3);
  CHECK(refused.err == "ringsim: error: " + kept +
                           ": expected JSON lines, as `ringsim sweep` writes them, found CSV\n  hint: these files can "
                           "only be merged into a matrix: --format matrix --rows COLUMN --columns COLUMN\n");
  // The content tells, not the name.
  const auto missing = run_command({"merge", "/nowhere/all.csv", "-o", "-"});
  CHECK(missing.code == 3);
  CHECK(missing.err == "ringsim: error: /nowhere/all.csv: expected a results file, found no file of that name\n");
}

}  // namespace sweep_test
