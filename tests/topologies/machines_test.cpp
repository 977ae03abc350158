// The machines that are built in: that each is whole, and what its copies reach.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/run/run.hpp"
#include "sim/topology/path_type.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/names.hpp"
#include "tests/support/paths.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/machine.hpp"

namespace machines_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
const StarFabric wide{{.bandwidth = 1000_GBps, .latency = 1_ps}};

std::size_t n_cabled(const Machine& machine) {
  return static_cast<std::size_t>(std::count_if(machine.devices.begin(), machine.devices.end(),
                                                [](const Machine::Device& device) { return device.port.has_value(); }));
}

/// A row of validate/measured/tables/copies.csv. GB/s; `both`: of both directions together, 0 where nobody measured it.
struct Copy {
  std::string preset, from, to, kind, p2p_level, machine, source, efficiency_from;
  double least = 0, median = 0, most = 0, both = 0;
};

/// The fields of a line; quotes hold commas together.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<Copy> measured_copies() {
  std::ifstream file(test::source_dir() + "/validate/measured/tables/copies.csv");
  REQUIRE(file);
  std::vector<Copy> copies;
  bool in_header = true;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    if (!in_header) {
      const std::vector<std::string> f = fields_of(line);
      REQUIRE(f.size() == 15);
      copies.push_back({f[0], f[1], f[2], f[3], f[4], f[11], f[12], f[13], std::stod(f[5]), std::stod(f[6]),
                        std::stod(f[7]), f[9].empty() ? 0 : std::stod(f[9])});
    }
    in_header = false;
  }
  return copies;
}

/// Whence the first link of the copy's path has its efficiency.
std::string efficiency_source(const Copy& copy) {
  const Topology t = build(cluster_of(copy.preset));
  Routes routes(t, {});
  const Path path = routes.find(at(t, "node0." + copy.from), at(t, "node0." + copy.to));
  const std::string source = t.source(t.link(path.legs.at(0).links.at(0)));
  const std::size_t begin = source.find("efficiency: "), end = source.find("latency: ");
  REQUIRE_MESSAGE((begin < end && end < source.size()), source);
  return source.substr(begin, end - begin);
}

/// What a copy of 1 GiB reaches in simulation; both ways at once: the two directions together.
double simulated_GBps(const Copy& copy, bool both_ways) {
  const Topology t = build(cluster_of(copy.preset));
  const Algorithm* direct = find_algorithm("direct");
  const auto level = path_type(copy.p2p_level);
  REQUIRE((direct && level));
  const CollectiveRequest pair{.op = CollectiveOp::pairs, .ranks = 2, .bytes = 1_GiB, .both_ways = both_ways};
  const Timeline line = run(t, check(direct->make(pair, {})),
                            {.plans = {{.transport = {.p2p_level = *level}}},
                             .placement = {at(t, "node0." + copy.from), at(t, "node0." + copy.to)}});
  const double bytes = static_cast<double>(line.bytes_sent.count);
  return bytes / static_cast<double>(line.duration().count()) * 1e3;
}
}  // namespace

TEST_CASE("every preset is called as its file, and says where its layout and its numbers come from") {
  REQUIRE_FALSE(preset_files().empty());
  std::set<std::string> names;
  for (const PresetFile& file : preset_files()) {
    CAPTURE(file.name);
    const Machine preset = node_preset(std::string(file.name));
    CHECK(preset.name == file.name);
    CHECK(names.insert(preset.name).second);
    CHECK(file.text.find("\"layout\"") != std::string_view::npos);
    CHECK(preset.summary.size() <= 100);                  // a line of `ringsim list nodes`
    for (const Machine::Device& each : preset.devices) {  // from a K80's half board to a Blackwell Ultra
      const bool is_gpu = each.kind == NodeKind::gpu;
      CHECK((each.memory >= 11_GiB && each.memory <= 288_GiB) == is_gpu);
      CHECK(each.memory_source.empty() == !is_gpu);
    }
    for (const Machine::Cable& each : preset.cables) CHECK(each.link.source.find("latency: ") != std::string::npos);
  }
  CHECK(node_catalog().size() == preset_files().size());
  CHECK(std::is_sorted(preset_files().begin(), preset_files().end(),
                       [](const PresetFile& a, const PresetFile& b) { return a.name < b.name; }));
}

