// Programs as Chakra traces: what is written, and that it reads back as the same step.
#include "algorithms/traces/chakra_writer.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/traces/chakra_reader.hpp"
#include "algorithms/traces/rank_trace.hpp"
#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/json_scenario.hpp"
#include "tests/support/paths.hpp"

namespace chakra_writer_test {

using namespace ringsim;
using namespace ringsim::test;
using Json = nlohmann::json;

namespace {

/// Steps on a star, times in whole microseconds.
Json ddp(int ranks) {
  Json out = Json::parse(R"({"version": 1, "name": "ddp",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}},
      "training": {"workload": {"layers": [
                      {"name": "a", "parameters": 1000000, "forward": "20 us", "backward": "40 us"},
                      {"name": "b", "parameters": 3000000, "forward": "30 us", "backward": "60 us"}], "batch": 1},
                   "regime": {"name": "ddp", "algorithm": "ring", "buckets": {"rule": "pytorch", "size": "4 MiB"}}, "steps": 1, "warmup": 0}})");
  out["topology"]["ranks"] = ranks;
  return out;
}

/// A plan: tensor, pipeline and data parallel ranks.
Json plan() {
  return Json::parse(R"({"version": 1, "name": "plan",
      "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "training": {"workload": {"transformer": {"layers": 2, "hidden": 64, "heads": 2, "ffn": 128, "vocabulary": 100},
                                "sequence": 16, "micro_batch_size": 1, "global_batch_size": 4,
                                "compute": {"flops": "1 TFLOP/s", "efficiency": "50%"}},
                   "parallel": {"tensor": 2, "pipeline": 2}, "steps": 1, "warmup": 0}})");
}

/// The step of a scenario, and that of its traces on the same machine.
std::pair<Picoseconds, Picoseconds> there_and_back(const Json& scenario) {
  const std::filesystem::path folder = fresh_folder("export");
  std::ofstream(folder / "s.json") << scenario.dump();
  const auto outcome =
      run_command({"trace", "export", (folder / "s.json").string(), (folder / "traces/job.{rank}.et").string()});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  Json back = scenario;
  back.erase("training");
  back["trace"] = {{"files", "traces/job.{rank}.et"}};
  const Picoseconds replayed = predict(ScenarioFile::parse(back.dump(), (folder / "back.json").string()).point(0)).time;
  std::filesystem::remove_all(folder);
  return {predicted(scenario).time, replayed};
}

}  // namespace

TEST_CASE("a training step that is exported and read back takes the same time, to the picosecond") {
  if (!traces::has_chakra()) return;
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const auto [before, after] = there_and_back(ddp(ranks));
    CHECK(before == after);
  }
}

TEST_CASE("a plan that is exported and read back takes the same time but for rounding to microseconds") {
  if (!traces::has_chakra()) return;
  const auto [before, after] = there_and_back(plan());
  // Tens of kernels follow one another; each sum along a stream is off by half a microsecond at most.
  CHECK(std::abs((before - after).count()) < 3'000'000);
  CHECK(before.count() > 30'000'000);
}

