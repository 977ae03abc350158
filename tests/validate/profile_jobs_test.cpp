// The collectives of jobs next to predictions: verdicts on jobs whose cause is planted.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/files.hpp"
#include "tests/support/made_profiles.hpp"
#include "tests/support/paths.hpp"
#include "validate/profiles/job_comparison.hpp"

namespace profile_jobs_test {

using namespace ringsim;
using namespace ringsim::profiles;
using profiles::Verdict;  // tests have another one
using test::made_trace;
using test::MadeKernel;
using test::read_texts;

namespace {

const std::string dgx = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
  "library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 GiB"}})";
/// Two nodes of four V100.
const std::string abci = R"({"version": 1, "topology": {"kind": "cluster", "node": "abci-v", "nodes": 2,
  "fabric": {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "150 ns"}}},
  "library": {"name": "nccl", "version": "2.21.5"}, "collective": {"op": "all_reduce", "bytes": "1 GiB"}})";

std::string sample_file(const std::string& name) { return test::source_dir() + "/tests/data/profiles/" + name; }

/// What is planted in a collective, and what its truth is.
struct Planted {
  std::string op = "allreduce";
  std::int64_t elements = 1 << 20;  ///< of float, going in
  double transfer_us = 400, predicted_us = 400;
  int late_rank = -1;
  bool late_changes = false;  ///< another rank each time
  double late_us = 0;
  double slowed = 1;  ///< x the transfer in every second step, with compute next to it
};

/// A job of `n` ranks, `per_host` on each host; clocks of hosts after the first are `offset_us` ahead, and more.
struct MadeJob {
  std::uint32_t n = 8, per_host = 4;
  double offset_us = 0, drift = 0;
  int steps = 40;
  std::set<std::uint32_t> missing;  ///< ranks without a file
  std::vector<Planted> collectives;
};

Profile profile_of(const MadeJob& job, std::mt19937& random) {
  const auto uniform = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  const double start = 1e9;
  const auto of_host = [&](std::uint32_t rank, double t) {
    const double host = rank / job.per_host;
    return t + host * job.offset_us + host * job.drift * (t - start);
  };
  std::vector<std::vector<MadeKernel>> kernels(job.n);
  double t = start;
  for (int step = 0; step < job.steps; ++step) {
    std::int64_t number = 0;
    // A small one first in each step, by which clocks are found.
    std::vector<Planted> all = job.collectives;
    all.insert(all.begin(), Planted{.elements = 256, .transfer_us = 30});
    for (const Planted& each : all) {
      const bool next_to_compute = each.slowed > 1 && step % 2 == 0;
      const double transfer = each.transfer_us * (next_to_compute ? each.slowed : 1);
      const auto late =
          each.late_changes ? static_cast<std::uint32_t>(random() % job.n) : static_cast<std::uint32_t>(each.late_rank);
      std::vector<double> arrivals;
      for (std::uint32_t rank = 0; rank < job.n; ++rank)
        arrivals.push_back(t + uniform(0, 0.01 * transfer) + (rank == late ? each.late_us : 0));
      const double last = *std::max_element(arrivals.begin(), arrivals.end());
      const double spread = std::min(0.01 * transfer, 50.0);
      const auto last_to_end = static_cast<std::uint32_t>(random() % job.n);
      for (std::uint32_t rank = 0; rank < job.n; ++rank) {
        const double end = last + transfer - (rank == last_to_end ? 0 : uniform(0, spread));
        const double begin = of_host(rank, arrivals[rank]);
        kernels[rank].push_back({.begin = begin,
                                 .duration = of_host(rank, end) - begin,
                                 .op = each.op,
                                 .elements = each.elements,
                                 .sequence = step * 100 + number,
                                 .blocks = 0});
        if (next_to_compute)
          kernels[rank].push_back({.begin = begin - 10, .duration = end - arrivals[rank] + 20, .op = "", .stream = 7});
        else if (each.slowed > 1)
          kernels[rank].push_back({.begin = of_host(rank, end) + 100, .duration = 50, .op = "", .stream = 7});
      }
      ++number;
      t = last + transfer + 1000;
    }
  }
  std::vector<std::pair<std::string, std::string>> files;
  for (std::uint32_t rank = 0; rank < job.n; ++rank)
    if (!job.missing.contains(rank))
      files.emplace_back(fmt::format("h{}_{}.1.pt.trace.json", rank / job.per_host, rank),
                         made_trace(rank, job.n, kernels[rank]));
  return read_texts(files);
}

