// NCCL's graph XML, read and written.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "topologies/formats/nccl_graph.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl/nccl_library.hpp"

namespace nccl_graph_test {

using namespace ringsim;
using namespace ringsim::nccl;
using Id = SearchGraph::Id;
using test::replaced;

namespace {

/// Two nodes of two GPUs and two NICs. NCCL writes attributes in this order.
const std::string two_nodes = R"(<graphs version="1">
  <graph id="0" pattern="4" crossnic="0" nchannels="2" speedintra="20" speedinter="12.5" latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="1">
    <channel>
      <net dev="0x0"/>
      <gpu dev="0x0"/>
      <gpu dev="0x1"/>
      <net dev="0x0"/>
    </channel>
    <channel>
      <net dev="0x1"/>
      <gpu dev="0x1"/>
      <gpu dev="0x0"/>
      <net dev="0x1"/>
    </channel>
  </graph>
</graphs>
)";
const GraphReading two_gpus{.devices = {.gpus = {{0, "gpu0"}, {1, "gpu1"}}, .nics = {{0, "nic0"}, {1, "nic1"}}},
                            .nodes = 2};

GraphFile read(const std::string& text, const GraphReading& reading = two_gpus) {
  return import_nccl_graph(text, "g.xml", reading);
}
/// What is said of the file with a change.
std::string complaint(const std::string& what, const std::string& with, const GraphReading& reading = two_gpus) {
  return test::complaint([&] { read(replaced(two_nodes, what, with), reading); });
}

/// Of one node, with that many GPUs of numbers from 0 on.
GraphReading one_node(int gpus) {
  GraphReading reading;
  for (int g = 0; g < gpus; ++g) reading.devices.gpus.emplace(g, fmt::format("gpu{}", g));
  return reading;
}

std::string ring_of_one_node(const std::vector<std::string>& devs, int channels = 1) {
  std::string channel = "<channel>";
  for (const std::string& dev : devs) channel += fmt::format(R"(<gpu dev="{}"/>)", dev);
  std::string text = fmt::format(
      R"(<graphs version="1"><graph id="0" pattern="4" crossnic="0" nchannels="{}" speedintra="12" speedinter="12" )"
      R"(typeintra="SYS" typeinter="PIX" samechannels="0">)",
      channels);
  for (int c = 0; c < channels; ++c) text += channel + "</channel>";
  return text + "</graph></graphs>";
}

}  // namespace

TEST_CASE("a ring is read with its speeds, its GPUs in order and the NICs at its ends") {
  const GraphFile file = read(two_nodes);
  CHECK(file.warnings.empty());
  REQUIRE(file.graphs.size() == 1);
  const SearchGraph* ring = file.find(Id::ring);
  REQUIRE(ring != nullptr);
  CHECK(file.find(Id::tree) == nullptr);
  CHECK(ring->inside == 20);
  CHECK(ring->between == 12.5);
  CHECK(ring->type_inside == PathType::nvl);
  CHECK(ring->same_channels);
  REQUIRE(ring->channels.size() == 2);
  CHECK(ring->channels[1].gpus == std::vector<std::string>{"gpu1", "gpu0"});
  CHECK(ring->channels[1].enters == "nic1");
  CHECK(ring->channels[1].leaves == "nic1");
}

TEST_CASE("what is written is read again, whatever the numbers of its devices") {
  GraphFile file = read(two_nodes);
  CHECK(to_nccl_graph(file.graphs, two_gpus.devices) == two_nodes);
  // With 17 GPUs numbers have letters and two digits, which 2.19 reads as C does and 2.21 as hexadecimal.
  GraphReading many = one_node(17);
  SearchGraph ring;
  ring.inside = ring.between = 20.6;
  SearchGraph::Channel& channel = ring.channels.emplace_back();
  for (int g = 16; g >= 0; --g) channel.gpus.push_back(fmt::format("gpu{}", g));
  for (const bool hexadecimal : {true, false}) {
    many.hexadecimal = hexadecimal;
    const GraphFile again = read(to_nccl_graph({ring}, many.devices), many);
    CHECK(again.graphs.front().channels == ring.channels);
    CHECK(again.graphs.front().inside == 20.6);
  }
}

TEST_CASE("dev is hexadecimal from NCCL 2.21 on, and before as C reads it") {
  // src/graph/search.cc: strtol(str, NULL, 16) since 2.21.5, xmlGetAttrInt, which is strtol with base 0, up to 2.20.5.
  CHECK(graph_reading({}, 1, "2.20.5").hexadecimal == false);
  CHECK(graph_reading({}, 1, "2.21.5").hexadecimal == true);
  GraphReading reading = one_node(0);
  reading.devices.gpus = {{10, "ten"}, {16, "sixteen"}};
  const auto first = [&](bool hexadecimal, const char* a, const char* b) {
    reading.hexadecimal = hexadecimal;
    return read(ring_of_one_node({a, b}), reading).graphs.front().channels.front().gpus.front();
  };
  CHECK(first(true, "10", "a") == "sixteen");
  CHECK(first(true, "0xa", "10") == "ten");
  CHECK(first(false, "10", "0x10") == "ten");
  CHECK(first(false, "020", "10") == "sixteen");
}

