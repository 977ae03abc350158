// What NCCL's topology XML says of devices, attribute by attribute, and what becomes of it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/machines.hpp"
#include "tests/support/names.hpp"
#include "topologies/catalog.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/nccl_xml_export.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/machine_text.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl/nccl_library.hpp"
#include "topologies/nccl/nccl_tuner.hpp"
#include "topologies/nccl/nic_selection.hpp"

namespace nccl_xml_devices_test {

using namespace ringsim;
using namespace ringsim::literals;
using test::cables_of;
using test::device;
using test::read_file;
using test::replaced;
using test::sample;
using Lines = std::vector<std::string>;

namespace {

std::string text(const Lines& lines) { return fmt::format("{}", fmt::join(lines, "\n")); }
std::string content(const std::string& name) { return read_file(sample(name)); }
Machine imported(const std::string& xml) { return import_nccl_xml(xml, "t.xml"); }

std::string all_replaced(std::string xml, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = xml.find(what, at)) != std::string::npos; at += with.size())
    xml.replace(at, what.size(), with);
  return xml;
}

Topology two_nodes(const Machine& machine) {
  return build(Cluster{{{std::make_shared<Machine>(machine), 2}}, StarFabric{{.bandwidth = 100_GBps}}, {}});
}

/// Legs from a GPU to that of the other node.
std::size_t legs(const Topology& t, const std::string& gpu, const Transport& transport = {}) {
  Routes routes(t, transport);
  return routes.find(at(t, "node0." + gpu), at(t, "node1." + gpu)).legs.size();
}

}  // namespace

TEST_CASE("gdr=\"0\" of a GPU or a NIC denies GPUDirect to the pairs that it is in, and is written back") {
  // Each of two GPUs has a NIC at its PCIe switch; all say gdr="1".
  const std::string pairs = content("pairs.xml");
  CHECK(without_gpudirect(imported(pairs)) == "");
  const auto staged = [](const Machine& machine) {
    std::string gpus;
    for (const char* gpu : {"gpu0", "gpu1"}) {
      const std::size_t n = legs(two_nodes(machine), gpu, {.pxn = false});
      CHECK((n == 1 || n == 3));  // or to memory, to memory, to the GPU
      if (n == 3) gpus += gpu;
    }
    return gpus;
  };
  CHECK(staged(imported(pairs)) == "");

  const Machine one_nic = imported(
      replaced(pairs, "guid=\"0x2\" maxconn=\"131072\" gdr=\"1\"", "guid=\"0x2\" maxconn=\"131072\" gdr=\"0\""));
  CHECK(without_gpudirect(one_nic) == "gdr=0 on 1 of 2 NICs");
  CHECK(staged(one_nic) == "gpu1");
  CHECK(legs(two_nodes(one_nic), "gpu1", {.assumes_gpudirect = true, .pxn = false}) == 1);

  const Machine one_gpu = imported(replaced(pairs, "rank=\"0\" gdr=\"1\"", "rank=\"0\" gdr=\"0\""));
  CHECK(without_gpudirect(one_gpu) == "gdr=0 on 1 of 2 GPUs");
  CHECK(staged(one_gpu) == "gpu0");

  // A NIC of two ports, of which one says 0: nothing says which of them data takes.
  const Machine port = imported(replaced(content("dump.xml"), "guid=\"0xa1\" maxconn=\"131072\" gdr=\"1\"",
                                         "guid=\"0xa1\" maxconn=\"131072\" gdr=\"0\""));
  CHECK(without_gpudirect(port) == "gdr=0 on 1 of 2 NICs");

  const Machine none = imported(all_replaced(pairs, "gdr=\"1\"", "gdr=\"0\""));
  CHECK(without_gpudirect(none) == "gdr=0 on 2 of 2 GPUs and 2 of 2 NICs");
  for (const Machine& machine : {one_nic, one_gpu, none}) {
    CHECK(without_gpudirect(imported(to_nccl_xml(machine))) == without_gpudirect(machine));
    CHECK(without_gpudirect(parse_machine(to_machine_file(machine), "m.json")) == without_gpudirect(machine));
  }
  // A port that only the machine file knows.
  Machine made = node_preset("hgx-h100");
  for (Machine::Device& each : made.devices)
    if (each.kind == NodeKind::nic && each.port) each.attributes["gdr"] = "0";
  CHECK(without_gpudirect(made) == "gdr=0 on 8 of 8 NICs");
  CHECK(without_gpudirect(imported(to_nccl_xml(made))) == "gdr=0 on 8 of 8 NICs");
}

