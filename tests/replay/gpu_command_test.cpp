// ringsim probe and ringsim replay --backend cuda, on a fake GPU, and on this machine.
#include <doctest/doctest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"

namespace gpu_command_test {

using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::run_on_fake_gpu;
using ringsim::test::temporary_file;

namespace {

/// A scenario that the probe wrote: 4 ranks on the fake GPU, whose memory copies 2 TB/s, each copy 2 us.
std::string probed() {
  static const std::string file = temporary_file("gpu.json", "");
  static const Outcome probe =
      run_on_fake_gpu({"probe", "--ranks", "4", "--most", "1 MiB", "--repeats", "1", "-o", file});
  REQUIRE_MESSAGE(probe.code == 0, probe.err);
  return file;
}

std::vector<std::string> replay(std::vector<std::string> more) {
  std::vector<std::string> all{"replay", probed(), "--backend", "cuda", "--repeats", "2", "--warmups", "0"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace

TEST_CASE("probe writes a scenario that runs as it is, and every measurement into a table") {
  const std::string samples = temporary_file("samples.csv", "");
  const Outcome probe =
      run_on_fake_gpu({"probe", "--ranks", "2", "--most", "1 MiB", "--repeats", "1", "--samples", samples});
  REQUIRE_MESSAGE(probe.code == 0, probe.err);
  CHECK(probe.err == "");
  CHECK(probe.out.find("\"name\": \"2 ranks on a fake GPU\"") != std::string::npos);
  const std::string file = temporary_file("two.json", probe.out);
  const Outcome run = run_command({"run", file, "--format", "json", "--set", "collective.bytes=200 MB"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  // Two steps in which both ranks' 100 MB share the memory's 2 TB/s; then both add, at 1 TB/s together.
  const double time = nlohmann::json::parse(run.out)["results"][0]["time_us"];
  CHECK(time == doctest::Approx(2 * (200e6 / 2e12 * 1e6 + 2) + 200e6 / 1e12 * 1e6 + 3)
                    .epsilon(0.005));  // the fake rounds to nanoseconds
}

TEST_CASE(
    "replay --backend cuda reports next to the prediction, right to the bit, as a graph, as streams and by kernels") {
  for (const std::vector<std::string>& how :
       {std::vector<std::string>{}, {"--streams"}, {"--copy-blocks", "8"}, {"--streams", "--copy-blocks", "1"}}) {
    auto arguments = replay({"--format", "json", "--set", R"(collective.algorithm=["ring","halving_doubling"])",
                             "--set", "collective.bytes=64 KiB"});
    arguments.insert(arguments.end(), how.begin(), how.end());
    const Outcome outcome = run_on_fake_gpu(arguments);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(outcome.err == "ringsim: measured on a fake GPU: several ranks per GPU\n");
    const auto results = nlohmann::json::parse(outcome.out)["results"];
    REQUIRE(results.size() == 2);
    for (const auto& row : results) {
      CHECK(row["wrong"] == 0);
      CHECK(row["measured_us"] > row["time_us"]);  // additions take no time in the simulator
    }
  }
}

TEST_CASE("with a probe's table a replay also reports the model's prediction, additions included") {
  const std::string samples = temporary_file("samples.csv", "");
  REQUIRE(
      run_on_fake_gpu({"probe", "--most", "1 MiB", "--repeats", "1", "-o", "/dev/null", "--samples", samples}).code ==
      0);
  const Outcome outcome =
      run_on_fake_gpu(replay({"--format", "json", "--samples", samples, "--set", "collective.bytes=64 kB"}));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  // A launch of 1 us; four ranks, 16 kB a chunk: 24 copies of 2008 ns, 12 additions of 3016 ns. Shared: 6 x (2 us + 4 x
  // 8 ns) and 3 x (3 us + 4 x 16 ns).
  const auto row = nlohmann::json::parse(outcome.out)["results"][0];
  CHECK(row["modelled_in_turn_us"] == doctest::Approx(85.384).epsilon(1e-3));
  CHECK(row["modelled_shared_us"] == doctest::Approx(22.384).epsilon(1e-3));
  CHECK(row["measured_us"] == 85.384);
  const Outcome csv =
      run_on_fake_gpu(replay({"--format", "csv", "--samples", samples, "--set", "collective.bytes=64 kB"}));
  CHECK(csv.out.find(",wrong,modelled_in_turn_us,modelled_shared_us,error,") != std::string::npos);
  CHECK_MESSAGE(csv.out.find(",85.384,85.384,0,85.38") != std::string::npos,
                csv.out);  // fastest, slowest, wrong, modeled
  CHECK(run_on_fake_gpu(replay({"--samples", samples, "--set", "collective.bytes=64 kB"})).out.find("shared") !=
        std::string::npos);
  const Outcome missing = run_on_fake_gpu(replay({"--samples", "/nowhere.csv"}));
  CHECK(missing.code == 3);
  CHECK(missing.err.find("/nowhere.csv") != std::string::npos);
}

TEST_CASE("servers of a scenario that has them on CPUs are in host memory: their copies are the host link's") {
  const auto time = [](const std::string& on) {
    auto arguments =
        replay({"--format", "json", "--set", R"(collective.algorithm={"name": "parameter_server", "servers": 1})",
                "--set", "collective.bytes=4 MB", "--set", on});
    const Outcome outcome = run_on_fake_gpu(arguments);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    return nlohmann::json::parse(outcome.out)["results"][0]["measured_us"].get<double>();
  };
  // Four buffers up at 40 GB/s, the sum four times down at 50, and what the CPU adds.
  CHECK(time(R"(collective.servers_on="cpu")") > 4 * (4e6 / 40e9 + 4e6 / 50e9) * 1e6);
}

TEST_CASE("every failure of a GPU is reported, with exit code 5; our own misuse of it with 4") {
  const auto expect = [](const std::string& fault, int code, const std::string& says) {
    const Outcome outcome = run_on_fake_gpu(replay({"--timeout", "50ms", "--set", "collective.bytes=64 KiB"}), fault);
    CAPTURE(fault);
    CHECK(outcome.code == code);
    CHECK_MESSAGE(outcome.err.find(says) != std::string::npos, outcome.err);
  };
  expect("absent", 5, "ringsim: error: looking for GPUs: no GPU is faked\n  hint: ");
  expect("memory", 5, "allocating 64 KiB in GPU 0 for rank 0: the fake GPU is full\n  hint: ");
  expect("lost", 5, "the fake GPU was set to fail\n  hint: ");
  expect("stall", 5, "run 1 of 2: the GPU did not finish within 50 ms\n  hint: to wait longer, use --timeout");
  expect("misuse", 4, "the fake GPU was set to fail");
}

TEST_CASE("options of one backend are refused with another, and several jobs at a time on GPUs") {
  const Outcome streams = run_command({"replay", probed(), "--backend", "tcp", "--streams"});
  CHECK(streams.code == 2);
  CHECK(streams.err.starts_with("ringsim: error: --streams: expected this option only with --backend cuda or nccl\n"));
  const Outcome jobs = run_on_fake_gpu(replay(
      {"--set",
       R"(jobs=[{"name": "second", "collective": {"op": "barrier", "algorithm": "dissemination", "bytes": "0 B"}}])"}));
  CHECK(jobs.code == 3);
  CHECK_MESSAGE(jobs.err.find("/jobs: expected one collective, found 2") != std::string::npos, jobs.err);
}

TEST_CASE("on this machine probe and replay work, or say what is lacking, with exit code 5") {
  const Outcome probe = run_command({"probe", "--ranks", "2", "--most", "64 KiB", "--repeats", "1"});
  const Outcome outcome = run_command(replay({"--set", "collective.bytes=64 KiB"}));
  CHECK(probe.code == outcome.code);
  if (probe.code == 0) return;
  CHECK(probe.code == 5);
  CHECK(probe.err.starts_with("ringsim: error: "));
  CHECK(probe.err.find("\n  hint: ") != std::string::npos);
  CHECK(probe.err == outcome.err);
}

}  // namespace gpu_command_test