std::int64_t bytes_of(const Planted& planted, std::uint32_t n) {
  return planted.elements * 4 * (planted.op == "_allgather_base" ? n : 1);
}

/// The row of a planted collective, with its truth as the prediction.
ComparedCalls judged(const Account& account, const Planted& planted, std::uint32_t n, double band = 0.1) {
  for (const Row& row : account.rows) {
    if (row.bytes != bytes_of(planted, n)) continue;
    ComparedCalls calls;
    calls.row = row;
    calls.predicted_ns = planted.predicted_us * 1e3;
    calls.band = band;
    judge(calls);
    return calls;
  }
  FAIL("no such row");
  return {};
}

}  // namespace

TEST_CASE("each rule of the verdict, alone") {
  const auto verdicts = [](const std::function<void(ComparedCalls&)>& change, double interference = 1) {
    ComparedCalls calls;
    calls.row.op = CallOp::all_reduce;
    calls.row.group_size = 4;
    calls.row.collectives = 10;
    calls.row.split = 10;
    calls.row.waits_ns = {{0, 10}};
    calls.row.split_kernel_ns = 100;
    calls.row.transfer_ns = 100;
    calls.predicted_ns = 100;
    calls.band = 0.1;
    change(calls);
    judge(calls, interference);
    return calls.verdicts;
  };
  using V = std::vector<Verdict>;
  CHECK(verdicts([](ComparedCalls&) {}) == V{Verdict::as_predicted});
  // Above 20 % of the kernels' time, and the same rank causes more than 60 % of it.
  CHECK(verdicts([](ComparedCalls& c) {
          c.row.wait_ns = 20, c.row.caused_ns = {{3, 10}};
        }) == V{Verdict::as_predicted});
  CHECK(verdicts([](ComparedCalls& c) {
          c.row.wait_ns = 21, c.row.caused_ns = {{3, 7}, {1, 3}};
        }) == V{Verdict::late_rank});
  CHECK(verdicts([](ComparedCalls& c) {
          c.row.wait_ns = 21, c.row.caused_ns = {{3, 6}, {1, 4}};
        }) == V{Verdict::late_ranks});
  // Above 1.25 x predicted; where predictions are less sure, above 1.5 x their error.
  CHECK(verdicts([](ComparedCalls& c) { c.row.transfer_ns = 124; }) == V{Verdict::as_predicted});
  CHECK(verdicts([](ComparedCalls& c) { c.row.transfer_ns = 126; }) == V{Verdict::slow_transfer});
  CHECK(verdicts([](ComparedCalls& c) { c.row.transfer_ns = 126, c.band = 0.2; }) == V{Verdict::as_predicted});
  CHECK(verdicts([](ComparedCalls& c) { c.row.transfer_ns = 131, c.band = 0.2; }) == V{Verdict::slow_transfer});
  CHECK(verdicts([](ComparedCalls& c) { c.row.transfer_ns = 89; }) == V{Verdict::faster});
  CHECK(verdicts([](ComparedCalls& c) { c.row.transfer_ns = 91; }) == V{Verdict::as_predicted});
  CHECK(verdicts([](ComparedCalls& c) { c.row.overlapped_ratio = 1.16; }) == V{Verdict::slowed_by_compute});
  // Of ranks without a file neither transfer is known.
  CHECK(verdicts([](ComparedCalls& c) {
          c.row.overlapped_ratio = 1.16;
          c.row.is_partial = true;
        }) == V{Verdict::as_predicted});
  CHECK(verdicts([](ComparedCalls& c) { c.row.overlapped_ratio = 1.14; }) == V{Verdict::as_predicted});
  // Beyond what is stated, by the shares: whole kernels at 1.2 may take 1.2 x 1.15 times as long; with a fifth of their
  // time next to compute 1 / (1 - 0.2 (1 - 1 / 1.2)) x 1.15 = 1.19.
  const auto with_share = [&](std::uint16_t share, double ratio) {
    return verdicts(
        [&](ComparedCalls& c) {
          c.row.overlaps = {0, share};
          c.row.overlapped_ratio = ratio;
        },
        1.2);
  };
  CHECK(with_share(1000, 1.37) == V{Verdict::as_predicted});
  CHECK(with_share(1000, 1.39) == V{Verdict::slowed_by_compute});
  CHECK(with_share(200, 1.18) == V{Verdict::as_predicted});
  CHECK(with_share(200, 1.20) == V{Verdict::slowed_by_compute});
  // Late and slow are two findings; slow next to compute is one.
  CHECK(verdicts([](ComparedCalls& c) {
          c.row.wait_ns = 30, c.row.caused_ns = {{3, 10}}, c.row.transfer_ns = 200;
        }) == V{Verdict::late_rank, Verdict::slow_transfer});
  CHECK(verdicts([](ComparedCalls& c) { c.row.overlapped_ratio = 1.5, c.row.transfer_ns = 150; }) ==
        V{Verdict::slowed_by_compute});
  // If ranks have no file, a long transfer may be waiting for them.
  CHECK(verdicts([](ComparedCalls& c) { c.row.is_partial = true, c.row.transfer_ns = 200; }) == V{Verdict::cannot_say});
  CHECK(verdicts([](ComparedCalls& c) { c.row.split = 0; }) == V{Verdict::cannot_say});
  CHECK(verdicts([](ComparedCalls& c) { c.row.split = 0, c.row.op = CallOp::broadcast; }) == V{Verdict::cannot_say});
}

