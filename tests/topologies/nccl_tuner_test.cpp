// NCCL's own estimate: the formula by hand-worked numbers, and what it takes known machines to be.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

namespace nccl_tuner_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::nccl;

namespace {

TunerMachine machine_of(const std::string& preset, int gpus, int nodes, Bandwidth nic = 0_GBps,
                        Release release = Release::v2_30_7) {
  return tuner_machine(node_preset(preset), gpus, nodes, nic, release);
}

TunerChoice choice(CollectiveOp op, const TunerMachine& machine, TunerAlgorithm algorithm, TunerProtocol protocol,
                   Release release = Release::v2_30_7) {
  for (const TunerChoice& each : tuner_choices(op, machine, release))
    if (each.algorithm == algorithm && each.protocol == protocol) return each;
  FAIL("no such choice");
  return {};
}

/// What NCCL would take: "Ring Simple".
std::string best(CollectiveOp op, Bytes bytes, const TunerMachine& machine) {
  const auto choices = tuner_choices(op, machine, Release::v2_30_7);
  const auto time = [&](const TunerChoice& each) { return tuner_time_us(each, op, bytes, machine, Release::v2_30_7); };
  const auto& found = *std::min_element(choices.begin(), choices.end(),
                                        [&](const auto& a, const auto& b) { return time(a) < time(b); });
  return std::string(to_string(found.algorithm)) + " " + std::string(to_string(found.protocol));
}

void check_channels(const Channels& found, int count, double inside, double between) {
  CHECK(found.count == count);
  CHECK(found.inside == doctest::Approx(inside));
  CHECK(found.between == doctest::Approx(between));
}

}  // namespace

TEST_CASE("the latency of a tree over LL in NCCL 2.8.3 is that worked by hand for the machines of ABCI") {
  // 4.4 + 2((g-1) 0.52 k + floor(log2 n) 5.0), k 1.8 on several nodes; measured there: 8.14, 17.93, 40.79, 61.57,
  // 17.03 and 42.03 us for 4 to 64 B.
  struct Row {
    const char* preset;
    int nodes, gpus;
    double us;
  };
  for (const Row& row : std::vector<Row>{{"abci-v", 1, 4, 7.52},
                                         {"abci-v", 2, 4, 20.016},
                                         {"abci-v", 8, 4, 40.016},
                                         {"abci-v", 32, 4, 60.016},
                                         {"abci-a", 1, 8, 11.68},
                                         {"abci-a", 4, 8, 37.504}}) {
    CAPTURE(row.preset);
    CAPTURE(row.nodes);
    const TunerMachine machine = machine_of(row.preset, row.gpus, row.nodes, 100_Gbps, Release::v2_8_3);
    const TunerChoice tree =
        choice(CollectiveOp::all_reduce, machine, TunerAlgorithm::tree, TunerProtocol::ll, Release::v2_8_3);
    CHECK(tree.latency_us == doctest::Approx(row.us));
  }
}

TEST_CASE("rings of eight A100 on NVSwitches are worked by hand") {
  const TunerMachine machine = machine_of("dgx-a100", 8, 1);
  check_channels(machine.ring, 12, 20, 20);  // 12 links of 20: six channels of 40, doubled
  using enum TunerProtocol;
  struct Row {
    TunerProtocol protocol;
    double latency, bus;
  };
  // 14 steps. LL: half of 240, but at most 87.7. LL128: 0.92 of 240, below 12 channels of 20.
  for (const Row& row :
       std::vector<Row>{{ll, 6.6 + 14 * 0.6, 87.7}, {ll128, 14 + 14 * 1.9, 220.8}, {simple, 8.4 + 14 * 3.4, 240}}) {
    CAPTURE(to_string(row.protocol));
    const TunerChoice ring = choice(CollectiveOp::all_reduce, machine, TunerAlgorithm::ring, row.protocol);
    CHECK(ring.latency_us == doctest::Approx(row.latency));
    CHECK(ring.bandwidth_GBps == doctest::Approx(row.bus * 8 / 14));
    CHECK(tuner_time_us(ring, CollectiveOp::all_reduce, 1_GiB, machine, Release::v2_30_7) ==
          doctest::Approx(row.latency + 1073741.824 / (row.bus * 8 / 14)));
  }
  const TunerChoice gather = choice(CollectiveOp::all_gather, machine, TunerAlgorithm::ring, simple);
  CHECK(gather.latency_us == doctest::Approx(8.4 + 7 * 3.4));
  CHECK(gather.bandwidth_GBps == doctest::Approx(240 * 8.0 / 7));
  const TunerChoice broadcast = choice(CollectiveOp::broadcast, machine, TunerAlgorithm::ring, simple);
  CHECK(broadcast.latency_us == doctest::Approx(8.4 + 3.4));  // one order of the GPUs: one step
  CHECK(broadcast.bandwidth_GBps == doctest::Approx(240));
}

