// The command as a user meets it: what it prints, where, and with which exit code.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace command_test {

using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

const char* ring_of_eight = R"({
  "version": 1, "name": "eight",
  "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 GiB"}
})";

std::string scenario() { return temporary_file("eight.json", ring_of_eight); }

}  // namespace

TEST_CASE("the result document is the contract's example, to the last digit") {
  const Outcome outcome = run_command({"run", scenario(), "--format", "json"});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err == "");
  const auto document = nlohmann::json::parse(outcome.out);
  CHECK(document.at("ringsim").at("version").is_string());
  CHECK(document.at("scenario").at("name") == "eight");
  CHECK(document.at("scenario").at("hash").get<std::string>().size() == 32);
  const auto& result = document.at("results").at(0);
  CHECK(result.at("collective") == "all_reduce");
  CHECK(result.at("algorithm") == "ring");
  CHECK(result.at("protocol") == "none");
  CHECK(result.at("model") == "fair");
  CHECK(result.at("ranks") == 8);
  CHECK(result.at("bytes") == 1073741824);
  // 2 * 7 steps of 128 MiB at 10 GB/s.
  CHECK(result.at("time_us").dump() == "187904.8192");
  CHECK(result.at("algbw_GBps").dump() == "5.714285714285714");
  CHECK(result.at("busbw_GBps").dump() == "10.0");
  CHECK(result.at("transfers") == 112);
  CHECK(result.at("closed_form").at("formula") == "2(K-1)(a + p/(K b))");
  CHECK(result.at("closed_form").at("time_us").dump() == "187904.8192");
  CHECK(result.at("closed_form").at("ratio").dump() == "1.0");
  CHECK(result.at("closed_form").at("holds") == true);
  CHECK(result.at("closed_form").at("because").empty());
  CHECK(result.at("bottleneck").at("link") == "gpu0 -> switch0");
  CHECK(result.at("bottleneck").at("busy").dump() == "1.0");
}

TEST_CASE("json lines: one result a line, each a document of its own") {
  const Outcome outcome =
      run_command({"run", scenario(), "--format", "jsonl", "--set", "collective.bytes=[\"1 KiB\",\"1 MiB\"]"});
  CHECK(outcome.code == 0);
  std::istringstream lines(outcome.out);
  std::string line;
  std::vector<std::int64_t> bytes;
  while (std::getline(lines, line)) bytes.push_back(nlohmann::json::parse(line).at("bytes").get<std::int64_t>());
  CHECK(bytes == std::vector<std::int64_t>{1024, 1048576});
}

TEST_CASE("where the form is no time at all there is no ratio: null, an empty field, and rows that read back") {
  // The form of no bytes over links without latency is 0 us; the run waits for a rank that is late.
  const std::string file = temporary_file("nothing.json", R"({"version": 1, "name": "nothing",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "0 B"},
      "disturbance": {"late": [{"rank": 1, "by": "1 ms"}]}})");
  for (const char* format : {"json", "jsonl"}) {
    const Outcome outcome = run_command({"run", file, "--format", format});
    REQUIRE(outcome.code == 0);
    const auto document = nlohmann::json::parse(outcome.out);  // inf is no JSON
    const auto& form = (document.contains("results") ? document.at("results").at(0) : document).at("closed_form");
    CHECK(form.at("time_us") == 0.0);
    CHECK(form.at("ratio").is_null());
  }
  CHECK(run_command({"run", file, "--format", "csv"}).out.find(",2(K-1)(a + p/(K b)),0,,false,") != std::string::npos);
  CHECK(run_command({"run", file, "--explain"}).out.find("0 us (*)") != std::string::npos);
  CHECK(run_command({"check", "-v", file}).out.find("inf") == std::string::npos);
  const std::string rows = temporary_file("nothing.jsonl", "");
  CHECK(run_command({"sweep", file, "-o", rows}).code == 0);
  const Outcome merged = run_command({"merge", rows, "-o", temporary_file("nothing.csv", "")});
  CHECK(merged.code == 0);
  CHECK(run_command({"sweep", file, "--baseline", rows, "--tolerance", "1%"}).code == 0);
}

