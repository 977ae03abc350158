// Machines as machine files.
#include "topologies/machines/machine_text.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/files.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/formats/smi_import.hpp"
#include "topologies/machines/machine.hpp"

namespace machine_text_test {

using namespace ringsim;

namespace {

/// The source without what tells a product from a figure of its own: a file has one bandwidth.
std::string plain(std::string source) {
  for (std::size_t at = 0; (at = source.find("bandwidth: ", at)) != std::string::npos;) source.erase(at, 11);
  return source;
}

void check_equal(const LinkSpec& a, const LinkSpec& b) {
  CHECK(a.bandwidth == b.bandwidth);
  CHECK(a.latency == b.latency);
  CHECK(a.kind == b.kind);
  CHECK(a.duplex == b.duplex);
  CHECK(a.joined == b.joined);
  CHECK(plain(a.source) == plain(b.source));
}

void check_equal(const Machine& a, const Machine& b) {
  CHECK(a.name == b.name);
  CHECK(a.summary == b.summary);
  CHECK(a.host.peer_access == b.host.peer_access);
  CHECK(a.host.peer_cost == b.host.peer_cost);
  CHECK(a.host.gpudirect_cost == b.host.gpudirect_cost);
  CHECK(a.host.bridges_apart == b.host.bridges_apart);
  REQUIRE(a.devices.size() == b.devices.size());
  for (std::size_t d = 0; d < a.devices.size(); ++d) {
    CAPTURE(a.devices[d].name);
    CHECK(a.devices[d].name == b.devices[d].name);
    CHECK(a.devices[d].kind == b.devices[d].kind);
    CHECK(a.devices[d].attributes == b.devices[d].attributes);
    REQUIRE(a.devices[d].port.has_value() == b.devices[d].port.has_value());
    if (a.devices[d].port) check_equal(*a.devices[d].port, *b.devices[d].port);
  }
  REQUIRE(a.cables.size() == b.cables.size());
  for (std::size_t c = 0; c < a.cables.size(); ++c) {
    CHECK(a.cables[c].from == b.cables[c].from);
    CHECK(a.cables[c].to == b.cables[c].to);
    check_equal(a.cables[c].link, b.cables[c].link);
  }
}

}  // namespace

TEST_CASE("a machine that was written as a machine file is read as the same machine") {
  std::vector<Machine> machines;
  for (const PresetFile& preset : preset_files()) machines.push_back(node_preset(std::string(preset.name)));
  for (const auto& path : test::files_in(test::sample(""), ".xml")) {
    machines.push_back(import_nccl_xml(test::read_file(path), path.filename().string()));
  }
  machines.push_back(
      import_nvidia_smi(test::read_file(test::sample("matrix.txt")), "matrix.txt", node_preset("dgx-1v")));
  CHECK(machines.size() >= 6);
  for (const Machine& machine : machines) {
    CAPTURE(machine.name);
    const std::string text = to_machine_file(machine);
    const Machine again = parse_machine(text, "again.json");
    check_equal(again, machine);
    CHECK(to_machine_file(again) == text);
  }
}

TEST_CASE("a machine file holds hosts, attributes and NICs that are not cabled") {
  Machine machine{.name = "m", .summary = "a \"test\""};
  machine.host = {.peer_access = PathType::phb, .peer_cost = 1.2, .gpudirect_cost = 1.25, .bridges_apart = true};
  machine.devices = {{"gpu0", NodeKind::gpu, {}, {{"busid", "0000:01:00.0"}, {"sm", "70"}}},
                     {"nic0", NodeKind::nic, {}, {}},
                     {"nic1",
                      NodeKind::nic,
                      LinkSpec{.bandwidth = {12'000'000'000},
                               .kind = LinkKind::infiniband,
                               .source = "bandwidth: a table; latency: assumed: none"},
                      {}}};
  machine.cables = {{0,
                     1,
                     {.bandwidth = {48'000'000'000},
                      .latency = Picoseconds{350'000},
                      .kind = LinkKind::pcie,
                      .joined = 2,
                      .source = "2 links as one, of each: bandwidth: a page, assumed: that it holds; latency: a run"}}};
  CHECK(to_machine_file(machine) == R"({
  "name": "m",
  "summary": "a \"test\"",
  "host": {"peer_access":{"value":"PHB","source":"as in the machine \"m\" from which this file was written"},"peer_cost":{"value":1.2,"source":"as in the machine \"m\" from which this file was written"},"gpudirect_cost":{"value":1.25,"source":"as in the machine \"m\" from which this file was written"},"between_host_bridges":{"value":"SYS","source":"as in the machine \"m\" from which this file was written"}},
  "link_types": {
    "infiniband": {"kind":"infiniband","bandwidth":{"value":"12 GB/s","source":"a table"},"latency":{"value":"0 ps","assumed":"none"}},
    "pcie": {"kind":"pcie","bandwidth":{"value":"24 GB/s","source":"a page","assumed":"that it holds"},"latency":{"value":"350 ns","source":"a run"}}
  },
  "devices": [
    {"name":"gpu0","kind":"gpu","attributes":{"busid":"0000:01:00.0","sm":"70"}},
    {"name":"nic0","kind":"nic","cabled":false},
    {"name":"nic1","kind":"nic","port":"infiniband"}
  ],
  "links": [
    {"from":"gpu0","to":"nic0","type":"pcie","count":2}
  ]
}
)");
}

}  // namespace machine_text_test
