// ringsim replay --backend nccl, on fake GPUs and a fake NCCL, and on this machine.
#include <doctest/doctest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace nccl_command_test {

using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::run_on_fake_gpu;
using ringsim::test::source_dir;
using ringsim::test::temporary_file;

namespace {

using Words = std::vector<std::string>;

/// A ring of four ranks, 64 KiB.
std::string scenario() {
  static const std::string file = temporary_file("four.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "64 KiB"}})");
  return file;
}

Words replay(const Words& more) {
  Words all{"replay", scenario(), "--backend", "nccl", "--warmups", "1"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Outcome on_gpus(int gpus, const Words& more, const std::string& fault = "") {
  return run_on_fake_gpu(replay(more), fault, gpus);
}

}  // namespace

TEST_CASE("replay --backend nccl reports next to the prediction, right to the bit, as a graph and call by call") {
  for (const Words& how : {Words{}, Words{"--streams"}}) {
    // A parameter server of its own is a fifth.
    Words arguments{"--format", "json", "--set",
                    R"(collective.algorithm=["ring","halving_doubling",{"name": "parameter_server", "servers": 1}])"};
    arguments.insert(arguments.end(), how.begin(), how.end());
    const Outcome outcome = on_gpus(5, arguments);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(outcome.err == "ringsim: measured on a fake GPU, a fake NCCL\n");
    const auto results = nlohmann::json::parse(outcome.out)["results"];
    REQUIRE(results.size() == 3);
    for (const auto& row : results) {
      CHECK(row["wrong"] == 0);
      CHECK(row["measured_us"] > 0);
    }
  }
}

TEST_CASE("--library times NCCL's own collective on the same buffers, and says it in the words of nccl-tests") {
  const Outcome outcome = on_gpus(4, {"--library", "--format", "json"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const auto row = nlohmann::json::parse(outcome.out)["results"][0];
  CHECK(row["wrong"] == 0);
  long bytes = 0, count = 0, wrong = -1;
  int root = 0;
  double time = 0, algbw = 0, busbw = 0;
  REQUIRE_MESSAGE(std::sscanf(outcome.err.c_str(),
                              "ringsim: measured on a fake GPU, a fake NCCL\n"
                              "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
                              "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)       \n"
                              "%ld %ld float sum %d %lf %lf %lf %ld\n",
                              &bytes, &count, &root, &time, &algbw, &busbw, &wrong) == 7,
                  outcome.err);
  CHECK(bytes == 65536);
  CHECK(count == 16384);
  CHECK(root == -1);
  CHECK(wrong == 0);
  CHECK(time == doctest::Approx(row["measured_us"].get<double>()).epsilon(0.01));
  CHECK(algbw == doctest::Approx(65536e-3 / time).epsilon(0.01));  // B/us is MB/s
  CHECK(busbw == doctest::Approx(algbw * 2 * 3 / 4).epsilon(0.01));

  const auto counted = [](const std::string& op, const Words& more) {
    Words arguments{"--library", "--set", "collective.op=" + op};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome each = on_gpus(4, arguments);
    REQUIRE_MESSAGE(each.code == 0, each.err);
    const std::string line = each.err.substr(each.err.rfind("\n  ", each.err.size() - 2) + 1);
    return line.substr(0, 52);
  };
  // size, NCCL's count: a rank's share; type, redop, root.
  CHECK(counted("reduce_scatter", {}) == "       65536          4096     float     sum      -1");
  CHECK(counted("all_gather", {}) == "       65536          4096     float    none      -1");
  CHECK(counted("broadcast", {"--set", "collective.algorithm=binomial_tree", "--set", "collective.root=2"}) ==
        "       65536         16384     float    none       2");
}

TEST_CASE("a rank needs a GPU for itself: fewer are an error that says what to do, exit code 5") {
  const Outcome outcome = on_gpus(3, {});
  CHECK(outcome.code == 5);
  CHECK(outcome.out == "");
  CHECK_MESSAGE(outcome.err.find("rank 0 and rank 3 would share GPU 0, but NCCL requires separate GPUs\n  hint: ") !=
                    std::string::npos,
                outcome.err);
}

TEST_CASE("every failure of NCCL or a GPU is reported, with exit code 5, and nothing waits forever") {
  const auto expect = [](const std::string& fault, const std::string& says) {
    const Outcome outcome = on_gpus(4, {"--timeout", "50ms", "--repeats", "20"}, fault);
    CAPTURE(fault);
    CHECK(outcome.code == 5);
    CHECK(outcome.out == "");
    CHECK_MESSAGE(outcome.err.find(says) != std::string::npos, outcome.err);
  };
  expect("absent", "ringsim: error: looking for GPUs: no GPU is faked\n  hint: ");
  expect("no library", "ringsim: error: loading NCCL: none is faked\n  hint: ");
  expect("network", "the fake NCCL was set to fail\n  hint: ");
  expect("stall", "did not finish within 50 ms");
  expect("lost", "the fake GPU was set to fail\n  hint: ");
}

TEST_CASE("what NCCL cannot do is refused: servers on CPUs, several jobs, faults, operations that it lacks") {
  const auto expect = [](const Words& more, const std::string& says, int code = 3) {
    const Outcome outcome = on_gpus(8, more);
    CHECK(outcome.code == code);
    CHECK_MESSAGE(outcome.err.find(says) != std::string::npos, outcome.err);
  };
  expect({"--copy-blocks", "4"}, "--copy-blocks: expected this option only with --backend cuda\n", 2);
  expect({"--samples", "x.csv"}, "--samples: expected this option only with --backend cuda\n", 2);
  expect(
      {"--set",
       R"(jobs=[{"name": "second", "collective": {"op": "barrier", "algorithm": "dissemination", "bytes": "0 B"}}])"},
      "/jobs: expected one collective, found 2");
  expect({"--set", R"(faults=[{"link": "gpu0", "bandwidth": "50%"}])"}, "/faults: expected a run without disturbances");
  expect({"--library", "--set", "collective.op=all_to_all", "--set", "collective.algorithm=pairwise"}, "all_to_all");
  const Outcome on_cpus = run_on_fake_gpu(
      {"replay", source_dir() + "/scenarios/examples/algorithms/cpu-servers.json", "--backend", "nccl"});
  CHECK(on_cpus.code == 3);
  CHECK_MESSAGE(
      on_cpus.err.find(R"(/collective/servers_on: expected servers on GPUs, found "cpu")") != std::string::npos,
      on_cpus.err);
  const Outcome other = run_command({"replay", scenario(), "--backend", "cuda", "--library"});
  CHECK(other.code == 2);
  CHECK(other.err.starts_with("ringsim: error: --library: expected this option only with --backend nccl\n"));
}

TEST_CASE("the help of replay names nccl, and what --library is") {
  const Outcome help = run_command({"replay", "--help"});
  CHECK(help.code == 0);
  CHECK(help.out.find("tcp|mpi|cuda|nccl") != std::string::npos);
  CHECK(help.out.find("--library") != std::string::npos);
}

TEST_CASE("on this machine NCCL replays on one GPU, or the error says what is missing, with exit code 5") {
  const Outcome outcome = run_command(replay({"--set", "collective.ranks=[\"gpu0\"]"}));
  if (outcome.code == 0) return;
  CHECK(outcome.code == 5);
  CHECK(outcome.err.starts_with("ringsim: error: "));
  CHECK(outcome.err.find("\n  hint: ") != std::string::npos);
}

}  // namespace nccl_command_test
