// NCCL's search on a node: what NCCL's own code finds, and what decides.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/files.hpp"
#include "topologies/nccl/nccl_tuner.hpp"
#include "topologies/nccl_search/node_search.hpp"

namespace nccl_search_test {

using namespace ringsim;
using namespace ringsim::nccl;

namespace {

std::string graph_text(std::string_view name, const SearchGraph& graph) {
  if (graph.channels.empty()) return "";
  std::string out =
      fmt::format("  {}: pattern {}, {} x {:.6g}/{:.6g} GB/s, {}/{}, same {}, crossnic {}\n", name, graph.pattern,
                  graph.channels.size(), graph.inside, graph.between, to_string(graph.type_inside),
                  to_string(graph.type_between), static_cast<int>(graph.same_channels), graph.cross_nic);
  for (const SearchGraph::Channel& channel : graph.channels) {
    out += "    ";
    if (channel.enters) out += *channel.enters + " ";
    for (std::size_t g = 0; g < channel.gpus.size(); ++g)
      out += (g > 0 ? " " : "") + channel.gpus[g].substr(std::string_view("gpu").size());
    if (channel.leaves) out += " " + *channel.leaves;
    out += "\n";
  }
  return out;
}

/// The rate of the ports that a preset's NICs have.
Bandwidth port_of(const Machine& machine) {
  Bandwidth least{};
  for (const Machine::Device& device : machine.devices)
    if (device.port && (least.bytes_per_second == 0 || device.port->bandwidth < least)) least = device.port->bandwidth;
  return least;
}

Machine two_ports() {
  const std::string file = std::string(test::source_dir()) + "/tests/data/nccl_search/two-ports.json";
  return parse_machine(test::read_file(file), file);
}

NodeSearch found(const std::string& preset, int gpus, int nodes, const SearchSettings& settings = {}) {
  const Machine machine = preset == "two-ports" ? two_ports() : node_preset(preset);
  return *tuner_machine(machine, gpus, nodes, port_of(machine), Release::v2_30_7, settings).search;
}

std::string text_of(const NodeSearch& search) {
  return graph_text("ring", search.ring) + graph_text("tree", search.tree) + graph_text("nvls", search.nvls);
}

struct Case {
  std::string title, graphs;
};
std::vector<Case> cases_of_nccl() {
  std::istringstream lines(test::read_file(std::string(test::source_dir()) + "/tests/data/nccl_search/found.txt"));
  std::vector<Case> out;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    if (line.starts_with(" "))
      out.back().graphs += line + "\n";
    else
      out.push_back({line, ""});
  }
  return out;
}

}  // namespace

TEST_CASE("the search finds channel for channel what NCCL's own code finds") {
  const std::vector<Case> cases = cases_of_nccl();
  CHECK(cases.size() == 35);
  for (const Case& expected : cases) {
    CAPTURE(expected.title);
    std::istringstream words(expected.title);  // "dgx-a100, 2 nodes of 8 GPUs"
    std::string preset, word;
    int nodes = 0, gpus = 0;
    std::getline(words, preset, ',');
    words >> nodes >> word >> word >> gpus;
    REQUIRE(gpus > 0);
    CHECK(text_of(found(preset, gpus, nodes)) == expected.graphs);
  }
}

TEST_CASE("ports of a card that are not merged are NICs of their own, two for each GPU") {
  const auto rails = [](const Machine& machine) {
    return tuner_machine(machine, 8, 2, port_of(machine), Release::v2_30_7).rails;
  };
  CHECK(rails(two_ports()) == 2);
  CHECK(rails(node_preset("oci-h100")) == 1);
}

TEST_CASE("without GPUDirect channels take the CPU on the way to the NIC, and fewer have room") {
  // The PCIe of the CPU then carries what NIC and GPU exchange twice, once to memory and once from it: 48 GB/s that a
  // ring takes of each GPU do not fit into 48 GB/s of PCIe gen5.
  const NodeSearch with = found("hgx-h100", 8, 4), without = found("hgx-h100", 8, 4, {.gdr_level = PathType::loc});
  CHECK(with.ring.type_between == PathType::pix);
  CHECK(without.ring.type_between == PathType::phb);
  CHECK(static_cast<double>(without.ring.channels.size()) * without.ring.between <
        static_cast<double>(with.ring.channels.size()) * with.ring.between);
}

