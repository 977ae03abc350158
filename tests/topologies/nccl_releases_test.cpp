// What differs between releases of NCCL: constants, rules, what the search counts links for.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/files.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nccl/nccl_costs.hpp"
#include "topologies/nccl/nccl_library.hpp"

namespace nccl_releases_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::nccl;

namespace {

TunerMachine machine_of(const char* preset, int gpus, int nodes = 1, Release release = Release::v2_30_7,
                        Bandwidth nic = 200_Gbps) {
  return tuner_machine(*cluster_of(preset).parts.front().machine, gpus, nodes, nic, release);
}

std::string name_of(const LibraryPlan& plan) {
  return std::string(to_string(plan.algorithm)) + ' ' + std::string(to_string(plan.protocol));
}

struct Asked {
  CollectiveOp op{};
  Bytes bytes;
  TunerMachine machine;
};

/// [machine] of tests/data/nccl-tuner-times.csv.
std::vector<Asked> asked() {
  const auto of = [](CollectiveOp op, Bytes bytes, int nodes, int gpus, int sm, Channels rings, Channels nvls = {}) {
    TunerMachine machine{.nodes = nodes, .gpus = gpus, .sm = sm, .nvlink = true};
    machine.same_rings = true;
    machine.ring = machine.tree = rings;
    machine.nvls = nvls;
    return Asked{op, bytes, machine};
  };
  using enum CollectiveOp;
  std::vector<Asked> out{of(all_reduce, 4_MiB, 4, 8, 80, {8, 24, 24}),
                         of(all_reduce, 64_MiB, 2, 8, 90, {8, 45, 45}, {8, 45, 45}),
                         of(all_gather, 64_MiB, 1, 8, 90, {12, 30, 30}, {8, 40, 60}),
                         of(all_reduce, 8_MiB, 2, 8, 100, {8, 48, 48}, {8, 80, 48}),
                         of(all_reduce, 1_GiB, 4, 4, 100, {4, 48, 48}, {4, 96, 48}),
                         of(broadcast, 1_MiB, 1, 4, 86, {1, 20, 20}),
                         of(reduce_scatter, 16_MiB, 10, 1, 90, {1, 24, 24}),
                         of(all_reduce, 1_MiB, 1, 8, 70, {12, 20, 20}),
                         of(all_reduce, 256_KiB, 1, 4, 86, {4, 40, 40}),
                         of(all_reduce, 64_MiB, 1, 8, 100, {8, 90, 90}, {8, 90, 90}),
                         of(all_reduce, 64_MiB, 3, 8, 100, {8, 48, 48}, {8, 86, 48}),
                         of(all_reduce, 64_MiB, 2, 4, 80, {2, 12, 12})};
  for (const unsigned amd : {0U, 3U, 8U}) out[amd].machine.amd = true;
  for (const unsigned plugin : {1U, 11U}) out[plugin].machine.net_latency_us = 75;
  out[4].machine.arm = true;
  out[5].machine.nvlink = false;
  for (const unsigned own_orders : {5U, 7U}) out[own_orders].machine.same_rings = false;
  return out;
}

}  // namespace

TEST_CASE("the formula of each release gives the times of NCCL's own code") {
  std::istringstream lines(test::read_file(std::string(test::source_dir()) + "/tests/data/nccl-tuner-times.csv"));
  std::vector<std::string> columns;
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> fields = test::csv_fields(line);
    if (columns.empty()) {
      columns = fields;
      continue;
    }
    CAPTURE(line);
    const Release release = release_of_version(fields[0]);
    Asked question = asked().at(static_cast<std::size_t>(std::stoi(fields[1])));
    TunerMachine& machine = question.machine;
    machine.ll128 = machine.nvlink && knows_ll128(machine.sm, release);
    for (Channels* found : {&machine.ring, &machine.tree, &machine.nvls}) {
      found->nvlink = machine.nvlink;
      found->ll128 = machine.ll128;
    }
    const auto weighed =
        std::count_if(fields.begin() + 2, fields.end(), [](const auto& each) { return !each.empty(); });
    const std::vector<TunerChoice> choices = tuner_choices(question.op, machine, release);
    CHECK(std::ssize(choices) == weighed);
    for (const TunerChoice& choice : choices) {
      const std::string name = name_of({choice.algorithm, choice.protocol});
      CAPTURE(name);
      const auto column = std::find(columns.begin(), columns.end(), name);
      REQUIRE(column != columns.end());
      const std::string& expected = fields[static_cast<std::size_t>(column - columns.begin())];
      REQUIRE_FALSE(expected.empty());
      // Written with six digits, counted as float.
      CHECK(tuner_time_us(choice, question.op, question.bytes, machine, release) ==
            doctest::Approx(std::stod(expected)).epsilon(2e-5));
      ++compared;
    }
  }
  CHECK(compared > 1000);
}