// NCCL's file has the number of NVLinks and the GPU's generation, not their rates.
TEST_CASE("NVLinks, and what reading a V100 costs, come back from NCCL's file as the machine has them") {
  for (const char* preset : {"dgx-1p", "dgx-2", "polaris", "dgx-a100", "hgx-h100", "hgx-b200"}) {
    CAPTURE(preset);
    const Machine machine = node_preset(preset), back = imported(to_nccl_xml(machine));
    const auto rates = [](const Machine& of) {
      std::multiset<std::int64_t> all;
      for (const Machine::Cable& cable : of.cables)
        if (cable.link.kind == LinkKind::nvlink) all.insert(cable.link.bandwidth.bytes_per_second);
      return all;
    };
    CHECK(!rates(machine).empty());
    CHECK(rates(machine) == rates(back));
    if (preset != std::string_view("polaris"))
      CHECK(back.host.gpudirect_cost == machine.host.gpudirect_cost);  // its own
  }
  CHECK(nccl::nvlink_type(86).empty());  // no copies of theirs are published: NCCL's number
  CHECK(nccl::nvlink_type(107).empty());
}

TEST_CASE("a GPU or NIC that does not say gdr has GPUDirect: NCCL asks the driver") {
  const std::string silent = all_replaced(content("pairs.xml"), " gdr=\"1\"", "");
  const Machine machine = imported(silent);
  CHECK(text(machine.warnings) == "");
  CHECK(without_gpudirect(machine) == "");
  CHECK(legs(two_nodes(machine), "gpu0") == 1);
}

TEST_CASE("gdr is a number as NCCL reads it; any other text counts as 0") {
  const auto with = [](const std::string& value) {
    return imported(replaced(content("dump.xml"), "rank=\"0\" gdr=\"1\"", "rank=\"0\" gdr=\"" + value + "\""));
  };
  for (const char* yes : {"1", "2", "0x1", "-1", ""}) CHECK_MESSAGE(without_gpudirect(with(yes)) == "", yes);
  for (const char* no : {"0", "0x0", "x", "yes"}) CHECK_MESSAGE(without_gpudirect(with(no)) != "", no);
  CHECK(text(with("0").warnings) == "");
  CHECK(text(with("yes").warnings) == "t.xml:13: gdr \"yes\" is neither 0 nor 1; read as 0, as NCCL does");
}

TEST_CASE("AWS's adapters are EFA, by the name of their driver or their PCI device; others state no provider") {
  const auto providers = [](const std::string& xml) {
    std::vector<std::string> found;
    for (const Machine::Device& device : imported(xml).devices)
      if (device.kind == NodeKind::nic && device.attributes.contains("provider"))
        found.push_back(device.attributes.at("provider"));
    return found;
  };
  const std::string dump = content("dump.xml");
  CHECK(providers(dump).empty());
  CHECK(providers(replaced(dump, "name=\"mlx5_0\"", "name=\"rdmap79s0\"")) == std::vector<std::string>{"efa"});
}

