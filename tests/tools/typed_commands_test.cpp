// Command lines as people type them: machines for scenarios, other programs' options, files by their endings.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/sanitized.hpp"
#include "topologies/machines/preset_names.hpp"

namespace typed_commands_test {

using namespace ringsim;
using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::ring_of_four;
using ringsim::test::run_command;
using ringsim::test::run_with_input;
using ringsim::test::temporary_file;
using ringsim::test::Words;

namespace {

std::string scenario() { return temporary_file("four.json", ring_of_four); }

std::string in_folder(const std::string& name) {
  static const std::filesystem::path folder = std::filesystem::path(temporary_file("here", "")).parent_path();
  return (folder / name).string();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}

}  // namespace

TEST_CASE("the name of a machine is a scenario of one node of it, which stderr shows") {
  int n = 0;
  for (const PresetNames& preset : preset_names()) {
    if (ringsim::test::sanitized && n++ % 4 != 0) continue;  // a scenario is made of all in the same way
    CAPTURE(preset.name);
    const Outcome by_name = run_with_input({"run", preset.name, "--format", "csv"}, "", "/");
    CHECK(by_name.code == 0);
    const std::string note = "ringsim: note: " + preset.name +
                             " is a machine, not a file; using this scenario, which you can change with --set:\n  ";
    REQUIRE(by_name.err.starts_with(note));
    const std::string text = by_name.err.substr(note.size(), by_name.err.find('\n', note.size()) - note.size());
    CHECK(by_name.out == run_with_input({"run", "-", "--format", "csv"}, text).out);
    const auto json = nlohmann::json::parse(text);
    CHECK(json["topology"]["nodes"] == 1);
    CHECK(json["collective"]["bytes"] == "1 GiB");
    CHECK(json["library"] == (preset.gpu == "MI300X" ? "rccl" : "nccl"));
  }
  const Outcome show = run_with_input({"topology", "show", "DGX H100"}, "", "/");
  CHECK(show.code == 0);
  CHECK(show.out == run_with_input({"topology", "show", "hgx-h100"}, "", "/").out);
  const Outcome open = run_with_input({"run", "h100", "--set", "collective.bytes=1MiB", "--format", "csv"}, "", "/");
  CHECK(open.code == 0);
  CHECK(has(open.err, "ringsim: note: h100 is assumed to be hgx-h100, NVIDIA HGX H100"));
  CHECK(has(open.out, "\nhgx-h100,all_reduce,"));
  CHECK(has(open.out, ",1048576,"));
  // Any command that takes a scenario; one point, so that those that need one do.
  for (const Words& words : std::vector<Words>{{"bound", "dgx-1v"},
                                               {"explain", "dgx-1v", "--set", "collective.bytes=1 MiB"},
                                               {"topology", "rings", "dgx-1v"},
                                               {"check", "mi300x"}}) {
    CAPTURE(fmt::format("{}", fmt::join(words, " ")));
    CHECK(run_with_input(words, "", "/").code == 0);
  }
  // A file comes first; the error for any other word says what it may be.
  const std::string folder = std::filesystem::path(temporary_file("dgx-1v", ring_of_four)).parent_path().string();
  CHECK(has(run_with_input({"run", "dgx-1v"}, "", folder).out, "4 ranks"));
  std::filesystem::remove(folder + "/dgx-1v");
  CHECK(has(run_command({"dgx-a100"}).err, "hint: did you mean `ringsim run dgx-a100`?"));
  CHECK(run_with_input({"run", "dgx-b100"}, "", "/").code == 3);
  CHECK(run_with_input({"run", "p5e.48xlarge"}, "", "/").err ==
        "ringsim: error: p5e.48xlarge: expected a scenario file or the name of a machine, found neither\n  hint: "
        "p5e.48xlarge is not a preset; the nearest is aws-p5en, with these differences: 32 EFA NICs, four per GPU as "
        "in aws-p5, instead of 16\n");
}

TEST_CASE("a file that is not there is answered with one of nearly its name there, or of its name in a folder below") {
  const std::string source = ringsim::test::source_dir();
  const auto hint = [&](const std::string& path) {
    const Outcome outcome = run_with_input({"run", path}, "", source);
    CHECK(outcome.code == 3);
    const std::size_t at = outcome.err.find("  hint: ");
    return at == std::string::npos ? "" : outcome.err.substr(at + 8);
  };
  CHECK(hint("star.json") == "did you mean \"scenarios/star.json\"?\n");
  CHECK(hint("degraded-nic.json") == "did you mean \"scenarios/examples/explain/degraded-nic.json\"?\n");
  CHECK(hint("scenarios/stra.json") == "did you mean \"scenarios/star.json\"?\n");
  CHECK(hint("scenarios/examples/explain/degraded-nci.json") ==
        "did you mean \"scenarios/examples/explain/degraded-nic.json\"?\n");
  CHECK(hint("scenarios/nothing-like-it.json") == "");
  CHECK(hint("/no/such/folder/star.json") == "");
}

TEST_CASE("the ending of a file is kept or refused by every command that writes one") {
  const std::string file = scenario();
  const std::string measured = ringsim::test::source_dir() + "/validate/measured/tables/abci-v100-2n4g-all_reduce.csv";
  const std::string jsonl = in_folder("rows.jsonl");
  std::filesystem::remove(jsonl);
  REQUIRE(run_command({"sweep", file, "-o", jsonl}).code == 0);
  struct Row {
    Words words;
    Words refused, kept;  ///< endings
  };
  const Words never{".svg", ".html", ".xlsx", ".parquet", ".pdf", ".yaml", ".gz", ".CSV.zip"};
  for (const Row& row : std::vector<Row>{
           {{"run", file}, {".sqlite", ".tsv"}, {".json", ".jsonl", ".csv", ".JSON", ".txt", ""}},
           {{"sweep", file}, {".csv", ".json"}, {".jsonl", ".ndjson"}},
           {{"compare", file, measured}, {".md"}, {}},
           {{"bound", file}, {".csv", ".jsonl"}, {".json", ".txt"}},
           {{"predict", "all_reduce", "--node", "dgx-1v"}, {".md"}, {".json", ".jsonl", ".csv", ".txt", ""}},
           {{"explain", file}, {".csv"}, {".json", ".txt"}},
           {{"diff", file, file}, {".csv"}, {".json"}},
           {{"crossover", file, "--set", R"(collective.algorithm=["ring","direct"])"}, {".json"}, {".csv", ".txt"}},
           {{"calibrate", file, measured}, {".csv"}, {}},
           {{"schedule", "export", file}, {".csv", ".dot"}, {".json", ".xml", ".goal"}},
           {{"schedule", "import", file}, {".xml"}, {}},
           {{"topology", "export", file}, {".goal"}, {".dot", ".gv", ".graphml"}},
           {{"topology", "rings", file}, {".json"}, {".txt"}},
           {{"topology", "import", file}, {".xml"}, {}},
           {{"synthesize", file}, {".txt", ""}, {".json", ".xml"}},
           {{"replay", file, "--backend", "tcp"}, {".md"}, {}},
           {{"merge", jsonl}, {".json", ".txt", ""}, {".jsonl", ".csv", ".sqlite"}}}) {
    const auto with = [&](const std::string& ending) {
      Words words = row.words;
      const std::string path = in_folder("out" + ending);
      if (path != jsonl) std::filesystem::remove(path);
      words.insert(words.end(), {"-o", path});
      CAPTURE(fmt::format("{}", fmt::join(words, " ")));
      return run_command(words);
    };
    Words refused = never;
    refused.insert(refused.end(), row.refused.begin(), row.refused.end());
    for (const std::string& ending : refused) {
      CAPTURE(fmt::format("{} {}", fmt::join(row.words, " "), ending));
      const Outcome outcome = with(ending);
      CHECK(outcome.code == 2);
      CHECK(outcome.out == "");
      CHECK((has(outcome.err, "--output (-o): expected ") || has(outcome.err, "or -o FILE that ends in ")));
      CHECK(!std::filesystem::exists(in_folder("out" + ending)));
    }
    for (const std::string& ending : row.kept) {
      CAPTURE(fmt::format("{} {}", fmt::join(row.words, " "), ending));
      CHECK(with(ending).code == 0);
      const std::string text = ringsim::test::read_file(in_folder("out" + ending));
      CHECK(!text.empty());
      if (ending == ".json" || ending == ".JSON") CHECK(nlohmann::json::accept(text));
      if (ending == ".jsonl" || ending == ".ndjson") CHECK(nlohmann::json::accept(text.substr(0, text.find('\n'))));
      if (ending == ".csv") CHECK(has(text.substr(0, text.find('\n')), ","));
      if (ending == ".xml" || ending == ".graphml") CHECK(text.starts_with("<"));
      if (ending == ".sqlite") CHECK(text.starts_with("SQLite format 3"));
      if (ending == ".txt" || ending.empty()) CHECK(!nlohmann::json::accept(text));
    }
  }
  // Standard output has no ending, and --format says what it says.
  CHECK(run_command({"run", file, "-o", "-"}).out == run_command({"run", file}).out);
  CHECK(run_command({"run", file, "-o", in_folder("x.json"), "--format", "csv"}).code == 0);
  CHECK(ringsim::test::read_file(in_folder("x.json")) == run_command({"run", file, "--format", "csv"}).out);
  CHECK(run_command({"schedule", "export", file, "--to", "msccl", "-o", in_folder("x.json")}).err ==
        fmt::format("ringsim: error: --to cannot be combined with a file that ends in .json, found \"{}\"\n  hint: "
                    "--to selects a format other than .json: remove it or rename the file\nusage: ringsim schedule "
                    "export SCENARIO [OPTIONS]; run `ringsim help schedule export` for details\n",
                    in_folder("x.json")));
}

TEST_CASE("options of other programs are answered with those of this one") {
  const std::string star = "scenarios/star.json";
  ringsim::test::MessagePage page("foreign_options");
  for (const Words& words : std::vector<Words>{
           {"run", star, "-f", "csv"},
           {"run", star, "-f"},
           {"run", star, "--json"},
           {"run", star, "--markdown"},
           {"schedule", "export", star, "--msccl"},
           {"schedule", "export", star, "-f", "goal"},
           {"topology", "show", star, "--json"},
           {"run", star, "-q"},
           {"run", star, "-v"},
           {"explain", star, "-v"},
           {"synthesize", star, "--verbose"},
           {"run", star, "--threads", "4"},
           {"run", star, "--threads=4"},
           {"bound", star, "--jobs", "3"},
           {"bound", star, "-j", "3"},
           {"run", star, "-n", "4"},
           {"sweep", star, "-n"},
           {"run", "-c", star},
           {"run", star, "-y"},
           {"run", star, "-D", "topology.ranks=4"},
           {"run", star, "--ranks", "16"},
           {"run", star, "--message-size", "1GB"},
           {"run", star, "--protocol=ll"},
           {"run", star, "--world-size", "--explain"},
           {"sweep", star, "--timing"},
           {"run", star, "--gibberish"},
           {"run", star, "--set", "topology.ranks", "16"},
           {"run", "--set", "topology.ranks", "16", star},
           {"run", star, "--set", "topology.ranks"},
           {"explain", star, "--whatif", "topology.ranks", "16"},
           {"--verson"},
           {"-V"},
           {"--hlep"},
           {"--format", "csv"},
           {"list", "planets"},
           {"list", "machnies"},
           {"run", star, "-o", "x.svg"},
           {"run", star, "-o", "x.xlsx"},
           {"run", star, "-o", "x.sqlite"},
           {"sweep", star, "-o", "x.csv"},
           {"run", star, "--trace", "x.json"},
           {"compare", star, "README.md", "--explain", "--bound"},
           {"compare", star, "README.md", "--explain", "--format", "csv"},
           {"man", "run", "-o", "/tmp"},
           {"scorecard", "validate/measured/training_figures", "--training", "validate/measured/training_figures"},
       }) {
    const Outcome outcome = run_with_input(words, "", ringsim::test::source_dir());
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
    page.add(fmt::format("{}", fmt::join(words, " ")), outcome.err.substr(0, outcome.err.find("usage: ")));
  }
  page.check();
}

TEST_CASE("list alone lists the lists, and machines, gpus and clusters are nodes") {
  const Outcome lists = run_command({"list"});
  CHECK(lists.code == 0);
  CHECK(count(lists.out, "\n") == 12);
  for (const char* name :
       {"algorithms", "topologies", "nodes", "models", "regimes", "workloads", "comparison", "columns", "costs", "all"})
    CHECK(has(lists.out, fmt::format("\n  {} ", name)));
  CHECK(has(lists.out, fmt::format("  nodes       {} machines", preset_names().size())));
  const std::string nodes = run_command({"list", "nodes"}).out;
  for (const char* word : {"gpus", "machines", "clusters", "presets"}) {
    CAPTURE(word);
    CHECK(run_command({"list", word}).out == nodes);
  }
  CHECK(has(nodes, "also: p5.48xlarge, ml.p5.48xlarge"));
  CHECK(has(nodes, "taken for: h100, h100-sxm, h100-sxm5, h100-80gb"));
  CHECK(has(nodes, "no presets, but near: a4-highgpu-8g"));
  const auto json = nlohmann::json::parse(run_command({"list", "machines", "--format", "json"}).out)["nodes"];
  CHECK(json.size() == preset_names().size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    CHECK(json[i]["gpu"] == preset_names()[i].gpu);
    CHECK(json[i]["also"] == preset_names()[i].also);
    CHECK(json[i]["taken_for"] == preset_names()[i].taken_for);
    CHECK(json[i]["near"].size() == preset_names()[i].near.size());
  }
  // Names are not cut, whatever the width: a line ends between them.
  const std::string all = run_command({"list", "all"}).out;
  for (const char* name : {"kary_tree", "double_binary_tree", "recursive_doubling", "Standard_ND96amsr_A100_v4"})
    CHECK(has(all, name));
  CHECK(has(all, "|\n"));
  CHECK(all.find("kary_t\n") == std::string::npos);
}

TEST_CASE("a command that needs one point prints itself with the values of the first") {
  const std::string file = temporary_file("several.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": [4, 8], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["ring", {"name": "chain", "segments": 2}], "bytes": ["1 MiB"]}})");
  const Outcome outcome = run_command({"explain", file, "--set", "transport.pxn=false"});
  CHECK(outcome.code == 2);
  const std::string wanted = "hint: choose one, for example with ringsim explain " + file +
                             " --set transport.pxn=false --set topology.ranks=4 --set collective.algorithm=ring\n";
  CHECK(has(outcome.err, wanted));
  CHECK(run_command({"explain", file, "--set", "transport.pxn=false", "--set", "topology.ranks=4", "--set",
                     "collective.algorithm=ring"})
            .code == 0);
  // Values as a shell reads them back; a text that is JSON without its quotes keeps them.
  const Outcome quoted =
      run_command({"explain", file, "--set", "topology.ranks=4", "--set", "collective.algorithm=ring", "--set",
                   R"(transport.NCCL_P2P_LEVEL=["4","SYS"])", "--set", R"(collective.bytes=["1 MiB","2 MiB"])"});
  CHECK(has(quoted.err, R"( --set 'collective.bytes=1 MiB' --set 'transport.NCCL_P2P_LEVEL="4"')"));
}

