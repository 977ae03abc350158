// Scenarios whose nodes are read from files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/message_page.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/machine_text.hpp"

namespace scenario_machines_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

constexpr const char* star = R"("fabric": {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}})";

std::string text_of(const std::string& topology, const std::string& more = "") {
  return R"({"version": 1, "topology": )" + topology +
         R"(, "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"})" + more + "}";
}

/// A scenario in the folder of the samples.
ScenarioFile in_samples(const std::string& topology, const std::string& more = "") {
  return ScenarioFile::parse(text_of(topology, more), test::sample("s.json").string());
}
Scenario only(const std::string& topology) { return in_samples(topology).point(0); }
const Cluster& cluster_of(const Scenario& scenario) { return std::get<Cluster>(scenario.topology); }

std::string complaint(const std::string& topology) {
  try {
    in_samples(topology);
  } catch (const InputError& error) {
    std::string message = error.what();
    const std::string folder = test::sample("").string();
    for (std::size_t at = 0; (at = message.find(folder)) != std::string::npos;) message.erase(at, folder.size());
    return message;
  }
  return "";
}

/// A scenario with a file of its own next to it.
ScenarioFile next_to(const std::string& topology, const std::string& name, const std::string& content,
                     const std::string& more = "") {
  const std::filesystem::path scenario = test::temporary_file("s.json", text_of(topology, more));
  std::ofstream(scenario.parent_path() / name, std::ios::binary) << content;
  return ScenarioFile::load(scenario.string());
}

}  // namespace

TEST_CASE("nccl_xml: nodes are what the file describes, and its warnings are the scenario's") {
  const Scenario scenario = only(R"({"kind": "nccl_xml", "file": "traps.xml", "nodes": 3, )" + std::string(star) + "}");
  CHECK(cluster_of(scenario).parts.at(0).nodes == 3);
  CHECK(scenario.main().request.ranks == 6);
  CHECK(scenario.warnings.size() == 15);
  CHECK(scenario.warnings.front().find("traps.xml:9: <warp>") != std::string::npos);
  CHECK(scenario.warnings.back() == "traps: " + what_denied_gpudirect_means("gdr=0 on 2 of 2 NICs"));
  CHECK(only(R"({"kind": "nccl_xml", "file": "dump.xml"})").main().request.ranks == 3);  // one node needs no fabric
  CHECK(only(R"({"kind": "nccl_xml", "file": "dump.xml"})").warnings.empty());
}

TEST_CASE("gdr=\"0\" in a file is as gdr_level LOC for its devices, unless gpudirect is said to be true") {
  const std::string denied = test::pairs_without_gpudirect();
  const std::string topology = R"({"kind": "nccl_xml", "file": "m.xml", "nodes": 2, )" + std::string(star) + "}";
  const auto time = [&](const std::string& xml, const std::string& transport) {
    const Scenario s = next_to(topology, "m.xml", xml, R"(, "transport": {)" + transport + "}").point(0);
    return predict(s).time;
  };
  const std::string pairs = test::read_file(test::sample("pairs.xml"));
  const Picoseconds direct = time(pairs, ""), staged = time(pairs, R"("gpudirect": false)");
  CHECK(staged > direct);
  CHECK(time(denied, "") == staged);
  CHECK(time(denied, R"("gdr_level": "SYS")") == staged);  // NCCL asks the devices first
  CHECK(time(denied, R"("gpudirect": true)") == direct);
  CHECK(time(pairs, R"("gpudirect": true)") == direct);

  const auto warnings = [&](const std::string& xml, const std::string& transport, const std::string& of) {
    std::string said;
    const ScenarioFile file = next_to(of, "m.xml", xml, R"(, "transport": {)" + transport + "}");
    for (const std::string& each : file.point(0).warnings) said += each.substr(each.rfind("json: ") + 1) + "\n";
    return said;
  };
  const std::string which = "gdr=0 on 2 of 2 GPUs and 2 of 2 NICs";
  CHECK(warnings(denied, "", topology) == "m: " + what_denied_gpudirect_means(which) + "\n");
  CHECK(test::has(warnings(denied, R"("gpudirect": true)", topology),
                  "/transport/gpudirect: m has " + which + "; GPUDirect is used anyway"));
  CHECK(warnings(denied, R"("gpudirect": false)", topology) == "");               // it says so itself
  CHECK(warnings(denied, "", R"({"kind": "nccl_xml", "file": "m.xml"})") == "");  // nothing leaves the node
  CHECK(warnings(pairs, R"("gpudirect": true)", topology) == "");
}