TEST_CASE("a version stands for the release whose constants are known, and newer ones are refused") {
  CHECK(release_of_version("2.8.3") == Release::v2_8_3);
  CHECK(release_of_version("2.9.9") == Release::v2_8_3);
  CHECK(release_of_version("2.11") == Release::v2_10);
  CHECK(release_of_version("2.12.7") == Release::v2_12);
  CHECK(release_of_version("2.17.1") == Release::v2_14);
  CHECK(release_of_version("2.18.6") == Release::v2_18);
  CHECK(release_of_version("2.19") == Release::v2_19);
  CHECK(release_of_version("2.20.5") == Release::v2_20);
  CHECK(release_of_version("2.22.3") == Release::v2_21);
  CHECK(release_of_version("2.23.4") == Release::v2_23);
  CHECK(release_of_version("2.26.6") == Release::v2_24);
  CHECK(release_of_version("2.27.7") == Release::v2_27);
  CHECK(release_of_version("2.28.3") == Release::v2_28);
  CHECK(release_of_version("2.28.9") == Release::v2_28_9);
  CHECK(release_of_version("2.29.2") == Release::v2_29);
  CHECK(release_of_version("2.29.7") == Release::v2_29_7);
  CHECK(release_of_version("2.30.7") == Release::v2_30_7);
  for (const char* wrong :
       {"", "2", "3.0.1", "1.3.4", "2.", "2.8.", "2.8.3.1", "2.x", "v2.8", "-2.8", "2.31", "2.30.8"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(release_of_version(wrong), InputError);
  }
}

TEST_CASE("what NCCL chooses changes with the release") {
  const auto name = [](const char* preset, int gpus, int nodes, Bytes bytes, const char* version) {
    const Release release = release_of_version(version);
    const TunerMachine machine = machine_of(preset, gpus, nodes, release, 400_Gbps);
    return name_of(library_plan(CollectiveOp::all_reduce, bytes, machine, {.release = release}).value());
  };
  // Rings of LL count as a quarter of 240 GB/s up to 2.20, then as a half, but no more than 87.7: LL128 pays from 1.2
  // or 2.1 MiB on.
  CHECK(name("dgx-a100", 8, 1, 2_MiB, "2.20.5") == "Ring LL128");
  CHECK(name("dgx-a100", 8, 1, 2_MiB, "2.21.5") == "Ring LL");
  // Over four nodes NVLSTree counts half of the adapters up to 2.27: 8 x 22.5 x 5/6 = 150 GB/s, where rings have 8 x 45
  // x 32/62 = 186. From 2.28 on as much as rings, and fewer steps.
  CHECK(name("hgx-h100", 8, 4, 8_GiB, "2.27.7") == "Ring Simple");
  CHECK(name("hgx-h100", 8, 4, 8_GiB, "2.28.3") == "Ring Simple");
  // Trees of Simple take 12 steps over eight nodes of four GPUs: of 4 and 14 us in 2.18 and from 2.23 on, of 28 in
  // the releases between.
  CHECK(name("polaris", 4, 8, 4_MiB, "2.18.6") == "Tree Simple");
  CHECK(name("polaris", 4, 8, 4_MiB, "2.21.5") == "Ring LL");
  CHECK(name("polaris", 4, 8, 4_MiB, "2.23.4") == "Tree Simple");
  // No NVLS before 2.17, and here before 2.18.
  CHECK(name("hgx-h100", 8, 1, 1_GiB, "2.16.5") == "Ring Simple");
  CHECK(name("hgx-h100", 8, 1, 1_GiB, "2.18.6") == "NVLS Simple");
}

TEST_CASE("before 2.18 the search counts A100's NVLinks for 22 GB/s, before 2.10 for 21") {
  const auto rings = [](Release release) { return machine_of("dgx-a100", 8, 1, release).ring; };
  CHECK(rings(Release::v2_8_3).inside == 21);
  CHECK(rings(Release::v2_10).inside == 22);  // 12 links: six rings of 44, doubled
  CHECK(rings(Release::v2_14).inside == 22);
  CHECK(rings(Release::v2_18).inside == 20);
  for (const Release release : {Release::v2_8_3, Release::v2_10, Release::v2_18}) CHECK(rings(release).count == 12);
  CHECK(machine_of("dgx-a100", 8, 4, Release::v2_14).ring.between == 24);
}

TEST_CASE("before 2.23 any number of GPUs behind AMD's CPUs write into each other's memory") {
  const auto level = [](const char* preset, Release release) {
    return p2p_level(*cluster_of(preset).parts.front().machine, 4, release);
  };
  CHECK(level("l40s-pcie", Release::v2_21) == PathType::sys);
  CHECK(level("l40s-pcie", Release::v2_23) == PathType::pxb);
  CHECK(level("a100-pcie", Release::v2_21) == PathType::pxb);  // Intel
}

TEST_CASE("up to 2.23 rings stay where NCCL_ALGO leaves nothing else") {
  const TunerMachine machine = machine_of("dgx-a100", 8);
  const auto plan = [&](CollectiveOp op, int minor, TunerAlgorithm only) {
    const auto found = library_plan(op, 1_MiB, machine, {.minor = minor, .algorithms = {only}});
    return found ? name_of(*found).substr(0, 4) : "none";
  };
  using enum TunerAlgorithm;
  CHECK(plan(CollectiveOp::all_gather, 23, tree) == "Ring");
  CHECK(plan(CollectiveOp::all_gather, 24, tree) == "none");
  CHECK(plan(CollectiveOp::all_gather, 18, tree) == "Ring");
  CHECK(plan(CollectiveOp::all_reduce, 19, nvls) == "Ring");
  CHECK(plan(CollectiveOp::all_reduce, 18, nvls) == "none");
  CHECK(plan(CollectiveOp::all_reduce, 23, tree) == "Tree");
  // No such name before 2.17, and off over several nodes or on one: then rings and trees are back, and at 1 MiB in one
  // node the trees' 70 us of chain lose to LL128.
  CHECK(plan(CollectiveOp::all_reduce, 16, nvls) == "Ring");
  CHECK(plan(CollectiveOp::all_reduce, 18, nvls_tree) == "Ring");
  CHECK(plan(CollectiveOp::all_reduce, 24, nvls_tree) == "none");
}

TEST_CASE("NVLSTree posts the chunks of all its blocks hop by hop, as large as the release has them") {
  const auto chunk = [](int nodes, Bytes bytes, Release release = Release::v2_30_7) {
    const LibraryPlan plan{TunerAlgorithm::nvls_tree, TunerProtocol::simple, 8, 0, 16};
    return tree_chunk(plan, bytes, machine_of("hgx-h100", 8, nodes), release);
  };
  // 16 blocks times 8 heads: 128 parts. 64 MiB are 4 chunks of 128 KiB for each, 8 MiB one of 64 KiB.
  CHECK(chunk(2, 1_GiB) == 128_KiB);
  CHECK(chunk(2, 64_MiB) == 128_KiB);
  CHECK(chunk(2, 63_MiB) == 64_KiB);
  CHECK(chunk(2, 8_MiB) == 64_KiB);
  CHECK(chunk(2, 4_MiB) == 32_KiB);
  CHECK(chunk(2, 1_MiB) == 8_KiB);  // no more than there is
  CHECK(chunk(4, 1_GiB) == 64_KiB);
  CHECK(chunk(3, 1_GiB) == 128_KiB);
  CHECK(chunk(2, 1_GiB, Release::v2_20) == 256_KiB);  // less than 32 of 512 KiB
  CHECK(chunk(4, 1_GiB, Release::v2_20) == 64_KiB);
  CHECK(chunk(4, 1_GiB, Release::v2_18) == 256_KiB);

  // A head's 16 chunks of 64 KiB take 43.69 us at 24 GB/s; up and down are two hops, and one of them is simulated.
  const LibraryPlan plan{TunerAlgorithm::nvls_tree, TunerProtocol::simple, 8, 0, 16};
  const auto costs = [&](int nodes, Bytes a_chunk) {
    return library_costs(plan, machine_of("hgx-h100", 8, nodes),
                         {.op = CollectiveOp::all_reduce, .bytes = 32_MiB, .chunk = a_chunk})
        .protocol;
  };
  CHECK(microseconds(costs(2, 64_KiB).network) == doctest::Approx(11.3 + 24.0 / 2 + 2.3 + 43.69 / 2).epsilon(1e-4));
  CHECK(microseconds(costs(10, 64_KiB).network) ==
        doctest::Approx(11.3 + 24.0 / 2 + 2.3 + 43.69 * 7 / 8).epsilon(1e-4));
  CHECK(microseconds(costs(2, 0_B).network) == doctest::Approx(11.3 + 2.3));
  // 8 slots of 16 blocks hold 8 MiB of 64 KiB, in two trees: 64 messages of 64 KiB, 8 of 512 KiB. No fewer than 8.
  const auto slots = [&](Bytes piece) {
    return library_costs(plan, machine_of("hgx-h100", 8, 2),
                         {.op = CollectiveOp::all_reduce, .bytes = 32_MiB, .chunk = 64_KiB, .piece = piece})
        .protocol.slots;
  };
  // The pipeline: 250 us on two nodes, 38 more for each doubling, of which 63 % are there at 58 MB.
  const auto once = [&](int nodes, Bytes bytes) {
    return microseconds(library_costs(plan, machine_of("hgx-h100", 8, nodes),
                                      {.op = CollectiveOp::all_reduce, .bytes = bytes, .chunk = 64_KiB})
                            .once);
  };
  CHECK(once(2, 8_GiB) == doctest::Approx(250));
  CHECK(once(4, 8_GiB) == doctest::Approx(288));
  CHECK(once(2, 58'000'000_B) == doctest::Approx(250 * 0.6321).epsilon(1e-4));
  CHECK(slots(64_KiB) == 64);
  CHECK(slots(512_KiB) == 8);
  CHECK(slots(4_MiB) == 8);
  CHECK(slots(0_B) == 8);
}

TEST_CASE("on Blackwell 2.30 gives NVLSTree blocks and chunks by the NICs' rate and the GPUs of a node") {
  const auto shape = [](int nodes, int gpus, Bandwidth nic, Release release = Release::v2_30_7) {
    return nvls_tree_shape(machine_of("hgx-b200", gpus, nodes, release, nic), release);
  };
  const auto is = [](const NvlsTreeShape& found, int blocks, Bytes chunk) {
    CHECK(found.blocks == blocks);
    CHECK(found.chunk == chunk.count);
  };
  is(shape(2, 8, 400_Gbps), 32, 64_KiB);  // NICs on the PCIe switches of the GPUs
  is(shape(2, 4, 400_Gbps), 32, 256_KiB);
  is(shape(4, 8, 400_Gbps), 24, 64_KiB);
  is(shape(2, 8, 200_Gbps), 32, 128_KiB);  // slower NICs: as before
  is(shape(4, 8, 200_Gbps), 32, 64_KiB);
  is(shape(2, 8, 400_Gbps, Release::v2_29), 32, 128_KiB);
  TunerMachine fast{.nodes = 4, .gpus = 8, .sm = 100};
  fast.nic_GBps = 100;
  is(nvls_tree_shape(fast, Release::v2_30_7), 24, 256_KiB);
  fast.gpus = 16;
  is(nvls_tree_shape(fast, Release::v2_30_7), 32, 128_KiB);
  fast.gpus = 32;
  is(nvls_tree_shape(fast, Release::v2_30_7), 32, 64_KiB);
  fast.nodes = 2;
  is(nvls_tree_shape(fast, Release::v2_30_7), 32, 64_KiB);
  fast.gpus = 8;
  is(nvls_tree_shape(fast, Release::v2_30_7), 32, 128_KiB);
}

}  // namespace nccl_releases_test
