// What NCCL does with a collective: held against its rules, and against the sizes at which measured curves change
// course.
#include "topologies/nccl/nccl_library.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nccl/nccl_costs.hpp"

namespace nccl_library_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::nccl;

namespace {

TunerMachine machine_of(const char* preset, int gpus, int nodes = 1, Release release = Release::v2_30_7) {
  return tuner_machine(*cluster_of(preset).parts.front().machine, gpus, nodes, 200_Gbps, release);
}

std::string name_of(const LibraryPlan& plan) {
  return std::string(to_string(plan.algorithm)) + ' ' + std::string(to_string(plan.protocol));
}

/// "LL, Simple 2": from LL to Simple at 2 MiB; every power of two from 64 KiB to 512 MiB is looked at.
std::string changes(const TunerMachine& machine, CollectiveOp op, const LibrarySettings& settings = {}) {
  std::string text, last;
  for (std::int64_t kib = 64; kib <= 512 * 1024; kib *= 2) {
    const LibraryPlan plan = library_plan(op, Bytes{kib * 1024}, machine, settings).value();
    const std::string now = plan.algorithm == TunerAlgorithm::ring ? std::string(to_string(plan.protocol))
                                                                   : std::string(to_string(plan.algorithm));
    if (now == last) continue;
    text += last.empty() ? now : ", " + now + ' ' + std::to_string(kib / 1024);
    last = now;
  }
  return text;
}

}  // namespace

TEST_CASE("NCCL changes protocol at the sizes where 27 measured curves have their steps") {
  // Read off the tables aic-* of validate/measured/tables (NCCL 2.27.3 and 2.29.2): where time jumps, or its slope
  // changes. AG, RS: all_gather and reduce_scatter alike. MiB.
  struct Row {
    const char* preset;
    int gpus;
    const char *gather, *reduce;
  };
  for (const Row& row : std::vector<Row>{{"dgx-a100", 2, "LL, Simple 2", "LL, Simple 1"},
                                         {"dgx-a100", 4, "LL, Simple 2", "LL, LL128 2, Simple 8"},
                                         {"dgx-a100", 8, "LL, LL128 4, Simple 16", "LL, LL128 4, Simple 32"},
                                         {"hgx-h100", 2, "LL, Simple 4", "LL, Simple 2"},
                                         {"hgx-h100", 4, "LL, Simple 4", "LL, LL128 4, Simple 16"},
                                         {"hgx-h100", 8, "LL, LL128 8, Simple 32", "LL, NVLS 2"},
                                         {"hgx-b200", 2, "LL, Simple 8", "LL, Simple 4"},
                                         {"hgx-b200", 4, "LL, Simple 8", "LL, Simple 8"},
                                         {"hgx-b200", 8, "LL, Simple 16", "LL, NVLS 4"}}) {
    CAPTURE(row.preset);
    CAPTURE(row.gpus);
    const TunerMachine machine = machine_of(row.preset, row.gpus);
    CHECK(changes(machine, CollectiveOp::all_gather) == row.gather);
    CHECK(changes(machine, CollectiveOp::reduce_scatter) == row.gather);
    CHECK(changes(machine, CollectiveOp::all_reduce) == row.reduce);
  }
  // Integers are not added up by NVSwitches: a ring.
  CHECK(changes(machine_of("hgx-h100", 8), CollectiveOp::all_reduce, {.nvls = false}) == "LL, LL128 4, Simple 64");
}

TEST_CASE(
    "over PCIe NCCL changes protocol where twelve measured curves do, because two slow rings have more than one") {
  // Read off the tables aic-l40s-* and aic-rtxpro6000-* of validate/measured/tables, where time jumps: between 256 and
  // 512 KiB on L40S, between 512 KiB and 1 MiB on RTX PRO 6000. Of gen4's 24 GB/s one ring of NCCL's list has 20, two
  // of 12 have all; of gen5's 48 one has 45, two of 24 all. With 20, L40S would change at 256 KiB; with 40, as over an
  // Intel CPU, RTX PRO 6000 at 512 KiB.
  struct Row {
    const char* preset;
    int gpus;
    std::int64_t last_ll;  // KiB
    double inside;         // GB/s of each of two rings
  };
  for (const Row& row :
       std::vector<Row>{{"l40s-pcie", 2, 256, 12}, {"rtxpro6000-pcie", 2, 512, 24}, {"rtxpro6000-pcie", 4, 512, 24}}) {
    CAPTURE(row.preset);
    CAPTURE(row.gpus);
    const TunerMachine machine = machine_of(row.preset, row.gpus);
    CHECK(machine.ring.count == 2);
    CHECK(machine.ring.inside == row.inside);
    for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::reduce_scatter, CollectiveOp::all_reduce}) {
      CAPTURE(to_string(op));
      CHECK(name_of(library_plan(op, Bytes{row.last_ll * 1024}, machine, {}).value()) == "Ring LL");
      CHECK(name_of(library_plan(op, Bytes{row.last_ll * 2048}, machine, {}).value()) == "Ring Simple");
    }
  }
}

TEST_CASE("GPUs that only CPUs join write into each other's memory in pairs on AMD, else through host memory") {
  const auto level = [](const char* preset, int gpus, Release release = Release::v2_30_7) {
    return p2p_level(*cluster_of(preset).parts.front().machine, gpus, release);
  };
  CHECK(level("l40s-pcie", 2) == PathType::sys);
  CHECK(level("l40s-pcie", 4) == PathType::pxb);
  CHECK(level("a100-pcie", 2) == PathType::pxb);  // Intel
  CHECK(level("l40s-pcie", 4, Release::v2_8_3) == PathType::sys);
  CHECK_FALSE(machine_of("rtxpro6000-pcie", 2).through_host);
  CHECK(machine_of("rtxpro6000-pcie", 4).through_host);
  CHECK_FALSE(machine_of("a100-pcie", 4).through_host);  // one switch
  CHECK(machine_of("a100-pcie", 8).through_host);        // two
  CHECK_FALSE(machine_of("hgx-h100", 8).through_host);
}

