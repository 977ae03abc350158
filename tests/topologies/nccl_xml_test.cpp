// NCCL's topology XML, read and written.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/paths.hpp"
#include "topologies/catalog.hpp"
#include "topologies/formats/nccl_xml_export.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/nccl/nccl_tuner.hpp"
#include "topologies/nccl_search/node_search.hpp"

namespace nccl_xml_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using namespace std::string_literals;
using test::cables_of;
using test::device;
using test::read_file;
using test::sample;
using test::shape_of;
using Lines = std::vector<std::string>;

namespace {

/// Lines as one text, which a failing test prints.
std::string text(const Lines& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }

Machine import_sample(const std::string& name, const NcclXmlOptions& options = {}) {
  return import_nccl_xml(read_file(sample(name)), name, options);
}

std::string complaint(const std::string& text, const NcclXmlOptions& options = {}) {
  return ringsim::test::complaint([&] { import_nccl_xml(text, "t.xml", options); });
}

/// One GPU below one CPU, with more below either.
std::string small(const std::string& in_cpu = "", const std::string& in_gpu = "") {
  return "<system version=\"1\">\n<cpu numaid=\"0\">\n<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"8 "
         "GT/s\" "
         "link_width=\"16\">\n<gpu dev=\"0\" sm=\"70\">" +
         in_gpu + "</gpu></pci>\n" + in_cpu + "\n</cpu>\n</system>\n";
}

const LinkSpec users_nic{.bandwidth = 200_Gbps, .latency = 700ns, .source = "the user"};

Machine with_gpus(std::size_t n) {
  Machine machine{.name = "joined"};
  for (std::size_t i = 0; i < n; ++i) machine.devices.push_back({"g" + std::to_string(i), NodeKind::gpu, {}, {}});
  machine.devices.push_back({"s", NodeKind::nvswitch, {}, {}});
  for (std::uint32_t i = 0; i < n; ++i) {
    machine.cables.push_back({i,
                              static_cast<std::uint32_t>(n),
                              {.bandwidth = 240_GBps, .kind = LinkKind::nvlink, .joined = 12, .source = "t"}});
  }
  return machine;
}

}  // namespace

TEST_CASE("a full dump: devices by their number, links by NCCL's rules") {
  const Machine m = import_sample("dump.xml");
  CHECK(text(m.warnings) == "");
  // gpu0 is dev 0, which stands second in the file; mlx5_0 and mlx5_1 are two functions of one NIC.
  // PCIe 3 x16: 16 * 60 / 80 = 12 GB/s, x8 6; PCIe 4 x16 24. sm 70: 20 GB/s an NVLink. Skylake: 10 GB/s. C2C: 43.125
  // GB/s.
  CHECK(text(cables_of(m)) ==
        text({"pcie0 - cpu0: pcie 12 GB/s", "gpu1 - pcie0: pcie 12 GB/s", "gpu0 - pcie0: pcie 12 GB/s",
              "nic0 - pcie0: pcie 6 GB/s", "pcie1 - cpu1: pcie 12 GB/s", "gpu2 - pcie1: pcie 12 GB/s",
              "nic1 - pcie1: pcie 24 GB/s", "gpu2 - cpu1: c2c 345 GB/s x8", "gpu0 - gpu1: nvlink 47.9 GB/s x2",
              "gpu1 - gpu2: nvlink 23.95 GB/s", "cpu0 - cpu1: socket 10 GB/s", "mem0 - cpu0: memory 95976 MB/s",
              "mem1 - cpu1: memory 95976 MB/s"}));
  CHECK(device(m, "nic0").port->bandwidth == 24_GBps);  // two ports of 100 Gb/s, 96 % of each payload
  CHECK(device(m, "nic0").port->latency == 500ns);      // assumed: the file says 0
  CHECK(device(m, "nic0").port->kind == LinkKind::infiniband);
  CHECK(device(m, "nic1").port->latency == 1500ns);
  CHECK(device(m, "gpu0").attributes.at("busid") == "0000:12:00.0");
  CHECK(device(m, "nic0").attributes.at("net1.name") == "mlx5_1");
  CHECK(device(m, "cpu1").attributes.at("numaid") == "1");
  CHECK(m.cables[1].link.source.starts_with("bandwidth: dump.xml:6: 8.0 GT/s PCIe x16; NVIDIA/nccl 5067397c2676"));
  CHECK(m.host.peer_cost == 1.2);
  CHECK(m.host.peer_access == PathType::phb);
}

