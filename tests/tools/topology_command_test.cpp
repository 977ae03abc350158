// ringsim topology: devices, links, distances, rings and paths of a machine, and what faults change of them.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace topology_command_test {

using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

TEST_CASE("topology show prints the matrix of nvidia-smi, and the paths that data takes in NCCL's words") {
  const std::string dgx = ringsim::test::source_dir() + "/scenarios/examples/machines/dgx-1v-ring.json";
  const Outcome outcome = run_command({"topology", "show", dgx});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("gpu5  SYS   NV2   SYS   SYS   NV1   X     NV2   NV1   SYS   SYS   PIX   PHB      1\n") !=
        std::string::npos);
  CHECK(outcome.out.find("gpu5  NVB   NVL   NVB   NVB   NVL   X     NVL   NVL   SYS   SYS   PIX   PHB\n") !=
        std::string::npos);
  const Outcome pairs = run_command({"topology", "show", dgx, "--pairs"});
  CHECK(pairs.out.find("node0.gpu0  node0.gpu7  1/1   NVB      2  48.48 GB/s  1.2 us\n") != std::string::npos);
  const Outcome wrong = run_command({"topology", "show", dgx, "--node", "1"});
  CHECK(wrong.code == 3);
  CHECK(wrong.err.ends_with("ringsim: error: --node: expected the number of a node, 0 to 0, found 1\n"));
}