TEST_CASE("over PCIe kernels cost what they do over PCIe, and more through host memory") {
  const auto costs = [](int gpus, CollectiveOp op, TunerProtocol protocol) {
    const LibraryPlan plan{TunerAlgorithm::ring, protocol, 2, 0};
    return library_costs(plan, machine_of("rtxpro6000-pcie", gpus), {.op = op, .bytes = 1_GiB, .chunk = 1_GiB});
  };
  const LibraryCosts pair = costs(2, CollectiveOp::all_reduce, TunerProtocol::simple);
  const LibraryCosts four = costs(4, CollectiveOp::all_reduce, TunerProtocol::simple);
  CHECK(pair.launch == Picoseconds{4'700'000});
  CHECK(pair.reduce == 100_GBps);
  CHECK(pair.pcie == 1);
  CHECK(four.pcie == doctest::Approx(27.0 / 48));                          // of two rings of 24 GB/s
  CHECK(costs(4, CollectiveOp::all_reduce, TunerProtocol::ll).pcie == 1);  // half of its bytes are flags
  CHECK(four.protocol.pcie - pair.protocol.pcie == Picoseconds{500'000});
}

TEST_CASE("through host memory Simple has 0.7 of PCIe, because each link carries as much up as down") {
  const auto pcie = [](const char* preset, int gpus, TunerProtocol protocol) {
    const LibraryPlan plan{TunerAlgorithm::ring, protocol, 1, 0};
    return library_costs(plan, machine_of(preset, gpus), {.op = CollectiveOp::all_reduce, .bytes = 1_GiB}).pcie;
  };
  CHECK(pcie("rtx2080ti-pcie", 2, TunerProtocol::simple) == 0.7);
  CHECK(pcie("rtx4090-pcie", 8, TunerProtocol::simple) == 0.7);
  CHECK(pcie("rtx4090-pcie", 8, TunerProtocol::ll) == 1);
  CHECK(pcie("l40s-pcie", 2, TunerProtocol::simple) == 1);  // peer access
}

TEST_CASE("what flows from or to one rank takes PCIe one way, and so all of it") {
  const auto pcie = [](CollectiveOp op) {
    const LibraryPlan plan{TunerAlgorithm::ring, TunerProtocol::simple, 1, 0, 1, 64};
    return library_costs(plan, machine_of("rtx4090-pcie", 8), {.op = op, .bytes = 1_GiB}).pcie;
  };
  for (const CollectiveOp op :
       {CollectiveOp::broadcast, CollectiveOp::reduce, CollectiveOp::gather, CollectiveOp::scatter}) {
    CAPTURE(to_string(op));
    CHECK(pcie(op) == 1);
  }
  for (const CollectiveOp op : {CollectiveOp::all_gather, CollectiveOp::all_to_all}) {
    CAPTURE(to_string(op));
    CHECK(pcie(op) == 0.7);
  }
}

TEST_CASE("a proxy posts what goes to other nodes, one message after another, by the fabric") {
  const auto costs = [](const char* preset, int gpus, Bandwidth nic, CollectiveOp op, LibraryPlan plan,
                        Bytes chunk = 128_KiB) {
    const TunerMachine machine = tuner_machine(node_preset(preset), gpus, 2, nic, Release::v2_30_7);
    return library_costs(plan, machine, {.op = op, .bytes = 1_GiB, .chunk = 1_MiB, .net_chunk = chunk});
  };
  const auto us = [](double value) { return Picoseconds{std::llround(value * 1e6)}; };
  const LibraryPlan one{.algorithm = TunerAlgorithm::ring, .protocol = TunerProtocol::simple};
  const auto with = [&](TunerProtocol protocol, int channels, int blocks) {
    return LibraryPlan{.algorithm = TunerAlgorithm::ring, .protocol = protocol, .channels = channels, .blocks = blocks};
  };
  const auto to_all = CollectiveOp::all_to_all;
  CHECK(costs("hgx-h100", 8, 400_Gbps, to_all, one).protocol.post == us(3.5));
  CHECK(costs("dgx-a100", 8, 200_Gbps, to_all, one).protocol.post == us(5));
  CHECK(costs("gh200", 4, 200_Gbps, to_all, one).protocol.post == us(8));
  // A message of NCCL's over four adapters is four here: a quarter of a post each.
  CHECK(costs("aws-p5", 8, 100_Gbps, to_all, with(TunerProtocol::simple, 4, 1)).protocol.post == us(1.45));
  CHECK(costs("hgx-h100", 8, 400_Gbps, CollectiveOp::all_reduce, one).protocol.post == us(0));  // it is in the step
  CHECK(costs("aws-p5", 8, 100_Gbps, CollectiveOp::all_gather, with(TunerProtocol::simple, 32, 16)).protocol.post ==
        us(2.9));
  CHECK(machine_of("hgx-h100", 8).nodes == 1);
  CHECK(library_costs(one, machine_of("hgx-h100", 8), {.op = to_all, .bytes = 1_GiB}).protocol.post == us(0));
  // Chunks of 128 KiB in 3.5 us each are 37.4 GB/s, less than the 48 of a NIC's PCIe; one peer has the thread for
  // itself.
  CHECK(costs("hgx-h100", 8, 400_Gbps, to_all, one).network == doctest::Approx(131.072 / 3.5 / 48));
  CHECK(costs("hgx-h100", 8, 400_Gbps, to_all, one, 512_KiB).network == 1);
  CHECK(costs("hgx-h100", 8, 400_Gbps, CollectiveOp::send_recv, one).network == 1);
  CHECK(costs("dgx-a100", 8, 200_Gbps, to_all, one).network == 1);  // 26.2 of 24 GB/s
  CHECK(costs("gh200", 4, 200_Gbps, to_all, one).network == doctest::Approx(131.072 / 8 / 24));
  // EFA with all adapters busy.
  CHECK(costs("aws-p5", 8, 100_Gbps, to_all, one, 512_KiB).network == 0.935);
  CHECK(costs("aws-p5", 8, 100_Gbps, to_all, with(TunerProtocol::ll, 1, 1), 512_KiB).network == 1);
}

TEST_CASE("a channel that sends over PCIe copies as fast as over NVLink, but takes a step every 128 KiB") {
  const auto pcie = [](int gpus, int channels, const CostConstants& constants = fitted_costs()) {
    const LibraryPlan plan{TunerAlgorithm::ring, TunerProtocol::simple, channels, 0, channels};
    return library_costs(plan, machine_of("rtxpro6000-pcie", gpus), {.op = CollectiveOp::all_to_all, .bytes = 1_GiB},
                         constants)
        .pcie;
  };
  // 512 KiB at 22.8 GB/s take 22.995 us, a step of 5.8 us among them. So 128 KiB are copied in 4.299 us, and 5.4 us of
  // a step over PCIe follow: 13.51 GB/s. All of PCIe: two rings of 24 GB/s.
  CHECK(pcie(2, 1) == doctest::Approx(13.51 / 48).epsilon(0.001));
  CHECK(pcie(2, 2) == doctest::Approx(2 * 13.51 / 48).epsilon(0.001));
  CHECK(pcie(4, 2) == doctest::Approx(27.0 / 48));  // six channels, through host memory
  CHECK(pcie(2, 8) == 1);
  CostConstants instant =
      fitted_costs();  // steps longer than a chunk: copying takes no time, and nothing is divided by 0
  instant.of[blackwell].a_block = 1e12;
  instant.pcie[2] = {0, 0};
  instant.pcie_sends_simple = 0;
  CHECK(pcie(2, 1, instant) == 1);
}

TEST_CASE("trees over NVSwitches leave by all NICs of a GPU, at what NVLS reaches in the switches") {
  // Two H200 machines with two NICs per GPU: eight heads, sixteen NICs.
  const TunerMachine machine = machine_of("aws-p5en", 8, 2);
  CHECK(machine.ports == 2);
  LibrarySettings settings;
  settings.algorithms = {TunerAlgorithm::nvls_tree};
  const LibraryPlan plan = library_plan(CollectiveOp::all_reduce, 1_GiB, machine, settings).value();
  CHECK(plan.channels == 16);
  CHECK(library_plan(CollectiveOp::all_reduce, 1_GiB, machine_of("hgx-h100", 8, 2), settings).value().channels == 8);
  // Up and down, 0.7 each as all_reduce of one node has it; a chain of eight GPUs has seven links.
  const LibraryCosts costs =
      library_costs(plan, machine, {.op = CollectiveOp::all_reduce, .bytes = 1_GiB, .chunk = 128_KiB});
  CHECK(costs.nvlink == doctest::Approx(1.4 * 7 / 8));
}

TEST_CASE("channels go where each would have less than its threads are worth") {
  const TunerMachine machine = machine_of("dgx-a100", 8);  // 12 channels
  const auto channels = [&](Bytes bytes, const LibrarySettings& settings = {}) {
    return library_plan(CollectiveOp::all_reduce, bytes, machine, settings).value().channels;
  };
  // A ring of LL: 512 threads, 8 B each for 8 ranks: 32 KiB for each channel.
  CHECK(channels(1_KiB) == 1);
  CHECK(channels(63_KiB) == 1);
  CHECK(channels(64_KiB) == 2);
  CHECK(channels(256_KiB) == 8);
  CHECK(channels(2_MiB) == 12);
  CHECK(channels(64_KiB, {.threads = 64}) == 12);  // 4 KiB each, so 16, but there are 12
  CHECK(channels(1_GiB, {.max_channels = 3}) == 3);
  CHECK(channels(1_GiB, {.min_channels = 32}) == 32);
  CHECK(channels(1_KiB, {.min_channels = 32}) == 1);  // the bound is of those that may be used
  // Simple: 512 threads of 64 B: 32 KiB for each channel, whatever the ranks.
  CHECK(channels(64_KiB, {.protocols = {TunerProtocol::simple}}) == 2);
}

TEST_CASE("between nodes twice the channels of the search share the buffer") {
  // Two nodes of four V100 with two NICs: the search finds two rings, and ncclTopoPostset makes four blocks of them. A
  // ring of LL: 512 threads, 8 B each for 8 ranks: 32 KiB a block.
  const TunerMachine machine = machine_of("abci-v", 4, 2, Release::v2_8_3);
  const auto plan = [&](Bytes bytes, const char* algorithm, const LibrarySettings& others = {}) {
    LibrarySettings settings = others;
    settings.release = Release::v2_8_3;
    settings.algorithms = read_algorithms(algorithm);
    settings.protocols = {TunerProtocol::ll};
    return library_plan(CollectiveOp::all_reduce, bytes, machine, settings).value();
  };
  CHECK(plan(32_KiB, "Ring").blocks == 1);
  CHECK(plan(64_KiB, "Ring").blocks == 2);
  CHECK(plan(128_KiB, "Ring").blocks == 4);
  CHECK(plan(1_GiB, "Ring").blocks == 4);
  CHECK(plan(1_GiB, "Ring").channels == 2);  // the others would take the same links
  CHECK(plan(1_GiB, "Ring", {.max_channels = 3}).blocks == 3);
  // A channel of trees has both of them, which are two of NCCL's: 4 KiB a block.
  CHECK(plan(4_KiB, "Tree").blocks == 1);
  CHECK(plan(16_KiB, "Tree").blocks == 4);
  CHECK(plan(16_KiB, "Tree").channels == 2);
}

TEST_CASE(
    "where a CPU is between NIC and GPU there is no LL128, which moves the changes of protocol to those measured") {
  // abci-v100-8n4g-broadcast takes 594 us for 4 MiB and 1718 for 8; abci-v100-32n4g-all_reduce 730 for 512 KiB and 507
  // for 1 MiB: there LL ends. With LL128 it would end at 512 and at 64 KiB.
  const LibrarySettings settings{.release = Release::v2_8_3};
  const auto name = [&](CollectiveOp op, int nodes, Bytes bytes) {
    return name_of(library_plan(op, bytes, machine_of("abci-v", 4, nodes, Release::v2_8_3), settings).value());
  };
  CHECK(name(CollectiveOp::broadcast, 8, 4_MiB) == "Ring LL");
  CHECK(name(CollectiveOp::broadcast, 8, 8_MiB) == "Ring Simple");
  CHECK(name(CollectiveOp::all_reduce, 32, 512_KiB) == "Ring LL");
  CHECK(name(CollectiveOp::all_reduce, 32, 1_MiB) == "Tree Simple");
  CHECK(machine_of("dgx-a100", 8, 2).ll128);
}

TEST_CASE("trees between nodes take smaller chunks, so that several are on their way") {
  // Two DGX A100, 16 blocks, LL128: steps 1 + 1 + 0.8 = 2.8, so fewer than 22.4 chunks of more than 128 KiB, or 5.6 of
  // more than 32 KiB, are halved: 576000 -> 72000 -> 36000 -> 18000.
  const TunerMachine machine = machine_of("dgx-a100", 8, 2);
  const auto chunk = [&](TunerProtocol protocol, Bytes bytes, Release release = Release::v2_30_7) {
    const LibraryPlan plan{TunerAlgorithm::tree, protocol, 8, 0, 16};
    return tree_chunk(plan, bytes, machine, release);
  };
  CHECK(chunk(TunerProtocol::ll128, 1_MiB) == 18'000_B);   // 16 of 36000 are 1.8
  CHECK(chunk(TunerProtocol::ll128, 4_MiB) == 36'000_B);   // 7 of 36000, 3 of 72000
  CHECK(chunk(TunerProtocol::ll128, 8_MiB) == 72'000_B);   // 7
  CHECK(chunk(TunerProtocol::ll128, 1_GiB) == 576'000_B);  // 116
  CHECK(chunk(TunerProtocol::ll, 1_MiB) == 32_KiB);
  CHECK(chunk(TunerProtocol::simple, 1_MiB) == 512_KiB);
  // 2.8.3, depth 7 + 1: 64, 32, 8 chunks. 1 GiB: 128 of 512 KiB. 8 MiB: 8 of 64 KiB, not 32. 1 MiB: 2 of 32 KiB.
  CHECK(chunk(TunerProtocol::simple, 1_GiB, Release::v2_8_3) == 512_KiB);
  CHECK(chunk(TunerProtocol::simple, 8_MiB, Release::v2_8_3) == 64_KiB);
  CHECK(chunk(TunerProtocol::simple, 1_MiB, Release::v2_8_3) == 32_KiB);
}

TEST_CASE("trees between nodes move what NCCL's own corrections leave of the NICs") {
  const TunerMachine many = machine_of("abci-v", 4, 32, Release::v2_8_3);
  const auto share = [&](const TunerMachine& machine, TunerProtocol protocol, Bytes bytes) {
    return tree_share(protocol, CollectiveOp::all_reduce, bytes, machine, Release::v2_8_3);
  };
  // perChMaxTreeBws: 10 GB/s of 12 on more than two nodes of Volta, 18.5 on two. 8 MiB: 0.8 of Simple.
  CHECK(share(many, TunerProtocol::simple, 8_MiB) == doctest::Approx(10.0 / 12 * 0.8));
  CHECK(share(machine_of("abci-v", 4, 2, Release::v2_8_3), TunerProtocol::simple, 8_MiB) == doctest::Approx(0.8));
  CHECK(share(many, TunerProtocol::simple, 1_GiB) == doctest::Approx(10.0 / 12));
  // 4 MiB: 0.7. A machine does not change at a power of two: half-way it is 0.75, 16 bytes below 8 MiB all but 0.8.
  CHECK(share(many, TunerProtocol::simple, 6_MiB) == doctest::Approx(10.0 / 12 * 0.75));
  CHECK(share(many, TunerProtocol::simple, 8_MiB - 16_B) == doctest::Approx(10.0 / 12 * 0.8).epsilon(1e-5));
}

TEST_CASE("steps between nodes grow with the chunk, and more over Slingshot") {
  const TunerMachine infiniband = machine_of("abci-v", 4, 2), slingshot = machine_of("polaris", 4, 2);
  const auto step = [&](const TunerMachine& machine, TunerProtocol protocol, CollectiveOp op, Bytes chunk) {
    const LibraryPlan plan{TunerAlgorithm::ring, protocol, 1, 0};
    return library_costs(plan, machine, {.op = op, .bytes = 1_GiB, .chunk = chunk}).protocol;
  };
  constexpr auto reduce = CollectiveOp::all_reduce;
  CHECK(step(infiniband, TunerProtocol::ll, reduce, 8_KiB).network == Picoseconds{6'050'000});  // 0.3 + 23/4
  CHECK(step(infiniband, TunerProtocol::ll, reduce, 32_KiB).network == Picoseconds{23'300'000});
  CHECK(step(infiniband, TunerProtocol::ll, reduce, 1_MiB).network == Picoseconds{23'300'000});  // the next chunk
  CHECK(step(infiniband, TunerProtocol::ll, reduce, 32_KiB).nvlink == Picoseconds{9'600'000});   // four turns of 2.4
  CHECK(step(machine_of("abci-v", 4), TunerProtocol::ll, reduce, 32_KiB).nvlink == Picoseconds{2'400'000});
  CHECK(step(infiniband, TunerProtocol::ll, CollectiveOp::broadcast, 32_KiB).network == Picoseconds{6'050'000});
  CHECK(step(infiniband, TunerProtocol::simple, reduce, 64_KiB).network == Picoseconds{23'300'000});  // 11.3 + 24/2
  CHECK(step(slingshot, TunerProtocol::simple, reduce, 64_KiB).network == Picoseconds{51'300'000});   // + 28
  CHECK(step(slingshot, TunerProtocol::ll, reduce, 32_KiB).network == Picoseconds{23'300'000});
}

TEST_CASE("where each node has one GPU, PAT gathers what is neither small nor large, since 2.23") {
  using enum CollectiveOp;
  const auto name = [](CollectiveOp op, Bytes bytes, int gpus, int nodes, Release release = Release::v2_30_7) {
    return name_of(library_plan(op, bytes, machine_of("hgx-h100", gpus, nodes, release), {.release = release}).value());
  };
  // 8 nodes: LL takes 6.6 + 7 * 5 us at half of the NIC's rate, PAT 8 + 3 * 14/3.5 + 8 * 2.8 at three quarters, Simple
  // round the ring 8.4 + 7 * 14 at all of it.
  CHECK(name(all_gather, 4_KiB, 1, 8) == "Ring LL");
  CHECK(name(all_gather, 1_MiB, 1, 8) == "PAT Simple");
  CHECK(name(reduce_scatter, 1_MiB, 1, 8) == "PAT Simple");
  CHECK(name(all_gather, 64_MiB, 1, 8) != "PAT Simple");
  CHECK(name(all_gather, 1_MiB, 2, 8) != "PAT Simple");
  CHECK(name(broadcast, 1_MiB, 1, 8) != "PAT Simple");
  CHECK(name(all_gather, 1_MiB, 1, 8, Release::v2_21) != "PAT Simple");
  CHECK(name(all_gather, 1_MiB, 1, 8, Release::v2_23) == "PAT Simple");
}

TEST_CASE("what users set leaves the rest to choose from, or nothing") {
  const TunerMachine machine = machine_of("hgx-h100", 8);
  const auto plan = [&](const LibrarySettings& settings) {
    const auto found = library_plan(CollectiveOp::all_reduce, 1_GiB, machine, settings);
    return found ? name_of(*found) : "none";
  };
  CHECK(plan({}) == "NVLS Simple");
  CHECK(plan({.nvls = false}) == "Ring Simple");
  CHECK(plan({.algorithms = {TunerAlgorithm::tree}}) == "Tree Simple");
  CHECK(plan({.protocols = {TunerProtocol::ll128}}) == "Ring LL128");
  CHECK(plan({.algorithms = {TunerAlgorithm::nvls}, .protocols = {TunerProtocol::ll}}) == "none");
  CHECK_FALSE(library_plan(CollectiveOp::all_to_all, 1_GiB, machine, {}).has_value());
  // Measured all_gather and reduce_scatter of 8 H100 and 8 B200 are rings.
  CHECK(library_plan(CollectiveOp::all_gather, 1_GiB, machine, {}).value().algorithm == TunerAlgorithm::ring);
}

TEST_CASE("NCCL_ALGO and NCCL_PROTO are read as NCCL reads them") {
  using enum TunerAlgorithm;
  using enum TunerProtocol;
  CHECK(read_algorithms("Ring") == std::vector{ring});
  CHECK(read_algorithms("ring,NVLSTREE") == std::vector{ring, nvls_tree});
  CHECK(read_algorithms("^Tree,CollNetDirect") == std::vector{ring, nvls, nvls_tree, pat});
  CHECK(read_algorithms("PAT") == std::vector{pat});
  CHECK(read_protocols("^LL128") == std::vector{ll, simple});
  CHECK(test::complaint([] { read_algorithms("Rign"); }).find("expected names of Tree, Ring") != std::string::npos);
  CHECK(test::complaint([] { read_algorithms("CollNet"); }).find("which is not modeled") != std::string::npos);
  CHECK(test::complaint([] { read_algorithms(""); }).find("expected names") != std::string::npos);
  CHECK(test::complaint([] { read_protocols("^LL,LL128,Simple"); }).find("all excluded") != std::string::npos);
}

// The examples are those of NCCL's comment at parseList() (src/graph/tuning.cc), without collnetdirect.
TEST_CASE("from 2.24 on NCCL_ALGO and NCCL_PROTO may have a list for each function, and a first one for all") {
  using enum TunerAlgorithm;
  using enum TunerProtocol;
  const auto algorithms = read_algorithms("ring,nvls;allreduce:tree,nvls;Broadcast:Ring");
  CHECK(algorithms.at(CollectiveOp::all_reduce) == std::vector{tree, nvls});
  CHECK(algorithms.at(CollectiveOp::broadcast) == std::vector{ring});
  CHECK(algorithms.at(CollectiveOp::all_gather) == std::vector{ring, nvls});
  const auto protocols = read_protocols("^LL128;allreduce:LL128");
  CHECK(protocols.at(CollectiveOp::all_reduce) == std::vector{ll128});
  CHECK(protocols.at(CollectiveOp::send_recv) == std::vector{ll, simple});
  const auto one = read_algorithms("allreduce:NVLS");
  CHECK(one.restricts(CollectiveOp::all_reduce));
  CHECK(!one.restricts(CollectiveOp::all_gather));
  CHECK(one.at(CollectiveOp::all_gather).empty());  // any
  const auto complains = [](const std::string& text, const char* of, int minor = 30) {
    return test::complaint([&] { read_algorithms(text, minor); }).find(of) != std::string::npos;
  };
  CHECK(complains("allreduce:NVLS", "accepts lists for functions only in NCCL 2.24 and later", 23));
  CHECK_NOTHROW(read_algorithms("allreduce:NVLS", 24));
  CHECK(complains("allreduce:Tree;Ring", "expected FUNCTION:NAMES after the first semicolon, found \"Ring\""));
  CHECK(complains("alltoall:Ring", "expected one of NCCL's functions before the colon, found \"alltoall\""));
  CHECK(complains("allreduce:Rign", "expected names of Tree, Ring"));
  CHECK(read_algorithms("Ring;").at(CollectiveOp::all_reduce) == std::vector{ring});
  CHECK(read_algorithms(";allreduce:Ring").at(CollectiveOp::all_reduce) == std::vector{ring});
}

TEST_CASE("sends take as many channels as leave some for every peer, and more for what is large") {
  // 12 rings of A100, twice as many channels, so 32; 2 * 12 NVLinks allow a peer all of them.
  const auto sends = [](const char* preset, int gpus, Bytes a_peer, const LibrarySettings& settings = {}) {
    return send_plan(machine_of(preset, gpus), a_peer, settings);
  };
  CHECK(sends("dgx-a100", 2, 128_MiB).channels == 16);
  CHECK(sends("dgx-a100", 4, 128_MiB).channels == 8);  // of 16 MiB each
  CHECK(sends("dgx-a100", 4, 129_MiB).channels == 16);
  CHECK(sends("dgx-a100", 4, 1_GiB).channels == 32);
  CHECK(sends("dgx-a100", 8, 64_MiB).channels == 4);
  CHECK(sends("dgx-a100", 8, 1_GiB, {.max_channels = 8}).channels == 8);
  CHECK(sends("hgx-b200", 2, 128_MiB).channels == 16);
  CHECK(sends("dgx-1v", 8, 1_GiB).channels == 2);  // some pairs have no NVLink
  CHECK(sends("l40s-pcie", 2, 1_GiB).channels == 2);
  CHECK(sends("dgx-a100", 8, 1_KiB, {.protocols = {TunerProtocol::simple}}).protocol == TunerProtocol::simple);
}

TEST_CASE("sends use LL up to 16 KiB per channel, up to 2.27 counting all channels that a peer may have") {
  // The measured all-to-all of 2 A100 by 2.27.3 leaves LL above 1 MiB, 512 KiB for a peer; that of 2 H100 by 2.29.2
  // above 32 KiB.
  const auto sends = [](const char* preset, int gpus, Bytes a_peer, int minor) {
    return send_plan(machine_of(preset, gpus), a_peer, {.minor = minor});
  };
  CHECK(sends("dgx-a100", 2, 512_KiB, 27).protocol == TunerProtocol::ll);
  CHECK(sends("dgx-a100", 2, 513_KiB, 27).protocol == TunerProtocol::simple);
  CHECK(sends("hgx-h100", 2, 16_KiB, 29).protocol == TunerProtocol::ll);
  CHECK(sends("hgx-h100", 2, 17_KiB, 29).protocol == TunerProtocol::simple);
  CHECK(sends("hgx-h100", 2, 17_KiB, 21).protocol == TunerProtocol::simple);
  // Over PCIe a channel is taken for every 16 KiB, and there are two for a pair.
  CHECK(sends("rtxpro6000-pcie", 2, 32_KiB, 29).protocol == TunerProtocol::ll);
  CHECK(sends("rtxpro6000-pcie", 2, 33_KiB, 29).protocol == TunerProtocol::simple);
  CHECK(sends("l40s-pcie", 2, 32_KiB, 27).protocol == TunerProtocol::ll);
  CHECK(sends("l40s-pcie", 2, 33_KiB, 27).protocol == TunerProtocol::simple);
  CHECK(sends("dgx-a100", 8, 8_KiB, 27).channels == 1);  // pieces of 8 KiB or more
  CHECK(sends("dgx-a100", 8, 9_KiB, 27).channels == 2);
}

TEST_CASE("how many channels a peer on another node has follows the release") {
  // 32 GH200, four in each node, with a NIC each: 4 rings of 24 GB/s, so 8 channels of sends (NVIDIA/nccl issue
  // 1272: 24.2 GB/s with 2.19.4 and, on 16 GPUs, with 2.20.5; 18.3 on 32 with 2.20.5; 24.2 with
  // NCCL_NCHANNELS_PER_NET_PEER=4).
  const auto channels = [](int minor, int nodes, const LibrarySettings& others = {}) {
    LibrarySettings settings = others;
    settings.minor = minor;
    return send_plan(machine_of("gh200", 4, nodes), 1_GiB, settings).channels;
  };
  CHECK(channels(11, 2) == 1);
  CHECK(channels(12, 2) == 2);  // 2 x 8 ranks are no more than 4 x 8
  CHECK(channels(17, 8) == 1);  // 2 x 32 are
  CHECK(channels(18, 8) == 2);  // on several nodes no longer
  CHECK(channels(19, 8) == 2);
  CHECK(channels(20, 4) == 2);
  CHECK(channels(20, 8) == 1);
  CHECK(channels(28, 8) == 1);
  CHECK(channels(29, 8) == 2);   // 24 GB/s at 14 each; 32 ranks are 4 rounds of 8
  CHECK(channels(29, 32) == 1);  // 16 rounds of 2 would need 32 channels
  CHECK(channels(20, 8, {.channels_per_net_peer = 4}) == 4);
  CHECK(channels(29, 32, {.channels_per_net_peer = 4}) == 4);
  CHECK(channels(11, 2, {.channels_per_net_peer = 4}) == 1);  // not known yet
  CHECK(channels(20, 8, {.min_p2p_channels = 16}) == 2);      // 2 x 32 are no more than 4 x 16
  CHECK(channels(19, 8, {.max_p2p_channels = 1}) == 1);
  // Small messages take one of them, so that all peers have theirs, but with 2.18 and 2.19.
  const auto of_128_KiB = [](int minor) {
    return send_plan(machine_of("gh200", 4, 8), 128_KiB, {.minor = minor}).channels;
  };
  CHECK(of_128_KiB(19) == 2);
  CHECK(of_128_KiB(29) == 1);
  // All four NICs of a GPU are used.
  CHECK(send_plan(machine_of("gh200-one", 1, 8), 1_GiB, {.minor = 20}).channels == 4);
  // On one node up to 2.19 by the same rule: 32 of 32 channels for a peer, halved until 8 x 16 are no more than 4 x 32.
  CHECK(send_plan(machine_of("dgx-a100", 8), 1_GiB, {.minor = 19}).channels == 16);
  CHECK(send_plan(machine_of("dgx-a100", 8), 1_GiB, {.minor = 20}).channels == 32);
}

TEST_CASE("between nodes chunks of sends are whole steps before 2.14, and LL ends where users say") {
  const auto plan = [](int minor, Bytes a_peer, const LibrarySettings& others = {}) {
    LibrarySettings settings = others;
    settings.minor = minor;
    return send_plan(machine_of("gh200", 4, 2), a_peer, settings);
  };
  CHECK(plan(13, 1_GiB).a_chunk == 512_KiB);
  CHECK(plan(14, 1_GiB).a_chunk == 128_KiB);
  CHECK(plan(14, 1_GiB, {.net_chunk = 262'144}).a_chunk == 256_KiB);
  CHECK(plan(13, 1_GiB, {.net_chunk = 262'144}).a_chunk == 512_KiB);  // not known yet
  const auto of_plugin = [](const char* preset) {
    return net_chunk_of_aws_ofi_nccl(tuner_machine(node_preset(preset), 1, 2, 100_Gbps, Release::v2_30_7));
  };
  CHECK(of_plugin("aws-p5") == 524'288);
  CHECK(of_plugin("aws-p3dn") == 131'072);
  CHECK(of_plugin("polaris") == 131'072);
  CHECK(plan(29, 64_KiB).protocol == TunerProtocol::simple);
  CHECK(plan(29, 64_KiB, {.ll_threshold = 65'536}).protocol == TunerProtocol::ll);
  CHECK(plan(29, 1_KiB, {.ll_threshold = 0}).protocol == TunerProtocol::simple);
}

TEST_CASE("few blocks limit sends between nodes, enough of them do not") {
  // A block of Hopper copies 512 KiB to NVLink in 524288 B / 20.4 GB/s = 25.7 us, of which 1.1 us are the handing over;
  // a quarter of the rest and 1.1 us for 128 KiB are 18.1 GB/s.
  const TunerMachine machine = machine_of("gh200", 4, 8);
  const auto channel = [&](CollectiveOp op, int channels, Release release, double running) {
    const LibraryPlan plan{.algorithm = TunerAlgorithm::ring,
                           .protocol = TunerProtocol::simple,
                           .channels = channels,
                           .blocks = channels,
                           .running = running};
    return library_costs(plan, machine,
                         {.op = op,
                          .bytes = 1_GiB,
                          .chunk = 1_GiB,
                          .release = release,
                          .net_chunk = release < Release::v2_14 ? 512_KiB : 128_KiB})
        .channel;
  };
  const auto one = static_cast<double>(channel(CollectiveOp::send_recv, 1, Release::v2_20, 1).bytes_per_second);
  const double handing_us = fitted_costs().of[hopper].sends.fixed;
  const double copy_us = 524'288 / (1e3 * fitted_costs().of[hopper].a_block) - handing_us;
  CHECK(one / 1e9 == doctest::Approx(131'072 / 1e3 / (copy_us / 4 + handing_us)));
  CHECK(one / 1e9 == doctest::Approx(18.3).epsilon(0.02));  // measured: NVIDIA/nccl issue 1272
  CHECK(channel(CollectiveOp::send_recv, 2, Release::v2_20, 2).bytes_per_second == 0);  // 36 of 24 GB/s
  CHECK(static_cast<double>(channel(CollectiveOp::send_recv, 1, Release::v2_12, 1).bytes_per_second) / 1e9 ==
        doctest::Approx(fitted_costs().of[hopper].a_block));                             // whole steps
  CHECK(channel(CollectiveOp::all_to_all, 1, Release::v2_20, 8).bytes_per_second == 0);  // 28 peers, 8 blocks
}

TEST_CASE("GPUDirect over a chip-to-chip link came with 2.26, and is on by default from 2.27 on") {
  CHECK(gdr_level(24, {}) == PathType::pxb);
  CHECK(gdr_level(24, true) == PathType::pxb);
  CHECK(gdr_level(26, {}) == PathType::pxb);
  CHECK(gdr_level(26, true) == PathType::p2c);
  CHECK(gdr_level(27, {}) == PathType::p2c);
  CHECK(gdr_level(30, false) == PathType::pxb);
  // What users say of the level: up to 2.28 such a NIC counts as nearer than PIX.
  CHECK(said_gdr_level(PathType::pxb, 25, {}, true) == PathType::pxb);
  CHECK(said_gdr_level(PathType::pxb, 26, true, true) == PathType::p2c);
  CHECK(said_gdr_level(PathType::pix, 28, {}, true) == PathType::p2c);
  CHECK(said_gdr_level(PathType::pix, 28, {}, false) == PathType::pix);  // a machine without such links
  CHECK(said_gdr_level(PathType::pxb, 28, false, true) == PathType::pxb);
  CHECK(said_gdr_level(PathType::pxb, 29, {}, true) == PathType::pxb);
  CHECK(said_gdr_level(PathType::loc, 27, {}, true) == PathType::loc);
  CHECK(said_gdr_level(PathType::sys, 27, {}, true) == PathType::sys);
}

TEST_CASE("between nodes NCCL launches two blocks for each channel, four where channels are fast") {
  const auto blocks = [](const char* preset, int gpus, Bandwidth nic, int minor, Release release) {
    const TunerMachine machine = tuner_machine(*cluster_of(preset).parts.front().machine, gpus, 2, nic, release);
    const LibrarySettings settings{
        .release = release, .minor = minor, .algorithms = {TunerAlgorithm::ring}, .protocols = {TunerProtocol::simple}};
    return library_plan(CollectiveOp::all_reduce, 8_GiB, machine, settings).value().blocks;
  };
  CHECK(blocks("dgx-a100", 8, 200_Gbps, 22, Release::v2_21) == 16);
  CHECK(blocks("hgx-h100", 8, 400_Gbps, 22, Release::v2_21) == 16);
  CHECK(blocks("hgx-b300", 8, 800_Gbps, 29, Release::v2_29_7) == 32);  // 8 of 96 GB/s, by the search 16 of 48
  CHECK(blocks("hgx-b300", 8, 400_Gbps, 29, Release::v2_29_7) == 16);  // 8 of 48
  CHECK(blocks("hgx-b300", 1, 800_Gbps, 29, Release::v2_29_7) == 8);   // 1 of 96: 2 of 48, doubled twice
  CHECK(blocks("hgx-b300", 1, 400_Gbps, 29, Release::v2_29_7) == 4);   // 1 of 48: 2 of 24
}

TEST_CASE("between nodes a peer has the channels that its adapter needs, and parts of 128 KiB") {
  // 16 H100 with adapters of 24 GB/s: two channels of 14 GB/s, of 16 in all, so that each peer has one and, if it gets
  // more than 128 KiB by one, two.
  const TunerMachine machine = machine_of("hgx-h100", 8, 2);
  CHECK(send_plan(machine, 32_KiB, {.minor = 27}).protocol == TunerProtocol::ll);
  CHECK(send_plan(machine, 33_KiB, {.minor = 27}).protocol == TunerProtocol::simple);
  CHECK(send_plan(machine, 128_KiB, {}).channels == 1);
  CHECK(send_plan(machine, 1_GiB, {}).channels == 2);
}

TEST_CASE("what a channel sends bounds sends over NVLink, and the first chunk comes on top") {
  const auto costs = [](const char* preset, int gpus, Bytes a_peer, CollectiveOp op) {
    const TunerMachine machine = machine_of(preset, gpus);
    const SendPlan sends = send_plan(machine, a_peer, {});
    const LibraryPlan plan{TunerAlgorithm::ring, sends.protocol, sends.channels, 0, sends.channels};
    return library_costs(plan, machine, {.op = op, .bytes = a_peer, .chunk = sends.a_channel});
  };
  CostConstants own = fitted_costs();
  const KernelCosts& hopper_costs = own.of[hopper];
  // 8 of 32 channels to 128 MiB: of 18 links of 20.6 GB/s; 32 of them are more than the links.
  CHECK(costs("hgx-h100", 4, 128_MiB, CollectiveOp::send_recv).nvlink ==
        doctest::Approx(hopper_costs.nvlink[2] * 8 * hopper_costs.a_block / (18 * 20.6)));
  CHECK(costs("hgx-h100", 4, 1_GiB, CollectiveOp::send_recv).nvlink == doctest::Approx(hopper_costs.nvlink[2]));
  CHECK(costs("hgx-h100", 8, 64_MiB, CollectiveOp::all_to_all).nvlink == doctest::Approx(hopper_costs.sends_nvlink));
  // 4 channels each: 4 MiB fill chunks of 512 KiB, 1 MiB half of them.
  const auto fill = [&](Bytes a_peer) { return costs("hgx-h100", 8, a_peer, CollectiveOp::all_to_all).once; };
  CHECK(fill(4_MiB) == fill(64_MiB));
  CHECK(2 * fill(1_MiB) == fill(4_MiB));
}

TEST_CASE("thread blocks that users leave NCCL send less, each as much as it can") {
  const TunerMachine machine = machine_of("hgx-h100", 8);  // 12 channels found, which NCCL doubles
  const auto plan = [&](TunerProtocol protocol, const LibrarySettings& bounds = {}) {
    LibrarySettings settings = bounds;
    settings.algorithms = {TunerAlgorithm::ring};
    settings.protocols = {protocol};
    return library_plan(CollectiveOp::all_reduce, 1_GiB, machine, settings).value();
  };
  CHECK(plan(TunerProtocol::simple).running == 24);
  CHECK(plan(TunerProtocol::simple, {.max_channels = 1}).running == 1);
  CHECK(plan(TunerProtocol::simple, {.max_channels = 16}).running == 16);
  CHECK(plan(TunerProtocol::simple, {.max_channels = 16}).channels == 12);  // on as many rings as before
  CHECK(plan(TunerProtocol::simple, {.threads = 128}).running == 6);        // 24 of 128 threads are 6 of 512
  CHECK(plan(TunerProtocol::simple).at_work == 1);
  CHECK(plan(TunerProtocol::simple, {.max_channels = 1}).at_work == 0.5);  // one of two blocks
  CHECK(plan(TunerProtocol::simple, {.max_channels = 18}).at_work == 0.75);

  const auto costs = [&](const LibraryPlan& its) {
    return library_costs(its, machine, {.op = CollectiveOp::all_reduce, .bytes = 1_GiB, .chunk = 512_KiB});
  };
  // Simple: 20.4 GB/s of sends, with four loads and stores a byte, are 27.2 of rings, with three.
  CHECK(costs(plan(TunerProtocol::simple, {.max_channels = 1})).channel == Bandwidth{27'200'000'000});
  CHECK(costs(plan(TunerProtocol::simple, {.max_channels = 16})).channel == Bandwidth{36'266'666'667});  // 16 for 12
  // Of the others a channel of the search has 30 GB/s by Simple, and here half of its blocks.
  const KernelCosts& own = fitted_costs().of[hopper];
  const double half = 30 * own.nvlink[1] / own.nvlink[2] / 2;
  for (const int channels : {1, 6})
    CHECK(static_cast<double>(costs(plan(TunerProtocol::ll128, {.max_channels = channels})).channel.bytes_per_second) ==
          doctest::Approx(half * 1e9));
  CHECK(costs(plan(TunerProtocol::ll128, {.max_channels = 6})).nvlink == costs(plan(TunerProtocol::ll128)).nvlink);
  CHECK(costs(plan(TunerProtocol::ll128)).channel == Bandwidth{0});
}

TEST_CASE("a slot's payload is the chunk of trees and broadcasts") {
  CHECK(chunk_of(TunerProtocol::ll) == 32_KiB);        // 512 threads, 8 lines of 16 B, half of it flags
  CHECK(chunk_of(TunerProtocol::ll128) == 576'000_B);  // 614400 B, 120 of 128
  CHECK(chunk_of(TunerProtocol::simple) == 512_KiB);
}

TEST_CASE("chunks of collectives are whole multiples of 16 bytes, those of sends and receives are not") {
  const TunerMachine machine = machine_of("hgx-h100", 8);
  for (const TunerAlgorithm algorithm : {TunerAlgorithm::ring, TunerAlgorithm::tree, TunerAlgorithm::nvls})
    for (const TunerProtocol protocol : {TunerProtocol::ll, TunerProtocol::ll128, TunerProtocol::simple})
      for (const CollectiveOp op : collective_ops()) {
        CAPTURE(to_string(op));
        const Bytes align =
            library_costs({algorithm, protocol, 1, 0}, machine, {.op = op, .bytes = 1_MiB, .chunk = 1_KiB})
                .protocol.align;
        CHECK(align == (sends_to_peers(op) ? 1_B : 16_B));
      }
}

TEST_CASE(
    "steps cost more as their chunk grows, up to the full time, and no constant is without what it was fitted to") {
  const TunerMachine machine = machine_of("hgx-h100", 8);
  const LibraryPlan plan{TunerAlgorithm::ring, TunerProtocol::simple, 1, 0};
  const auto step = [&](Bytes chunk, CollectiveOp op) {
    return library_costs(plan, machine, {.op = op, .bytes = chunk, .chunk = chunk}).protocol.nvlink;
  };
  CHECK(step(0_B, CollectiveOp::all_reduce) == Picoseconds{1'300'000});
  CHECK(step(32_KiB, CollectiveOp::all_reduce) == Picoseconds{3'600'000});  // half of 4.6 us more
  CHECK(step(64_KiB, CollectiveOp::all_reduce) == Picoseconds{5'900'000});
  CHECK(step(1_GiB, CollectiveOp::all_reduce) == Picoseconds{5'900'000});
  CHECK(step(1_GiB, CollectiveOp::broadcast) == Picoseconds{3'600'000});  // one slice, one fence
  for (const CostLine& line : cost_table()) {
    CAPTURE(line.what);
    CHECK_FALSE(line.fitted_to.empty());
    CHECK_FALSE(line.value.empty());
  }
}

}  // namespace nccl_library_test