TEST_CASE("a machine that is like it supplies what a file lacks, and nothing that the file states") {
  const auto like = [](const std::string& xml, const std::string& preset) {
    return import_nccl_xml(xml, "t.xml", {.gpu = {}, .nvlink_from = {}, .nic = {}, .like = node_preset(preset)});
  };
  const std::string stated = content("skeleton.xml");
  const Machine own = like(stated, "dgx-1v");
  CHECK(text(own.warnings) == "");
  CHECK(device(own, "gpu7").attributes.at("sm") == "70");
  const auto cable = [](const Machine& machine, const std::string& begin) {
    std::string found;
    for (const std::string& each : cables_of(machine))
      if (found.empty() && each.starts_with(begin)) found = each;
    return found;
  };
  CHECK(cable(own, "gpu0 - pcie") == "gpu0 - pcie1: pcie 24 GB/s");  // 16 GT/s x16, as the file states
  CHECK(device(own, "nic0").port->bandwidth == device(node_preset("dgx-1v"), "nic0").port->bandwidth);
  CHECK(std::ranges::count_if(own.cables, [](const Machine::Cable& each) {
          return each.link.kind == LinkKind::nvlink;
        }) == 16);  // the mesh of a DGX-1V
  const std::string silent = all_replaced(stated, "link_speed=\"16 GT/s\"", "link_speed=\"\"");
  CHECK(cable(like(silent, "dgx-1v"), "gpu0 - pcie") == "gpu0 - pcie1: pcie 12 GB/s");  // gen 3
  const Machine p5 = like(silent, "aws-p5");  // GPUs on gen 5, NICs on 8 lanes of gen 4, switches on gen 4
  CHECK(cable(p5, "gpu0 - pcie") == "gpu0 - pcie1: pcie 48 GB/s");
  CHECK(cable(p5, "nic0 - pcie") == "nic0 - pcie0: pcie 12 GB/s");
  CHECK(cable(p5, "pcie0 - cpu") == "pcie0 - cpu0: pcie 24 GB/s");
  CHECK(text(imported(silent).warnings)
            .starts_with("t.xml:3: no link_speed for 12 PCI devices, of which this is the first; assumed to be 8 GT/s "
                         "PCIe x16, as NCCL does; for the speeds of a known machine, use --like NODE"));
  // A machine with other numbers of GPUs has other NVLinks; one without NVLinks or NICs supplies none.
  CHECK(text(like(stated, "hgx-h100-4nic").warnings) == "");
  CHECK(text(like(stated, "azure-ncv4").warnings) ==
        "t.xml: no NVLinks between the 8 GPUs are listed, and those of azure-ncv4 are not taken, because it has 4");
  CHECK(text(like(stated, "rtx4090-pcie").warnings)
            .starts_with("t.xml:5: the file does not state the speed of 2 of 2 NICs"));
  CHECK(device(like(stated, "aws-p4d"), "nic0").attributes.at("provider") == "efa");
  const std::string amd = all_replaced(content("xgmi.xml"), "sm=\"228\" ", "");
  CHECK_FALSE(device(like(amd, "dgx-1v"), "gpu0").attributes.contains("sm"));  // a compute capability is NVIDIA's
  CHECK(text(like(content("dump.xml"), "dgx-1v").warnings) ==
        "t.xml: nothing is taken from dgx-1v, because the file states all that it could supply");
  const std::string odd = replaced(content("dump.xml"), "speed=\"100000\"", "speed=\"-1\"");
  const Machine taken = like(odd, "dgx-1v");
  CHECK(text(taken.warnings) == "t.xml:19: speed \"-1\" Mb/s; that of dgx-1v is used");
}