TEST_CASE("a skeleton: devices by class, GPUs in the order of bus ids, the user says the rest") {
  const Machine bare = import_sample("skeleton.xml");
  CHECK(text(bare.warnings) ==
        text({"skeleton.xml:5: the file does not state the speed of 2 of 2 NICs, of which this is the first; to cable "
              "them, set it with --nic RATE (\"nic\" in a scenario's topology)",
              "skeleton.xml: the file does not state the model of 8 of 8 GPUs, which library nccl needs; NVLinks are "
              "assumed to be those of sm 80; a machine with these GPUs supplies it: --like NODE (\"like\" in a "
              "scenario's topology)",
              "skeleton.xml: no NVLinks between the GPUs are listed, so none are assumed, unless --like dgx-a100 "
              "(\"like\" in a scenario's topology) names a machine that has them"}));
  // Of the machines with eight GPUs that have NVLinks, the usual one with that GPU.
  const Lines h100 = import_sample("skeleton.xml", {.gpu = "H100", .nic = users_nic}).warnings;
  REQUIRE(h100.size() == 1);
  CHECK(test::has(h100[0], "unless --like hgx-h100 ("));
  CHECK_FALSE(device(bare, "nic0").port);
  CHECK(device(bare, "gpu0").attributes.at("busid") == "0001:00:00.0");
  CHECK(device(bare, "gpu2").attributes.at("busid") == "0003:00:00.0");
  CHECK(bare.host.peer_cost == 1);  // AMD

  const Machine full = import_sample("skeleton.xml", {.gpu = "A100", .nvlink_from = with_gpus(8), .nic = users_nic});
  CHECK(full.warnings == Lines{});
  CHECK(device(full, "gpu0").attributes.at("sm") == "80");
  CHECK(device(full, "nic1").port->bandwidth == 200_Gbps);
  CHECK(device(full, "nic1").port->latency == 700ns);
  CHECK(device(full, "nic1").port->kind == LinkKind::infiniband);  // its class says so
  CHECK(cables_of(full)[12] == "gpu0 - s: nvlink 240 GB/s x12");
  CHECK(cables_of(full).size() == bare.cables.size() + 8);
}

TEST_CASE("AMD: xGMI by RCCL's rule, a speed in kb/s, CPUs in the order of the file") {
  const Machine m = import_sample("xgmi.xml");
  CHECK(text(m.warnings) ==
        text({"xgmi.xml:10: speed \"200000000\" Mb/s is faster than any NIC; read as kb/s: 200 Gb/s"}));
  CHECK(text(cables_of(m)) ==
        text({"gpu0 - cpu0: pcie 48 GB/s", "nic0 - cpu0: pcie 24 GB/s", "gpu1 - cpu1: pcie 48 GB/s",
              "gpu0 - gpu1: xgmi 96 GB/s x2", "cpu0 - cpu1: socket 16 GB/s", "mem0 - cpu0: memory 345.6 GB/s",
              "mem1 - cpu1: memory 345.6 GB/s"}));
  CHECK(device(m, "nic0").port->bandwidth == 24_GBps);
  CHECK(device(m, "nic0").port->kind == LinkKind::ethernet);
  CHECK(device(m, "cpu0").attributes.at("numaid") == "1");
}