TEST_CASE("a launch of other blocks or threads than the plan's is noticed") {
  ComparedCalls calls;
  calls.blocks = 24;
  calls.algorithm = "Ring";
  calls.protocol = "Simple";
  calls.row.threads = 544;
  for (const auto& each : {std::pair{24, false}, {20, false}, {30, false}, {31, true}, {18, true}, {8, true}}) {
    calls.row.blocks = static_cast<std::uint16_t>(each.first);
    CAPTURE(each.first);
    CHECK(calls.blocks_differ() == each.second);
  }
  struct Launch {
    const char *algorithm, *protocol;
    int threads;
    bool differs;
  };
  for (const Launch& each :
       {Launch{"Ring", "Simple", 544, false}, Launch{"Ring", "Simple", 288, false}, Launch{"Ring", "Simple", 640, true},
        Launch{"Ring", "Simple", 512, true}, Launch{"Tree", "Simple", 640, false}, Launch{"Tree", "Simple", 544, true},
        Launch{"Ring", "LL", 512, false}, Launch{"Ring", "LL", 96, false}, Launch{"Ring", "LL", 544, true},
        Launch{"Tree", "LL128", 640, false}, Launch{"Ring", "LL128", 544, true}}) {
    CAPTURE(each.algorithm);
    CAPTURE(each.protocol);
    CAPTURE(each.threads);
    calls.algorithm = each.algorithm;
    calls.protocol = each.protocol;
    calls.row.threads = static_cast<std::uint16_t>(each.threads);
    CHECK(calls.threads_differ() == each.differs);
  }
}

TEST_CASE("the error of predictions is that of docs/results/accuracy.md") {
  const std::string page = test::read_file(test::source_dir() + "/docs/results/accuracy.md");
  const auto percentile = [&](const std::string& heading, const std::string& sizes) {
    const std::size_t section = page.find("## By size: " + heading);
    REQUIRE(section != std::string::npos);
    std::smatch found;
    // | sizes | rows | median / 90th percentile |
    const std::string text = page.substr(section, 2000);
    REQUIRE(std::regex_search(text, found, std::regex("\\| " + sizes + " \\| [0-9]+ \\| [0-9]+ / ([0-9]+) \\|")));
    return std::stod(found[1]) / 100;
  };
  for (const auto& each : {std::pair{Wiring::nvlink, "one node, NVLink"}, std::pair{Wiring::pcie, "one node, PCIe"},
                           std::pair{Wiring::nodes, "several nodes"}}) {
    const Wiring wiring = each.first;
    const std::string heading = each.second;
    CAPTURE(heading);
    CHECK(error_band(wiring, 1024) == percentile(heading, "up to 64 KiB"));
    CHECK(error_band(wiring, 1 << 20) == percentile(heading, "64 KiB to 8 MiB"));
    CHECK(error_band(wiring, 8 << 20) == percentile(heading, "8 MiB and more"));
    CHECK(error_band(wiring, 256 << 20) == percentile(heading, "256 MiB and more"));
  }
}