// 18 NVLinks of 25 GB/s, of which 83.56 % reach a copy (topologies/machines/link_types.json).
TEST_CASE("topology show has the bandwidths of the machine, and says what part of them NCCL's kernels reach") {
  const Outcome outcome = run_command({"topology", "show", "hgx-h100"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("node0.gpu0 -> node0.nvswitch0  nvlink  376.02 GB/s ") != std::string::npos);
  CHECK(outcome.out.find("NCCL's kernels reach only a share of these bandwidths: ") != std::string::npos);
  CHECK(outcome.out.find(" % of nvlink\n  (`ringsim list costs`") != std::string::npos);
  // A picture and a graph have them as well.
  CHECK(run_command({"topology", "export", "hgx-h100", "--to", "dot"}).out.find("376") != std::string::npos);
  const std::string textbook = ringsim::test::source_dir() + "/scenarios/two-dgx-a100.json";
  CHECK(run_command({"topology", "show", textbook}).out.find("kernels reach") == std::string::npos);
}

TEST_CASE("commands about machines need no algorithm, whatever the operation, and topologies no collective") {
  const auto file = [](const std::string& rest) {
    return ringsim::test::temporary_file("s.json", R"({"version": 1, "name": "s",
      "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 1})" +
                                                       rest + "}");
  };
  const auto answers = [](const std::string& command, const std::string& scenario, const std::string& set = "") {
    ringsim::test::Words words{"bound", scenario};
    if (command != "bound") words = {"topology", command, scenario};
    if (!set.empty()) words.insert(words.end(), {"--set", set});
    return run_command(words);
  };
  const std::string plain = file(R"(, "collective": {"op": "all_reduce", "bytes": "1 MiB"})");
  for (const char* command : {"show", "bound"}) {
    CAPTURE(command);
    CHECK(answers(command, plain).code == 0);
    CHECK(answers(command, plain, "collective.op=all_to_all").code == 0);
    CHECK(answers(command, plain, "library=nccl").code == 0);
    CHECK(answers(command, file(R"(, "library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 MiB"})"),
                  "library=null")
              .code == 0);
    CHECK(answers(command, file(R"(, "collective": {"op": "all_reduce", "bytes": "1 MiB"}, "sweep": {"library":
                                ["nccl", {"name": "nccl", "version": "2.22.3"}]})"))
              .code == 0);
    // The error is that of the file as it is.
    const Outcome wrong = answers(command, plain, "collective.algorithm=rign");
    CHECK(wrong.code == 3);
    CHECK(wrong.err.find("did you mean \"ring\"?") != std::string::npos);
  }
  CHECK(answers("show", file("")).code == 0);
  CHECK(answers("show", file(""), "library=nccl").code == 0);
  CHECK(answers("show", file(R"(, "colective": {})")).err.find("colective") != std::string::npos);
}

TEST_CASE("topology rings leaves out links that are down from the start, and counts slow ones as they are") {
  const std::string machine = ringsim::test::source_dir() + "/scenarios/examples/algorithms/best-ring.json";
  const auto rings = [&](const std::string& state) {
    const std::string fault = R"({"link": "node0.gpu0 -> node0.gpu1", )" + state + "}, " +
                              R"({"link": "node0.gpu1 -> node0.gpu0", )" + state + "}";
    return run_command({"topology", "rings", machine, "--set", "faults=[" + fault + "]"}).out;
  };
  // Without faults six rings of 24.24 GB/s: gpu0 has six NVLinks. One joins it with gpu1.
  const std::string down = rings(R"("state": "down")");
  CHECK(down.starts_with("5 rings of 24.24 GB/s each, 121.2 GB/s in total"));
  CHECK(down.find("gpu0 gpu1 ") == std::string::npos);
  CHECK(down.find("gpu1 gpu0 ") == std::string::npos);
  const std::string later = rings(R"("state": "down", "at": "1 s")");
  CHECK(later.starts_with("6 rings of 24.24 GB/s each"));
}

TEST_CASE("topology rings shows a ring per NIC of two DGX A100, and the six ways round a DGX-1V") {
  const std::string pair = ringsim::test::source_dir() + "/scenarios/two-dgx-a100.json";
  const Outcome two = run_command({"topology", "rings", pair});
  REQUIRE(two.code == 0);
  CHECK(two.out.find("8 rings of 24 GB/s each, 192 GB/s in total, over 16 GPUs") == 0);
  CHECK(two.out.find("all 2  nic9 (PXB)  gpu7 gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6  nic9 (PXB)") != std::string::npos);
  const Outcome each = run_command({"topology", "rings", pair, "--all"});
  CHECK(each.out.find("node1  nic9 (PXB)  gpu7 gpu0") != std::string::npos);
  const Outcome mesh =
      run_command({"topology", "rings", ringsim::test::source_dir() + "/scenarios/examples/algorithms/best-ring.json"});
  CHECK(mesh.out.find("6 rings of 24.24 GB/s each, 145.4 GB/s in total, over 8 GPUs") == 0);
  CHECK(mesh.out.find("node") == std::string::npos);
  // NCCL's search takes the one ring behind NVSwitches as often as the rate of a GPU allows.
  CHECK(run_command({"topology", "rings", "dgx-a100"})
            .out.starts_with("12 channels of 20 GB/s each, 240 GB/s in total, on 1 ring over 8 GPUs\n"));
  CHECK(run_command({"topology", "rings", "hgx-b300", "--nodes", "2"})
            .out.starts_with("16 channels of 48 GB/s each, 768 GB/s in total, on 8 rings over 16 GPUs\n"));
}

TEST_CASE("a machine is written without the links that are down at the start, and NCCL finds rings without them") {
  const std::string file = ringsim::test::temporary_file("dead.json", R"({"version": 1, "name": "dead",
    "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 1}, "library": "nccl",
    "collective": {"op": "all_reduce", "bytes": "256 MiB"},
    "faults": [{"link": "node0.gpu0 -> node0.gpu1", "state": "down"},
               {"link": "node0.gpu1 -> node0.gpu0", "state": "down"}]})");
  const Outcome warned = run_command({"run", file});
  CHECK(warned.err.find("`ringsim topology export SCENARIO --without-dead-links -o machine.json`") !=
        std::string::npos);
  const Outcome with = run_command({"topology", "export", file, "--to", "machine"});
  CHECK(with.err.find("; --without-dead-links leaves out the links that are down at the start") != std::string::npos);
  const Outcome without = run_command({"topology", "export", file, "--to", "machine", "--without-dead-links"});
  REQUIRE(without.code == 0);
  CHECK(without.err.find("faults: the exported topology") == std::string::npos);
  CHECK(with.out.find(R"("from":"gpu0","to":"gpu1")") != std::string::npos);
  CHECK(without.out.find(R"("from":"gpu0","to":"gpu1")") == std::string::npos);
  const std::string machine = ringsim::test::temporary_file("machine.json", without.out);
  const Outcome rings = run_command({"topology", "rings", machine});
  CHECK(rings.out.starts_with("5 rings of 20 GB/s each, 100 GB/s in total, over 8 GPUs"));
  const Outcome picture = run_command({"topology", "export", file, "--to", "dot", "--without-dead-links"});
  CHECK(picture.code == 2);
  const Outcome none = run_command({"topology", "export", file, "--to", "machine", "--without-dead-links", "--set",
                                    R"(faults=[{"link": "node0.nic0", "bandwidth": "50%"}])"});
  CHECK(none.err.find("--without-dead-links: it has no effect") != std::string::npos);
}