TEST_CASE("machines have the GPUs and the cabled NICs that their makers state") {
  struct Count {
    std::size_t gpus, nics;
  };
  const std::map<std::string, Count> stated = {
      {"a100-pcie", {8, 2}},       {"abci-a", {8, 4}},         {"abci-v", {4, 2}},
      {"aws-p3dn", {8, 1}},        {"aws-p4d", {8, 4}},        {"aws-p4de", {8, 4}},
      {"aws-p5", {8, 32}},         {"aws-p5en", {8, 16}},      {"aws-p6-b200", {8, 8}},
      {"azure-ncv4", {4, 1}},      {"azure-ndv2", {8, 1}},     {"azure-ndv4", {8, 8}},
      {"azure-ndv5", {8, 8}},      {"dgx-1p", {8, 4}},         {"dgx-1v", {8, 4}},
      {"dgx-2", {16, 8}},          {"dgx-a100", {8, 8}},       {"gb200-nvl72", {72, 72}},
      {"gb300-nvl72", {72, 72}},   {"gcp-a3-mega", {8, 8}},    {"gcp-a3-high", {8, 4}},
      {"gcp-a3-ultra", {8, 8}},    {"gh200", {4, 4}},          {"gh200-one", {1, 4}},
      {"hgx-b200", {8, 8}},        {"hgx-b300", {8, 8}},       {"hgx-h100", {8, 8}},
      {"hgx-h100-4nic", {8, 4}},   {"hgx-h20", {8, 8}},        {"hgx-h200", {8, 8}},
      {"hgx-h800-4nic", {8, 4}},   {"l40s-pcie", {8, 2}},      {"lambda-hyperplane-8-v100", {8, 4}},
      {"mi300x", {8, 8}},          {"oci-a100", {8, 8}},       {"oci-h100", {8, 8}},
      {"polaris", {4, 2}},         {"rtx2080ti-pcie", {2, 0}}, {"rtx4090-pcie", {8, 0}},
      {"rtxpro6000-pcie", {8, 2}}, {"k80x8", {8, 1}},          {"p100x4-roce", {4, 1}},
  };
  CHECK(preset_files().size() == stated.size());
  for (const PresetFile& file : preset_files()) {
    CAPTURE(file.name);
    const auto count = stated.find(std::string(file.name));
    REQUIRE(count != stated.end());
    const Machine preset = node_preset(count->first);
    CHECK(preset.n_gpus() == count->second.gpus);
    CHECK(n_cabled(preset) == count->second.nics);
  }
}

