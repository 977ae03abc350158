// ringsim topology import and export, as a user meets them.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "topologies/formats/nccl_xml_export.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/formats/smi_import.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/machine_text.hpp"

namespace topology_io_test {

using namespace ringsim;
using namespace ringsim::literals;
using test::Outcome;
using test::run_command;
using test::sample;

namespace {

std::string cluster() {
  return test::temporary_file("s.json",
                              R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": [2, 4],
      "fabric": {"kind": "star", "link": {"bandwidth": "100 Gb/s"}}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
}

}  // namespace

TEST_CASE("import prints the machine file of an XML file, and its warnings on stderr") {
  const std::string dump = sample("dump.xml").string();
  const Outcome plain = run_command({"topology", "import", dump});
  CHECK(plain.code == 0);
  CHECK(plain.err == "");
  CHECK(plain.out == to_machine_file(import_nccl_xml(test::read_file(dump), dump)));

  const std::string skeleton = sample("skeleton.xml").string();
  const Outcome bare = run_command({"topology", "import", skeleton});
  CHECK(bare.code == 0);
  CHECK(bare.err.starts_with("ringsim: warning: " + skeleton + ":5: the file does not state the speed of 2 of 2 NICs"));
  CHECK(test::has(bare.err, "--nic"));
  const Outcome full =
      run_command({"topology", "import", skeleton, "--nvlink", "dgx-1v", "--nic", "200 Gb/s", "--gpu", "V100"});
  CHECK(full.code == 0);
  CHECK(full.err == "");
  CHECK(full.out.find(R"("bandwidth":{"value":"25 GB/s","source":"set with --nic"})") != std::string::npos);
}

TEST_CASE("import says of a file that denies GPUDirect what follows, and the machine file keeps it") {
  const std::string xml = test::temporary_file("pairs.xml", test::pairs_without_gpudirect());
  const Outcome outcome = run_command({"topology", "import", xml});
  CHECK(outcome.code == 0);
  CHECK(outcome.err ==
        "ringsim: warning: " + xml + ": " + what_denied_gpudirect_means("gdr=0 on 2 of 2 GPUs and 2 of 2 NICs") + "\n");
  CHECK(without_gpudirect(parse_machine(outcome.out, "m.json")) == "gdr=0 on 2 of 2 GPUs and 2 of 2 NICs");
}

TEST_CASE("import tells a matrix from XML by what is in the file") {
  const std::string matrix = sample("matrix.txt").string();
  const Outcome outcome = run_command({"topology", "import", matrix, "--like", "dgx-1v"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out == to_machine_file(import_nvidia_smi(test::read_file(matrix), matrix, node_preset("dgx-1v"))));
}

TEST_CASE("what import cannot use has code 3 and says why") {
  const std::string dump = sample("dump.xml").string(), matrix = sample("matrix.txt").string();
  const Outcome no_like = run_command({"topology", "import", matrix});
  CHECK(no_like.code == 3);
  CHECK(
      no_like.err ==
      "ringsim: error: " + matrix +
          ": expected NCCL topology XML, or --like for a matrix of `nvidia-smi topo -m`\n  hint: --like names a preset "
          "that supplies the speeds, which the matrix does not contain; `ringsim list nodes` lists all presets\n");
  const Outcome like = run_command({"topology", "import", dump, "--like", "dgx-1w"});
  CHECK(like.code == 3);
  CHECK(like.err.starts_with("ringsim: error: --like: expected the name of a node preset, found \"dgx-1w\""));
  const Outcome gpu = run_command({"topology", "import", matrix, "--like", "dgx-1v", "--gpu", "A100"});
  CHECK(gpu.code == 3);
  CHECK(gpu.err.starts_with("ringsim: error: --gpu: expected this option only for NCCL topology XML"));
  const Outcome rate = run_command({"topology", "import", dump, "--nic", "200G"});
  CHECK(rate.code == 3);
  CHECK(rate.err.starts_with("ringsim: error: --nic: expected a rate such as"));
  const Outcome preset = run_command({"topology", "import", dump, "--nvlink", "dgx1v"});
  CHECK(preset.code == 3);
  CHECK(preset.err ==
        "ringsim: error: --nvlink: expected the name of a node preset, found \"dgx1v\"\n  hint: did you mean "
        "\"dgx-1v\"?\n");
  CHECK(run_command({"topology", "import", "/no/such/file"}).code == 3);
  CHECK(run_command({"topology", "import"}).code == 2);
  const std::string own = test::temporary_file("dump.txt", test::read_file(dump));
  CHECK(run_command({"topology", "import", own, "-o", own}).code == 3);  // never written over
  CHECK(test::read_file(own) == test::read_file(dump));
  CHECK(run_command({"topology", "import", dump, "-o", dump}).code == 2);  // no machine file ends in .xml
}

TEST_CASE("export writes the first node's machine, or the whole topology") {
  const std::string scenario = cluster();
  const Machine machine = node_preset("dgx-1v");
  CHECK(run_command({"topology", "export", scenario, "--to", "nccl-xml"}).out == to_nccl_xml(machine));
  CHECK(run_command({"topology", "export", scenario, "--to", "machine"}).out == to_machine_file(machine));
  const Outcome dot = run_command({"topology", "export", scenario, "--to", "dot"});
  CHECK(dot.code == 0);
  CHECK(dot.err == "ringsim: note: this is the first of 2 points; choose another with --set\n");
  CHECK(dot.out.find("subgraph cluster_node1 {") != std::string::npos);
  CHECK(dot.out.find("subgraph cluster_node2 {") == std::string::npos);
  const Outcome four = run_command({"topology", "export", scenario, "--to", "graphml", "--set", "topology.nodes=4"});
  CHECK(four.err == "");
  CHECK(four.out.find("node3.gpu7") != std::string::npos);
}

TEST_CASE("a topology without machines is no NCCL file") {
  const std::string star = test::temporary_file("s.json", R"({"version": 1,
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  const Outcome outcome = run_command({"topology", "export", star, "--to", "nccl-xml"});
  CHECK(outcome.code == 3);
  CHECK(outcome.err == "ringsim: error: " + star +
                           ": /topology/kind: expected a topology made of machines (cluster, nccl_xml, nvidia_smi), "
                           "found another kind\n  hint: --to graphml and --to dot support any topology\n");
  CHECK(run_command({"topology", "export", star, "--to", "graphml"}).code == 0);
  CHECK(run_command({"topology", "export", star, "--to", "png"}).code == 2);
}

}  // namespace topology_io_test
