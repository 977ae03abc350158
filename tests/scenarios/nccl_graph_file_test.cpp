// NCCL_GRAPH_FILE: rings and trees of a file in the place of those that are searched for.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/searched_graph.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/sanitized.hpp"

namespace nccl_graph_file_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// A folder with a scenario and files that it names; removed in the end.
class Folder {
 public:
  Folder() : path_(test::fresh_folder("ringsim-graph")) {}
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
  Scenario point(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    return ScenarioFile::parse(text, (path_ / "s.json").string(), overrides).point(0);
  }
  /// What is said of it, with file names as they are in the folder.
  std::string complaint(const std::string& text, const std::vector<std::string>& overrides = {}) const {
    std::string said = test::complaint([&] { predict(point(text, overrides)); });
    for (std::size_t at; (at = said.find(path_.string() + "/")) != std::string::npos;)
      said.erase(at, path_.string().size() + 1);
    return said;
  }

 private:
  std::filesystem::path path_;
};

std::string scenario_of(const std::string& preset, int nodes, const std::string& version) {
  return fmt::format(
      R"({{"version": 1, "topology": {{"kind": "cluster", "node": "{}", "nodes": {}{}}},
          "library": {{"name": "nccl", "version": "{}"}}, "collective": {{"op": "all_reduce", "bytes": "1 MiB"}}}})",
      preset, nodes,
      nodes == 1 ? "" : R"(, "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}})",
      version);
}

const std::string graph_file = "library.env.NCCL_GRAPH_FILE=g.xml";

/// One ring over the GPUs of those numbers, with a NIC of that number at either end.
std::string one_ring(const std::vector<int>& gpus, int enters, int leaves, const std::string& head = "") {
  std::string text = fmt::format(
      R"(<graphs version="1">
<graph id="0" pattern="4" {} nchannels="1" speedintra="20" speedinter="20" typeintra="NVL" typeinter="PIX" samechannels="1">
<channel><net dev="{}"/>)",
      head.empty() ? R"(crossnic="0")" : head, enters);
  for (const int gpu : gpus) text += fmt::format(R"(<gpu dev="{}"/>)", gpu);
  return text + fmt::format("<net dev=\"{}\"/></channel>\n</graph>\n</graphs>\n", leaves);
}

/// The file of what the search finds for the scenario.
std::string searched(const Folder& folder, const std::string& text) { return searched_graph(folder.point(text)); }

}  // namespace

TEST_CASE("what the search found, read from a file, gives the same channels and time") {
  // Rings on switches, on a mesh, over PCIe, with fewer NICs than GPUs, with several a GPU, and with NVLS.
  for (const char* preset : {"dgx-a100", "dgx-1v", "dgx-1p", "azure-ncv4", "polaris", "hgx-h100", "oci-a100"}) {
    for (const int nodes : {1, 2, 4}) {
      if (ringsim::test::sanitized && nodes == 4) continue;            // two cross a NIC as well
      if (nodes > 1 && preset == std::string("azure-ncv4")) continue;  // has no NIC
      for (const char* version : {"2.19.3", "2.30.7"}) {
        CAPTURE(std::string(preset));
        CAPTURE(nodes);
        CAPTURE(std::string(version));
        const Folder folder;
        const std::string text = scenario_of(preset, nodes, version);
        folder.write("g.xml", searched(folder, text));
        for (const char* bytes : {"collective.bytes=1 MiB", "collective.bytes=96 MiB"}) {
          CAPTURE(std::string(bytes));
          const Prediction found = predict(folder.point(text, {bytes}));
          const Scenario from_file = folder.point(text, {bytes, graph_file});
          CHECK(from_file.warnings == folder.point(text, {bytes}).warnings);
          const Prediction read = predict(from_file);
          CHECK(read.algorithm == found.algorithm);
          CHECK(read.request.channels == found.request.channels);
          CHECK(read.time == found.time);
        }
      }
    }
  }
}