TEST_CASE("functions of one PCI device share the link of its slot") {
  const Machine m = import_nccl_xml(content("functions.xml"), "functions.xml");
  CHECK(text(m.warnings) == "functions.xml:5: 2 functions of the PCI device 0000:12:00 share its link, 24 GB/s");
  CHECK(text(cables_of(m)) ==
        text({"pcie0 - cpu0: pcie 48 GB/s", "gpu0 - pcie0: pcie 48 GB/s", "nic0 - slot0: pcie 24 GB/s",
              "nic1 - slot0: pcie 24 GB/s", "pcie1 - cpu0: pcie 48 GB/s", "gpu1 - pcie1: pcie 48 GB/s",
              "slot0 - pcie0: pcie 24 GB/s", "gpu0 - nvswitch0: nvlink 376.02 GB/s x18",
              "gpu1 - nvswitch0: nvlink 376.02 GB/s x18", "mem0 - cpu0: memory 230.4 GB/s"}));
  CHECK(m.cables[6].link.latency == Picoseconds{0});  // counted with the functions' own
  // Two rings of 12 GB/s, not of 24: what the search of NCCL finds below one link of 24.
  const nccl::TunerMachine seen = nccl::tuner_machine(m, 2, 2, 200_Gbps, nccl::Release::v2_30_7);
  CHECK(seen.ring.count * seen.ring.inside == doctest::Approx(24));
  const std::string xml = to_nccl_xml(m);
  CHECK(test::shape_of(imported(xml)) == test::shape_of(m));
  // Where bus ids are made up, functions are functions again.
  Machine bare = m;
  for (Machine::Device& each : bare.devices) each.attributes.erase("busid");
  CHECK(test::shape_of(imported(to_nccl_xml(bare))) == test::shape_of(m));
}

TEST_CASE("only functions of the same device below the same switch share a slot") {
  const auto slots = [](const std::string& busid, const std::string& other = "0000:12:00.1") {
    const std::string xml = replaced(content("functions.xml"), other, busid);
    int n = 0;
    for (const Machine::Device& each : imported(xml).devices) n += each.kind == NodeKind::pcie_slot ? 1 : 0;
    return n;
  };
  CHECK(slots("0000:12:00.1") == 1);
  CHECK(slots("0000:12:00.7") == 1);
  CHECK(slots("0000:12:01.0") == 0);  // another device
  CHECK(slots("0001:12:00.1") == 0);  // of another domain
  CHECK(slots("0000:12:00.0") == 0);  // the bus id twice: two devices, as a warning says
  CHECK(slots("0000:11:00.1") == 1);  // of a GPU and a NIC
  CHECK(slots("0000:21:00.1") == 0);  // below another switch
  // Ports of a switch are functions with links of their own.
  CHECK(slots("0000:10:00.1", "0000:20:00.0") == 1);
}

TEST_CASE("a Rubin has 36 NVLinks of 38 GB/s, 1368 together") {
  std::string xml = all_replaced(content("trays.xml"), "sm=\"103\"", "sm=\"107\"");
  xml = all_replaced(xml, "count=\"18\"", "count=\"36\"");
  const Machine m = imported(xml);
  CHECK(m.warnings.size() == 1);  // of the hosts; none of 36 links
  CHECK(text(cables_of(m)).find("gpu0 - nvswitch0: nvlink 1368 GB/s x36") != std::string::npos);
}

TEST_CASE("several hosts that NVLink joins are the trays of one machine, and nothing else joins them") {
  const Machine m = import_nccl_xml(content("trays.xml"), "trays.xml");
  CHECK(text(m.warnings) ==
        "trays.xml: 2 hosts (host_hash) with 3 GPUs connected by NVLink, which is how NCCL describes a rack; read as "
        "one machine, so \"nodes\" counts racks");
  // The first host has two CPUs, whose hashes are one number. Grace: 6 GB/s between sockets. GPUs and NICs of a host
  // come before those of the next, though their dev is the same.
  CHECK(text(cables_of(m)) ==
        text({"gpu0 - cpu0: pcie 48 GB/s", "nic0 - cpu0: pcie 48 GB/s", "gpu1 - cpu1: pcie 48 GB/s",
              "gpu2 - cpu2: pcie 48 GB/s", "nic1 - cpu2: pcie 48 GB/s", "gpu0 - cpu0: c2c 223.56 GB/s x5",
              "gpu1 - cpu1: c2c 223.56 GB/s x5", "gpu2 - cpu2: c2c 223.56 GB/s x5",
              "gpu0 - nvswitch0: nvlink 721.8 GB/s x18", "gpu1 - nvswitch0: nvlink 721.8 GB/s x18",
              "gpu2 - nvswitch0: nvlink 721.8 GB/s x18", "cpu0 - cpu1: socket 6 GB/s", "mem0 - cpu0: memory 153.6 GB/s",
              "mem1 - cpu1: memory 153.6 GB/s", "mem2 - cpu2: memory 153.6 GB/s"}));
  CHECK(m.host.peer_access == PathType::pxb);  // Grace does not forward between GPUs
  const Topology t = build(Cluster{{{std::make_shared<Machine>(m), 1}}, std::nullopt, {}});
  Routes routes(t), no_nvlink(t, {.p2p_level = PathType::loc});
  CHECK(routes.find(at(t, "node0.gpu1"), at(t, "node0.gpu2")).type == PathType::nvl);
  CHECK(test::complaint([&] { no_nvlink.find(at(t, "node0.gpu1"), at(t, "node0.gpu2")); }) != "");
  CHECK(test::shape_of(imported(to_nccl_xml(m))) == test::shape_of(m));
}