TEST_CASE("check calls no bound good: pieces of a byte are not the form's case, a switch's segments are exact") {
  // Pieces of 1 B for 4 ranks: a block of a piece has a quarter of a byte, none or one.
  const std::string pieces = temporary_file("pieces.json", R"({"version": 1,
      "topology": {"kind": "full_mesh", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0 us"}},
      "collective": {"op": "all_to_all", "algorithm": "pairwise", "bytes": "4096 B"}, "transport": {"chunk": "1 B"}})");
  const Outcome bound = run_command({"check", "-v", pieces});
  CHECK(bound.code == 0);
  CHECK(bound.out.find("not compared") != std::string::npos);
  CHECK(bound.out.find("the sizes do not divide evenly") != std::string::npos);
  const std::string segments = temporary_file("segments.json", R"({"version": 1,
      "topology": {"kind": "star", "ranks": 13, "link": {"bandwidth": "3 GB/s", "latency": "0 us"}},
      "collective": {"op": "all_reduce", "algorithm": "in_switch", "bytes": "7 B"}})");
  const Outcome exact = run_command({"check", "-v", segments});
  CHECK(exact.code == 0);
  CHECK(exact.out.find("1.000000  good") != std::string::npos);
}

TEST_CASE("nccl-tests: thirteen columns a row, and the average") {
  const Outcome outcome = run_command({"run", scenario(), "--format", "nccl-tests"});
  CHECK(outcome.code == 0);
  std::istringstream lines(outcome.out);
  std::string line, row, last;
  while (std::getline(lines, line)) {
    if (line[0] != '#') row = line;
    last = line;
  }
  std::istringstream words(row);
  std::vector<std::string> columns;
  for (std::string word; words >> word;) columns.push_back(word);
  CHECK(columns == std::vector<std::string>{"1073741824", "1073741824", "uint8", "sum", "-1", "187904.82", "5.71",
                                            "10.00", "N/A", "187904.82", "5.71", "10.00", "N/A"});
  CHECK(last == "# Avg bus bandwidth    : 10");
}

TEST_CASE("nccl-tests: a reduce adds up at a root, a gather brings to one, an all-gather has none") {
  const auto says = [](const char* op, const char* algorithm, const std::string& columns) {
    const Outcome outcome =
        run_command({"run", scenario(), "--format", "nccl-tests", "--set", std::string("collective.op=") + op, "--set",
                     std::string("collective.algorithm=") + algorithm});
    CHECK(outcome.code == 0);
    return outcome.out.find(columns) != std::string::npos;
  };
  CHECK(says("reduce", "chain", " uint8     sum       0 "));
  CHECK(says("gather", "binomial_tree", " uint8    none       0 "));
  CHECK(says("all_gather", "ring", " uint8    none      -1 "));
}

TEST_CASE("results go to stdout, or to the file of -o, and nothing else does") {
  const std::string path = temporary_file("out.csv", "");
  const Outcome to_file = run_command({"run", scenario(), "--format", "csv", "-o", path});
  CHECK(to_file.code == 0);
  CHECK(to_file.out == "");
  const Outcome to_stdout = run_command({"run", scenario(), "--format", "csv", "--timing"});
  CHECK(to_stdout.out.find("all_reduce,ring,none,fair,8,1073741824,187904.8192,") != std::string::npos);
  CHECK(to_stdout.out.find(" s\n") == std::string::npos);
  CHECK(to_stdout.err.starts_with("1 points, 112 transfers, "));
}

TEST_CASE("the ending of a result file is its format, unless --format says another") {
  for (const char* format : {"json", "jsonl", "csv"}) {
    CAPTURE(format);
    const std::string path = temporary_file(std::string("by-ending.") + format, "");
    REQUIRE(run_command({"run", scenario(), "-o", path}).code == 0);
    CHECK(ringsim::test::read_file(path) == run_command({"run", scenario(), "--format", format}).out);
  }
  const std::string table = temporary_file("table.csv", "");
  REQUIRE(run_command({"run", scenario(), "--format", "table", "-o", table}).code == 0);
  CHECK(ringsim::test::read_file(table) == run_command({"run", scenario()}).out);
}

