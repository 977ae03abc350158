// What the scorecard's predictions are held against: the textbook, NCCL's own estimate, a straight line.
#include "validate/score/baselines.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace baselines_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

Scenario scenario_on(const std::string& topology, const std::string& collective = "") {
  return ScenarioFile::parse(R"({"version": 1, "topology": )" + topology + R"(, "collective": {"op": "all_reduce", )" +
                                 R"("algorithm": "ring", "bytes": "1 MiB")" + collective + "}}",
                             "test.json")
      .point(0);
}

std::string cluster(const std::string& node, int nodes, const std::string& rate) {
  return R"({"kind": "cluster", "node": ")" + node + R"(", "nodes": )" + std::to_string(nodes) +
         R"(, "fabric": {"kind": "star", "link": {"bandwidth": ")" + rate + R"(", "latency": "150 ns"}}})";
}

using About = std::map<std::string, std::string>;

std::string chosen(const Scenario& scenario, const About& about, Bytes bytes) {
  const auto time = TunerBaseline(scenario, about).time(CollectiveOp::all_reduce, bytes);
  return time ? time->by : "nothing";
}

}  // namespace

TEST_CASE("the textbook's machine is that of the preset's links, worked by hand") {
  // 12 NVLink3 of 25 GB/s, of which payload reaches 0.9195; two hops of 0.3 us.
  const TextbookMachine a100 = textbook_machine(scenario_on(R"({"kind": "cluster", "node": "dgx-a100", "nodes": 1})"));
  CHECK(a100.ranks == 8);
  CHECK(a100.b_GBps == doctest::Approx(12 * 25 * 0.9195));
  CHECK(a100.a_us == doctest::Approx(0.6));
  // Two EDR adapters at 12 GB/s. The longest hop is from gpu3 to the other node's gpu0, whose rail is nic0's: 0.6 us
  // over NVLink to gpu0, then 2.7 us.
  const TextbookMachine v100 = textbook_machine(scenario_on(cluster("abci-v", 2, "100 Gb/s")));
  CHECK(v100.ranks == 8);
  CHECK(v100.b_GBps == doctest::Approx(24));
  CHECK(v100.a_us == doctest::Approx(3.3));
  // One GPU per node: its own PCIe link, though the node has eight adapters.
  const TextbookMachine alone =
      textbook_machine(scenario_on(cluster("hgx-h100", 2, "400 Gb/s"), R"(, "ranks": ["node0.gpu0", "node1.gpu0"])"));
  CHECK(alone.ranks == 2);
  CHECK(alone.b_GBps == doctest::Approx(48));
  // Of a mesh only what leads to others that take part: one of three pairs of NVLink2.
  const TextbookMachine pair = textbook_machine(scenario_on(R"({"kind": "cluster", "node": "abci-v", "nodes": 1})",
                                                            R"(, "ranks": ["node0.gpu0", "node0.gpu1"])"));
  CHECK(pair.b_GBps == doctest::Approx(2 * 25 * 0.958));
  // No NVLink: PCIe gen3 x16.
  CHECK(textbook_machine(scenario_on(R"({"kind": "cluster", "node": "rtx2080ti-pcie", "nodes": 1})")).b_GBps ==
        doctest::Approx(12));
  CHECK(textbook_machine(
            scenario_on(R"({"kind": "star", "ranks": 3, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}})"))
            .b_GBps == doctest::Approx(10));
}

TEST_CASE("the textbook's machine is the same with a library, whatever its kernels reach") {
  // NVLink and PCIe, messages that LL and Simple move. The latency may differ: which way GPUs take, NCCL decides.
  for (const char* node : {"hgx-h100", "rtxpro6000-pcie"})
    for (const char* op : {"all_to_all", "all_reduce"})
      for (const char* bytes : {"1 KiB", "1 GiB"}) {
        CAPTURE(node);
        CAPTURE(op);
        CAPTURE(bytes);
        const std::string topology = R"({"kind": "cluster", "nodes": 1, "node": ")" + std::string(node) + "\"}";
        const Scenario with =
            ScenarioFile::parse(R"({"version": 1, "library": "nccl", "topology": )" + topology +
                                    R"(, "collective": {"op": ")" + op + R"(", "bytes": ")" + bytes + "\"}}",
                                "test.json")
                .point(0);
        const TextbookMachine found = textbook_machine(with), plain = textbook_machine(scenario_on(topology));
        CHECK(found.b_GBps == doctest::Approx(plain.b_GBps));
      }
}

TEST_CASE("the textbook's times are worked by hand") {
  // a 1 us, b 1 GB/s: 4000 B take 4 us.
  const TextbookMachine four{.ranks = 4, .a_us = 1, .b_GBps = 1}, six{.ranks = 6, .a_us = 1, .b_GBps = 1};
  const auto time = [](const TextbookMachine& machine, CollectiveOp op) {
    return textbook_time(machine, op, 4000_B).value().us;
  };
  CHECK(time(four, CollectiveOp::all_reduce) == doctest::Approx(2 * 3 * (1 + 1)));
  CHECK(time(four, CollectiveOp::reduce_scatter) == doctest::Approx(3 * (1 + 1)));
  CHECK(time(four, CollectiveOp::all_gather) == doctest::Approx(3 * (1 + 1)));
  CHECK(time(four, CollectiveOp::all_to_all) == doctest::Approx(3 * (1 + 1)));
  CHECK(time(four, CollectiveOp::send_recv) == doctest::Approx(1 + 4));
  CHECK(time(six, CollectiveOp::broadcast) == doctest::Approx((4 + 4) * (1 + 1)));  // s = sqrt(4 x 4) = 4 pieces
  CHECK(time({2, 1, 1}, CollectiveOp::broadcast) == doctest::Approx(1 + 4));        // nobody passes on: one piece
  CHECK(time({3, 0, 1}, CollectiveOp::reduce) == doctest::Approx(4));               // no latency: no end of pieces
  CHECK_FALSE(textbook_time(four, CollectiveOp::scatter, 4000_B).has_value());
  CHECK_FALSE(textbook_time({1, 1, 1}, CollectiveOp::all_reduce, 4000_B).has_value());
}