TEST_CASE("every trap is a warning that names the line and says what is taken instead") {
  const Machine m = import_sample("traps.xml");
  CHECK(m.warnings ==
        Lines{"traps.xml:9: <warp> within <gpu> is unknown and ignored",
              "traps.xml:2: numaid \"-1\" is not a NUMA domain; CPUs are numbered in the order of the file",
              "traps.xml:4: link_speed \"32 GT/s PCIe/s\" is not NCCL's spelling, so NCCL would assume 8 GT/s; read as "
              "32.0 GT/s PCIe",
              "traps.xml:18: link_speed \"Unknown\" is unknown; assumed to be 8 GT/s, as NCCL does",
              "traps.xml:24: a device of class 0x010802; ignored",
              "traps.xml:25: a device without a class, so its kind is unknown; ignored",
              "traps.xml:3: the uplink of switch 0000:01:00.0 states 2.5 GT/s PCIe x1, below PCIe 3 and slower than a "
              "device below it, as virtual switches do; assumed to be as fast as that device, 32.0 GT/s PCIe x16",
              "traps.xml:12: no link_speed for 1 PCI device; assumed to be 8 GT/s PCIe x16, as NCCL does; for the "
              "speeds of a known machine, use --like NODE (\"like\" in a scenario's topology)",
              "traps.xml:21: a <net> without dev; ignored, as NCCL does",
              "traps.xml:20: speed \"-1\" Mb/s; read as 10 Gb/s, as NCCL does for values of 0 or less",
              "traps.xml:28: speed \"200000000\" Mb/s is faster than any NIC; read as kb/s: 200 Gb/s",
              "traps.xml:6: a link from 0000:02:00.0 to itself, as some virtual machines write; ignored",
              "traps.xml:8: target 0000:77:00.0 is not a GPU in this file, and class \"0x030200\" is not an NVSwitch; "
              "ignored",
              "traps.xml:15: count \"none\" is not a number of links; ignored"});
  CHECK(text(cables_of(m)) ==
        text({"pcie0 - cpu0: pcie 48 GB/s", "gpu0 - pcie0: pcie 48 GB/s", "gpu1 - pcie0: pcie 12 GB/s",
              "nic0 - pcie0: pcie 6 GB/s", "nic1 - cpu0: pcie 5 TB/s", "gpu0 - nvswitch0: nvlink 376.02 GB/s x18",
              "gpu1 - nvswitch0: nvlink 376.02 GB/s x18", "mem0 - cpu0: memory 230.4 GB/s"}));
  CHECK(m.cables[5].link.latency == 300ns);  // half of a direct NVLink's: two of them join a pair
}

TEST_CASE("a file that cannot be a machine is refused with its line and the reason") {
  CHECK(complaint(small()) == "");
  const std::string rack_link = "<nvlink target=\"fffffff:ff:ff.0\" count=\"6\" tclass=\"0x068000\"/>";
  const std::string gpu_twice = "<pci busid=\"2\"><gpu dev=\"1\"/></pci>\n<pci busid=\"2\"><gpu dev=\"2\"/></pci>";
  const std::vector<std::string> rows{
      "", "<!-- x -->", "<system>\n<cpu>\n</system>", "<system/><system/>", "<system a=\"1\" a=\"2\"/>",
      "<system>\n\nhello</system>", "<system>\n\x01</system>", "<system a=\"\xFF\"/>", "\n<graphs version=\"1\"/>",
      "<system><cpu/></system>", small(gpu_twice, "<nvlink target=\"2\" count=\"1\" tclass=\"0x03\"/>"),
      small("<pci class=\"0x03\"/>"), small("<pci busid=\"1\"><gpu/><gpu/></pci>"),
      small("<pci busid=\"1\"><gpu/><pci busid=\"2\"/></pci>"), small("<pci busid=\"1\"><gpu/><nic/></pci>"),
      small("</cpu><cpu host_hash=\"0x2\">"), small("</cpu><cpu host_hash=\"0x2\">", rack_link),
      // An NVSwitch of the host itself, which has a bus id there.
      small("</cpu><cpu host_hash=\"0x2\">", "<nvlink target=\"0000:07:00.0\" count=\"6\" tclass=\"0x068000\"/>"),
      // Elements in places where NCCL does not read them, and near misses.
      small("<gpu dev=\"1\"/>"), small("<net dev=\"1\"/>"), small("<pci busid=\"1\"><net dev=\"1\"/></pci>"),
      small("<nic><gpu/></nic>"), small("<pci busid=\"1\"><nvlink/></pci>"), small("<cpu/>"),
      small("<pcie busid=\"1\"/>"), small("<bus><pci busid=\"1\"/></bus>"), small("", "<nvlnk/>"),
      "<system><gpu/></system>", "<system><cpu><pci busid=\"1\"><system/></pci></cpu></system>",
      // Parts of a GPU, and values that decide.
      small("<pci busid=\"1\"><gpu dev=\"1\" mlopart=\"0\"/></pci>"),
      small("<pci busid=\"1\"><gpu dev=\"1\" mlopart=\"x\"/></pci>"),
      small("<pci busid=\"1\"><gpu dev=\"1\" sm=\"x\"/></pci>"),
      small("<pci busid=\"1\"><gpu dev=\"1\" sm=\"99999999999\"/></pci>"),
      small("<pci busid=\"1\"><gpu dev=\"1\" sm=\"-1\"/></pci>")};
  ringsim::test::MessagePage page("nccl_xml");
  for (const std::string& text : rows) page.add(text, complaint(text));
  page.check();
}

