// Completion in shells, and man pages: made of the same table as the commands.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace shell_test {

using namespace ringsim::test;

namespace {

namespace fs = std::filesystem;
bool is_there(const char* program) {
  return std::system(fmt::format("command -v {} > /dev/null 2>&1", program).c_str()) == 0;
}

/// What bash offers for the last of the words, as `complete` would ask for it.
std::set<std::string> offered(const Words& words) {
  const std::string out = temporary_file("offered", "");
  std::string array;
  for (const std::string& word : words) array += fmt::format(" '{}'", word);
  const std::string script = fmt::format(
      "source <({} completion bash)\ncd {}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_ringsim\n"
      "printf '%s\\n' \"${{COMPREPLY[@]}}\" > {}\n",
      command_file(), ringsim::test::source_dir(), array, words.size() - 1, out);
  CHECK(std::system(fmt::format("bash {}", temporary_file("script", script)).c_str()) == 0);
  std::set<std::string> lines;
  std::istringstream in(read_file(out));
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.insert(line);
  return lines;
}

using Set = std::set<std::string>;

}  // namespace

TEST_CASE("bash completes commands, commands below them, options, values and files") {
  CHECK(offered({"ringsim", "r"}) == Set{"replay", "run"});
  CHECK(offered({"ringsim", ""}).contains("topology"));
  CHECK(offered({"ringsim", "--v"}) == Set{"--version"});
  CHECK(offered({"ringsim", "topology", ""}) == Set{"export", "import", "paths", "picture", "rings", "show"});
  CHECK(offered({"ringsim", "run", "--fo"}) == Set{"--force", "--format"});
  CHECK(offered({"ringsim", "run", "--format", "j"}) == Set{"json", "jsonl"});
  CHECK(offered({"ringsim", "run", "--format", "=", "j"}) == Set{"json", "jsonl"});  // bash's words of --format=j
  CHECK(offered({"ringsim", "run", "--format", "="}) ==
        Set{"csv", "json", "jsonl", "matrix", "matrix-csv", "matrix-markdown", "nccl-tests", "table"});
  CHECK(offered({"ringsim", "run", "scenarios/st"}).contains("scenarios/star.json"));
  CHECK(offered({"ringsim", "run", "-o", "scenarios/st"}).contains("scenarios/star.json"));
  CHECK(offered({"ringsim", "run", "-j", ""}).empty());
  CHECK(offered({"ringsim", "schedule", "export", "scenarios/star.json", "--to", ""}) ==
        Set{"goal", "json", "msccl", "mscclpp"});
  CHECK(!offered({"ringsim", "schedule", "export", "--"}).contains("--format"));  // it has gone
  CHECK(offered({"ringsim", "list", "a"}) == Set{"algorithms", "all"});
  CHECK(offered({"ringsim", "compare", "a", "b", "--collective", "all_r"}) == Set{"all_reduce"});
  CHECK(offered({"ringsim", "help", "to"}) == Set{"topology"});
  CHECK(offered({"ringsim", "predict", "all_reduce", "--node", "dgx-h"}) == Set{"dgx-h100", "dgx-h200"});
  CHECK(offered({"ringsim", "predict", "all_reduce", "--node", "scen"}) == Set{"scenarios"});  // it may be a file
  CHECK(offered({"ringsim", "plan", "llama3_70b", "--node", "p5.4"}) == Set{"p5.48xlarge"});
  CHECK(offered({"ringsim", "plan", "llama3_70b", "--node", "scen"}) == Set{"scenarios"});
  CHECK(offered({"ringsim", "run", "topo.txt", "--like", "p5.4"}) == Set{"p5.48xlarge"});
  CHECK(offered({"ringsim", "run", "topo.txt", "--like", "scen"}).empty());  // a name, never a file
  CHECK(offered({"ringsim", "completion", "z"}) == Set{"zsh"});
}

TEST_CASE("zsh and fish read their scripts without a complaint") {
  for (const auto& [shell, check] :
       {std::pair{"bash", "-n"}, std::pair{"zsh", "-n"}, std::pair{"fish", "--no-execute"}}) {
    const char* const name = shell;
    CAPTURE(name);
    const Outcome script = run_command({"completion", shell});
    CHECK(script.code == 0);
    for (const char* part : {"topology", "paths", "nccl-tests", "schema"}) CHECK(has(script.out, part));
    if (!is_there(shell)) continue;
    const std::string file = temporary_file("script", script.out);
    CHECK(std::system(fmt::format("{} {} {}", shell, check, file).c_str()) == 0);
  }
  CHECK(run_command({"completion", "tcsh"}).code == 2);
  CHECK(run_command({"completion"}).code == 2);
}

TEST_CASE("fish offers the same") {
  if (!is_there("fish")) return;
  const std::string script = temporary_file("ringsim.fish", run_command({"completion", "fish"}).out);
  const auto offers = [&](const std::string& line) {
    const std::string out = temporary_file("out", "");
    CHECK(std::system(fmt::format("fish --no-config -c \"source {}; cd {}; complete -C '{}'\" > {}", script,
                                  ringsim::test::source_dir(), line, out)
                          .c_str()) == 0);
    return read_file(out);
  };
  CHECK(has(offers("ringsim r"), "run\t"));
  CHECK(has(offers("ringsim topology "), "paths\t"));
  CHECK(!has(offers("ringsim topology "), "sweep\t"));
  CHECK(has(offers("ringsim run --format "), "jsonl"));
  CHECK(has(offers("ringsim run --expl"), "--explain"));
  CHECK(has(offers("ringsim schedule export --to "), "msccl"));
}

TEST_CASE("there is a man page for ringsim and for every command, and roff reads it without a warning") {
  const std::string folder = fs::path(temporary_file("none", "")).parent_path().string();
  REQUIRE(run_command({"man", "-o", folder}).code == 0);
  int pages = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".1")) continue;
    CAPTURE(name);
    ++pages;
    const std::string page = read_file(entry.path());
    for (const char* part : {".TH RINGSIM", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH EXIT STATUS\n", ".SH EXAMPLE\n"})
      CHECK(has(page, part));
    if (!is_there("groff")) continue;
    const std::string said = temporary_file("said", "");
    CHECK(std::system(fmt::format("groff -man -Tascii -ww -z {} 2> {}", entry.path().string(), said).c_str()) == 0);
    CHECK(read_file(said) == "");
  }
  CHECK(pages == 45);
  CHECK(run_command({"man"}).out == read_file(fs::path(folder) / "ringsim.1"));
  CHECK(run_command({"man", "topology", "show"}).out == read_file(fs::path(folder) / "ringsim-topology-show.1"));
  const std::string run = run_command({"man", "run"}).out;
  CHECK(has(run, "ringsim\\-run \\- simulate every point of a scenario\n"));
  CHECK(has(run, "\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR\n"));
  CHECK(has(run_command({"man", "rnu"}).err, "did you mean \"run\"?"));
  CHECK(run_command({"man", "-o", "/no/such/folder"}).code == 3);
  CHECK(run_command({"man", "run", "-o", folder}).code == 2);
}

}  // namespace shell_test
