// Which NICs NCCL uses between nodes: its own choice, and NCCL_IB_HCA.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"

namespace library_nics_test {

using namespace ringsim;

namespace {

const std::string two_dgx_a100 = R"({"version": 1,
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
               "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}}},
  "library": {"name": "nccl", "env": {"NCCL_ALGO": "Ring"}},
  "collective": {"op": "all_reduce", "bytes": "256 MiB"}})";

Scenario point(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return ScenarioFile::parse(text, "s.json", overrides).point(0);
}
Prediction with_nics(const std::string& text, const std::string& list) {
  return predict(point(text, {"library.env.NCCL_IB_HCA=" + list}));
}

std::string link_type(const std::string& name, const std::string& kind, const std::string& rate) {
  return '"' + name + R"(": {"kind": ")" + kind + R"(", "bandwidth": {"value": ")" + rate +
         R"(", "source": "t"}, "latency": {"value": "0 us", "source": "t"}})";
}
/// A GPU, a 1 Gb/s port "m" on its own PCIe switch, and a 200 Gb/s NIC "f" one switch farther. `library`: or what else
/// decides.
std::string managed(const std::string& library) {
  const std::string machine =
      R"({"name": "managed", "summary": "t", "link_types": {)" + link_type("wire", "pcie", "25 GB/s") + ", " +
      link_type("fast", "infiniband", "200 Gb/s") + ", " + link_type("slow", "ethernet", "1 Gb/s") +
      R"(}, "devices": [{"name": "g", "kind": "gpu", "attributes": {"sm": "80"}}, {"name": "c", "kind": "cpu"},
      {"name": "near", "kind": "pcie_switch"}, {"name": "far", "kind": "pcie_switch"},
      {"name": "m", "kind": "nic", "port": "slow"}, {"name": "f", "kind": "nic", "port": "fast"}],
    "links": [{"from": "far", "to": "c", "type": "wire"}, {"from": "near", "to": "far", "type": "wire"},
      {"from": "g", "to": "near", "type": "wire"}, {"from": "m", "to": "near", "type": "wire"},
      {"from": "f", "to": "far", "type": "wire"}]})";
  return R"({"version": 1, "topology": {"kind": "cluster", "node_file": ")" +
         test::temporary_file("managed.json", machine) +
         R"(", "nodes": 2, "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "0 us"}}}, )" +
         library + "}";
}
const std::string by_nccl = R"("library": "nccl", "collective": {"op": "all_reduce", "bytes": "100 MB"})";

}  // namespace