TEST_CASE("NVLinks that name every peer across the NVSwitches are counted once: tclass decides, as in NCCL") {
  const Machine m = import_sample("b200.xml");
  // sm 100: 40.1 GB/s per link, 18 links per GPU. Two entries of 18 links each would be 36.
  const std::string warning =
      "the entries to NVSwitches name GPUs and add up to 36 links, but a GPU of this sm has 18; read as 18 links, once "
      "for all peers";
  CHECK(m.warnings == Lines{"b200.xml:6: " + warning, "b200.xml:12: " + warning, "b200.xml:18: " + warning});
  Lines nvlinks;
  for (const std::string& cable : cables_of(m))
    if (cable.find("nvlink") != std::string::npos) nvlinks.push_back(cable);
  CHECK(text(nvlinks) == text({"gpu0 - nvswitch0: nvlink 721.8 GB/s x18", "gpu1 - nvswitch0: nvlink 721.8 GB/s x18",
                               "gpu2 - nvswitch0: nvlink 721.8 GB/s x18"}));
  // Entries that are together no more than a GPU's links are parts of them: 9 + 9.
  std::string parts = read_file(sample("b200.xml"));
  for (std::size_t at = 0; (at = parts.find("count=\"18\"", at)) != std::string::npos;)
    parts.replace(at, 10, "count=\"9\"");
  const Machine halves = import_nccl_xml(parts, "t.xml");
  CHECK(text(halves.warnings) == "");
  CHECK(cables_of(halves)[3] == "gpu0 - nvswitch0: nvlink 721.8 GB/s x18");
}

TEST_CASE("more NVLinks than a GPU of the generation has are a warning") {
  const auto warnings = [](const std::string& sm, int count) {
    std::string file =
        small("<pci busid=\"2\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"" + sm +
                  "\"/></pci>",
              fmt::format("<nvlink target=\"2\" count=\"{}\" tclass=\"0x03\"/>", count));
    file.replace(file.find("sm=\"70\""), 7, "sm=\"" + sm + "\"");
    return import_nccl_xml(file, "t.xml").warnings.size();
  };
  // One end does not list the link, which is a warning of its own.
  for (const auto& generation :
       {std::pair{"60", 4}, {"70", 6}, {"80", 12}, {"90", 18}, {"100", 18}, {"103", 18}, {"107", 36}, {"120", 18}}) {
    CAPTURE(generation.first);
    CHECK(warnings(generation.first, generation.second) == 1);
    CHECK(warnings(generation.first, generation.second + 1) == 3);  // for either GPU
  }
}

TEST_CASE("an interface without a PCI device is one, however many CPUs list it, and joined to each of them") {
  const auto nic = [](const std::string& name) {
    return "<nic><net name=\"" + name + "\" dev=\"0\" speed=\"10000\" port=\"1\" guid=\"0x0\"/></nic>";
  };
  const Machine m = import_nccl_xml(small(nic("eth0") + "\n</cpu>\n<cpu numaid=\"1\">\n" + nic("eth0")), "t.xml");
  CHECK(m.warnings == Lines{"t.xml:8: eth0 has no PCI device and is listed again (first on line 5); counted once and "
                            "connected to every CPU that lists it"});
  // A <nic> below a <cpu> costs nothing: 5 TB/s.
  const Lines cables = cables_of(m);
  CHECK(text({cables.begin(), cables.begin() + 3}) ==
        text({"gpu0 - cpu0: pcie 12 GB/s", "nic0 - cpu0: pcie 5 TB/s", "nic0 - cpu1: pcie 5 TB/s"}));
  CHECK(cables.size() == 6);  // the CPUs are joined, and have a memory each
  const Machine two = import_nccl_xml(small(nic("eth0") + "\n</cpu>\n<cpu numaid=\"1\">\n" + nic("eth1")), "t.xml");
  CHECK(two.warnings == Lines{});
  CHECK(cables_of(two)[2] == "nic1 - cpu1: pcie 5 TB/s");
}