TEST_CASE("a file that NCCL would misread is refused with its line") {
  CHECK(complaint("<graphs version=\"1\">", "<graphs version=\"2\">") ==
        "g.xml:1: expected version \"1\" of <graphs>, found \"2\"\n  hint: NCCL refuses other versions as well");
  CHECK(complaint("<gpu dev=\"0x1\"/>", "<gpu dev=\"0x0\"/>") ==
        "g.xml:6: expected each GPU once in a channel, found gpu0 (dev 0x0) again");
  CHECK(complaint("      <gpu dev=\"0x1\"/>\n", "") ==
        "g.xml:3: expected each of 2 GPUs once in a channel, found no gpu1 (dev 0x1)");
  CHECK(complaint("<gpu dev=\"0x1\"/>", "<gpu dev=\"0x7\"/>") ==
        "g.xml:6: expected dev of <gpu> to be that of a participating GPU, found \"0x7\"; there are 0x0 (gpu0), 0x1 "
        "(gpu1)\n  hint: use a file for this machine, or the machine of this file");
  CHECK(complaint("<net dev=\"0x1\"/>", "<net dev=\"0x2\"/>") ==
        "g.xml:10: expected dev of <net> to be that of a NIC, found \"0x2\"; there are 0x0 (nic0), 0x1 (nic1)\n  hint: "
        "use a file for this machine, or the machine of this file");
  CHECK(complaint("dev=\"0x1\"", "dev=\"1x\"") ==
        "g.xml:6: expected dev of <gpu> to be a hexadecimal number, found \"1x\"\n  hint: NCCL 2.21 and later read it "
        "as hexadecimal: 10 is 16, 0xa is 10");
  CHECK(complaint("      <net dev=\"0x0\"/>\n", "") ==
        "g.xml:3: expected <net> before and after the GPUs of a channel, found none before them\n  hint: this file is "
        "for one node; NCCL would use the net of dev 0 for all channels");
  CHECK(complaint("speedintra=\"20\"", "speedintra=\"0\"") ==
        "g.xml:2: expected speedintra of <graph> to be a number of GB/s above 0, found \"0\"");
  CHECK(complaint("speedinter=\"12.5\"", "speedinter=\"-1\"") ==
        "g.xml:2: expected speedinter of <graph> to be a number of GB/s above 0, found \"-1\"");
  CHECK(complaint("nchannels=\"2\"", "nchannels=\"3\"") ==
        "g.xml:2: expected as many <channel> as nchannels says, 3, found 2\n  hint: NCCL does not count them: it "
        "assumes that missing channels consist only of rank 0");
  CHECK(complaint("nchannels=\"2\"", "nchannels=\"65\"") ==
        "g.xml:2: expected nchannels of <graph> to be a whole number from 0 to 64, found \"65\"");
  CHECK(complaint("pattern=\"4\"", "pattern=\"1\"") ==
        "g.xml:2: expected pattern 4 (ring) of <graph> of id 0, found 1");
  CHECK(complaint("typeintra=\"NVL\"", "typeintra=\"NVLINK\"") ==
        "g.xml:2: expected typeintra of <graph> to be one of LOC, NVL, NVB, PIX, PXB, P2C, PXN, PHB, SYS, found "
        "\"NVLINK\"");
  CHECK(complaint(" samechannels=\"1\"", "") == "g.xml:2: expected the attribute samechannels of <graph>, found none");
  CHECK(complaint("<gpu dev=\"0x1\"/>", "<gpu dev=\"0x1\" rank=\"3\"/>") ==
        "g.xml:6: expected rank 1 for the GPU of dev 0x1, found 3\n  hint: remove rank: NCCL then finds the GPU by "
        "dev, on every node");
  CHECK(test::complaint([] { read("no XML"); }) ==
        "g.xml: expected an XML document, found text that does not begin with \"<\"");
  CHECK(complaint("</channel>", "").starts_with("g.xml:"));
  CHECK(test::complaint([] { read("<system version=\"1\"/>"); }) ==
        "g.xml:1: expected NCCL's graph XML with the root <graphs>, found <system>\n  hint: this is NCCL's topology "
        "XML (NCCL_TOPO_FILE); use it as topology.file");
}

TEST_CASE("a graph that is there twice is refused, for NCCL takes parts of both") {
  std::string twice = two_nodes;
  const std::size_t begin = twice.find("  <graph id"), end = twice.find("</graphs>");
  twice.insert(end, twice.substr(begin, end - begin));
  CHECK(test::complaint([&] { read(twice); }) == "g.xml:16: expected each id once, found 0 again (first on line 2)");
}

TEST_CASE("releases have room for different numbers of channels") {
  CHECK(graph_reading({}, 1, "2.24.3").most_channels == 32);  // MAXCHANNELS, src/include/device.h
  CHECK(graph_reading({}, 1, "2.25.1").most_channels == 64);
  GraphReading old = one_node(2);
  old.most_channels = 32;
  CHECK_NOTHROW(read(ring_of_one_node({"0", "1"}, 32), old));
  CHECK_THROWS_AS(read(ring_of_one_node({"0", "1"}, 33), old), InputError);
}