TEST_CASE("a GPU of the newer machines has the NVLinks, and its NIC the rate, that their sources state") {
  struct Row {
    const char* preset;
    const char* sm;
    int nvlinks;             // of each GPU, from NVIDIA/nccl's files of the machine or those of its board
    std::int64_t nic_gbits;  // line rate of each port
    std::int64_t pcie;  // GB/s of the GPU's own PCIe link, as NCCL takes it: 24 a gen4 x16, 48 gen5, 96 gen6; 0: none
  };
  for (const Row& row : std::vector<Row>{{"l40s-pcie", "89", 0, 200, 24},
                                         {"rtxpro6000-pcie", "120", 0, 400, 48},
                                         {"aws-p5en", "90", 18, 200, 48},
                                         {"aws-p6-b200", "100", 18, 400, 48},
                                         {"gcp-a3-mega", "90", 18, 200, 48},
                                         {"gcp-a3-high", "90", 18, 200, 48},
                                         {"gcp-a3-ultra", "90", 18, 400, 48},
                                         {"oci-h100", "90", 18, 400, 48},
                                         {"oci-a100", "80", 12, 200, 24},
                                         {"hgx-b300", "103", 18, 800, 96},
                                         {"gb300-nvl72", "103", 18, 800, 96},
                                         {"gh200-one", "90", 0, 200, 0}}) {
    CAPTURE(row.preset);
    const Machine machine = node_preset(row.preset);
    for (std::uint32_t d = 0; d < machine.devices.size(); ++d) {
      const Machine::Device& device = machine.devices[d];
      CAPTURE(device.name);
      if (device.kind == NodeKind::nic) {
        // The port's rate is what payload reaches: nine tenths of the line rate or more, and never more than it.
        const double line = static_cast<double>(row.nic_gbits) * 1e9 / 8;
        const auto payload = static_cast<double>(device.port->bandwidth.bytes_per_second);
        CHECK(payload <= line);
        CHECK(payload >= 0.9 * line);
      }
      if (device.kind != NodeKind::gpu) continue;
      CHECK(device.attributes.at("sm") == row.sm);
      int nvlinks = 0;
      std::int64_t pcie = 0;
      for (const Machine::Cable& cable : machine.cables) {
        if (cable.from != d && cable.to != d) continue;
        if (cable.link.kind == LinkKind::nvlink) nvlinks += cable.link.joined;
        if (cable.link.kind == LinkKind::pcie) pcie += cable.link.bandwidth.bytes_per_second;
      }
      CHECK(nvlinks == row.nvlinks);
      CHECK(pcie == row.pcie * 1'000'000'000);
    }
  }
}

TEST_CASE("in every preset all GPUs reach each other and host memory, and every device is cabled") {
  for (const PresetFile& file : preset_files()) {
    CAPTURE(file.name);
    const Topology t = build(cluster_of(std::string(file.name)));
    Routes routes(t, {});
    const auto ranks = t.ranks();
    for (const NodeId from : ranks) {
      for (const NodeId to : ranks) {
        if (from != to) CHECK_FALSE(routes.find(from, to).legs.empty());
      }
    }
    for (std::uint32_t n = 0; n < t.n_nodes(); ++n) {
      CAPTURE(t.node(NodeId{n}).name);
      CHECK_FALSE(t.links_from(NodeId{n}).empty());
      // In a rack of trays every GPU has the memory of its own tray: an NVL72 has two a tray.
      if (t.node(NodeId{n}).kind != NodeKind::memory) continue;
      const auto reaches = [&](NodeId gpu) {
        try {
          return !routes.find(gpu, NodeId{n}).legs.empty();
        } catch (const InputError&) {
          return false;
        }
      };
      CHECK(std::count_if(ranks.begin(), ranks.end(), reaches) >=
            (file.name.ends_with("-nvl72") ? 4 : t.ranks().size()));
    }
  }
}

TEST_CASE("two machines of every preset with NICs reach each other, all NICs cabled once") {
  for (const PresetFile& file : preset_files()) {
    CAPTURE(file.name);
    const std::string name(file.name);
    const std::size_t n_nics = n_cabled(node_preset(name));
    if (n_nics == 0) continue;
    const Topology t = build(cluster_of(name, 2, wide));
    CHECK(t.links_to(at(t, "leaf0")).size() == 2 * n_nics);
    Routes routes(t, {});
    const std::size_t n_gpus = t.ranks().size() / 2;
    std::set<NodeId> used;
    for (std::size_t g = 0; g < n_gpus; ++g) {
      const Path path = routes.find(t.ranks()[g], t.ranks()[2 * n_gpus - 1 - g]);
      CHECK(path.type == PathType::net);
      for (const Leg& leg : path.legs) {
        for (const LinkId id : leg.links) {
          if (t.node(t.link(id).from).kind == NodeKind::nic) used.insert(t.link(id).from);
        }
      }
    }
    CHECK(used.size() == 2 * std::min(n_nics, n_gpus));  // dealt out: none stays idle while another serves two
  }
}

TEST_CASE("what NVLink copies reach on real machines, simulated copies reach within 5 percent") {
  // Each efficiency is from another machine than the copies. What misses is named here, so that it is not forgotten: 8
  // H200 under nvbandwidth reach 396.4 GB/s, 8 H100 under p2pBandwidthLatencyTest 376.
  std::string beyond;
  int n_compared = 0;
  for (const Copy& copy : measured_copies()) {
    if (copy.kind != "nvlink") continue;
    CAPTURE(copy.machine);
    CHECK(copy.efficiency_from.size() > 1);
    const std::string repository = copy.source.substr(0, copy.source.find(' '));
    CHECK(repository.size() > 1);
    CHECK(efficiency_source(copy).find(repository) == std::string::npos);
    CHECK(copy.least <= copy.median);
    CHECK(copy.median <= copy.most);
    const double predicted = simulated_GBps(copy, false);
    if (std::abs(predicted / copy.median - 1) > 0.05) beyond += copy.preset + " ";
    ++n_compared;
  }
  CHECK(n_compared == 8);
  CHECK(beyond == "hgx-h200 ");
}

TEST_CASE("both ways through host memory, two GPUs of one switch gain next to nothing, others a third and more") {
  // On one switch each direction goes up to host memory and down again over the same uplink, so both directions
  // together are no faster than one. On several switches they are: measured 1.3 to 1.8 times. The figures themselves
  // are off; docs/results/machines.md says by how much and what is missing.
  int n_compared = 0;
  for (const Copy& copy : measured_copies()) {
    if (copy.kind == "nvlink" || copy.both == 0) continue;
    if (copy.p2p_level == "NVL")
      continue;  // pairs without peer access on DGX-1 P100: CUDA serializes the two directions
    CAPTURE(copy.machine);
    CAPTURE(copy.kind);
    const double gain = simulated_GBps(copy, true) / simulated_GBps(copy, false);
    const double measured_gain = copy.both / copy.median;
    if (copy.kind == "one switch") {
      CHECK(measured_gain < 1.1);
      CHECK(gain < 1.1);
    } else {
      CHECK(measured_gain > 1.3);
      CHECK(gain > 1.3);
    }
    ++n_compared;
  }
  CHECK(n_compared == 9);
}

}  // namespace machines_test