TEST_CASE("rings where each channel has an order of its own pay every step of a broadcast") {
  const TunerMachine machine = machine_of("abci-v", 4, 1);
  check_channels(machine.ring, 6, 20, 20);  // 6 links of 20
  const TunerChoice simple = choice(CollectiveOp::broadcast, machine, TunerAlgorithm::ring, TunerProtocol::simple);
  CHECK(simple.latency_us == doctest::Approx(8.4 + 4 * 4.0));  // Tree's step
}

TEST_CASE("between nodes a ring's step costs no less than posting it, and large messages meet a plateau") {
  const TunerMachine machine = machine_of("abci-v", 4, 2, 100_Gbps);
  check_channels(machine.ring, 2, 12, 12);  // a NIC each
  check_channels(machine.tree, 2, 24, 12);  // raised inside to twice that: a pair's two NVLinks have 40
  const TunerChoice ring = choice(CollectiveOp::all_reduce, machine, TunerAlgorithm::ring, TunerProtocol::simple);
  // 14 steps, 2 of them between nodes; those inside take 3.4, more than the 3 x 1 us of posting.
  CHECK(ring.latency_us == doctest::Approx(8.4 + 12 * 3.4 + 2 * 14.0));
  const TunerChoice ll = choice(CollectiveOp::all_reduce, machine, TunerAlgorithm::ring, TunerProtocol::ll);
  CHECK(ll.latency_us == doctest::Approx(6.6 + 12 * 1.0 + 2 * 2.7));  // posting: 1 us, a step 0.6
  const auto time = [&](Bytes bytes) {
    return tuner_time_us(ring, CollectiveOp::all_reduce, bytes, machine, Release::v2_30_7);
  };
  const double a_byte = 1 / (1000 * 24.0 * 8 / 14);
  CHECK(time(1023_B) == doctest::Approx(77.2 + 1023 * a_byte));        // 2 channels, 8 ranks: below 64 B a piece
  CHECK(time(1024_B) == doctest::Approx(1.9 * 77.2 + 1024 * a_byte));  // from there on
}

TEST_CASE("trees are raised inside the nodes as far as NVLink has room, at most to twice what is between") {
  check_channels(machine_of("dgx-a100", 8, 2, 200_Gbps).tree, 8, 30, 24);  // 8 x 30 = 240 of NVLink; next is 48
  check_channels(machine_of("hgx-h100", 8, 2, 400_Gbps).tree, 8, 48, 48);  // the highest that is listed
  check_channels(machine_of("polaris", 4, 2, 200_Gbps).tree, 2, 48, 24);   // four links of a pair: 80
  check_channels(machine_of("gh200", 1, 2, 200_Gbps).tree, 1, 48, 24);     // one GPU: no link of the node limits it
  check_channels(machine_of("a100-pcie", 8, 2, 200_Gbps).tree, 2, 9, 9);   // over the sockets
}

TEST_CASE("on two nodes large messages take trees where these are raised far enough above the NICs' rate") {
  // A ring brings twice 24 GB/s x 8/14. Trees bring half of min(2 x 48 x 0.92, twice the cap): of A100 23.6, so rings
  // stay; of H100 41.4. MareNostrum 5, 4 H100 with a NIC of 200 Gb/s each, moved 131.8 GB/s of bus bandwidth at 256
  // MiB, above the 100 of its NICs (see also NVIDIA/nccl issue 837).
  CHECK(best(CollectiveOp::all_reduce, 256_MiB, machine_of("polaris", 4, 2, 200_Gbps)) == "Ring Simple");
  CHECK(best(CollectiveOp::all_reduce, 256_MiB, machine_of("dgx-a100", 8, 2, 200_Gbps)) == "Ring Simple");
  TunerMachine four = machine_of("hgx-h100", 4, 2, 200_Gbps);
  four.nvls = {};
  check_channels(four.tree, 4, 48, 24);
  CHECK(best(CollectiveOp::all_reduce, 256_MiB, four) == "Tree Simple");
  four.nodes = 4;  // there what is between counts
  CHECK(best(CollectiveOp::all_reduce, 256_MiB, four) == "Ring Simple");
}