TEST_CASE("a GPU's kind, its peer access and its NICs decide, one by one") {
  Machine machine = node_preset("hgx-h100");
  const auto of = [&](const SearchSettings& settings = {}) {
    return *tuner_machine(machine, 8, 2, Bandwidth{48'000'000'000}, Release::v2_30_7, settings).search;
  };
  CHECK(of().ring.cross_nic == 2);
  CHECK(of({.cross_nic = 0}).ring.cross_nic == 0);
  CHECK(of({.cross_nic = 1}).ring.cross_nic == 1);
  CHECK(of().nvls.channels.size() == 8);
  for (Machine::Device& device : machine.devices)
    if (device.kind == NodeKind::gpu) device.attributes["sm"] = "80";
  CHECK(of().nvls.channels.empty());  // NVLS came with Hopper
  CHECK(of().tree.pattern == 1);      // and before it trees are balanced
  machine = node_preset("hgx-h100");
  for (Machine::Device& device : machine.devices)
    if (device.name == "nic7") device.idle = true;
  const NodeSearch seven = of();
  for (const SearchGraph::Channel& channel : seven.ring.channels) {
    CHECK(*channel.enters != "nic7");
    CHECK(*channel.leaves != "nic7");
  }
}

TEST_CASE("what was found once is not searched for again, unless something else is asked") {
  const Machine machine = node_preset("dgx-a100");
  const auto of = [&](int gpus, int nodes, Bandwidth nic, const SearchSettings& settings = {},
                      Release release = Release::v2_30_7) {
    return tuner_machine(machine, gpus, nodes, nic, release, settings).search;
  };
  constexpr Bandwidth rate{24'000'000'000}, half{12'000'000'000};
  const auto once = of(8, 2, rate);
  CHECK(of(8, 2, rate) == once);
  CHECK(of(8, 4, rate) == once);  // nodes are alike
  CHECK(of(7, 2, rate) != once);
  CHECK(of(8, 2, half) != once);
  CHECK(of(8, 2, rate, {}, Release::v2_8_3) != once);
  CHECK(of(8, 2, rate, {.p2p_level = PathType::sys}) != once);
  CHECK(of(8, 2, rate, {.gdr_level = PathType::loc}) != once);
  CHECK(of(8, 2, rate, {.cross_nic = 0}) != once);
  CHECK(of(8, 2, rate, {.pxn = false}) != once);
}

TEST_CASE("without PXN a GPU does not send over the NVLink of another to a NIC that is near to that") {
  Machine machine = node_preset("hgx-b300");
  const auto farthest = [&](bool pxn) {
    const SearchSettings settings{.cross_nic = 0, .pxn = pxn};
    return tuner_machine(machine, 8, 2, Bandwidth{96'000'000'000}, Release::v2_29_7, settings)
        .search->ring.type_between;
  };
  CHECK(farthest(true) == PathType::pxn);
  CHECK(farthest(false) > PathType::pxn);
}

TEST_CASE(
    "the search tells where NCCL would use NICs between GPUs of a node, which is where they are faster than the CPUs") {
  // Two sockets joined at 10 GB/s, each with a NIC on the PCIe switch of its four GPUs.
  const auto of = [](Bandwidth nic) {
    return tuner_machine(node_preset("a100-pcie"), 8, 2, nic, Release::v2_30_7).search->nics_join_gpus;
  };
  CHECK(of(Bandwidth{25'000'000'000}));
  CHECK_FALSE(of(Bandwidth{5'000'000'000}));
  CHECK_FALSE(found("hgx-h100", 8, 2).nics_join_gpus);  // NVLink is faster
}

}  // namespace nccl_search_test