TEST_CASE("exported ids ascend along dependencies, all of which are there, and every node has is_cpu_op") {
  if (!traces::has_chakra()) return;
  const std::filesystem::path folder = fresh_folder("export");
  std::ofstream(folder / "s.json") << ddp(2).dump();
  const std::string to = (folder / "traces/job.{rank}.et").string();
  REQUIRE(run_command({"trace", "export", (folder / "s.json").string(), to}).code == 0);
  std::ifstream in(folder / "traces/job.1.et", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const traces::ExecutionTrace trace = traces::read_chakra(text, "job.1.et");
  const traces::TraceCounts counts = count_trace(trace);
  CHECK(counts.missing_all == 0);
  CHECK(counts.dropped_control == 0);
  CHECK(counts.collectives > 1);
  for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
    const traces::TraceNode& node = trace.nodes[n];
    CHECK((n == 0 || node.id > trace.nodes[n - 1].id));
    for (std::size_t i = 0; i < node.n_data; ++i) CHECK(trace.waits[node.first_wait + i] < node.id);
  }
  CHECK(Json::parse(std::ifstream(folder / "traces/job.groups.json")) == Json::parse(R"({"1": [0, 1]})"));
  CHECK(trace.groups.at("1") == std::vector<std::uint32_t>{0, 1});
  // ASTRA-sim stops at metadata nodes: "Statistics.cc: get_operator_type: Assertion `false' failed". Groups are in the
  // head.
  for (const traces::TraceNode& node : trace.nodes) CHECK(node.kind != traces::TracedKind::nothing);
  // A second time nothing is replaced.
  const auto again = run_command({"trace", "export", (folder / "s.json").string(), to});
  CHECK(again.code == 3);
  CHECK(has(again.err,
            "job.0.et: expected the name of a new file, found an existing file\n  hint: use --force to overwrite it"));
  CHECK(run_command({"trace", "export", (folder / "s.json").string(), to, "--force"}).code == 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("comm_size is what goes in at one rank: of an all_gather its part, as ASTRA-sim takes it") {
  if (!traces::has_chakra()) return;
  Json sequence = plan();
  sequence["training"]["parallel"]["sequence_parallel"] = true;
  const std::filesystem::path folder = fresh_folder("export");
  std::ofstream(folder / "s.json") << sequence.dump();
  REQUIRE(run_command({"trace", "export", (folder / "s.json").string(), (folder / "job.{rank}.et").string()}).code ==
          0);
  std::ifstream in(folder / "job.0.et", std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  // Activations of a micro-batch, 16 tokens of 64 values of 2 B, are gathered from and scattered to two tensor ranks.
  constexpr std::int64_t activations = std::int64_t{16} * 64 * 2;
  std::size_t gathers = 0, scatters = 0;
  for (const traces::Communication& each : traces::read_chakra(text, "job.0.et").communications) {
    if (each.op == CollectiveOp::all_gather) {
      ++gathers;
      CHECK(each.input.count == activations / 2);
    }
    if (each.op == CollectiveOp::reduce_scatter && each.input.count == activations) ++scatters;
  }
  CHECK(gathers > 0);
  CHECK(scatters > 0);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a note says what ASTRA-sim does with tasks of the CPU") {
  if (!traces::has_chakra()) return;
  const std::filesystem::path folder = fresh_folder("export");
  const std::string note = "its statistics do not include CPU tasks";
  const auto said = [&](const std::string& scenario, const std::string& to) {
    const auto outcome = run_command({"trace", "export", scenario, (folder / to).string()});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    return outcome.out + outcome.err;
  };
  std::ofstream(folder / "s.json") << ddp(2).dump();
  CHECK(!has(said((folder / "s.json").string(), "ddp.{rank}.et"), note));
  Json traced = Json::parse(R"({"version": 1, "name": "traced",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "50 GB/s", "latency": "1 us"}}})");
  traced["trace"] = {{"files", source_dir() + "/scenarios/examples/trace/ddp.{rank}.et"}};
  std::ofstream(folder / "traced.json") << traced.dump();
  CHECK(has(said((folder / "traced.json").string(), "traced.{rank}.et"), note));
  std::filesystem::remove_all(folder);
}

TEST_CASE("what a trace cannot have is refused at its place") {
  if (!traces::has_chakra()) return;
  const auto said = [](const Json& scenario) {
    const std::string file = temporary_file("s.json", scenario.dump());
    return run_command({"trace", "export", file, file + ".{rank}.et"}).err;
  };
  Json gossip = ddp(4);
  gossip["training"]["regime"] = "gossip";
  const std::string found =
      "/training: expected collectives that a trace can contain, found send_recv\n  hint: the format supports sends "
      "and receives between two ranks, but not shifts around a ring";
  CHECK(has(said(gossip), found + "\n"));
  Json ring = plan();
  ring["training"]["parallel"] = {{"tensor", 2}, {"context", 2}, {"cp_comm", "p2p"}};
  CHECK(has(said(ring), found + ": set training.parallel.cp_comm to all_gather\n"));
  ring["training"]["parallel"]["cp_comm"] = "all_gather";
  CHECK(said(ring).find("expected collectives") == std::string::npos);
  CHECK(has(said(Json::parse(ring_of_four)), "expected one training step, inference step or trace"));
}

}  // namespace chakra_writer_test