TEST_CASE("a bus id twice is a warning, and both devices are kept; a target that both could be is refused") {
  const std::string nic =
      "<pci busid=\"0000:01:00.0\" class=\"0x020000\" link_speed=\"8 GT/s\" link_width=\"16\"><nic><net name=\"n\" "
      "dev=\"0\" speed=\"1000\"/></nic></pci>";
  const Machine m = import_nccl_xml(small(nic), "t.xml");
  CHECK(m.warnings ==
        Lines{"t.xml:5: bus id 0000:01:00.0 occurs here again (first on line 3); read as another device"});
  CHECK(cables_of(m)[0] == "gpu0 - cpu0: pcie 12 GB/s");
  CHECK(cables_of(m)[1] == "nic0 - cpu0: pcie 12 GB/s");
  // Of two devices of a bus id an <nvlink> means the GPU.
  const std::string peer =
      "<pci busid=\"2\" class=\"0x03\" link_speed=\"8 GT/s\" link_width=\"16\"><gpu dev=\"1\" sm=\"70\"><nvlink "
      "target=\"0000:01:00.0\" count=\"1\" tclass=\"0x03\"/></gpu></pci>";
  const Machine joined =
      import_nccl_xml(small(nic + peer, "<nvlink target=\"2\" count=\"1\" tclass=\"0x03\"/>"), "t.xml");
  CHECK(cables_of(joined)[3] == "gpu0 - gpu1: nvlink 23.95 GB/s");
}

TEST_CASE("documents that would exhaust memory or the stack are refused") {
  std::string deep, wide = "<system>";
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  for (int i = 0; i < 1'000'000; ++i) wide += "<a/>";
  CHECK(complaint(deep) != "");
  CHECK(complaint("<system>" + deep) != "");
  std::string nested;
  for (int i = 0; i < 70; ++i) nested = "<a>" + nested + "</a>";
  CHECK(complaint(nested) == "t.xml:1: expected elements nested at most 64 deep");
  CHECK(complaint(wide + "</system>") == "t.xml:1: expected at most 1000000 elements");
}

TEST_CASE("what the user says must fit the file") {
  const std::string gpus = small("<pci busid=\"2\" class=\"0x03\"><gpu dev=\"1\" sm=\"70\"/></pci>",
                                 "<nvlink target=\"2\" count=\"1\" tclass=\"0x03\"/>");
  CHECK(complaint(gpus, {.nvlink_from = with_gpus(2)}) ==
        "t.xml: the file already lists the links between GPUs\n  hint: remove the machine that supplies the NVLinks");
  CHECK(complaint(small(), {.nvlink_from = with_gpus(2)}) ==
        "t.xml: expected NVLinks of a machine with 1 GPUs, found joined with 2");
  Machine none = with_gpus(1);
  none.cables.clear();
  CHECK(complaint(small(), {.nvlink_from = none}) ==
        "t.xml: expected a machine with NVLinks, found joined, which has none\n  hint: `ringsim list nodes` lists all");
  CHECK(complaint(small(), {.gpu = "H10"}) ==
        "t.xml: expected a GPU model that NCCL has a rule for, found \"H10\"\n  hint: did you mean \"A10\"?");
  CHECK(import_nccl_xml(small(), "t.xml", {.gpu = "V100", .nic = users_nic}).warnings ==
        Lines{"t.xml: the NIC rate that you set is not used, because the file has no NIC",
              "t.xml: the GPU model that you set is not used, because the file states the sm of each GPU"});
}

TEST_CASE("a machine that was written is read as the same devices, tree, links and speeds") {
  int n = 0;
  const auto check = [&](const Machine& machine, const std::string& what) {
    CAPTURE(what);
    const std::string xml = to_nccl_xml(machine);
    const Machine again = import_nccl_xml(xml, "again.xml");
    CHECK(shape_of(again) == shape_of(machine));
    CHECK(to_nccl_xml(again) == xml);  // nothing is lost on the way
    ++n;
  };
  for (const PresetFile& preset : preset_files())
    check(node_preset(std::string(preset.name)), std::string(preset.name));
  for (const auto& path : test::files_in(sample(""), ".xml"))
    check(import_nccl_xml(read_file(path), path.string()), path);
  CHECK(n >= 5);
  // A user's rate is written as it is; read from a file, a line rate such as 200 Gb/s is not all payload.
  const LinkSpec payload{.bandwidth = 24_GBps, .latency = 700ns, .source = "the user"};
  check(import_sample("skeleton.xml", {.gpu = "A100", .nvlink_from = with_gpus(8), .nic = payload}),
        "skeleton, completed");
}