TEST_CASE("EFA's adapters of a GPU are one NIC of NCCL's, with the rate of all") {
  const TunerMachine p5 = machine_of("aws-p5", 8, 2, 100_Gbps);
  CHECK(p5.provider == NicProvider::efa);
  CHECK(p5.ports == 4);
  CHECK(p5.rails == 1);
  check_channels(p5.ring, 8, 48, 48);     // 48 GB/s per GPU
  CHECK(spread_over_ports(8, p5) == 32);  // an adapter each
  CHECK(spread_over_ports(1, p5) == 4);
  CHECK(spread_over_ports(32, p5) == 32);                   // a graph file may have more
  CHECK(machine_of("aws-p4d", 8, 2, 100_Gbps).ports == 1);  // four for eight GPUs
  CHECK(latency_of_aws_ofi_nccl(p5) == 75);
  CHECK(latency_of_aws_ofi_nccl(machine_of("aws-p5en", 8, 2, 200_Gbps)) == 35);
  CHECK(latency_of_aws_ofi_nccl(machine_of("aws-p3dn", 8, 2, 100_Gbps)) == 150);
  CHECK(latency_of_aws_ofi_nccl(machine_of("polaris", 4, 2, 200_Gbps)) == 75);
}

TEST_CASE("rings by LL128 between nodes bring no more than NCCL's cap on a channel") {
  // DGX A100: 20 GB/s of data are 21.3 with flags, of the 24 that a NIC's PCIe carries.
  CHECK(ring_ll128_share(machine_of("dgx-a100", 8, 2, 200_Gbps)) == doctest::Approx(20 * 128.0 / 120 / 24));
  CHECK(ring_ll128_share(machine_of("abci-v", 4, 2, 100_Gbps)) == 1);  // 12.5
  CHECK(ring_ll128_share(machine_of("hgx-h100", 8, 2, 400_Gbps)) == doctest::Approx(36.7 * 128.0 / 120 / 48));
}

TEST_CASE("trees are corrected by size, in steps of a factor of two from 64 B on") {
  const TunerMachine machine = machine_of("abci-v", 4, 8, 100_Gbps);
  const TunerChoice tree = choice(CollectiveOp::all_reduce, machine, TunerAlgorithm::tree, TunerProtocol::simple);
  // More than two nodes count by what is between: min(0.92 x 24, 2 x 10) / 2.
  CHECK(tree.bandwidth_GBps == doctest::Approx(10));
  CHECK(tree.latency_us == doctest::Approx(8.4 + 2 * (3 * 4.0 + 3 * 14.0)));
  const auto moving = [&](Bytes bytes) {
    return tuner_time_us(tree, CollectiveOp::all_reduce, bytes, machine, Release::v2_30_7) - tree.latency_us;
  };
  CHECK(moving(64_B) == doctest::Approx(0.0064 / 0.9));
  CHECK(moving(1_MiB) == doctest::Approx(104.8576 / 0.5));  // index 14
  CHECK(moving(2_MiB) == doctest::Approx(209.7152 / 0.6));  // index 15
  CHECK(moving(512_MiB) == doctest::Approx(53687.0912));    // index 23: none
}

TEST_CASE("on Hopper the switches add up for eight GPUs, and the ring is faster for four, as NCCL chooses") {
  const TunerMachine eight = machine_of("hgx-h100", 8, 1), four = machine_of("hgx-h100", 4, 1);
  check_channels(eight.nvls, 8, 40, 60);  // between: the top of the list
  const TunerChoice nvls = choice(CollectiveOp::all_reduce, eight, TunerAlgorithm::nvls, TunerProtocol::simple);
  CHECK(nvls.latency_us == doctest::Approx(25));
  // A bus bandwidth of 8 x 40 x 0.85 x 7/8 x 2 = 476 GB/s; measured on such machines: 480.
  CHECK(nvls.bandwidth_GBps == doctest::Approx(476 * 8.0 / 14));
  CHECK(best(CollectiveOp::all_reduce, 1_GiB, eight) == "NVLS Simple");
  CHECK(best(CollectiveOp::all_reduce, 1_GiB, four) == "Ring Simple");
  CHECK(best(CollectiveOp::all_reduce, 8_B, eight) == "Ring LL");
}