TEST_CASE("rings that cross NICs are written as crossnic 2, and read from a file give the same time") {
  const Folder folder;
  std::string text = scenario_of("hgx-b300", 4, "2.29.7");
  text.replace(text.find("200 Gb/s"), 8, "800 Gb/s");
  const std::string graph = searched(folder, text);
  CHECK(graph.find("<graph id=\"0\" pattern=\"4\" crossnic=\"2\" nchannels=\"16\" speedintra=\"48\"") !=
        std::string::npos);
  CHECK(graph.find("<graph id=\"1\" pattern=\"3\" crossnic=\"0\"") != std::string::npos);
  folder.write("g.xml", graph);
  for (const char* algorithm : {"library.env.NCCL_ALGO=Ring", "library.env.NCCL_ALGO=Tree"})
    for (const char* bytes : {"collective.bytes=1 MiB", "collective.bytes=1 GiB"}) {
      CAPTURE(std::string(algorithm));
      CAPTURE(std::string(bytes));
      const Prediction found = predict(folder.point(text, {algorithm, bytes}));
      const Prediction read = predict(folder.point(text, {algorithm, bytes, graph_file}));
      CHECK(read.request.orders == found.request.orders);
      CHECK(read.time == found.time);
    }
}

TEST_CASE("a ring of a file goes over the links that the file says, and the tuner takes its speed") {
  // DGX-1V: gpu0 and gpu5 have no NVLink to each other. A ring that has them side by side goes over PCIe there and is
  // slower than one of the search, though the file says as many channels.
  const Folder folder;
  const std::string text = scenario_of("dgx-1v", 1, "2.19.3");
  const std::vector<std::string> simple_ring{"library.env.NCCL_ALGO=Ring", "library.env.NCCL_PROTO=Simple",
                                             "collective.bytes=64 MiB", graph_file};
  const auto predicted = [&](const std::vector<int>& order) {
    folder.write("g.xml", one_ring(order, 0, 0));
    return predict(folder.point(text, simple_ring));
  };
  const Prediction good = predicted({0, 1, 2, 3, 7, 6, 5, 4}), bad = predicted({0, 5, 2, 7, 4, 1, 6, 3});
  CHECK(good.request.channels == 1);
  CHECK(good.request.orders == std::vector<std::vector<Actor>>{{0, 1, 2, 3, 7, 6, 5, 4}});
  CHECK(bad.request.channels == 1);
  CHECK(2 * bad.time > 3 * good.time);  // PCIe has 12 GB/s of NVLink's 20 and more
  CHECK(folder.point(text, simple_ring).library->machine.ring.inside == 20);
}

TEST_CASE("with crossnic a message enters by another NIC than it leaves by") {
  // Two nodes of two V100, a NIC each. Rings that enter by nic0 and leave by nic1 use nic0's cables inward and nic1's
  // outward only; with NCCL_CROSS_NIC=0 NCCL leaves the graph out.
  const Folder folder;
  const std::string text = scenario_of("azure-ndv4", 2, "2.22.3");
  folder.write("g.xml", one_ring({0, 1, 2, 3, 4, 5, 6, 7}, 0, 1, R"(crossnic="1")"));
  const std::vector<std::string> ring{"library.env.NCCL_ALGO=Ring", "collective.bytes=64 MiB", graph_file};
  const Scenario crossing = folder.point(text, ring);
  REQUIRE(crossing.transport.channel_nics != nullptr);
  const Setup setup = set_up(crossing);
  Routes routes(setup.topology, crossing.transport, setup.routing);
  const auto gpu = [&](const char* name) { return *setup.topology.find(name); };
  std::vector<std::string> nics;
  for (const Leg& leg : routes.find(gpu("node0.gpu7"), gpu("node1.gpu0"), 0).legs)
    for (const LinkId link : leg.links)
      for (const NodeId end : {setup.topology.link(link).from})
        if (setup.topology.node(end).kind == NodeKind::nic) nics.push_back(setup.topology.node(end).name);
  CHECK(nics == std::vector<std::string>{"node0.nic1", "node1.nic0"});
  CHECK(predict(crossing).request.channels == 1);

  std::vector<std::string> without = ring;
  without.emplace_back("library.env.NCCL_CROSS_NIC=0");
  const Scenario searching = folder.point(text, without);
  CHECK(searching.main().request.channels == 8);  // a ring for each NIC: the search's
  REQUIRE(searching.warnings.size() == 1);        // and not that NCCL_CROSS_NIC has no effect
  CHECK(searching.warnings.front().ends_with(
      "g.xml:2: <graph> of id 0 has no effect: with NCCL_CROSS_NIC=0, NCCL ignores graphs with crossnic 1"));
}

