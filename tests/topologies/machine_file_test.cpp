// Machine files: what they may say, and how a mistake in one is named.
#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/paths.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/machine.hpp"

namespace machine_file_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {
using Texts = std::vector<std::string>;

/// A machine with these devices and links, between which every link is of type "wire" or of the library.
Machine machine_of(const std::string& devices, const std::string& links, const std::string& more = "") {
  return parse_machine(
      R"({"name": "x", "summary": "y", "devices": [)" + devices + R"(], "links": [)" + links + "]" + more + "}",
      "x.json");
}

Texts names_of(const Machine& machine) {
  Texts names;
  for (const Machine::Device& device : machine.devices) names.push_back(device.name);
  return names;
}

/// "from - to", in the order of the file.
Texts cables_of(const Machine& machine) {
  Texts names;
  for (const Machine::Cable& cable : machine.cables) {
    names.push_back(machine.devices[cable.from].name + " - " + machine.devices[cable.to].name);
  }
  return names;
}

const std::string eight = R"({"name": "gpu[0-7]", "kind": "gpu"}, {"name": "s[0-3]", "kind": "pcie_switch"},
                             {"name": "n[0-2]", "kind": "cpu"})";
}  // namespace

TEST_CASE("a preset with a mistake is refused at the place of the mistake") {
  const std::string good = R"({"name": "x", "summary": "y",
    "link_types": {"wire": {"kind": "pcie", "bandwidth": {"value": "12 GB/s", "source": "a page"},
                            "latency": {"value": "1 us", "assumed": "a guess"}}},
    "devices": [{"name": "gpu0", "kind": "gpu"}, {"name": "nic0", "kind": "nic", "port": "wire"}],
    "links": [{"from": "gpu0", "to": "nic0", "type": "wire", "count": 2}]})";
  const Machine preset = parse_machine(good, "x.json");
  REQUIRE(preset.cables.size() == 1);
  CHECK(preset.cables[0].link.bandwidth == 24_GBps);
  CHECK(preset.cables[0].link.source == "2 links as one, of each: bandwidth: a page; latency: assumed: a guess");

  const std::string cabled_hint =
      "\n  hint: for a nic that is not connected to the fabric (storage, management), set \"cabled\": false instead";
  struct Row {
    std::string from, to;
  };
  const std::vector<Row> rows = {
      {R"({"value": "12 GB/s", "source": "a page"})", R"({"value": "12 GB/s"})"},
      {R"({"value": "1 us", "assumed": "a guess"})", R"("1 us")"},
      {R"("source": "a page")", R"("source": "")"},
      {R"("assumed": "a guess")", R"("assumed": "a guess", "unit": "us")"},
      {R"("kind": "pcie")", R"("knid": "pcie")"},
      {R"("kind": "pcie")", R"("kind": "pci")"},
      {R"("bandwidth")", R"("line_rate")"},
      {R"("from": "gpu0")", R"("from": "gpu1")"},
      {R"("12 GB/s")", R"("900000 TB/s")"},
      {R"("count": 2}])", R"("count": 2}, {"from": "nic0", "to": "gpu0", "type": "wire"}])"},
      {R"("count": 2)", R"("count": 0)"},
      {R"("to": "nic0")", R"("to": "gpu0")"},
      {R"(, "port": "wire")", ""},
      {R"("summary": "y")", R"("name": "y")"},
      {R"("summary": "y",)", ""},
      {R"("devices": [)", R"("devices": )"},
      {R"({"name": "nic0")", R"({"name": "gpu0")"},
      {R"("kind": "gpu")", R"("kind": "gpu", "memory": "80 GiB")"},
      {R"("kind": "gpu")", R"("kind": "gpu", "memory": {"value": 80, "source": "a data sheet"})"},
      {R"("kind": "gpu")", R"("kind": "gpu", "memory": {"value": "0 B", "source": "a data sheet"})"},
      {R"(, "port": "wire")", R"(, "port": "wire", "memory": {"value": "1 GiB", "source": "a data sheet"})"},
  };
  ringsim::test::MessagePage page("machine_file");
  for (const Row& row : rows) {
    std::string bad = good;
    const std::size_t where = bad.find(row.from);
    REQUIRE(where != std::string::npos);
    bad.replace(where, row.from.size(), row.to);
    page.add(row.from + " -> " + row.to, ringsim::test::complaint([&] { parse_machine(bad, "x.json"); }));
  }
  page.check();
}