TEST_CASE("the two levels of a Broadcom switch are one switch, as they forward between all ports at full rate") {
  // Two GPUs below the lower level reach nic0 at 24 GB/s each; a link between the levels would leave them 12.
  const std::string xml = content("broadcom.xml");
  const Machine m = imported(xml);
  CHECK(text(cables_of(m)) ==
        text({"pcie0 - cpu0: pcie 24 GB/s", "gpu0 - pcie0: pcie 24 GB/s", "gpu1 - pcie0: pcie 24 GB/s",
              "nic0 - pcie0: pcie 24 GB/s", "gpu0 - nvswitch0: nvlink 275.85 GB/s x12",
              "gpu1 - nvswitch0: nvlink 275.85 GB/s x12", "mem0 - cpu0: memory 153.6 GB/s"}));
  CHECK(to_nccl_xml(imported(to_nccl_xml(m))) == to_nccl_xml(m));
  const auto switches = [](const std::string& file) {
    int n = 0;
    for (const Machine::Device& each : imported(file).devices) n += each.kind == NodeKind::pcie_switch ? 1 : 0;
    return n;
  };
  CHECK(switches(replaced(xml, "0xa064", "0xb064")) == 2);  // another kind of switch
  CHECK(switches(replaced(xml, "\"0x1000\" device=\"0xc010\"", "\"0x10b5\" device=\"0xc010\"")) == 2);
  // Generation 5 tells its levels apart: 0x0... above, 0x1... below.
  const std::string fifth = all_replaced(xml, "0xc010", "0xc030");
  CHECK(switches(replaced(replaced(fifth, "0xa096", "0x0072"), "0xa064", "0x1003")) == 1);
  CHECK(switches(replaced(replaced(fifth, "0xa096", "0x1003"), "0xa064", "0x1003")) == 2);
}