TEST_CASE("from 2.20 on NCCL exchanges pairs of rings on every second node") {
  // src/graph/connect.cc, ncclTopoPostset: with crossnic other than 0 up to 2.25, with 2 from 2.26 on.
  const Folder folder;
  const std::string head =
      R"(<graphs version="1"><graph id="0" pattern="4" crossnic="2" nchannels="2" speedintra="20" )"
      R"(speedinter="20" typeintra="NVL" typeinter="PIX" samechannels="0">)";
  const std::string forth = R"(<gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><gpu dev="3"/>)",
                    back = R"(<gpu dev="3"/><gpu dev="2"/><gpu dev="1"/><gpu dev="0"/>)";
  const auto with = [](const std::string& gpus, int enters, int leaves) {
    return fmt::format(R"(<channel><net dev="{}"/>{}<net dev="{}"/></channel>)", enters, gpus, leaves);
  };
  folder.write("g.xml", head + with(forth, 0, 1) + with(back, 1, 0) + "</graph></graphs>");
  const auto orders = [&](const char* version) {
    return set_up(folder.point(scenario_of("polaris", 2, version),
                               {"library.env.NCCL_ALGO=Ring", "collective.bytes=64 MiB", graph_file}))
        .collectives.front()
        .job.request.orders;
  };
  using Orders = std::vector<std::vector<Actor>>;
  CHECK(orders("2.19.3") == Orders{{0, 1, 2, 3, 4, 5, 6, 7}, {3, 2, 1, 0, 7, 6, 5, 4}});
  CHECK(orders("2.30.7") == Orders{{0, 1, 2, 3, 7, 6, 5, 4}, {3, 2, 1, 0, 4, 5, 6, 7}});
}

TEST_CASE("a file that is missing or does not fit the machine is refused") {
  const Folder folder;
  const std::string text = scenario_of("dgx-a100", 2, "2.22.3");
  CHECK(folder.complaint(text, {graph_file}) ==
        "--set library.env.NCCL_GRAPH_FILE=g.xml: /library/env/NCCL_GRAPH_FILE: expected a file named in the scenario, "
        "found no file of that name: g.xml\n  hint: file names are relative to the folder of the scenario");
  folder.write("g.xml", one_ring({0, 1, 2, 3, 4, 5, 6, 9}, 0, 0));
  CHECK(folder.complaint(text, {graph_file})
            .starts_with("g.xml:3: expected dev of <gpu> to be that of a participating GPU, found \"9\""));
  folder.write("g.xml", one_ring({0, 1, 2, 3, 4, 5, 6, 7}, 0, 8));
  CHECK(folder.complaint(text, {graph_file}).starts_with("g.xml:3: expected dev of <net> to be that of a NIC"));
}

TEST_CASE("groups on other GPUs than those of the file are refused, for each reads the file") {
  const Folder folder;
  folder.write("g.xml", one_ring({0, 1, 2, 3}, 0, 0));
  const std::string text = scenario_of("dgx-a100", 1, "2.22.3");
  CHECK(folder.complaint(text, {graph_file, "collective.split=DIV 4"}) ==
        "s.json: /collective: expected ranks on the GPUs of g.xml, gpu0, gpu1, gpu2, gpu3, on every node, found gpu4, "
        "gpu5, gpu6, gpu7\n  hint: a file describes one communicator; other communicators read it as well and do not "
        "find their GPUs");
}

TEST_CASE("what cannot be written as a file is said") {
  const Folder folder;
  const auto said = [&](const std::string& text, const std::vector<std::string>& overrides = {}) {
    return test::complaint([&] { searched_graph(folder.point(text, overrides)); });
  };
  const std::string plain = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
                                "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})";
  CHECK(
      said(plain).ends_with("/library: expected a library, because NCCL's graph XML contains its rings, found none\n  "
                            "hint: \"library\": \"nccl\""));
  const std::string text = scenario_of("dgx-a100", 1, "2.22.3");
  folder.write("g.xml", searched(folder, text));
  CHECK(said(text, {graph_file}).find("expected rings from a search, found those of ") != std::string::npos);
}

}  // namespace nccl_graph_file_test