TEST_CASE("the tuner speaks for the release, the algorithm and the protocol that a table names") {
  const Scenario v100 = scenario_on(R"({"kind": "cluster", "node": "abci-v", "nodes": 1})");
  // Rings over LL: 2.8.3's 3.6 + 6 x 0.47 = 6.42 us, 2.30.7's 6.6 + 6 x 0.6 = 10.2.
  const auto small = [&](const char* library) {
    return TunerBaseline(v100, {{"library", library}}).time(CollectiveOp::all_reduce, 4_B).value();
  };
  CHECK(small("NCCL 2.8.4-1, CUDA 11.2.2").us == doctest::Approx(6.42).epsilon(0.001));
  CHECK(small("NCCL 2.0/2.1").us == doctest::Approx(6.42).epsilon(0.001));
  CHECK(small("NCCL 2.22.3-1").us == doctest::Approx(10.2).epsilon(0.001));
  CHECK(small("nccl-tests -n 50").by == "Ring LL");
  CHECK(chosen(v100, {{"library", "NCCL"}, {"algorithm", "Tree"}}, 1_GiB) == "Tree Simple");
  CHECK(chosen(v100, {{"library", "NCCL"}, {"algorithm", "Ring (title of the thread)"}, {"protocol", "Simple"}}, 4_B) ==
        "Ring Simple");
  CHECK(chosen(v100, {{"library", "NCCL"}, {"algorithm", "not stated"}, {"protocol", "LL128"}}, 4_B) == "Tree LL128");
  CHECK(chosen(v100, {{"library", "RCCL, rccl-tests a7809b3"}}, 4_B) == "nothing");
  CHECK(chosen(v100, {}, 4_B) == "nothing");
  CHECK(chosen(v100, {{"library", "NCCL"}, {"algorithm", "NVLSTree"}}, 4_B) == "nothing");  // V100 has none
  const Scenario h20 = scenario_on(cluster("hgx-h20", 2, "400 Gb/s"));
  CHECK(chosen(h20, {{"library", "NCCL"}, {"algorithm", "NVLSTree (NCCL_ALGO=NVLSTree)"}}, 4_B) == "NVLSTree Simple");
}

TEST_CASE("the tuner takes those GPUs of a node that take part, and none if nodes differ") {
  const About ring{{"library", "NCCL"}, {"algorithm", "Ring"}};
  const auto time = [&](const std::string& ranks) {
    return TunerBaseline(scenario_on(cluster("hgx-h100-4nic", 2, "400 Gb/s"), R"(, "ranks": [)" + ranks + "]"), ring)
        .time(CollectiveOp::all_reduce, 4_GiB);
  };
  // Adapters hang at GPUs 0, 2, 4 and 6: four of 45 GB/s against two.
  const auto four = time(R"("node0.gpu0", "node0.gpu2", "node0.gpu4", "node0.gpu6",
                            "node1.gpu0", "node1.gpu2", "node1.gpu4", "node1.gpu6")");
  const auto two = time(R"("node0.gpu0", "node0.gpu1", "node0.gpu2", "node0.gpu3",
                           "node1.gpu0", "node1.gpu1", "node1.gpu2", "node1.gpu3")");
  REQUIRE(four);
  REQUIRE(two);
  CHECK(two->us / four->us == doctest::Approx(2).epsilon(0.01));
  CHECK_FALSE(time(R"("node0.gpu0", "node1.gpu2")").has_value());
}

TEST_CASE("a line is fitted to relative errors, and goes through points that lie on one") {
  using Rows = std::vector<std::pair<Bytes, double>>;
  const Line exact = fitted_line(Rows{{0_B, 5}, {1000_B, 7}, {1000000_B, 2005}});
  CHECK(exact.alpha_us == doctest::Approx(5));
  CHECK(exact.us_per_byte == doctest::Approx(0.002));
  // A row that is 1000 times as long pulls no harder: by absolute squares alpha would be about 400.
  const Line relative = fitted_line(Rows{{0_B, 10}, {0_B, 10}, {1000_B, 10}, {1000000_B, 10000}, {2000000_B, 17000}});
  CHECK(relative.alpha_us < 10);
  CHECK(relative.alpha_us > 0);
  // Neither part is negative: then the other alone is fitted. Sum of v over sum of v^2, v = S/t = 10, 5: 15/125.
  const Line through_zero = fitted_line(Rows{{1000_B, 100}, {2000_B, 400}});
  CHECK(through_zero.alpha_us == 0);
  CHECK(through_zero.us_per_byte == doctest::Approx(0.12));
  const Line flat = fitted_line(Rows{{1000_B, 20}, {2000_B, 10}});  // u = 1/20, 1/10: 0.15/0.0125
  CHECK(flat.us_per_byte == 0);
  CHECK(flat.alpha_us == doctest::Approx(12));
}

}  // namespace baselines_test