TEST_CASE("--explain with a format of rows alone is a warning") {
  const Outcome outcome = run_command({"run", scenario(), "--format", "csv", "--explain"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err.find("--explain: it has no effect") != std::string::npos);
  CHECK(outcome.out == run_command({"run", scenario(), "--format", "csv"}).out);
}

TEST_CASE("exit codes: 2 for the command line, 3 for the input, 5 for what the machine lacks") {
  CHECK(run_command({}).code == 2);
  CHECK(run_command({"run"}).code == 2);
  CHECK(run_command({"run", scenario(), "--format", "xml"}).code == 2);
  CHECK(run_command({"fly"}).code == 2);
  CHECK(run_command({"--version"}).code == 0);
  CHECK(run_command({"run", "--help"}).code == 0);
  CHECK(run_command({"run", "/no/such/scenario.json"}).code == 3);
  CHECK(run_command({"run", scenario(), "--set", "topology.ranks=0"}).code == 3);
  const Outcome full = run_command({"run", scenario()}, "/dev/full");
  CHECK(full.code == 5);
  CHECK(full.err == "ringsim: error: standard output: cannot be written: No space left on device\n");
  const Outcome no_folder = run_command({"run", scenario(), "-o", "/no/such/folder/result.json"});
  CHECK(no_folder.code == 3);
}

TEST_CASE("a rank that is no gpu of the topology is named with its place in the file") {
  const std::string path = scenario();
  const Outcome outcome = run_command({"run", path, "--set", "collective.ranks=[\"gpu0\",\"gpu9\"]"});
  CHECK(outcome.code == 3);
  CHECK(outcome.err ==
        fmt::format("ringsim: error: {}: /collective/ranks/1: expected the name of a GPU, found \"gpu9\"\n  hint: GPUs "
                    "are named gpu0 to gpu7; `ringsim topology show` lists them\n",
                    path));
}

TEST_CASE("ranks may be any of the gpus, in any order") {
  const Outcome outcome =
      run_command({"run", scenario(), "--format", "json", "--set", "collective.ranks=[\"gpu6\",\"gpu1\",\"gpu3\"]"});
  CHECK(outcome.code == 0);
  const auto result = nlohmann::json::parse(outcome.out).at("results").at(0);
  CHECK(result.at("ranks") == 3);
  CHECK(result.at("bottleneck").at("link").get<std::string>().find("switch0") != std::string::npos);
}

TEST_CASE("schedule show prints the ring of three: six chunks on their way in each of four steps") {
  const Outcome outcome = run_command({"schedule", "show", scenario(), "--set", "topology.ranks=3"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("    0     0     0  data[0] -> 1, data[2] += 2\n") != std::string::npos);
  CHECK(outcome.out.find("    2     0     3  data[2] -> 0, data[1] <- 1\n") != std::string::npos);
  const Outcome too_many = run_command({"schedule", "show", scenario(), "--set", "topology.ranks=17"});
  CHECK(too_many.code == 3);
}

TEST_CASE("schedule show prints a schedule once for all sizes and network models that have the same") {
  const Outcome outcome = run_command(
      {"schedule", "show", scenario(), "--set", "topology.ranks=3", "--set", R"(collective.bytes=["3 kB", "6 kB"])",
       "--set", R"(network.model=["ideal", "fair"])", "--set", R"(collective.algorithm=["ring", "direct"])"});
  REQUIRE(outcome.code == 0);
  const std::string sizes = " all_reduce, 3 ranks, 3 kB, 6 kB\n";
  const std::size_t ring = outcome.out.find("ring" + sizes), tree = outcome.out.find(sizes, ring + 10);
  REQUIRE(ring == 0);
  REQUIRE(tree != std::string::npos);
  CHECK(outcome.out.find(sizes, tree + 1) == std::string::npos);
}

TEST_CASE("a table that names no node, no neighbor, or no port of the fabric is refused at its place") {
  const std::string file = temporary_file("table.json", R"({"version": 1,
    "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 4, "fabric": {"kind": "leaf_spine",
                 "nodes_per_leaf": 2, "link": {"bandwidth": "100 Gb/s"}}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  const auto complaint = [&](const std::string& at, const std::string& to, const std::string& via) {
    const std::string entry = fmt::format(R"([{{"at": "{}", "to": "{}", "via": "{}"}}])", at, to, via);
    const std::string err = run_command({"run", file, "--set", "network.table=" + entry}).err;
    const std::string head = "ringsim: error: " + file + ": /network/table/0/";
    return err.starts_with(head) ? err.substr(head.size()) : err;
  };
  CHECK(complaint("leaf0", "node2.nic1", "spine1") == "");
  CHECK(complaint("leaf0", "node2", "spine1") == "");
  CHECK(complaint("nowhere", "*", "spine1").starts_with("at: expected the name of a node in the topology, found"));
  CHECK(complaint("leaf0", "nowhere", "spine1").starts_with("to: expected the name of a node in the topology, found"));
  CHECK(complaint("leaf0", "*", "leaf1").starts_with("via: expected a neighbor of leaf0, found \"leaf1\""));
  CHECK(complaint("leaf0", "node2.gpu1", "spine1")
            .starts_with("to: expected a NIC, a node or \"*\", found \"node2.gpu1\""));
  CHECK(complaint("leaf0", "*", "node0.nic1").starts_with("via: expected a switch, found the NIC \"node0.nic1\""));
  const Outcome twice = run_command({"run", file, "--set",
                                     R"(network.table=[{"at": "leaf0", "to": "node2", "via": "spine1"},)"
                                     R"({"at": "leaf0", "to": "node2", "via": "spine0"}])"});
  CHECK(twice.err.find("/network/table/1: expected one entry at leaf0 for node2, found another\n  hint: the first is "
                       "/network/table/0; remove one") != std::string::npos);
  CHECK(
      complaint("node0.pcie0", "*", "node0.cpu0").starts_with("at: expected a switch of the fabric, or a NIC, found"));
}

TEST_CASE("an impossible fabric is refused with the scenario's file and pointer") {
  const std::string file = temporary_file("fabric.json", R"({"version": 1,
    "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 4, "fabric": {"kind": "leaf_spine",
                 "nodes_per_leaf": 2, "oversubscription": 3, "link": {"bandwidth": "100 Gb/s"}}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  const Outcome ratio = run_command({"run", file});
  CHECK(ratio.code == 3);
  CHECK(ratio.err ==
        "ringsim: error: " + file +
            ": /topology/fabric/oversubscription: expected a whole number of uplinks per switch, found 8 NICs * 12.5 "
            "GB/s / (3 * 12.5 GB/s) = 2.66667\n  hint: possible: oversubscription 2 or 4; or nodes_per_leaf 3\n");
  const Outcome cable =
      run_command({"run", file, "--set", "topology.fabric.oversubscription=4", "--set",
                   R"(topology.fabric.cables=[{"from": "leaf0", "to": "spine9", "latency": "1 us"}])"});
  CHECK(cable.code == 3);
  CHECK(cable.err == "ringsim: error: " + file +
                         ": /topology/fabric/cables/0/to: expected the name of a switch or a NIC, found \"spine9\"\n"
                         "  hint: did you mean \"spine0\"?\n");
}

TEST_CASE("every list names what the catalogs hold") {
  const Outcome outcome = run_command({"list", "all"});
  CHECK(outcome.code == 0);
  for (const char* name : {"parameter_server", "ring", "halving_doubling", "direct", "star", "torus", "cluster",
                           "leaf_spine", "fat_tree", "dragonfly", "dgx-1v", "ideal", "packet "})
    CHECK(outcome.out.find(name) != std::string::npos);
  CHECK(run_command({"list", "planets"}).code == 2);
}

TEST_CASE("Ctrl-C ends a long run with code 130, and says how far it came") {
  const std::string folder_file = temporary_file("long.json", ring_of_eight);
  // 16384 ranks move 537 million messages: about a minute where none stands for the others. timeout(1) sends the
  // signal that Ctrl-C sends; without --foreground it sends a second one to its group, which ends ringsim at once.
  const std::string line = fmt::format(
      "timeout --foreground --preserve-status -s INT 1.5 {} run {} --no-fold --set topology.ranks=16384 > {}.out 2> "
      "{}.err",
      ringsim::test::command_file(), folder_file, folder_file, folder_file);
  const int status = std::system(line.c_str());
  CHECK(WEXITSTATUS(status) == 130);
  std::ifstream file(folder_file + ".err");
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find("ringsim: interrupted: 0 of 1 points done") == 0);
}

TEST_CASE("SIGTERM and SIGHUP end a run as Ctrl-C does; a SIGHUP that nohup keeps away is no end") {
  const std::string file = temporary_file("long.json", ring_of_eight);
  const auto code = [&](const std::string& signal) {
    const std::string line = fmt::format(
        "timeout --foreground --preserve-status -s {} 1 {} run {} --no-fold --set topology.ranks=16384 > {}.out 2> "
        "{}.err",
        signal, ringsim::test::command_file(), file, file, file);
    const int status = std::system(line.c_str());
    return WEXITSTATUS(status);
  };
  CHECK(code("TERM") == 130);
  CHECK(code("HUP") == 130);
  // 2048 ranks move 8 million messages: some seconds.
  const std::string kept = fmt::format(
      "(trap '' HUP; exec {} run {} --no-fold --set topology.ranks=2048) > {}.out 2> {}.err & p=$!; sleep 0.3; kill "
      "-HUP "
      "$p; wait $p",
      ringsim::test::command_file(), file, file, file);
  CHECK(std::system(kept.c_str()) == 0);
}

TEST_CASE("every command prints control characters of names as JSON writes them") {
  const std::string text = R"({"version": 1, "name": "a\u001b[31m",
    "topology": {"kind": "graph", "nodes": [{"name": "g\u001b[31m0", "kind": "gpu"}, {"name": "g\u009b1", "kind": "gpu"}],
                 "links": [{"from": "g\u001b[31m0", "to": "g\u009b1", "bandwidth": "10 GB/s", "latency": "0 us"}]},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "10 MB"}})";
  const std::string path = temporary_file("steering.json", text);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"run", path},
                                             {"run", path, "--explain"},
                                             {"run", path, "--format", "csv"},
                                             {"topology", "show", path},
                                             {"topology", "export", path, "--to", "dot"},
                                             {"run", path, "--set", "collective.ranks=[\"x\\u001b\"]"}}) {
    CAPTURE(words.back());
    const Outcome outcome = run_command(words);
    CHECK(outcome.out.find('\x1b') == std::string::npos);
    CHECK(outcome.err.find('\x1b') == std::string::npos);
    CHECK(outcome.out.find("\u009b") == std::string::npos);
    // DOT has blanks for them.
    CHECK((words[1] == "export" || (outcome.out + outcome.err).find("\\u001b") != std::string::npos));
  }
}