TEST_CASE("a NIC moves the payload of its ports, and NCCL's search sees the rate that the file states") {
  const auto nic_of = [](const std::string& nets) {
    return import_nccl_xml(R"(<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1"/>
      </pci>
      <pci busid="0000:03:00.0" class="0x020000" link_speed="32.0 GT/s PCIe" link_width="16"><nic>)" +
                               nets + R"(</nic></pci>
    </pci>
  </cpu>
</system>)",
                           "nets.xml");
  };
  const std::string one = R"(<net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" maxconn="1" gdr="1"/>)",
                    own = R"(<net name="mlx5_0" dev="0" speed="180000" port="1" guid="0x1" maxconn="1" gdr="1"/>
                             <net name="mlx5_1" dev="1" speed="180000" port="2" guid="0x1" maxconn="1" gdr="1"/>)",
                    efa = R"(<net name="rdmap1s0" dev="0" speed="100000" port="1" guid="0x1" maxconn="1" gdr="1"/>)";
  CHECK(device(nic_of(one), "nic0").port->bandwidth == 48_GBps);
  CHECK(device(nic_of(efa), "nic0").port->bandwidth == Bandwidth{12'112'500'000});  // 96.9 % of 12.5 GB/s
  // Oracle's H100: its own statement of a port of 200 Gb/s. Two ports are one NIC, as NCCL_IB_MERGE_NICS has them.
  const Machine oci = nic_of(own);
  CHECK(device(oci, "nic0").port->bandwidth == 45_GBps);
  const auto seen = [](const Machine& machine) {
    return nccl::tuner_machine(machine, 1, 2, device(machine, "nic0").port->bandwidth, nccl::Release::v2_30_7)
        .search->ring.between;
  };
  // Two channels each: NCCL's next speed below the stated 45 GB/s is that, not 48, and that below 50 GB/s is 48.
  CHECK(2 * seen(oci) == doctest::Approx(45));
  CHECK(2 * seen(nic_of(one)) == doctest::Approx(48));
}

TEST_CASE("an imported machine is written with what its file said") {
  const std::string xml = to_nccl_xml(import_sample("dump.xml"));
  for (
      const std::string& piece :
      {"<cpu affinity=\"0000ffff\" arch=\"x86_64\" familyid=\"6\" modelid=\"85\" numaid=\"0\" vendor=\"GenuineIntel\">"s,
       "<pci busid=\"0000:10:00.0\" class=\"0x060400\" vendor=\"0x10b5\" device=\"0x8747\" link_speed=\"8.0 GT/s "
       "PCIe\" "
       "link_width=\"16\">"s,
       "<gpu dev=\"0\" gdr=\"1\" rank=\"0\" sm=\"70\">"s,
       "<nvlink target=\"0000:11:00.0\" count=\"2\" tclass=\"0x030200\"/>"s, "<c2c bw=\"43125\" count=\"8\"/>"s,
       "<net dev=\"1\" gdr=\"1\" guid=\"0xa1\" latency=\"0.000000\" maxconn=\"131072\" name=\"mlx5_1\" port=\"2\" "
       "speed=\"100000\"/>"s}) {
    CAPTURE(piece);
    CHECK(xml.find(piece) != std::string::npos);
  }
}

TEST_CASE("a switch of a foreign class whose devices are left out is a switch when it is read again") {
  // The drive (class 0x01) is left out; 0x060004 is no class of a switch, but has had a device below it.
  const Machine machine = import_nccl_xml(R"(<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="0000:01:00.0" class="0x060004" link_speed="16 GT/s" link_width="16">
      <pci busid="0000:02:00.0" class="0x010802" link_speed="16 GT/s" link_width="16"/>
    </pci>
    <pci busid="0000:03:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
  </cpu>
</system>)",
                                          "foreign.xml");
  const auto switches = [](const Machine& of) {
    return std::count_if(of.devices.begin(), of.devices.end(),
                         [](const Machine::Device& each) { return each.kind == NodeKind::pcie_switch; });
  };
  REQUIRE(switches(machine) == 1);
  CHECK(switches(import_nccl_xml(to_nccl_xml(machine), "again.xml")) == 1);
}