TEST_CASE("topology paths explains a path leg by leg") {
  const std::string two = ringsim::test::source_dir() + "/scenarios/examples/machines/two-node-server.json";
  const Outcome staged =
      run_command({"topology", "paths", two, "node0.gpu0", "node1.gpu5", "--set", "transport.gpudirect=false"});
  CHECK(staged.code == 0);
  CHECK(staged.out.starts_with(
      "node0.gpu0 to node1.gpu5: NET, 3 legs, narrowest 12 GB/s, latency 4.5 us\nthe sender's NIC: distance PIX, "
      "gdr_level LOC: too far for GPUDirect, so data is staged in host memory\n"));
  CHECK(staged.out.find("leg 2, to node1.mem1, where data is staged in 8 slots of 512 KiB\n") != std::string::npos);
  const std::string denied =
      ringsim::test::temporary_file("s.json", ringsim::test::two_nodes_of(ringsim::test::temporary_file(
                                                  "pairs.xml", ringsim::test::pairs_without_gpudirect())));
  const Outcome by_file = run_command({"topology", "paths", denied, "node0.gpu0", "node1.gpu0"});
  CHECK(by_file.out.starts_with(
      "node0.gpu0 to node1.gpu0: NET, 3 legs, narrowest 48 GB/s, latency 6.2 us\nthe sender's NIC: distance PIX; "
      "node0.nic0 has no GPUDirect (gdr=0), so data is staged in host memory\nthe receiver's NIC: distance PIX; "
      "node1.nic0 has no GPUDirect (gdr=0), so data is staged in host memory\n"));
  const Outcome said =
      run_command({"topology", "paths", denied, "node0.gpu0", "node1.gpu0", "--set", "transport.gpudirect=true"});
  CHECK(ringsim::test::has(said.out,
                           "the sender's NIC: distance PIX, gdr_level P2C: GPUDirect RDMA, no copy in host memory\n"));
  const Outcome wrong = run_command({"topology", "paths", two, "node0.gpu0", "node1.gpx5"});
  CHECK(wrong.code == 3);
  CHECK(wrong.err ==
        "ringsim: note: this is the first of 4 points; choose another with --set\nringsim: error: expected the name of "
        "a device in the topology, found \"node1.gpx5\"\n  hint: did you mean \"node1.gpu5\"?\n");
  CHECK(run_command({"topology", "paths", two, "node0.gpu0"}).code == 2);
}

TEST_CASE("topology paths goes around what a fault holds down from the start, and not around what fails later") {
  // gpu2 sends over its own NIC, node0.nic1; without it PXN takes the data to a GPU at another.
  const std::string two = ringsim::test::source_dir() + "/scenarios/examples/machines/two-node-server.json";
  const auto by = [&](const std::string& fault) {
    return run_command({"topology", "paths", two, "node0.gpu2", "node1.gpu2", "--set", "faults=[" + fault + "]"}).out;
  };
  const std::string own = "node0.pcie1 -> node0.nic1";
  CHECK(by("").find(own) != std::string::npos);
  CHECK(by(R"({"link": "node0.nic1", "state": "down"})").find(own) == std::string::npos);
  CHECK(by(R"({"link": "node0.nic1", "state": "down", "at": "1 ms"})").find(own) != std::string::npos);
}

}  // namespace topology_command_test