TEST_CASE("a value that NCCL would read otherwise, or not at all, is a warning that says what is taken instead") {
  const auto warning = [](const std::string& what, const std::string& with) {
    return text(imported(replaced(content("functions.xml"), what, with)).warnings);
  };
  const std::string slot = "\nt.xml:5: 2 functions of the PCI device 0000:12:00 share its link, 24 GB/s";
  CHECK(warning("version=\"1\"", "version=\"3\"") ==
        "t.xml:1: version \"3\" of the format is unknown; read as 1, NCCL's (2: RCCL's)" + slot);
  CHECK(warning("affinity=", "afinity=") ==
        "t.xml:2: attribute \"afinity\" of <cpu> is unknown and ignored: did you mean \"affinity\"?" + slot);
  CHECK(warning("dev=\"0\" sm", "dev=\"x\" sm") ==
        "t.xml:4: dev \"x\" is not a device number; GPUs are numbered by their bus ids" + slot);
  CHECK(warning("rank=\"0\"", "rank=\"2\"").find("rank 1 is after rank 2 in the order of dev") != std::string::npos);
  CHECK(warning("port=\"1\" guid=\"0x1\"", "port=\"one\" guid=\"0x1\"") ==
        "t.xml:5: port \"one\" of a <net> is not a number; ignored" + slot);
  CHECK(warning("dev=\"0\" speed", "dev=\"no\" speed")
            .starts_with("t.xml:5: dev \"no\" of a <net> is not a number; ignored"));
  CHECK(warning("maxconn=\"131072\"", "latency=\"-1\"") == "t.xml:5: latency \"-1\" us of a <net>; ignored" + slot);
  CHECK(warning("maxconn=\"131072\"", "rail=\"1\"").find("\"rail\" of the NICs differs") != std::string::npos);
  CHECK(warning("maxconn=\"131072\"", "rail=\"0\"") == slot.substr(1));
  CHECK(warning("maxconn=\"131072\"", "net=\"maybe\"")
            .starts_with("t.xml:5: a <net> that is not used for messages (net=\"maybe\"); ignored"));
  CHECK(warning("arch=\"x86_64\"", "arch=\"aarch64\"").find("arch \"aarch64\" of a <cpu> is unknown to NCCL") !=
        std::string::npos);
  CHECK(warning("vendor=\"GenuineIntel\"", "vendor=\"Intel\"").find("vendor \"Intel\" of a <cpu> is unknown to NCCL") !=
        std::string::npos);
  CHECK(
      warning("modelid=\"143\"", "modelid=\"spr\"").find("modelid \"spr\" is not a number; read as 0, as NCCL does") !=
      std::string::npos);
  CHECK(warning("modelid=\"143\"", "modelid=\"0x8f\"") == slot.substr(1));  // NCCL reads both
  // What changes no time says nothing.
  for (const char* idle : {"coll=\"1\"", "gin=\"1\"", "rma=\"1\"", "maxconn=\"1\"", "plane=\"0\""})
    CHECK_MESSAGE(warning("maxconn=\"131072\"", idle) == slot.substr(1), idle);
}

TEST_CASE("an Intel CPU of another family than 6 has the slowest sockets, as in NCCL") {
  const auto socket = [](const std::string& family) {
    const std::string cpu = "<cpu numaid=\"1\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"" + family +
                            "\" modelid=\"143\"></cpu>\n</system>";
    const std::string xml = replaced(content("functions.xml"), "familyid=\"6\"", "familyid=\"" + family + "\"");
    for (const std::string& cable : cables_of(imported(replaced(xml, "</system>", cpu))))
      if (cable.find("socket") != std::string::npos) return cable;
    return std::string();
  };
  CHECK(socket("6") == "cpu0 - cpu1: socket 22 GB/s");  // Sapphire Rapids
  CHECK(socket("19") == "cpu0 - cpu1: socket 6 GB/s");
}