TEST_CASE("a management port is not taken because it is nearer: the widest path decides, as in NCCL") {
  // 100 MB leave each node: 4 ms at 25 GB/s, 800 ms at 1 Gb/s.
  const Prediction plain =
      predict(point(managed(R"("collective": {"op": "all_reduce", "bytes": "100 MB", "algorithm": "ring"})")));
  CHECK(plain.time == Picoseconds{4'000'000'000});
  const std::string text = managed(by_nccl);
  const Picoseconds fast = predict(point(text)).time;
  CHECK(fast < Picoseconds{8'000'000'000});
  CHECK(with_nics(text, "f").time == fast);
  CHECK(with_nics(text, "^m").time == fast);
  CHECK(with_nics(text, "=m").time > Picoseconds{800'000'000'000});
  CHECK(with_nics(text, "^=f").time == with_nics(text, "=m").time);
}

TEST_CASE("rings leave by the NICs that NCCL_IB_HCA selects, and by no others") {
  // Eight NICs of 24 GB/s payload: 192 GB/s at most; with four of them 96, with one 24.
  const double eight = predict(point(two_dgx_a100)).busbw;
  CHECK(eight > 150);
  const double four = with_nics(two_dgx_a100, "=nic0,nic2,nic6,nic8").busbw;
  CHECK(four < 96);
  CHECK(four > 0.4 * eight);
  const Prediction one = with_nics(two_dgx_a100, "^nic1,nic2,nic3,nic6,nic7,nic8,nic9");
  CHECK(one.busbw < 24);
  CHECK(one.busbw > 18);
  int n_groups = 0;
  for (const LinkGroup& group : one.links) {
    if (group.links.find(".nic*") == std::string::npos) continue;
    CAPTURE(group.links);
    CHECK(group.count == 2);  // one of each node
    ++n_groups;
  }
  CHECK(n_groups == 4);  // to and from the NIC, on PCIe and on the cable
}

TEST_CASE("both directions of a channel's two trees take the channel's NIC, as its ring does") {
  // Four NICs at every other of eight GPUs, eight channels: two on each NIC. A channel whose trees took NICs of their
  // own would leave two of the four idle.
  std::string text = two_dgx_a100;
  text.replace(text.find("dgx-a100"), 8, "hgx-h100-4nic");
  for (const char* algorithm : {"Tree", "Ring"}) {
    CAPTURE(algorithm);
    const Prediction made = predict(point(
        text, {"topology.nodes=4", "collective.bytes=16 MiB", std::string("library.env.NCCL_ALGO=") + algorithm}));
    int n_cables = 0;
    for (const LinkGroup& group : made.links)
      if (group.links.find("nic* -> ") != std::string::npos && group.links.find("pcie") == std::string::npos)
        n_cables += group.count;
    CHECK(n_cables == 16);
  }
}

TEST_CASE("NICs that are left out keep their cables: the fabric has the same links") {
  const auto links = [](const std::vector<std::string>& set) {
    return topology_of(point(two_dgx_a100, set)).n_links();
  };
  CHECK(links({"library.env.NCCL_IB_HCA=nic0"}) == links({}));
}

TEST_CASE("a list that changes nothing is warned of, and one that leaves no NIC is refused") {
  const auto warning = [](const std::vector<std::string>& set) {
    const Scenario scenario = point(two_dgx_a100, set);
    return scenario.warnings.empty() ? "" : scenario.warnings.front();
  };
  CHECK(warning({"library.env.NCCL_IB_HCA=nic0"}) == "");
  CHECK(warning({"library.env.NCCL_IB_HCA=nic"}) ==
        "--set library.env.NCCL_IB_HCA=nic: /library/env/NCCL_IB_HCA: it has no effect, because it selects all NICs of "
        "dgx-a100");
  CHECK(warning({"library.env.NCCL_IB_HCA=nic0", "topology.nodes=1", "topology.fabric=null"}) ==
        "--set library.env.NCCL_IB_HCA=nic0: /library/env/NCCL_IB_HCA: it has no effect, because no data leaves the "
        "node");
  CHECK(test::complaint([] { point(two_dgx_a100, {"library.env.NCCL_IB_HCA=mlx5_0"}); })
            .find("expected a list that selects a NIC of dgx-a100, found \"mlx5_0\", which selects none\n"
                  "  hint: its NICs are nic0, nic1, nic2, ") != std::string::npos);
  CHECK(test::complaint([] {
          point(two_dgx_a100, {"library.env.NCCL_IB_HCA=^"});
        }).find("/library/env/NCCL_IB_HCA: expected names of NICs, found none in \"^\"") != std::string::npos);
}

TEST_CASE("names that no NIC has are warned of; the others count") {
  const std::string list = "nic0, nic1,nic99";  // NCCL does not drop blanks, either
  const Scenario found = point(two_dgx_a100, {"library.env.NCCL_IB_HCA=" + list});
  REQUIRE(found.warnings.size() == 1);
  CHECK(found.warnings.front().find(R"(no NIC has the name " nic1", "nic99", so this selects nothing)") !=
        std::string::npos);
  CHECK(predict(found).time == with_nics(two_dgx_a100, "nic0").time);
}

TEST_CASE("NICs for storage, which have no port for the fabric, are warned of as such") {
  const Scenario found = point(two_dgx_a100, {"library.env.NCCL_IB_HCA=nic0,nic4"});
  REQUIRE(found.warnings.size() == 1);
  CHECK(found.warnings.front().find(
            R"("nic4" is not connected to the fabric between nodes, so this selects nothing)") != std::string::npos);
}

}  // namespace library_nics_test