// U+202E turns what follows: "gpu", U+202E, "xls" reads "gpuslx".
TEST_CASE("characters that turn the direction of text are printed as JSON writes them, other writing as it is") {
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{{"\u202e", "\\u202e"},
                                                                          {"\u202a", "\\u202a"},
                                                                          {"\u2066", "\\u2066"},
                                                                          {"\u2069", "\\u2069"},
                                                                          {"\u200e", "\\u200e"},
                                                                          {"\u200f", "\\u200f"},
                                                                          {"\u061c", "\\u061c"}}) {
    const std::string &character = row.first, &shown = row.second;
    CAPTURE(shown);
    const std::string path = temporary_file(
        "turns.json", fmt::format(R"({{"version": 1, "name": "a{0}b", "topology": {{"kind": "star", "ranks": 2,
        "link": {{"bandwidth": "10 GB/s", "latency": "0 us"}}}},
        "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "10 MB", "ranks": ["x{0}y"]}}}})",
                                  character));
    const Outcome refused = run_command({"run", path});
    CHECK(refused.code == 3);
    CHECK(refused.err.find("x" + shown + "y") != std::string::npos);
    CHECK(refused.err.find(character) == std::string::npos);
    for (const char* format : {"table", "csv", "json"}) {
      CAPTURE(format);
      const Outcome outcome = run_command({"run", path, "--set", "collective.ranks=null", "--format", format});
      REQUIRE(outcome.code == 0);
      CHECK(outcome.out.find(character) == std::string::npos);
      if (std::string(format) != "table") CHECK(outcome.out.find("a" + shown + "b") != std::string::npos);
    }
  }
  const std::string arrow = "gpu \u2192 \u05d0\u05d1 \u2060";  // an arrow, Hebrew, a joiner
  const Outcome other = run_command(
      {"run",
       temporary_file("other.json", fmt::format(R"({{"version": 1, "name": "{}", "topology": {{"kind": "star",
        "ranks": 2, "link": {{"bandwidth": "10 GB/s", "latency": "0 us"}}}},
        "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "10 MB"}}}})",
                                                arrow)),
       "--format", "csv"});
  CHECK(other.out.find(arrow) != std::string::npos);
}