TEST_CASE("what payload reaches is the line rate times the efficiency") {
  const auto with = [](const std::string& share) {
    return parse_machine(R"({"name": "x", "summary": "y",
      "devices": [{"name": "gpu0", "kind": "gpu"}, {"name": "gpu1", "kind": "gpu"}],
      "links": [{"from": "gpu0", "to": "gpu1", "type": "wire"}],
      "link_types": {"wire": {"kind": "nvlink", "duplex": "half",
        "line_rate": {"value": "25 GB/s", "source": "a"}, "efficiency": {"value": )" +
                             share + R"(, "source": "b"}, "latency": {"value": "0 us", "source": "c"}}}})",
                         "x.json");
  };
  const LinkSpec link = with("0.9").cables.at(0).link;
  CHECK(link.bandwidth == Bandwidth{22'500'000'000});
  CHECK(link.duplex == Duplex::half);
  CHECK(link.source == "line rate: a; efficiency: b; latency: c");
  for (const char* share : {"0", "1.5", "-0.5"}) {
    CHECK_THROWS_WITH_AS(
        with(share),
        doctest::String("x.json: /link_types/wire/efficiency/value: expected a share above 0 and at most 1, found ") +
            doctest::String(share),
        InputError);
  }
  CHECK_THROWS_WITH_AS(with("\"90%\""), "x.json: /link_types/wire/efficiency/value: expected a share such as 0.96",
                       InputError);
}

TEST_CASE("a list of names stands for its devices, in its order") {
  const Machine m = machine_of(R"({"name": "gpu[0-1,4]", "kind": "gpu", "attributes": {"sm": "70"}},
                                  {"name": "nic0", "kind": "nic", "port": "hdr"},
                                  {"name": "nic[1-2]", "kind": "nic", "cabled": false},
                                  {"name": "root0", "kind": "host_bridge"})",
                               "");
  CHECK(names_of(m) == Texts{"gpu0", "gpu1", "gpu4", "nic0", "nic1", "nic2", "root0"});
  CHECK(m.devices[2].attributes == std::map<std::string, std::string>{{"sm", "70"}});
  CHECK(m.devices[3].port->bandwidth == library_link("hdr").bandwidth);
  CHECK_FALSE(m.devices[4].port);
  CHECK(m.devices[6].kind == NodeKind::host_bridge);
  CHECK(m.n_gpus() == 3);
}

TEST_CASE("lists at both ends of a link go pairwise, or in runs of the longer") {
  const auto cables = [](const std::string& links) { return cables_of(machine_of(eight, links)); };
  const std::string type = R"(, "type": "pcie4-x16"})";
  CHECK(cables(R"({"from": "gpu[0-2]", "to": "s0")" + type) == Texts{"gpu0 - s0", "gpu1 - s0", "gpu2 - s0"});
  CHECK(cables(R"({"from": "s0", "to": "gpu[0,7]")" + type) == Texts{"s0 - gpu0", "s0 - gpu7"});
  CHECK(cables(R"({"from": "gpu[0,2,4,6]", "to": "s[0-3]")" + type) ==
        Texts{"gpu0 - s0", "gpu2 - s1", "gpu4 - s2", "gpu6 - s3"});
  CHECK(cables(R"({"from": "gpu[0-3]", "to": "s[0-1]")" + type) ==
        Texts{"gpu0 - s0", "gpu1 - s0", "gpu2 - s1", "gpu3 - s1"});
  CHECK(cables(R"({"mesh": "gpu[1-3]")" + type) == Texts{"gpu1 - gpu2", "gpu1 - gpu3", "gpu2 - gpu3"});
  CHECK_THROWS_WITH_AS(cables(R"({"from": "gpu[0-7]", "to": "n[0-2]")" + type),
                       "x.json: /links/0: expected two lists of equal length, or one length that is a multiple of the "
                       "other, found 8 and 3 devices",
                       InputError);
  CHECK_THROWS_WITH_AS(cables(R"({"mesh": "gpu1")" + type),
                       "x.json: /links/0/mesh: expected two devices or more, found one", InputError);
  CHECK_THROWS_WITH_AS(cables(R"({"mesh": "gpu[0-1]", "to": "s0")" + type),
                       "x.json: /links/0: expected either \"mesh\", or \"from\" and \"to\"", InputError);
  CHECK_THROWS_WITH_AS(
      cables(R"({"from": "gpu[6-8]", "to": "s0")" + type),
      "x.json: /links/0/from: expected the name of a device, found \"gpu8\"\n  hint: did you mean \"gpu0\"?",
      InputError);
  CHECK_THROWS_WITH_AS(cables(R"({"mesh": "gpu[1,1]")" + type), "x.json: /links/0: a link from \"gpu1\" to itself",
                       InputError);
}

TEST_CASE("a list that counts nothing, backwards or without end is refused") {
  for (const std::string list : {"gpu[]", "gpu[0-", "gpu0-7]", "gpu[7-0]", "gpu[0-3]x", "gpu[a-b]", "gpu[00-07]",
                                 "gpu[0-1,]", "gpu[[0]]", "gpu[-1]", "gpu[0-99999999999]"}) {
    CHECK_THROWS_WITH_AS(machine_of(R"({"name": ")" + list + R"(", "kind": "gpu"})", ""),
                         ("x.json: /devices/0/name: expected a name or a list of names such as \"gpu[0-7]\" or "
                          "\"gpu[0-1,4]\", found \"" +
                          list + "\"")
                             .c_str(),
                         InputError);
  }
  CHECK_THROWS_WITH_AS(machine_of(R"({"name": "gpu[0-10000]", "kind": "gpu"})", ""),
                       "x.json: /devices/0/name: at most 10000 names, found \"gpu[0-10000]\"", InputError);
  CHECK_THROWS_WITH_AS(machine_of(R"({"name": "gpu[0-3,2]", "kind": "gpu"})", ""),
                       "x.json: /devices/0/name: two devices are named \"gpu2\"", InputError);
}

TEST_CASE("a type of link of the file's own wins over the library's") {
  const std::string two = R"({"name": "gpu[0-1]", "kind": "gpu"})";
  const std::string link = R"({"mesh": "gpu[0-1]", "type": "nvlink3", "count": 4})";
  const auto own = [](const std::string& name) {
    return R"(, "link_types": {")" + name + R"(": {"kind": "nvlink", "bandwidth": {"value": "1 GB/s", "source": "a"},
                                                   "latency": {"value": "0 us", "source": "b"}}})";
  };
  const LinkSpec library = machine_of(two, link).cables.at(0).link;
  CHECK(library.bandwidth.bytes_per_second == 4 * library_link("nvlink3").bandwidth.bytes_per_second);
  CHECK(library.joined == 4);
  CHECK(library.kind == LinkKind::nvlink);
  CHECK(machine_of(two, link, own("nvlink3")).cables.at(0).link.bandwidth == 4_GBps);
  // A misspelt one would leave the library's in force.
  CHECK_THROWS_WITH_AS(
      machine_of(two, link, own("nvlnk3")),
      "x.json: /link_types/nvlnk3: no link or port has the type \"nvlnk3\"\n  hint: did you mean \"nvlink3\"?",
      InputError);
  CHECK_THROWS_WITH_AS(library_link("pcie4x16"),
                       "expected the name of a link type, found \"pcie4x16\"\n  hint: did you mean \"pcie4-x16\"?",
                       InputError);
}