TEST_CASE("gpudirect true is part of the question where a file may deny it, and else what it is by default") {
  const auto hash = [](const std::string& topology, const std::string& transport) {
    return in_samples(topology, R"(, "transport": {)" + transport + "}").point(0).hash;
  };
  const std::string xml = R"({"kind": "nccl_xml", "file": "dump.xml"})", said = R"("gpudirect": true)";
  const std::string preset = R"({"kind": "cluster", "node": "dgx-1v", "nodes": 1})";
  CHECK(hash(xml, "") != hash(xml, said));
  CHECK(hash(preset, "") == hash(preset, said));
  CHECK(hash(preset, "") != hash(preset, R"("gpudirect": false)"));
}

TEST_CASE("nccl_xml: the user says what a skeleton lacks") {
  const Scenario scenario = only(R"({"kind": "nccl_xml", "file": "skeleton.xml", "gpu": "V100", "nvlink": "dgx-1v",
      "nic": {"bandwidth": "200 Gb/s", "latency": "600 ns"}, "nodes": 2, )" +
                                 std::string(star) + "}");
  const Machine& machine = *cluster_of(scenario).parts.at(0).machine;
  CHECK(scenario.warnings.empty());
  CHECK(machine.devices.at(0).attributes.at("sm") == "70");
  CHECK(machine.devices.at(8).port->bandwidth == 200_Gbps);
  CHECK(machine.devices.at(8).port->latency == 600ns);
  std::size_t nvlinks = 0;
  for (const Machine::Cable& cable : machine.cables) nvlinks += cable.link.kind == LinkKind::nvlink ? 1 : 0;
  CHECK(nvlinks == 16);  // the mesh of a DGX-1V
}

TEST_CASE("nvidia_smi: nodes are what the matrix shows, as fast as a preset") {
  const Scenario scenario =
      only(R"({"kind": "nvidia_smi", "file": "matrix.txt", "like": "dgx-1v", "nodes": 2, )" + std::string(star) + "}");
  CHECK(scenario.main().request.ranks == 8);
  CHECK(cluster_of(scenario).parts.at(0).machine->cables.at(2).link.bandwidth == 12_GBps);
}

TEST_CASE("cluster: a preset, a machine file, or unequal parts") {
  Machine tiny = node_preset("dgx-1v");
  tiny.name = "tiny";
  const std::string file = to_machine_file(tiny);
  const Scenario one =
      next_to(R"({"kind": "cluster", "node_file": "m.json", "nodes": 2, )" + std::string(star) + "}", "m.json", file)
          .point(0);
  CHECK(cluster_of(one).parts.at(0).machine->name == "tiny");
  CHECK(one.main().request.ranks == 16);
  const Scenario parts =
      next_to(R"({"kind": "cluster", "parts": [{"node": "dgx-1v", "nodes": 2}, {"node_file": "m.json"}], )" +
                  std::string(star) + "}",
              "m.json", file)
          .point(0);
  REQUIRE(cluster_of(parts).parts.size() == 2);
  CHECK(cluster_of(parts).parts[0].nodes == 2);
  CHECK(cluster_of(parts).parts[1].machine->name == "tiny");
  CHECK(parts.main().request.ranks == 24);
}

// Whoever writes a scenario may name any file that its reader can read: /etc/shadow, a key, a JSON file of passwords.
TEST_CASE("of a file that is of no kind that a scenario can use, no error shows anything") {
  const std::vector<std::string> secrets{"hunter2-this-is-a-secret-token\n",
                                         "root:$6$hunter2:19000:0:99999:7:::\n",
                                         R"({"hunter2": "password"})",
                                         R"(["hunter2"])",
                                         "<hunter2 key=\"hunter2\"/>",
                                         "\"hunter2",
                                         "{hunter2: 1}",
                                         ""};
  const std::vector<std::pair<std::string, std::string>> keys{
      {R"({"kind": "cluster", "node_file": "secret", "nodes": 1})", ""},
      {R"({"kind": "nccl_xml", "file": "secret"})", ""},
      {R"({"kind": "nvidia_smi", "file": "secret", "like": "dgx-1v"})", ""},
      {R"({"kind": "star", "ranks": 2, "link": {"bandwidth": "1 GB/s", "latency": "1 us"}})",
       R"(, "calibration": {"file": "secret"})"},
      {R"({"kind": "star", "ranks": 2, "link": {"bandwidth": "1 GB/s", "latency": "1 us"}})",
       R"(, "sweep": {"collective.algorithm": [{"file": "secret"}]})"},
      {R"({"kind": "cluster", "node": "dgx-a100", "nodes": 1})", R"(, "library": {"name": "nccl", "costs": "secret"})"},
      {R"({"kind": "cluster", "node": "dgx-a100", "nodes": 1})",
       R"(, "library": {"name": "nccl", "env": {"NCCL_GRAPH_FILE": "secret"}})"}};
  for (const auto& key : keys)
    for (const std::string& secret : secrets) {
      const std::string &topology = key.first, &more = key.second;
      CAPTURE(topology);
      CAPTURE(more);
      CAPTURE(secret);
      const std::string said = ringsim::test::complaint([&] {
        const std::filesystem::path folder = test::temporary_file("secret", secret);
        std::string text = text_of(topology, more);
        if (more.find("library") != std::string::npos) text = test::replaced(text, R"("algorithm": "ring", )", "");
        ScenarioFile::parse(text, (folder.parent_path() / "s.json").string()).point(0);
      });
      CHECK(said.find("hunter2") == std::string::npos);
      CHECK(said.find("secret: expected ") != std::string::npos);
      CHECK(said.find(fmt::format(
                "found a file of {} bytes with other contents\n  hint: the contents are not shown because the "
                "file is named in a scenario",
                secret.size())) != std::string::npos);
    }
}