TEST_CASE("run -o replaces results of an earlier run, but nothing else without --force") {
  const std::string path = scenario();
  for (const char* format : {"table", "json", "jsonl", "csv", "nccl-tests"}) {
    CAPTURE(format);
    const std::string out = temporary_file("results", "");
    CHECK(run_command({"run", path, "--format", format, "-o", out}).code == 0);
    CHECK(run_command({"run", path, "-o", out}).code == 0);
  }
  for (const char* precious : {"my notes\n", "{\"version\": 1}", "# size time algbw busbw #wrong\n# GB/s\n"}) {
    const std::string notes = temporary_file("notes", precious);
    const Outcome refused = run_command({"run", path, "-o", notes});
    CHECK(refused.code == 2);
    CHECK(refused.err.find("use --force to overwrite it") != std::string::npos);
    CHECK(run_command({"run", path, "-o", notes, "--force"}).code == 0);
  }
}

TEST_CASE("what the JSON Schema refuses, the decoder refuses too") {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ringsim::test::source_dir() + "/tests/data/bad_scenarios")) {
    CAPTURE(entry.path().filename().string());
    const Outcome outcome = run_command({"run", entry.path().string()});
    CHECK(outcome.code == 3);
    CHECK(outcome.err.starts_with("ringsim: error: " + entry.path().string() + ": "));
    CHECK(outcome.out == "");
    ++files;
  }
  CHECK(files >= 10);
}