TEST_CASE("what has no effect is said") {
  const auto warning = [](const std::string& text, const GraphReading& reading) {
    const GraphFile file = read(text, reading);
    return file.warnings.empty() ? "" : file.warnings.front();
  };
  GraphReading one = two_gpus;
  one.nodes = 1;
  CHECK(warning(two_nodes, one) == "g.xml:4: <net> has no effect on one node");
  CHECK(read(two_nodes, one).warnings.size() == 1);  // not once for each
  CHECK(warning(replaced(two_nodes, "id=\"0\" pattern=\"4\"", "id=\"2\" pattern=\"3\""), two_gpus) ==
        "g.xml:2: <graph> of id 2 has no effect: CollNet is not modeled");
  CHECK(warning(replaced(two_nodes, "id=\"0\"", "id=\"7\""), two_gpus) ==
        "g.xml:2: <graph> of id 7 has no effect: NCCL uses ids 0 to 4");
  CHECK(warning(replaced(two_nodes, " latencyinter", " speed=\"1\" latencyinter"), two_gpus) ==
        "g.xml:2: speed of <graph> has no effect: NCCL has no such attribute");
  CHECK(warning(replaced(two_nodes, "    <channel>", "    <ring/><channel>"), two_gpus) ==
        "g.xml:3: <ring> within <graph> has no effect: NCCL has no such element");
}

TEST_CASE("a graph of no channels is as if it were not there, as in dumps of machines without NVLS") {
  const GraphFile file =
      read(R"(<graphs version="1"><graph id="3" pattern="5" crossnic="0" nchannels="0" speedintra="0" speedinter="0" )"
           R"(latencyinter="0" typeintra="NVL" typeinter="PIX" samechannels="0"/></graphs>)");
  CHECK(file.graphs.empty());
  CHECK(file.warnings.empty());
}

TEST_CASE("rings and trees have as many channels as the fewer of both") {
  // Azure's file for four A100 has 2 rings and 4 trees; NCCL runs 2 of each (src/init.cc).
  TunerMachine machine{.gpus = 2, .sm = 80, .nvlink = true, .ll128 = true, .ring = {6, 20, 20}, .tree = {6, 20, 20}};
  GraphFile file;
  SearchGraph ring, tree;
  tree.id = Id::tree;
  ring.inside = tree.inside = 12;
  ring.type_inside = tree.type_inside = PathType::sys;
  ring.channels.resize(2);
  tree.channels.resize(4);
  file.graphs = {ring, tree};
  take_graphs(machine, file, "g.xml", Release::v2_30_7);
  CHECK(machine.ring.count == 2);
  CHECK(machine.tree.count == 2);
  CHECK(machine.ring.inside == 12);
  CHECK_FALSE(machine.nvlink);  // src/graph/tuning.cc: typeIntra == LINK_NVL
  CHECK_FALSE(machine.ll128);   // typeIntra <= PATH_NVB
  CHECK(file.warnings.empty());
}

TEST_CASE("rings that repeat the first ones in order are these rings") {
  SearchGraph graph;
  const auto add = [&](std::initializer_list<const char*> gpus) {
    auto& channel = graph.channels.emplace_back();
    for (const char* gpu : gpus) channel.gpus.emplace_back(gpu);
  };
  add({"a", "b", "c"});
  add({"a", "c", "b"});
  add({"a", "b", "c"});
  CHECK(rings_in(graph, 1, "2.30.7") == 2);  // two rings on three channels
  add({"a", "c", "b"});
  CHECK(rings_in(graph, 1, "2.30.7") == 2);
  add({"b", "c", "a"});
  CHECK(rings_in(graph, 1, "2.30.7") == 5);
}

TEST_CASE("the first GPU of a channel sends and receives by the NIC by which the ring enters") {
  // ncclTopoGetNetDev of src/graph/search.cc: `index = graph->intra[channel * ngpus] == rank ? 0 : 1`.
  SearchGraph graph;
  graph.channels = {{.gpus = {"gpu0", "gpu1"}, .enters = "nic0", .leaves = "nic1"},
                    {.gpus = {"gpu1", "gpu0"}, .enters = "nic2", .leaves = "nic3"}};
  const ChannelNics nics = nics_of(graph, 4);
  CHECK(*nics.find(0, "gpu0") == "nic0");
  CHECK(*nics.find(0, "gpu1") == "nic1");
  CHECK(*nics.find(1, "gpu1") == "nic2");
  CHECK(*nics.find(1, "gpu0") == "nic3");
  CHECK(*nics.find(2, "gpu0") == "nic0");  // the third channel of the run takes the first of the file
  CHECK(*nics.find(4, "gpu0") == "nic0");  // the second tree of the first channel
  CHECK(nics.find(0, "gpu2") == nullptr);
}

}  // namespace nccl_graph_test