namespace {

/// All that reads a machine's attributes: it accepts them, or refuses them as a user's mistake. Whatever else is thrown
/// fails the test.
bool is_accepted(const std::function<Machine()>& read) {
  try {
    const Machine machine = parse_machine(to_machine_file(read()), "m.json");
    to_nccl_xml(machine);
    std::vector<std::string> gpus;
    for (const Machine::Device& each : machine.devices) {
      if (each.kind == NodeKind::gpu) gpus.push_back(each.name);
      if (each.kind == NodeKind::nic) nccl::selected(nccl::read_ib_hca("mlx5_0:1"), each);
    }
    nccl::graph_devices(machine, gpus);
    two_nodes(machine);
    nccl::tuner_machine(machine, static_cast<int>(gpus.size()), 2, 100_Gbps, nccl::Release::v2_30_7);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

const std::vector<std::string> bad_values{"x", "-1", "99999999999", "1e9", "", "0", "[1]", "1 "};

}  // namespace

TEST_CASE("each attribute of an XML file may have any value: it is read, or refused as the user's mistake") {
  int accepted = 0, refused = 0;
  for (const char* name :
       {"dump.xml", "functions.xml", "pairs.xml", "trays.xml", "broadcom.xml", "traps.xml", "b200.xml"}) {
    const std::string xml = content(name);
    for (std::size_t at = 0; (at = xml.find("=\"", at)) != std::string::npos; ++at) {
      const std::size_t begin = at + 2, end = xml.find('"', begin);
      for (const std::string& value : bad_values) {
        CAPTURE(name);
        CAPTURE(xml.substr(xml.rfind(' ', at), end - xml.rfind(' ', at)));
        CAPTURE(value);
        bool is_read = false;
        CHECK_NOTHROW(is_read = is_accepted([&] { return imported(xml.substr(0, begin) + value + xml.substr(end)); }));
        (is_read ? accepted : refused) += 1;
      }
    }
  }
  CHECK(accepted > 1000);
  CHECK(refused > 20);
}

TEST_CASE("each attribute of a machine file may have any value: it is read, or refused as the user's mistake") {
  const auto file = [](const std::string& kind, const std::string& attribute, const std::string& value) {
    const std::string attributes = fmt::format(R"(, "attributes": {{"{}": {}}})", attribute, value);
    return fmt::format(R"({{"name": "x", "summary": "y", "devices": [
      {{"name": "gpu[0-1]", "kind": "gpu"{}}}, {{"name": "nic0", "kind": "nic", "port": "ndr"{}}},
      {{"name": "pcie0", "kind": "pcie_switch"}}, {{"name": "cpu0", "kind": "cpu"}}],
      "links": [{{"from": "gpu[0-1]", "to": "pcie0", "type": "pcie5-x16"}},
                {{"from": "nic0", "to": "pcie0", "type": "pcie5-x16"}},
                {{"from": "pcie0", "to": "cpu0", "type": "pcie5-x16"}}]}})",
                       kind == "gpu" ? attributes : R"(, "attributes": {"sm": "90"})", kind == "nic" ? attributes : "");
  };
  int refused = 0;
  for (const char* kind : {"gpu", "nic"}) {
    for (const char* attribute :
         {"sm",         "gdr",          "dev",       "rank",       "gcn",      "busid",     "class",
          "provider",   "distance",     "name",      "port",       "net0.dev", "net0.port", "net0.gdr",
          "net0.speed", "net0.latency", "net1.name", "link_width", "mlopart",  "vendor"}) {
      for (std::string value : bad_values) {
        value = value == "[1]" ? value : '"' + value + '"';
        CAPTURE(kind);
        CAPTURE(attribute);
        CAPTURE(value);
        bool is_read = true;
        CHECK_NOTHROW(is_read = is_accepted([&] { return parse_machine(file(kind, attribute, value), "x.json"); }));
        refused += is_read ? 0 : 1;
      }
    }
  }
  CHECK(refused > 60);
  const auto complaint = [&](const char* kind, const char* attribute, const char* value) {
    return test::complaint([&] { parse_machine(file(kind, attribute, value), "x.json"); });
  };
  CHECK(complaint("gpu", "sm", "\"x\"") ==
        "x.json: /devices/0/attributes/sm: expected a compute capability such as \"90\", a whole number from 1 to 999, "
        "found \"x\"");
  CHECK(complaint("gpu", "sm", "\"99999999999\"").ends_with("found \"99999999999\""));
  CHECK(complaint("nic", "net0.gdr", "\"no\"") ==
        "x.json: /devices/1/attributes/net0.gdr: expected \"0\" or \"1\", which states whether it supports GPUDirect "
        "RDMA, found \"no\"");
  CHECK(complaint("nic", "distance", "\"phb\"") ==
        "x.json: /devices/1/attributes/distance: expected PIX, PXB, PHB or SYS, found \"phb\"");
  CHECK(complaint("gpu", "sm", "\"90\"") == "");
}

TEST_CASE("GPUs without a compute capability are refused next to NCCL with the options that say the model") {
  const Machine machine = import_nccl_xml(content("skeleton.xml"), "skeleton.xml");
  CHECK(test::complaint([&] { nccl::tuner_machine(machine, 2, 1, {}, nccl::Release::v2_30_7); }) ==
        "expected GPUs with a known compute capability, found none in skeleton\n  hint: a machine with these GPUs "
        "supplies it: --like NODE (\"like\" in a scenario's topology); in a machine file, set \"attributes\": {\"sm\": "
        "\"80\"} of each gpu, 80 for A100");
}

}  // namespace nccl_xml_devices_test