TEST_CASE("a stderr that cannot be written changes no exit code") {
  const std::string line =
      fmt::format("{} run /no/such.json 2>/dev/full; test $? = 3 && {} run /no/such.json 2>&-; test $? = 3",
                  ringsim::test::command_file(), ringsim::test::command_file());
  CHECK(std::system(line.c_str()) == 0);
}

TEST_CASE("a run that fails leaves the file of an earlier one as it was, and a scenario is never written over") {
  const std::string path = scenario(), kept = temporary_file("kept.csv", "scenario.name,kept");
  CHECK(run_command({"run", path, "-o", kept, "--set", "collective.ranks=[\"gpu0\",\"gpu9\"]"}).code == 3);
  const auto read = [](const std::string& name) {
    std::ifstream file(name);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  };
  CHECK(read(kept) == "scenario.name,kept");
  for (const auto& each : std::filesystem::directory_iterator(std::filesystem::path(kept).parent_path()))
    CHECK(!each.path().filename().string().starts_with("kept.csv.part"));  // nothing half done stays
  CHECK(run_command({"run", path, "-o", path}).code == 3);
  CHECK(read(path) == ring_of_eight);
}

TEST_CASE("what takes longer than simulated time can count is the input's fault, and says so") {
  for (const char* setting : {"collective.bytes=8000000 TB", "topology.link.latency=9000000 s",
                              "topology.link.bandwidth=9223372036854775807 B/s"}) {
    CAPTURE(setting);
    const Outcome outcome = run_command({"run", scenario(), "--set", setting});
    CHECK(outcome.code == 3);
    CHECK(outcome.out == "");
  }
}

