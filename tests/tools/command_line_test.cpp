// What is typed: commands, options, values, and the mistakes in them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/sanitized.hpp"

namespace command_line_test {

using ringsim::test::command_file;
using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::ring_of_four;
using ringsim::test::run_command;
using ringsim::test::run_with_input;
using ringsim::test::temporary_file;
using ringsim::test::Words;

namespace {

std::string scenario() { return temporary_file("four.json", ring_of_four); }

/// What a mistake on the command line is answered with, but for the usage line; requires exit code 2, silence on stdout
/// and a usage line that begins with the program's name, not its path.
std::string mistake(const Words& words) {
  const Outcome outcome = run_command(words);
  CHECK(outcome.code == 2);
  CHECK(outcome.out == "");
  const std::size_t usage = outcome.err.find("usage: ringsim ");
  REQUIRE(usage != std::string::npos);
  CHECK(outcome.err.substr(usage).find('\n') == outcome.err.size() - usage - 1);
  return outcome.err.substr(0, usage);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The commands that help lists, those below others as well.
std::vector<Words> all_commands() {
  std::vector<Words> commands;
  bool listed = false;
  for (const std::string& line : lines_of(run_command({"help"}).out)) {
    if (!line.starts_with("  ")) listed = !line.starts_with("Example");
    if (!listed || !line.starts_with("  ") || line[2] == ' ') continue;
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    commands.push_back({name});
    for (const std::string& below : lines_of(run_command({"help", name}).out))
      if (below.starts_with("  " + name + ' '))
        commands.push_back({name, below.substr(3 + name.size(), below.find(' ', 3 + name.size()) - 3 - name.size())});
  }
  return commands;
}

std::string joined(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

}  // namespace

TEST_CASE("a command that is unknown is named, with the nearest one") {
  CHECK(mistake({"rnu", "x"}) == "ringsim: error: expected a command, found \"rnu\"\n  hint: did you mean \"run\"?\n");
  CHECK(mistake({"topology", "shwo", "x"}) ==
        "ringsim: error: topology: expected one of show, paths, rings, picture, import, export, found \"shwo\"\n"
        "  hint: did you mean \"show\"?\n");
  CHECK(mistake({"topology"}) ==
        "ringsim: error: topology: expected one of show, paths, rings, picture, import, export, found nothing\n");
  CHECK(mistake({}) == "ringsim: error: expected a command, found nothing\n");
  CHECK(mistake({"qqqq"}) == "ringsim: error: expected a command, found \"qqqq\"\n");
}

TEST_CASE("a first word that is no command may be an option, a command below another, or a scenario") {
  for (const char* word : {"timing", "timign"})
    CHECK(has(mistake({word, "x"}), "hint: did you mean `ringsim run --timing` or `ringsim synthesize --timing`?"));
  CHECK(has(mistake({"show", "x"}),
            "hint: did you mean `ringsim trace show` or `ringsim topology show` or "
            "`ringsim schedule show`?"));
  CHECK(has(mistake({"four.json"}), "hint: did you mean `ringsim run four.json`?"));
  CHECK(has(mistake({"--formt", "json"}), "hint: put options after the command"));
}

TEST_CASE(
    "an option that is unknown is named, with the nearest one, and words are in the order in which they were typed") {
  const std::string file = scenario();
  CHECK(mistake({"run", "--explian", file}) ==
        "ringsim: error: run: unknown option --explian\n"
        "  hint: did you mean \"--explain\"?\n");
  CHECK(mistake({"run", file, "--formt", "json", "more"}) ==
        "ringsim: error: run: unknown option --formt\n"
        "  hint: did you mean \"--format\"?\n");
  CHECK(mistake({"run", file, "one", "two"}) ==
        "ringsim: error: run: expected no further argument, found \"one\" \"two\"\n");
  CHECK(has(mistake({"crossover", file, "--formt=csv"}), "did you mean \"--format\"?"));
  CHECK(has(mistake({"sweep", file, "--explain"}),
            "did you mean `ringsim run --explain` or `ringsim compare --explain`?"));  // others'
}

TEST_CASE("what an option needs, and what it cannot be, is said with its name") {
  const std::string file = scenario();
  CHECK(mistake({"run"}) ==
        "ringsim: error: expected SCENARIO, found nothing\n  hint: SCENARIO: a scenario file (JSON) or the name of a "
        "machine; - reads standard input\n");
  CHECK(mistake({"run", file, "--format", "jsn"}) ==
        "ringsim: error: --format: expected one of table, json, jsonl, csv, nccl-tests, matrix, matrix-markdown, "
        "matrix-csv, found \"jsn\"\n"
        "  hint: did you mean \"json\"?\n");
  CHECK(mistake({"run", file, "-j", "0"}) ==
        "ringsim: error: --jobs (-j): expected a whole number from 1 to 4096, found \"0\"\n");
  CHECK(mistake({"run", file, "--format"}) == "ringsim: error: --format: expected a value, found nothing\n");
  CHECK(has(mistake({"run", file, "--format="}), "--format: expected a value after \"=\", found none"));
  CHECK(has(mistake({"run", file, "--format", "csv", "--format", "json"}),
            "--format: expected this option once, found it 2 times"));
  CHECK(has(mistake({"run", file, "--explain=yes"}), "--explain"));
  CHECK(has(mistake({"replay", file}), "expected --backend tcp|mpi|cuda|nccl, found nothing"));
  CHECK(has(mistake({"replay", file, "--backend", "tcp", "--rank", "1"}),
            "--rank: expected --hosts as well, found none"));
  CHECK(has(mistake({"replay", file, "--backend", "tcp", "--timeout", "30"}), "--timeout: expected a time"));
  CHECK(has(mistake({"probe", "--most", "1 KiB"}), "--most: expected 16 KiB to"));
  CHECK(has(mistake({"check", "--set", "topology.ranks=8"}), "--set: expected a SCENARIO to change"));
}

TEST_CASE("a change without a path or without = is a mistake of the command line") {
  const std::string file = scenario();
  CHECK(mistake({"run", file, "--set", "topology.ranks"}) ==
        "ringsim: error: --set: expected PATH=VALUE, found \"topology.ranks\"\n  hint: such as topology.ranks=16\n");
  CHECK(has(mistake({"run", file, "--set", "=8"}), "--set: expected PATH=VALUE, found \"=8\""));
  CHECK(has(mistake({"explain", file, "--whatif", "foo"}), "--whatif: expected PATH=VALUE, found \"foo\""));
  CHECK(has(mistake({"diff", file, file, "--set-b", "foo"}), "--set-b: expected PATH=VALUE"));
}

TEST_CASE("options of machines given by name are answered with the key of a scenario") {
  const std::string file = scenario();
  CHECK(has(mistake({"explain", file, "--nodes", "2"}), "hint: to change a scenario, use --set topology.nodes=N\n"));
  CHECK(has(mistake({"explain", file, "--fabric", "star"}),
            "hint: to change a scenario, use --set topology.fabric=...\n"));
}

TEST_CASE("a percentage without its sign is answered with how to write it") {
  const std::string file = scenario();
  CHECK(mistake({"compare", file, "x.csv", "--max-error", "15"}) ==
        "ringsim: error: --max-error: expected a percentage such as 15%, found \"15\"\n  hint: write 15%\n");
  CHECK(has(mistake({"sweep", file, "--baseline", "x", "--tolerance", "2"}), "hint: write 2%"));
  CHECK(has(mistake({"sweep", file, "--baseline", "x", "--tolerance", "0.02"}),
            "hint: write 2% for this share, or 0.02%"));
  CHECK(!has(mistake({"sweep", file, "--baseline", "x", "--tolerance", "two"}), "hint"));
  CHECK(has(mistake({"sweep", file, "--tolerance", "2%"}), "--tolerance: expected --baseline as well, found none"));
}

TEST_CASE("mistakes that a command finds by itself are the command line's as well") {
  const std::string file = scenario();
  CHECK(mistake({"merge", "a.jsonl", "-o", "x.foo"}) ==
        "ringsim: error: --output (-o): expected a name that ends in .jsonl, .csv or .sqlite, found \"x.foo\"\n");
  CHECK(mistake({"sweep", file, "--shard", "9/4"}) ==
        "ringsim: error: --shard: expected I/N with I from 1 to N, such as 2/4, found \"9/4\"\n");
  CHECK(mistake({"sweep", file, "--resume"}) == "ringsim: error: --resume: expected --output as well, found none\n");
  CHECK(has(mistake({"sweep", file, "--resume", "-o", "-"}), "--resume: expected a file to continue, found -o -"));
  CHECK(has(mistake({"sweep", file, "--assert", "time_us >"}), "--assert"));
}

TEST_CASE("an option that has gone says what took its place") {
  CHECK(mistake({"schedule", "export", scenario(), "--format", "msccl"}) ==
        "ringsim: error: --format has been replaced by --to\n");
  const Outcome exported = run_command({"schedule", "export", scenario(), "--to", "json"});
  CHECK(exported.code == 0);
  CHECK(nlohmann::json::parse(exported.out).is_object());
  CHECK(!has(run_command({"schedule", "export", "--help"}).out, "--format"));
}

TEST_CASE("help lists every command under its heading, and each has a help of its own with an example of it") {
  const std::string all = run_command({"help"}).out;
  CHECK(run_command({"--help"}).out == all);
  CHECK(run_command({"-h"}).out == all);
  std::size_t before = 0;
  for (const char* heading : {"\nPredict\n  predict ", "\nCheck\n  check ", "\nReplay\n  replay ", "\nLook\n  list ",
                              "\nResults\n  merge ", "\nHelp\n  help "}) {
    CAPTURE(heading);
    REQUIRE(has(all, heading));
    CHECK(all.find(heading) > before);
    before = all.find(heading);
  }
  const std::vector<Words> commands = all_commands();
  CHECK(commands.size() == 44);
  for (const Words& command : commands) {
    CAPTURE(joined(command));
    Words asked{"help"};
    asked.insert(asked.end(), command.begin(), command.end());
    const Outcome help = run_command(asked);
    CHECK(help.code == 0);
    CHECK(help.err == "");
    Words with_option = command;
    with_option.emplace_back("--help");
    CHECK(run_command(with_option).out == help.out);
    CHECK(has(help.out, "\nUsage: ringsim " + joined(command)));
    const std::string example = help.out.substr(help.out.find("\nExample\n"));
    CHECK(has(example, "ringsim " + command.front()));
    if (command.size() > 1) CHECK(has(example, joined(command)));
    for (const std::string& line : lines_of(help.out))
      if (!has(example, line)) CHECK(line.size() <= 80);  // an example is to be copied, and not wrapped
  }
}

TEST_CASE("the examples of help that need no more than the repository do what they say") {
  const std::string files = temporary_file("none", "");
  const std::string folder = std::filesystem::path(files).parent_path().string();
  int tried = 0;
  for (const Words& command : all_commands()) {
    const std::string name = joined(command);
    CAPTURE(name);
    // These take long, or a network, a GPU, or a file that nobody has.
    if (name == "check" || name.starts_with("lab") || name == "probe" || name.starts_with("replay") ||
        name.ends_with("import") || name == "merge" || name == "scorecard" || name.starts_with("man") ||
        name.starts_with("crossover") || name == "calibrate" || name.starts_with("completion"))
      continue;
    // It takes 20 s, and with sanitizers minutes; plan_command_test has smaller searches for them.
    if (ringsim::test::sanitized && name == "plan") continue;
    Words asked{"help"};
    asked.insert(asked.end(), command.begin(), command.end());
    const std::string help = run_command(asked).out;
    std::string line = help.substr(help.find("\nExample\n  ") + 11);
    while (has(line, "\\\n")) line.replace(line.find("\\\n"), 2, "");
    line.pop_back();
    REQUIRE(line.starts_with("ringsim "));
    for (const std::string here :
         {"scenarios/", "validate/", "tests/"})  // results go into the folder, files come from here
      for (std::size_t at = 0; (at = line.find(' ' + here, at)) != std::string::npos; at += here.size())
        line.insert(at + 1, ringsim::test::source_dir() + '/');
    const std::string shell =
        fmt::format("cd {} && {}{} > out 2> err", folder, command_file(), line.substr(std::string("ringsim").size()));
    CAPTURE(shell);
    CHECK(std::system(shell.c_str()) == 0);
    ++tried;
  }
  CHECK(tried >= 12);
}

TEST_CASE("help finds a command as the command line does, and version is a command and an option") {
  CHECK(mistake({"help", "rnu"}) ==
        "ringsim: error: expected a command, found \"rnu\"\n  hint: did you mean \"run\"?\n");
  CHECK(has(mistake({"help", "topology", "shwo"}), "did you mean \"show\"?"));
  CHECK(has(mistake({"help", "run", "fast"}), "did you mean \"run\"?"));
  CHECK(run_command({"version"}).out == run_command({"--version"}).out);
  CHECK(run_command({"version"}).out.starts_with("ringsim "));
  CHECK(run_command({"help"}, "/dev/full").code == 5);
}

TEST_CASE("- reads the scenario from standard input, which errors call <stdin>") {
  const Outcome outcome = run_with_input({"run", "-", "--format", "json"}, ring_of_four);
  CHECK(outcome.code == 0);
  CHECK(outcome.out == run_command({"run", scenario(), "--format", "json"}).out);
  const Outcome bad = run_with_input({"run", "-"}, "{");
  CHECK(bad.code == 3);
  CHECK(bad.err.starts_with("ringsim: error: <stdin>:1:2: expected "));
  const Outcome wrong = run_with_input({"topology", "show", "-"}, R"({"version": 1})");
  CHECK(
      wrong.err.starts_with("ringsim: error: <stdin>: expected the keys \"topology\" and \"collective\" (or "
                            "\"training\", \"inference\", \"trace\"), "
                            "found none of them\n"
                            "  hint: topology: The devices and the links between them. For example: "));
  for (const Words& command : {Words{"check"}, Words{"schedule", "check"}, Words{"crossover"}, Words{"sweep"},
                               Words{"schedule", "export", "--to", "goal"}}) {
    CAPTURE(joined(command));
    Words words = command;
    words.emplace_back("-");
    words.insert(words.end(), {"--set", "collective.algorithm=[\"ring\",\"halving_doubling\"]"});
    CHECK(run_with_input(words, ring_of_four).code == 0);
  }
}

TEST_CASE("files that a scenario from standard input names are relative to the working directory") {
  const std::string schedule = temporary_file("ring.json", "");
  const std::filesystem::path folder = std::filesystem::path(schedule).parent_path();
  REQUIRE(run_command({"schedule", "export", scenario(), "--to", "json", "-o", schedule}).code == 0);
  const std::string by_file = ringsim::test::replaced(ring_of_four, R"("ring")", R"({"file": "ring.json"})");
  const Outcome found = run_with_input({"run", "-", "--format", "json"}, by_file, folder.string());
  CHECK(found.err == "");
  CHECK(found.code == 0);
  CHECK(run_with_input({"run", "-"}, by_file, "/").code == 3);
}

TEST_CASE("compare and calibrate read their scenario from standard input as well") {
  const std::string source = ringsim::test::source_dir();
  const std::string text = ringsim::test::read_file(source + "/scenarios/examples/machines/abci-v100.json");
  const std::string measured = source + "/validate/measured/tables/abci-v100-2n4g-all_reduce.csv";
  const Words compare{"compare", "-", measured, "--format", "csv"};
  const Outcome outcome = run_with_input(compare, text);
  CHECK(outcome.code == 0);
  CHECK(lines_of(outcome.out).size() > 5);
}

TEST_CASE("run stops at a point that cannot run, and names sweep, which runs the others") {
  const std::string file = temporary_file("points.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "broadcast", "algorithm": "ring", "bytes": "1 MB"}})");
  const Words all{"--set", R"(collective.algorithm=["ring", "binomial_tree", "halving_doubling"])"};
  const Outcome several = run_command({"run", file, all[0], all[1]});
  CHECK(several.code == 3);
  CHECK(has(several.err, "halving_doubling"));
  CHECK(has(several.err, "not all of the 3 points can run; `ringsim sweep` runs those that can"));
  const Outcome one = run_command({"run", file, "--set", "collective.algorithm=halving_doubling"});
  CHECK(one.code == 3);
  CHECK_FALSE(has(one.err, "ringsim sweep"));
}

TEST_CASE("a path that cannot be right is the input's mistake, what the machine refuses is not") {
  const std::string file = scenario();
  const std::string expected =
      "ringsim: error: /no/such/x.jsonl: expected a file in a folder, found no folder \"/no/such\"\n  hint: check the "
      "path, or create the folder first\n";
  for (const Words& words :
       {Words{"run", file, "-o", "/no/such/x.jsonl"}, Words{"sweep", file, "-o", "/no/such/x.jsonl"}}) {
    const Outcome outcome = run_command(words);
    CHECK(outcome.code == 3);
    CHECK(outcome.err == expected);
  }
  const Outcome folder = run_command({"run", file, "-o", "/tmp"});
  CHECK(folder.code == 3);
  CHECK(folder.err == "ringsim: error: /tmp: expected the name of the file to write, found a folder\n");
  CHECK(run_command({"run", file, "-o", file + "/x.json"}).code == 3);  // a file is no folder
  CHECK(run_command({"run", file, "-o", "/dev/full"}).code == 5);
  const Outcome none_made = run_command({"run", file, "-o", "/proc/x.json"});  // a folder in which nobody makes files
  CHECK(none_made.code == 5);
  CHECK(none_made.err == "ringsim: error: /proc/x.json: cannot be written: No such file or directory\n");
}

TEST_CASE("--set PATH=null removes a key, so that its default holds") {
  const std::string file = temporary_file(
      "packets.json",
      ringsim::test::replaced(ring_of_four, R"("collective")",
                              R"("network": {"model": "ideal"}, "sweep": {"topology.ranks": [2, 3]}, "collective")"));
  const auto result = [&](const Words& set) {
    Words words{"run", file, "--format", "json"};
    for (const std::string& each : set) words.insert(words.end(), {"--set", each});
    return nlohmann::json::parse(run_command(words).out);
  };
  CHECK(result({}).at("results").at(0).at("model") == "ideal");
  CHECK(result({"network.model=null"}).at("results").at(0).at("model") == "fair");
  CHECK(result({"network=null"}).at("results").at(0).at("model") == "fair");
  CHECK(result({"sweep=null"}).at("results").size() == 1);
  CHECK(result({"sweep.topology.ranks=null"}).at("results").at(0).at("ranks") == 4);
  CHECK(result({"transport.channels=null"}).at("results").at(0).at("model") == "ideal");  // it was not there
  const auto refused = [&](const std::string& set) {
    const Outcome outcome = run_command({"run", file, "--set", set});
    CHECK(outcome.code == 3);
    return outcome.err;
  };
  CHECK(refused("network.modle=null") ==
        "ringsim: error: --set network.modle=null: expected a known key to remove, found /network/modle\n"
        "  hint: did you mean \"model\"? known here: model, packet, routing, seed, table\n");
  CHECK(has(refused("topology.link=null"), "expected the key \"link\""));  // it has no default
  CHECK(has(
      run_command({"run", file, "--set", "collective.bytes=[\"1 B\",\"2 B\"]", "--set", "collective.bytes.0=null"}).err,
      "expected a key to remove, found an element of a list"));
}

TEST_CASE("collectives may be spelled as MPI and NCCL do; the scenario is the same") {
  const auto hash = [](const std::string& op, const std::string& algorithm) {
    const Outcome outcome = run_command({"run", scenario(), "--format", "json", "--set", "collective.op=" + op, "--set",
                                         "collective.algorithm=" + algorithm});
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out).at("scenario").at("hash").get<std::string>();
  };
  for (const auto& [op, alias, algorithm] :
       {std::array{"all_reduce", "allreduce", "ring"}, std::array{"all_gather", "allgather", "ring"},
        std::array{"reduce_scatter", "reducescatter", "ring"}, std::array{"all_to_all", "alltoall", "direct"},
        std::array{"send_recv", "sendrecv", "direct"}}) {
    const char* const spelled = alias;
    CAPTURE(spelled);
    CHECK(hash(op, algorithm) == hash(alias, algorithm));
  }
  const Outcome unknown = run_command({"run", scenario(), "--set", "collective.op=allredcue"});
  CHECK(unknown.code == 3);
  CHECK(has(unknown.err, "hint: did you mean \"all_reduce\"?"));
  CHECK(!has(unknown.err, "alltoall"));  // one spelling of each is offered
  // `where` compares with the one spelling.
  CHECK(run_command({"run", scenario(), "--set", "collective.op=allreduce", "--set",
                     "where=[\"collective.op == 'all_reduce'\"]"})
            .code == 0);
}

TEST_CASE("--collective takes the usual spellings, and says which there are") {
  const std::string table = temporary_file("times.csv", "bytes,time_us\n1048576,100\n");
  CHECK(run_command({"compare", scenario(), table, "--collective", "allreduce"}).code == 0);
  CHECK(has(
      mistake({"compare", scenario(), table, "--collective", "allredcue"}),
      "--collective: expected the name of a collective, found \"allredcue\"\n  hint: did you mean \"all_reduce\"?"));
}

TEST_CASE("of many names an error offers the nearest, and where the others are") {
  const auto error = [](const std::string& set) { return run_command({"run", scenario(), "--set", set}).err; };
  const std::string start = "ringsim: error: --set collective.algorithm=rign: /collective/algorithm: ";
  CHECK(error("collective.algorithm=rign") ==
        start + "expected a name from `ringsim list algorithms`, found \"rign\"\n  hint: did you mean \"ring\"?\n");
  CHECK(has(
      error(
          R"(topology={"kind":"cluster","node":"dgx1v","nodes":2,"fabric":{"kind":"star","link":{"bandwidth":"1 GB/s"}}})"),
      "expected a name from `ringsim list nodes`, found \"dgx1v\"\n  hint: did you mean \"dgx-1v\"?"));
}

TEST_CASE("list --format json has names and summaries for scripts") {
  const auto lists = nlohmann::json::parse(run_command({"list", "--format", "json"}).out);
  for (const char* key : {"algorithms", "topologies", "fabrics", "nodes", "models", "routings", "protocols"}) {
    CAPTURE(key);
    REQUIRE(lists.at(key).size() >= 3);
    for (const auto& entry : lists.at(key)) {
      CHECK(!entry.at("name").get<std::string>().empty());
      CHECK(!entry.at("summary").get<std::string>().empty());
    }
  }
  const auto algorithms = nlohmann::json::parse(run_command({"list", "algorithms", "--format", "json"}).out);
  CHECK(algorithms.size() == 1);
  CHECK(algorithms.at("algorithms") == lists.at("algorithms"));
  const auto& ring = *std::find_if(lists.at("algorithms").begin(), lists.at("algorithms").end(),
                                   [](const auto& each) { return each.at("name") == "ring"; });
  CHECK(ring.at("collectives").at(0) == "all_reduce");
  CHECK(has(mistake({"list", "comparison", "--format", "json"}),
            "--format: expected the format text for the comparison"));
}

TEST_CASE("check prints its verdict; the table with -v, and of the failed rows alone without") {
  const Outcome brief = run_command({"check", scenario()});
  CHECK(brief.out == "1 points: 1 agree with the closed form, 0 failed\n");
  const Outcome whole = run_command({"check", scenario(), "-v"});
  CHECK(has(whole.out, "1.000000  good\n"));
  CHECK(whole.out.ends_with(brief.out));
  const std::string pairs = ringsim::test::source_dir() + "/scenarios/examples/machines/two-node-server.json";
  CHECK(run_command({"check", pairs}).out ==
        "4 points: 0 agree with the closed form, 0 failed\nnot compared: 4 outside the assumptions of the closed form, "
        "0 without a closed form; use -v to list them\n");
  CHECK(has(run_command({"check", pairs, "--verbose"}).out, "not compared: the ranks are neither"));
}

TEST_CASE("schedule check has one line for points whose schedules are equal but for their size") {
  const Outcome outcome =
      run_command({"schedule", "check", scenario(), "--set", "collective.bytes=[\"1 KiB\",\"1 MiB\"]", "--set",
                   "network.model=[\"ideal\",\"fair\",\"packet\"]"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.starts_with("ring all_reduce, 4 ranks, 2 sizes: proved; 48 operations, "));
  CHECK(outcome.out.find("proved") == outcome.out.rfind("proved"));
  CHECK(run_command({"schedule", "check", scenario()}).out.starts_with("ring all_reduce, 4 ranks, 1 MiB: proved; "));
}

TEST_CASE("nothing that goes into a file or a pipe is colored") {
  setenv("CLICOLOR_FORCE", "1", 1);  // others' habit; ringsim looks at the terminal
  CHECK(!has(run_command({"help"}).out, "\x1b"));
  CHECK(!has(run_command({"rnu"}).err, "\x1b"));
  unsetenv("CLICOLOR_FORCE");
}

TEST_CASE("on a terminal errors are red and headings bold, unless NO_COLOR is set or the terminal is dumb") {
  if (std::system("command -v script > /dev/null 2>&1") != 0) return;  // util-linux: runs a command on a terminal
  const auto on_terminal = [](const std::string& environment, const std::string& words) {
    const std::string out = temporary_file("typescript", "");
    const std::string line =
        fmt::format("env -u NO_COLOR TERM=xterm {} script -qec '{} {}' {} > /dev/null 2>&1 < /dev/null", environment,
                    command_file(), words, out);
    std::system(line.c_str());
    return ringsim::test::read_file(out);
  };
  CHECK(has(on_terminal("", "rnu"), "\x1b[31mringsim: error:\x1b[0m expected a command"));
  CHECK(has(on_terminal("NO_COLOR=", "help"), "\x1b[1mPredict\x1b[0m"));  // set, but empty: as if it were not
  for (const char* quiet : {"NO_COLOR=1", "TERM=dumb"}) {
    CAPTURE(quiet);
    const std::string error = on_terminal(quiet, "rnu"), help = on_terminal(quiet, "help");
    CHECK(has(error, "ringsim: error: expected a command"));
    CHECK(!has(error, "\x1b[3"));
    CHECK(has(help, "Predict"));
    CHECK(!has(help, "\x1b[1m"));
  }
}

}  // namespace command_line_test