TEST_CASE("a host says how far its GPUs reach each other, at what cost, and how its bridges lie") {
  const std::string gpu = R"({"name": "gpu0", "kind": "gpu"})";
  const auto host = [&](const std::string& text) { return machine_of(gpu, "", R"(, "host": )" + text).host; };
  const Host usual = machine_of(gpu, "").host;
  CHECK(usual.peer_access == PathType::sys);
  CHECK(usual.peer_cost == 1);
  CHECK(usual.gpudirect_cost == 1);
  CHECK_FALSE(usual.bridges_apart);
  const Host intel = host(R"({"peer_access": {"value": "PHB", "source": "a"},
                              "peer_cost": {"value": 1.2, "source": "b"},
                              "gpudirect_cost": {"value": 1.3, "source": "d"},
                              "between_host_bridges": {"value": "SYS", "assumed": "c"}})");
  CHECK(intel.peer_access == PathType::phb);
  CHECK(intel.peer_cost == 1.2);
  CHECK(intel.gpudirect_cost == 1.3);
  CHECK(intel.bridges_apart);
  CHECK_FALSE(host(R"({"between_host_bridges": {"value": "NODE", "source": "a"}})").bridges_apart);

  CHECK_THROWS_WITH_AS(host(R"({"peer_cost": 1.2})"),
                       "x.json: /host/peer_cost: a number without a source\n  hint: write {\"value\": ..., \"source\": "
                       "\"where it comes from\"}, or \"assumed\": \"why this value is assumed\"",
                       InputError);
  for (const std::string cost : {"0.5", "\"1.2\"", "1000"}) {
    CHECK_THROWS_WITH_AS(
        host(R"({"peer_cost": {"value": )" + cost + R"(, "source": "a"}})"),
        ("x.json: /host/peer_cost/value: expected the cost of a byte, from 1 to 100, found " + cost).c_str(),
        InputError);
    CHECK_THROWS_WITH_AS(
        host(R"({"gpudirect_cost": {"value": )" + cost + R"(, "source": "a"}})"),
        ("x.json: /host/gpudirect_cost/value: expected the cost of a byte, from 1 to 100, found " + cost).c_str(),
        InputError);
  }
  CHECK_THROWS_WITH_AS(host(R"({"peer_access": {"value": "NODE", "source": "a"}})"),
                       "x.json: /host/peer_access/value: expected one of \"NVL\", \"PIX\", \"PXB\", \"PHB\", \"SYS\", "
                       "found \"NODE\"",
                       InputError);
  CHECK_THROWS_WITH_AS(host(R"({"peer_acess": {"value": "SYS", "source": "a"}})"),
                       "x.json: /host/peer_acess: unknown key \"peer_acess\"\n  hint: did you mean \"peer_access\"?",
                       InputError);
}