TEST_CASE("a graph with links one way only runs what needs no way back") {
  const std::string path = temporary_file("one_way.json", R"({
    "version": 1,
    "topology": {"kind": "graph", "nodes": [{"name": "g0", "kind": "gpu"}, {"name": "g1", "kind": "gpu"}],
                 "links": [{"from": "g0", "to": "g1", "bandwidth": "10 GB/s", "latency": "0 us", "one_way": true}]},
    "collective": {"op": "broadcast", "algorithm": "ring", "bytes": "10 MB"}
  })");
  const Outcome outcome = run_command({"run", path, "--format", "json"});
  CHECK(outcome.code == 0);
  CHECK(nlohmann::json::parse(outcome.out).at("results").at(0).at("time_us").dump() == "1000.0");  // 10 MB at 10 GB/s
  CHECK(run_command({"topology", "show", path}).code == 0);
  CHECK(run_command({"run", path, "--set", "collective.op=all_reduce"}).code == 3);  // needs g1 -> g0
}

TEST_CASE("no two columns have one name, whatever varies") {
  const std::string path = temporary_file("lib.json", R"({"version": 1, "library": "nccl",
    "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1}, "collective": {"op": "all_reduce", "bytes": "1 MiB"}})");
  const Outcome outcome =
      run_command({"run", path, "--set", R"(library=["nccl", {"name": "nccl", "version": "2.8.3"}])"});
  REQUIRE(outcome.code == 0);
  // The column of the library has a release for each value: it needs no other.
  const std::string head = outcome.out.substr(0, outcome.out.find("time us"));
  CHECK(head.find("\nlibrary  ") != std::string::npos);
  CHECK(head.find("as set") == std::string::npos);
  // Variables are in no column, so the key is one.
  const Outcome variables =
      run_command({"run", path, "--set", R"(library=["nccl", {"name": "nccl", "env": {"NCCL_ALGO": "Tree"}}])"});
  REQUIRE(variables.code == 0);
  CHECK(variables.out.find("library as set") != std::string::npos);
  CHECK(variables.out.find("point.") == std::string::npos);
}

TEST_CASE("a value too long for a column has a number in the table and lines below it; a very long one is cut") {
  const Outcome outcome = run_command({"run", ringsim::test::source_dir() + "/scenarios/examples/networks/rails.json"});
  REQUIRE(outcome.code == 0);
  const std::size_t below = outcome.out.find("\nfabric [1]: ") + 1;
  REQUIRE(below > 0);
  CHECK(outcome.out.substr(0, below).find('{') == std::string::npos);
  for (const char* number : {"  [1]  ", "  [2]  ", "  [3]  "})
    CHECK(outcome.out.substr(0, below).find(number) != std::string::npos);
  const char* const expected =
      R"(fabric [1]: {"kind":"leaf_spine","nodes_per_leaf":2,"oversubscription":2,"link":{"bandwidth":"100
  Gb/s","latency":"150 ns"}}
fabric [2]: {"kind":"rail","nodes_per_group":4,"spines":2,"oversubscription":2,
  "link":{"bandwidth":"100 Gb/s","latency":"150 ns"}}
)";
  CHECK(outcome.out.substr(below, std::string(expected).size()) == expected);
  std::string names;
  // In steps of 7, so that no run is short for it.
  for (int i = 0; i < 512; ++i) names += fmt::format("{}\"gpu{}\"", i == 0 ? "" : ",", 7 * i % 512);
  const Outcome cut = run_command({"run", scenario(), "--set", "topology.ranks=512", "--set",
                                   "sweep.collective.ranks=[[" + names + "],[\"gpu0\",\"gpu1\"]]"});
  CHECK(cut.code == 0);
  CHECK(cut.out.find(" ... ") != std::string::npos);
}