TEST_CASE("the hash follows the content of a file, not its name") {
  const std::string dump = test::read_file(test::sample("dump.xml"));
  const auto hash = [](const std::string& name, const std::string& content) {
    return next_to(R"({"kind": "nccl_xml", "file": ")" + name + "\"}", name, content).hash();
  };
  CHECK(hash("a.xml", dump) == hash("b.xml", dump));
  CHECK(hash("a.xml", dump) != hash("a.xml", dump + "\n"));
  // Of a swept file too, and of each point.
  const auto swept = [&](const std::string& content) {
    return next_to(R"({"kind": "nccl_xml", "file": "a.xml"})", "a.xml", content,
                   R"(, "sweep": {"topology.file": ["a.xml"]})");
  };
  CHECK(swept(dump).hash() != swept(dump + "\n").hash());
  const ScenarioFile two = in_samples(R"({"kind": "nccl_xml", "file": ["dump.xml", "xgmi.xml"]})");
  REQUIRE(two.size() == 2);
  CHECK(two.point(0).hash != two.point(1).hash);
  CHECK(two.point(0).hash == only(R"({"kind": "nccl_xml", "file": "dump.xml"})").hash);
}

TEST_CASE("what is wrong with a file, or with the keys around it, is refused at its place") {
  const std::string fabric(star);
  const std::vector<std::string> rows{
      R"({"kind": "nccl_xml", "file": "none.xml"})",
      R"({"kind": "nccl_xml", "file": 7})",
      R"({"kind": "nccl_xml", "file": "matrix.txt"})",
      R"({"kind": "nvidia_smi", "file": "dump.xml", "like": "dgx-1v"})",
      R"({"kind": "nccl_xml", "file": "skeleton.xml", "nodes": 2, )" + fabric + "}",
      R"({"kind": "nccl_xml", "file": "dump.xml", "nodes": 2})",
      R"({"kind": "nccl_xml", "file": "xgmi.xml", "nvlink": "dgx-1v"})",
      R"({"kind": "cluster", "node_file": "dump.xml", "nodes": 1})",
      R"({"kind": "cluster", "nodes": 1})",
      R"({"kind": "cluster", "node": "dgx-1v", "node_file": "m.json", "nodes": 1})",
      R"({"kind": "cluster", "node": "dgx-1v", "parts": [{"node": "dgx-1v"}], "nodes": 1})",
      R"({"kind": "cluster", "node": "dgx-1v"})",
      R"({"kind": "cluster", "parts": [{"node": "dgx-1v"}], "nodes": 1})",
      R"({"kind": "cluster", "parts": [{"node": "dgx-1v"}, {"nodes": 2}], )" + fabric + "}",
      R"({"kind": "cluster", "parts": [{"node": "dgx-1v", "nodes": 2}]})"};
  test::MessagePage page("machines_of_scenarios");
  for (const std::string& topology : rows) page.add(topology, complaint(topology));
  page.check();
}

TEST_CASE("a run says each warning of a file once, on stderr, and simulates what was read") {
  const std::string scenario =
      test::temporary_file("s.json", text_of(R"({"kind": "nccl_xml", "file": ")" + test::sample("xgmi.xml").string() +
                                             R"(", "nodes": [2, 4], )" + star + "}"));
  const test::Outcome outcome = test::run_command({"run", scenario, "--format", "csv"});
  CHECK(outcome.code == 0);
  CHECK(outcome.err == "ringsim: warning: " + test::sample("xgmi.xml").string() +
                           ":10: speed \"200000000\" Mb/s is faster than any NIC; read as kb/s: 200 Gb/s\n");
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 3);
}

}  // namespace scenario_machines_test