TEST_CASE("names that XML must escape survive") {
  Machine machine = import_sample("dump.xml");
  machine.devices[0].attributes["busid"] = "a\"<&>";
  CHECK(import_nccl_xml(to_nccl_xml(machine), "again.xml").devices[0].attributes.at("busid") == "a\"<&>");
}

TEST_CASE("a GPU that has PCIe and C2C to its CPU sends over C2C, so that GPUDirect reaches the NIC") {
  const std::string xml = R"(<system version="1">
  <cpu numaid="0" arch="arm64" vendor="ARM" familyid="0" modelid="0" host_hash="0x1" affinity="ff">
    <pci busid="0001:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="90" rank="0" gdr="1"><c2c bw="43125" count="10"/></gpu>
    </pci>
    <pci busid="0002:01:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
      <nic><net name="mlx5_0" dev="0" speed="400000" port="1" guid="0x1" maxconn="1" gdr="1"/></nic>
    </pci>
  </cpu>
</system>)";
  const Machine machine = import_nccl_xml(xml, "gh.xml");
  const Topology t = build(
      Cluster{{{std::make_shared<Machine>(machine), 2}}, StarFabric{{.bandwidth = Bandwidth{50'000'000'000}}}, {}});
  Routes routes(t);
  const Path path = routes.find(t.ranks()[0], t.ranks()[1]);
  CHECK(path.out == PathType::p2c);
  CHECK(path.legs.size() == 1);
}

TEST_CASE("a damaged file is read or refused, never a crash") {
  int read = 0, refused = 0;
  for (const auto& path : test::files_in(sample(""), ".xml")) {
    const std::string text = read_file(path);
    for (unsigned seed = 0; seed < 1000; ++seed) {
      CAPTURE(path.string());
      CAPTURE(seed);
      std::mt19937 random(seed);
      try {
        const Machine machine = import_nccl_xml(test::damaged(text, random), "damaged.xml");
        to_nccl_xml(machine);
        build(Cluster{{{std::make_shared<Machine>(machine), 1}}, std::nullopt});
        ++read;
      } catch (const InputError&) {
        ++refused;
      }
    }
  }
  CHECK(read > 100);
  CHECK(refused > 100);
}

TEST_CASE("public topology files are read, or refused for a reason that is known") {
  int n = 0;
  for (const auto& path : test::files_in(test::source_dir() + "/../shared/data/nccl-topology", ".xml")) {
    CAPTURE(path.string());
    const std::string name = path.filename().string(), text = read_file(path);
    if (name == "azure_ncv4-graph.xml" || name == "aws_p5.48xl-topo.xml") {  // a graph; a skeleton without GPUs
      CHECK_THROWS_AS(import_nccl_xml(text, name), InputError);
      continue;
    }
    const Machine machine = import_nccl_xml(text, name);
    CHECK(machine.n_gpus() >= 4);
    CHECK(shape_of(import_nccl_xml(to_nccl_xml(machine), "again.xml")) == shape_of(machine));
    const Topology topology = build(Cluster{{{std::make_shared<Machine>(machine), 1}}, std::nullopt});
    Routes routes(topology, {});
    for (const NodeId from : topology.ranks()) {
      for (const NodeId to : topology.ranks()) CHECK_NOTHROW(routes.find(from, to));
    }
    ++n;
  }
  if (n == 0) MESSAGE("no public files here: skipped");
}

TEST_CASE("a link of 32 lanes, PCIe's most, is twice as fast as one of 16; one of 33 is taken as 16") {
  // NCCL counts 60 / 80 GB/s for each lane at 8 GT/s.
  const auto with_lanes = [](const std::string& lanes) {
    return import_nccl_xml(test::replaced(small(), "link_width=\"16\"", "link_width=\"" + lanes + "\""), "t.xml");
  };
  const Machine wide = with_lanes("32"), other = with_lanes("33");
  CHECK(wide.cables.front().link.bandwidth == 24_GBps);
  CHECK(text(wide.warnings) == text(import_nccl_xml(small(), "t.xml").warnings));
  CHECK(other.cables.front().link.bandwidth == 12_GBps);
  CHECK(text(other.warnings).find("link_width \"33\"; assumed to be x16, as NCCL does") != std::string::npos);
}

}  // namespace nccl_xml_test