TEST_CASE("a nic has a port or says that it is not cabled, and nothing else has either") {
  const std::string hint =
      "\n  hint: for a nic that is not connected to the fabric (storage, management), set \"cabled\": false instead";
  for (const std::string what :
       {R"("kind": "nic")", R"("kind": "nic", "cabled": true)", R"("kind": "nic", "cabled": false, "port": "edr")",
        R"("kind": "cpu", "port": "edr")", R"("kind": "cpu", "cabled": false)"}) {
    CHECK_THROWS_WITH_AS(machine_of(R"({"name": "gpu0", "kind": "gpu"}, {"name": "d", )" + what + "}", ""),
                         ("x.json: /devices/1: every nic that is connected to the fabric needs a \"port\", its link "
                          "type; other devices cannot have one" +
                          hint)
                             .c_str(),
                         InputError);
  }
  CHECK_THROWS_WITH_AS(machine_of(R"({"name": "n", "kind": "nic", "cabled": "no"})", ""),
                       "x.json: /devices/0/cabled: expected true or false, found \"no\"", InputError);
}

TEST_CASE("a layout has a source, an assumption or both, and nothing else") {
  const auto with = [](const std::string& layout) {
    return machine_of(R"({"name": "gpu0", "kind": "gpu"})", "", R"(, "layout": )" + layout);
  };
  CHECK(with(R"({"source": "a page", "assumed": "the rest"})").n_gpus() == 1);
  CHECK_THROWS_WITH_AS(with("{}"), "x.json: /layout: expected \"source\", \"assumed\" or both", InputError);
  CHECK_THROWS_WITH_AS(with(R"({"source": ""})"), "x.json: /layout/source: expected a text", InputError);
  CHECK_THROWS_WITH_AS(with(R"({"sources": "a page"})"),
                       "x.json: /layout/sources: unknown key \"sources\"\n  hint: did you mean \"source\"?",
                       InputError);
}

TEST_CASE("a damaged machine file is read or refused, never a crash") {
  int read = 0, refused = 0;
  for (const char* name : {"dgx-1v", "rtx4090-pcie", "gb200-nvl72"}) {
    const std::string text = test::read_file(test::source_dir() + "/topologies/presets/" + name + ".json");
    for (unsigned seed = 0; seed < 1000; ++seed) {
      CAPTURE(seed);
      std::mt19937 random(seed);
      try {
        const Machine machine = parse_machine(test::damaged(text, random), "damaged.json");
        build(Cluster{{{std::make_shared<Machine>(machine), 1}}, std::nullopt, {}});
        ++read;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  CHECK(read > 100);
  CHECK(refused > 100);
}

}  // namespace machine_file_test