TEST_CASE("channels of known machines are those that their links and NICs hold") {
  check_channels(machine_of("dgx-1v", 8, 1).ring, 6, 20, 20);
  check_channels(machine_of("dgx-1p", 8, 1).ring, 4, 18, 18);
  check_channels(machine_of("dgx-a100", 8, 1).ring, 12, 20, 20);
  check_channels(machine_of("hgx-h100", 8, 1).ring, 12, 30, 30);            // six of 60, doubled
  check_channels(machine_of("hgx-h100", 8, 10, 400_Gbps).ring, 8, 48, 48);  // 7 x 48 fit into NVLink's 370.8
  check_channels(machine_of("hgx-h100", 1, 10, 400_Gbps).ring, 2, 24, 24);  // the one NIC next to the GPU
  check_channels(machine_of("gh200", 1, 2, 200_Gbps).ring, 1, 24, 24);      // that of its own module
  check_channels(machine_of("polaris", 4, 2, 200_Gbps).ring, 2, 24, 24);    // both hang on CPUs of its GPUs
  check_channels(machine_of("dgx-a100", 8, 2, 200_Gbps).ring, 8, 24, 24);
  CHECK(machine_of("dgx-a100", 8, 2, 200_Gbps).amd);
  CHECK_FALSE(machine_of("abci-a", 8, 2, 200_Gbps).amd);
  CHECK_FALSE(machine_of("polaris", 4, 2, 200_Gbps).ll128);  // the NICs hang on CPUs
  // Without peer access both hops of a pair cross its one uplink: 12 GB/s by two.
  check_channels(machine_of("rtx2080ti-pcie", 2, 1).ring, 1, 6, 6);
}

TEST_CASE("rings cross NICs if NVLink is too narrow for those that do not") {
  // 18 NVLinks of 40.1 GB/s: 721.8. 8 rings of 96 GB/s that leave by the NIC by which they enter take 768 of every
  // GPU's NVLink, those that leave by another NIC 7 x 96 = 672. Of Hopper's 370.8 8 x 48 take 384, and 7 x 48 336.
  const auto machine = [](const char* preset, int gpus, int nodes, Bandwidth nic, int cross_nic = 2) {
    return tuner_machine(node_preset(preset), gpus, nodes, nic, Release::v2_29_7, {{}, {}, cross_nic});
  };
  CHECK(machine("hgx-b300", 8, 2, 800_Gbps).crosses_nics);
  check_channels(machine("hgx-b300", 8, 2, 800_Gbps).ring, 8, 96, 96);
  CHECK_FALSE(machine("hgx-b300", 8, 2, 800_Gbps, 0).crosses_nics);
  CHECK(machine("hgx-b300", 8, 2, 800_Gbps, 0).cross_nic_decides);
  check_channels(machine("hgx-b300", 8, 2, 800_Gbps, 0).ring, 16, 45.1, 45.1);  // two by each NIC take 721.6
  CHECK_FALSE(machine("hgx-b300", 8, 2, 400_Gbps, 0).cross_nic_decides);        // 8 x 48 fit
  CHECK_FALSE(machine("hgx-b300", 8, 1, 800_Gbps, 0).cross_nic_decides);        // there are no NICs in it
  CHECK(machine("hgx-h100", 8, 2, 400_Gbps).crosses_nics);
  check_channels(machine("hgx-h100", 8, 2, 400_Gbps, 0).ring, 8, 45, 45);
  // The search's speeds are those of the release.
  CHECK(tuner_machine(node_preset("hgx-b300"), 8, 2, 800_Gbps, Release::v2_24).ring.inside == 48);
}

TEST_CASE("pairs of GPUs on NVLink that only CPUs join make a ring over PCIe") {
  // Azure NC96ads A100 v4: two pairs. A pair has NVLink, three and four have to cross the CPUs.
  CHECK(machine_of("azure-ncv4", 2, 1).nvlink);
  for (const int gpus : {3, 4}) {
    CAPTURE(gpus);
    const TunerMachine machine = machine_of("azure-ncv4", gpus, 1);
    CHECK_FALSE(machine.nvlink);
    CHECK_FALSE(machine.ll128);
    CHECK(machine.ring.count * machine.ring.inside <= 24);  // PCIe gen4 x16
  }
  CHECK(machine_of("dgx-1v", 8, 1).nvlink);  // through others
}

TEST_CASE("machines that the formula cannot take say what they lack") {
  try {
    machine_of("mi300x", 8, 1);
    FAIL("an MI300X has no NCCL");
  } catch (const InputError& error) {
    CHECK(error.message() == "expected NVIDIA GPUs for NCCL, found AMD GPUs in mi300x");
    CHECK(error.hint() == R"(write "library": "rccl")");
  }
  CHECK_THROWS_WITH_AS(machine_of("abci-v", 5, 1), doctest::Contains("at least 5 GPUs, found 4"), InputError);
  CHECK_THROWS_WITH_AS(machine_of("rtx4090-pcie", 8, 2, 100_Gbps), doctest::Contains("NIC that can be cabled"),
                       InputError);
  CHECK(tuner_choices(CollectiveOp::all_to_all, machine_of("abci-v", 4, 1), Release::v2_30_7).empty());
}

}  // namespace nccl_tuner_test