TEST_CASE("--explain heads each block with all that varies, and says that a step's links carried all steps") {
  const std::string out =
      run_command({"run", scenario(), "--explain", "--set", "network.model=[\"ideal\", \"fair\"]"}).out;
  CHECK(out.find(", network.model ideal: ") != std::string::npos);
  CHECK(out.find(", network.model fair: ") != std::string::npos);
  CHECK(out.find("busiest carried") != std::string::npos);
  const std::string step =
      run_command({"run", ringsim::test::source_dir() + "/scenarios/examples/training/stragglers.json", "--explain"})
          .out;
  CHECK(step.find("busiest, all steps") != std::string::npos);
  CHECK(step.find("busiest carried") == std::string::npos);
}

TEST_CASE(
    "--explain shows what the links of two servers carried: without GPUDirect, both ways, the uplink carries all "
    "twice") {
  const Outcome outcome =
      run_command({"run", ringsim::test::source_dir() + "/scenarios/examples/machines/two-node-server.json",
                   "--explain", "--format", "json"});
  REQUIRE(outcome.code == 0);
  const auto results = nlohmann::json::parse(outcome.out).at("results");
  REQUIRE(results.size() == 4);
  const auto carried = [&](std::size_t result, const char* links) {
    for (const auto& group : results.at(result).at("links"))
      if (group.at("links") == links) return group.at("most_bytes").get<std::int64_t>();
    return std::int64_t{0};
  };
  // Two GPUs a switch send 256 MiB each. One way: 512 MiB up to host memory, and the same down to the adapter. Both
  // ways what comes in goes up and down as well.
  constexpr std::int64_t mib = 1 << 20;
  CHECK(carried(0, "node*.pcie* -> node*.cpu*") == 0);
  CHECK(carried(1, "node*.pcie* -> node*.cpu*") == 512 * mib);
  CHECK(carried(1, "node*.cpu* -> node*.pcie*") == 512 * mib);
  CHECK(carried(3, "node*.pcie* -> node*.cpu*") == 1024 * mib);
  CHECK(carried(3, "node*.cpu* -> node*.pcie*") == 1024 * mib);
  CHECK(carried(3, "node*.nic* -> leaf*") == 512 * mib);
  for (const auto& result : results) CHECK(result.at("inter_node").at("bytes").get<std::int64_t>() == 8 * 256 * mib);
  const auto& uplink = results.at(3).at("links").at(0);
  CHECK(uplink.at("links") == "node*.cpu* -> node*.pcie*");
  CHECK(uplink.at("count") == 8);
  CHECK(uplink.at("utilisation").get<double>() > 0.99);
  CHECK(uplink.at("utilisation").get<double>() <= 1.0);
}

TEST_CASE("a replay of more ranks than a machine carries processes is refused before it is predicted") {
  const Outcome outcome =
      run_command({"replay", scenario(), "--backend", "tcp", "--set", "topology.ranks=100000"});  // 2 * 10^10 messages
  CHECK(outcome.code == 3);
  CHECK(outcome.err.find("expected at most 1024 ranks (one process per rank on this machine), found 100000") !=
        std::string::npos);
}

TEST_CASE("a run that needs more memory than there is ends with code 5 and says so") {
#ifndef RINGSIM_SANITIZED  // sanitizers reserve more than any such limit
  // Simulated one by one, a million ranks take more than 400 MB.
  const std::string scenario = temporary_file("million.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 1000000, "link": {"bandwidth": "1 GB/s", "latency": "0 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 MiB"}})");
  const std::string said = temporary_file("said", "");
  const int status = std::system(
      ("ulimit -v 400000; '" + ringsim::test::command_file() + "' run " + scenario + " --no-fold > " + said + " 2>&1")
          .c_str());
  CHECK(WEXITSTATUS(status) == 5);
  CHECK(ringsim::test::read_file(said) ==
        "ringsim: error: out of memory: this machine is too small for the scenario\n");
#endif
}

}  // namespace command_test