TEST_CASE("a warning is said once, and of several points with that at which it holds") {
  const auto open = [](const char* node) {
    return temporary_file("open.json", fmt::format(R"({{"version": 1, "topology": {{"kind": "cluster", "node": {},
      "nodes": 1}}, "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}}}})",
                                                   node));
  };
  const std::string of_h100 = "\"h100\" is assumed to be hgx-h100";
  const Outcome one = run_command({"run", open(R"("h100")")});
  CHECK(count(one.err, of_h100) == 1);
  CHECK(!has(one.err, "(at "));
  const Outcome two = run_command({"run", open(R"(["h100", "dgx-1v", "v100"])")});
  CHECK(has(two.err, of_h100));
  CHECK(has(two.err, "(at topology.node=hgx-h100)"));
  CHECK(has(two.err, "(at topology.node=dgx-1v)"));
  const Outcome both = run_command({"run", open(R"("h100")"), "--set", "collective.bytes=[\"1 MiB\",\"2 MiB\"]"});
  CHECK(count(both.err, of_h100) == 1);
  CHECK(!has(both.err, "(at "));
  const Outcome some =
      run_command({"run", open(R"(["h100", "dgx-1v"])"), "--set", "collective.bytes=[\"1 MiB\",\"2 MiB\",\"4 MiB\"]"});
  CHECK(has(some.err, "(at topology.node=hgx-h100, collective.bytes=1 MiB and at 2 other points)"));
  const std::string file = open(R"("h100")");
  CHECK(count(run_command({"diff", file, file, "--set-b", "collective.bytes=2 MiB"}).err, of_h100) == 1);
  CHECK(count(run_command({"explain", file}).err, of_h100) == 1);
  const std::string measured = ringsim::test::source_dir() + "/validate/measured/tables/a100-1n8g-all_reduce.csv";
  CHECK(count(run_command({"compare", file, measured}).err, of_h100) == 1);
  CHECK(count(run_command({"calibrate", file, measured, "-o", in_folder("fit.json")}).err, of_h100) == 1);
}

}  // namespace typed_commands_test