TEST_CASE("two A100 that launch 8 blocks are no dgx-a100, where NCCL launches 24; nothing is said of one rank") {
  ReadOptions read;
  const Profile profile = read_profiles({sample_file("resnet50-2xa100.json.gz")}, read);
  const JobComparison comparison = compare_job(profile, dgx, "dgx", {});
  CHECK(comparison.nccl == "2.17.1");
  CHECK(comparison.nccl_from == "in the files");
  CHECK(comparison.other_machine == "8 blocks, plan 24");
  REQUIRE(comparison.rows.size() == 7);
  for (const ComparedCalls& calls : comparison.rows) {
    CHECK(calls.verdicts == std::vector<Verdict>{Verdict::cannot_say});
    CHECK(calls.predicted_ns.has_value());
    if (calls.row.op == CallOp::all_reduce) CHECK(calls.blocks == 24);
  }
}

TEST_CASE("an all-gather of eight B200: predicted 18.6 us, measured 22.0, LL as its threads say") {
  const std::string b200 = test::replaced(dgx, "dgx-a100", "aws-p6-b200");
  const Profile profile = read_profiles({sample_file("b200-all-gather.json")}, {});
  const JobComparison comparison = compare_job(profile, b200, "b200", {});
  REQUIRE(comparison.rows.size() == 1);
  const ComparedCalls& calls = comparison.rows[0];
  CHECK(calls.row.bytes == 402176);
  CHECK(calls.row.kernel_ns == 21953);
  CHECK(*calls.predicted_ns == doctest::Approx(18'600).epsilon(0.02));
  CHECK(calls.protocol == "LL");
  CHECK(!calls.threads_differ());
  CHECK(!calls.blocks_differ());  // 11 blocks, plan 12
  CHECK(comparison.other_machine.empty());
  CHECK(calls.verdicts == std::vector<Verdict>{Verdict::cannot_say});
  CHECK(calls.because == "not matched");
}

// As in a Chakra trace of a program that has not run: 0 ms would be faster than any machine.
TEST_CASE("of calls without durations nothing is said, and no time is lost in them") {
  std::vector<std::pair<std::string, std::string>> files;
  for (std::uint32_t rank = 0; rank < 8; ++rank)
    files.emplace_back(fmt::format("rank{}.json", rank),
                       made_trace(rank, 8, {{.duration = 0, .elements = 1 << 20, .blocks = 0}}));
  const JobComparison comparison = compare_job(read_texts(files), dgx, "dgx", {});
  REQUIRE(comparison.rows.size() == 1);
  const ComparedCalls& calls = comparison.rows[0];
  CHECK(calls.predicted_ns.has_value());
  CHECK(calls.row.has_no_durations);
  CHECK(calls.verdicts == std::vector<Verdict>{Verdict::cannot_say});
  CHECK(calls.because == "no durations");
  CHECK(calls.lost_ns == 0);
}

TEST_CASE("without a group, beyond the scenario, or without members there is no prediction, with the reason") {
  const auto because = [](const Profile& profile, const std::string& scenario) {
    const JobComparison comparison = compare_job(profile, scenario, "s", {});
    REQUIRE(!comparison.rows.empty());
    const ComparedCalls& calls = comparison.rows.front();
    CHECK(!calls.predicted_ns);
    CHECK(calls.verdicts == std::vector<Verdict>{Verdict::cannot_say});
    return calls.because;
  };
  CHECK(because(read_profiles({sample_file("two-of-128-rank-0.json.gz")}, {}), dgx) ==
        "its ranks are not in the file; set them with --group");
  const auto of_world = [](std::uint32_t n) {
    return read_texts({{"rank0.json", made_trace(0, n, {{.duration = 100, .elements = 1 << 20, .blocks = 0}})}});
  };
  CHECK(because(of_world(16), dgx) == "rank 8 exceeds the 8 GPUs of the scenario; set the number of nodes (--nodes)");
  CHECK(because(of_world(1), dgx) == "there is only one rank");
  const std::string line =
      R"({"header": {"id": "0x1", "rank": 0, "n_ranks": 8, "nnodes": 1}, "metadata": {"inspector_output_format_version": "v4.0", "hostname": "h", "pid": 1}, "coll_perf": {"coll": "AllReduce", "coll_sn": 1, "coll_msg_size_bytes": 1024, "coll_exec_time_us": 10}})"
      "\n";
  CHECK(because(read_texts({{"a.log", line}}), dgx) ==
        "1 of 8 ranks have a file, and the files do not contain the rank numbers");
}

TEST_CASE("algorithm and protocol of Inspector's log are what is predicted") {
  std::vector<std::pair<std::string, std::string>> files;
  for (int rank = 0; rank < 8; ++rank)
    files.emplace_back(
        fmt::format("{}.log", rank),
        fmt::format(
            R"({{"header": {{"id": "0x1", "rank": {}, "n_ranks": 8, "nnodes": 1}}, "metadata": {{"inspector_output_format_version": "v4.2", "hostname": "h", "pid": {}}}, "coll_perf": {{"coll": "AllReduce", "coll_algo": "TREE", "coll_proto": "SIMPLE", "coll_sn": 1, "coll_msg_size_bytes": 1048576, "coll_exec_time_us": 100}}}})"
            "\n",
            rank, rank));
  const JobComparison comparison = compare_job(read_texts(files), dgx, "dgx", {.set = {}, .nccl = "2.21.5"});
  REQUIRE(comparison.rows.size() == 1);
  CHECK(comparison.nccl_from == "by --nccl");
  CHECK(comparison.rows[0].algorithm == "Tree");
  CHECK(comparison.rows[0].protocol == "Simple");
}

// Eight ranks call 1 MiB, one of them also 2 MiB: 100 us each.
TEST_CASE("time lost is the mean over the ranks with a file, also of a call that one file alone has") {
  std::vector<std::pair<std::string, std::string>> files;
  const auto line = [](int rank, int number, int bytes) {
    return fmt::format(
        R"({{"header": {{"id": "0x1", "rank": {}, "n_ranks": 8, "nnodes": 1}}, "metadata": {{"inspector_output_format_version": "v4.2", "hostname": "h", "pid": {}}}, "coll_perf": {{"coll": "AllReduce", "coll_sn": {}, "coll_msg_size_bytes": {}, "coll_exec_time_us": 100}}}})"
        "\n",
        rank, rank, number, bytes);
  };
  for (int rank = 0; rank < 8; ++rank)
    files.emplace_back(fmt::format("{}.log", rank), line(rank, 1, 1 << 20) + (rank == 3 ? line(3, 2, 2 << 20) : ""));
  const JobComparison comparison = compare_job(read_texts(files), dgx, "dgx", {.set = {}, .nccl = "2.21.5"});
  REQUIRE(comparison.rows.size() == 2);
  for (const ComparedCalls& calls : comparison.rows) {
    CAPTURE(calls.row.bytes);
    REQUIRE(calls.predicted_ns);
    const double ranks_with_it = calls.row.bytes == 1 << 20 ? 8 : 1;
    CHECK(calls.lost_ns == doctest::Approx((100'000 - *calls.predicted_ns) * ranks_with_it / 8));
  }
}

TEST_CASE("hosts that do not have the ranks of the scenario's nodes are another machine") {
  MadeJob job{.n = 8, .per_host = 2, .steps = 4, .collectives = {Planted{}}};
  std::mt19937 random(1);
  const JobComparison comparison = compare_job(profile_of(job, random), abci, "abci", {});
  CHECK(comparison.other_machine == "ranks 0 and 2 are on two hosts in the job, but on one node in the scenario");
  CHECK_THROWS_WITH_AS(compare_job(profile_of(job, random), abci, "abci", {.set = {"topology.nodes=[2, 4]"}}),
                       "abci: expected a scenario of one machine, found 2 points\n  hint: choose one with --set, "
                       "because lists of values vary",
                       InputError);
}

TEST_CASE("hosts with more GPUs than the scenario's nodes are another machine, those with fewer may be a part of it") {
  MadeJob job{.n = 4, .per_host = 4, .steps = 4, .collectives = {Planted{}}};
  std::mt19937 random(1);
  Profile profile = profile_of(job, random);
  const auto other = [&](std::uint32_t gpus) {
    for (auto& source : profile.sources) source.gpus_on_host = gpus;
    return compare_job(profile, abci, "abci", {}).other_machine;
  };
  CHECK(other(8) == "8 GPUs per host in the files, 4 in the scenario");
  CHECK(other(4).empty());
  CHECK(other(2).empty());
  profile.sources.front().gpus_on_host = 8;  // the files do not agree
  CHECK(compare_job(profile, abci, "abci", {}).other_machine.empty());
}

TEST_CASE("transfers that nothing could make so fast on the scenario's machine are of another machine") {
  const auto other = [](double transfer_us) {
    MadeJob job{.n = 8, .per_host = 4, .steps = 4, .collectives = {Planted{.elements = 8 << 20}}};
    job.collectives.front().transfer_us = transfer_us;
    std::mt19937 random(1);
    return compare_job(profile_of(job, random), abci, "abci", {}).other_machine;
  };
  // 32 MiB among eight V100: a node of four receives at least half of them, over four cables of 12 GB/s: 350 us.
  CHECK(other(50).starts_with("all_reduce of 32 MiB took 0.05"));
  CHECK(other(5000).empty());
}

TEST_CASE("GPUs of another model than the scenario's are another machine") {
  const std::string one_dgx_a100 = R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
    "library": {"name": "nccl", "version": "2.21.5"}, "collective": {"op": "all_reduce", "bytes": "1 GiB"}})";
  MadeJob job{.n = 4, .per_host = 4, .steps = 4, .collectives = {Planted{}}};
  std::mt19937 random(1);
  Profile profile = profile_of(job, random);
  const auto other = [&](const char* gpu) {
    profile.sources.back().gpu = gpu;
    return compare_job(profile, one_dgx_a100, "s", {}).other_machine;
  };
  CHECK(other("NVIDIA B200") == "NVIDIA B200 in the files, dgx-a100 with A100 in the scenario");
  CHECK(other("NVIDIA A100-SXM4-80GB").empty());
  CHECK(other("").empty());
  CHECK(other("Some GPU of no preset").empty());
}

TEST_CASE("a job that takes what is predicted, but for a late rank, a slow link and compute: each has its verdict") {
  // First as predicted, to learn the predictions; then the same with planted causes.
  MadeJob job{.n = 8, .per_host = 4, .offset_us = 3300, .drift = 12e-6, .steps = 40, .collectives = {}};
  job.collectives = {Planted{.elements = 4 << 20}, Planted{.elements = 8 << 20},
                     Planted{.op = "_allgather_base", .elements = 3 << 18},
                     Planted{.op = "_reduce_scatter_base", .elements = 2 << 20}};
  std::mt19937 random(20261127);
  const JobComparison first = compare_job(profile_of(job, random), abci, "abci", {});
  const auto predicted = [&](const Planted& planted) {
    for (const ComparedCalls& calls : first.rows)
      if (calls.row.bytes == bytes_of(planted, job.n)) return *calls.predicted_ns / 1e3;
    FAIL("no such row");
    return 0.0;
  };
  for (Planted& planted : job.collectives) planted.transfer_us = predicted(planted);
  job.collectives[1].late_rank = 5;
  job.collectives[1].late_us = 0.5 * job.collectives[1].transfer_us;
  job.collectives[2].transfer_us *= 3;
  job.collectives[3].slowed = 1.3;
  const Profile profile = profile_of(job, random);
  const JobComparison second = compare_job(profile, abci, "abci", {});
  double waiting = 0, of_ranks = 0;
  for (const ComparedCalls& calls : second.rows) waiting += calls.lost_waiting_ns;
  for (const profiles::RankAccount& rank : second.account.ranks) of_ranks += rank.wait_ns;
  CHECK(waiting > 0);
  CHECK(waiting == doctest::Approx(of_ranks / static_cast<double>(second.account.ranks.size())));
  CHECK(second.other_machine.empty());
  const auto of = [&](const Planted& planted) -> const ComparedCalls& {
    for (const ComparedCalls& calls : second.rows)
      if (calls.row.bytes == bytes_of(planted, job.n)) return calls;
    FAIL("no such row");
    return second.rows.front();
  };
  CHECK(of(job.collectives[0]).verdicts == std::vector<Verdict>{Verdict::as_predicted});
  CHECK(of(job.collectives[1]).verdicts == std::vector<Verdict>{Verdict::late_rank});
  CHECK(of(job.collectives[1]).row.late_rank() == 5U);
  CHECK(of(job.collectives[2]).verdicts == std::vector<Verdict>{Verdict::slow_transfer});
  CHECK(of(job.collectives[3]).verdicts == std::vector<Verdict>{Verdict::slowed_by_compute});
  // Time lost: that of the slow link, 40 x 2 of its 3 transfers; that of the late rank, half a transfer for seven of
  // eight.
  CHECK(of(job.collectives[2]).lost_ns / 1e3 ==
        doctest::Approx(40 * job.collectives[2].transfer_us * 2 / 3).epsilon(0.03));
  const ComparedCalls& late = of(job.collectives[1]);
  CHECK(late.lost_waiting_ns / 1e3 == doctest::Approx(40 * 0.5 * job.collectives[1].transfer_us * 7 / 8).epsilon(0.03));
  CHECK(late.lost_ns == doctest::Approx(late.lost_waiting_ns).epsilon(0.1));
  for (const ComparedCalls& calls : second.rows) {
    REQUIRE(calls.allowed_ns);
    CHECK(*calls.allowed_ns <= *calls.predicted_ns);
  }
  // Every second collective lies next to compute, whole: if that is said to take 1.3 times as long, the mean is 1.15
  // times the prediction, and nothing is lost. The other rows have no kernels of compute next to them.
  const JobComparison stated = compare_job(profile, abci, "abci", {.interference = 1.3});
  for (const ComparedCalls& calls : stated.rows) {
    const bool is_slowed = calls.row.bytes == bytes_of(job.collectives[3], job.n);
    const auto before = std::find_if(second.rows.begin(), second.rows.end(),
                                     [&](const ComparedCalls& each) { return each.row.bytes == calls.row.bytes; });
    REQUIRE(before != second.rows.end());
    CHECK(*calls.predicted_ns == doctest::Approx(*before->predicted_ns * (is_slowed ? 1.15 : 1)).epsilon(1e-6));
    CHECK(calls.verdicts == (is_slowed ? std::vector<Verdict>{Verdict::as_predicted} : before->verdicts));
    if (is_slowed) CHECK(std::abs(calls.lost_ns) < 0.1 * before->lost_ns);
  }
  const MeasuredInterference measured = measured_interference(second.account.rows);
  CHECK(measured.n == 1);
  CHECK(measured.median == doctest::Approx(1.3).epsilon(0.01));
  std::vector<Row> rows(3);
  for (Row& row : rows) row.split = 1, row.overlaps = {0, 1000}, row.overlapped_ratio = 1.5;
  rows[0].overlapped_ratio = 1.1;
  rows[2].is_partial = true;
  CHECK(measured_interference(rows).n == 2);
  CHECK(measured_interference(rows).least == doctest::Approx(1.1));
  CHECK(measured_interference(rows).largest == doctest::Approx(1.5));
  // A fifth of the time at a fifth of the rate: 1 / (1 - 0.2 x 0.8).
  rows[0].overlaps = {0, 200};
  rows[0].overlapped_ratio = 1 / (1 - 0.2 * 0.8);
  CHECK(*interference_of(rows[0]) == doctest::Approx(5));
  rows[0].overlapped_ratio = 1.3;  // a fifth explains at most 1.25
  CHECK(!interference_of(rows[0]));
  rows[0].overlapped_ratio = 0.9;
  CHECK(*interference_of(rows[0]) == 0.9);
  rows[1].split = 0;
  CHECK(measured_interference(rows).n == 1);
  rows[0].overlapped_ratio.reset();
  CHECK(measured_interference(rows).n == 0);
}

TEST_CASE("however many collectives lie next to compute, the factor that slows them explains them") {
  // Of a row one in four is 2 x as long, then three in four: the median is not the mean.
  for (const int slow : {1, 3}) {
    ComparedCalls calls;
    Row& row = calls.row;
    row.op = CallOp::all_reduce;
    row.group_size = 4;
    row.collectives = row.split = 4;
    row.split_kernel_ns = 100;
    for (int i = 0; i < 4; ++i) row.overlaps.push_back(i < slow ? 1000 : 0);
    row.overlapped_ratio = 2;
    row.transfer_ns = slow == 1 ? 100 : 200;
    row.mean_transfer_ns = 100 + 25 * slow;
    calls.slowed = slowed_by(row, 2);
    calls.predicted_ns = 100 * calls.slowed;
    calls.band = 0.1;
    judge(calls, 2);
    CHECK(calls.transfer_over_predicted() == doctest::Approx(1));
    CHECK(calls.verdicts == std::vector<Verdict>{Verdict::as_predicted});
  }
}

TEST_CASE("compute next to a later rank counts, also if the first rank's file has none") {
  // Both arrive at once; kernels of rank 1 run for half of the time.
  std::vector<std::vector<MadeKernel>> kernels(2);
  for (auto& of_rank : kernels)
    of_rank.push_back({.begin = 1000, .duration = 400, .op = "allreduce", .elements = 1 << 20, .sequence = 1});
  kernels[1].push_back({.begin = 1000, .duration = 200, .op = "", .stream = 7});
  const Profile profile =
      read_texts({{"rank0.json", made_trace(0, 2, kernels[0])}, {"rank1.json", made_trace(1, 2, kernels[1])}});
  const Account account = account_of(profile, 0);
  REQUIRE(account.rows.size() == 1);
  REQUIRE(account.rows[0].overlaps.size() == 1);
  CHECK(account.rows[0].overlaps[0] == 500);
  CHECK(account.rows[0].overlap == doctest::Approx(0.5));  // of the rank that has a share
}

TEST_CASE("transfers next to compute for a share of their time take longer by that share of their rate") {
  Row row;
  CHECK(slowed_by(row, 2) == 1);  // nothing is known
  row.overlaps = {0};
  CHECK(slowed_by(row, 2) == 1);
  row.overlaps = {1000};
  CHECK(slowed_by(row, 2) == doctest::Approx(2));
  row.overlaps = {500};  // of t, t / 2 at half the rate: t / 2 + t / 4 = 1
  CHECK(slowed_by(row, 2) == doctest::Approx(4.0 / 3));
  row.overlaps = {0, 1000, 500};
  CHECK(slowed_by(row, 2) == doctest::Approx((1 + 2 + 4.0 / 3) / 3));
  CHECK(slowed_by(row, 1) == 1);
}

TEST_CASE("200 random jobs with planted causes: the verdict is right in 95 %, and never names a wrong rank") {
  int right = 0, all = 0, wrong_rank = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto uniform = [&](double least, double most) {
      return std::uniform_real_distribution<double>(least, most)(random);
    };
    MadeJob job{.n = 4 + 2 * static_cast<std::uint32_t>(random() % 3), .per_host = 0, .steps = 20, .collectives = {}};
    job.per_host = random() % 2 == 0 ? job.n : job.n / 2;
    job.offset_us = uniform(-20'000, 20'000);
    job.drift = uniform(-20e-6, 20e-6);
    if (random() % 4 == 0) job.missing.insert(static_cast<std::uint32_t>(random() % job.n));
    std::vector<Verdict> expected;
    for (int i = 0; i < 4; ++i) {
      Planted planted{.elements = (i + 1) << 20};
      planted.predicted_us = uniform(100, 5000);
      planted.transfer_us = planted.predicted_us * uniform(0.95, 1.05);
      const bool is_one_missing = !job.missing.empty();
      switch (random() % 6) {
        case 0:
          planted.late_rank = static_cast<int>(random() % job.n);
          planted.late_us = planted.transfer_us * uniform(0.6, 3);
          // The late rank itself may have no file: then no cause can be told.
          expected.push_back(job.missing.contains(static_cast<std::uint32_t>(planted.late_rank)) ? Verdict::cannot_say
                                                                                                 : Verdict::late_rank);
          break;
        case 1:
          planted.late_changes = true;
          planted.late_us = planted.transfer_us * uniform(1, 3);
          expected.push_back(Verdict::late_ranks);
          break;
        case 2:
          planted.transfer_us = planted.predicted_us * uniform(1.5, 4);
          expected.push_back(is_one_missing ? Verdict::cannot_say : Verdict::slow_transfer);
          break;
        case 3:
          planted.slowed = uniform(1.25, 2);
          expected.push_back(Verdict::slowed_by_compute);
          break;
        case 4:
          planted.transfer_us = planted.predicted_us * uniform(0.3, 0.8);
          expected.push_back(Verdict::faster);
          break;
        default:
          expected.push_back(Verdict::as_predicted);
      }
      job.collectives.push_back(planted);
    }
    const Account account = account_of(profile_of(job, random), 0);
    for (std::size_t i = 0; i < job.collectives.size(); ++i) {
      const Planted& planted = job.collectives[i];
      const ComparedCalls calls = judged(account, planted, job.n);
      ++all;
      const bool is_right = calls.verdicts == std::vector<Verdict>{expected[i]};
      right += is_right;
      if (calls.has(Verdict::late_rank) && !calls.row.is_partial)
        wrong_rank += *calls.row.late_rank() != static_cast<std::uint32_t>(planted.late_rank);
      if (!is_right)
        MESSAGE("seed " << seed << " collective " << i << ": expected " << to_string(expected[i]) << ", found "
                        << to_string(calls.verdicts.front()) << " " << calls.because);
    }
  }
  CHECK(all == 800);
  CHECK(right >= 0.95 * all);
  CHECK(wrong_rank == 0);
  MESSAGE(right << " of " << all << " verdicts are right");
}

}  // namespace profile_jobs_test
