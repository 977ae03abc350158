// ringsim predict: machines by name, what is assumed, and the scenario that stands for it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace predict_command_test {

using nlohmann::json;
using ringsim::test::fresh_folder;
using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::run_with_input;
using ringsim::test::sample;
using ringsim::test::temporary_file;
using ringsim::test::Words;

namespace {

Outcome predict(Words words, const Words& more = {}) {
  words.insert(words.begin(), "predict");
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_command(words);
  INFO(outcome.err);
  REQUIRE(outcome.code == 0);
  return outcome;
}

/// The scenario below the table: from the line that begins with a brace.
std::string scenario_in(const std::string& out) {
  const std::size_t at = out.find("\n{");
  REQUIRE(at != std::string::npos);
  return out.substr(at + 1);
}

json fabric_of(const std::string& node, int nodes, const std::string& fabric) {
  const Outcome outcome = predict({"all_reduce", "--node", node, "--nodes", std::to_string(nodes), "--bytes", "1KiB",
                                   "--algorithm", "ring", "--fabric", fabric});
  return json::parse(scenario_in(outcome.out))["topology"]["fabric"];
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("the scenario that a prediction prints, and the one that it saves, give ringsim run the same rows") {
  const std::filesystem::path folder = fresh_folder("ringsim-predict");
  for (const Words& words : std::vector<Words>{
           {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "leaf_spine:2", "--bytes", "1GiB"},
           {"MPI_Allreduce", "--node", "dgx-a100", "--bytes", "1KiB..1MiB:32"},
           {"alltoall", "--node", "p5", "--nodes", "2", "--bytes", "64MiB", "--algorithm", "pairwise,direct"},
           {"all_gather", "--node", "mi300x", "--nodes", "2", "--bytes", "1MiB"},
           {"broadcast", "--node", "dgx-1v", "--nodes", "2", "--gpus", "2", "--bytes", "1MiB,2 MiB", "--nccl",
            "2.19.3"},
           {"reduce_scatter", "--node", "polaris", "--set", "collective.bytes=3 MiB"}}) {
    CAPTURE(fmt::format("{}", fmt::join(words, " ")));
    const std::string saved = (folder / "saved.json").string();
    const Outcome table = predict(words, {"--save", saved, "--force"});
    const std::string rows = predict(words, {"--format", "csv"}).out;
    CHECK(run_with_input({"run", "-", "--format", "csv"}, scenario_in(table.out)).out == rows);
    CHECK(run_command({"run", saved, "--format", "csv"}).out == rows);
    CHECK(text_of(saved) == scenario_in(table.out));
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("a saved scenario names the machine's file from its own folder, the printed one from the working directory") {
  const std::filesystem::path folder = fresh_folder("ringsim-predict");
  std::filesystem::create_directories(folder / "machines");
  std::filesystem::create_directories(folder / "work" / "out");
  std::filesystem::copy_file(ringsim::test::source_dir() + "/topologies/presets/dgx-1v.json",
                             folder / "machines" / "mine.json");
  const std::string work = (folder / "work").string();
  const Words words{"predict", "all_reduce", "--node", "../machines/mine.json", "--nodes", "2", "--bytes", "1MiB"};
  Words saving = words, as_csv = words;
  saving.insert(saving.end(), {"--save", "out/saved.json"});
  as_csv.insert(as_csv.end(), {"--format", "csv"});
  const Outcome table = run_with_input(saving, "", work);
  REQUIRE(table.code == 0);
  const std::string rows = run_with_input(as_csv, "", work).out;
  CHECK(json::parse(text_of(folder / "work" / "out" / "saved.json"))["topology"]["node_file"] ==
        "../../machines/mine.json");
  CHECK(run_with_input({"run", "work/out/saved.json", "--format", "csv"}, "", folder.string()).out == rows);
  CHECK(run_with_input({"run", "-", "--format", "csv"}, scenario_in(table.out), work).out == rows);
  // A file that exists is kept, unless --force is given.
  const Outcome again = run_with_input(saving, "", work);
  CHECK(again.code == 2);
  CHECK(has(again.err, "--save: expected the name of a new file, found the existing file out/saved.json"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a topology of NCCL's is a machine too") {
  const std::string file = ringsim::test::source_dir() + "/tests/data/machines/dump.xml";
  const Outcome outcome = predict({"all_reduce", "--node", file, "--bytes", "1MiB"});
  const json topology = json::parse(scenario_in(outcome.out))["topology"];
  CHECK(topology["kind"] == "nccl_xml");
  CHECK(topology["file"] == file);
}

TEST_CASE("each word for a fabric becomes its keys") {
  // A DGX H100 has 8 NICs of 48 GB/s, a leaf room for 32; two leaves at least.
  const json link{{"bandwidth", "48 GB/s"}, {"latency", "150 ns"}};
  CHECK(fabric_of("dgx-h100", 4, "star") == json{{"kind", "star"}, {"link", link}});
  const auto leaves = [&](int nodes_per_leaf, int oversubscription) {
    return json{{"kind", "leaf_spine"},
                {"nodes_per_leaf", nodes_per_leaf},
                {"oversubscription", oversubscription},
                {"link", link}};
  };
  CHECK(fabric_of("dgx-h100", 4, "leaf_spine:2") == leaves(2, 2));
  CHECK(fabric_of("dgx-h100", 4, "Leaf-Spine") == leaves(2, 1));
  CHECK(fabric_of("dgx-h100", 16, "leaf_spine:2") == leaves(4, 2));  // 32 NICs, not 8 nodes
  CHECK(fabric_of("dgx-h100", 2, "spine_leaf:4") == leaves(1, 4));
  CHECK(fabric_of("dgx-h100", 4, "leaf_spine:3") == leaves(3, 3));  // 2 nodes have 16 NICs: no thirds
  // k^3/4 >= 32 NICs from k = 6 on, but only 8 ports down (k = 16) have whole nodes; 2:1, k = 8.
  CHECK(fabric_of("dgx-h100", 4, "fat_tree") ==
        json{{"kind", "fat_tree"}, {"k", 16}, {"oversubscription", 1}, {"link", link}});
  CHECK(fabric_of("dgx-h100", 4, "fattree:2") ==
        json{{"kind", "fat_tree"}, {"k", 8}, {"oversubscription", 2}, {"link", link}});
  // A rail switch has a NIC of each node: with 4 nodes 2 cables up are 2:1.
  CHECK(fabric_of("dgx-h100", 4, "rail_optimized:2") ==
        json{{"kind", "rail"}, {"nodes_per_group", 4}, {"spines", 2}, {"oversubscription", 2}, {"link", link}});
  CHECK(fabric_of("dgx-h100", 6, "torus") == json{{"kind", "torus"}, {"dimensions", {2, 3}}, {"link", link}});
  CHECK(fabric_of("dgx-h100", 5, "torus") == json{{"kind", "torus"}, {"dimensions", {5}}, {"link", link}});
  CHECK(fabric_of("dgx-h100", 4, "torus:4x1") == json{{"kind", "torus"}, {"dimensions", {4, 1}}, {"link", link}});
  CHECK(fabric_of("dgx-h100", 4, "dragonfly:3x2x1") ==
        json{{"kind", "dragonfly"}, {"groups", 3}, {"routers", 2}, {"nodes_per_router", 1}, {"link", link}});
}

TEST_CASE("what no option says is printed as assumed, until --set says it") {
  const Words words{"all_reduce", "--node", "h100", "--nodes", "4"};
  const std::string all = predict(words).out;
  const std::string heading =
      "Assumptions (no option sets these values; to change one, use --set with the path in parentheses):\n";
  REQUIRE(has(all, heading));
  CHECK(has(all, "  h100 is assumed to be hgx-h100, "));
  CHECK(has(all, "  one non-blocking switch connects the nodes (star) (topology.fabric)\n"));
  CHECK(has(all,
            "  each cable is as fast as one of the 8 NICs of a node, 48 GB/s, and has a latency of 150 ns\n    "
            "(topology.fabric.link)\n"));
  CHECK(has(all, ", the newest release that is modeled (library)\n"));
  CHECK(has(all, "  five sizes (collective.bytes)\n"));
  CHECK(!has(all, "routing"));  // one switch: there is one way
  const std::string leaves = predict(words, {"--fabric", "leaf_spine:2", "--bytes", "1MiB"}).out;
  CHECK(!has(leaves, "topology.fabric)"));
  CHECK(!has(leaves, "collective.bytes"));
  CHECK(has(leaves,
            "  2 nodes per leaf; with fewer, more traffic shares the uplinks (topology.fabric.nodes_per_leaf)\n"));
  const std::string order = "ranks are numbered in the order of nodes and switches";  // of one switch any is alike
  CHECK(has(leaves, order));
  CHECK(!has(all, order));
  CHECK(!has(predict(words, {"--fabric", "rail", "--bytes", "1MiB"}).out, order));
  CHECK(
      has(leaves, "  routing static across the switches of the fabric; Ethernet usually has ecmp (network.routing)\n"));
  CHECK(has(predict(words, {"--fabric", "leaf_spine", "--bytes", "1MiB"}).out, "  2 nodes per leaf (topology"));
  CHECK(has(predict(words, {"--algorithm", "ring", "--bytes", "1MiB"}).out,
            "\n  none: a textbook algorithm, without NCCL's channels and kernels; "));
  // Above or below the path: a cable's rate replaces what is said of cables, and so does a whole fabric.
  const Outcome set = predict(words, {"--fabric", "leaf_spine:2", "--bytes", "1MiB", "--set",
                                      "topology.fabric.link.bandwidth=100 Gb/s", "--set", "network.routing=ecmp",
                                      "--set", "library.version=2.19.3", "--set", "topology.fabric.nodes_per_leaf=4"});
  CHECK(has(set.out, "h100 is assumed to be"));
  for (const char* gone : {"each cable is as fast", "across the switches", "the newest", "nodes per leaf"})
    CHECK(!has(set.out, gone));
  CHECK(!has(set.out, "Other seeds"));  // four nodes on a leaf: no message crosses a spine
  CHECK(!has(leaves, "Other seeds"));
  const std::string drawn =
      predict(words, {"--fabric", "leaf_spine:2", "--bytes", "1MiB", "--set", "network.routing=ecmp"}).out;
  CHECK(has(drawn, "\nRouting: ecmp, seed 0. Other seeds take other times; "));
  // For programs standard output has rows alone.
  const Outcome rows = predict(words, {"--format", "csv"});
  CHECK(rows.out.starts_with("scenario.name,"));
  CHECK(has(rows.err, "ringsim: note: assumed: one non-blocking switch connects the nodes (star) (topology.fabric)\n"));
}

TEST_CASE("times have one unit, that of the shortest, and are those of the rows") {
  const Words words{"all_reduce", "--node", "dgx-h100", "--bytes"};
  const auto us_of = [&](const std::string& size) {
    Words row{"all_reduce", "--node", "dgx-h100", "--bytes", size};
    return json::parse(predict(row, {"--format", "jsonl"}).out)["time_us"].get<double>();
  };
  const auto with = [&](const std::string& sizes) {
    Words row = words;
    row.push_back(sizes);
    return predict(row).out;
  };
  const std::string large = with("4GiB"), both = with("1 MiB,4 GiB"), largest = with("4TiB");
  CHECK(has(large, "time ms"));
  CHECK(has(large, fmt::format(" {:.3f} ", us_of("4 GiB") / 1e3)));
  CHECK(has(both, "time us"));
  CHECK(has(both, fmt::format(" {:.0f} ", us_of("4 GiB"))));
  CHECK(has(both, fmt::format(" {:.3f} ", us_of("1 MiB"))));
  CHECK(has(largest, "time s "));
  CHECK(has(largest, fmt::format(" {:.3f} ", us_of("4 TiB") / 1e6)));
}

TEST_CASE("one sentence says what limits each range of sizes, as explain does") {
  const Words words{"all_reduce", "--node", "dgx-a100", "--bytes", "1KiB,2KiB,1GiB"};
  std::string out = predict(words).out;
  for (std::size_t at = out.find("\n  "); at != std::string::npos; at = out.find("\n  ")) out.replace(at, 3, " ");
  const auto share = [&](const std::string& size, std::size_t part) {
    const json why =
        json::parse(run_command({"explain", "dgx-a100", "--set", "collective.bytes=" + size, "--format", "json"}).out);
    return fmt::format("{:.0f}", 100 * why["why"][part]["us"].get<double>() / why["time_us"].get<double>());
  };
  const std::string from = share("1 KiB", 0), to = share("2 KiB", 0);
  CHECK(has(out, fmt::format("\n1 KiB to 2 KiB, Ring: limited by latency, because each message waits for the previous "
                             "one ({} % of the time)\n",
                             from == to ? from : from + " to " + to)));
  CHECK(has(out,
            fmt::format("\n1 GiB, Ring: limited by the nvlink links node*.gpu* -> node*.nvswitch* ({} % of the time)\n",
                        share("1 GiB", 0))));
}

TEST_CASE("links that are as busy as those that limit are named with them") {
  // Two leaves of two nodes, half the cables upwards: eight rings leave each node by eight NICs and each leaf by eight
  // cables, so that each fills one of each kind of link.
  const std::string leaves =
      predict({"all_reduce", "--node", "hgx-h100", "--nodes", "4"}, {"--fabric", "leaf_spine:2", "--bytes", "8GiB"})
          .out;
  CHECK(has(leaves, " pcie, nic, fabric "));
  CHECK(has(leaves, "\n8 GiB, Ring: limited by the pcie links node*.gpu* -> node*.pcie* ("));
  CHECK(has(leaves, "; nic and fabric\n  links are at least as busy\n"));
  const std::string star = predict({"all_reduce", "--node", "dgx-a100", "--bytes", "1GiB"}).out;
  CHECK_FALSE(has(star, "as busy"));
}

TEST_CASE("a link with a fault is named, with what the fault does to it") {
  const std::string out = predict({"all_reduce", "--node", "dgx-h100", "--nodes", "8", "--bytes", "1GiB", "--set",
                                   R"(faults=[{"link": "node5.nic3", "bandwidth": "50%"}])"})
                              .out;
  const std::string words = std::regex_replace(out, std::regex(R"(\n +)"), " ");  // sentences are wrapped
  CHECK(has(words, "Tree: limited by the nic link "));
  CHECK(has(words, "node5.nic3"));
  CHECK(has(words, ", where a fault cuts it from 48 GB/s to 24 GB/s ("));
}

TEST_CASE("what NCCL's kernels take once is named with the launch, which it exceeds by far") {
  const std::string out = predict({"all_reduce", "--node", "hgx-h100", "--nodes", "2", "--bytes", "64MiB"}).out;
  const std::string words = std::regex_replace(out, std::regex(R"(\n +)"), " ");  // sentences are wrapped
  CHECK(has(words, "NVLSTree: limited by the launch and one-time costs of the kernels, such as filling the pipeline"));
}

TEST_CASE("what --set lets vary has a column, and sentences of its own") {
  const Words words{"all_reduce",           "--node", "dgx-h100", "--nodes", "4", "--bytes", "1GiB", "--set",
                    "topology.nodes=[2, 4]"};
  const std::string out = predict(words).out;
  CHECK(out.starts_with("all_reduce, nccl "));  // two numbers of GPUs
  CHECK(has(out, "\ntopology.nodes  algorithm "));
  CHECK(has(out, "\n1 GiB, topology.nodes=2, "));
  CHECK(has(out, "\n1 GiB, topology.nodes=4, "));
  CHECK(run_with_input({"run", "-", "--format", "csv"}, scenario_in(out)).out ==
        predict(words, {"--format", "csv"}).out);
}

TEST_CASE("a run of more ranks than keep their path is folded, and names its bottleneck") {
  // 512 nodes of 8: 4096 ranks in a ring, two of which would be simulated.
  const Words words{"all_reduce", "--node", "dgx-h100", "--nodes", "512", "--algorithm", "ring", "--bytes"};
  Words large = words, small = words;
  large.emplace_back("16GiB");
  small.emplace_back("1KiB");
  // Ring steps are limited by one NIC: rank 7 of a node sends to the next node.
  CHECK(has(predict(large).out, "\n16 GiB, ring: limited by links such as node"));
  CHECK(has(predict(small).out, "\n1 KiB, ring: limited by latency, "));
}

TEST_CASE("the guide shows what the command prints") {
  const std::string guide = text_of(ringsim::test::source_dir() + "/docs/guide/nccl.md");
  const std::string command = "    $ ringsim predict ";
  const std::size_t at = guide.find(command);
  REQUIRE(at != std::string::npos);
  const std::size_t end = guide.find('\n', at);
  std::istringstream typed(guide.substr(at + command.size(), end - at - command.size()));
  Words words;
  for (std::string word; typed >> word;) words.push_back(word);
  std::istringstream printed(predict(words).out);
  std::string block;
  for (std::string line; std::getline(printed, line);) block += (line.empty() ? "" : "    ") + line + '\n';
  CHECK(guide.substr(end + 1, block.size() + 1) == block + '\n');
}

TEST_CASE("GPUs of a node take part from the first on, on every node") {
  const Outcome outcome = predict({"all_reduce", "--node", "dgx-1v", "--nodes", "2", "--gpus", "2", "--bytes", "1MiB"});
  CHECK(has(outcome.out, "all_reduce, 4 GPUs on 2 x dgx-1v, nccl "));
  CHECK(json::parse(scenario_in(outcome.out))["collective"]["ranks"] ==
        json{"node0.gpu0", "node0.gpu1", "node1.gpu0", "node1.gpu1"});
  CHECK(has(outcome.out, "  the first 2 of 8 GPUs of each node participate (collective.ranks)\n"));
  const Outcome all = predict({"all_reduce", "--node", "dgx-1v", "--gpus", "8", "--bytes", "1MiB"});
  CHECK(!json::parse(scenario_in(all.out))["collective"].contains("ranks"));
}

TEST_CASE("on GPUs of AMD RCCL is predicted; where it is not modeled GPUs exchange messages, which is said") {
  const Outcome outcome = predict({"all_reduce", "--node", "mi300x", "--bytes", "1MiB"});
  CHECK(has(outcome.out, "all_reduce, 8 GPUs on 1 x mi300x, rccl 2.21.5\n"));
  CHECK(has(outcome.out, "  RCCL 2.21.5, the only release that is modeled (library)\n"));
  CHECK(json::parse(scenario_in(outcome.out))["library"] == "rccl");
  CHECK(has(predict({"all_to_all", "--node", "mi300x", "--bytes", "1MiB"}).out, "\nMSCCL      Simple"));
  const auto without = [](std::vector<std::string> words, const std::string& because, const std::string& instead) {
    words.insert(words.end(), {"--node", "mi300x", "--bytes", "1MiB"});
    const Outcome textbook = predict(words);
    CHECK(!json::parse(scenario_in(textbook.out)).contains("library"));
    const std::string said = std::regex_replace(textbook.out, std::regex("\n +"), " ");
    CHECK(has(said, instead + ": RCCL is not modeled here, " + because + " (collective.algorithm)"));
  };
  const std::string direct = "direct, messages to all";
  without({"send_recv", "--gpus", "2"}, "send_recv on one node", direct);
  without({"all_reduce", "--gpus", "4"}, "expected all 8 GPUs of each node for RCCL, found 4 of mi300x", direct);
  without({"all_reduce", "--nodes", "3"}, "expected one node or an even number of nodes for RCCL, found 3", "ring");
}

TEST_CASE("AMD GPUs that are not fully joined, and several nodes, run a ring where RCCL is not modeled") {
  const auto algorithm = [](const std::vector<std::string>& words) {
    return json::parse(scenario_in(predict(words).out))["collective"]["algorithm"].get<std::string>();
  };
  const std::string xgmi = sample("xgmi.xml");  // two GPUs that are joined
  const std::string pcie = temporary_file(
      "pcie.xml", std::regex_replace(ringsim::test::read_file(sample("xgmi.xml")), std::regex("<xgmi .*/>"), ""));
  CHECK(algorithm({"all_reduce", "--node", xgmi, "--bytes", "1MiB"}) == "direct");
  CHECK(algorithm({"all_reduce", "--node", pcie, "--bytes", "1MiB"}) == "ring");
  CHECK(algorithm({"all_to_all", "--node", pcie, "--bytes", "1MiB"}) == "direct");  // there is no ring of it
  CHECK(algorithm({"all_reduce", "--node", "mi300x", "--gpus", "4", "--bytes", "1MiB"}) == "direct");
  CHECK(algorithm({"all_reduce", "--node", "mi300x", "--nodes", "3", "--bytes", "1MiB"}) == "ring");
}

TEST_CASE("--like and --nic supply what the XML of a virtual machine or a matrix lacks, and are part of the scenario") {
  const std::string skeleton = sample("skeleton.xml"), matrix = sample("matrix.txt");
  const Outcome xml =
      predict({"all_reduce", "--node", skeleton, "--nodes", "2", "--like", "dgx-1v", "--bytes", "1MiB"});
  CHECK(xml.code == 0);
  CHECK(xml.err == "");  // nothing is left to assume
  CHECK(json::parse(scenario_in(xml.out))["topology"]["like"] == "dgx-1v");
  CHECK(has(xml.out, "each cable is as fast as one of the 2 NICs of a node, 12 GB/s"));  // that of a DGX-1V
  const Outcome nic = predict(
      {"all_reduce", "--node", skeleton, "--nodes", "2", "--like", "dgx-1v", "--nic", "200Gb/s", "--bytes", "1MiB"});
  CHECK(json::parse(scenario_in(nic.out))["topology"]["nic"]["bandwidth"] == "25 GB/s");
  CHECK(has(nic.out, "each cable is as fast as one of the 2 NICs of a node, 25 GB/s"));
  const Outcome smi = predict({"all_reduce", "--node", matrix, "--like", "dgx-1v", "--bytes", "1MiB"});
  CHECK(smi.code == 0);
  CHECK(json::parse(scenario_in(smi.out))["topology"] ==
        json{{"kind", "nvidia_smi"}, {"file", matrix}, {"like", "dgx-1v"}, {"nodes", 1}});
  CHECK(has(predict({"all_reduce", "--node", matrix, "--like", "v100", "--bytes", "1MiB"}).out, "(topology.like)\n"));
  const Outcome run = run_command({"run", matrix, "--like", "dgx-1v", "--format", "csv"});  // as other commands do
  CHECK(run.code == 0);
  CHECK(has(run.err, "\"like\": \"dgx-1v\""));
  const Outcome two = run_command(
      {"explain", matrix, "--like", "dgx-1v", "--nic", "50 GB/s", "--set", R"(collective.bytes=["1 MiB","2 MiB"])"});
  CHECK(has(two.err, " --like dgx-1v --nic '50 GB/s'"));  // in the command that it proposes
}

TEST_CASE("bound and compare take a machine by name with --nodes and --fabric, as predict has them") {
  const std::string scenario =
      scenario_in(predict({"all_reduce", "--node", "dgx-a100", "--nodes", "2", "--fabric", "leaf_spine:2", "--bytes",
                           "1GiB", "--nccl", "2.22.3"})  // the release of the table below
                      .out);
  const Outcome bound =
      run_command({"bound", "dgx-a100", "--nodes", "2", "--fabric", "leaf_spine:2", "--format", "json"});
  CHECK(bound.code == 0);
  CHECK(has(bound.err, "\"nodes_per_leaf\": 1"));
  const json named = json::parse(bound.out);
  CHECK(named["ranks"] == 16);
  CHECK(named["bounds"] == json::parse(run_with_input({"bound", "-", "--format", "json"}, scenario).out)["bounds"]);
  const std::string measured =
      ringsim::test::source_dir() + "/validate/measured/tables/sophia-dgxa100-2n8g-all_reduce-gdrpxb.csv";
  const Outcome compared =
      run_command({"compare", "dgx-a100", measured, "--nodes", "2", "--fabric", "leaf_spine:2", "--format", "csv"});
  CHECK(compared.code == 0);
  CHECK(compared.out == run_with_input({"compare", "-", measured, "--format", "csv"}, scenario).out);
  const Outcome file = run_with_input({"bound", "-", "--nodes", "2"}, scenario);
  CHECK(file.code == 2);
  CHECK(has(file.err,
            "ringsim: error: --nodes: expected a machine as SCENARIO, found -\n  hint: to change a scenario, use --set "
            "topology.nodes=N\n"));
  CHECK(has(run_command({"bound", "dgx-a100", "--fabric", "star"}).err,
            "ringsim: warning: --fabric: it has no effect on one node; use --nodes to set the number of nodes\n"));
}

TEST_CASE("each command that takes a scenario takes a machine by name or file, with its number of nodes") {
  const std::string preset = ringsim::test::source_dir() + "/topologies/presets/dgx-1v.json";
  const std::string folder =
      std::filesystem::path(temporary_file("mine.json", ringsim::test::read_file(preset))).parent_path().string();
  for (const Words& words : std::vector<Words>{{"run", "", "--format", "csv"},
                                               {"explain", "", "--set", "collective.bytes=1 MiB"},
                                               {"bound", ""},
                                               {"topology", "show", ""},
                                               {"topology", "rings", ""},
                                               {"topology", "paths", "", "node0.gpu0", "node1.gpu0"}}) {
    CAPTURE(fmt::format("{}", fmt::join(words, " ")));
    const auto on = [&](const std::string& machine) {
      Words all = words;
      std::replace(all.begin(), all.end(), std::string(), machine);
      all.insert(all.end(), {"--nodes", "2", "--fabric", "leaf_spine"});
      return run_with_input(all, "", folder);
    };
    const Outcome by_name = on("dgx-1v"), by_file = on("mine.json");
    CHECK(by_name.code == 0);
    CHECK(by_file.out == by_name.out);
    CHECK(has(by_file.err, "ringsim: note: mine.json is a machine file; using this scenario"));
  }
  CHECK(run_with_input({"run", ringsim::test::source_dir() + "/tests/data/machines/pairs.xml"}, "", folder).code == 0);
}

TEST_CASE("a machine is compared with the collective and the release of NCCL that the measured file names") {
  const std::string table = "# collective: all_to_all\n# library: NCCL 2.17.1\n# ranks: 8\nbytes,time_us\n1048576,50\n";
  const std::string measured = temporary_file("m.csv", table);
  const auto csv = [&](const Words& more) {
    Words words{"compare", "dgx-a100", measured, "--format", "csv"};
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words);
  };
  const Outcome named = csv({});
  CHECK(named.code == 0);
  CHECK(has(named.err, R"("library": {"name": "nccl", "version": "2.17.1"}, "collective": {"op": "all_to_all")"));
  CHECK(has(named.out, ",all_to_all,"));
  CHECK(has(named.out, "nccl 2.17.1"));
  CHECK(has(csv({"--set", "library.version=2.22.3"}).out, "nccl 2.22.3"));
  const Outcome amd = run_command({"compare", "mi300x", measured});
  CHECK(amd.code == 3);
  CHECK(has(amd.err, measured + ": expected a machine that NCCL 2.17.1 runs on, found mi300x, which has AMD GPUs\n"));
}

}  // namespace predict_command_test
